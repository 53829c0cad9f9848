"""Compile time and call overhead, each figure from processes of its own.

    python -m bench.compile_time [--backends irc,inductor,aot_eager] [--filter resnet]

*Cold*: a new process, empty caches, imports done before the clock starts; the first call less a
warm call, median of 3.  *Warm*: the same with the caches that a cold run left.  Goals: cold at most
aot_eager's + 2.5 s and a third of Inductor's, warm at most aot_eager's + 0.5 s.

*Calls*: microseconds per call of a graph of one kernel and of graphs of ten (ten that a small
matrix product separates; ten with results of different shapes), on few elements, so that only the
overhead shows.  Dynamo's entry, measured by a backend that returns ready results, is taken off for
the own part.  Goals: one kernel no slower than Inductor, ten kernels' own part 3 times faster.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.common import (
    Prepared,
    Side,
    SideFailed,
    argument_parser,
    compiled,
    interleaved,
    median_ratio,
    print_load,
    table,
    write_results,
)

REPEATS = 3
ENTRY = "entry"
INDUCTOR_MODULES = (
    "torch._inductor.compile_fx", "torch._inductor.codegen.cpp", "torch._inductor.lowering",
    "torch._inductor.codegen.cpp_wrapper_cpu", "torch._inductor.fx_passes.post_grad",
    "torch._inductor.fx_passes.joint_graph", "torch._inductor.fx_passes.pre_grad",
    "torch._inductor.mkldnn_lowerings", "torch._inductor.kernel.mm", "torch._inductor.kernel.conv",
)  # fmt: skip


def import_all(backend: str) -> float:
    """Import what the backend may need; gives the seconds it took."""
    start = time.perf_counter()
    import torch._dynamo.backends.common
    import torch._functorch.aot_autograd  # noqa: F401

    if backend == "inductor":
        for name in INDUCTOR_MODULES:
            importlib.import_module(name)
    elif backend == "irc":
        import irc

        for found in pkgutil.walk_packages(irc.__path__, "irc."):
            if not found.name.startswith("irc.tools") and not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    return time.perf_counter() - start


def prepare(case: dict[str, Any], backend: str) -> Prepared:
    """`{"model": name}`: time its compilation; `{"calls": name}`: a small graph to call."""
    if "calls" in case:
        return _prepare_calls(case["calls"], backend)
    from bench.builders import find, step

    model = find(case["model"])
    module, inputs = model.make(), model.inputs()
    imports = import_all(backend)
    call = compiled(module, backend, dynamic=False)
    start = time.perf_counter()
    step(module, call, model, inputs)
    first = time.perf_counter() - start
    later = []
    for _ in range(3):
        start = time.perf_counter()
        step(module, call, model, inputs)
        later.append(time.perf_counter() - start)
    return Prepared(lambda: None, {"compile": first - min(later), "imports": imports})


@contextlib.contextmanager
def cache_folders() -> Iterator[dict[str, str]]:
    """Environment variables that put every cache into a new folder, gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield {
            "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
            "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
            "IRC_CACHE_DIR": os.path.join(folder, "irc"),
        }


def compile_seconds(model: str, backend: str, environment: dict[str, str]) -> float:
    """Seconds to compile in a new process."""
    with Side("bench.compile_time", backend, environment=environment) as side:
        return float(side.prepare({"model": model})["compile"])


def measure_model(model: str, backends: list[str]) -> dict[str, Any]:
    """Cold and warm compile seconds by backend, the backends in turn."""
    cold: dict[str, list[float]] = {backend: [] for backend in backends}
    warm: dict[str, list[float]] = {backend: [] for backend in backends}
    failures = {}
    for _ in range(REPEATS):
        for backend in backends:
            if backend in failures:
                continue
            try:
                with cache_folders() as environment:
                    cold[backend].append(compile_seconds(model, backend, environment))
                    warm[backend].append(compile_seconds(model, backend, environment))
            except SideFailed as error:
                failures[backend] = str(error)
    figures = {
        backend: {
            "cold": statistics.median(cold[backend]),
            "warm": statistics.median(warm[backend]),
        }
        for backend in backends
        if backend not in failures
    }
    return {"model": model, "figures": figures, "failures": failures}


def model_row(found: dict[str, Any], backends: list[str]) -> list[str]:
    """Cold and warm seconds of each backend."""
    cells = [found["model"]]
    for backend in backends:
        figures = found["figures"].get(backend)
        cells += [f"{figures['cold']:.2f}", f"{figures['warm']:.2f}"] if figures else ["failed", ""]
    return cells


