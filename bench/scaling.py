"""Compile time of every pass over programs that double in length, and its exponent.

    python -m bench.scaling [--families chain,slices] [--doublings 4] [--output scaling] [--append]
    python -m bench.scaling --goals        (5,000 additions, 1,000 parameters, 200 layers, RWKV)

Eight families of programs grow by one number each. At every length each step of a compile is timed
(processor time): the importer, every pass, verifiers, printer, parser, generators of code, LLVM,
loading. The exponent of a step is the slope of its logarithmic times over the larger lengths, by
least squares; steps under `MATTERS` seconds at the largest length are not judged. The command fails
where an exponent is above `LIMIT`. torch's own tracing is not ours and is left out, but for what
`decompose-aten` traces.

With `--append` the families that were measured before stay in bench/results/<output>.json, so that
a long measurement can be taken in pieces; the text beside it is of all of them.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

import irc
from bench.common import RESULTS, machine, print_load, table, write_results

LIMIT = 1.2
MATTERS = 0.1
FITTED = 4

Program = tuple[Callable[..., Any], list[torch.Tensor], bool]


def chain(length: int) -> Program:
    """Pointwise operations, each of the last one's result."""

    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for number in range(length):
            x = x * y if number % 4 == 3 else x + y
        return x

    return f, [torch.randn(8, 16), torch.randn(8, 16)], False


def additions(length: int) -> Program:
    """Additions of a number, one after the other."""

    def f(x: torch.Tensor) -> torch.Tensor:
        for number in range(length):
            x = x + float(number)
        return x

    return f, [torch.randn(8, 16)], False


def slices(length: int) -> Program:
    """Slices that are written one after another, each with what was summed up so far."""

    def f(x: torch.Tensor) -> torch.Tensor:
        out, total = torch.zeros_like(x), torch.zeros_like(x[:, 0])
        for step in range(length):
            total = total + x[:, step]
            out[:, step] = total
        return out

    return f, [torch.randn(2, length, 8)], False


