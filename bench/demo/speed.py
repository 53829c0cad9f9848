"""The table: eager mode, TorchInductor and irc, each compiler also with frozen weights.

Each side is a process of its own, with empty caches and one thread unless told; the compilers
compile two at a time. Then the sides take turns, and what is told is the median over the rounds of
each side's time, and of the ratio to eager mode and to Inductor with the same weights. A side that
isn't ready in time, or that fails (Inductor wants a C++ compiler), is told and left out.
"""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.common import Prepared, Side, SideFailed, compiled, interleaved, median_ratio
from bench.demo import memory

JOB = "bench.demo.speed"
MODELS = {
    "resnet-18": "ResNet-18, one image of 224 x 224",
    "small-gpt2": "GPT-2 of 4 layers and width 256, 64 tokens",
}
KERNELS = {
    "softmax": "softmax, 1000 x 1000",
    "gelu_erf": "gelu, 1000 x 1000",
    "layer_norm": "layer norm, 1000 x 1000",
    "transpose_add": "x.t() + y, 1000 x 1000",
    "sum_dim0": "x.sum(0), 1000 x 1000",
}
KERNELS_TOGETHER = "kernels"
# Name, backend, frozen, in the order in which they are compiled.
SIDES = (
    ("eager", "eager", False),
    ("irc", "irc", False),
    ("irc, frozen", "irc", True),
    ("inductor", "inductor", False),
    ("inductor, frozen", "inductor", True),
)
ORDER = ("eager", "inductor", "irc", "inductor, frozen", "irc, frozen")


# -- in the process of a side


def prepare(case: dict[str, Any], backend: str) -> Prepared:
    """Compile a model, or all kernels, in this process; the facts of a model tell its cold
    compile, its error against float64, and its memory, each in MiB above what was used before."""
    from bench.compile_time import import_all

    import_all(backend)
    if "kernels" in case:
        return [_kernel(name, backend) for name in case["kernels"]][-1]
    return _model(case["model"], backend, case["frozen"])


def _kernel(name: str, backend: str) -> Prepared:
    import torch

    from bench.kernels import arguments, kernels

    case = {"kernel": name, "size": 1_000_000, "columns": 1000, "dtype": "f32"}
    function, operands = kernels()[name].function, arguments(case)
    call = compiled(function, backend, dynamic=False)
    with torch.no_grad():
        call(*operands)

    def step() -> Any:
        with torch.no_grad():
            return call(*operands)

    return Prepared(step)


def _model(name: str, backend: str, frozen: bool) -> Prepared:
    from bench.builders import find, step

    model = find(name)
    module, inputs = model.make(), model.inputs()
    options = {"options": {"freezing": True}} if frozen else {}
    call = compiled(module, backend, dynamic=False, **options)

    def once() -> Any:
        return step(module, call, model, inputs)

    memory.give_back(backend)
    before = memory.now()
    memory.restart_peak()
    start = time.perf_counter()
    output = once()
    first = time.perf_counter() - start
    compiling = memory.peak() - before
    start = time.perf_counter()
    once()
    warm = time.perf_counter() - start
    memory.give_back(backend)
    held = memory.now()
    memory.restart_peak()
    once()
    calling = memory.peak() - held
    doubled = tuple(t.double() if t.is_floating_point() else t for t in inputs)
    exact_module = model.make().double()
    exact = step(exact_module, exact_module, model, doubled)
    facts = {
        "cold": first - warm,
        "compiling": compiling,
        "held": held - before,
        "calling": calling,
        "error": float((output.double() - exact).abs().max()),
    }
    del exact_module, exact
    return Prepared(once, facts)


# -- in the demonstration's


@dataclasses.dataclass
class Row:
    """One side's part of a comparison: seconds of each round and facts, or why there are none."""

    side: str
    seconds: list[float] = dataclasses.field(default_factory=list)
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)
    failure: str = ""


def reason(failure: str, patience: float) -> str:
    """Why a side is missing, in a few words."""
    if "C++ compiler" in failure or "CppCompile" in failure:
        return "not measured: Inductor found no C++ compiler that works (set CXX)"
    if failure.endswith("late"):
        return f"not measured: was still compiling when {patience:.0f} s had gone by"
    return f"failed: {failure[:160]}"


