"""The models of the benchmarks, from configurations, with random weights and without downloads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Tensors = tuple[torch.Tensor, ...]


class First(nn.Module):
    """A transformers model as a function from tensors by position to its first output tensor."""

    def __init__(self, model: nn.Module, inputs: tuple[str, ...], **fixed: Any) -> None:
        super().__init__()
        self.model = model
        self.inputs = inputs
        self.fixed = fixed

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        """The first output: hidden state, logits or loss."""
        named = dict(zip(self.inputs, tensors, strict=True))
        return self.model(**named, **self.fixed, return_dict=False)[0]


@dataclasses.dataclass(frozen=True)
class Model:
    """How to build a model and its inputs; `train` means a step with gradients is measured."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], Tensors]
    train: bool = False


def _transformers(name: str, config: str, inputs: tuple[str, ...], **options: Any) -> nn.Module:
    import transformers

    fixed = options.pop("fixed", {})
    torch.manual_seed(0)
    model = getattr(transformers, name)(getattr(transformers, config)(**options))
    return First(model, inputs, **fixed).eval()


def _tokens(batch: int, length: int, vocabulary: int) -> torch.Tensor:
    return torch.randint(0, vocabulary, (batch, length), generator=torch.Generator().manual_seed(1))


def _images(batch: int, side: int) -> Tensors:
    return (torch.randn(batch, 3, side, side, generator=torch.Generator().manual_seed(1)),)


def _bert() -> nn.Module:
    return _transformers("BertModel", "BertConfig", ("input_ids",))


def _gpt2() -> nn.Module:
    fixed = {"use_cache": False}
    return _transformers("GPT2LMHeadModel", "GPT2Config", ("input_ids",), fixed=fixed)


def _vit() -> nn.Module:
    return _transformers("ViTForImageClassification", "ViTConfig", ("pixel_values",))


def _resnet50() -> nn.Module:
    return _transformers("ResNetForImageClassification", "ResNetConfig", ("pixel_values",))


def resnet18() -> nn.Module:
    """A network of ResNet-18's size: basic blocks, 11.7 million parameters with 1000 classes."""
    return _transformers(
        "ResNetForImageClassification", "ResNetConfig", ("pixel_values",), layer_type="basic",
        depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], num_labels=1000,
    )  # fmt: skip


def small_gpt2(layers: int = 4, hidden: int = 256, heads: int = 4) -> nn.Module:
    """A GPT-2 of `layers` layers, without dropout, with a vocabulary of 5,000."""
    return _transformers(
        "GPT2LMHeadModel", "GPT2Config", ("input_ids",), n_layer=layers, n_embd=hidden,
        n_head=heads, vocab_size=5000, fixed={"use_cache": False}, attn_pdrop=0.0, embd_pdrop=0.0,
        resid_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip


def _convnext() -> nn.Module:
    return _transformers("ConvNextForImageClassification", "ConvNextConfig", ("pixel_values",))


def _mobilenet() -> nn.Module:
    names = "MobileNetV2ForImageClassification", "MobileNetV2Config"
    return _transformers(*names, ("pixel_values",))


def _gpt2_training() -> nn.Module:
    """Four layers of GPT-2 small's width, returning the loss; dropout off, so runs can compare."""
    return _transformers(
        "GPT2LMHeadModel", "GPT2Config", ("input_ids", "labels"), n_layer=4, attn_pdrop=0.0,
        embd_pdrop=0.0, resid_pdrop=0.0, fixed={"use_cache": False},
    ).train()  # fmt: skip


def _training_tokens() -> Tensors:
    tokens = _tokens(2, 128, 50257)
    return tokens, tokens


MODELS: dict[str, Model] = {
    "bert-base": Model(_bert, lambda: (_tokens(4, 128, 30522),)),
    "gpt2-small": Model(_gpt2, lambda: (_tokens(1, 256, 50257),)),
    "vit-base": Model(_vit, lambda: _images(4, 224)),
    "resnet-50": Model(_resnet50, lambda: _images(4, 224)),
    "convnext-tiny": Model(_convnext, lambda: _images(4, 224)),
    "mobilenet-v2": Model(_mobilenet, lambda: _images(4, 224)),
    "gpt2-training": Model(_gpt2_training, _training_tokens, train=True),
}
# Reduced to seconds, for the demo and for developing the benchmarks themselves.
SMALL: dict[str, Model] = {
    "resnet-18": Model(resnet18, lambda: _images(1, 224)),
    "small-gpt2": Model(small_gpt2, lambda: (_tokens(1, 64, 5000),)),
}


def find(name: str) -> Model:
    """The model of a name; KeyError for an unknown one."""
    return (MODELS | SMALL)[name]


def step(
    module: nn.Module, call: Callable[..., torch.Tensor], model: Model, inputs: Tensors
) -> Any:
    """One call of the model: its output, or for a training step its loss, with fresh gradients."""
    if not model.train:
        with torch.no_grad():
            return call(*inputs)
    module.zero_grad(set_to_none=True)
    loss = call(*inputs)
    loss.backward()
    return loss


def results(module: nn.Module, output: torch.Tensor, model: Model) -> list[torch.Tensor]:
    """What one call left to compare: the output, and after a training step all gradients."""
    gradients = [p.grad for p in module.parameters() if p.grad is not None] if model.train else []
    return [output.detach(), *gradients]
