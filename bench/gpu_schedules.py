"""Times gpu kernels under many schedules, for the rules of `irc.passes.kernel.gpu.schedule`.

    python -m bench.gpu_schedules [--only softmax] [--processes 14] [--json out.json]

Each program of a family (rows, columns, pointwise, transposed) is formed with every schedule of a
grid around what a GPU can hold, compiled in several processes first, checked against the default
schedule's values and timed as replays of a CUDA graph. A line a program: the default's time, and
the fastest schedules as `tile/warps`, where a tile is `rows x points` and `loop` follows one that
is walked over the row.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import multiprocessing
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import torch

from bench.gpu_kernels import irc_call, lp, reduce, tensor
from bench.gpu_timing import recorded, replayed
from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.core import Operation
from irc.passes.kernel.gpu.form import form_gpu_kernel
from irc.passes.kernel.gpu.schedule import changed, default_schedule

CALLS_PER_GRAPH = 10
ROUNDS = 5
WARPS = (1, 2, 4, 8, 16, 32)
Setting = dict[str, Any]


@attrs.frozen
class Family:
    """A program at one size, its arguments' shapes, and the schedules to try."""

    name: str
    program: Any
    shapes: Sequence[tuple[int, ...]]
    dtype: torch.dtype
    settings: list[Setting]


def rows(points: int, count: int, heavy: bool) -> Iterator[Setting]:
    """Schedules for `count` rows of `points`; `heavy`: several arrays of a row in registers."""
    whole = 1 << (points - 1).bit_length()
    for x in (1, 2, 4, 8, 16, 32, 64):
        tile = x * whole
        if 512 <= tile <= 65536 and (x == 1 or tile <= 4096) and x * 128 <= count:
            for warps in WARPS:
                if 4 <= tile // (32 * warps) <= (32 if heavy else 64):
                    yield {"x_block": x, "r_block": whole, "persistent": True, "num_warps": warps}
    for tile in (2048, 4096, 8192):
        if tile < whole and whole >= 8192:
            for warps in (4, 8, 16, 32):
                if 4 <= tile // (32 * warps) <= 16:
                    yield {"x_block": 1, "r_block": tile, "num_warps": warps}


def columns(points: int) -> Iterator[Setting]:
    """Schedules for sums of `points` along a strided axis."""
    for x in (16, 32, 64, 128, 256):
        for tile in (1024, 2048, 4096, 8192):
            r = tile // x
            if r <= points:
                for warps in (2, 4, 8, 16):
                    if 4 <= tile // (32 * warps) <= 32:
                        whole = {"persistent": True} if r >= points else {}
                        yield {"x_block": x, "r_block": r, "num_warps": warps, **whole}


def kept_columns(points: int) -> Iterator[Setting]:
    """Schedules for columns of `points` that are read, combined and written."""
    whole = 1 << (points - 1).bit_length()
    for x in (8, 16, 32, 64):
        tile = x * whole
        for warps in (4, 8, 16, 32):
            if tile <= 65536 and 8 <= tile // (32 * warps) <= 64:
                yield {"x_block": x, "r_block": whole, "persistent": True, "num_warps": warps}
        for tile in (2048, 4096, 8192):
            r = tile // x
            for warps in (4, 8, 16):
                if r < whole and 8 <= tile // (32 * warps) <= 32:
                    yield {"x_block": x, "r_block": r, "num_warps": warps}


def pointwise() -> Iterator[Setting]:
    """Schedules for one tile of points."""
    for x in (512, 1024, 2048, 4096):
        for warps in (2, 4, 8):
            if 4 <= x // (32 * warps) <= 32:
                yield {"x_block": x, "num_warps": warps}


def transposed() -> Iterator[Setting]:
    """Schedules for a square tile."""
    for x in (32, 64):
        for warps in (2, 4, 8, 16):
            if x * x // (32 * warps) <= 32:
                yield {"x_block": x, "num_warps": warps}


