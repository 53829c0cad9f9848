"""Small models of kinds that other benchmarks lack: eager mode, irc, TorchInductor's default.

    OMP_NUM_THREADS=1 python -m bench.more_models [--model NAME,NAME] [--training] [--rounds 15]

Each with random weights and inputs, f32, in evaluation, or with `--training` a forward and the
gradients of all parameters of the mean of its result's squares: median milliseconds of each side,
called in turn in one process, the median ratio of TorchInductor's time to irc's, and the seconds of
the first two calls.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.common import in_turns, median_ratio, print_load

SIDES = ("irc", "inductor")
LEAST_SECONDS = 0.03
"""So long are the calls at least that are clocked together."""


def block(inputs: int, outputs: int, window: int = 3, stride: int = 1, groups: int = 1,
          act: type[nn.Module] | None = nn.ReLU) -> nn.Sequential:  # fmt: skip
    """A convolution, a batch norm and an activation."""
    conv = nn.Conv2d(inputs, outputs, window, stride, window // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), *([act()] if act else []))


class Inverted(nn.Module):
    """MobileNet-V3's block: wide, depthwise, squeezed and excited, narrow."""

    def __init__(self, inputs: int, wide: int, outputs: int, window: int, stride: int) -> None:
        super().__init__()
        self.widen = block(inputs, wide, 1, act=nn.Hardswish)
        self.along = block(wide, wide, window, stride, wide, nn.Hardswish)
        self.squeeze, self.excite = nn.Conv2d(wide, wide // 4, 1), nn.Conv2d(wide // 4, wide, 1)
        self.narrow = block(wide, outputs, 1, act=None)
        self.added = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.along(self.widen(x))
        gate = self.excite(functional.relu(self.squeeze(functional.adaptive_avg_pool2d(y, 1))))
        y = self.narrow(y * functional.hardsigmoid(gate))
        return x + y if self.added else y


class UNet(nn.Module):
    """Two levels, transposed convolutions upwards, results of the same level joined."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (
            nn.Sequential(block(i, o), block(o, o)) for i, o in ((3, 32), (32, 64), (64, 128))
        )
        self.ups = nn.ModuleList(nn.ConvTranspose2d(i, i // 2, 2, 2) for i in (128, 64))
        self.back = nn.ModuleList(nn.Sequential(block(i, o), block(o, o))
                                  for i, o in ((128, 64), (64, 32)))  # fmt: skip
        self.last = nn.Conv2d(32, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.first(x)
        b = self.second(functional.max_pool2d(a, 2))
        c = self.third(functional.max_pool2d(b, 2))
        y = self.back[0](torch.cat([b, self.ups[0](c)], 1))
        return self.last(self.back[1](torch.cat([a, self.ups[1](y)], 1)))


class Modulated(nn.Module):
    """StyleGAN's layer: an image twice as large, and a weight for each image of a batch."""

    def __init__(self, channels: int = 64) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, channels, 3, 3))
        self.style = nn.Linear(32, channels)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        b, c, h, w = x.shape
        weight = self.weight * (self.style(z) + 1)[:, None, :, None, None]
        weight = weight * torch.rsqrt(weight.square().sum((2, 3, 4), keepdim=True) + 1e-8)
        x = functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        y = functional.conv2d(x.reshape(1, b * c, 2 * h, 2 * w), weight.reshape(b * c, c, 3, 3),
                              padding=1, groups=b)  # fmt: skip
        return functional.leaky_relu(y.view(b, c, 2 * h, 2 * w), 0.2)


