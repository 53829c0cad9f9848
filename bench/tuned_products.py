"""What `max_autotune` chooses for products and convolutions on a GPU, and what else it measured.

    python -m bench.tuned_products [--only convolutions]

Each group is one program of layers that have nothing to do with each other, tuned in one compile.
Printed of each layer: microseconds of the library, of what irc's cost model takes, and of the
fastest candidate, with its schedule, and the rate at which that reads a weight that few rows
multiply (an H200's memory gives 3.6 TB/s for 34 MB, 4.1 for 90, 4.4 for 235); then the whole
program's time, tuned, untuned and eager, as replays of a CUDA graph.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from bench.gpu_timing import recorded, replayed
from irc.tuning import store

WEIGHTS = ((4096, 4096), (11008, 4096), (4096, 11008), (50304, 768), (14336, 4096), (28672, 4096),
           (18944, 3584))  # fmt: skip
LAYERS = ((2048, 3072, 768), (2048, 768, 3072), (512, 3072, 768), (512, 768, 3072), (788, 768, 768))
WINDOWS = ((4, 64, 56, 64, 1), (4, 128, 28, 128, 1), (4, 256, 14, 256, 1), (4, 512, 7, 512, 1),
           (4, 128, 56, 128, 2), (32, 64, 56, 64, 1), (32, 128, 28, 128, 1), (32, 256, 14, 256, 1),
           (32, 512, 7, 512, 1), (1, 320, 64, 320, 1))  # fmt: skip
FEW = 16
"""Rows of decoding."""
#: Images, channels, their places, channels of the result, taps, and the stride.
GRADIENTS = ((32, 64, 56, 64, 3, 1), (32, 128, 28, 128, 3, 1), (32, 256, 14, 256, 3, 1),
             (32, 512, 7, 512, 3, 1), (4, 512, 7, 512, 3, 1), (32, 128, 56, 128, 3, 2),
             (32, 64, 56, 256, 1, 1), (32, 1024, 14, 256, 1, 1))  # fmt: skip
Group = tuple[nn.Module, list[torch.Tensor]]


class Side(nn.Module):
    """Layers side by side, each with an input of its own."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return [layer(x) for layer, x in zip(self.layers, inputs, strict=True)]


def linears(sizes: Sequence[tuple[int, int, int]], dtype: torch.dtype) -> Group:
    """Linears of rows, columns and depth."""
    layers = [nn.Linear(k, n, bias=False) for _, n, k in sizes]
    inputs = [torch.randn(m, k, device="cuda", dtype=dtype) for m, _, k in sizes]
    return Side(layers).to("cuda", dtype).eval(), inputs


