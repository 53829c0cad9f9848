"""Convolutions of cuDNN on a GPU with images row by row and with channels innermost.

    python -m bench.gpu_layouts [--dtype bfloat16] [--batch 4] [--backward]

A line a convolution: microseconds of GPU time with image, weight and gradient contiguous, with all
of them channels last, and the bytes of images and weight, from which the cost model of
`propagate-channels-last` has its figures. The GPU's L2 is warm; times are of a replayed CUDA graph.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import attrs
import torch

from bench.gpu_timing import recorded, replayed

CALLS = 20


@attrs.frozen
class Shape:
    """A convolution of square images. `name`: of its kind."""

    name: str
    inner: int
    outer: int
    side: int
    taps: int
    stride: int = 1
    groups: int = 1
    dilation: int = 1
    transposed: bool = False


SHAPES = (
    Shape("stem", 3, 64, 224, 7, 2),
    Shape("1x1", 64, 256, 56, 1),
    Shape("1x1", 256, 64, 56, 1),
    Shape("1x1", 512, 128, 28, 1),
    Shape("1x1 stride 2", 256, 512, 56, 1, 2),
    Shape("1x1", 1024, 256, 14, 1),
    Shape("1x1", 512, 2048, 7, 1),
    Shape("3x3 small", 64, 64, 56, 3),
    Shape("3x3", 128, 128, 28, 3),
    Shape("3x3", 256, 256, 14, 3),
    Shape("3x3", 512, 512, 7, 3),
    Shape("3x3 stride 2", 256, 256, 28, 3, 2),
    Shape("in-out 3x3", 256, 64, 28, 3),
    Shape("grouped 3x3", 128, 128, 28, 3, 1, 8),
    Shape("grouped 3x3", 256, 256, 28, 3, 1, 32),
    Shape("grouped 3x3", 1024, 1024, 14, 3, 1, 32),
    Shape("depthwise 7x7", 96, 96, 56, 7, 1, 96),
    Shape("depthwise 7x7", 384, 384, 14, 7, 1, 384),
    Shape("depthwise 3x3", 144, 144, 56, 3, 1, 144),
    Shape("depthwise 3x3", 576, 576, 14, 3, 1, 576),
    Shape("patches 4x4", 3, 96, 224, 4, 4),
    Shape("patches 16x16", 3, 768, 224, 16, 16),
    Shape("patches 2x2", 192, 384, 28, 2, 2),
    Shape("dilated 3x3", 128, 128, 28, 3, 1, 1, 2),
    Shape("transposed 2x2", 128, 64, 28, 2, 2, 1, 1, True),
    Shape("odd channels", 37, 53, 28, 3),
)


def arguments(shape: Shape, batch: int, dtype: torch.dtype, last: bool) -> list[Any]:
    """Image, weight and the rest of a convolution's arguments."""
    to = {"dtype": dtype, "device": "cuda"}
    image = torch.randn(batch, shape.inner, shape.side, shape.side, **to)
    pair = (shape.inner, shape.outer) if shape.transposed else (shape.outer, shape.inner)
    weight = torch.randn(pair[0], pair[1] // shape.groups, shape.taps, shape.taps, **to)
    if last:
        image, weight = (t.to(memory_format=torch.channels_last) for t in (image, weight))
    patches = shape.taps == shape.stride
    around = 0 if patches else shape.dilation * (shape.taps // 2)
    return [image, weight, None, [shape.stride] * 2, [around] * 2, [shape.dilation] * 2,
            shape.transposed, [0, 0], shape.groups]  # fmt: skip


def microseconds(call: Any) -> float:
    """The median time of a call."""
    graph = recorded(call, CALLS)
    return statistics.median(replayed(graph, CALLS) for _ in range(7))


def times(shape: Shape, batch: int, dtype: torch.dtype, backward: bool) -> tuple[Any, ...]:
    """Bytes of images and of the weight, microseconds by layout, and the strides of results."""
    found = []
    for last in (False, True):
        given = arguments(shape, batch, dtype, last)
        made = torch.ops.aten.convolution(*given)
        call = lambda given=given: torch.ops.aten.convolution(*given)  # noqa: E731
        if backward:
            grad, weight = torch.randn_like(made), given[1]
            rest = [None, *given[3:], [True, True, False]]
            call = lambda g=grad, x=given[0], w=weight, r=rest: (  # noqa: E731
                torch.ops.aten.convolution_backward(g, x, w, *r)
            )
        results = call()
        results = [results] if isinstance(results, torch.Tensor) else results[:2]
        kept = [t.is_contiguous(memory_format=torch.channels_last) for t in results]
        found.append((microseconds(call), kept))
    images = sum(t.numel() for t in (given[0], made)) * made.element_size()
    return images, given[1].numel() * made.element_size(), *found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--backward", action="store_true")
    options = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False
    direction = "backward" if options.backward else "forward"
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}, "
          f"cuDNN {torch.backends.cudnn.version()}, {options.dtype}, {options.batch} images, "
          f"{direction}: us contiguous, us channels last, ratio; MB of images, of weight; results "
          "channels last", flush=True)  # fmt: skip
    for shape in SHAPES:
        text = (f"{shape.name:14} {shape.inner:5}->{shape.outer:<5} {shape.side:3} "
                f"{shape.taps}x{shape.taps}/{shape.stride} groups {shape.groups:4}")  # fmt: skip
        try:
            images, weight, (plain, _), (last, kept) = times(
                shape, options.batch, getattr(torch, options.dtype), options.backward
            )
        except Exception as failure:
            print(f"{text} FAILED {' '.join(str(failure).split())[:200]}", flush=True)
            continue
        print(f"{text} {plain:8.1f} {last:8.1f} {last / plain:6.2f}   {images / 1e6:7.2f} "
              f"{weight / 1e6:6.2f}  {kept}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
