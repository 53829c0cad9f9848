"""Each rule of the loop dialect's verifier, by a program that breaks it."""

from __future__ import annotations

import pytest

from tests.dialects.verifying import check

HEAD = """\
func.func @main(%x: tensor<[4, 6] x f32, strides [6, 1]>) -> tensor<[4, 6] x f32, strides [6, 1]>
    attributes {level = "loop"} {
"""
SUM = """\
  %s = loop.compute AXES -> OUT {
    %a = loop.read %x[INDICES] : f32
    loop.yield %a
  } : TYPE
  func.return %x : tensor<[4, 6] x f32, strides [6, 1]>
}
"""
GROUP = """\
  %y = loop.group (i0: 4) {
    %s = loop.compute par(i0: 4) red(i1: 6) -> reduce(sum, f32) {
      %a = loop.read %x[i0, i1] : f32
      loop.yield %a
    } : tensor<[4] x f32, strides [1]>
    %z = loop.compute par(i0: 4, i1: 6) -> map {
      %b = loop.read %s[AT] : f32
      loop.yield %b
    } : tensor<[4, 6] x f32, strides [6, 1]>
    loop.yield STORED
  } : tensor<[4, 6] x f32, strides [6, 1]>
  func.return %y : tensor<[4, 6] x f32, strides [6, 1]>
}
"""


def compute(axes: str, out: str, indices: str, type_: str) -> str:
    body = SUM.replace("AXES", axes).replace("OUT", out).replace("INDICES", indices)
    return HEAD + body.replace("TYPE", type_)


@pytest.mark.parametrize(
    ("axes", "out", "indices", "type_", "error"),
    [
        ("par(i: 4) red(j: 6)", "reduce(sum, f32)", "i, j", "tensor<[4] x f32, strides [1]>", None),
        ("par(i: 4) red(j: 6)", "reduce(sum, f32)", "i, j", "tensor<[6] x f32, strides [1]>",
         r"its axes give \[4\]"),
        ("par(i: 4) red(j: 6)", "map", "i, j", "tensor<[4] x f32, strides [1]>",
         r"its axes give \[4, 6\]"),
        ("par(i: 4) red(i: 6)", "reduce(sum, f32)", "i, i", "tensor<[4] x f32, strides [1]>",
         "two axes have one name"),
        ("scan(i: 4, j: 6)", "scan(sum, f32)", "i, j", "tensor<[4, 6] x f32, strides [6, 1]>",
         "more than one scan axis"),
        ("par(i: 4, j: 6)", "scan(sum, f32)", "i, j", "tensor<[4, 6] x f32, strides [6, 1]>",
         "without a scan axis"),
        ("par(i: 4) red(j: 6)", "reduce(sum, f32)", "i", "tensor<[4] x f32, strides [1]>",
         "1 indices for an array of rank 2"),
    ],
)  # fmt: skip
def test_computes(axes, out, indices, type_, error):
    check(compute(axes, out, indices, type_), error)


@pytest.mark.parametrize(
    ("at", "stored", "error"),
    [
        ("i0", "%z", None),
        ("i0 + 0*i1", "%z", None),
        ("0", "%z", "at another point of the shared axes"),
        ("i1", "%z", "index 0, i1, is 5 at a point of its space; the size is 4"),
        ("i0", "%x", "was not made in it"),
        ("i0", "%s", "stores tensor"),
    ],
)
def test_groups(at, stored, error):
    check(HEAD + GROUP.replace("AT", at).replace("STORED", stored), error)


def test_a_member_has_the_shared_axes():
    text = HEAD + GROUP.replace("AT", "i0").replace("STORED", "%z")
    check(text.replace("par(i0: 4) red(i1: 6)", "par(j: 4) red(i1: 6)"), "do not start with")