def windows() -> Group:
    """Convolutions of 3x3 pixels behind those of one, which give them their images, with relu."""
    layers = [
        nn.Sequential(nn.Conv2d(c // 2, c, 1, bias=False), nn.Conv2d(c, o, 3, s, 1), nn.ReLU())
        for _, c, _, o, s in WINDOWS
    ]
    inputs = [torch.randn(n, c // 2, h, h, device="cuda", dtype=torch.bfloat16)
              for n, c, h, _, _ in WINDOWS]  # fmt: skip
    return Side(layers).to("cuda", torch.bfloat16).eval(), inputs


class Gradients(nn.Module):
    """The gradients of convolutions, whose results are masked as those of relu are."""

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        every: list[torch.Tensor] = []
        for k, (_, _, _, _, taps, stride) in enumerate(GRADIENTS):
            y, gradient, image, weight = inputs[4 * k : 4 * k + 4]
            numbers = [stride] * 2, [taps // 2] * 2, [1, 1], False, [0, 0], 1, [True, True, False]
            every += torch.ops.aten.convolution_backward(
                torch.where(y > 0, gradient, 0), image, weight, None, *numbers
            )[:2]
        return every


def gradients() -> Group:
    """Gradients of convolutions with channels innermost."""
    inputs: list[torch.Tensor] = []
    for n, c, h, o, taps, stride in GRADIENTS:
        shapes = (n, o, h // stride, h // stride), (n, c, h, h), (o, c, taps, taps)
        inputs += [
            torch.randn(shape, device="cuda", dtype=torch.bfloat16).to(
                memory_format=torch.channels_last) for shape in (shapes[0], *shapes)
        ]  # fmt: skip
    return Gradients(), inputs


GROUPS: dict[str, Callable[[], Group]] = {
    "decoding 8 rows": lambda: linears([(8, *size) for size in WEIGHTS], torch.bfloat16),
    "decoding 16 rows": lambda: linears([(16, *size) for size in WEIGHTS], torch.bfloat16),
    "layers f32": lambda: linears(LAYERS, torch.float32),
    "layers bf16": lambda: linears(LAYERS, torch.bfloat16),
    "convolutions": windows,
    "gradients": gradients,
}


def weight_rate(problem: str, us: float) -> str:
    """The TB/s at which a product of few rows reads its weight, which is what it waits for."""
    sizes = re.match(r"mm (?:bf16|f16) (\d+)x\d+, (\d+)x(\d+)", problem)
    rows, depth, columns = map(int, sizes.groups()) if sizes else (FEW + 1, 0, 0)
    return "" if rows > FEW else f", {2 * depth * columns / us / 1e6:.2f} TB/s"


def told(record: dict[str, Any]) -> str:
    """The library's time, the model's choice's and the best one's."""
    times = {label: us for label, us in record["microseconds"] if us is not None}
    library = times.get("aten", float("nan"))
    own = [(us, label) for label, us in times.items() if label != "aten"]
    first = next((us for us, label in own), float("nan"))
    best, label = min(own, default=(float("nan"), "none"))
    who = record["winner"]["backend"]
    return (f"{record['problem']}: library {library:.2f}, irc {first:.2f}, best {best:.2f} "
            f"({library / best:.2f}) {label}; {who} of {len(times)}"
            f"{weight_rate(record['problem'], best)}")  # fmt: skip


def compiled(group: Group, **options: Any) -> tuple[Callable[..., Any], float]:
    """A group compiled by irc, and the seconds of its first call."""
    torch._dynamo.reset()
    model, inputs = group
    fast, start = torch.compile(model, backend="irc", options=options), time.perf_counter()
    fast(*inputs)
    torch.cuda.synchronize()
    return fast, time.perf_counter() - start


def clocked(call: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> float:
    """Microseconds of a call."""
    graph = recorded(lambda: call(*inputs), 1)
    return min(replayed(graph, 1) for _ in range(9))


def measure(name: str, group: Group) -> None:
    """Tune a group, and print."""
    print(f"# {name}", flush=True)
    keep = store.record_of

    def noted(*known: Any, **named: Any) -> dict[str, Any]:
        record = keep(*known, **named)
        if any(label == "aten" for label, _ in record["microseconds"]):
            print("  " + told(record), flush=True)
        return record

    store.record_of = noted
    try:
        tuned, seconds = compiled(group, max_autotune=True, max_autotune_budget=60)
    finally:
        store.record_of = keep
    times = [clocked(call, group[1]) for call in (tuned, compiled(group)[0], group[0])]
    exact = group[0](*group[1])
    off = max(((a.double() - b.double()).abs().max() / b.double().abs().max()).item()
              for a, b in zip(tuned(*group[1]), exact, strict=True))  # fmt: skip
    print(f"  all: tuned {times[0]:.1f}, untuned {times[1]:.1f}, eager {times[2]:.1f}; tuned in "
          f"{seconds:.1f} s, error {off:.1e}", flush=True)  # fmt: skip


def main() -> None:
    """All groups, or those whose names contain a text."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        os.environ["IRC_CACHE_DIR"] = folder
        for name, group in GROUPS.items():
            if any(word in name for word in asked.only.split(",")):
                measure(name, group())


if __name__ == "__main__":
    main()
