"""Products on a CPU: irc's kernels, ATen (MKL on x86), packed oneDNN, and the machine's limits.

    OMP_NUM_THREADS=1 python -m bench.products [--rounds 15] [--rows 256] [--element bf16]
                                               [--threads 8] [--schedule 'tile_rows = 8 : i64']
                                               [--target avx2] [--shapes 512x768x4 4096x64x2]
                                               [--steady 100]

For each shape (rows, inner, columns), in turn in each round: the machine's limit (a loop of irc's
that multiplies and adds registers; of registers of whole tiles, products of what the first-level
cache holds; on each thread), ATen's product with the weight as it lies in a linear layer, irc's
with that weight, packed oneDNN's where torch has it, and irc's with a weight in panels, also with
bias, gelu and an array added. Given are billions of operations a second, shares of the limit and
other ratios, all as medians over rounds of what was measured in the same round: another program on
the machine slows both sides. A product of few rows reads its weight once: `read` is the share of
one core's read bandwidth. `least` is what the product with all that follows it takes at least, of
the bare one's time, if the array that is added comes from memory at that bandwidth. With `--steady
N` a sample beside which the machine's limit is less than 0.8 of its best is taken again, up to N
times; printed is how many stayed disturbed.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import torch

import irc
from bench.common import print_load, table
from bench.steady import Steady
from irc.analysis.contraction import grouped
from irc.analysis.processor_ways import multiplies_parts
from irc.codegen.llvm.jit import load_object
from irc.codegen.llvm.kernel_emitter import compile_kernels
from irc.dialects.kernel import KernelFuncOp
from irc.ir.passes import PassManager
from irc.ir.types import bf16, f32
from irc.passes.kernel.cpu.contraction.register_tiles import panel_vectors
from irc.target import Target, as_target
from irc.target.attribute import carry
from irc.target.figures import evolve

SIZES = [(768, 768), (768, 3072), (3072, 768), (4096, 4096)]
ROWS = [1, 4, 16, 256, 512, 788]
TILES = 4096
TURNS = 1 << 20
ACCUMULATORS = {512: 24, 256: 12, 128: 12}
READ_BYTES = 1 << 28


def array(sizes: Sequence[int], element: str) -> str:
    """The type of a row-major array."""
    strides = list(torch.empty(tuple(sizes), device="meta").stride())
    return f"tensor<{list(sizes)} x {element}, strides {strides}>"


def panels_of(target: Target, element: str, rows: int = 2) -> tuple[int, int]:
    """Columns of a panel, and the terms of a column that lie side by side in it."""
    if element == "bf16" and "amx-bf16" in target.features.sets and rows > 1:
        return 16, 2
    dot = grouped(bf16, target) if element == "bf16" else None
    lanes = target.lanes(f32)
    panel = panel_vectors(target, lanes) * lanes
    return panel, 1 if dot is None or rows == 1 else dot.group


def product(
    shape: tuple[int, int, int], element: str, packed: bool, epilogue: bool, entries: str,
    panels: tuple[int, int] = (48, 1), parts: bool = False,
) -> str:  # fmt: skip
    """A program that multiplies; the weight is [columns, inner], or in panels. parts: of f32 that
    is cut into three of bf16."""
    rows, inner, columns = shape
    panel, group = panels
    sizes: tuple[int, ...] = (columns, inner)
    place, weights = "n, k", element
    if packed:
        sizes = (-(-columns // panel), inner // group, panel, group)
        place = f"floordiv(n, {panel}), floordiv(k, {group}), mod(n, {panel}), mod(k, {group})"
    read = f"%q = loop.read %w[{place}] : {element}"
    if parts:
        entries = f'products = "bf16x6"{", " * bool(entries)}{entries}'
    if parts and packed:
        sizes, weights = (3, *sizes), "bf16"
        lines = [f"%q{p} = loop.read %w[{p}, {place}] : bf16" for p in range(3)]
        lines += [f"%r{p} = arith.extf %q{p} : bf16 to f32" for p in range(3)]
        sums = ["%s01 = arith.addf %r0, %r1 : f32", "%q = arith.addf %s01, %r2 : f32"]
        read = "\n    ".join(lines + sums)
    result, sums = array((rows, columns), element), array((rows, columns), "f32")
    wide = "" if element == "f32" else f"""
    %p1 = arith.extf %p : {element} to f32
    %q1 = arith.extf %q : {element} to f32"""
    names = "%p, %q" if element == "f32" else "%p1, %q1"
    schedule = f"schedule #loop.schedule<cpu, {entries}> " if entries else ""
    compute = f"""loop.compute par(m: {rows}, n: {columns}) red(k: {inner}) -> reduce(sum, f32) {schedule}{{
    %p = loop.read %x[m, k] : {element}
    {read}{wide}
    %v = arith.mulf {names} : f32
    loop.yield %v
  }} : {sums}"""  # fmt: skip  # noqa: E501
    head = f"""func.func @main(%x: {array((rows, inner), element)}, %w: {array(sizes, weights)},
    %b: {array((columns,), "f32")}, %z: {array((rows, columns), "f32")}) -> {result}
    attributes {{level = "loop"}} {{"""
    if not epilogue and element == "f32":
        return f"{head}\n  %y = {compute}\n  func.return %y : {result}\n}}"
    gelu = """
    %c = arith.constant 0.7071067811865476 : f32
    %h = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %b0 = loop.read %b[n] : f32
    %t0 = arith.addf %s, %b0 : f32
    %t1 = arith.mulf %t0, %c : f32
    %t2 = math.erf %t1 : f32
    %t3 = arith.addf %t2, %one : f32
    %t4 = arith.mulf %t0, %h : f32
    %t5 = arith.mulf %t4, %t3 : f32
    %z0 = loop.read %z[m, n] : f32
    %o = arith.addf %t5, %z0 : f32""" if epilogue else ""
    last, narrow = ("%o" if epilogue else "%s"), ""
    if element != "f32":
        narrow, last = f"\n    %o1 = arith.truncf {last} : f32 to {element}", "%o1"
    return f"""{head}
  %y = loop.group (m: {rows}, n: {columns}) {{
  %sum = {compute}
  %r = loop.compute par(m: {rows}, n: {columns}) -> map {{
    %s = loop.read %sum[m, n] : f32{gelu}{narrow}
    loop.yield {last}
  }} : {result}
  loop.yield %r : {result}
  }} : {result}
  func.return %y : {result}
}}"""


def built(text: str, target: Target | None = None) -> Callable[..., Any]:
    """A program as a callable."""
    module = irc.parse(text)
    if target is not None:
        carry(module, target)
    PassManager.parse("schedule,form-kernels,bufferize,plan-memory").run(module)
    return irc.build(module)


def kernel_of(text: str, target: Target) -> Any:
    """A kernel's function, and what keeps it."""
    kernels = [op for op in irc.parse(text).walk() if isinstance(op, KernelFuncOp)]
    loaded = load_object(compile_kernels(kernels, target.features))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(loaded.address("k")), loaded