def goals_met(found: dict[str, Any]) -> dict[str, bool]:
    """Which goals irc meets on a model, as far as the backends needed were measured."""
    figures = found["figures"]
    if "irc" not in figures:
        return {}
    mine, met = figures["irc"], {}
    if "aot_eager" in figures:
        met["cold at most aot_eager + 2.5 s"] = mine["cold"] <= figures["aot_eager"]["cold"] + 2.5
        met["warm at most aot_eager + 0.5 s"] = mine["warm"] <= figures["aot_eager"]["cold"] + 0.5
    if "inductor" in figures:
        met["cold a third of inductor's"] = mine["cold"] <= figures["inductor"]["cold"] / 3
    return met


def _graphs() -> dict[str, tuple[Callable[..., Any], Callable[[], list[Any]]]]:
    """The small graphs and their arguments."""
    import torch

    def one(x):
        return torch.relu(x) + 1

    def separated(x, w):
        for _ in range(10):
            x = torch.mm(torch.relu(x) + 1, w)
        return x

    def side_by_side(*tensors):
        return [torch.relu(x) + 1 for x in tensors]

    def square(n: int) -> torch.Tensor:
        return torch.randn(n, n)

    return {
        "one": (one, lambda: [square(8)]),
        "ten_separated": (separated, lambda: [square(8), square(8)]),
        "ten_results": (side_by_side, lambda: [torch.randn(4, 2 * n + 3) for n in range(10)]),
    }


def ready_results(module: Any, example_inputs: list[Any]) -> Callable[..., Any]:
    """A backend that computes once and then returns those results: Dynamo's entry alone."""
    results = module(*example_inputs)
    return lambda *_: results


def _prepare_calls(name: str, backend: str) -> Prepared:
    import torch

    function, make_arguments = _graphs()[name]
    torch.manual_seed(0)
    arguments = make_arguments()
    chosen: Any = ready_results if backend == ENTRY else backend
    call = torch.compile(function, backend=chosen, dynamic=False)
    with torch.no_grad():
        call(*arguments)
    torch.set_grad_enabled(False)
    return Prepared(lambda: call(*arguments))


def measure_calls(name: str, backends: list[str], rounds: int) -> dict[str, Any]:
    """Microseconds per call by backend, and of Dynamo's entry alone."""
    sides = [Side("bench.compile_time", b) for b in [*backends, ENTRY]]
    try:
        for side in sides:
            side.prepare({"calls": name})
        times = interleaved(sides, rounds, seconds=0.02)
    finally:
        for side in sides:
            side.close()
    found: dict[str, Any] = {b: statistics.median(t) * 1e6 for b, t in times.items()}
    if {"irc", "inductor"} <= set(times):
        own = {
            b: [max(t - e, 1e-9) for t, e in zip(times[b], times[ENTRY], strict=True)]
            for b in ("irc", "inductor")
        }
        found["ratio"] = median_ratio(times["inductor"], times["irc"])
        found["own_ratio"] = median_ratio(own["inductor"], own["irc"])
    return found


def main() -> None:
    """Measure, print, write bench/results/compile_time.json."""
    from bench.builders import MODELS, SMALL

    parser = argument_parser(__doc__ or "")
    parser.add_argument("--backends", default="irc,inductor,aot_eager")
    parser.add_argument("--small", action="store_true", help="the reduced models of the demo")
    parser.add_argument("--skip-calls", action="store_true")
    parser.add_argument("--skip-models", action="store_true")
    options = parser.parse_args()
    backends = options.backends.split(",")
    print_load()
    results: dict[str, Any] = {"models": [], "calls": {}}
    if not options.skip_calls:
        for name in _graphs():
            try:
                found = results["calls"][name] = measure_calls(name, backends, options.rounds)
                print(name, {k: round(v, 2) for k, v in found.items()}, flush=True)
            except SideFailed as error:
                print(name, error, flush=True)
    head = ["model"] + [f"{b} {kind}" for b in backends for kind in ("cold", "warm")]
    for name in [] if options.skip_models else SMALL if options.small else MODELS:
        if options.filter in name:
            found = measure_model(name, backends)
            results["models"].append(found)
            print(table(head, [model_row(found, backends)]), goals_met(found), flush=True)
            for failure in found["failures"].values():
                print(failure)
    print_load()
    write_results(options.output or "compile_time", results)


if __name__ == "__main__":
    main()
