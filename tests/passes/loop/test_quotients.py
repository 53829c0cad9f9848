"""Quotients by powers of two that became constants of a body."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import arith
from irc.ir.passes import PassManager

LOWERED = "decompose-aten,convert-aten-to-graph,assign-layouts,convert-to-loop,inline-computes"


@pytest.mark.parametrize("number, left", [(8.0, 0), (0.5, 0), (-4.0, 0), (3.0, 1), (0.0, 1)])
def test_a_quotient_by_a_power_of_two_is_a_product(number: float, left: int) -> None:
    x, y = torch.randn(4, 5), torch.full((5,), number)
    args = [x]
    module = irc.trace(lambda x: x.exp() / torch.full((5,), number), args)
    PassManager.parse(LOWERED).run(module)
    assert sum(isinstance(op, arith.DivFOp) for op in module.walk()) == left
    (result,) = irc.run(module, *args)
    assert torch.equal(result, irc.run(irc.trace(lambda x: x.exp() / y, args), x)[0])
