"""Sparse tensors that graphs make: torch runs what makes them after the program."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.backends import needs_backend

pytestmark = [needs_backend, pytest.mark.fault("C7")]


class Words(nn.Module):
    """A table that is read once or twice, and a linear beside it."""

    def __init__(self, twice: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4, sparse=True)
        self.linear, self.twice = nn.Linear(4, 3), twice

    def forward(self, words):
        found = self.table(words)
        if self.twice:
            found = found + self.table(words[:1]).relu()
        return self.linear(found.cos())


class Bags(nn.Module):
    def __init__(self, mode: str) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(10, 4, sparse=True, mode=mode)

    def forward(self, words):
        return self.table(words) * 2


def gradients(call: Any, model: nn.Module, words: torch.Tensor) -> list[torch.Tensor]:
    model.zero_grad(set_to_none=True)
    call(words).square().sum().backward()
    return [p.grad for p in model.parameters()]


@pytest.mark.parametrize(
    ("make", "dynamic"),
    [
        (lambda: Words(False), False),
        (lambda: Words(False), True),
        (lambda: Words(True), False),  # with dynamic sizes torch's own fake tensors fail here
        (lambda: Bags("sum"), True),
        (lambda: Bags("mean"), False),
    ],
)
def test_sparse_gradients(make, dynamic):
    torch.manual_seed(0)
    model = make()
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="irc", dynamic=dynamic)
    for words in (torch.tensor([[1, 2, 1], [3, 3, 9]]), torch.tensor([[0, 5], [5, 5], [7, 1]])):
        mine, eager = gradients(compiled, model, words), gradients(model, model, words)
        assert [g.layout for g in mine] == [g.layout for g in eager]
        for a, b in zip(mine, eager, strict=True):
            torch.testing.assert_close(a.to_dense(), b.to_dense(), rtol=1e-5, atol=1e-5)


def test_a_sparse_optimizer_steps():
    def trained(compile_it: bool) -> torch.Tensor:
        torch.manual_seed(0)
        model = Words(True)
        call = torch.compile(model, backend="irc") if compile_it else model
        optimizer = torch.optim.SparseAdam(model.table.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            call(torch.tensor([[step, 2, 1]])).square().sum().backward()
            optimizer.step()
        return model.table.weight.detach()

    torch.testing.assert_close(trained(True), trained(False), rtol=1e-4, atol=1e-5)


def test_what_is_computed_of_a_sparse_tensor_is_torchs_too():
    def function(x, positions):
        made = torch.sparse_coo_tensor(positions, x.sin(), (6, 6))
        return made.to_dense().cos(), x * 2, made

    x, positions = torch.randn(3), torch.tensor([[0, 2, 5], [1, 1, 4]])
    torch._dynamo.reset()
    mine = torch.compile(function, backend="irc")(x, positions)
    eager = function(x, positions)
    assert mine[2].layout is torch.sparse_coo
    for a, b in zip(mine, eager, strict=True):
        torch.testing.assert_close(a.to_dense(), b.to_dense())