class Limit:
    """A kernel that shows what the machine does at most: so much for each of its turns."""

    def __init__(
        self, text: str, target: Target, memory: torch.Tensor, turns: int, each: float
    ) -> None:
        self.function, self._keep = kernel_of(text, target)
        self.memory, self.turns, self.work = memory, turns, turns * each / 1e9

    def run(self, _: object = None) -> None:
        """Take all turns, on this thread."""
        self.function(self.memory.data_ptr(), 0, self.turns)

    def on(self, threads: int) -> Callable[[], object]:
        """What takes all turns on each of so many threads, at once."""
        if threads == 1:
            return self.run
        pool = ThreadPoolExecutor(threads)
        return lambda: list(pool.map(self.run, range(threads)))

    def once(self) -> float:
        """Billions a second of a run on this thread."""
        start = time.thread_time()
        self.run()
        return self.work / (time.thread_time() - start)

    def rate(self) -> float:
        """The same of the best of some runs."""
        return max(self.once() for _ in range(7))


MATRIX_LOOP = """kernel.func @k(%p: !kernel.ptr<bf16>, %begin: index, %end: index)
    attributes {target = "cpu"} {
  %room = kernel.scratch {count = 1024 : i64} : !kernel.ptr<f32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %far = arith.constant 8192 : index
  %depth = arith.constant 256 : index
  %step = arith.constant 4096 : index
  %rows = arith.constant 32 : index
  kernel.for %i = %begin to %end step %one {
    kernel.dot_rows %p, %zero, %depth, %rows, %p, %far, %step, %room, %depth
        {tiles = 2 : i64, columns = 32 : i64} : (!kernel.ptr<bf16>, index, index, index,
        !kernel.ptr<bf16>, index, index, !kernel.ptr<f32>, index)
    kernel.yield
  }
  kernel.return }"""
