"""Symbolic sizes that turn out to be a number while torch traces: the guard is a fact."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

import irc
from tests.backends import BACKEND, needs_backend

pytestmark = [needs_backend, pytest.mark.fault("C11")]


def pooled(x: torch.Tensor) -> torch.Tensor:
    return F.batch_norm(F.avg_pool2d(x, 2), torch.zeros(4), torch.ones(4))


def halved(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x.new_ones(4, math.ceil(x.shape[1] // 2 / 2), 16) * x.sum(), (16,))


def twice_pooled(x: torch.Tensor) -> torch.Tensor:
    y = F.max_pool2d(F.avg_pool2d(x, 3, 2, 1), 2)
    z = F.batch_norm(y, torch.zeros(4), torch.ones(4))
    return z.expand(-1, -1, 5, 3) + y.flatten(2)[:, :, :1, None]


CASES = [
    (pooled, [(3, 4, 2, 2), (5, 4, 3, 3), (2, 4, 8, 8)]),
    (halved, [(3, 2), (2, 4), (3, 9)]),
    (twice_pooled, [(3, 4, 4, 4), (2, 4, 3, 3)]),
]


@pytest.mark.parametrize(("f", "shapes"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_a_size_that_becomes_a_number(f, shapes) -> None:
    torch._dynamo.reset()
    torch.manual_seed(3)
    compiled = torch.compile(f, backend=BACKEND, dynamic=True)
    for shape in shapes:
        x = torch.randn(shape)
        torch.testing.assert_close(compiled(x), f(x))


@pytest.mark.parametrize(("f", "shapes"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_without_dynamo_the_program_checks_the_fact(f, shapes) -> None:
    """`irc.compile` has no guards around it: another size than the fact allows is an error."""
    torch.manual_seed(3)
    x = torch.randn(shapes[0])
    compiled = irc.compile(f, (x,), dynamic=True)
    torch.testing.assert_close(compiled(x), f(x))
    larger = torch.randn([*shapes[0][:-1], 40] if len(shapes[0]) == 2 else [3, 4, 40, 40])
    with pytest.raises((RuntimeError, irc.IRCError)):
        compiled(larger)