class Comparison:
    """The sides of every comparison: started at once, two at a time; a subject is a model's name,
    or KERNELS_TOGETHER."""

    def __init__(self, threads: int, patience: float, models: Sequence[str]) -> None:
        self.patience, self._threads = patience, threads
        self.deadline = time.monotonic() + patience
        self._pool = ThreadPoolExecutor(2)
        self._sides: list[Side] = []
        self._folder = tempfile.TemporaryDirectory()
        self._rows: dict[str, list[Row]] = {subject: [] for subject in (*models, KERNELS_TOGETHER)}
        self._ready: dict[str, list[Side]] = {subject: [] for subject in self._rows}
        # Those that compile longest last, so that patience ends with them.
        queue = [(subject, side) for side in SIDES for subject in self._rows]
        self._started = [
            (subject, side[0], self._pool.submit(self._start, subject, *side))
            for subject, side in queue
            if subject in models or not side[2]
        ]

    def _start(
        self, subject: str, name: str, backend: str, frozen: bool
    ) -> tuple[Side, dict[str, Any]]:
        if time.monotonic() > self.deadline:
            raise SideFailed("late")
        environment = {
            # One folder for all: what Inductor finds out of the compiler is found out once.
            "TORCHINDUCTOR_CACHE_DIR": f"{self._folder.name}/inductor",
            "TORCHINDUCTOR_FREEZING": str(int(frozen)),
            "IRC_CACHE_DIR": f"{self._folder.name}/irc",
        }
        side = Side(JOB, backend, self._threads, environment)
        side.backend = name
        self._sides.append(side)
        if subject == KERNELS_TOGETHER:
            return side, side.prepare({"kernels": list(KERNELS)})
        return side, side.prepare({"model": subject, "frozen": frozen})

    def settle(self) -> None:
        """Wait until all sides are ready, or until patience ends; the late ones are stopped."""
        for subject, name, future in self._started:
            row = Row(name)
            self._rows[subject].append(row)
            try:
                side, row.facts = future.result(max(0.0, self.deadline - time.monotonic()))
                self._ready[subject].append(side)
            except TimeoutError:
                row.failure = reason("late", self.patience)
            except SideFailed as error:
                row.failure = reason(str(error), self.patience)
        self._pool.shutdown(wait=False, cancel_futures=True)
        for side in self._sides:
            if not any(side in ready for ready in self._ready.values()):
                side.stop()

    def of(self, subject: str) -> tuple[list[Row], list[Side]]:
        """The rows of a subject, and the processes that are ready to be measured."""
        rows = sorted(self._rows[subject], key=lambda row: ORDER.index(row.side))
        return rows, self._ready[subject]

    def close(self) -> None:
        """End all processes, also those that still compile."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for side in self._sides:
            side.stop()
        self._folder.cleanup()


def measured(sides: list[Side], rows: list[Row], rounds: int, seconds: float = 0.05) -> None:
    """Measure the sides in turns; their rows get the seconds of each round."""
    times = interleaved(sides, rounds, seconds)
    for row in rows:
        row.seconds = times.get(row.side, [])


def compare_models(
    started: Comparison, models: Sequence[str], rounds: int
) -> Iterator[tuple[str, list[Row]]]:
    """Every model's rows."""
    for model in models:
        rows, sides = started.of(model)
        measured(sides, rows, rounds)
        yield model, rows


def compare_kernels(started: Comparison, rounds: int) -> Iterator[tuple[str, list[Row]]]:
    """Every kernel's rows."""
    rows, sides = started.of(KERNELS_TOGETHER)
    for kernel in KERNELS:
        found = [dataclasses.replace(row) for row in rows]
        try:
            for side in sides:
                side.prepare({"kernels": [kernel]})
        except SideFailed as error:
            for row in found:
                row.failure = row.failure or reason(str(error), started.patience)
        else:
            measured(sides, found, rounds, seconds=0.02)
        yield kernel, found


def ratio(rows: list[Row], peer: str, row: Row) -> str:
    """How many times as fast as `peer` a row is; "-" for the peer itself or without figures."""
    other = next((r for r in rows if r.side == peer), None)
    if other is None or other is row or not (other.seconds and row.seconds):
        return "-"
    return f"{median_ratio(other.seconds, row.seconds):.2f}"


MODEL_HEAD = (
    "", "a call", "x eager", "x inductor", "compile", "compiling", "idle", "in a call", "error",
)  # fmt: skip


def model_rows(name: str, rows: list[Row]) -> Iterator[list[str]]:
    """The lines of a model's table."""
    yield [MODELS[name], *[""] * (len(MODEL_HEAD) - 1)]
    for row in rows:
        if row.failure:
            continue
        peer = "inductor, frozen" if row.side.endswith("frozen") else "inductor"
        facts = row.facts
        ready = row.side != "eager"
        yield [
            f"  {row.side}",
            f"{statistics.median(row.seconds) * 1e3:.1f} ms",
            ratio(rows, "eager", row),
            ratio(rows, peer, row) if ready else "-",
            f"{facts['cold']:.1f} s" if ready else "-",
            f"{facts['compiling']:.0f} MiB" if ready else "-",
            f"{facts['held']:.0f} MiB",
            f"{facts['calling']:.0f} MiB",
            f"{facts['error']:.0e}",
        ]


LEGEND = """
x eager, x inductor: times as fast, the median over {rounds} rounds in which the sides take turns;
  frozen rows stand beside Inductor's frozen one. Within a few hundredths of 1.00 is equal.
compile: the first call, two sides at once. compiling: most memory meanwhile. idle: what is kept
  between calls. in a call: what one call takes above that. error: largest, against float64."""


KERNEL_HEAD = ("", "eager", "inductor", "irc", "irc x eager", "irc x inductor")


def kernel_row(name: str, rows: list[Row]) -> list[str]:
    """The line of a kernel."""
    by_side = {row.side: row for row in rows}
    times = [by_side[side].seconds for side in ("eager", "inductor", "irc")]
    shown = [f"{statistics.median(t) * 1e3:.3f} ms" if t else "-" for t in times]
    mine = by_side["irc"]
    return [KERNELS[name], *shown, ratio(rows, "eager", mine), ratio(rows, "inductor", mine)]