"""Products of 32 rows with 32 columns, 256 terms deep, of what stays in the first-level cache."""


def matrix_limit(target: Target, tiles: int = TILES) -> Limit:
    """Operations of registers of whole tiles."""
    memory = torch.zeros(1 << 15, dtype=torch.bfloat16)
    return Limit(MATRIX_LOOP, target, memory, tiles, 2 * 32 * 32 * 256)


WATCHED = 200
"""Tiles of a loop that tells whether the machine is quiet: a tenth of a millisecond."""


def watch(target: Target) -> Callable[[], float]:
    """What gives this core's rate of products, by registers of whole tiles where it has such: these
    are what others slow down most."""
    if "amx-bf16" in target.features.sets:
        loop = matrix_limit(target, WATCHED)
    else:
        loop = limits(target)[0]
        loop.turns, loop.work = TURNS // 64, loop.work / 64
    return loop.once


def limits(target: Target, pairs: bool = False) -> tuple[Limit, Limit]:
    """Operations in registers, of f32 or of pairs of bf16, and bytes that are read."""
    lanes, sums = target.vector_bits // 32, ACCUMULATORS[target.vector_bits]
    vector, names = f"vector<{lanes}xf32>", [f"%c{k}" for k in range(sums)]
    types = ", ".join([vector] * sums)
    carried = ", ".join(f"{n} = %z" for n in names)
    results = ", ".join(f"%r{k}" for k in range(sums))

    wide = f"vector<{2 * lanes}xbf16>"

    def loop(step: int, body: list[str], one: str) -> str:
        total = "\n".join(
            f"  %s{k} = arith.addf {'%r0' if not k else f'%s{k - 1}'}, %r{k} : {vector}"
            for k in range(sums)
        )
        return f"""kernel.func @k(%p: !kernel.ptr<f32>, %begin: index, %end: index)
    attributes {{target = "cpu", outputs = array<i64: 0>}} {{
  %z = arith.constant dense<0.0> : {vector}
  %one = arith.constant dense<1.0> : {one}
  %c = arith.constant {step} : index
  {results} = kernel.for %i = %begin to %end step %c iter_args({carried}) -> ({types}) {{
{chr(10).join(body)}
    kernel.yield {", ".join(f"%n{k}" for k in range(sums))} : {types}
  }}
{total}
  %zero = arith.constant 0 : index
  kernel.store %s{sums - 1}, %p[%zero] : {vector}
  kernel.return }}"""

    fma = [f"    %n{k} = math.fma %one, %one, %c{k} : {vector}" for k in range(sums)]
    if pairs:
        fma = [f"    %n{k} = kernel.dot_lanes %one, %one, %c{k} : ({wide}, {wide}, {vector})"
               f" -> {vector}" for k in range(sums)]  # fmt: skip
    reads = [
        f"    %o{k} = arith.constant {k * lanes} : index\n    %a{k} = arith.addi %i, %o{k} : index"
        f"\n    %l{k} = kernel.load %p[%a{k}] : {vector}"
        f"\n    %n{k} = arith.addf %c{k}, %l{k} : {vector}"
        for k in range(sums)
    ]
    memory = torch.ones(READ_BYTES // 4)
    step = sums * lanes
    count = memory.numel() // step * step
    return (
        Limit(loop(1, fma, wide if pairs else vector), target, memory, TURNS,
              sums * lanes * (4 if pairs else 2)),
        Limit(loop(step, reads, vector), target, memory, count, 4),
    )  # fmt: skip


def _packed_onednn(x: torch.Tensor, weight: torch.Tensor) -> Callable[[], object]:
    """oneDNN's product with a weight that it packed, or ATen's where torch has none."""
    if not torch.backends.mkldnn.is_available():
        return lambda: torch.nn.functional.linear(x, weight)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, x.shape[0])
    return lambda: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")


