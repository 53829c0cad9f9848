"""Selects under a mask that a later select makes again are dropped, but none before a division."""

from __future__ import annotations

import torch
from torch.nn import functional as F

import irc

TO_LOOP = (
    "decompose-aten,convert-aten-to-graph,canonicalize,cse,assign-layouts,insert-layout-copies,cse,"
    "convert-to-loop,cse,dce,inline-computes"
)


def inlined(function, *arguments: torch.Tensor):
    module = irc.trace(function, arguments)
    irc.PassManager.parse(TO_LOOP).run(module)
    return module, sum(op.name == "arith.select" for op in module.walk())


def test_a_padded_chain_has_one_select():
    def f(x):
        return F.pad(((x + 2).relu() * 3 - x).neg(), (1, 2))

    x = torch.randn(5, 7)
    module, selects = inlined(f, x)
    assert selects == 1
    got = irc.run(module, x)
    torch.testing.assert_close(got[0] if isinstance(got, tuple | list) else got, f(x))
    torch.testing.assert_close(irc.compile(f, (x,))(x), f(x))


def test_two_masks_keep_a_select_each():
    def f(x, y):
        return torch.cat([F.pad(x.exp() + 1, (1, 0)), y.sin()], 1).cos()

    x, y = torch.randn(3, 4), torch.randn(3, 6)
    torch.testing.assert_close(irc.compile(f, (x, y))(x, y), f(x, y))


def test_a_divisor_outside_of_the_mask_stays_selected():
    def f(x, y):
        return F.pad(torch.div(x, y + 1, rounding_mode="floor") + 1, (3, 3))

    x, y = torch.arange(40).view(5, 8), torch.arange(40).view(5, 8)
    assert torch.equal(irc.compile(f, (x, y))(x, y), f(x, y))
