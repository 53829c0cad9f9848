"""Frozen convolutions on a CPU: kernels of our own against oneDNN's packed ones, one thread.

    OMP_NUM_THREADS=1 python -m bench.convolutions [--rounds 20] [--dtype bfloat16]
    OMP_NUM_THREADS=1 python -m bench.convolutions --against irc@FOLDER   (beside another irc)

For each convolution of ResNet-50 (4 images of 224x224) that has one, and a few of other networks:
milliseconds of the compiled layer with its relu, by oneDNN and by ours, the median of the rounds'
ratios (above 1: ours is faster), billions of operations a second of the direct way, and errors
against f64 (root mean square, relative). Then what Winograd's convolution loses with other points.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import torch
from torch import nn

import irc  # noqa: F401  # its import registers the backend
from bench.common import Prepared, Side, interleaved, median_ratio, print_load, side_name, table


@attrs.frozen
class Layer:
    """A convolution of `channels` to `out` channels on images of `size` x `size`, and how many of
    them a ResNet-50 has; 0: it is another network's."""

    channels: int
    out: int
    kernel: int
    stride: int
    size: int
    count: int
    residual: bool = False

    @property
    def operations(self) -> float:
        """Billions of operations of the direct way."""
        pixels = 4 * (-(-self.size // self.stride)) ** 2
        return 2e-9 * pixels * self.kernel**2 * self.channels * self.out

    def __str__(self) -> str:
        added = " +" if self.residual else ""
        step = f"/{self.stride}" if self.stride > 1 else ""
        kernel = f"{self.kernel}x{self.kernel}{step}"
        return f"{self.channels} to {self.out}, {kernel}, {self.size}{added}"


LAYERS = [
    *(Layer(c, c, 3, 1, s, n) for c, s, n in ((64, 56, 3), (128, 28, 3), (256, 14, 5),
                                              (512, 7, 2))),
    Layer(64, 64, 1, 1, 56, 1), Layer(64, 256, 1, 1, 56, 1), Layer(64, 256, 1, 1, 56, 3, True),
    Layer(256, 64, 1, 1, 56, 2), Layer(256, 128, 1, 1, 56, 1), Layer(256, 512, 1, 2, 56, 1),
    Layer(128, 512, 1, 1, 28, 4, True), Layer(512, 128, 1, 1, 28, 3),
    Layer(512, 256, 1, 1, 28, 1), Layer(512, 1024, 1, 2, 28, 1),
    Layer(256, 1024, 1, 1, 14, 6, True), Layer(1024, 256, 1, 1, 14, 5),
    Layer(1024, 512, 1, 1, 14, 1), Layer(1024, 2048, 1, 2, 14, 1),
    Layer(512, 2048, 1, 1, 7, 3, True), Layer(2048, 512, 1, 1, 7, 2),
    Layer(128, 128, 3, 2, 56, 1), Layer(256, 256, 3, 2, 28, 1), Layer(512, 512, 3, 2, 14, 1),
    Layer(64, 128, 3, 2, 56, 0), Layer(64, 192, 5, 1, 27, 0), Layer(96, 96, 5, 1, 14, 0),
    Layer(32, 64, 5, 2, 56, 0),
]  # fmt: skip
OURS: dict[str, Any] = {"freezing": True}
LIBRARY = {**OURS, "winograd": False, "panel_convolutions": False}


class Network(nn.Module):
    """The layer, what is added to it if anything, and a relu."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.layer = nn.Conv2d(
            layer.channels, layer.out, layer.kernel, layer.stride, layer.kernel // 2
        )

    def forward(self, x: torch.Tensor, other: torch.Tensor | None = None) -> torch.Tensor:
        made = self.layer(x)
        return torch.relu(made if other is None else made + other)


def compiled(model: nn.Module, options: dict[str, Any]) -> Callable[..., torch.Tensor]:
    """The model compiled by irc with these options."""
    torch._dynamo.reset()
    return torch.compile(model, backend="irc", options=options)


def network(
    layer: Layer, dtype: torch.dtype = torch.float32
) -> tuple[nn.Module, list[torch.Tensor], torch.Tensor]:
    """A layer with its arguments, and its result in f64."""
    torch.manual_seed(0)
    model = Network(layer).to(dtype).eval()
    x = torch.randn(4, layer.channels, layer.size, layer.size).to(dtype).relu()
    inputs = [x.contiguous(memory_format=torch.channels_last)]
    if layer.residual:
        inputs.append(torch.randn_like(model(*inputs)))
    exact = copy.deepcopy(model).double()(*(i.double() for i in inputs))
    return model, inputs, exact


def measure(layer: Layer, rounds: int, dtype: torch.dtype) -> list[str]:
    """A line of the table."""
    model, inputs, exact = network(layer, dtype)
    calls, errors, times = [], [], []
    for options in (LIBRARY, OURS):
        call = compiled(model, options)
        difference = call(*inputs).double() - exact
        errors.append(float(difference.norm() / exact.norm()))
        calls.append(call)
    for _ in range(rounds):
        pair = []
        for call in calls:
            start = time.perf_counter()
            call(*inputs)
            pair.append(time.perf_counter() - start)
        times.append(pair)
    library, ours = (statistics.median(t[k] for t in times) for k in (0, 1))
    ratio = statistics.median(a / b for a, b in times)
    return [
        str(layer), str(layer.count), f"{library * 1e3:.2f}", f"{ours * 1e3:.2f}", f"{ratio:.3f}",
        f"{layer.operations / library:.0f}", f"{layer.operations / ours:.0f}",
        f"{errors[0]:.1e}", f"{errors[1]:.1e}",
    ]  # fmt: skip


def prepare(case: dict[str, Any], backend: str) -> Prepared:
    """A layer, compiled, with the error of its first result against f64."""
    layer = LAYERS[case["layer"]]
    torch.set_grad_enabled(False)
    model, inputs, exact = network(layer)
    call = compiled(model, OURS)
    error = float((call(*inputs).double() - exact).norm() / exact.norm())
    return Prepared(lambda: call(*inputs), {"error": error})


def compare(other: str, rounds: int, threads: int) -> None:
    """Print the layers' times beside another irc's, in processes of their own."""
    rows, totals = [], [0.0, 0.0]
    with Side("bench.convolutions", "irc", threads) as here, Side(
        "bench.convolutions", other, threads
    ) as there:
        for number, layer in enumerate(LAYERS):
            errors = [side.prepare({"layer": number})["error"] for side in (there, here)]
            times = interleaved((there, here), rounds)
            before, ours = (statistics.median(times[b]) for b in (other, "irc"))
            totals = [t + layer.count * v for t, v in zip(totals, (before, ours), strict=True)]
            ratio = median_ratio(times[other], times["irc"])
            rows.append([
                str(layer), str(layer.count), f"{before * 1e3:.3f}", f"{ours * 1e3:.3f}",
                f"{ratio:.3f}", f"{layer.operations / ours:.0f}", *(f"{e:.1e}" for e in errors),
            ])  # fmt: skip
            print(" | ".join(rows[-1]), flush=True)
    head = ("layer", "count", "other ms", "ours", "other/ours", "GFLOP/s", "error other", "ours")
    print(table(head, rows))
    print(f"all of them: {totals[0] * 1e3:.1f} ms, ours {totals[1] * 1e3:.1f} ms")


POINTS = [(1, 2), (1, Fraction(1, 2)), (Fraction(3, 4), Fraction(4, 3)),
          (Fraction(2, 3), Fraction(3, 2)), (Fraction(5, 8), Fraction(3, 2))]  # fmt: skip


def error_of(inner: Any, outer: Any) -> float:
    """The error of Winograd's convolution of 256 channels in f32 with the points 0, +-inner,
    +-outer and infinity, against f64."""
    from irc.dialects.graph import winograd
    from irc.interp.graph_panels import convolve

    chosen = winograd.PAIRS[5]
    winograd.PAIRS[5] = (Fraction(inner), Fraction(outer))
    line = winograd.TileLine(3, 1, 4)
    try:
        torch.manual_seed(0)
        x, w = torch.randn(4, 256, 16, 16).relu(), torch.randn(64, 256, 3, 3)
        rows = [[float(v) for v in row] for row in line.weight_matrix()]
        g = torch.tensor(rows, dtype=torch.float64)
        u = torch.einsum("ia,kcab,jb->ijck", g, w.double(), g).reshape(1, 36, 256, 64).float()
        exact = torch.conv2d(x.double(), w.double(), padding=1)
        made = convolve(x, u, 64, (line, line), (1, 1)).double()
        return float((made - exact).norm() / exact.norm())
    finally:
        winograd.PAIRS[5] = chosen


HEAD = ("layer", "count", "oneDNN ms", "ours", "oneDNN/ours", "oneDNN GFLOP/s", "ours",
        "error oneDNN", "ours")  # fmt: skip


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--against", type=side_name, metavar="irc@REVISION")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    chosen = parser.parse_args()
    rounds = chosen.rounds
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    print_load()
    if chosen.against:
        compare(chosen.against, rounds, chosen.threads)
        return
    dtype = getattr(torch, chosen.dtype)
    rows = [measure(layer, rounds, dtype) for layer in LAYERS]
    print(table(HEAD, rows))
    for place, name in ((2, "oneDNN"), (3, "ours")):
        total = sum(float(row[place]) * int(row[1]) for row in rows)
        print(f"all of them by {name}: {total:.1f} ms")
    print_load()
    for inner, outer in POINTS:
        print(f"points 0, +-{inner}, +-{outer}: error {error_of(inner, outer):.2e}")


if __name__ == "__main__":
    main()