class Window(nn.Module):
    """Swin's block: attention within windows of 7 x 7, shifted or not, and an MLP."""

    def __init__(self, width: int, shift: int) -> None:
        super().__init__()
        self.shift, self.norm = shift, nn.LayerNorm(width)
        self.three, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))  # fmt: skip
        self.bias = nn.Parameter(torch.randn(4, 49, 49) * 0.02)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        y = torch.roll(self.norm(x), (-self.shift, -self.shift), (1, 2))
        y = y.view(b, h // 7, 7, w // 7, 7, c).transpose(2, 3).reshape(-1, 49, c)
        q, k, v = self.three(y).view(-1, 49, 3, 4, c // 4).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(c // 4) + self.bias
        y = self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, 49, c))
        y = y.view(b, h // 7, w // 7, 7, 7, c).transpose(2, 3).reshape(b, h, w, c)
        x = x + torch.roll(y, (self.shift, self.shift), (1, 2))
        return x + self.mlp(x)


class GraphAttention(nn.Module):
    """A layer over a graph's edges: scores, their softmax at each node, sums."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Linear(64, 64)
        self.left, self.right = (nn.Parameter(torch.randn(4, 16)) for _ in range(2))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        h = self.rows(x).view(-1, 4, 16)
        source, target = edges
        score = functional.leaky_relu(
            (h * self.left).sum(-1)[source] + (h * self.right).sum(-1)[target], 0.2
        )
        most = torch.full((x.shape[0], 4), -1e9)
        most = most.scatter_reduce(0, target[:, None].expand_as(score), score, "amax")
        power = torch.exp(score - most[target])
        whole = torch.zeros(x.shape[0], 4).index_add(0, target, power)
        parts = h[source] * (power / whole[target])[..., None]
        return torch.zeros_like(h).index_add(0, target, parts).flatten(1)


class SelectiveScan(nn.Module):
    """Mamba's recurrence, step by step."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.along = nn.Conv1d(width, width, 4, padding=3, groups=width)
        self.parts, self.step = nn.Linear(width, 36), nn.Linear(4, width)
        self.rate = nn.Parameter(torch.rand(width, 16))

    def forward(self, u: Tensor) -> Tensor:
        x, gate = self.into(u).chunk(2, -1)
        x = self.along(x.transpose(1, 2))[..., : u.shape[1]].transpose(1, 2)
        x = functional.silu(x)
        step, b, c = self.parts(x).split([4, 16, 16], -1)
        step = functional.softplus(self.step(step))
        decay = torch.exp(-step[..., None] * self.rate.exp())
        fed = (step * x)[..., None] * b[:, :, None]
        state, rows = torch.zeros_like(decay[:, 0]), []
        for t in range(u.shape[1]):
            state = decay[:, t] * state + fed[:, t]
            rows.append((state * c[:, t, None]).sum(-1))
        return self.out(torch.stack(rows, 1) * functional.silu(gate))


class Experts(nn.Module):
    """A mixture of eight, of which each token has two."""

    def __init__(self, width: int = 128, experts: int = 8) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.wide = nn.Parameter(torch.randn(experts, width, 256) * 0.05)
        self.narrow = nn.Parameter(torch.randn(experts, 256, width) * 0.05)

    def forward(self, x: Tensor) -> Tensor:
        share, chosen = self.router(x).softmax(-1).topk(2, -1)
        share = share / share.sum(-1, keepdim=True)
        weights = torch.zeros(len(x), len(self.wide)).scatter(1, chosen, share)
        hidden = functional.silu(torch.einsum("tc,ecd->etd", x, self.wide))
        return torch.einsum("etd,edc,te->tc", hidden, self.narrow, weights)


class Splines(nn.Module):
    """A Kolmogorov-Arnold layer with bumps for splines."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("places", torch.linspace(-2, 2, 12))
        self.weight = nn.Parameter(torch.randn(outputs, 12 * inputs) * 0.05)
        self.base = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        bumps = torch.exp(-(((x[..., None] - self.places) * 2.5) ** 2)).flatten(-2)
        return self.base(functional.silu(x)) + functional.linear(bumps, self.weight)


def volume(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """A convolution of volumes, a batch norm and a relu."""
    conv = nn.Conv3d(inputs, outputs, 3, stride, 1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm3d(outputs), nn.ReLU())


def head(channels: int, classes: int = 100) -> list[nn.Module]:
    """Means of channels, and their classes."""
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]


def edges() -> Tensor:
    """Of 2000 nodes."""
    return torch.randint(0, 2000, (2, 16000))


Made = tuple[nn.Module, Sequence[Tensor]]
#: A model and its inputs, by its name.
MODELS: dict[str, Callable[[], Made]] = {
    "mobilenet-v3": lambda: (nn.Sequential(
        block(3, 16, 3, 2, act=nn.Hardswish), Inverted(16, 64, 24, 3, 2),
        Inverted(24, 72, 24, 3, 1), Inverted(24, 72, 40, 5, 2), Inverted(40, 120, 40, 5, 1),
        Inverted(40, 240, 80, 3, 2), *head(80)), [torch.randn(2, 3, 224, 224)]),
    "unet": lambda: (UNet(), [torch.randn(1, 3, 128, 128)]),
    "volumes": lambda: (nn.Sequential(
        volume(3, 16), nn.MaxPool3d(2), volume(16, 32), volume(32, 32), volume(32, 64, 2),
        nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 50)), [torch.randn(1, 3, 8, 64, 64)]),
    "segmentation": lambda: (nn.Sequential(
        block(3, 32, 3, 2), block(32, 64, 3, 2), block(64, 64),
        nn.Upsample(scale_factor=4, mode="bilinear"), nn.Conv2d(64, 19, 1), nn.Softmax(1)),
        [torch.randn(1, 3, 192, 192)]),
    "modulated": lambda: (Modulated(), [torch.randn(2, 64, 32, 32), torch.randn(2, 32)]),
    "windows": lambda: (nn.Sequential(Window(96, 0), Window(96, 3)), [torch.randn(1, 56, 56, 96)]),
    "graph-attention": lambda: (GraphAttention(), [torch.randn(2000, 64), edges()]),
    "selective-scan": lambda: (SelectiveScan(), [torch.randn(2, 48, 64)]),
    "experts": lambda: (Experts(), [torch.randn(256, 128)]),
    "splines": lambda: (nn.Sequential(Splines(64, 64), Splines(64, 64), Splines(64, 10)),
                        [torch.randn(512, 64)]),
}  # fmt: skip


def stepper(model: nn.Module, inputs: Sequence[Tensor], training: bool) -> Callable[[], None]:
    """A call, or a call and its gradients."""

    def evaluated() -> None:
        with torch.no_grad():
            model(*inputs)

    def trained() -> None:
        model(*inputs).square().mean().backward()

    return trained if training else evaluated


def line(name: str, training: bool, rounds: int) -> str:
    """What a model took."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, inputs = MODELS[name]()
    model.train(training)
    steps = {"eager": stepper(model, inputs, training)}
    first: dict[str, float] = {}
    for side in SIDES:
        step = stepper(torch.compile(model, backend=side), inputs, training)  # type: ignore[arg-type]
        start = time.perf_counter()
        step()
        step()
        steps[side], first[side] = step, time.perf_counter() - start
    times = in_turns(steps, rounds, LEAST_SECONDS)
    ratio = median_ratio(times["inductor"], times["irc"])
    told = "  ".join(f"{side} {statistics.median(each) * 1e3:8.3f}" for side, each in times.items())
    seconds = ", ".join(f"{side} {each:.1f}" for side, each in first.items())
    return f"{name:16} {told}  inductor:irc {ratio:5.2f}  first {seconds}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="", help="names, with commas between")
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    print_load()
    for name in options.model.split(",") if options.model else MODELS:
        print(line(name, options.training, options.rounds), flush=True)


if __name__ == "__main__":
    main()
