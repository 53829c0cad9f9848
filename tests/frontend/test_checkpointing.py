"""Activations that are computed again in the backward: random numbers come out the same."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

import irc
from tests.backends import needs_backend

pytestmark = [needs_backend, pytest.mark.fault("C1")]
aten = torch.ops.aten


class Block(nn.Module):
    """Draws thrice: a dropout, noise, a dropout of channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        h = F.dropout(F.gelu(self.first(x)), 0.3, self.training)
        h = h + 0.1 * torch.rand_like(h) * torch.randn(h.shape[-1])
        return x + F.dropout1d(self.second(h), 0.2, self.training)


class Stack(nn.Module):
    """Blocks, each under a checkpoint, with a dropout between that is not."""

    def __init__(self, width: int, **how: Any) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(2)])
        self.how = how

    def forward(self, x):
        for block in self.blocks:
            x = F.dropout(checkpoint(block, x, **self.how), 0.1, self.training)
        return x


def step(call: Any, model: nn.Module, x: torch.Tensor, seed: int = 7) -> list[torch.Tensor]:
    """Result, gradients and the next random numbers of one step from a seed."""
    model.zero_grad()
    given = x.clone().requires_grad_()
    torch.manual_seed(seed)
    made = call(given)
    (made * torch.arange(made.numel()).reshape(made.shape).cos()).sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    return [made.detach(), given.grad, *gradients, torch.rand(3)]


def assert_as_eager(model: nn.Module, *inputs: torch.Tensor, dynamic: bool | None = None) -> None:
    """Two steps with each of the inputs draw as eager mode draws, and are right."""
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="irc", fullgraph=True, dynamic=dynamic)
    for seed, x in enumerate([x for x in inputs for _ in range(2)]):
        mine, eager = step(compiled, model, x, seed), step(model, model, x, seed)
        torch.testing.assert_close(mine, eager, rtol=2e-5, atol=2e-5)
        assert torch.equal(mine[-1], eager[-1]), "the generator is left as in eager mode"


@pytest.mark.parametrize("reentrant", [False, True])
def test_dropout_under_a_checkpoint(reentrant):
    torch.manual_seed(0)
    assert_as_eager(Stack(6, use_reentrant=reentrant), torch.randn(3, 5, 6))


def test_sizes_that_change():
    torch.manual_seed(0)
    inputs = torch.randn(3, 5, 6), torch.randn(2, 9, 6)
    assert_as_eager(Stack(6, use_reentrant=False), *inputs, dynamic=True)


@pytest.mark.parametrize("saved", [aten.addmm.default, aten.native_dropout.default, None])
def test_a_policy_says_what_is_saved(saved):
    def policy(context, op, *args, **kwargs):
        return CheckpointPolicy.MUST_SAVE if op is saved else CheckpointPolicy.MUST_RECOMPUTE

    torch.manual_seed(0)
    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    model = Stack(6, use_reentrant=False, context_fn=contexts)
    assert_as_eager(model, torch.randn(3, 5, 6))


def test_programs_name_the_state_of_the_generator():
    torch.manual_seed(0)
    model = Stack(4, use_reentrant=False)
    torch._dynamo.reset()
    with irc.frontend.backend.recording() as made:
        step(torch.compile(model, backend="irc"), model, torch.randn(2, 3, 4))
    forward, backward = (str(each.imported.module) for each in made)
    assert "aten.extern.irc.rng_state.default" in forward
    assert "aten.extern.irc.set_rng_state.default" not in forward
    sets = backward.count("aten.extern.irc.set_rng_state.default")
    assert sets == 2 * backward.count("aten.extern.irc.rng_state.default") > 0


def test_a_text_with_the_state_is_a_program():
    text = """
        func.func @main() -> (tensor<[3] x f32>, tensor<[3] x f32>) {
          %s = aten.extern.irc.rng_state.default {arguments = {device = #aten.device<"cpu">}} : () -> tensor<[5056] x ui8, strides [1]>
          %a = aten.rand.default {arguments = {size = [3 : i64]}} : () -> tensor<[3] x f32, strides [1]>
          aten.extern.irc.set_rng_state.default %s {arguments = {device = #aten.device<"cpu">, state = #aten.operand<0>}} : (tensor<[5056] x ui8, strides [1]>) -> ()
          %b = aten.rand.default {arguments = {size = [3 : i64]}} : () -> tensor<[3] x f32, strides [1]>
          func.return %a, %b : tensor<[3] x f32, strides [1]>, tensor<[3] x f32, strides [1]>
        }
    """  # noqa: E501
    module = irc.parse(text)
    first, second = irc.run(module)
    assert torch.equal(first, second)
    irc.PassManager.parse("lower-to-cpu").run(module)
    first, second = irc.build(module)()
    assert torch.equal(first, second)


def tiny(name: str, layers: int) -> Any:
    """A model with dropout, of so many layers."""
    transformers = pytest.importorskip("transformers")
    if name == "bert":
        config = transformers.BertConfig(
            vocab_size=50, hidden_size=16, num_hidden_layers=layers, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=16,
        )  # fmt: skip
        return transformers.BertForMaskedLM(config)
    if name == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=50, n_embd=16, n_layer=layers, n_head=2, n_positions=16
        )
        return transformers.GPT2LMHeadModel(config)
    config = transformers.LlamaConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=layers, num_attention_heads=2,
        num_key_value_heads=1, intermediate_size=32, max_position_embeddings=16,
        attention_dropout=0.1,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


@pytest.mark.parametrize(
    ("name", "reentrant", "layers"),
    [
        ("bert", False, 1),
        ("llama", True, 1),
        # More checkpoints in a row are those of `Stack`.
        *(
            pytest.param(name, reentrant, 2, marks=pytest.mark.slow)
            for name, reentrant in (("bert", False), ("gpt2", True), ("llama", True))
        ),
    ],
)
def test_gradient_checkpointing_of_transformers(name, reentrant, layers):
    torch.manual_seed(0)
    model = tiny(name, layers).train()
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    words = torch.randint(50, (2, 9))
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="irc")

    def gradients(call: Any) -> list[torch.Tensor]:
        model.zero_grad()
        torch.manual_seed(5)
        loss = call(input_ids=words, labels=words, use_cache=False).loss
        loss.backward()
        return [loss.detach(), *(p.grad.clone() for p in model.parameters())]

    mine, eager = gradients(compiled), gradients(model)
    torch.testing.assert_close(mine, eager, rtol=1e-4, atol=1e-5)
