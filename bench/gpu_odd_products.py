"""Products of rows that aren't aligned, on a GPU: the library as it is, padded, and irc's kernels.

    python -m bench.gpu_odd_products [--only 50257] [--rounds 5] [--seconds 150]

For each shape: cuBLAS as it is; cuBLAS on factors that are padded to multiples of 8, with what
ATen's copies take that pad each factor and cut the result; irc's kernel by default and by the
schedules beside it. Microseconds as `bench.gpu_products` takes them. What the cost model says of
each way (`irc.analysis.product_ways`) was fitted to these.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from typing import Any

import torch

from bench import gpu_products
from bench.gpu_products import CALLS, Product, Setting, Shape, compile_all, measure, tiles
from bench.gpu_timing import recorded, replayed

LASTING = "128x256x64 8 3 programs=132"
#: Schedules beside the default: of large results, of small ones, of factors with odd rows, of deep
#: products.
LARGE = (
    LASTING, f"{LASTING} flat=true", f"{LASTING} access=descriptors", "128x256x64 8 3",
    f"{LASTING} group_m=16 access=descriptors", "128x128x64 4 3",
)  # fmt: skip
SMALL = ("128x128x64 4 3", "64x128x64 4 4", "128x64x64 4 4", "64x64x64 4 5")
LOADS = ("128x64x64 4 3", "128x128x64 4 3", "64x128x64 4 4", "128x256x64 8 3", "256x128x64 8 3")
DEEP = (
    "128x256x64 8 3", "128x256x64 8 3 split_k=4", "128x256x64 8 3 split_k=5",
    "128x256x64 8 3 split_k=11", "128x256x64 8 3 split_k=16", "128x128x64 4 3 split_k=8",
)  # fmt: skip
_settings: dict[Product, list[Setting]] = {}


def shapes() -> list[Shape]:
    """Heads of language models, both operand orders, and their gradients' products."""
    made: list[Shape] = []

    def add(schedules: Sequence[str], name: str, m: int, n: int, k: int, **more: Any) -> None:
        product = Product(m, n, k, **more)
        _settings[product] = [{}, *tiles(*schedules)]
        made.append(Shape("odd", f"{m}x{n}x{k}{name}", product))

    for m, n in ((2048, 50257), (4096, 50257), (8192, 30523), (8192, 30522), (8192, 30524),
                 (8192, 30528)):  # fmt: skip
        add(LARGE, " weight", m, n, 768, b_strides=(1, 768))
    for m, n in ((256, 50257), (4096, 1001), (512, 1001)):
        add(SMALL, " weight", m, n, 768, b_strides=(1, 768))
    for m, n, k in ((4096, 50257, 768), (8192, 30523, 768), (2048, 2047, 2048)):
        add(LOADS, "", m, n, k)
    add(LOADS, " weight", 2048, 2048, 2047, b_strides=(1, 2047))
    add(DEEP, " gradient", 4096, 768, 50257)
    add(DEEP, " gradient, rows apart", 4096, 768, 50257, a_strides=(50264, 1))
    add(LOADS, " gradient of a weight", 50257, 768, 4096, a_strides=(1, 50257))
    add(LOADS, " gradient of a weight, rows apart", 50257, 768, 4096, a_strides=(1, 50264))
    add(DEEP, " weight", 512, 768, 30522, b_strides=(1, 30522))
    add(LOADS, "", 8192, 768, 30522, dtype=torch.float16)
    return made


def padded(product: Product) -> dict[str, float]:
    """Microseconds of the product of aligned sizes, of padding each factor and cutting the result,
    where these are needed."""
    m, n, k = (-(-size // 8) * 8 for size in (product.m, product.n, product.k))

    def factor(strides: Sequence[int] | None, rows: int, columns: int) -> torch.Tensor:
        if strides is not None and strides[0] == 1:
            return torch.randn(columns, rows, device="cuda").to(product.dtype).t()
        return torch.randn(rows, columns, device="cuda").to(product.dtype)

    a, b = factor(product.a_strides, m, k), factor(product.b_strides, k, n)
    y = torch.empty(m, n, device="cuda", dtype=product.dtype)
    rest = torch.empty(product.m, product.n, device="cuda", dtype=product.dtype)
    left, right = product.arguments("cuda")
    calls = {"product": lambda: torch.mm(a, b, out=y)}
    if rest.shape != y.shape:
        calls["cut"] = lambda: rest.copy_(y[: product.m, : product.n])
    if left.shape != a.shape:
        calls["pad left"] = lambda: a[: product.m, : product.k].copy_(left)
    if right.shape != b.shape:
        calls["pad right"] = lambda: b[: product.k, : product.n].copy_(right)
    graphs = {name: recorded(call, CALLS) for name, call in calls.items()}
    return {name: min(replayed(g, CALLS) for _ in range(5)) for name, g in graphs.items()}


def main() -> None:
    """Compile, time and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--seconds", type=float, default=3600, help="begin no shape after them")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.manual_seed(0)
    gpu_products.settings_of = lambda shape: _settings[shape.product]
    chosen, start = [s for s in shapes() if options.only in s.name], time.time()
    compile_all(chosen, options.processes)
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    for shape in chosen:
        if time.time() - start > options.seconds:
            print(f"{shape.name}: no time left")
            continue
        row, ways = measure(shape, options.rounds), padded(shape.product)
        parts = ", ".join(f"{name} {us:.1f}" for name, us in ways.items())
        print(f"{shape.name}: library {row['cublas']:.1f}; padded {sum(ways.values()):.1f} "
              f"({parts}); irc {row['ours']:.1f} ({row['best']})")  # fmt: skip
        ranked = sorted(row["us"].items(), key=lambda item: item[1])
        print("    " + "; ".join(f"{label} {us:.1f}" for label, us in ranked), flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
