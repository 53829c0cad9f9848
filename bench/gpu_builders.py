"""The models that `bench.gpu_models` times beside those of `bench.builders`, by name: T5, the
decoding step of a Llama, training steps, and larger batches."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from bench.builders import MODELS, Model, Tensors, _images, _tokens, _transformers

VOCABULARY = 32000


def _t5() -> nn.Module:
    names = "T5ForConditionalGeneration", "T5Config", ("input_ids", "decoder_input_ids")
    return _transformers(*names, fixed={"use_cache": False})


class LlamaLayer(nn.Module):
    """A block with grouped heads over a cache of keys and values of a fixed length."""

    def __init__(self, width: int, heads: int, groups: int, inner: int) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, groups * self.size, bias=False)
        self.value = nn.Linear(width, groups * self.size, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(
        self, x: torch.Tensor, turn: Tensors, mask: torch.Tensor, place: torch.Tensor, cache: Any
    ) -> torch.Tensor:
        """`cache`: keys and values, written at `place`; `mask`: positions that are there."""
        batch, length, _ = x.shape

        def split(t: torch.Tensor, heads: int) -> torch.Tensor:
            return t.view(batch, length, heads, self.size).transpose(1, 2)

        h = self.before(x)
        q = rotated(split(self.query(h), self.heads), turn)
        keys, values = cache
        keys.index_copy_(2, place, rotated(split(self.key(h), self.groups), turn))
        values.index_copy_(2, place, split(self.value(h), self.groups))
        y = functional.scaled_dot_product_attention(q, keys, values, mask, enable_gqa=True)
        x = x + self.output(y.transpose(1, 2).reshape(x.shape))
        h = self.between(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


def rotated(x: torch.Tensor, turn: Tensors) -> torch.Tensor:
    """Rotary positions: `turn` has the cosines and the sines."""
    low, high = x.chunk(2, -1)
    return x * turn[0] + torch.cat((-high, low), -1) * turn[1]


class Llama(nn.Module):
    """Decodes `length` tokens behind those that its cache has."""

    def __init__(self, width: int, layers: int, inner: int, kept: int = 256) -> None:
        super().__init__()
        torch.manual_seed(0)
        heads, groups = width // 64, width // 256
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(
            LlamaLayer(width, heads, groups, inner) for _ in range(layers)
        )
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, VOCABULARY, bias=False)
        for number in range(2 * layers):
            self.register_buffer(f"cache{number}", torch.randn(1, groups, kept, 64))
        angles = torch.arange(kept)[:, None] / 10000 ** (torch.arange(0, 64, 2) / 64)
        self.register_buffer("cosines", angles.cos().repeat(1, 2))
        self.register_buffer("sines", angles.sin().repeat(1, 2))
        self.register_buffer("numbers", torch.arange(kept))

    def forward(self, tokens: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        """The logits of the last token; `place`: positions of the tokens."""
        x = self.embedding(tokens)
        turn = self.cosines[place], self.sines[place]
        mask = self.numbers <= place[:, None]
        for number, layer in enumerate(self.layers):
            cache = [getattr(self, f"cache{2 * number + i}") for i in range(2)]
            x = layer(x, turn, mask, place, cache)
        return self.head(self.norm(x[:, -1:]))


def _llama(width: int, layers: int, inner: int) -> nn.Module:
    return Llama(width, layers, inner).eval()


def _positions(length: int) -> Tensors:
    return _tokens(1, length, VOCABULARY), torch.arange(100, 100 + length)


def _training(name: str) -> Model:
    found = MODELS[name]
    return dataclasses.replace(found, make=lambda: found.make().train(), train=True)


#: Small batches, inference: what is bound by the host.
SMALL: dict[str, Model] = {
    **{n: MODELS[n] for n in ("bert-base", "gpt2-small", "resnet-50", "vit-base", "convnext-tiny")},
    "t5-small": Model(_t5, lambda: (_tokens(4, 128, 32128), _tokens(4, 32, 32128))),
    "llama-100m": Model(lambda: _llama(768, 12, 2048), lambda: _positions(1)),
}
LARGE: dict[str, Model] = {
    "bert-base-16x512": Model(MODELS["bert-base"].make, lambda: (_tokens(16, 512, 30522),)),
    "gpt2-small-4x1024": Model(MODELS["gpt2-small"].make, lambda: (_tokens(4, 1024, 50257),)),
    "resnet-50-64": Model(MODELS["resnet-50"].make, lambda: _images(64, 224)),
    "vit-base-32": Model(MODELS["vit-base"].make, lambda: _images(32, 224)),
    "llama-200m-16": Model(lambda: _llama(1024, 12, 2816), lambda: _positions(16)),
}
TRAINING: dict[str, Model] = {
    f"{name}-training": _training(name) for name in ("bert-base", "gpt2-small", "resnet-50")
}
GROUPS: dict[str, dict[str, Model]] = {"small": SMALL, "large": LARGE, "training": TRAINING}


def find(name: str) -> Model:
    """The model of a name; KeyError for an unknown one."""
    return (SMALL | LARGE | TRAINING)[name]
