"""Times irc's own products on a GPU against cuBLAS (torch.mm and its like), on a GPU.

    python -m bench.gpu_products [--epilogues] [--only gpt] [--rounds 15] [--json out.json]

Each shape is a loop-level contraction, formed by every schedule of a list, compiled in several
processes first, checked against cuBLAS and timed as replays of a CUDA graph whose calls go through
several copies of the arguments, so that weights come from memory as they do in a model. The best
schedule and cuBLAS (with `--epilogues`: torch.compile's max-autotune) then take turns. Printed:
microseconds of both (medians), how often as fast ours is, TFLOP/s and what of the largest cuBLAS
rate that is, bytes over time, and the schedule.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import math
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "codegen" / "triton"))

from contractions import Formed, Launched, Product, formed, launched  # noqa: E402

from bench.common import geometric_mean  # noqa: E402
from bench.gpu_timing import recorded, replayed  # noqa: E402
from irc.analysis.loop import estimate  # noqa: E402
from irc.analysis.multiplied import Multiplied  # noqa: E402
from irc.codegen.triton import runtime  # noqa: E402
from irc.codegen.triton.emitter import emit_kernel  # noqa: E402
from irc.dialects import kernel  # noqa: E402
from irc.ir import attributes as A  # noqa: E402
from irc.passes.kernel.gpu.form import form_gpu_kernel  # noqa: E402
from irc.passes.kernel.gpu.schedule import changed, default_schedule  # noqa: E402
from irc.target import Target  # noqa: E402

CALLS = 10
COLD_BYTES = 200 << 20
F32, F8 = torch.float32, torch.float8_e4m3fn
Setting = dict[str, Any]


@attrs.frozen
class Shape:
    """A product under a name, in a family whose geometric mean is printed. exact: f32 with all of
    its bits."""

    family: str
    name: str
    product: Product
    exact: bool = False


#: Columns and depth of weights that few rows are multiplied by.
DECODED = ((4096, 4096), (11008, 4096), (4096, 11008), (50304, 768), (14336, 4096), (28672, 4096),
           (18944, 3584))  # fmt: skip


def shapes() -> list[Shape]:
    """Square, layers, skinny, batched, transposed, unaligned, and rows of decoding."""
    made: list[Shape] = []

    def add(family: str, m: int, n: int, k: int, weight: bool = True, **more: Any) -> None:
        strides = (1, k) if weight else None  # a layer's weight is [n, k]
        dtype = str(more.get("dtype", "")).removeprefix("torch.").replace("float", "f")
        dtype = dtype.partition("_")[0]
        name = f"{dtype + ' ' if dtype else ''}{m}x{n}x{k}{'' if weight else ' plain'}"
        made.append(Shape(family, name, Product(m, n, k, b_strides=strides, **more)))

    add("square", 4096, 4096, 4096, weight=False)
    add("square", 4096, 4096, 4096)
    for rows in (512, 2048):
        add("layers", rows, 768, 768)
        add("layers", rows, 2304, 768)
        add("layers", rows, 3072, 768)
        add("layers", rows, 768, 3072)
    add("layers", 788, 3072, 768)
    add("layers", 2048, 50257, 768)
    add("unaligned", 2048, 30522, 768)
    add("unaligned", 2048, 30523, 768)
    add("unaligned", 8192, 30523, 768)
    add("unaligned", 8192, 30528, 768)
    add("unaligned", 512, 768, 30522)
    add("skinny", 64, 4096, 4096)
    add("skinny", 8192, 64, 1024)
    add("skinny", 4096, 4096, 4)
    add("skinny", 8192, 1024, 64)
    made.append(Shape("batched", "96x512x512x64", Product(512, 512, 64, batch=96,
                      b_strides=(512 * 64, 1, 64))))  # fmt: skip
    made.append(Shape("batched", "96x512x64x512", Product(512, 64, 512, batch=96)))
    made.append(Shape("transposed", "768x3072x2048 a.t()", Product(768, 3072, 2048,
                      a_strides=(1, 768))))  # fmt: skip
    for n, k in DECODED:
        for rows in (1, 8, 16):
            add("decode", rows, n, k)
    add("dtypes", 2048, 3072, 768, dtype=torch.float16)
    add("dtypes", 2048, 3072, 768, dtype=F32)
    add("dtypes", 2048, 3072, 768, dtype=F8)
    add("dtypes", 4096, 4096, 4096, dtype=F8)
    add("dtypes", 512, 768, 3072, dtype=F8)
    for m, n, k in ((4096, 4096, 4096), (2048, 3072, 768), (2048, 768, 3072), (788, 3072, 768),
                    (512, 3072, 768), (512, 768, 3072), (16, 4096, 4096), (8, 11008, 4096)):
        product = Product(m, n, k, F32, b_strides=(1, k))
        made.append(Shape("exact", f"f32 exact {m}x{n}x{k}", product, exact=True))
    return made


def tiles(*rows: str) -> Iterator[Setting]:
    """Settings of `MxNxK warps stages [key=value ...]`."""
    for row in rows:
        tile, warps, stages, *more = row.split()
        m, n, k = map(int, tile.split("x"))
        setting: Setting = {"tile_m": m, "tile_n": n, "tile_k": k, "num_warps": int(warps),
                            "num_stages": int(stages), "products": "dot"}  # fmt: skip
        for text in more:
            key, _, value = text.partition("=")
            word = value == "true" or value
            setting[key] = int(value) if value.isdigit() else word
        yield setting


LASTING = "128x256x64 8 3 programs=132"
LARGE = ("128x256x64 8 4", LASTING, f"{LASTING} flat=true", f"{LASTING} group_m=16 flat=true",
         "128x128x64 4 3", "128x128x64 8 3")  # fmt: skip
MIDDLE = ("128x128x64 8 3", "128x128x64 4 3", "64x192x64 4 3", "64x192x64 4 5", "256x192x64 8 3",
          "256x144x64 8 4", "128x192x64 8 5", "128x96x64 8 4")  # fmt: skip
SMALL = ("64x128x64 4 4", "128x128x64 8 6", "64x192x64 4 4", "64x192x64 4 6", "64x144x64 4 6",
         "64x96x64 4 4", "64x64x64 4 5", "64x64x128 4 4", "64x64x128 4 6")  # fmt: skip
FEW_ROWS = ("16x64x128 4 3", "16x64x128 4 4", "16x64x128 4 6", "16x64x128 4 8", "16x128x64 8 6",
            "16x64x128 4 4 programs=264 flat=true", "16x64x128 4 3 programs=396 flat=true")
EIGHT_ROWS = ("8x64x128 4 3", "8x64x128 4 4", "8x128x128 8 4")
CUT = ("64x64x64 4 3", "64x64x32 4 3", "64x32x64 4 3", "128x64x32 8 3")
NARROW = ("64x32x128 4 4", "128x32x128 4 4", "128x64x64 4 4", "64x64x64 4 5")
ONE_STEP = ("64x128x64 4 2", "128x128x64 8 2", "64x128x64 4 2 programs=528 flat=true")
FLAT = ("128x128x16 4 2", "64x128x16 4 2", "128x64x16 4 2", "64x64x16 4 1", "128x256x16 8 1")


def settings_of(shape: Shape) -> list[Setting]:
    """The schedules to try, the default one first."""
    product = shape.product
    if shape.exact:
        return exact_settings(product)
    size = product.m * product.n * max(1, product.batch)
    if product.m <= 16:
        rows = [*FEW_ROWS, *(EIGHT_ROWS if product.m <= 8 else ())]
        ordinary = [{"x_block": x, "r_block": r, "num_warps": w, "ordinary": 1} for x, r, w in (
            (1, 4096, 8), (1, 2048, 4), (4, 1024, 4), (8, 1024, 8),
        )]  # fmt: skip
        swapped = () if product.m == 1 else tiles(*(f"{row} products=swapped" for row in rows))
        return [{}, *swapped, *(ordinary if product.m == 1 else ())]
    if product.k <= 16:
        return [{}, *tiles(*FLAT)]
    rows = list(LARGE if size >= 1 << 24 else MIDDLE if size >= 1 << 21 else SMALL)
    if min(product.m, product.n) <= 64:
        rows += NARROW
    if product.k <= 64:
        rows += ONE_STEP
    if size <= 1 << 21 and product.k >= 2048:
        rows += ["64x128x64 4 6 split_k=2", "64x192x64 4 6 split_k=4"]
    if product.k > 1 << 14:
        rows += ["128x256x64 8 3 split_k=11", "128x128x64 4 3 split_k=10"]
    if size >= 1 << 24 and product.k % 8 == 0 and product.dtype is not F32 and not product.batch:
        rows += [f"{row} access=descriptors" for row in (LASTING, f"{LASTING} flat=true")]
    if product.epilogue:
        rows += [f"{row} column_parts=2" for row in rows[:2]]
    if product.n % 8 and product.dtype is not F32:
        rows.append(f"{LASTING + ' flat=true' if size >= 1 << 24 else rows[0]} row_group=1")
    if product.dtype is F8:
        deeper = ({**s, "tile_k": s["tile_k"] * 2} for s in tiles(*dict.fromkeys(rows)))
        described = tiles("256x128x128 8 3 programs=132 flat=true access=descriptors")
        return [{"products": "dot"}, *deeper, *described]
    if product.dtype is not F32:
        return [{}, *tiles(*dict.fromkeys(rows))]
    return [{"precision": "tf32"}, *({**s, "tile_k": s["tile_k"] // 2, "precision": "tf32"}
                                     for s in tiles(*dict.fromkeys(rows)))]  # fmt: skip


def exact_settings(product: Product) -> list[Setting]:
    """Of f32 with all of its bits: as many parts of the depth as the model says, and tiles."""
    gpu = Target.named("sm_90").gpu
    sums = Multiplied(1, product.m, product.n, product.k, 4).exactly(gpu)
    parts = sums.least(gpu).parts
    first: Setting = {} if parts == 1 else {"split_k": parts, "products": sums.products(gpu)}
    if product.m <= 32:
        return [first, {"products": "swapped", "precision": "bf16x6"}]
    return [first, *({**tile, "precision": "bf16x6"} for tile in tiles(*CUT))]


def label_of(setting: Setting) -> str:
    """A setting in a few letters."""
    if "split_k" in setting and "tile_m" not in setting:
        return f"default split_k={setting['split_k']}"
    if "tile_m" not in setting and "ordinary" not in setting:
        return "default"
    if "ordinary" in setting:
        return f"rows {setting['x_block']}x{setting['r_block']}/{setting['num_warps']}"
    text = "x".join(str(setting[f"tile_{d}"]) for d in "mnk")
    text += f"/{setting['num_warps']}/{setting['num_stages']}"
    keys = ("group_m", "programs", "flat", "column_parts", "split_k", "access", "row_group")
    rest = {k: v for k, v in setting.items() if k in keys}
    if setting["products"] != "dot":
        rest["products"] = setting["products"]
    return text + "".join(f" {k}={v}" for k, v in rest.items())


def kernel_of(product: Product, setting: Setting) -> Formed | Launched:
    """The kernels of a product by a setting, which begin as early as they do in programs."""
    key = product, tuple(setting.items())
    if key not in _formed:
        _formed[key] = _kernels(product, setting)
    return _formed[key]


_formed: dict[Any, Formed | Launched] = {}


def _kernels(product: Product, setting: Setting) -> Formed | Launched:
    if "split_k" in setting:
        parts = launched(product.text(), **setting)
        for func, *_ in parts.kernels:
            _overlap(func, product)
        kernels = [(func, emit_kernel(func), *more) for func, _, *more in parts.kernels]
        return attrs.evolve(parts, kernels=kernels)
    made = _one_kernel(product, setting)
    _overlap(made.func, product)
    return attrs.evolve(made, source=emit_kernel(made.func))


def _overlap(func: kernel.KernelFuncOp, product: Product) -> None:
    """Let a kernel begin before the one before it ends, and the next one begin before it ends where
    `overlap-launches` lets that: not where there are many small program instances."""
    func.attributes["early"] = A.UNIT
    gpu, programs = Target.named("sm_90").gpu, estimate(1 if func.grid is None else func.grid)
    (a, b, y), size = product.shapes(), product.dtype.itemsize
    moved = sum(math.prod(shape) for shape in (a, b, y)) * size
    if programs <= gpu.opening_programs or moved >= programs * gpu.opening_bytes:
        func.attributes["opens"] = A.UNIT


def _one_kernel(product: Product, setting: Setting) -> Formed:
    if "ordinary" not in setting:
        return formed(product.text(), **setting)
    made = formed(product.text(), **{"precision": "ieee"})
    # The ordinary schedule of a reduction: no contraction's.
    entries = {k: A.IntegerAttr(v) for k, v in setting.items() if k != "ordinary"}
    schedule = changed(default_schedule(made.op, contract=False), **entries)
    func = form_gpu_kernel(made.op, schedule, "k")
    return Formed(made.op, schedule, func, emit_kernel(func), made.module)


def compile_one(source: str, name: str, signature: dict[str, str], options: dict[str, Any]) -> str:
    """Fill Triton's cache with one kernel; gives an error's text or ''."""
    dtypes = {"*fp32": torch.float32, "*bf16": torch.bfloat16, "*fp16": torch.float16,
              "*fp8e4nv": F8, "*i8": torch.int8}  # fmt: skip
    try:
        function = getattr(runtime.load(source), name)
        function.warmup(*[dtypes[s] for s in signature.values()], grid=(1,), **options)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


def compile_all(chosen: Sequence[Shape], processes: int) -> None:
    """Compile every kernel in several processes, while others are formed."""
    context = multiprocessing.get_context("spawn")
    jobs = []
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=context) as pool:
        for job in _jobs(chosen):
            jobs.append(pool.submit(compile_one, *job))
        errors = [job.result() for job in jobs]
    for error in sorted({e for e in errors if e}):
        print(f"  {errors.count(error)} failed: {error}")


def _jobs(chosen: Sequence[Shape]) -> Iterator[tuple[str, str, dict[str, str], dict[str, Any]]]:
    """Arguments of `compile_one` for every kernel."""
    for shape in chosen:
        for setting in settings_of(shape):
            made = kernel_of(shape.product, setting)
            kernels = [(made.func, made.source)] if isinstance(made, Formed) else [
                (func, source) for func, source, *_ in made.kernels
            ]  # fmt: skip
            for func, source in kernels:
                options = runtime.supported_options(runtime.launch_options(func))
                yield source, func.sym_name, runtime.signature_of(func), options


def copies_of(product: Product) -> list[list[torch.Tensor]]:
    """Arguments in so many copies that they don't stay in the caches."""
    args = product.arguments("cuda")
    size = sum(a.untyped_storage().nbytes() for a in args)
    count = max(1, min(CALLS, COLD_BYTES // size + 1))
    return [args, *([a.clone(memory_format=torch.preserve_format) for a in args]
                    for _ in range(count - 1))]  # fmt: skip


def cycled(call: Callable[..., object], copies: Sequence[Sequence[torch.Tensor]]) -> Any:
    """A CUDA graph of CALLS calls that go through the copies."""
    turn = iter(range(1 << 30))
    return recorded(lambda: call(*copies[next(turn) % len(copies)]), CALLS)


def _appended(
    launch: Callable[..., object], outputs: Sequence[torch.Tensor], *args: torch.Tensor
) -> None:
    launch(*args, *outputs)


def measure(shape: Shape, rounds: int, eager: bool = False) -> dict[str, Any]:
    """Times of all settings, and of the best one and cuBLAS in turns."""
    product, copies = shape.product, copies_of(shape.product)
    peer = peer_of(shape, eager)
    torch.backends.cuda.matmul.allow_tf32 = not shape.exact
    expected: Any = peer(*copies[0])
    scratch = torch.empty_like(expected)
    if product.epilogue:
        expected = _layer(*(a.float() for a in copies[0]))
        theirs = cycled(peer, copies)
    else:
        theirs = cycled(lambda a, b: peer(a, b, out=scratch), copies)
    times: dict[str, float] = {}
    graphs: dict[str, Any] = {}
    held: list[Any] = []  # what graphs write to
    for setting in settings_of(shape):
        label = label_of(setting)
        try:
            made = kernel_of(product, setting)
            if isinstance(made, Launched):
                arrays = made.arrays(copies[0])
                call, output = made.launcher(arrays), arrays[-1]
            else:
                launch = runtime.launcher(made.func, made.source, {})
                tensors, first = made.tensors(copies[0])
                output, call = tensors[first], partial(_appended, launch, tensors[first:])
            call(*copies[0])
            torch.cuda.synchronize()
            off = (output.double() - expected.double()).abs().max() / expected.abs().max()
            if not off < (1e-5 if shape.exact else 1e-2):
                print(f"  {shape.name} {label}: WRONG by {off.item():.2e}", flush=True)
                continue
            graph = cycled(call, copies)
            held += [call, output]
            times[label] = min(replayed(graph, CALLS) for _ in range(4))
            graphs[label] = graph
        except Exception as error:
            print(f"  {shape.name} {label}: {type(error).__name__}: {str(error)[:150]}", flush=True)
    ranked = sorted(times, key=times.__getitem__)
    first = next((label for label in ranked if label.startswith("default")), ranked[0])
    best = {label: list[float]() for label in dict.fromkeys((*ranked[:2], first))}
    library = []
    for _ in range(rounds):
        for label, row in best.items():
            row.append(replayed(graphs[label], CALLS))
        library.append(replayed(theirs, CALLS))
    medians = {label: statistics.median(row) for label, row in best.items()}
    label = min(medians, key=medians.__getitem__)
    return {"shape": shape.name, "family": shape.family, "ours": medians[label], "best": label,
            "default": medians[first], "cublas": statistics.median(library),
            "us": times}  # fmt: skip


#: gelu(sum + bias) * more, as lines of an epilogue.
GELU = (
    "arith.addf %_, %c : f32", "arith.constant 0.70710677 : f32", "arith.mulf %e0, %e1 : f32",
    "math.erf %e2 : f32", "arith.constant 1.0 : f32", "arith.addf %e3, %e4 : f32",
    "arith.constant 0.5 : f32", "arith.mulf %e0, %e6 : f32", "arith.mulf %e7, %e5 : f32",
    "arith.mulf %e8, %r : f32",
)  # fmt: skip


def epilogues() -> list[Shape]:
    """Layers with a bias, gelu and a multiplication behind them."""
    sizes = ((512, 3072, 768), (2048, 3072, 768), (4096, 4096, 4096))
    return [
        Shape("epilogue", f"{m}x{n}x{k} gelu", Product(m, n, k, b_strides=(1, k), epilogue=GELU))
        for m, n, k in sizes
    ]


def _layer(
    a: torch.Tensor, b: torch.Tensor, more: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    return torch.nn.functional.gelu(torch.nn.functional.linear(a, b.t(), bias)) * more


def peer_of(shape: Shape, eager: bool = False) -> Callable[..., object]:
    """What a shape is compared with: cuBLAS, or with an epilogue Inductor's best (or eager mode,
    which needs no tuning)."""
    if shape.product.epilogue and eager:
        return _layer
    if shape.product.epilogue:
        torch._dynamo.reset()
        return torch.compile(_layer, mode="max-autotune-no-cudagraphs")
    if shape.product.dtype is F8:
        one = torch.ones((), device="cuda")
        return partial(_scaled, one)
    return torch.bmm if shape.product.batch else torch.mm


def _scaled(one: torch.Tensor, a: torch.Tensor, b: torch.Tensor, **more: Any) -> torch.Tensor:
    return torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=False, **more)


def limits() -> tuple[float, float]:
    """The largest cuBLAS rate in TFLOP/s, and a copy's bytes in TB/s."""
    rates = []
    for n in (4096, 8192):
        a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        y = torch.empty_like(a)
        graph = recorded(lambda a=a, b=b, y=y: torch.mm(a, b, out=y), 4)
        rates.append(2 * n**3 / min(replayed(graph, 4) for _ in range(6)) / 1e6)
    x = torch.empty(1 << 29, device="cuda", dtype=torch.int8)
    y = torch.empty_like(x)
    graph = recorded(lambda: y.copy_(x), 4)
    return max(rates), 2 * x.numel() / min(replayed(graph, 4) for _ in range(6)) / 1e6


def main() -> None:
    """Compile, time and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="parts of names or families: one,other")
    parser.add_argument("--epilogues", action="store_true", help="against Inductor's best")
    parser.add_argument("--eager", action="store_true", help="epilogues against eager mode")
    parser.add_argument("--seconds", type=float, default=3600, help="begin no shape after them")
    parser.add_argument("--processes", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", default="", help="write all times to this file too")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    every = [*(epilogues() if options.epilogues or options.eager else []),
             *([] if options.epilogues else shapes())]
    only = options.only.split(",")
    chosen = [s for s in every if any(word in s.name or word in s.family for word in only)]
    start = time.time()
    compile_all(chosen, options.processes)
    top, copy = limits()
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}; compiled in "
          f"{time.time() - start:.0f} s; largest cuBLAS rate {top:.0f} TFLOP/s, copy "
          f"{copy:.2f} TB/s")  # fmt: skip
    print(f"{'m x n x k':24}{'cuBLAS':>9}{'ours':>9}{'ratio':>7}{'TFLOP/s':>9}{'of top':>8}"
          f"{'TB/s':>6}{'default':>9}  schedule, and the next ones")  # fmt: skip
    results = []
    for shape in chosen:
        if time.time() - start > options.seconds:
            print(f"{shape.name}: no time left")
            continue
        row = measure(shape, options.rounds, options.eager)
        results.append(row)
        p = shape.product
        work = 2 * p.m * p.n * p.k * max(1, p.batch)
        size = (p.m * p.k + p.k * p.n + p.m * p.n) * max(1, p.batch) * p.dtype.itemsize
        rate = work / row["ours"] / 1e6
        ranked = sorted(row["us"].items(), key=lambda item: item[1])[:4]
        others = "; ".join(f"{k} {v:.1f}" for k, v in ranked if k != row["best"])
        default = row["default"]
        print(f"{shape.name:24}{row['cublas']:9.1f}{row['ours']:9.1f}"
              f"{row['cublas'] / row['ours']:7.2f}{rate:9.0f}{rate / top:8.2f}"
              f"{size / row['ours'] / 1e6:6.2f}{default:9.1f}  {row['best']} ({others})",
              flush=True)  # fmt: skip
    for family in dict.fromkeys(r["family"] for r in results):
        ratios = [r["cublas"] / r["ours"] for r in results if r["family"] == family]
        print(f"{family}: {geometric_mean(ratios):.3f} of cuBLAS's speed, least {min(ratios):.3f}")
    if options.json:
        Path(options.json).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
