"""Bytes that a forward saves for its backward, of irc and of TorchInductor: how each cuts the joint
graph of a few blocks of models, without compiling either side.

    python -m bench.saved_bytes [--told]

What is saved is what the forward makes for the backward alone: no arguments, no results, no views
of either. `--told` lists it where irc saves more.
"""

from __future__ import annotations

import argparse
import functools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import torch
from functorch.compile import aot_function, make_boxed_func
from torch import Tensor, fx, nn
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.func import functional_call
from torch.nn import functional as F

from irc.frontend.backend import partitioned
from irc.frontend.decompositions.table import decompositions
from irc.options.options import from_mapping

VIEWS = {
    "alias", "detach", "view", "permute", "t", "transpose", "expand", "squeeze", "unsqueeze",
    "slice", "select", "as_strided", "split_with_sizes", "unbind", "_unsafe_view", "diagonal",
}  # fmt: skip
WIDTH, HEADS, WORDS, GAP = 128, 4, 1000, 1.02


class PreNorm(nn.Module):
    """A transformer's layer with its attention by hand, normalized before."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def heads(self, x: Tensor) -> Iterator[Tensor]:
        batch, length, _ = x.shape
        parts = self.qkv(x).chunk(3, -1)
        return (p.view(batch, length, HEADS, -1).transpose(1, 2) for p in parts)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(self.first(x))
        mixed = (q @ k.transpose(-1, -2) / 8).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.second(x))))


class PostNorm(PreNorm):
    """One with the operator for attention, normalized after."""

    def forward(self, x: Tensor) -> Tensor:
        mixed = F.scaled_dot_product_attention(*self.heads(x))
        x = self.first(x + self.out(mixed.transpose(1, 2).reshape(x.shape)))
        return self.second(x + self.down(F.gelu(self.up(x))))


class Gated(nn.Module):
    """Llama's feed-forward layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)
        self.gate, self.up = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def _batch_norm(channels: int) -> nn.Module:
    return nn.BatchNorm2d(channels, track_running_stats=False)


class Residual(nn.Module):
    """Two convolutions with batch normalizations and an activation."""

    def __init__(self, activation: Callable[[Tensor], Tensor], channels: int = 32) -> None:
        super().__init__()
        self.first, self.second = (
            nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2)
        )
        self.one, self.two = _batch_norm(channels), _batch_norm(channels)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        h = self.activation(self.one(self.first(x)))
        return self.activation(x + self.two(self.second(h)))


class Stem(nn.Module):
    """ResNet's beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 32, 7, 2, 3, bias=False), _batch_norm(32)
        self.rest = Residual(F.relu)

    def forward(self, x: Tensor) -> Tensor:
        return self.rest(F.max_pool2d(F.relu(self.norm(self.conv(x))), 3, 2, 1))


class Mobile(nn.Module):
    """MobileNetV3's block, with squeezing."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        wide = 4 * channels
        self.up = nn.Conv2d(channels, wide, 1, bias=False)
        self.each = nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False)
        self.down = nn.Conv2d(wide, channels, 1, bias=False)
        self.norms = nn.ModuleList(_batch_norm(n) for n in (wide, wide, channels))
        self.squeeze, self.expand = nn.Linear(wide, channels), nn.Linear(channels, wide)

    def forward(self, x: Tensor) -> Tensor:
        h = F.hardswish(self.norms[0](self.up(x)))
        h = F.hardswish(self.norms[1](self.each(h)))
        scale = F.hardsigmoid(self.expand(F.relu(self.squeeze(h.mean((2, 3))))))
        return x + self.norms[2](self.down(h * scale[:, :, None, None]))


class Denoiser(nn.Module):
    """A residual block of a diffusion model."""

    def __init__(self, channels: int = 64) -> None:
        super().__init__()
        self.one, self.two = (nn.GroupNorm(8, channels) for _ in range(2))
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(F.silu(self.one(x)))
        return x + self.second(F.silu(self.two(h)))


class ConvNext(nn.Module):
    """ConvNext's block."""

    def __init__(self, channels: int = 64) -> None:
        super().__init__()
        self.each = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm, self.scale = nn.LayerNorm(channels), nn.Parameter(torch.ones(channels))
        self.up, self.down = (
            nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(self.each(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(h)))).permute(0, 3, 1, 2)


