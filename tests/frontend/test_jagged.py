"""Jagged nested tensors: values, gradients, and batches of other lengths through one program."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.backends import needs_backend

pytestmark = [needs_backend, pytest.mark.fault("C3")]


def batch(*lengths: int, width: int = 8) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(lengths))
    rows = [torch.randn(n, width, generator=generator) for n in lengths]
    return torch.nested.nested_tensor(rows, layout=torch.jagged)


def dense(outcome: Any) -> list[torch.Tensor]:
    """What a result holds, without the nesting."""
    results = outcome if isinstance(outcome, tuple) else (outcome,)
    return [r.values() if r.is_nested else r for r in results]


def step(call: Any, x: torch.Tensor) -> tuple[Any, torch.Tensor]:
    """What `call` makes of `x`, and the gradient of `x`."""
    given = x.detach().requires_grad_()
    made = call(given)
    torch.autograd.backward(sum(r.cos().sum() for r in dense(made)))
    return made, given.grad.values()


class Block(nn.Module):
    """What a transformer does to every word for itself."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def pointwise(x):
    return (x.sin() + x) * x.cos()


def soft(x):
    return F.softmax(x, -1)


def over_the_words(x):
    """A softmax along the ragged dimension, and the size of the batch."""
    return F.softmax(x, 1) * x.size(0)


def two_results(x):
    return x * 2, x + 1


def heads(x):
    return x.unflatten(-1, (2, 4)).transpose(1, 2) * 2


def padded(x):
    return torch.nested.to_padded_tensor(x * 3, 0.5)


def put_together(x):
    return torch.cat([x, x.relu()], -1).values().sum(0)


DIFFERENTIABLE = [pointwise, soft, over_the_words, two_results, heads, padded, put_together]


def check(function: Any, differentiable: bool = True) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="irc", fullgraph=True)
    for lengths in ((3, 5, 1), (4, 2, 7), (2, 6)):
        x = batch(*lengths)
        if differentiable:
            (mine, gradient), (eager, wanted) = step(compiled, x), step(function, x)
            torch.testing.assert_close(gradient, wanted, rtol=1e-5, atol=1e-5)
        else:
            mine, eager = compiled(x), function(x)
        torch.testing.assert_close(dense(mine), dense(eager), rtol=1e-5, atol=1e-5)
        if isinstance(mine, torch.Tensor):
            assert mine.shape == eager.shape, "also the ragged size, which is the argument's"


@pytest.mark.parametrize("function", DIFFERENTIABLE, ids=lambda f: f.__name__)
def test_operations_on_jagged_tensors(function):
    check(function)


@pytest.mark.parametrize("dim", [1, 2])
def test_sums(dim):
    """aot_eager has no gradient of them either."""
    check(lambda x: (x * 2).sum(dim), differentiable=False)


def test_a_block_of_a_model():
    torch.manual_seed(0)
    model = Block()
    check(model)
    x = batch(3, 5, 1)

    def weights(call: Any) -> list[torch.Tensor]:
        model.zero_grad()
        call(x).values().square().sum().backward()
        return [p.grad.clone() for p in model.parameters()]

    compiled = torch.compile(model, backend="irc", fullgraph=True)
    torch.testing.assert_close(weights(compiled), weights(model), rtol=1e-4, atol=1e-5)
