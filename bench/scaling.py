"""Compile time of every pass over programs that double in length, and its exponent.

    python -m bench.scaling [--families chain,slices] [--jobs 4] [--output scaling] [--append]
    python -m bench.scaling --lines        (executed lines of Python instead of seconds: no noise)
    python -m bench.scaling --goals        (5,000 additions, 1,000 parameters, 200 layers, RWKV)

Eight families of programs grow by one number each, to eight times their least length. At every
length each step of a compile is timed (processor time): the importer, every pass, verifiers,
printer, parser, generators of code, LLVM. A step's time is the least of some rounds, each of which
takes all lengths in turn, so that a busy minute of the machine falls on no length alone. The
exponent of a step is the slope of its logarithmic times over all lengths, by least squares; steps
under `MATTERS` seconds at the largest length are not judged, but for their part in the sum. The
command fails where an exponent is above `LIMIT`. torch's own tracing is not ours and is left out,
but for what `decompose-aten` traces. Remarks are not asked for, as in a compile.

With `--lines` it is the lines of Python that irc executes that are counted: they are the same in
every run, but say nothing of loops in C and of LLVM. All steps are judged that take a thousandth of
all lines.

With `--append` the families that were measured before stay in bench/results/<output>.json, so that
a long measurement can be taken in pieces; the text beside it is of all of them.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import multiprocessing
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

import irc
from bench.common import RESULTS, machine, print_load, table, write_results
from bench.line_counts import Counts, counter, totals

LIMIT = 1.2
MATTERS = 0.02

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
    """Slices that are written one after another, each with what was summed up so far. All lengths
    are of one regime: above a target's `near_bytes`, where arrays are worth sharing."""

    def f(x: torch.Tensor) -> torch.Tensor:
        out, total = torch.zeros_like(x), torch.zeros_like(x[:, 0])
        for step in range(length):
            total = total + x[:, step]
            out[:, step] = total
        return out

    return f, [torch.randn(32, length, 8)], False


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


#: The families, with their least length: behind the limits of the passes (256 operations inlined
#: into a body, 2,048 in a group, 24 results of a compute), since until they are filled there is one
#: body or kernel, and with the second one work begins that shorter programs have none of.
FAMILIES: Mapping[str, tuple[Callable[[int], Program], int]] = {
    "chain": (chain, 1000), "slices": (slices, 256), "layers": (layers, 8),
    "arguments": (arguments, 200), "results": (results, 400), "symbols": (symbols, 32),
    "norms": (norms, 32), "pieces": (pieces, 256),
}  # fmt: skip
DOUBLINGS = 3

Times = dict[str, float]
Measure = Callable[[str], AbstractContextManager[None]]


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
    times: Times = defaultdict(float)
    run(program, lambda step: clock(times, step))
    return dict(times)


def compile_lines(program: Program) -> Counts:
    """The lines of Python that each step of a compile executes, by function."""
    counts: Counts = {}
    run(program, lambda step: counter(counts, step))
    return counts


def run(program: Program, measure: Measure) -> None:
    """Compile a program; each step of it in what `measure` gives for its name."""
    from irc.frontend.tracing import trace_function

    function, tensors, dynamic = program
    traced = trace_function(function, tensors, dynamic=dynamic)
    gc.collect()
    with irc.gc_paused:  # as in every compile
        _compile(traced, dynamic, measure)


def _compile(traced: Any, dynamic: bool, measure: Measure) -> None:
    from irc.codegen.host.lowering import emit_host
    from irc.codegen.llvm.jit import compile_module
    from irc.codegen.llvm.kernel_emitter import emit_kernels
    from irc.frontend.importing.importer import import_graph
    from irc.ir.passes import PassContext, PassManager
    from irc.ir.verifier import verify
    from irc.pipeline import pipeline_text
    from irc.program.host_program import to_json
    from irc.program.read_host import read_host_program
    from irc.runtime import build_program as build
    from irc.target import Target
    from irc.target.cpu import TargetFeatures

    with measure("importer"):
        module: Any = import_graph(
            traced.graph, argument_kinds=traced.kinds, argument_names=traced.names,
            assert_guards=dynamic,
        ).module  # fmt: skip
    with measure("verify aten"):
        verify(module)
    for step in PassManager.parse(f"functional,{pipeline_text()}").steps:
        with measure(str(getattr(step, "name", step))):
            PassManager([step]).run(module, PassContext(explains=False))
    with measure("verify host"):
        verify(module)
    with measure("print"):
        text = irc.print_op(module)
    with measure("parse"):
        irc.parse(text)
    with measure("read host program"):
        host = read_host_program(module)
    kernels, features = build.used_kernels(module, host, "cpu"), TargetFeatures.host()
    with measure("emit kernels"):
        kernel_text = emit_kernels(kernels, features)
    with measure("llvm of kernels"):
        compile_module(kernel_text, features)
    with measure("emit host"):
        emitted = emit_host(host, Target.host())
    with measure("llvm of host"):
        compile_module(emitted.text, features, opt_level=build.host_level(host))
    with measure("host program as JSON"):
        to_json(host)