def families() -> list[Family]:
    """Every program with its schedules."""
    made: list[Family] = []
    f32, bf16 = torch.float32, torch.bfloat16

    def add(name: str, program: Any, shapes: Any, dtype: Any, settings: Iterator[Setting]) -> None:
        made.append(Family(name, program, shapes, dtype, list(settings)))

    lengths = (64, 256, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
    for kind, dtype in ((T.f32, f32), (T.bf16, bf16)):
        for m in lengths:
            n = min(131072, (1 << 25) // m)
            add(f"softmax {kind} {n}x{m}", lp.softmax(n, m, kind), [(n, m)], dtype,
                rows(m, n, False))  # fmt: skip
        add(f"softmax {kind} 8192x1024", lp.softmax(8192, 1024, kind), [(8192, 1024)], dtype,
            rows(1024, 8192, False))  # fmt: skip
        add(f"gelu {kind}", lp.pointwise(8192, 4096, kind), [(8192, 4096)], dtype, pointwise())
        for n, m in ((32768, 256), (8192, 1024), (8192, 4096), (1024, 32768)):
            program = lp.lone_reduce([n, m], [1], [reduce("sum")], [tensor(n)], kind)
            add(f"row_sum {kind} {n}x{m}", program, [(n, m)], dtype, rows(m, n, False))
        for shape in ((1024, 16384), (64, 128, 768), (8192, 4096)):
            kept, red = [*shape[:-2], shape[-1]], [len(shape) - 2]
            program = lp.lone_reduce(shape, red, [reduce("sum")], [tensor(*kept)], kind)
            label = "x".join(map(str, shape))
            add(f"column_sum {kind} {label}", program, [shape], dtype, columns(shape[-2]))
        for n, m in ((32768, 256), (8192, 768), (16384, 1024), (8192, 4096)):
            across, along = (1, n), (m, 1)
            add(f"softmax columns {kind} {m}x{n}", lp.softmax(n, m, kind, across, across), [(m, n)],
                dtype, kept_columns(m))  # fmt: skip
            add(f"softmax turned {kind} {n}x{m}", lp.softmax(n, m, kind, along, across), [(n, m)],
                dtype, kept_columns(m))  # fmt: skip
    for n, m in ((32768, 256), (8192, 768), (8192, 1024), (8192, 4096), (4096, 8192),
                 (2048, 16384), (1024, 32768)):  # fmt: skip
        add(f"layer_norm {n}x{m}", lp.layer_norm(n, m), [(n, m), (m,), (m,)], f32,
            rows(m, n, True))  # fmt: skip
        if m in (768, 4096, 16384, 32768):
            add(f"layer_norm_backward {n}x{m}", lp.layer_norm_backward(n, m),
                [(n, m), (n, m), (m,), (n,), (n,)], f32, rows(m, n, True))  # fmt: skip
    for m in (1024, 4096):
        kinds = [tensor(8192, element=T.i64)]
        program = lp.lone_reduce([8192, m], [1], [reduce("argmax")], kinds)
        add(f"argmax 8192x{m}", program, [(8192, m)], f32, rows(m, 8192, False))
        add(f"cumsum 8192x{m}", lp.scanned(8192, m, "sum"), [(8192, m)], f32, rows(m, 8192, True))
    add("transpose_add 8192x4096", lp.transpose_add(8192, 4096), [(8192, 4096), (4096, 8192)], f32,
        transposed())  # fmt: skip
    return made


def schedule_of(op: Operation, setting: Setting) -> loop.ScheduleAttr:
    """The schedule of a setting: the default one where it says nothing."""
    entries = {k: A.TRUE if v is True else A.IntegerAttr(v) for k, v in setting.items()}
    return changed(default_schedule(op), **entries)


def label_of(setting: Setting) -> str:
    """A setting in a few letters."""
    tile = str(setting["x_block"])
    if "r_block" in setting:
        tile += f"x{setting['r_block']}" + ("" if "persistent" in setting else "loop")
    return f"{tile}/{setting['num_warps']}"


def compile_one(source: str, signature: dict[str, str], options: dict[str, Any]) -> str:
    """Fill Triton's cache with one kernel; gives an error's text or ''."""
    dtypes = {"*fp32": torch.float32, "*bf16": torch.bfloat16, "*i64": torch.int64}
    try:
        function = runtime.load(source).k
        function.warmup(*[dtypes[s] for s in signature.values()], grid=(1,), **options)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


def compile_all(chosen: Sequence[Family], processes: int) -> int:
    """Compile every kernel in `processes` processes; gives how many failed."""
    jobs = {}
    for family in chosen:
        for setting in (None, *family.settings):
            schedule = None if setting is None else schedule_of(family.program.op, setting)
            func = form_gpu_kernel(family.program.op, schedule, "k")
            options = runtime.supported_options(runtime.launch_options(func))
            key = emit_kernel(func), tuple(runtime.signature_of(func).items()), str(options)
            jobs[key] = options
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=context) as pool:
        futures = [pool.submit(compile_one, s, dict(g), o) for (s, g, _), o in jobs.items()]
        errors = [f.result() for f in futures]
    for error in sorted({e for e in errors if e}):
        print(f"  {errors.count(error)} failed: {error}")
    return sum(map(bool, errors))


def timed(call: Callable[[], object]) -> float:
    """Microseconds a call, the median of replays of a graph of CALLS_PER_GRAPH."""
    graph = recorded(call, CALLS_PER_GRAPH)
    times = [replayed(graph, CALLS_PER_GRAPH) for _ in range(ROUNDS + 1)]
    return statistics.median(times[1:])


@attrs.frozen
class _Case:
    """What `irc_call` wants of a case."""

    program: Any
    args: Sequence[torch.Tensor]


def measure(family: Family) -> dict[str, Any]:
    """The times of a family's schedules; None for one that failed."""
    args = [torch.randn(s, device="cuda").to(family.dtype) for s in family.shapes]
    if "softmax columns" in family.name:
        args = [args[0].t()]
    case = _Case(family.program, args)
    call, expected, facts = irc_call(case)
    default = timed(call)
    found: dict[str, float | None] = {}
    for setting in family.settings:
        try:
            call, outputs, _ = irc_call(case, schedule_of(family.program.op, setting))
            call()
            for ours, theirs in zip(outputs, expected, strict=True):
                torch.testing.assert_close(ours.double(), theirs.double(), rtol=1e-2, atol=1e-2)
            found[label_of(setting)] = timed(call)
        except Exception as error:
            print(
                f"  {family.name} {label_of(setting)}: {type(error).__name__}: {str(error)[:150]}"
            )
            found[label_of(setting)] = None
    size = sum(t.numel() * t.element_size() for t in (*args, *expected))
    return {"case": family.name, "bytes": size, "default_us": default, "kernel": facts,
            "us": found}  # fmt: skip


def main() -> None:
    """Compile, time and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--json", default="", help="write all times to this file too")
    options = parser.parse_args()
    torch.manual_seed(0)
    chosen = [f for f in families() if options.only in f.name]
    compile_all(chosen, options.processes)
    results = []
    for family in chosen:
        found = measure(family)
        results.append(found)
        ranked = sorted((t, s) for s, t in found["us"].items() if t is not None)
        best = "  ".join(f"{s} {t:.1f}" for t, s in ranked[:5])
        rate = found["bytes"] / ranked[0][0] / 1e6 if ranked else 0.0
        print(f"{family.name:28}{found['default_us']:8.1f} | {best} | {rate:.2f} TB/s", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=0))


if __name__ == "__main__":
    main()
