"""Each rule of `kernel.dot`, by a kernel that breaks it; and what it computes."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import kernel
from irc.interp.core import Frame
from irc.interp.kernel import launch
from tests.dialects.verifying import check


def dot(
    left: str = "16x16xbf16", right: str = "16x16xbf16", total: str = "16x16xf32",
    result: str = "", precision: str = "", target: str = "gpu",
) -> str:  # fmt: skip
    """A kernel with one dot of constants."""
    def constant(name: str, shape: str) -> str:
        content = "1" if "xi" in shape else "1.0"
        return f"%{name} = arith.constant dense<{content}> : vector<{shape}>"

    more = f' {{precision = "{precision}"}}' if precision else ""
    ends = "%begin: index, %end: index" if target == "cpu" else ""
    return f"""kernel.func @k({ends}) attributes {{target = "{target}"}} {{
      {constant("a", left)}
      {constant("b", right)}
      {constant("c", total)}
      %t = kernel.dot %a, %b, %c{more} : (vector<{left}>, vector<{right}>, vector<{total}>)
        -> vector<{result or total}>
      kernel.return }}"""


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (dot(), None),
        (dot("16x32xi8", "32x16xi8", "16x16xi32"), None),
        (dot("16x16xf32", "16x8xf32", "16x8xf32", precision="tf32"), None),
        (dot(result="16x16xbf16"), "gives vector<16x16xbf16>, not vector<16x16xf32>"),
        (dot("16x16x16xbf16"), "not tiles with two dimensions"),
        (dot("16x32xbf16"), "their sizes don't fit"),
        (dot("16x16xf16"), "multiplies f16 and bf16, which are to be one type"),
        (dot(precision="tf32"), "precision tf32 is of factors of f32, not bf16"),
        (dot(precision="no"), "precision 'no' is not one of ieee, tf32, tf32x3"),
        (dot("16x16xf64", "16x16xf64"), "a gpu multiplies no tiles of f64"),
        (dot("16x32xi8", "32x16xi8"), "sums products of i8 up in i32, not f32"),
        (dot("8x16xbf16", total="8x16xf32"), "at least 16x8x16 of bf16 .m x n x k., not 8x16x16"),
    ],
)  # fmt: skip
def test_what_a_dot_is(text: str, error: str | None) -> None:
    check(text, error)


TEXT = """kernel.func @k(%x: !kernel.ptr<f32>, %y: !kernel.ptr<f32>)
    attributes {target = "gpu", outputs = array<i64: 1>} {
  %i = kernel.iota {dim = 0 : i64} : vector<16x16xindex>
  %j = kernel.iota {dim = 1 : i64} : vector<16x16xindex>
  %w = arith.constant dense<16> : vector<16x16xindex>
  %r = arith.muli %i, %w : vector<16x16xindex>
  %p = arith.addi %r, %j : vector<16x16xindex>
  %a = kernel.gather %x[%p] : vector<16x16xf32>
  %t = kernel.dot %a, %a, %a : (vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>)
    -> vector<16x16xf32>
  kernel.scatter %t, %y[%p] : vector<16x16xf32>
  kernel.return }"""


def test_a_dot_adds_a_product() -> None:
    module = irc.parse(TEXT)
    func = next(op for op in module.walk() if isinstance(op, kernel.KernelFuncOp))
    x, y = torch.randn(16, 16, dtype=torch.float64).float(), torch.zeros(16, 16)
    launch(Frame(None, symbols={}), func, [x, y])
    torch.testing.assert_close(y, (x.double() @ x.double() + x.double()).float())


def tile(shape: str = "16x32xbf16", stride: str = "64", target: str = "gpu") -> str:
    """A kernel that loads a tile of a matrix."""
    ends = ", %begin: index, %end: index" if target == "cpu" else ""
    return f"""kernel.func @k(%p: !kernel.ptr<bf16>{ends}) attributes {{target = "{target}"}} {{
      %i = arith.constant 3 : index
      %t = kernel.load_tile %p, %i, %i {{sizes = #sym.dims<[100, 64]>, stride = #sym<{stride}>}} :
        (!kernel.ptr<bf16>, index, index) -> vector<{shape}>
      kernel.return }}"""


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (tile(), None),
        (tile(target="cpu"), "is of gpu kernels"),
        (tile("16xbf16"), "not a tile of a matrix"),
        (tile("16x32xf32"), "loads vector<16x32xf32> at a !kernel.ptr<bf16>"),
        (tile(stride="70"), "a row is 70 elements of 2 bytes, no multiple of 16 bytes"),
        (tile("16x4xbf16"), "rows of at least 16 bytes"),
        (tile("512x16xbf16"), "at most 256 of anything"),
    ],
)  # fmt: skip
def test_what_a_tile_of_a_matrix_is(text: str, error: str | None) -> None:
    check(text, error)
