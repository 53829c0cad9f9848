"""Compiled autograd: backward passes whose graphs take lists of tensors."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch._dynamo import compiled_autograd


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    compiled_autograd.reset()
    torch._dynamo.reset()


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(7, 9), nn.LayerNorm(9), nn.GELU(), nn.Linear(9, 3))


def backward_as_program(dynamic: bool) -> object:
    compiler = torch.compile(backend="irc", fullgraph=True, dynamic=dynamic)
    return compiled_autograd._enable(compiler, dynamic=dynamic)


@pytest.mark.parametrize(
    ("dynamic", "forward"),
    [
        (False, "eager"),
        (True, "irc"),
        pytest.param(False, "irc", marks=pytest.mark.slow),
        pytest.param(True, "eager", marks=pytest.mark.slow),
    ],
)
def test_gradients_accumulate_over_batches(dynamic: bool, forward: str) -> None:
    expected, made = model(), model()
    call = torch.compile(made, backend="irc", dynamic=dynamic) if forward == "irc" else made
    for rows in (5, 8, 5):
        x = torch.randn(rows, 7)
        expected(x).sin().sum().backward()
        with backward_as_program(dynamic):
            call(x).sin().sum().backward()
    for p, q in zip(expected.parameters(), made.parameters(), strict=True):
        torch.testing.assert_close(q.grad, p.grad)


def test_hooks_are_part_of_the_program() -> None:
    expected = model()
    made = copy.deepcopy(expected)
    for each in (expected, made):
        each[0].weight.register_hook(lambda g: g.clamp(-0.1, 0.1) * 2)
    x = torch.randn(4, 7)
    expected(x).pow(2).sum().backward()
    with backward_as_program(False):
        made(x).pow(2).sum().backward()
    for p, q in zip(expected.parameters(), made.parameters(), strict=True):
        torch.testing.assert_close(q.grad, p.grad)