class Language(nn.Module):
    """Embeddings, layers and the loss of a small language model."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.scores = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.layers = nn.Sequential(*(PreNorm() for _ in range(3)))

    def forward(self, words: Tensor) -> Tensor:
        return F.cross_entropy(
            self.scores(self.layers(self.words(words))).view(-1, WORDS), words.view(-1)
        )


def blocks() -> dict[str, tuple[nn.Module, Tensor]]:
    """Three of each block, and what they take."""

    def three(make: Callable[[], nn.Module]) -> nn.Module:
        return nn.Sequential(*(make() for _ in range(3)))

    rows, image = torch.randn(4, 64, WIDTH), torch.randn(2, 32, 28, 28)
    return {
        "pre-norm": (three(PreNorm), rows),
        "post-norm": (three(PostNorm), rows),
        "language model": (Language(), torch.randint(0, WORDS, (4, 64))),
        "gated": (three(Gated), rows),
        "residual": (three(lambda: Residual(F.relu)), image),
        "residual, silu": (three(lambda: Residual(F.silu)), image),
        "residual, gelu": (three(lambda: Residual(F.gelu)), image),
        "stem": (Stem(), torch.randn(2, 3, 64, 64)),
        "mobile": (three(Mobile), torch.randn(2, 16, 28, 28)),
        "denoiser": (three(Denoiser), torch.randn(2, 64, 32, 32)),
        "convnext": (three(ConvNext), torch.randn(2, 64, 28, 28)),
    }


@attrs.frozen
class Cut:
    """What a forward saves."""

    saved: list[tuple[str, Tensor]]

    @property
    def total(self) -> int:
        """Bytes."""
        return sum(value.numel() * value.element_size() for _, value in self.saved)


class _Seen(Exception):  # noqa: N818  # no error: all that is asked for is known
    """The joint graph has been cut."""


def cut_of(function: Callable[..., Any], arguments: list[Tensor], side: str) -> Cut:
    """How a side cuts a function's joint graph."""
    if side == "irc":
        part: Any = functools.partial(partitioned, from_mapping({}))
        table = decompositions()
    else:
        from torch._inductor.decomposition import select_decomp_table

        part, table = min_cut_rematerialization_partition, select_decomp_table()
    cuts: list[Cut] = []

    def noting(joint: fx.GraphModule, *rest: Any, num_fwd_outputs: int, **keywords: Any) -> Any:
        forward, _ = part(joint, *rest, num_fwd_outputs=num_fwd_outputs, **keywords)
        cuts.append(_saved(forward, num_fwd_outputs))
        raise _Seen

    def run(graph: fx.GraphModule, given: Any) -> Any:
        return make_boxed_func(graph)

    try:
        aot_function(function, run, run, noting, decompositions=table)(*arguments)
    except _Seen:
        pass
    return cuts[0]


def _saved(forward: fx.GraphModule, results: int) -> Cut:
    returned: Any = forward.graph.output_node().args[0]
    known = {_root(node) for node in returned[:results] if node is not None}
    saved: list[tuple[str, Tensor]] = []
    for node in returned[results:]:
        root, value = _root(node), node.meta.get("val")
        if isinstance(value, Tensor) and root.op != "placeholder" and root not in known:
            known.add(root)
            source = root.args[0] if root.target is operator.getitem else root
            saved.append((str(source.target), value))
    return Cut(saved)


def _root(node: fx.Node) -> fx.Node:
    while node.op == "call_function" and str(node.target).split(".")[1:2]:
        if str(node.target).split(".")[1] not in VIEWS or not isinstance(node.args[0], fx.Node):
            break
        node = node.args[0]
    return node


def _called(module: nn.Module, names: tuple[str, ...], narrow: bool) -> Callable[..., Any]:
    """A module as a function of what it takes and of its weights."""

    def function(x: Tensor, *values: Tensor) -> Any:
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            return functional_call(module, dict(zip(names, values, strict=True)), (x,))

    return function


def main() -> None:
    """Print both sides' bytes for each block, in f32 and with autocast to bf16."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--told", action="store_true", help="list what is saved where irc has more")
    told = parser.parse_args().told
    torch.manual_seed(0)
    ratios = []
    for name, (module, x) in blocks().items():
        weights = dict(module.named_parameters())
        leaf = x.clone().requires_grad_() if x.is_floating_point() else x
        arguments = [leaf, *(w.detach().requires_grad_() for w in weights.values())]
        for narrow in (False, True):
            function = _called(module, tuple(weights), narrow)
            cuts = {side: cut_of(function, arguments, side) for side in ("irc", "inductor")}
            ratio = cuts["irc"].total / cuts["inductor"].total
            ratios.append(ratio)
            shown = "  ".join(f"{side} {cut.total:10,}" for side, cut in cuts.items())
            print(f"{name:16} {'bf16' if narrow else 'f32':5} {shown}  irc:inductor {ratio:5.2f}")
            if told and ratio > GAP:
                for side, cut in cuts.items():
                    for target, value in cut.saved:
                        print(f"    {side:9} {target:44} {value.dtype} {tuple(value.shape)}")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{len(ratios)} graphs, geometric mean {mean:.3f}, the most {max(ratios):.2f}")


if __name__ == "__main__":
    main()
