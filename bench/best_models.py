"""Models on a CPU, each compiler's every mode: irc's best against the best of TorchInductor's.

    python -m bench.best_models [--model bert-base] [--dtype bfloat16] [--threads 8] [--rounds 9]
    python -m bench.best_models --sides irc,irc-frozen,irc-tuned,inductor [--dynamic]
    python -m bench.best_models --sides irc-frozen,irc-frozen@HEAD~1

Sides, a process each: `irc`, `irc-frozen` (freezing), `irc-tuned` (freezing and max_autotune), the
same of Inductor, and `eager`; irc's with the commit that an @ names. Those that measure are
compiled one after the other, with all processors; the others at once, each on processors of its
own. Then all are called in turn. A model's lines: milliseconds of a call, of eager's time, seconds
of the first call, RMS error against eager mode in float64, and peak memory: what the process holds
at most within a call, in MB, less what eager's does; with --where the operators that take a call's
time, by torch's profiler, and `rest`, what none of them takes: generated kernels. Then the ratios,
the median over rounds, of Inductor's best over irc's frozen and tuned side, and of Inductor's
default over irc's.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.common import (
    Prepared,
    Side,
    SideFailed,
    compiled,
    geometric_mean,
    median_ratio,
    print_load,
    table,
)

FROZEN, TUNED = {"freezing": True}, {"freezing": True, "max_autotune": True}
SIDES: dict[str, dict[str, Any]] = {
    "irc": {}, "irc-frozen": FROZEN, "irc-tuned": TUNED,
    "inductor": {}, "inductor-frozen": FROZEN, "inductor-tuned": TUNED, "eager": {},
}  # fmt: skip
MODELS = ("bert-base", "gpt2-small", "vit-base", "resnet-50", "convnext-tiny", "t5-small")
HEAD = ("model", "side", "ms", "eager/it", "first s", "error", "peak MB over eager's")
LEAST_SECONDS = 0.05
"""A figure of a round takes so long, or one call."""
SHOWN = 6
"""Operators that --where tells."""


def options_of(side: str) -> dict[str, Any]:
    """What a side is compiled with; it may name another commit: `irc-frozen@REVISION`."""
    return SIDES[side.partition("@")[0]]


def prepare(case: dict[str, Any], backend: str) -> Prepared:
    """Build, compile and call a model as a side."""
    import torch

    from bench import builders, gpu_builders
    from bench.models import relative_error

    others = builders.MODELS.keys() - gpu_builders.SMALL.keys()
    room: Any = builders if case["model"] in others else gpu_builders
    dtype, model = getattr(torch, case["dtype"]), room.find(case["model"])
    module = model.make().to(dtype)
    inputs = tuple(t.to(dtype) if t.is_floating_point() else t for t in model.inputs())
    name, options = backend.partition("-")[0], dict(options_of(backend))
    if name == "irc" and case["budget"] and "max_autotune" in options:
        options["max_autotune_budget"] = case["budget"]
    told = {"options": options} if options else {}
    call = compiled(module, name, dynamic=case["dynamic"], **told)

    def step() -> Any:
        with torch.no_grad():
            return call(*inputs)

    start = time.perf_counter()
    output = step()
    facts: dict[str, Any] = {"first_call": time.perf_counter() - start}
    for _ in range(2):
        step()
    facts["peak"] = peak_of(step)
    if name == "irc":
        import irc

        facts |= {key: value for key, value in irc.metrics.snapshot().items()
                  if key in ("launches", "aten_calls") or key.startswith("autotune")}  # fmt: skip
    if case["error"]:
        exact = model.make().double()
        doubled = tuple(t.double() if t.is_floating_point() else t for t in inputs)
        with torch.no_grad():
            facts["error"] = relative_error(output.double(), exact(*doubled))
    return Prepared(step, facts, lambda: operators_of(step))


def operators_of(call: Any) -> dict[str, float]:
    """Milliseconds of a call in operators, those first that take the most, and what is left."""
    from torch.profiler import ProfilerActivity, profile

    calls = 3
    with profile(activities=[ProfilerActivity.CPU]) as record:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        wall = (time.perf_counter() - start) / calls * 1e3
    times = {e.key: e.self_cpu_time_total / calls / 1e3 for e in record.key_averages()
             if "::" in e.key}  # fmt: skip
    found = dict(sorted(times.items(), key=lambda pair: -pair[1])[:SHOWN])
    return {**found, "rest": wall - sum(times.values())}


def peak_of(call: Any) -> float:
    """MB that this process holds at most within a call; 0 where the system doesn't tell."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        call()
        told = Path("/proc/self/status").read_text()
    except OSError:
        return 0.0
    return int(re.findall(r"VmHWM:\s+(\d+) kB", told)[0]) / 1024


