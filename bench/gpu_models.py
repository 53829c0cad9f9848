"""Whole models on a GPU, bf16: irc against Inductor in the same process.

    python -m bench.gpu_models [--models bert-base,t5-small] [--group small] [--modes default]
    python -m bench.gpu_models --modes reduce-overhead --alone
    python -m bench.gpu_models --models vit-base --eager      (eager mode as a side, too)
    python -m bench.gpu_models --modes reduce-overhead --frontend

A line a model, mode and side: milliseconds of a call until the GPU is done (wall), until it returns
with the GPU idle before it (host), of what the GPU runs (gpu, by the profiler), how many kernels
these are, seconds of the first call, and the largest error against eager mode (RMS over RMS).
Medians over ROUNDS, sides taking turns. `rest`: wall less gpu. `calls`: for irc's default mode,
what the call's launches (LAUNCH_US each) and calls of ATen take by themselves, and what of the host
time is over it. With `--frontend` another side calls no kernel at all: its host time is what torch
takes before and after any backend's program (guards, parameters that are looked up, results that
are put in their places), and the least that a backend's can be. The last lines of a mode have the
ratios, the figure of Inductor (and of eager mode) in the denominator.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import traceback
from collections.abc import Callable
from typing import Any

import attrs
import torch
from torch._dynamo.backends.common import aot_autograd

import irc  # noqa: F401  # so that an uninstalled checkout is found too
from bench.builders import Model
from bench.common import geometric_mean
from bench.gpu_builders import GROUPS, find
from irc.program import clocks

ROUNDS, WARM = 25, 6
#: What `cuLaunchKernel` takes from C++ on an H200's host, microseconds.
LAUNCH_US = 3.4
FRONTEND = "frontend"
Call = Callable[[], Any]


def on_gpu(tensors: Any, dtype: torch.dtype) -> list[torch.Tensor]:
    """Copies on the GPU, floating ones in `dtype`."""
    return [t.cuda().to(dtype) if t.is_floating_point() else t.cuda() for t in tensors]


def stepper(model: Model, module: torch.nn.Module, run: Any, inputs: Any) -> Call:
    """One call: a result without gradients, or a training step that leaves gradients."""
    if not model.train:

        def infer() -> Any:
            with torch.no_grad():
                return run(*inputs)

        return infer

    parameters = list(module.parameters())

    def train() -> Any:
        for each in parameters:
            each.grad = None
        loss = run(*inputs).float().square().mean()
        loss.backward()
        return loss

    return train


def taken_ms(call: Call, wait: bool) -> float:
    """Milliseconds of one call with the GPU idle before it, until it returns or all is done."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    held = call()
    if wait:
        torch.cuda.synchronize()
    taken = (time.perf_counter() - start) * 1e3
    del held
    return taken


def gpu_ms(call: Call) -> tuple[float, float]:
    """The GPU's own milliseconds of one call, and how many kernels and copies it ran."""
    from torch.profiler import ProfilerActivity, profile

    calls = 5
    with profile(activities=[ProfilerActivity.CUDA]) as record:
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
    times = [e.self_device_time_total for e in record.key_averages()]
    counts = [e.count for e in record.key_averages() if e.self_device_time_total]
    return sum(times) / calls / 1e3, sum(counts) / calls


@attrs.define
class Side:
    """One compiled form of a model."""

    name: str
    call: Call
    first: float
    error: float
    wall: float = 0.0
    host: float = 0.0
    gpu: float = 0.0
    kernels: float = 0.0


def difference(mine: torch.Tensor, eager: torch.Tensor) -> float:
    """RMS of the difference over the RMS of eager's."""
    off = (mine.double() - eager.double()).norm() / eager.double().norm().clamp_min(1e-30)
    return float(off)


def compile_nothing(graph: torch.nn.Module, inputs: Any) -> Any:
    """A backend whose programs give the results of their first call again: what torch's frontend
    takes alone."""

    def keep_results(own: torch.nn.Module, _: Any) -> Any:
        kept: list[Any] = []

        def give(arguments: list[Any]) -> Any:
            if not kept:
                kept.extend(own(*arguments))
            arguments.clear()
            return kept

        give._boxed_call = True  # type: ignore[attr-defined]
        return give

    return aot_autograd(fw_compiler=keep_results)(graph, inputs)


def made(name: str, backend: str, mode: str | None, inputs: Any, module: Any, eager: Any) -> Side:
    """A side, compiled and called until it is warm; `eager` as a backend compiles nothing."""
    if backend == "eager":
        return warmed(backend, stepper(find(name), module, module, inputs), eager)
    backends: Any = {FRONTEND: compile_nothing}
    run = torch.compile(lambda *x: module(*x), backend=backends.get(backend, backend), mode=mode)
    return warmed(backend, stepper(find(name), module, run, inputs), eager)


def warmed(backend: str, call: Call, eager: torch.Tensor) -> Side:
    """The side of a call, which is made until it is warm."""
    start = time.perf_counter()
    found = call()
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    error = difference(found, eager)
    del found
    for _ in range(WARM):
        call()
    return Side(backend, call, first, error)


