"""Depthwise convolutions as reductions with sums of several places in registers (the keys
`jam_axis` and `jam_points` of a schedule), against oneDNN's on packed weights, one thread.

    OMP_NUM_THREADS=1 python -m bench.depthwise [--rounds 30] [--points 8 14] [--ahead 0 1]
                                                [--images 1 4 16]
    OMP_NUM_THREADS=1 python -m bench.depthwise --element bf16 [--rounds 30] [--images 1 4 16]

For each convolution of ConvNext-tiny and some of MobileNet-V2 (channels innermost, no bias, images
in memory of their own with nothing readable around it): least milliseconds of the thread's time,
billions of operations a second (those outside of an image counted, too), and the median of
oneDNN's time over ours, calls in turn in one process. Of f32 the reduction alone, with a schedule
as asked for; of bf16 what a compiled convolution calls, with the weight laid out in each call.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import mmap
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

import irc
from bench.common import print_load, table
from irc.ir.passes import PassContext, PassManager
from irc.ir.types import f32
from irc.pipeline import stages
from irc.target import Target
from irc.target.figures import evolve

#: Channels, window, stride and the image's size.
LAYERS = [
    (96, 7, 1, 56), (192, 7, 1, 28), (384, 7, 1, 14), (768, 7, 1, 7), (32, 3, 1, 112),
    (96, 3, 2, 112), (144, 3, 1, 56), (192, 3, 1, 28), (576, 3, 1, 14), (576, 3, 2, 14),
    (960, 3, 1, 7),
]  # fmt: skip
IMAGES = 4


#: The schedule of the reduction.
SCHEDULE: dict[str, str] = {
    "collapse": "[]", "vector_axis": '"c"', "lanes": "16", "copies": "1", "tail": '"mask"',
    "spans": "5", "order": '["q", "c", "r", "s"]', "written_out": '["s"]', "jam_axis": '"q"',
    "jam_points": "8", "jam_ahead": "1", "chunks": "[]", "partial": "[]",
}  # fmt: skip


def typed(*sizes: int) -> str:
    """The type of a dense array, as text."""
    strides = torch.empty(sizes, device="meta").stride()
    return f"tensor<{list(sizes)} x f32, strides {list(strides)}>"


def window_program(
    channels: int, size: tuple[int, int], taps: tuple[int, int], step: int = 1, apart: int = 1,
    around: int = 1, images: int = IMAGES, **entries: str,
) -> str:  # fmt: skip
    """Sums of windows of images channel by channel, with channels innermost: a row of the result is
    a point of the parallel space. step, apart, around: a convolution's stride, dilation and
    padding; entries: what is otherwise in the schedule."""
    p, q = ((n + 2 * around - apart * (t - 1) - 1) // step + 1
            for n, t in zip(size, taps, strict=True))  # fmt: skip
    chosen = ", ".join(f"{name} = {value}" for name, value in {**SCHEDULE, **entries}.items())
    outer = '"n", "p"' if images > 1 else '"p"'
    x, w, y = typed(images, *size, channels), typed(*taps, channels), typed(images, p, q, channels)
    row, column = (f"{axis}*{step} + {tap}*{apart} - {around}" for axis, tap in ("pr", "qs"))
    return f"""
