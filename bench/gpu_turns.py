"""`bench.gpu_models` for many models in a short time: compiled at once, clocked in turns.

    python -m bench.gpu_turns [--models bert-base,t5-small,bert-base-training] [--modes default]
    python -m bench.gpu_turns --models vit-base,vit-base-32 --eager      (with eager mode as a side)
    python -m bench.gpu_turns --modes reduce-overhead --frontend      (and with torch's part alone)

A process a model, which compiles every mode and side on PROCESSORS of the machine's, and then waits
until all are that far, or PATIENCE seconds have passed. Then one after another is clocked, while
the others sleep: those that compiled first go first. The lines are those of `bench.gpu_models`;
`operators` are microseconds of a call in each of ATen's. With `--launches` each model's kernels
are listed, too, as `bench.gpu_launches` does.
"""

from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.connection
import os
import time
import traceback
from multiprocessing.connection import Connection
from types import FunctionType
from typing import Any

from bench.common import geometric_mean

PROCESSORS, PATIENCE = 4, 150
Figures = dict[str, dict[str, float]]


def _compiled(name: str, modes: list[str], backends: list[str], dtype: str) -> dict[str, Any]:
    """The sides of every mode, and what clocks ATen under "clocks"."""
    import torch

    import irc
    from bench import gpu_models
    from bench.gpu_builders import find

    model = find(name)
    module = model.make().cuda().to(getattr(torch, dtype))
    inputs = gpu_models.on_gpu(model.inputs(), getattr(torch, dtype))
    torch.manual_seed(0)
    eager = gpu_models.stepper(model, module, module, inputs)()

    def side(backend: str, mode: str, **options: Any) -> Any:
        """A side with code of its own, so that Dynamo looks through no others' entries."""
        if backend in ("eager", gpu_models.FRONTEND):
            return gpu_models.made(name, backend, None, inputs, module, eager)

        def call(*x: Any) -> Any:
            return module(*x)

        label = f"{backend}_{mode}_{len(options)}".replace("-", "_")
        code = call.__code__.replace(co_name=label)
        own = FunctionType(code, call.__globals__, label, None, call.__closure__)
        options = {"options": options} if options else {"mode": None if mode == "default" else mode}
        return gpu_models.warmed(
            backend, gpu_models.stepper(model, module, torch.compile(own, backend=backend,
            **options), inputs), eager)  # fmt: skip

    if model.train:
        backends = [backend for backend in backends if backend != gpu_models.FRONTEND]
    sides = {mode: [side(backend, mode) for backend in backends] for mode in modes}
    if "default" in modes:
        irc.metrics.reset()
        sides["clocks"] = [side("irc", "default", clock_aten=True), irc.metrics.launches]
    return sides


def _launches(name: str, pair: list[Any], most: int) -> None:
    """Print what a call of each side launches, and where irc's takes longer."""
    from bench import gpu_launches

    launches = [gpu_launches.launches_of(side.call) for side in pair]
    for side, each in zip(pair, launches, strict=True):
        gpu_launches.tell(f"{name} {side.name}", each, most)
    if len(launches) > 1:
        gpu_launches.compare(name, *launches[:2])


def _clocked(name: str, sides: dict[str, Any], most: int) -> Figures:
    """Measure and print; the ratios by mode. `most`: kernels to list of each side."""
    from bench import gpu_models

    clocks = sides.pop("clocks", None)
    ratios: Figures = {}
    for mode, pair in sides.items():
        gpu_models.measured(pair)
        for each in pair:
            print(gpu_models.line(name, mode, each), flush=True)
        if mode == "default" and most:
            _launches(name, pair, most)
        if mode == "default" and clocks is not None:
            aten = gpu_models.aten_of(clocks[0].call)
            print(gpu_models.floor_line(name, sum(aten.values()), clocks[1], pair[0]), flush=True)
            told = ", ".join(f"{callee} {ms * 1e3:.0f}" for callee, ms in
                             sorted(aten.items(), key=lambda p: -p[1])[:5] if ms)  # fmt: skip
            print(f"{name} operators us: {told}", flush=True)
        for other in (each for each in pair[1:] if each.name != gpu_models.FRONTEND):
            kinds = ("wall", "host", "gpu")
            found = {k: getattr(pair[0], k) / getattr(other, k) for k in kinds}
            ratios[f"{mode} of {other.name}'s"] = found
    return ratios