def cut_panels(weight: torch.Tensor) -> torch.Tensor:
    """The three parts of a weight, each in panels of 16 columns and an even number of these."""
    columns, inner = weight.shape
    rest, parts = torch.nn.functional.pad(weight, (0, 0, 0, -columns % 32)), []
    for _ in range(3):
        parts.append(rest.bfloat16())
        rest = rest - parts[-1].float()
    every = torch.stack(parts).reshape(3, -1, 16, inner // 2, 2)
    return every.transpose(2, 3).contiguous()


def measure(
    shape: tuple[int, int, int], element: str, rounds: int, entries: str, target: Target,
    limit: Callable[[], object], cut: bool = True, steady: Steady | None = None,
) -> dict[str, list[float]]:  # fmt: skip
    """Seconds of each way, and of the limit, round by round. cut: f32 is cut into parts where the
    processor's figures say that it is. steady: what takes samples."""
    rows, inner, columns = shape
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[element]
    x, weight = torch.randn(rows, inner).to(dtype), torch.randn(columns, inner).to(dtype)
    bias, other = torch.randn(columns), torch.randn(rows, columns)
    panel, group = form = panels_of(target, element, rows)
    whole = torch.nn.functional.pad(weight, (0, 0, 0, -columns % panel))
    panels = whole.reshape(-1, panel, inner // group, group).transpose(1, 2).contiguous()
    out = torch.empty(rows, columns, dtype=dtype)
    parts = [cut and element == "f32" and multiplies_parts(shape, f32, target, frozen=packed)
             for packed in (False, True)]  # fmt: skip
    if parts[True]:
        panels, form = cut_panels(weight), (16, 2)
    plain, frozen, fused = (
        built(product(shape, element, packed, epilogue, entries, form, parts[packed]), target)
        for packed, epilogue in ((False, False), (True, False), (True, True))
    )
    # One thread's own time, so that other processes count for little.
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    exact = x.double() @ weight.double().t()
    for each in (plain(x, weight, bias, other), frozen(x, panels, bias, other)):
        got = each[0] if isinstance(each, list | tuple) else each
        assert (got.double() - exact).abs().max() < (0.02 if element == "f32" else 2.0)
    ways: dict[str, Callable[[], object]] = {
        "ATen": lambda: torch.mm(x, weight.t(), out=out),
        "irc": lambda: plain(x, weight, bias, other),
        "oneDNN": _packed_onednn(x, weight),
        "frozen": lambda: frozen(x, panels, bias, other),
        "fused": lambda: fused(x, panels, bias, other),
    }
    count = max(1, int(4e8 / (rows * inner * columns)))
    times: dict[str, list[float]] = {name: [] for name in (*ways, "limit")}

    def seconds(call: Callable[[], object], count: int) -> float:
        start = clock()
        for _ in range(count):
            call()
        return (clock() - start) / count

    for _ in range(rounds + 2):
        for name, call, calls in (("limit", limit, 1), *((n, c, count) for n, c in ways.items())):
            if steady is None:
                times[name].append(seconds(call, calls))
            else:
                take = functools.partial(seconds, call, calls)
                times[name].append(steady.sample(take))
    return {name: each[2:] for name, each in times.items()}


def shape_of(text: str) -> tuple[int, int, int]:
    """Rows, inner and columns of `512x768x4`."""
    rows, inner, columns = map(int, text.split("x"))
    return rows, inner, columns


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--inner", type=int, help="only shapes with this size")
    parser.add_argument("--element", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--schedule", default="", help="entries of the products' schedules")
    parser.add_argument("--shapes", type=shape_of, nargs="*", help="only these, in place of all")
    parser.add_argument("--target", default="host", help="as avx2: what irc's code may use")
    parser.add_argument("--whole", action="store_true", help="f32 is not cut into parts")
    parser.add_argument("--steady", type=int, default=0, help="attempts at a quiet sample")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.set_num_threads(options.threads)
    target = attrs.evolve(Target.host(), threads=options.threads)
    if options.target != "host":
        target = evolve(target, processor=as_target(options.target).processor)
    print_load()
    limit, reads = limits(target)
    read = reads.rate()
    print(f"threads {options.threads}; one core: {limit.rate():.1f} GFLOP/s of f32, "
          f"reads {read:.1f} GB/s")  # fmt: skip
    panel, group = panels_of(target, options.element)
    if group > 1 and panel == 16:
        limit = matrix_limit(target)
        print(f"one core: {limit.rate():.1f} GFLOP/s of {options.element} by registers of whole "
              "tiles")  # fmt: skip
    elif group > 1:
        limit = limits(target, pairs=True)[0]
        print(f"one core: {limit.rate():.1f} GFLOP/s of pairs of {options.element}")
    lines, most, steady = [], limit.on(options.threads), None
    if options.steady:
        steady = Steady(watch(target), options.steady)
    every = [(rows, *sizes) for rows in options.rows for sizes in SIZES
             if options.inner in (None, sizes[0])]  # fmt: skip
    for shape in options.shapes or every:
        rows, inner, columns = shape
        times = measure(shape, options.element, options.rounds, options.schedule, target, most,
                        not options.whole, steady)  # fmt: skip
        operations = 2 * rows * inner * columns / 1e9
        # As many operations of the limit, in the time that they would take.
        share = operations / (limit.work * options.threads)
        times["limit"] = [seconds * share for seconds in times["limit"]]

        def ratio(top: str, bottom: str, times: Any = times) -> str:
            pairs = zip(times[top], times[bottom], strict=True)
            return f"{statistics.median(a / b for a, b in pairs):.2f}"

        names = ("limit", "ATen", "irc", "oneDNN", "frozen", "fused")
        size = inner * columns * (4 if options.element == "f32" else 2)
        added = 1 + 4 * rows * columns / (read * 1e9) / statistics.median(times["frozen"])
        lines.append([
            *map(str, shape),
            *(f"{operations / statistics.median(times[name]):.1f}" for name in names),
            *(ratio("limit", name) for name in names[1:-1]),
            f"{size / statistics.median(times['frozen']) / 1e9 / read:.2f}",
            ratio("ATen", "irc"), ratio("oneDNN", "frozen"), ratio("fused", "frozen"),
            f"{added:.2f}",
        ])  # fmt: skip
    head = ["rows", "inner", "columns", "limit", "ATen", "irc", "oneDNN", "frozen", "fused",
            "ATen/limit", "irc/limit", "oneDNN/limit", "frozen/limit", "read", "ATen:irc",
            "oneDNN:frozen", "fused:frozen", "least"]  # fmt: skip
    print(table(head, lines))
    if steady is not None:
        print(f"{steady.disturbed} of {steady.taken} samples disturbed")
    print_load()


if __name__ == "__main__":
    main()
