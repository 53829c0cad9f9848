"""What is a contraction, by its axes."""

from __future__ import annotations

import pytest

import irc
from irc.analysis.contraction import Contraction, contraction_of
from irc.dialects import loop

MATRIX = "tensor<[8, 8] x f32, strides [8, 1]>"


def contraction(axes: str, body: str, rank: int = 2) -> Contraction | str:
    sizes, strides = ", ".join(["8"] * rank), ["1", "8, 1", "64, 8, 1", "512, 64, 8, 1"][rank - 1]
    module = irc.parse(f"""
func.func @main(%a: {MATRIX}, %b: {MATRIX}, %s: tensor<[8] x f32, strides [1]>) {{
  %y = loop.compute {axes} -> reduce(sum, f32) {{
{body}
    loop.yield %v : f32
  }} : tensor<[{sizes}] x f32, strides [{strides}]>
  func.return
}}""")
    compute = next(op for op in module.walk() if isinstance(op, loop.ComputeOp))
    return contraction_of(compute)


def names(axes) -> list[str]:
    return [axis.name for axis in axes]


PRODUCT = """    %p = loop.read %a[{}] : f32
    %q = loop.read %b[{}] : f32
    %v = arith.mulf %p, %q : f32"""


@pytest.mark.parametrize(("axes", "left", "right", "expected"), [
    ("par(m: 8, n: 8) red(k: 8)", "m, k", "k, n", ([], ["m"], ["n"], ["k"])),
    ("par(m: 8, n: 8) red(k: 8)", "k, n", "m, k", ([], ["m"], ["n"], ["k"])),
    ("par(m: 4, i: 2, n: 8) red(k: 4, l: 2)", "m*2 + i, k*2 + l", "k*2 + l, n",
     ([], ["m", "i"], ["n"], ["k", "l"])),
    ("par(o: 1, m: 8, n: 8) red(k: 8, p: 1)", "m, k", "k, n",
     (["o"], ["m"], ["n"], ["k", "p"])),
    ("par(b: 4, n: 4) red(k: 4)", "b, k", "k, b + n", (["b"], [], ["n"], ["k"])),
])  # fmt: skip
def test_axes_decide_which_side_is_rows(axes, left, right, expected):
    rank = axes.split(")")[0].count(":")
    got = contraction(axes, PRODUCT.format(left, right), rank)
    assert isinstance(got, Contraction)
    assert tuple(map(names, (got.batch, got.rows, got.columns, got.depth))) == expected
    assert got.left.plain is not None
    assert "n" in got.right.axes and "n" not in got.left.axes


def test_a_prologue_belongs_to_its_side():
    got = contraction("par(m: 8, n: 8) red(k: 8)", """    %p = loop.read %a[m, k] : f32
    %s0 = loop.read %s[k] : f32
    %p1 = arith.mulf %p, %s0 : f32
    %q = loop.read %b[k, n] : f32
    %v = arith.mulf %p1, %q : f32""")
    assert isinstance(got, Contraction)
    assert len(got.left.ops) == 3 and len(got.left.reads) == 2 and got.left.plain is None
    assert got.right.plain is not None


@pytest.mark.parametrize(("axes", "body", "reason"), [
    ("par(m: 8, n: 8) red(k: 8)", "    %v = loop.read %a[m, k] : f32", "no product"),
    ("par(m: 8, n: 8) red(k: 8)", PRODUCT.format("m, n", "m, n"), "no factor depends on k"),
    ("par(m: 8, n: 8) red(k: 8)", PRODUCT.format("m, k", "m, n"), "one factor alone"),
])  # fmt: skip
def test_what_is_none_says_why(axes, body, reason):
    got = contraction(axes, body)
    assert isinstance(got, str) and reason in got