def exponent(lengths: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of the logarithms, by least squares."""
    points = [
        (math.log(n), math.log(max(t, 1e-9))) for n, t in zip(lengths, seconds, strict=True)
    ]
    x0, y0 = (sum(p[k] for p in points) / len(points) for k in (0, 1))
    return sum((x - x0) * (y - y0) for x, y in points) / sum((x - x0) ** 2 for x, _ in points)


def measured(
    name: str, doublings: int, rounds: int, lines: bool = False
) -> tuple[list[int], dict[str, list[float]]]:
    """The lengths of a family and, by step, the seconds (or lines) at each: the least of some
    rounds over all lengths."""
    torch.set_num_threads(1)
    make, least = FAMILIES[name]
    lengths = [least << k for k in range(doublings + 1)]
    found: dict[str, list[float]] = {}
    compile_times(layers(2))  # imports and first uses
    if lines:
        for length in lengths:  # attributes and texts that are made once
            compile_times(make(length))
    for _ in range(1 if lines else rounds):
        for position, length in enumerate(lengths):
            program = make(length)
            cost = totals(compile_lines(program)) if lines else compile_times(program)
            for step, amount in cost.items():
                row = found.setdefault(step, [math.inf] * len(lengths))
                row[position] = min(row[position], amount)
    return lengths, found


def judged(lengths: Sequence[int], found: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The exponents of the steps whose time (or lines: over a thousandth of all) matters, and of
    the sum of all steps."""
    sums = [sum(t[k] for t in found.values()) for k in range(len(lengths))]
    least = MATTERS if sums[-1] < 1000 else sums[-1] / 1000
    steps = {s: exponent(lengths, t) for s, t in found.items() if t[-1] >= least}
    return {**steps, "in all": exponent(lengths, sums)}


def verdict(name: str, lengths: Sequence[int], found: Mapping[str, Sequence[float]]) -> str:
    """One line about a family."""
    exponents = judged(lengths, found)
    slopes = {step: slope for step, slope in exponents.items() if step != "in all"}
    worst = max(slopes, key=slopes.__getitem__, default="in all")
    held = all(slope <= LIMIT for slope in exponents.values())
    return (
        f"{'ok  ' if held else 'FAIL'} {name}: in all {exponents['in all']:.2f}, at most "
        f"{exponents[worst]:.2f} ({worst}), {len(slopes)} of {len(found)} steps judged"
    )


def report(name: str, lengths: Sequence[int], found: Mapping[str, Sequence[float]]) -> list[str]:
    """Lines about a family: the seconds of the steps that matter, and their exponents."""
    exponents = judged(lengths, found)
    every = {**found, "in all": [sum(t[k] for t in found.values()) for k in range(len(lengths))]}
    rows = [
        [
            step, *(f"{t:.3f}" if t < 1000 else f"{t:.0f}" for t in every[step]),
            f"{slope:.2f}", "" if slope <= LIMIT else "!",
        ]
        for step, slope in sorted(exponents.items(), key=lambda e: -every[e[0]][-1])
    ]
    head = [name, *map(str, lengths), "exponent", ""]
    return [table(head, rows), ""]


def goals() -> list[tuple[str, float, float]]:
    """What single programs take, in processor seconds, each with what it may be at most."""
    compile_times(layers(2))
    rows = [("5,000 additions", sum(compile_times(additions(5000)).values()), 20.0)]
    seconds = compile_times(arguments(1000))["bufferize"]
    rows.append(("bufferize, SGD over 1,000 parameters", seconds, 0.5))
    half, whole = (sum(compile_times(layers(n)).values()) for n in (100, 200))
    rows.append((f"200 layers (100: {half:.2f})", whole, half * 2**LIMIT))
    rows.append(("RWKV over 16 steps, aot_eager", rwkv_seconds("aot_eager"), math.inf))
    rows.append(("RWKV over 16 steps, irc", rwkv_seconds("irc"), 10.0))
    return rows


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
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="families measured side by side")
    parser.add_argument("--lines", action="store_true", help="count executed lines, not seconds")
    parser.add_argument("--goals", action="store_true", help="only the figures of single programs")
    parser.add_argument("--append", action="store_true", help="keep the families of former runs")
    parser.add_argument("--output", default="", help="name of the results file")
    options = parser.parse_args()
    print_load()
    torch.set_num_threads(1)
    sys.exit(judge_goals(options.output) if options.goals else judge_families(options))


def judge_goals(output: str) -> bool:
    """Measure single programs; whether one takes too long."""
    rows = goals()
    lines = [
        f"{'ok  ' if seconds <= limit else 'FAIL'} {name}: {seconds:.2f} processor seconds"
        + ("" if limit == math.inf else f", at most {limit:.2f}")
        for name, seconds, limit in rows
    ]
    print("\n".join(lines))
    if output:
        write_text(output, lines)
    return any(seconds > limit for _, seconds, limit in rows)


def judge_families(options: argparse.Namespace) -> bool:
    """Measure families; whether a step's time grows too fast."""
    results = stored(options.output) if options.append else {}
    names = options.families.split(",")
    fork = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=fork) as pool:
        arguments = (options.doublings, options.rounds, options.lines)
        running = {name: pool.submit(measured, name, *arguments) for name in names}
        for name, future in running.items():
            results[name] = future.result()
            print("\n".join(report(name, *results[name])), flush=True)
    failures = failures_of(results)
    told = [verdict(name, *result) for name, result in results.items()]
    told += failures or [f"every exponent is at most {LIMIT}"]
    print("\n".join(told))
    if options.output:
        write_results(options.output, results)
        write_text(options.output, [*(x for n, r in results.items() for x in report(n, *r)), *told])
    return bool(failures)


if __name__ == "__main__":
    main()