def measured(sides: list[Side]) -> None:
    """Fill in the times, sides taking turns."""
    for kind in ("wall", "host"):
        times: dict[str, list[float]] = {side.name: [] for side in sides}
        for turn in range(ROUNDS):
            for side in sides if turn % 2 else sides[::-1]:
                times[side.name].append(taken_ms(side.call, kind == "wall"))
        for side in sides:
            setattr(side, kind, statistics.median(times[side.name]))
    for side in sides:
        side.gpu, side.kernels = gpu_ms(side.call)


def aten_of(call: Call) -> dict[str, float]:
    """Milliseconds of a call in each of ATen's operators, of a program that clocks them."""
    torch.cuda.synchronize()
    clocks.reset()
    for _ in range(ROUNDS):
        call()
        torch.cuda.synchronize()
    return {callee: taken / ROUNDS / 1e6 for callee, taken in clocks.nanoseconds().items()}


def aten_ms(name: str, inputs: Any, module: Any) -> float:
    """Milliseconds of a call in ATen's operators, by a program that clocks them."""
    torch._dynamo.reset()
    run = torch.compile(module, backend="irc", options={"clock_aten": True})
    call = stepper(find(name), module, run, inputs)
    for _ in range(3):
        call()
    return sum(aten_of(call).values())


def line(name: str, mode: str, side: Side) -> str:
    """A side's figures."""
    return (
        f"{name} {mode} {side.name}: wall {side.wall:.3f} host {side.host:.3f} "
        f"gpu {side.gpu:.3f} rest {side.wall - side.gpu:.3f} ms, {side.kernels:.0f} kernels, "
        f"first {side.first:.2f} s, error {side.error:.1e}"
    )


def floor_line(name: str, aten: float, launches: int, side: Side) -> str:
    """What the calls of a program take by themselves, and what the host's time is of it."""
    floor = aten + launches * LAUNCH_US / 1e3
    return (
        f"{name} calls: {launches} launches, ATen {aten:.3f} ms, together {floor:.3f}: "
        f"host {side.host / floor:.2f} of it"
    )


def backends_of(options: argparse.Namespace) -> list[str]:
    """The sides that are asked for, irc's first."""
    others = [] if options.alone else ["inductor"]
    more = ["eager"] * options.eager + [FRONTEND] * options.frontend
    return ["irc", *others, *more]


def model_lines(name: str, mode: str, backends: list[str], dtype: torch.dtype) -> list[Side]:
    """Time a model in a mode and print its lines."""
    model = find(name)
    module = model.make().cuda().to(dtype)
    inputs = on_gpu(model.inputs(), dtype)
    torch.manual_seed(0)
    eager = stepper(model, module, module, inputs)()
    chosen = None if mode == "default" else mode
    sides = [made(name, b, None if b == FRONTEND else chosen, inputs, module, eager)
             for b in backends if not (b == FRONTEND and model.train)]  # fmt: skip
    measured(sides)
    for side in sides:
        print(line(name, mode, side), flush=True)
    if mode == "default" and not model.train:
        irc.metrics.reset()
        aten = aten_ms(name, inputs, module)
        print(floor_line(name, aten, irc.metrics.launches, sides[0]), flush=True)
    return sides


def ratios(found: list[list[Side]], mode: str) -> None:
    """Print what irc's figures are of each other side's."""
    for peer in ("inductor", "eager"):
        pairs = [(sides[0], side) for sides in found for side in sides[1:] if side.name == peer]
        for kind in ("wall", "host", "gpu"):
            each = [getattr(a, kind) / getattr(b, kind) for a, b in pairs]
            if each:
                told = " ".join(f"{r:.2f}" for r in each)
                mean = geometric_mean(each)
                print(f"{mode} {kind} of {peer}'s: geometric mean {mean:.3f}, {told}", flush=True)


def main() -> None:
    """Measure what is asked for, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", default="", help="names, with commas between")
    parser.add_argument("--group", default="small", choices=sorted(GROUPS))
    parser.add_argument("--modes", default="default,reduce-overhead")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--alone", action="store_true", help="without Inductor")
    parser.add_argument("--eager", action="store_true", help="with eager mode")
    parser.add_argument("--frontend", action="store_true", help="with torch's frontend alone")
    options = parser.parse_args()
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    names = options.models.split(",") if options.models else list(GROUPS[options.group])
    for mode in options.modes.split(","):
        found = []
        for name in names:
            try:
                dtype = getattr(torch, options.dtype)
                sides = model_lines(name, mode, backends_of(options), dtype)
                found.append(sides)
            except Exception as error:
                traceback.print_exc()
                text = " ".join(str(error).split())[:300]
                print(f"{name} {mode} FAILED {type(error).__name__}: {text}", flush=True)
            torch._dynamo.reset()
            gc.collect()
            torch.cuda.empty_cache()
        ratios(found, mode)


if __name__ == "__main__":
    main()
