"""What follows sums, between the steps of the next tile's products: values, and what is refused."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.codegen.llvm.kernel_emitter import emit_text
from irc.dialects import kernel
from irc.interp.core import run
from irc.ir.passes import PassManager
from tests.passes.kernel.test_matrix_products import (
    FITTING,
    HERE,
    OP,
    TILES,
    formed,
    kernels,
    sums,
)


def text(rows, inner, columns, entries):
    """A product of bf16 with a bias, something nonlinear and an array added, and one of the sums
    themselves."""
    a = f"tensor<[{rows}, {inner}] x bf16, strides [{inner}, 1]>"
    w = f"tensor<[{columns}, {inner}] x bf16, strides [{inner}, 1]>"
    y = f"tensor<[{rows}, {columns}] x f32, strides [{columns}, 1]>"
    schedule = f'schedule #loop.schedule<cpu, products = "matrix"{entries}>'
    return f"""func.func @main(%a: {a}, %w: {w},
      %b: tensor<[{columns}] x f32, strides [1]>, %z: {y}) -> ({y}, {y})
      attributes {{level = "loop"}} {{
  %y, %x = loop.group (m: {rows}, n: {columns}) {{
  {sums(rows, inner, columns, schedule, y)}
  %r = loop.compute par(m: {rows}, n: {columns}) -> map {{
    %x = loop.read %s[m, n] : f32
    %c = loop.read %b[n] : f32
    %d = arith.addf %x, %c : f32
    %e = math.tanh %d : f32
    %f = loop.read %z[m, n] : f32
    %o = arith.addf %e, %f : f32
    loop.yield %o }} : {y}
  loop.yield %r, %s : {y}, {y} }} : {y}, {y}
  func.return %y, %x : {y}, {y} }}"""


CASES = [
    ((2, 32, 32), ""),
    ((45, 64, 96), ""),
    ((45, 2080, 64), ""),
    ((64, 32, 32), ", point_rows = 32 : i64, point_columns = 32 : i64"),
    ((71, 96, 64), ", pack_left = true, tile_rows = 9 : i64, block_rows = 18 : i64"),
    ((33, 32, 96), ", tile_rows = 17 : i64, inner = \"columns\""),
    ((77, 64, 128), ", tile_rows = 23 : i64, inner = \"columns\", point_columns = 64 : i64"),
    ((40, 96, 48), ", tile_vectors = 1 : i64, block_rows = 32 : i64"),
    ((67, 64, 64), ", tile_rows = 5 : i64, point_rows = 15 : i64"),
]


@pytest.mark.parametrize("sizes, entries", CASES)
def test_values(sizes, entries):
    program = text(*sizes, entries)
    before, modules = irc.parse(program), []
    torch.manual_seed(0)
    types = [a.type for a in before.lookup("main").block.arguments]
    a, w, b, z = (torch.randn(type_.shape) for type_ in types)
    a, w = a.bfloat16(), w.bfloat16()
    sums = a.double() @ w.double().t()
    wanted = [torch.tanh(sums + b.double()) + z.double(), sums]
    for more in ("", ", woven = false"):
        module = formed(text(*sizes, entries + more))
        dots = [op for op in module.walk() if isinstance(op, kernel.DotRowsOp)]
        assert dots and all(bool(op.regions) == (not more) for op in dots)
        printed = irc.print_op(module)
        assert irc.print_op(irc.parse(printed)) == printed
        got = run(module, a, w, b, z, mode="real")
        torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)
        assert "tdpbf16ps" in emit_text(kernels(module), TILES, "asm")
        modules.append(module)
    if not HERE:
        return
    for module in modules:
        PassManager.parse("bufferize,plan-memory").run(module)
        native = [y.double() for y in irc.build(module)(a, w, b, z)]
        torch.testing.assert_close(native, wanted, rtol=1e-4, atol=1e-4)


def test_what_is_added_may_have_the_results_memory():
    """The one place that is written is read before, in the same turn."""
    (function,) = kernels(formed(text(45, 64, 96, "")))
    assert function.inplace
    irc.verify(function.parent_op)


def test_vectors_have_nothing_woven_in():
    program = text(45, 64, 96, ", woven = true").replace("matrix", "lanes")
    with pytest.raises(irc.InvalidIR, match="products of registers that hold whole tiles alone"):
        formed(program)


@pytest.mark.parametrize("region, reason", [
    ("({^bb0(%k: index): kernel.yield}, {^bb0(%j: index): kernel.yield})", "has 2 regions"),
    ("({^bb0(%k: f32): kernel.yield})", "takes an index"),
    ("({^bb0(%k: index): kernel.yield %k : index})", "ends in kernel.yield of nothing"),
    ("({^bb0(%k: index): kernel.yield ^bb1(%j: index): kernel.yield})", "a body is one block"),
])  # fmt: skip
def test_the_operation_is_verified(region, reason):
    program = OP.format(**FITTING)
    fine = program.replace("32 : i64} :", "32 : i64} ({^bb0(%k: index): kernel.yield}) :")
    irc.verify(irc.parse(fine))
    with pytest.raises(irc.InvalidIR, match=reason):
        irc.verify(irc.parse(program.replace("32 : i64} :", f"32 : i64}} {region} :")))