def layers(length: int) -> Program:
    """Layers of a small transformer, with weights of their own."""
    F = torch.nn.functional

    def f(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        for number in range(length):
            scale, inner, outer, up, down = weights[5 * number : 5 * number + 5]
            y = F.layer_norm(x, [16], scale) @ inner
            q, k, v = (part.view(1, 6, 2, 8).transpose(1, 2) for part in y.chunk(3, -1))
            scores = torch.softmax(q @ k.transpose(-2, -1) / 8**0.5, -1) @ v
            x = x + scores.transpose(1, 2).reshape(1, 6, 16) @ outer
            x = x + F.gelu(F.layer_norm(x, [16], scale) @ up) @ down
        return x

    shapes = ((16,), (16, 48), (16, 16), (16, 32), (32, 16))
    weights = [torch.randn(shape) for _ in range(length) for shape in shapes]
    return f, [torch.randn(1, 6, 16), *weights], False


def arguments(length: int) -> Program:
    """A step of SGD over so many parameters, which are updated."""

    def f(*tensors: torch.Tensor) -> None:
        for parameter, gradient in zip(tensors[::2], tensors[1::2], strict=True):
            parameter.sub_(gradient * 0.1)

    return f, [torch.randn(4, 6) for _ in range(2 * length)], False


def results(length: int) -> Program:
    """Results of their own, of one argument."""

    def f(x: torch.Tensor) -> list[torch.Tensor]:
        return [(x + float(number)).relu() for number in range(length)]

    return f, [torch.randn(4, 6)], False


def symbols(length: int) -> Program:
    """Arguments whose sizes are symbols of their own."""

    def f(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return [(t * 2 + 1).sum(0) for t in tensors]

    return f, [torch.randn(3 + 2 * number, 4) for number in range(length)], True


def norms(length: int) -> Program:
    """Reductions, each of what was normalized by the last one."""

    def f(x: torch.Tensor) -> torch.Tensor:
        for number in range(length):
            x = torch.nn.functional.layer_norm(x + float(number), [24]) * x.amax(0)
        return x

    return f, [torch.randn(6, 24)], False


def pieces(length: int) -> Program:
    """Splits and concatenations of so many pieces."""

    def f(x: torch.Tensor) -> torch.Tensor:
        parts = [part * float(k + 1) for k, part in enumerate(x.split(2))]
        return torch.cat([*parts[::2], *parts[1::2]]).exp()

    return f, [torch.randn(2 * length, 12)], False


#: The families, with their least length.
FAMILIES: Mapping[str, tuple[Callable[[int], Program], int]] = {
    "chain": (chain, 500), "slices": (slices, 64), "layers": (layers, 8),
    "arguments": (arguments, 200), "results": (results, 200), "symbols": (symbols, 32),
    "norms": (norms, 32), "pieces": (pieces, 64),
}  # fmt: skip
DOUBLINGS = 3

Times = dict[str, float]


@contextmanager
def clock(times: Times, step: str) -> Iterator[None]:
    """Add the processor time spent inside to a step."""
    start = time.process_time()
    try:
        yield
    finally:
        times[step] += time.process_time() - start


def compile_times(program: Program) -> Times:
    """Seconds of every step of a compile."""
    from irc.frontend.tracing import trace_function

    function, tensors, dynamic = program
    times: Times = defaultdict(float)
    traced = trace_function(function, tensors, dynamic=dynamic)
    gc.collect()
    with irc.gc_paused:  # as in every compile
        _compile(traced, dynamic, times)
    return dict(times)


def _compile(traced: Any, dynamic: bool, times: Times) -> None:
    from irc.codegen.llvm.host_lowering import emit_host
    from irc.codegen.llvm.jit import compile_module
    from irc.codegen.llvm.kernel_emitter import emit_kernels
    from irc.frontend.importer import import_graph
    from irc.ir.passes import PassManager
    from irc.ir.verifier import verify
    from irc.pipeline import pipeline_text
    from irc.runtime import build_program as build
    from irc.runtime.host_program import to_json
    from irc.runtime.read_host import read_host_program
    from irc.target.cpu import TargetFeatures

    with clock(times, "importer"):
        module: Any = import_graph(
            traced.graph, argument_kinds=traced.kinds, argument_names=traced.names,
            assert_guards=dynamic,
        ).module  # fmt: skip
    with clock(times, "verify aten"):
        verify(module)
    for step in PassManager.parse(f"functional,{pipeline_text()}").steps:
        with clock(times, str(getattr(step, "name", step))):
            PassManager([step]).run(module)
    with clock(times, "verify host"):
        verify(module)
    with clock(times, "print"):
        text = irc.print_op(module)
    with clock(times, "parse"):
        irc.parse(text)
    with clock(times, "read host program"):
        host = read_host_program(module)
    kernels, features = build.used_kernels(module, host, "cpu"), TargetFeatures.host()
    with clock(times, "emit kernels"):
        kernel_text = emit_kernels(kernels, features)
    with clock(times, "llvm of kernels"):
        compile_module(kernel_text, features)
    with clock(times, "emit host"):
        emitted = emit_host(host)
    with clock(times, "llvm of host"):
        compile_module(emitted.text, features, opt_level=build.host_level(host))
    with clock(times, "host program as JSON"):
        to_json(host)


def exponent(lengths: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of the logarithms, by least squares over the larger lengths."""
    points = [
        (math.log(n), math.log(max(t, 1e-9)))
        for n, t in zip(lengths[-FITTED:], seconds[-FITTED:], strict=True)
    ]
    x0, y0 = (sum(p[k] for p in points) / len(points) for k in (0, 1))
    return sum((x - x0) * (y - y0) for x, y in points) / sum((x - x0) ** 2 for x, _ in points)


def measured(
    name: str, doublings: int, repeats: int = 2
) -> tuple[list[int], dict[str, list[float]]]:
    """The lengths of a family and, by step, the seconds at each: the least of some repeats."""
    make, least = FAMILIES[name]
    lengths = [least << k for k in range(doublings + 1)]
    found: dict[str, list[float]] = {}
    for position, length in enumerate(lengths):
        for _ in range(repeats):
            for step, seconds in compile_times(make(length)).items():
                row = found.setdefault(step, [math.inf] * len(lengths))
                row[position] = min(row[position], seconds)
    return lengths, found


def judged(lengths: Sequence[int], found: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The exponents of the steps whose time matters, and of their sum."""
    steps = {s: exponent(lengths, t) for s, t in found.items() if t[-1] >= MATTERS}
    sums = [sum(t[k] for t in found.values()) for k in range(len(lengths))]
    return {**steps, "in all": exponent(lengths, sums)}


def report(name: str, lengths: Sequence[int], found: Mapping[str, Sequence[float]]) -> list[str]:
    """Lines about a family: the seconds of the steps that matter, and their exponents."""
    exponents = judged(lengths, found)
    every = {**found, "in all": [sum(t[k] for t in found.values()) for k in range(len(lengths))]}
    rows = [
        [step, *(f"{t:.3f}" for t in every[step]), f"{slope:.2f}", "" if slope <= LIMIT else "!"]
        for step, slope in sorted(exponents.items(), key=lambda e: -every[e[0]][-1])
    ]
    head = [name, *map(str, lengths), "exponent", ""]
    return [table(head, rows), ""]


def goal_lines() -> list[str]:
    """The issue's own figures, in processor seconds, each beside what it may be."""
    rows = []
    times = compile_times(additions(5000))
    rows.append(["5,000 additions", f"{sum(times.values()):.2f}", "20"])
    times = compile_times(arguments(1000))
    rows.append(["bufferize, SGD over 1,000 parameters", f"{times['bufferize']:.2f}", "0.5"])
    half, whole = (sum(compile_times(layers(n)).values()) for n in (100, 200))
    rows.append(["200 layers", f"{whole:.2f}", f"{2 * half * 1.15:.2f}"])
    for backend, limit in (("aot_eager", ""), ("irc", "10")):
        rows.append([f"RWKV over 16 steps, {backend}", f"{rwkv_seconds(backend):.2f}", limit])
    return [table(["processor seconds", "measured", "at most"], rows)]


def rwkv_seconds(backend: str) -> float:
    """To compile two layers of RWKV over 16 steps by `torch.compile`, Dynamo included."""
    from transformers import RwkvConfig, RwkvModel

    torch.manual_seed(0)
    config = RwkvConfig(
        vocab_size=100, context_length=16, hidden_size=64, num_hidden_layers=2, use_cache=False
    )
    model, ids = RwkvModel(config).eval(), torch.randint(0, 100, (2, 16))
    torch._dynamo.reset()
    start = time.process_time()
    with torch.no_grad():
        torch.compile(model, backend=backend)(ids, use_cache=False)
    return time.process_time() - start


def failures_of(results: Mapping[str, Any]) -> list[str]:
    """A line for each step whose time grows too fast."""
    return [
        f"{name}: {step} grows with exponent {slope:.2f}"
        for name, (lengths, found) in results.items()
        for step, slope in judged(lengths, found).items()
        if slope > LIMIT
    ]


def stored(file: str) -> dict[str, Any]:
    """What bench/results holds of former runs."""
    path = RESULTS / f"{file}.json"
    return json.loads(path.read_text())["results"] if path.exists() else {}


def write_text(file: str, lines: Sequence[str]) -> None:
    """Write lines beside the results, below what they depend on."""
    facts = ", ".join(f"{k} {v}" for k, v in machine().items() if k in ("cpu", "date", "load"))
    (RESULTS / f"{file}.txt").write_text("\n".join([facts, "", *lines]) + "\n")


def main() -> None:
    """Measure, print, write bench/results/<output>.txt, fail where a step is superlinear."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--doublings", type=int, default=DOUBLINGS)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--goals", action="store_true", help="only the figures of single programs")
    parser.add_argument("--append", action="store_true", help="keep the families of former runs")
    parser.add_argument("--output", default="", help="name of the results file")
    options = parser.parse_args()
    print_load()
    torch.set_num_threads(1)
    if options.goals:
        lines = goal_lines()
        print(lines[0])
        if options.output:
            write_text(options.output, lines)
        return
    results = stored(options.output) if options.append else {}
    compile_times(layers(2))  # imports and first uses
    for name in options.families.split(","):
        results[name] = measured(name, options.doublings, options.repeats)
        print("\n".join(report(name, *results[name])), flush=True)
    failures = failures_of(results)
    told = failures or [f"every exponent is at most {LIMIT}"]
    print("\n".join(told))
    if options.output:
        write_results(options.output, results)
        write_text(options.output, [*(x for n, r in results.items() for x in report(n, *r)), *told])
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
