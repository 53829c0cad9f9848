"""Where the seconds of tuning go, a model at a time, on a GPU: irc with max-autotune and an empty
store, without any other side.

    python -m bench.tuned_phases [--models convnext-tiny,t5-small] [--budget 60]

A process a model. A line for each time that a pass asks for choices: problems, distinct ones,
candidates, seconds from the asking to the choice, and those of them that count for the budget. Then
a line a phase: how often, seconds of all threads, and the processor's seconds of them; lines that
begin with two more spaces are parts of the one above. `waiting` is what the main thread waits for
builds while it has nothing to time.
"""

from __future__ import annotations

import argparse
import collections
import functools
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

Work = Callable[..., Any]
#: The phases, each with the function that it is, by its module.
PHASES = (
    ("generating candidates", "irc.passes.graph.contractions.measured", "candidates_of"),
    ("building", "irc.tuning.measuring", "built"),
    ("  from the text", "irc.tuning.problem:Problem", "with_candidate"),
    ("  codes and host function", "irc.tuning.measuring", "build"),
    ("    a kernel by a process", "irc.codegen.triton.workers:_Compiler", "ask"),
    ("    a kernel here", "irc.codegen.triton.machine_code", "compile_code"),
    ("    loading", "irc.runtime.building", "load"),
    ("arguments", "irc.tuning.measuring:InProcess", "begin"),
    ("capturing", "irc.tuning.replays:Replays", "__init__"),
    ("samples", "irc.tuning.replays:Replays", "seconds"),
    ("waiting", "irc.tuning.open_problems:Built", "wait"),
)


class Phases:
    """Seconds of what is watched, over all threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.spent: dict[str, list[float]] = collections.defaultdict(lambda: [0, 0.0, 0.0])

    def watched(self, name: str, work: Work) -> Work:
        """The same, noted."""

        @functools.wraps(work)
        def noted(*known: Any, **named: Any) -> Any:
            start, busy = time.perf_counter(), time.thread_time()
            try:
                return work(*known, **named)
            finally:
                taken = 1, time.perf_counter() - start, time.thread_time() - busy
                with self.lock:
                    each = self.spent[name]
                    each[:] = [a + b for a, b in zip(each, taken, strict=True)]

        return noted

    def watch(self) -> None:
        """Note all phases from now on."""
        import importlib

        for name, place, function in PHASES:
            module, _, owner = place.partition(":")
            holder: Any = importlib.import_module(module)
            holder = getattr(holder, owner) if owner else holder
            setattr(holder, function, self.watched(name, getattr(holder, function)))

    def told(self) -> None:
        """Print them."""
        for name, *_ in PHASES:
            count, wall, busy = self.spent[name]
            print(f"    {name:30} {count:5.0f} times, {wall:7.2f} s, {busy:6.2f} of a processor")


def one(name: str, asked: argparse.Namespace) -> None:
    """A model in this process."""
    from bench import tuned_models
    from irc.tuning import session

    phases = Phases()
    phases.watch()
    lines: list[str] = []
    plain = session.Session.choose_all

    def choose_all(self: Any, several: Any, tell: Any) -> Any:
        start, before = time.perf_counter(), self.spent
        try:
            return plain(self, several, tell)
        finally:
            each = {problem.canonical(): len(candidates) for problem, candidates in several}
            lines.append(f"    asked {len(several)}, {len(each)} problems, {sum(each.values())} "
                         f"candidates: {time.perf_counter() - start:.2f} s, of which "
                         f"{self.spent - before:.2f} count")  # fmt: skip

    session.Session.choose_all = choose_all  # type: ignore[method-assign]
    compiler = tuned_models.Compiler(name, asked)
    compiler.tuned(asked.budget, False)
    print("\n".join(lines))
    phases.told()


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", default="convnext-tiny,resnet-50,t5-small")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--budget", type=int, default=60, help="of the tuning, seconds")
    parser.add_argument("--one", action="store_true", help="in this process")
    asked = parser.parse_args()
    names = asked.models.split(",")
    if asked.one:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["IRC_CACHE_DIR"] = folder
            one(names[0], asked)
        return
    for name in names:
        command = [sys.executable, "-m", "bench.tuned_phases", "--models", name, "--one",
                   "--dtype", asked.dtype, "--budget", str(asked.budget)]  # fmt: skip
        subprocess.run(command, check=False)


if __name__ == "__main__":
    main()
