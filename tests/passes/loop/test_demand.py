"""Selects under a mask that a later select makes again are dropped, but none before a division;
reads by column under a pad's mask lose it where they stay in bounds."""

from __future__ import annotations

import torch
from torch.nn import functional as F

import irc
from tests.passes.loop.texts import computes, parsed, ran

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


def masked_reads(module):
    """The names of the arrays that are read under a mask."""
    reads = [op for op in module.walk() if op.name == "loop.read"]
    return {op.source.name_hint for op in reads if op.mask is not None}


def test_what_is_read_by_column_needs_no_mask():
    def f(x, scale):
        return F.pad(x * scale, (0, 0, 1, 2))

    x, scale = torch.randn(5, 7), torch.randn(7)
    assert masked_reads(inlined(f, x, scale)[0]) == {"arg0_1"}
    torch.testing.assert_close(irc.compile(f, (x, scale))(x, scale), f(x, scale))


def test_large_arrays_divisors_and_reads_past_the_end_keep_their_masks():
    def large(x, scale):
        return F.pad(x * scale, (0, 0, 1, 2))

    def divided(x, scale):
        return F.pad(torch.div(x, scale, rounding_mode="floor") + 1, (0, 0, 1, 2))

    def beyond(x, scale):
        return F.pad(x * scale, (0, 3, 1, 2))

    whole = torch.arange(1, 8)
    for f, x, scale in (
        (large, torch.randn(2, 5000), torch.randn(5000)),
        (divided, torch.arange(35).view(5, 7), whole),
        (beyond, torch.randn(5, 7), torch.randn(7)),
    ):
        assert masked_reads(inlined(f, x, scale)[0]) == {"arg0_1", "arg1_1"}, f.__name__
        torch.testing.assert_close(irc.compile(f, (x, scale))(x, scale), f(x, scale))


def test_which_arrays_are_small_is_the_targets():
    text = """%m = loop.compute par(i0: 5, i1: 7) -> map {
      %a = loop.read %x[i0, i1] : f32
      %b = loop.read %v[i1] : f32
      %c = arith.mulf %a, %b : f32
      loop.yield %c } : f32[5, 7]
    %y = loop.compute par(i0: 6, i1: 7) -> map {
      %k = loop.index {expression = #sym<i0>} : index
      %n = arith.constant 5 : index
      %t = arith.cmpi slt, %k, %n : index
      %a = loop.read %m[i0, i1] (where %t) : f32
      loop.yield %a } : f32[6, 7]"""
    for near, masked in ((27, ["x", "v"]), (28, ["x"])):
        module = parsed("%x: f32[5, 7], %v: f32[7]", text, "%y: f32[6, 7]")
        ran(module, "inline-computes", f"#irc.target<avx2, near_bytes = {near}>")
        (made,) = computes(module)
        assert [r.source.name_hint for r in made.reads if r.mask is not None] == masked