def child(parent: Connection, name: str, number: int, options: argparse.Namespace) -> None:
    """Compile, say so, wait, measure."""
    try:
        start = time.perf_counter()
        every = sorted(os.sched_getaffinity(0))
        own = {every[(PROCESSORS * number + i) % len(every)] for i in range(PROCESSORS)}
        os.sched_setaffinity(0, own)
        from bench import gpu_models

        backends = gpu_models.backends_of(options)
        sides = _compiled(name, options.modes.split(","), backends, options.dtype)
        parent.send(time.perf_counter() - start)
        parent.recv()
        os.sched_setaffinity(0, every)
        parent.send(_clocked(name, sides, options.launches))
    except Exception as error:
        traceback.print_exc()
        text = " ".join(str(error).split())[:300]
        print(f"{name} FAILED {type(error).__name__}: {text}", flush=True)
    parent.close()


def _ready(waiting: dict[str, Connection], until: float) -> list[str]:
    """The names of those that have compiled, in the order in which they did."""
    ready: list[str] = []
    rest = dict(waiting)
    while rest and time.perf_counter() < until:
        left = max(0.0, until - time.perf_counter())
        for connection in multiprocessing.connection.wait(list(rest.values()), left):
            name = next(n for n, c in rest.items() if c is connection)
            del rest[name]
            try:
                print(f"# {name} compiled in {connection.recv():.0f} s", flush=True)
                ready.append(name)
            except EOFError:
                continue
    for name in rest:
        print(f"# {name} was not compiled in time: it is clocked while others compile", flush=True)
    return ready


def measure(names: list[str], options: argparse.Namespace) -> dict[str, Figures]:
    """The ratios by name and mode, lines printed on the way."""
    spawn = multiprocessing.get_context("spawn")
    connections: dict[str, Connection] = {}
    processes = []
    for number, name in enumerate(names):
        mine, its = spawn.Pipe()
        process = spawn.Process(target=child, args=(its, name, number, options))
        process.start()
        its.close()
        connections[name] = mine
        processes.append(process)
    found: dict[str, Figures] = {}
    ready = _ready(connections, time.perf_counter() + options.patience)
    for name in [*ready, *(n for n in names if n not in ready)]:
        connection = connections[name]
        try:
            if name not in ready:
                connection.recv()
            connection.send(None)
            found[name] = connection.recv()
        except (EOFError, BrokenPipeError):
            continue
    for process in processes:
        process.join()
    return found


def main() -> None:
    """Measure what is asked for, and print the ratios of each group."""
    from bench.gpu_builders import GROUPS

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", default="", help="names, with commas between")
    parser.add_argument("--group", default="small", choices=sorted(GROUPS))
    parser.add_argument("--modes", default="default,reduce-overhead")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--alone", action="store_true", help="without Inductor")
    parser.add_argument("--launches", type=int, default=0, help="kernels to list of each side")
    parser.add_argument("--eager", action="store_true", help="with eager mode")
    parser.add_argument("--frontend", action="store_true", help="with torch's frontend alone")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds for compiling")
    options = parser.parse_args()
    names = options.models.split(",") if options.models else list(GROUPS[options.group])
    found = measure(names, options)
    for group, models in GROUPS.items():
        peers = [f"{m} of {p}'s" for m in options.modes.split(",") for p in ("inductor", "eager")]
        for mode in peers:
            for kind in ("wall", "host", "gpu"):
                each = [found[n][mode][kind] for n in names
                        if n in models and mode in found.get(n, {})]  # fmt: skip
                if each:
                    print(f"{group} {mode} {kind}: geometric mean {geometric_mean(each):.3f}, "
                          + " ".join(f"{r:.2f}" for r in each), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
