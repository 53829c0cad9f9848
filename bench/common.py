"""Fair timing of the same job under several backends.

Each side (backend) is a process of its own with one thread.  Sides take turns: in each round
every side is measured once while the others wait, and the order is turned round every other round,
so that a change of the machine's speed hits all alike.  What is reported is the median over rounds
of the ratio of two sides.

A job is a module with `prepare(case, backend) -> Prepared`; see bench/kernels.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
BACKENDS = ("irc", "inductor", "aot_eager", "eager")
ROUNDS = 21


@dataclasses.dataclass
class Prepared:
    """A job ready to be timed: the call, facts about it, and a slower look at one call."""

    call: Callable[[], object]
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)
    inspect: Callable[[], dict[str, Any]] | None = None


class SideFailed(Exception):
    """A side's process died or its job raised; the text is the reason."""


class Side:
    """One backend's process; `prepare` a case, `measure` it as often as wanted.

    The backend "irc@REVISION" is irc as a commit has it (or "irc@FOLDER", the folder that holds
    another `irc`), with the jobs of this checkout.
    """

    def __init__(
        self, job: str, backend: str, threads: int = 1, environment: dict[str, str] | None = None
    ) -> None:
        self.backend = backend
        name, _, revision = backend.partition("@")
        settings = {
            "OMP_NUM_THREADS": str(threads),
            "MKL_NUM_THREADS": str(threads),
            "PYTHONPATH": str(ROOT),
            "TOKENIZERS_PARALLELISM": "false",
        }
        reading, self._writing = os.pipe()
        self._reading, writing = os.pipe()
        self._child = subprocess.Popen(
            [sys.executable, "-m", "bench.worker", job, name, str(reading), str(writing)],
            pass_fds=[reading, writing],
            stdout=sys.stderr,
            cwd=folder_of(revision) if revision else ROOT,  # the first place of imports
            env={**os.environ, **settings, **(environment or {})},
        )
        os.close(reading)
        os.close(writing)
        self._requests = os.fdopen(self._writing, "w")
        self._answers = os.fdopen(self._reading, "r")

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._child.pid

    def ask(self, request: str, **values: Any) -> dict[str, Any]:
        """Send a request to the process; SideFailed if it fails there."""
        try:
            self._requests.write(json.dumps({"request": request, **values}) + "\n")
            self._requests.flush()
            line = self._answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SideFailed(f"{self.backend}: process ended with {self._child.wait()}")
        answer = json.loads(line)
        if "failure" in answer:
            raise SideFailed(f"{self.backend}: {answer['failure']}")
        return answer

    def prepare(self, case: Any) -> dict[str, Any]:
        """Set the job up and call it once; gives its facts."""
        return self.ask("prepare", case=case)

    def measure(self, seconds: float) -> float:
        """Seconds per call, over calls that take at least `seconds` in all."""
        return self.ask("measure", seconds=seconds)["seconds"]

    def inspect(self) -> dict[str, Any]:
        """What the job's own slower look gives."""
        return self.ask("inspect")

    def close(self) -> None:
        """End the process."""
        self._requests.close()
        self._answers.close()
        try:
            self._child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def stop(self) -> None:
        """End the process, whatever it does."""
        self._child.kill()
        self.close()

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def folder_of(revision: str) -> Path:
    """The folder that holds the `irc` of a commit, written on first use; a folder is itself."""
    if Path(revision).is_dir():
        return Path(revision).resolve()
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.check_output([*git, "rev-parse", "--verify", f"{revision}^{{commit}}"])
    folder = ROOT / "out" / "revisions" / commit.decode().strip()
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
            archive = subprocess.check_output([*git, "archive", folder.name, "irc"])
            subprocess.run(["tar", "-x", "-C", fresh], input=archive, check=True)
            shutil.copytree(fresh, folder)
    return folder


def side_name(text: str) -> str:
    """A backend's name, or "irc@" and a commit or a folder, for argparse."""
    name, at, revision = text.partition("@")
    if name not in BACKENDS or (at and (name != "irc" or not revision)):
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(BACKENDS)}, irc@REVISION")
    return text


def interleaved(
    sides: Sequence[Side], rounds: int = ROUNDS, seconds: float = 0.02
) -> dict[str, list[float]]:
    """Seconds per call by backend, one figure a round; one round more runs first and is dropped."""
    times: dict[str, list[float]] = {side.backend: [] for side in sides}
    for number in range(rounds + 1):
        order = sides if number % 2 == 0 else sides[::-1]
        for side in order:
            taken = side.measure(seconds)
            if number:
                times[side.backend].append(taken)
    return times


def in_turns(
    steps: Mapping[str, Callable[[], object]], rounds: int, least: float = 0.0
) -> dict[str, list[float]]:
    """Seconds a call of each side, round by round, the sides in turn. Each is called once before,
    which says how many calls of it take `least` seconds; those are a round's."""
    counts: dict[str, int] = {}
    for side, step in steps.items():
        start = time.perf_counter()
        step()
        counts[side] = max(1, int(least / max(time.perf_counter() - start, 1e-7)))
    times: dict[str, list[float]] = {side: [] for side in steps}
    for _ in range(rounds):
        for side, step in steps.items():
            start = time.perf_counter()
            for _ in range(counts[side]):
                step()
            times[side].append((time.perf_counter() - start) / counts[side])
    return times


def median_ratio(top: Sequence[float], bottom: Sequence[float]) -> float:
    """The median over rounds of `top / bottom`."""
    return statistics.median(a / b for a, b in zip(top, bottom, strict=True))


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean; nan for nothing."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def machine() -> dict[str, Any]:
    """What the figures depend on: processor, versions, load average."""
    from tests.versions import cpu_model, versions

    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "load": [round(value, 2) for value in os.getloadavg()],
        "versions": versions(),
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }


def print_load() -> None:
    """The load average, which a reader of timings must know."""
    print("load average " + " ".join(f"{value:.2f}" for value in os.getloadavg()))


def write_results(name: str, results: Any) -> Path:
    """Write `results` with the machine's facts to bench/results/<name>.json."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), "results": results}, indent=1) + "\n")
    print(f"wrote {path.relative_to(ROOT)}")
    return path


def argument_parser(description: str) -> argparse.ArgumentParser:
    """The options that all benchmarks share."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--backend", default="irc", choices=BACKENDS, help="the side measured")
    parser.add_argument(
        "--against", default="inductor", type=side_name, metavar="BACKEND",
        help=f"the peer: {', '.join(BACKENDS)}, or irc@REVISION, irc as a commit has it",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--filter", default="", help="only cases whose name holds this")
    parser.add_argument("--output", default="", help="name of the results file")
    return parser


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Left-aligned first column, right-aligned others."""
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    lines = []
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join(lines)


def compiled(function: Callable[..., Any], backend: str, **options: Any) -> Callable[..., Any]:
    """`function` under a backend; itself for "eager"."""
    if backend == "eager":
        return function
    import torch

    if backend == "irc":
        import irc  # noqa: F401  # so that an uninstalled checkout is found too

    return torch.compile(function, backend=backend, **options)