func.func @main(%x: {x}, %w: {w}) -> {y} attributes {{level = "loop"}} {{
  %y = loop.group (n: {images}, p: {p}) schedule #loop.schedule<cpu, collapse = [],
      outer = [{outer}], vector_axis = "", scratch = 65536> {{
  %s = loop.compute par(n: {images}, p: {p}, q: {q}, c: {channels})
      red(r: {taps[0]}, s: {taps[1]}) -> reduce(sum, f32) schedule #loop.schedule<cpu, {chosen}> {{
    %row = loop.index {{expression = #sym<{row}>}} : index
    %column = loop.index {{expression = #sym<{column}>}} : index
    %low = arith.constant 0 : index
    %high = arith.constant {size[0]} : index
    %wide = arith.constant {size[1]} : index
    %c0 = arith.cmpi sge, %row, %low : index
    %c1 = arith.cmpi slt, %row, %high : index
    %c2 = arith.cmpi sge, %column, %low : index
    %c3 = arith.cmpi slt, %column, %wide : index
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


def alone(values: torch.Tensor) -> torch.Tensor:
    """A dense copy that begins on a page, with pages before and behind it that nobody may read, so
    that what a kernel asks of memory outside of an array takes its time here, too."""
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    bytes_ = values.numel() * values.element_size()
    inside = -(-bytes_ // mmap.PAGESIZE) * mmap.PAGESIZE
    around = 1 << 20
    no_access, anonymous = 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    length = ctypes.c_size_t(inside + 2 * around)
    begin = library.mmap(None, length, no_access, anonymous, -1, ctypes.c_long(0)) + around
    library.mprotect(begin, inside, mmap.PROT_READ | mmap.PROT_WRITE)
    memory = (ctypes.c_char * bytes_).from_address(begin)
    return torch.frombuffer(memory, dtype=values.dtype).view(values.shape).copy_(values)


def built(layer: tuple[int, int, int, int], images: int, points: int, ahead: int) -> Any:
    """The program, ready to run."""
    channels, window, stride, size = layer
    module = irc.parse(window_program(
        channels, (size, size), (window, window), stride, 1, window // 2, images,
        lanes=str(Target.host().lanes(f32)), jam_points=str(points), jam_ahead=str(ahead),
    ))  # fmt: skip
    for stage in ("loop-to-kernel", "kernel-to-host"):
        PassManager.parse(stages("llvm")[stage]).run(module)
    return irc.runtime.build(module)


def compiled_whole(layer: tuple[int, int, int, int], x: torch.Tensor, w: torch.Tensor) -> Any:
    """The convolution as irc compiles it where the processor's figures leave it to nobody else."""
    channels, window, stride, _ = layer

    def call(image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(image, weight, None, stride, window // 2, 1, channels)

    module = irc.trace(call, (x, w))
    features = evolve(Target.host().features, own_pair_windows=(999, 999))
    context = PassContext(target=Target(features, library=("bf16", "f32")))
    for text in stages("llvm").values():
        PassManager.parse(text).run(module, context)
    executable = irc.runtime.build(module)
    if "call_aten" in irc.print_op(module):
        raise AssertionError("the library computes it")
    return executable


def measure(
    layer: tuple[int, int, int, int], images: int, choices: list[tuple[int, int]], rounds: int,
    dtype: torch.dtype,
) -> list[str]:  # fmt: skip
    """A line of the table."""
    channels, window, stride, size = layer
    around = window // 2
    torch.manual_seed(0)
    x = alone(torch.randn(images, size, size, channels).to(dtype))
    w = torch.randn(window, window, channels).to(dtype)
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
    if dtype is torch.bfloat16:
        whole = compiled_whole(layer, image, weight)
        (result,) = whole(image, weight)
        torch.testing.assert_close(
            result.permute(0, 2, 3, 1).double(), exact, rtol=1e-2, atol=1e-3
        )  # fmt: skip
        calls.append(lambda: whole(image, weight))
    for points, ahead in choices:
        executable = built(layer, images, points, ahead)
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
    line = [f"{channels}, {window}x{window}{step}, {size}", str(images)]
    for spent in times:
        ratio = statistics.median(a / b for a, b in zip(times[0], spent, strict=True))
        line += [f"{min(spent) * 1e3:.3f}", f"{work / min(spent):.0f}"]
        line += [f"{ratio:.2f}"] if spent is not times[0] else []
    return line


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--points", type=int, nargs="+", default=[8])
    parser.add_argument("--ahead", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--element", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--images", type=int, nargs="+", default=[1, IMAGES, 16])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print_load()
    head = ["layer", "images", "oneDNN ms", "GFLOP/s"]
    dtype = torch.float32 if arguments.element == "f32" else torch.bfloat16
    choices = list(itertools.product(arguments.points, arguments.ahead))
    if dtype is torch.bfloat16:
        choices, head = [], [*head, "irc ms", "GFLOP/s", "oneDNN/ours"]
    for points, ahead in choices:
        head += [f"{points} places, {ahead} ahead ms", "GFLOP/s", "oneDNN/ours"]
    rows = [
        measure(layer, images, choices, arguments.rounds, dtype)
        for layer in LAYERS for images in arguments.images
    ]  # fmt: skip
    print(table(head, rows))


if __name__ == "__main__":
    main()
