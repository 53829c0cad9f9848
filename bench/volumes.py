"""Convolutions of volumes (3D) on a CPU: ATen's choice, oneDNN's operator, and compiled programs.

    OMP_NUM_THREADS=1 python -m bench.volumes [--rounds 15]

For each convolution with a batch norm's scale and a relu behind it: what ATen chooses, median
microseconds of `aten.convolution` and of `aten.mkldnn_convolution` alone, of the model in eager
mode, by irc and by TorchInductor, called in turn, and the median ratio of TorchInductor's time to
irc's.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from bench.common import print_load

#: Images, channels, sizes; channels of the result, window, stride, groups.
LAYERS = (
    ((1, 3, 8, 64, 64), 16, 3, 1, 1), ((1, 16, 4, 32, 32), 32, 3, 1, 1),
    ((1, 32, 4, 32, 32), 64, 3, 2, 1), ((2, 16, 16, 16, 16), 16, 3, 1, 16),
    ((1, 64, 4, 14, 14), 64, 1, 1, 1), ((16, 16, 4, 16, 16), 32, 3, 1, 1),
)  # fmt: skip


def measured(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Microseconds of each, in turn."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - start) * 1e6)
    return times


def layer(shape: tuple[int, ...], columns: int, window: int, stride: int, groups: int,
          rounds: int) -> str:  # fmt: skip
    """The line of a convolution."""
    torch._dynamo.reset()
    image, pad = torch.randn(shape), window // 2
    conv = nn.Conv3d(shape[1], columns, window, stride, pad, groups=groups, bias=False)
    model = nn.Sequential(conv, nn.BatchNorm3d(columns), nn.ReLU()).eval()
    three = [stride] * 3, [pad] * 3, [1] * 3
    plain = (image, conv.weight, None, *three, False, [0] * 3, groups)
    chosen = str(torch._C._select_conv_backend(*plain)).rpartition(".")[2]
    compiled = {name: torch.compile(model, backend=name) for name in ("irc", "inductor")}
    calls = {
        "ATen": lambda: torch.ops.aten.convolution(*plain),
        "oneDNN": lambda: torch.ops.aten.mkldnn_convolution(
            image, conv.weight, None, three[1], three[0], three[2], groups
        ),
        "eager": lambda: model(image),
        **{name: (lambda f=f: f(image)) for name, f in compiled.items()},
    }
    with torch.no_grad():
        times = measured(calls, rounds)
    ratio = statistics.median(
        a / b for a, b in zip(times["inductor"], times["irc"], strict=True)
    )
    told = "  ".join(f"{name} {statistics.median(t):8.0f}" for name, t in times.items())
    name = f"{'x'.join(map(str, shape))} {columns} {window}^3/{stride} g{groups}"
    return f"{name:28} {chosen:8} {told}  inductor:irc {ratio:5.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.manual_seed(0)
    print_load()
    for each in LAYERS:
        print(layer(*each, options.rounds), flush=True)


if __name__ == "__main__":
    main()
