"""Compile time and call overhead, each figure from processes of its own.

    python -m bench.compile_time [--backends irc,inductor,aot_eager] [--filter resnet] [--append]
    python -m bench.compile_time --report     (what bench/results/compile_time.json holds)
    python -m bench.compile_time --against irc@REVISION     (irc beside irc as a commit has it)

*Cold*: a new process, empty caches, imports done before the clock starts; the first call less a
warm call, median of 3.  *Warm*: the same with the caches that a cold run left.  Goals: cold at most
aot_eager's + 2.5 s and a third of Inductor's, warm at most aot_eager's + 0.5 s.

*Calls*: microseconds per call of a graph of one kernel and of graphs of ten (ten that a small
matrix product separates; ten with results of different shapes), on few elements, so that only the
overhead shows.  Dynamo's entry, measured by a backend that returns ready results, is taken off for
the own part.  Goals: one kernel no slower than Inductor, ten kernels' own part 3 times faster.

`--append` adds repeats to those of former runs, so that a long measurement can be taken in pieces:
`--model bert-base --backends inductor --repeats 1 --append`.  Figures of a model by backend are
medians over all of its repeats. `bench.compile_counts` counts opcodes instead: the same figure on
any machine.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.common import (
    RESULTS,
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
BACKENDS_SHOWN = ("irc", "inductor", "aot_eager")
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


Repeats = dict[str, dict[str, list[float]]]


def measure_model(model: str, backends: list[str], repeats: int) -> tuple[Repeats, list[str]]:
    """Cold and warm compile seconds of each repeat by backend, the backends in turn; failures."""
    found: Repeats = {backend: {"cold": [], "warm": []} for backend in backends}
    failures: dict[str, str] = {}
    for number in range(repeats):
        for backend in backends if number % 2 == 0 else backends[::-1]:
            if backend in failures:
                continue
            try:
                with cache_folders() as environment:
                    for kind in ("cold", "warm"):
                        seconds = compile_seconds(model, backend, environment)
                        found[backend][kind].append(seconds)
            except SideFailed as error:
                failures[backend] = str(error)
    return {b: kinds for b, kinds in found.items() if b not in failures}, list(failures.values())


def figures_of(repeats: Repeats) -> dict[str, dict[str, float]]:
    """The median seconds of each kind by backend."""
    return {
        backend: {kind: statistics.median(times) for kind, times in kinds.items()}
        for backend, kinds in repeats.items()
    }


def joined(old: Repeats, new: Repeats) -> Repeats:
    """The repeats of two runs, in order."""
    both = {b: {k: list(times) for k, times in kinds.items()} for b, kinds in old.items()}
    for backend, kinds in new.items():
        for kind, times in kinds.items():
            both.setdefault(backend, {}).setdefault(kind, []).extend(times)
    return both


def shown(models: dict[str, Repeats]) -> list[str]:
    """The backends of a table's columns: the usual ones, and other revisions that were measured."""
    measured = [backend for repeats in models.values() for backend in repeats]
    return [*dict.fromkeys((*BACKENDS_SHOWN, *measured))]


def model_row(model: str, repeats: Repeats, backends: list[str]) -> list[str]:
    """Cold and warm seconds of each backend."""
    cells, figures = [model], figures_of(repeats)
    for backend in backends:
        one = figures.get(backend)
        cells += [f"{one['cold']:.2f}", f"{one['warm']:.2f}"] if one else ["-", "-"]
    return [*cells, str(min(len(kinds["cold"]) for kinds in repeats.values()))]


def goals_met(repeats: Repeats) -> dict[str, bool]:
    """Which goals irc meets on a model, as far as the backends needed were measured."""
    figures = figures_of(repeats)
    if "irc" not in figures:
        return {}
    mine, met = figures["irc"], {}
    if "aot_eager" in figures:
        met["cold at most aot_eager + 2.5 s"] = mine["cold"] <= figures["aot_eager"]["cold"] + 2.5
        met["warm at most aot_eager + 0.5 s"] = mine["warm"] <= figures["aot_eager"]["cold"] + 0.5
    if "inductor" in figures:
        met["cold a third of inductor's"] = mine["cold"] <= figures["inductor"]["cold"] / 3
    return met


def compared(repeats: Repeats) -> str:
    """irc's medians beside those of the backends measured: what the goals are about."""
    figures = figures_of(repeats)
    if "irc" not in figures:
        return ""
    mine, words = figures["irc"], []
    if "inductor" in figures:
        words.append(f"cold {mine['cold'] / figures['inductor']['cold']:.2f} of inductor's")
    if "aot_eager" in figures:
        eager = figures["aot_eager"]["cold"]
        words += [f"{k} {mine[k] - eager:+.2f} s against aot_eager's cold" for k in mine]
    for other in (name for name in repeats if name.startswith("irc@")):
        pairs = {k: (repeats["irc"][k], repeats[other][k]) for k in mine}
        words += [f"{k} {median_ratio(*pair):.3f} of {other}'s" for k, pair in pairs.items()]
    return ", ".join(words)


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


def report(results: dict[str, Any]) -> None:
    """Print what was measured, and which goals it meets."""
    for name, found in results["calls"].items():
        print(name, {k: round(v, 2) for k, v in found.items()}, flush=True)
    models = {model: repeats for model, repeats in results["models"].items() if repeats}
    backends = shown(models)
    head = ["model", *(f"{b} {kind}" for b in backends for kind in ("cold", "warm"))]
    if models:
        rows = [model_row(m, found, backends) for m, found in models.items()]
        print(table([*head, "repeats"], rows))
    for model, repeats in models.items():
        print(model, compared(repeats), goals_met(repeats), flush=True)


def stored(file: str) -> dict[str, Any]:
    """What bench/results holds of former runs."""
    path = RESULTS / f"{file}.json"
    empty: dict[str, Any] = {"models": {}, "calls": {}}
    return json.loads(path.read_text())["results"] if path.exists() else empty


def main() -> None:
    """Measure, print, keep in bench/results/compile_time.json."""
    from bench.builders import MODELS, SMALL

    parser = argument_parser(__doc__ or "")
    parser.add_argument("--backends", default=",".join(BACKENDS_SHOWN))
    parser.add_argument("--model", default="", choices=["", *MODELS, *SMALL])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--append", action="store_true", help="keep the repeats of former runs")
    parser.add_argument("--report", action="store_true", help="only print what was measured")
    parser.add_argument("--small", action="store_true", help="the reduced models of the demo")
    parser.add_argument("--skip-calls", action="store_true")
    parser.add_argument("--skip-models", action="store_true")
    options = parser.parse_args()
    file = options.output or "compile_time"
    results = stored(file)
    if options.report:
        report(results)
        return
    backends = options.backends.split(",")
    if options.against.startswith("irc@"):
        backends = ["irc", options.against]
    print_load()
    for name in () if options.skip_calls else _graphs():
        try:
            found = results["calls"][name] = measure_calls(name, backends, options.rounds)
            report({"models": {}, "calls": {name: found}})
        except SideFailed as error:
            print(name, error, flush=True)
    every = SMALL if options.small else MODELS
    names = [options.model] if options.model else [n for n in every if options.filter in n]
    for name in () if options.skip_models else names:
        repeats, failures = measure_model(name, backends, options.repeats)
        old = results["models"].get(name, {}) if options.append else {}
        results["models"][name] = joined(old, repeats)
        report({"models": {name: results["models"][name]}, "calls": {}})
        print("\n".join(failures))
        write_results(file, results)
    print_load()
    write_results(file, results)


if __name__ == "__main__":
    main()