def all_compiled(sides: Sequence[Side], case: dict[str, Any]) -> dict[str, Any]:
    """The facts of all sides by name: those that measure compiled by themselves, the others at
    once, each on processors of its own; what failed is told and has none."""
    every = sorted(os.sched_getaffinity(0))
    alone = [side for side in sides if "max_autotune" in options_of(side.backend)]
    others = [side for side in sides if side not in alone]
    share = max(1, len(every) // max(1, len(others)))

    def compile_side(number: int, side: Side) -> dict[str, Any] | None:
        own = {every[(number * share + i) % len(every)] for i in range(share)}
        os.sched_setaffinity(side.pid, every if side in alone else own)
        try:
            return side.prepare(case)
        except SideFailed as error:
            print(error, flush=True)
            return None
        finally:
            os.sched_setaffinity(side.pid, every)

    facts = {side.backend: compile_side(0, side) for side in alone}
    with ThreadPoolExecutor(max(1, len(others))) as threads:
        found = threads.map(compile_side, range(len(others)), others)
        facts.update(zip((side.backend for side in others), found, strict=True))
    return {name: known for name, known in facts.items() if known}


def in_turn(sides: Sequence[Side], rounds: int) -> dict[str, list[float]]:
    """Seconds of a call by side, a figure a round."""
    times: dict[str, list[float]] = {side.backend: [] for side in sides}
    for number in range(rounds + 1):
        for side in sides if number % 2 else sides[::-1]:
            taken = side.measure(LEAST_SECONDS)
            if number:
                times[side.backend].append(taken)
    return times


def measure(name: str, asked: argparse.Namespace) -> dict[str, float]:
    """Print a model's lines; its ratios by name."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "IRC_CACHE_DIR": f"{folder}/irc",
        }  # fmt: skip
        chosen = asked.sides.split(",")
        sides = [
            Side("bench.best_models", each, asked.threads,
                 {**environment,
                  "TORCHINDUCTOR_FREEZING": str(int("freezing" in options_of(each)))})
            for each in chosen
        ]  # fmt: skip
        try:
            case = {"model": name, "dtype": asked.dtype, "error": not asked.no_errors,
                    "budget": asked.budget, "dynamic": asked.dynamic}  # fmt: skip
            facts = all_compiled(sides, case)
            left = [side for side in sides if side.backend in facts]
            times = in_turn(left, asked.rounds)
            where = {side.backend: side.inspect() for side in left if asked.where}
        finally:
            for side in sides:
                side.stop()
    print(table(HEAD, rows(name, facts, times)), flush=True)
    for label, known in facts.items():
        told = ", ".join(f"{key} {value}" for key, value in known.items()
                         if isinstance(value, int) and value)  # fmt: skip
        print(f"  {label}: {told}" if told else "", end="\n" if told else "", flush=True)
    for label, operators in where.items():
        told = ", ".join(f"{operator} {ms:.1f}" for operator, ms in operators.items())
        print(f"  {label} ms: {told}", flush=True)
    ratios = ratios_of(times)
    for what, ratio in ratios.items():
        print(f"{name} {what}: {ratio:.3f}", flush=True)
    return ratios


def rows(
    name: str, facts: Mapping[str, Any], times: Mapping[str, Sequence[float]]
) -> list[list[str]]:
    """The printed lines of a model."""
    lines = []
    for side, taken in times.items():
        known, eager = facts[side], times.get("eager")
        more = known["peak"] - facts["eager"]["peak"] if eager else known["peak"]
        lines.append([
            name, side, f"{statistics.median(taken) * 1e3:.1f}",
            f"{median_ratio(eager, taken):.3f}" if eager else "-", f"{known['first_call']:.1f}",
            f"{known.get('error', float('nan')):.1e}", f"{more:.0f}",
        ])  # fmt: skip
    return lines


def ratios_of(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Of Inductor's best over irc's sides that freeze, and of its default over irc's."""
    peers = {side: statistics.median(t) for side, t in times.items() if side.startswith("inductor")}
    if not peers:
        return {}
    best = min(peers, key=peers.__getitem__)
    every = {f"best of inductor over {side}": median_ratio(times[best], times[side])
             for side in ("irc-frozen", "irc-tuned") if side in times}  # fmt: skip
    if {"irc", "inductor"} <= set(times):
        every["inductor over irc, not frozen"] = median_ratio(times["inductor"], times["irc"])
    return every


def main() -> None:
    """Measure what is asked for, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="", help="names, with commas between")
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--budget", type=int, default=0, help="of irc's tuning, seconds")
    parser.add_argument("--seconds", type=float, default=1e9, help="no model begins after them")
    parser.add_argument("--no-errors", action="store_true")
    parser.add_argument("--dynamic", action="store_true", help="sizes are symbols")
    parser.add_argument("--where", action="store_true", help="what takes a call's time")
    asked = parser.parse_args()
    print_load()
    start, found = time.perf_counter(), []
    for name in asked.model.split(",") if asked.model else MODELS:
        if time.perf_counter() - start > asked.seconds:
            print(f"no time left for {name}")
            break
        found.append(measure(name, asked))
    print_load()
    for what in dict.fromkeys(key for each in found for key in each):
        every = [each[what] for each in found if what in each]
        print(f"{what}: geometric mean {geometric_mean(every):.3f}, least {min(every):.3f}")


if __name__ == "__main__":
    main()
