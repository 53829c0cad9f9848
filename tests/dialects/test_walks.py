"""Groups that are walked along an axis: text, meaning, and what the verifier refuses."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.interp import run
from irc.ir.verifier import verify
from tests.dialects.verifying import check

#: Sums of x over the columns below `n`, in steps of two columns, and what they were at first.
WALK = """
func.func @main(%x: tensor<[3, 8] x f32, strides [8, 1]>, %n: tensor<[3] x i64, strides [1]>) -> tensor<[3] x f32, strides [1]> attributes {level = "loop"} {
  %y = loop.group (i0: 3) {
    %a = loop.compute par(i0: 3, i1: 1) -> map {
      %0 = arith.constant 10.0 : f32
      loop.yield %0
    } : tensor<[3, 1] x f32, strides [1, 1]>
    %m = loop.compute par(i0: 3) -> map {
      %0 = loop.read %n[i0] : i64
      loop.yield %0
    } : tensor<[3] x i64, strides [1]>
    %s = loop.group (i0: 3, step: 4) iter_args(%a) limit(%m) {
    ^bb0(%b: tensor<[3, 1] x f32, strides [1, 1]>):
      %p = loop.compute par(i0: 3, step: 4) red(c: 2) -> reduce(sum, f32) {
        %0 = loop.read %x[i0, step*2 + c] : f32
        loop.yield %0
      } : tensor<[3, 4] x f32, strides [4, 1]>
      %q = loop.compute par(i0: 3, step: 4, i1: 1) -> map {
        %0 = loop.read %b[i0, i1] : f32
        %1 = loop.read %p[i0, step] : f32
        %2 = arith.addf %0, %1 : f32
        loop.yield %2
      } : tensor<[3, 4, 1] x f32, strides [4, 1, 1]>
      loop.yield %q
    } : tensor<[3, 1] x f32, strides [1, 1]>
    %z = loop.compute par(i0: 3) -> map {
      %0 = loop.read %s[i0, 0] : f32
      loop.yield %0
    } : tensor<[3] x f32, strides [1]>
    loop.yield %z
  } : tensor<[3] x f32, strides [1]>
  return %y : tensor<[3] x f32, strides [1]>
}
"""  # noqa: E501


def test_text_comes_back() -> None:
    module = irc.parse(WALK)
    verify(module)
    text = str(module)
    assert "iter_args(%a) limit(%m)" in text
    assert str(irc.parse(text)) == text
    generic = irc.print_op(module, generic=True)
    assert str(irc.parse(generic)) == text


@pytest.mark.parametrize("steps", [[0, 1, 4], [4, 4, 4], [2, -1, 9]])
def test_steps_below_the_limit_count(steps: list[int]) -> None:
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))
    (got,) = run(irc.parse(WALK), x, torch.tensor(steps))
    ends = [min(max(2 * n, 0), 8) for n in steps]
    wanted = torch.stack([10 + row[:end].sum() for row, end in zip(x, ends, strict=True)])
    torch.testing.assert_close(got, wanted)


WRONG = {
    "no group around": ("  %y = loop.group (i0: 3) {", "  %y = loop.group (j: 3) {", "axes"),
    "another shape": ("iter_args(%a)", "iter_args(%m)", "carries"),
    "a limit of floats": ("limit(%m)", "limit(%a)", "limit"),
    "two limits": ("limit(%m)", "limit(%m, %m)", "operands"),
    "not of this walk": ("loop.yield %q", "loop.yield %b", "which is carried"),
    "another point of what is carried": ("%b[i0, i1]", "%b[0, i1]", "another point"),
    "another place than its own": ("%b[i0, i1]", "%b[i0, 0]", "was replaced"),
    "another step": ("%p[i0, step]", "%p[i0, 0]", "another point"),
}


@pytest.mark.parametrize(("old", "new", "message"), WRONG.values(), ids=WRONG)
def test_what_is_no_walk(old: str, new: str, message: str) -> None:
    assert WALK.count(old) == 1
    check(WALK.replace(old, new), message)


def test_nothing_reads_what_was_replaced() -> None:
    late = """      %r = loop.compute par(i0: 3, step: 4) -> map {
        %0 = loop.read %b[i0, 0] : f32
        loop.yield %0
      } : tensor<[3, 4] x f32, strides [4, 1]>
      loop.yield %q"""
    check(WALK.replace("      loop.yield %q", late), "was replaced")


def test_what_it_begins_with_is_for_it_alone() -> None:
    again = WALK.replace("loop.read %s[i0, 0]", "loop.read %a[i0, 0]")
    check(again, "for it alone")
