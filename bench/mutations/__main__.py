"""`python -m bench.mutations`: see the package's docstring."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

from bench.mutations import runner
from bench.mutations.journal import Journal, equivalents, stale_equivalents
from bench.mutations.operators import Mutant
from bench.mutations.rooms import ROOMS, ROOT, Room, selected, test_files
from bench.mutations.traces import Tracer, Traces

#: Processor time that tests get: so many times what they took, and so many seconds more.
PATIENCE, GRACE = 5.0, 20.0


class Chooser:
    """A pytest plugin that keeps the chosen tests, in their order, and reports what failed."""

    def __init__(self, report: Path, names: Sequence[str]) -> None:
        self.report = report
        self.ranks = {name: rank for rank, name in enumerate(names)}

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Choose and sort."""
        chosen = [item for item in items if item.nodeid in self.ranks]
        items[:] = sorted(chosen, key=lambda item: self.ranks[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        """Name the test that runs: it is to blame if the process dies."""
        self.report.write_text(f'{{"killer": {_quoted(nodeid)}}}', encoding="utf-8")

    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        """Nobody is to blame if all passed."""
        if exitstatus == 0:
            self.report.write_text("{}", encoding="utf-8")


def _quoted(text: str) -> str:
    import json

    return json.dumps(text)


@attrs.frozen
class Task:
    """Something for a child: how to start it in a tree, and what to do with its outcome."""

    start: Callable[[Path], runner.Child]
    done: Callable[[runner.Outcome], None]
    prepare: Callable[[Path], Any]


def run_tasks(tasks: Iterable[Task], jobs: int, trees: Path) -> None:
    """Run tasks, `jobs` at a time, each in a tree of its own."""
    waiting = iter(tasks)
    free = [trees / str(number) for number in range(jobs)]
    running: dict[Path, tuple[Task, runner.Child, Any]] = {}
    more = True
    try:
        while more or running:
            while free and more:
                task = next(waiting, None)
                if task is None:
                    more = False
                    break
                tree = free.pop()
                if not tree.exists():
                    runner.make_tree(tree)
                change = task.prepare(tree)
                change.__enter__()
                running[tree] = task, task.start(tree), change
            for tree, (task, child, change) in list(running.items()):
                outcome = child.poll()
                if outcome is not None:
                    del running[tree]
                    change.__exit__(None, None, None)
                    free.append(tree)
                    task.done(outcome)
            time.sleep(0.02)
    finally:
        for _, child, _ in running.values():
            child.kill()


def trace_tasks(traces: Traces, wanted: dict[str, set[str]]) -> Iterable[Task]:
    """A task for each file of tests that has to be traced, with the files of code to watch."""
    import contextlib

    for test, paths in wanted.items():
        names = sorted(paths)

        def start(tree: Path, test: str = test, names: list[str] = names) -> runner.Child:
            def plugin(report: Path) -> Tracer:
                return Tracer(report, tree, names)

            return runner.start(tree, [test], plugin, 3_000, 3_000, first_failure=False)

        def done(outcome: runner.Outcome, test: str = test, names: list[str] = names) -> None:
            if outcome.code not in (0, 1, 5):
                print(f"{test}: could not be traced\n{outcome.output[-2000:]}")
            traces.note(test, names, outcome.report)
            for name in traces.failing(test):
                print(f"fails as it is, judges nothing: {name}", flush=True)
            print(f"traced {test} in {outcome.seconds:.0f} s", flush=True)

        yield Task(start, done, lambda tree: contextlib.nullcontext())


def judging(mutant: Mutant, traces: Traces) -> list[tuple[str, float]]:
    """The tests that execute a mutant's lines with their seconds: those of the file of the same
    name first, then the quick ones; of a test with many parameters one after each other test."""
    lines = set(range(mutant.line, mutant.last_line + 1))
    own = f"test_{Path(mutant.path).stem}", Path(mutant.path).stem
    found: list[tuple[bool, float, str]] = []
    for test in test_files(mutant.path):
        for name, seconds, executed in traces.tests_of(test):
            if not lines.isdisjoint(executed.get(mutant.path, ())):
                found.append((Path(test).stem not in own, seconds, name))
    turns: Counter[str] = Counter()
    ranked = []
    for other, seconds, name in sorted(found):
        function = name.partition("[")[0]
        turns[function] += 1
        ranked.append((turns[function], other, seconds, name))
    return [(name, seconds) for _, _, seconds, name in sorted(ranked)]


def within(chosen: list[tuple[str, float]], seconds: float) -> list[tuple[str, float]]:
    """The first tests, which take so many seconds together; three of them at least."""
    kept: list[tuple[str, float]] = []
    for name, took in chosen:
        if len(kept) < 3 or took <= seconds:
            kept.append((name, took))
            seconds -= took
    return kept


class Run:
    """One run over the selected mutants."""

    def __init__(self, journal: Journal, traces: Traces, glance: float | None = None) -> None:
        self.journal, self.traces, self.glance = journal, traces, glance
        self.verdicts: dict[str, dict[str, Any]] = {}

    def tasks(self, mutants: Sequence[Mutant]) -> Iterable[Task]:
        """A task for each mutant of which nothing is known and that a test executes."""
        for number, mutant in enumerate(mutants):
            tests = test_files(mutant.path)
            known = self.journal.verdict(mutant, tests)
            if known is not None:
                self.verdicts[mutant.key] = known
                continue
            chosen = judging(mutant, self.traces)
            if self.glance is not None:
                chosen = within(chosen, self.glance)
            if not chosen:
                self.note(mutant, "survived", "", 0.0, f"{number + 1}: no test executes it")
                continue
            yield self._task(mutant, chosen, number)

    def _task(self, mutant: Mutant, chosen: list[tuple[str, float]], number: int) -> Task:
        names = [name for name, _ in chosen]
        limit = PATIENCE * sum(seconds for _, seconds in chosen) + GRACE
        files = list(dict.fromkeys(name.split("::")[0] for name in names))

        def prepare(tree: Path) -> Any:
            file = tree / mutant.path
            return runner.replaced(file, mutant.applied(file.read_text(encoding="utf-8")))

        def start(tree: Path) -> runner.Child:
            return runner.start(tree, files, lambda report: Chooser(report, names), limit)

        def done(outcome: runner.Outcome) -> None:
            if outcome.code == 5:
                raise RuntimeError(f"{mutant.where}: no test was run\n{outcome.output}")
            verdict = "survived" if outcome.code == 0 else "killed"
            killer = outcome.report.get("killer", "")
            word = f"{number + 1}: {len(names)} tests, {outcome.seconds:.1f} s"
            if outcome.timed_out:
                word += ", out of time"
            self.note(mutant, verdict, killer, outcome.seconds, word)

        return Task(start, done, prepare)

    def note(self, mutant: Mutant, verdict: str, killer: str, seconds: float, word: str) -> None:
        """Keep and tell a verdict."""
        if verdict == "killed" or self.glance is None:
            tests = test_files(mutant.path)
            self.verdicts[mutant.key] = self.journal.note(mutant, verdict, killer, tests, seconds)
        else:
            self.verdicts[mutant.key] = {"verdict": verdict}
        print(f"{verdict:8} {mutant.where} {mutant.operator} ({word})", flush=True)


def report(chosen: dict[str, list[Mutant]], verdicts: dict[str, dict[str, Any]]) -> float:
    """Print killed and survived per room and the survivors; the share that is killed."""
    same = equivalents()
    print(f"\n{'room':10} {'mutants':>8} {'killed':>8} {'survived':>8} {'equivalent':>10}")
    total = killed = equal = 0
    survivors: list[Mutant] = []
    for room, mutants in chosen.items():
        judged = [m for m in mutants if m.key in verdicts]
        alive = [m for m in judged if verdicts[m.key]["verdict"] == "survived"]
        listed = [m for m in alive if m.key in same]
        survivors += alive
        total, killed, equal = (
            total + len(judged), killed + len(judged) - len(alive), equal + len(listed)
        )  # fmt: skip
        print(f"{room:10} {len(judged):8} {len(judged) - len(alive):8} {len(alive):8} "
              f"{len(listed):10}")  # fmt: skip
    print(f"{'all':10} {total:8} {killed:8} {total - killed:8} {equal:10}\n")
    for mutant in survivors:
        print(f"survived {mutant.where} {mutant.function} [{mutant.operator}] {mutant.key}")
        print(f"    {mutant.change}")
        if mutant.key in same:
            print(f"    the same program: {same[mutant.key]['why']}")
    share = killed / max(total, 1)
    apart = killed / max(total - equal, 1)
    print(f"\n{killed} of {total} killed: {share:.1%}; {apart:.1%} of those that are not known "
          f"to be equivalent")  # fmt: skip
    return share


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench.mutations", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="children at a time")
    parser.add_argument("--shard", default="0/1", help="i/n: every n-th mutant from the i-th on")
    parser.add_argument("--seed", type=int, default=0, help="which mutants are selected")
    parser.add_argument("--room", action="append", help="only these rooms")
    parser.add_argument("--glance", type=float, help="only so many seconds of tests for a mutant")
    parser.add_argument("--key", action="append", help="only these mutants, of all there are")
    parser.add_argument("--file", help="only mutants of files whose path holds this")
    parser.add_argument("--all", action="store_true", help="all mutants, not a selection")
    parser.add_argument("--out", type=Path, default=ROOT / "out", help="where the journal is")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--fresh", action="store_true", help="forget the journal")
    given = parser.parse_args(words)
    given.out = given.out.resolve()  # children change into a tree of their own
    rooms = tuple(r for r in ROOMS if not given.room or r.name in given.room)
    chosen = choose(rooms, given)
    mutants = [m for found in chosen.values() for m in found]
    if given.list:
        for mutant in mutants:
            print(f"{mutant.where} {mutant.function} [{mutant.operator}] {mutant.key}")
            print(f"    {mutant.change}")
        print({room: len(found) for room, found in chosen.items()}, len(mutants))
        return 0
    path = given.out / f"mutations-{given.seed}-{given.shard.replace('/', '-')}.jsonl"
    if given.fresh:
        path.unlink(missing_ok=True)
    run = Run(Journal(path), Traces(given.out / "mutation-traces"), given.glance)
    begun = time.monotonic()
    execute(run, mutants, given)
    report(chosen, run.verdicts)
    stale = stale_equivalents(rooms) if not given.room else []
    for entry in stale:
        print(f"stale in mutations_equivalent.json: {entry['key']} {entry['where']}")
    print(f"{time.monotonic() - begun:.0f} s")
    alive = {k for k, v in run.verdicts.items() if v["verdict"] == "survived"}
    return int(bool(stale) or bool(alive - equivalents().keys()))


def choose(rooms: Sequence[Room], given: argparse.Namespace) -> dict[str, list[Mutant]]:
    """The mutants of this run by room."""
    from bench.mutations.rooms import population

    shard, _, shards = given.shard.partition("/")
    chosen: dict[str, list[Mutant]] = {}
    number = 0
    for room in rooms:
        whole = given.all or given.key
        found = population(room) if whole else selected(room, given.seed)
        kept = chosen[room.name] = []
        for mutant in found:
            number += 1
            if given.key and mutant.key not in given.key:
                continue
            if given.file and given.file not in mutant.path:
                continue
            if (number - 1) % int(shards or 1) == int(shard):
                kept.append(mutant)
    return chosen


def execute(run: Run, mutants: Sequence[Mutant], given: argparse.Namespace) -> None:
    """Trace what has to be traced, then judge."""
    runner.preload()
    trees = given.out / f"mutation-trees-{given.shard.replace('/', '-')}"
    wanted: dict[str, set[str]] = {}
    watched = {path for room in ROOMS for path in room.paths()}
    for mutant in mutants:
        for test in test_files(mutant.path):
            if not run.traces.is_current(test, {mutant.path}):
                watching = {p for p in watched if test in test_files(p)}
                wanted.setdefault(test, set()).update(watching)
    try:
        runner.clear(trees)
        run_tasks(trace_tasks(run.traces, wanted), given.jobs, trees)
        run_tasks(run.tasks(mutants), given.jobs, trees)
    finally:
        runner.clear(trees)


if __name__ == "__main__":
    sys.exit(main())
