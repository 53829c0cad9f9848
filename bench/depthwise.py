"""Depthwise convolutions of f32 as reductions with sums of several places in registers (the keys
`jam_axis` and `jam_points` of a schedule), against oneDNN's on packed weights, one thread.

    OMP_NUM_THREADS=1 python -m bench.depthwise [--rounds 30] [--points 8 14]

For each convolution of ConvNext-tiny and some of MobileNet-V2 (4 images, channels innermost, no
bias): least milliseconds of the thread's time, billions of operations a second (those outside of an
image counted, too), and the median of oneDNN's time over ours, calls in turn in one process.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

import irc
from bench.common import print_load, table
from irc.ir.passes import PassManager
from irc.pipeline import stages

#: Channels, window, stride and the image's size.
LAYERS = [
    (96, 7, 1, 56), (192, 7, 1, 28), (384, 7, 1, 14), (768, 7, 1, 7), (32, 3, 1, 112),
    (96, 3, 2, 112), (144, 3, 1, 56), (192, 3, 1, 28), (576, 3, 1, 14), (576, 3, 2, 14),
    (960, 3, 1, 7),
]  # fmt: skip
IMAGES = 4


def typed(*sizes: int) -> str:
    """The type of a dense array, as text."""
    strides = torch.empty(sizes, device="meta").stride()
    return f"tensor<{list(sizes)} x f32, strides {list(strides)}>"


def program(channels: int, window: int, stride: int, size: int, points: int) -> str:
    """The convolution: a row of the result is a point of the parallel space."""
    around = window // 2
    out = (size + 2 * around - window) // stride + 1
    x, w = typed(IMAGES, size, size, channels), typed(window, window, channels)
    y = typed(IMAGES, out, out, channels)
    row, column = (f"{axis}*{stride} + {tap} - {around}" for axis, tap in ("pr", "qs"))
    return f"""
func.func @main(%x: {x}, %w: {w}) -> {y} attributes {{level = "loop"}} {{
  %y = loop.group (n: {IMAGES}, p: {out}) schedule #loop.schedule<cpu, collapse = [],
      outer = ["n", "p"], vector_axis = "", scratch = 65536> {{
  %s = loop.compute par(n: {IMAGES}, p: {out}, q: {out}, c: {channels})
      red(r: {window}, s: {window}) -> reduce(sum, f32) schedule #loop.schedule<cpu,
      collapse = [], vector_axis = "c", lanes = 16, copies = 1, tail = "mask", spans = 5,
      order = ["c", "q", "r", "s"], written_out = ["s"], jam_axis = "q", jam_points = {points},
      chunks = [], partial = []> {{
    %row = loop.index {{expression = #sym<{row}>}} : index
    %column = loop.index {{expression = #sym<{column}>}} : index
    %low = arith.constant 0 : index
    %high = arith.constant {size} : index
    %c0 = arith.cmpi sge, %row, %low : index
    %c1 = arith.cmpi slt, %row, %high : index
    %c2 = arith.cmpi sge, %column, %low : index
    %c3 = arith.cmpi slt, %column, %high : index
    %c4 = arith.andi %c0, %c1 : i1
    %c5 = arith.andi %c2, %c3 : i1
    %inside = arith.andi %c4, %c5 : i1
    %zero = arith.constant 0.0 : f32
    %a = loop.read %x[n, {row}, {column}, c] (where %inside else %zero) : f32
    %b = loop.read %w[r, s, c] : f32
    %m = arith.mulf %a, %b : f32
    loop.yield %m
  }} : {y}
  loop.yield %s
  }} : {y}
  return %y : {y}
}}
"""


def built(layer: tuple[int, int, int, int], points: int) -> Any:
    """The program, ready to run."""
    module = irc.parse(program(*layer, points))
    for stage in ("loop-to-kernel", "kernel-to-host"):
        PassManager.parse(stages("llvm")[stage]).run(module)
    return irc.runtime.build(module)


def measure(layer: tuple[int, int, int, int], choices: list[int], rounds: int) -> list[str]:
    """A line of the table."""
    channels, window, stride, size = layer
    around = window // 2
    torch.manual_seed(0)
    x, w = torch.randn(IMAGES, size, size, channels), torch.randn(window, window, channels)
    image, weight = x.permute(0, 3, 1, 2), w.permute(2, 0, 1)[:, None].contiguous()
    numbers = ([around] * 2, [stride] * 2, [1, 1], channels)
    library = torch.ops.mkldnn
    packed = library._reorder_convolution_weight(weight, *numbers, list(image.shape))
    exact = functional.conv2d(
        image.double(), weight.double(), None, stride, around, 1, channels
    ).permute(0, 2, 3, 1)
    calls: list[Callable[[], Any]] = [
        lambda: library._convolution_pointwise(image, packed, None, *numbers, "none", [], "")
    ]
    for points in choices:
        executable = built(layer, points)
        (result,) = executable(x, w)
        torch.testing.assert_close(result.double(), exact, rtol=0, atol=1e-4)
        calls.append(lambda run=executable: run(x, w))  # type: ignore[misc]
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, spent in zip(calls, times, strict=True):
            start = time.thread_time()
            call()
            spent.append(time.thread_time() - start)
    work = 2e-9 * exact.numel() * window**2
    step = f"/{stride}" if stride > 1 else ""
    line = [f"{channels}, {window}x{window}{step}, {size}"]
    for spent in times:
        ratio = statistics.median(a / b for a, b in zip(times[0], spent, strict=True))
        line += [f"{min(spent) * 1e3:.3f}", f"{work / min(spent):.0f}"]
        line += [f"{ratio:.2f}"] if spent is not times[0] else []
    return line


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--points", type=int, nargs="+", default=[8, 14])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print_load()
    head = ["layer", "oneDNN ms", "GFLOP/s"]
    for points in arguments.points:
        head += [f"{points} places ms", "GFLOP/s", "oneDNN/ours"]
    print(table(head, [measure(each, arguments.points, arguments.rounds) for each in LAYERS]))


if __name__ == "__main__":
    main()
