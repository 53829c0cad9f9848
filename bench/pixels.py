"""Convolutions of single pixels, and of patches, whose weights aren't frozen, with a relu, on a
CPU: as products of irc's own against the library's.

    OMP_NUM_THREADS=1 python -m bench.pixels [--dtype bfloat16] [--rounds 9] [--images 4]

For each, with channels innermost and as eager mode has images: milliseconds by the library (with
the relu behind it) and by irc, the median of the rounds' ratios (above 1: irc is faster), billions
of operations a second, and the root mean square error against f64, relative, of both. What irc
takes is what the cost model chooses; nothing is measured by a compile.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import irc  # noqa: F401  # its import registers the backend
from bench.common import print_load, table

#: Channels in and out, window and stride, and the image's size.
LAYERS = [
    (64, 64, 1, 1, 56), (64, 256, 1, 1, 56), (256, 64, 1, 1, 56), (256, 512, 1, 2, 56),
    (128, 512, 1, 1, 28), (1024, 256, 1, 1, 14), (2048, 512, 1, 1, 7), (512, 2048, 1, 1, 7),
    (16, 96, 1, 1, 112), (96, 24, 1, 1, 56), (24, 144, 1, 1, 56), (144, 40, 1, 1, 28),
    (240, 80, 1, 1, 14), (480, 112, 1, 1, 14), (320, 1280, 1, 1, 7), (1280, 320, 1, 1, 7),
    (512, 255, 1, 1, 26), (1024, 17, 1, 1, 13), (64, 19, 1, 1, 128), (96, 8, 1, 1, 1),
    (8, 96, 1, 1, 1), (2048, 1000, 1, 1, 1), (3, 96, 4, 4, 224), (96, 192, 2, 2, 56),
    (384, 768, 2, 2, 14), (3, 768, 16, 16, 224),
]  # fmt: skip
SIDES: dict[str, dict[str, Any]] = {
    "library": {"max_autotune_conv_backends": "ATEN"},
    "irc": {"max_autotune": True, "max_autotune_conv_backends": "IRC"},
}
LEAST_SECONDS = 0.004
"""A figure of a round takes so long, or one call."""
HEAD = ("layer", "images", "library ms", "irc", "library:irc", "GFLOP/s", "error library", "irc")


def compiled(model: nn.Module, options: dict[str, Any]) -> Callable[..., torch.Tensor]:
    """The model compiled by irc with these options."""
    torch._dynamo.reset()
    return torch.compile(model, backend="irc", options=options)


def seconds(call: Callable[..., Any], x: torch.Tensor, calls: int) -> float:
    """Of a call, by so many of them."""
    start = time.perf_counter()
    for _ in range(calls):
        call(x)
    return (time.perf_counter() - start) / calls


def measure(layer: tuple[int, ...], images: int, dtype: torch.dtype, rounds: int) -> list[Any]:
    """Lines of the table for a layer: channels innermost, and not."""
    inner, outer, taps, stride, size = layer
    lines = []
    for name, form in (("innermost", torch.channels_last), ("eager", torch.contiguous_format)):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(inner, outer, taps, stride), nn.ReLU()).to(dtype).eval()
        x = torch.randn(images, inner, size, size, dtype=dtype).contiguous(memory_format=form)
        exact = copy.deepcopy(model).double()(x.double())
        calls = [compiled(model, options) for options in SIDES.values()]
        errors = [float((call(x).double() - exact).norm() / exact.norm()) for call in calls]
        count = max(1, int(LEAST_SECONDS / seconds(calls[0], x, 1)))
        times: list[list[float]] = []
        for number in range(rounds + 1):
            pair = [0.0, 0.0]
            for side in (0, 1) if number % 2 else (1, 0):
                pair[side] = seconds(calls[side], x, count)
            times.append(pair)
        library, ours = (statistics.median(pair[side] for pair in times[1:]) for side in (0, 1))
        ratio = statistics.median(pair[0] / pair[1] for pair in times[1:])
        work = 2e-9 * inner * outer * taps**2 * images * (size // stride) ** 2
        step = f"/{stride}" if stride > 1 else ""
        lines.append([
            f"{inner} to {outer}, {taps}x{taps}{step}, {size}", name, f"{library * 1e3:.3f}",
            f"{ours * 1e3:.3f}", f"{ratio:.2f}", f"{work / ours:.0f}",
            *(f"{error:.1e}" for error in errors),
        ])  # fmt: skip
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--images", type=int, default=4)
    chosen = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    print_load()
    rows = []
    for layer in LAYERS:
        rows += measure(layer, chosen.images, getattr(torch, chosen.dtype), chosen.rounds)
    print(table(HEAD, rows))
    print_load()


if __name__ == "__main__":
    main()
