"""Products of f32 whose numbers are cut into three parts of bf16: values, what is no number, and
what their schedules may say."""

from __future__ import annotations

import math

import pytest
import torch

import irc
from irc.codegen.llvm.kernel_emitter import emit_text
from irc.dialects.kernel import DotRowsOp
from irc.interp.core import run
from irc.ir.passes import PassManager
from tests.passes.kernel.test_matrix_products import (
    HERE,
    TILES,
    check_any_rows,
    formed,
    kernels,
)

SPLIT = 'products = "bf16x6"'
PARTS = ("0", "1", "2")


def read_parts(panel):
    """The sum of the parts of a weight that lies in panels."""
    place = f"floordiv(n, {panel}), floordiv(k, 2), mod(n, {panel}), mod(k, 2)"
    lines = [f"%q{p} = loop.read %w[{p}, {place}] : bf16\n %r{p} = arith.extf %q{p} : bf16 to f32"
             for p in PARTS]  # fmt: skip
    sums = ["%s01 = arith.addf %r0, %r1 : f32", "%q = arith.addf %s01, %r2 : f32"]
    return "\n".join(lines + sums)


def text(rows, inner, columns, entries="", place="n, k", left="m, k", after="math.tanh"):
    """A product of two arrays, or of one and panels of parts (place=None), and what follows."""
    a = f"tensor<[{rows}, {inner}] x f32, strides [{inner}, 1]>"
    if left == "k, m":
        a = f"tensor<[{inner}, {rows}] x f32, strides [{rows}, 1]>"
    read = f"%q = loop.read %w[{place}] : f32"
    sizes, strides = {"n, k": ([columns, inner], [inner, 1]),
                      "k, n": ([inner, columns], [columns, 1]), None: ([], [])}[place]  # fmt: skip
    element = "f32"
    if place is None:
        count, element = -(-columns // 32) * 2, "bf16"
        sizes = [3, count, inner // 2, 16, 2]
        strides = [count * inner * 16, inner * 16, 32, 2, 1]
        read = read_parts(16)
    w = f"tensor<{sizes} x {element}, strides {strides}>"
    y = f"tensor<[{rows}, {columns}] x f32, strides [{columns}, 1]>"
    schedule = f"schedule #loop.schedule<cpu, {SPLIT}{entries}>"
    return f"""func.func @main(%a: {a}, %w: {w}) -> {y} attributes {{level = "loop"}} {{
  %y = loop.group (m: {rows}, n: {columns}) {{
  %s = loop.compute par(m: {rows}, n: {columns}) red(k: {inner}) -> reduce(sum, f32) {schedule} {{
    %p = loop.read %a[{left}] : f32
    {read}
    %v = arith.mulf %p, %q : f32
    loop.yield %v }} : {y}
  %r = loop.compute par(m: {rows}, n: {columns}) -> map {{
    %x = loop.read %s[m, n] : f32
    %o = {after} %x : f32
    loop.yield %o }} : {y}
  loop.yield %r : {y} }} : {y}
  func.return %y : {y} }}"""


def arguments(program, place):
    torch.manual_seed(0)
    first, second = (a.type for a in irc.parse(program).lookup("main").block.arguments)
    x = torch.randn(first.shape)
    if place is not None:
        return x, torch.randn(second.shape)
    whole = torch.randn(second.shape[1:])
    parts, rest = [], whole
    for _ in PARTS:
        parts.append(rest.bfloat16())
        rest = rest - parts[-1].float()
    assert not rest.any()
    return x, torch.stack(parts)


CASES = [
    ((40, 64, 64), "", "n, k"), ((40, 64, 64), "", "k, n"), ((40, 64, 64), "", None),
    ((71, 96, 83), "", "n, k"), ((71, 96, 83), "", "k, n"), ((71, 96, 83), "", None),
    ((71, 96, 83), ", block_depth = 32 : i64", "n, k"),
    ((171, 160, 83), ", block_depth = 64 : i64, block_rows = 64 : i64", "k, n"),
    ((45, 160, 96), ", block_depth = 64 : i64, point_columns = 32 : i64", None),
    ((100, 64, 128), ", point_rows = 32 : i64, point_columns = 32 : i64", "n, k"),
    ((33, 32, 64), ', tile_rows = 17 : i64, inner = "columns"', None),
    ((40, 96, 48), ", tile_vectors = 1 : i64, block_rows = 32 : i64", "n, k"),
    ((71, 96, 211), ', pack_columns = 64 : i64, inner = "columns"', "n, k"),
    ((71, 96, 211), ", pack_columns = 96 : i64, tile_vectors = 2 : i64, block_depth = 32 : i64",
     "k, n"),
    ((70, 64, 192), ", pack_columns = 64 : i64, block_rows = 32 : i64", "n, k"),
    ((40, 64, 64), ", woven = false", "n, k"), ((2, 32, 32), "", "n, k"),
]


@pytest.mark.parametrize("sizes, entries, place", CASES)
def test_values(sizes, entries, place):
    program = text(*sizes, entries, place)
    module, before = formed(program), irc.parse(program)
    dots = [op for op in module.walk() if isinstance(op, DotRowsOp)]
    assert dots and all(op.parts == 3 and op.in_tiles for op in dots)
    printed = irc.print_op(module)
    assert irc.print_op(irc.parse(printed)) == printed
    a, w = arguments(program, place)
    (wanted,) = run(before, a, w, mode="real")
    for mode, tolerance in (("real", 1e-12), ("exact", 1e-5)):
        (result,) = run(module, a, w, mode=mode)
        torch.testing.assert_close(result.double(), wanted, rtol=tolerance, atol=tolerance)
    assembly = emit_text(kernels(module), TILES, "asm")
    assert "tdpbf16ps" in assembly
    if HERE:
        PassManager.parse("bufferize,plan-memory").run(module)
        (native,) = irc.build(module)(a, w)
        torch.testing.assert_close(native.double(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sizes, entries, place", CASES)
def test_values_of_any_number_of_rows(sizes, entries, place):
    _, inner, columns = sizes
    w = arguments(text(*sizes, entries, place), place)[1]
    check_any_rows(
        text("s0", inner, columns, entries, place), lambda rows: (torch.randn(rows, inner), w),
        1e-5,
    )  # fmt: skip


def test_rows_lie_across():
    program = text(40, 64, 64, left="k, m", place="k, n")
    a, w = arguments(program, "k, n")
    (wanted,) = run(irc.parse(program), a, w, mode="real")
    (result,) = run(formed(program), a, w, mode="real")
    torch.testing.assert_close(result, wanted, rtol=1e-12, atol=1e-12)


def test_factors_that_both_are_computed_are_multiplied_by_vectors():
    """Whoever asked for parts didn't know what would be fused."""
    program = text(40, 64, 64).replace("arith.mulf %p, %q", "arith.mulf %p1, %q1")
    program = program.replace("    %v =", """    %p1 = math.sin %p : f32
    %q1 = math.sin %q : f32
    %v =""")
    assert "kernel.dot_rows" not in irc.print_op(formed(program))
    one = program.replace("math.sin %q", "arith.addf %q, %q")
    turned = one.replace("%p1 = math.sin %p : f32", "%p1 = arith.mulf %p, %p : f32")
    assert "kernel.dot_rows" not in irc.print_op(formed(turned))
    plain = program.replace("    %q1 = math.sin %q : f32\n", "").replace("%p1, %q1", "%p1, %q")
    a, w = arguments(plain, "n, k")
    module = formed(plain)
    assert "kernel.dot_rows" in irc.print_op(module)
    (wanted,) = run(irc.parse(plain), a, w, mode="real")
    (result,) = run(module, a, w, mode="real")
    torch.testing.assert_close(result, wanted, rtol=1e-12, atol=1e-12)


def native(program):
    module = formed(program)
    PassManager.parse("bufferize,plan-memory").run(module)
    return irc.build(module)


def deviation(result, a, w):
    """Of sums of products: the largest by the sum of their absolute values."""
    exact = a.double() @ w.double().t()
    return ((result.double() - exact).abs() / (a.double().abs() @ w.double().abs().t())).max()


@pytest.mark.skipif(not HERE, reason="registers of whole tiles are not here")
@pytest.mark.parametrize("spread", ["normal", "positive", "wide", "equal"])
@pytest.mark.parametrize("inner", [32, 768, 4096])
def test_sums_are_as_exact_as_eager_s(inner, spread):
    torch.manual_seed(1)
    a, w = torch.randn(64, inner), torch.randn(96, inner)
    if spread == "positive":
        a, w = a.abs(), w.abs()
    elif spread == "wide":
        a = a * torch.exp2(torch.randint(-20, 20, a.shape))
        w = w * torch.exp2(torch.randint(-20, 20, w.shape))
    elif spread == "equal":
        a, w = torch.full_like(a, 1 + 2**-23), torch.full_like(w, 1 / 3)
    (result,) = native(text(64, inner, 96, after="arith.negf"))(a, w)
    assert deviation(-result, a, w) <= 1.2 * deviation(a @ w.t(), a, w) + 2**-24


BIG = torch.finfo(torch.float32).max
SPECIAL = {
    "infinity": [(0, (3, 5), math.inf)], "nan": [(0, (3, 5), math.nan)],
    "infinite weight": [(1, (7, 5), -math.inf)], "nan weight": [(1, (7, 5), math.nan)],
    "infinity times zero": [(0, (3, 5), math.inf), (1, (2, 5), 0.0)],
    "both infinities": [(0, (3, 5), math.inf), (0, (3, 6), -math.inf)],
    "infinity times infinity": [(0, (3, 5), math.inf), (1, (7, 5), -math.inf)],
    "largest": [(0, (3, 5), BIG), (1, (7, 5), 0.25)],
    "too large": [(0, (3, 5), BIG), (1, (7, 5), 4.0)],
    "upper bits alone": [(0, (3, 5), 1.5), (1, (7, 5), math.inf)],
}


@pytest.mark.skipif(not HERE, reason="registers of whole tiles are not here")
@pytest.mark.parametrize("inner", [64, 192])
@pytest.mark.parametrize("name", SPECIAL)
def test_what_is_no_number_is_where_eager_has_it(name, inner):
    torch.manual_seed(2)
    factors = torch.rand(40, inner) - 0.5, torch.rand(64, inner) - 0.5
    for side, place, value in SPECIAL[name]:
        factors[side][place] = value
    a, w = factors
    depth = ", block_depth = 64 : i64" if inner > 64 else ""
    (result,) = native(text(40, inner, 64, depth, after="arith.negf"))(a, w)
    wanted = -(a @ w.t())
    assert torch.equal(result.isnan(), wanted.isnan())
    assert torch.equal(result.isinf(), wanted.isinf())
    finite = wanted.isfinite()
    torch.testing.assert_close(result[~finite], wanted[~finite], equal_nan=True)
    torch.testing.assert_close(result[finite], wanted[finite], rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not HERE, reason="registers of whole tiles are not here")
def test_what_stays_small_is_exact():
    """Down to where the last part would be no normal number."""
    torch.manual_seed(3)
    a, w = torch.randn(40, 64) * 2.0**-60, torch.randn(64, 64) * 2.0**-40
    (result,) = native(text(40, 64, 64, after="arith.negf"))(a, w)
    assert deviation(-result, a, w) <= 2**-22


REFUSED = [
    (("n, k", "m, k"), ", pack_left = false", "has not its terms side by side"),
    (("n, k", "m, k"), ", pack_right = false", "is not in panels"),
    (("n, k", "m, k"), ", block_depth = 48 : i64", "multiples of 32"),
    (("n, k", "m, k"), ", pack_columns = 48 : i64", "whole panels of 32 columns"),
    (("n, k", "m, k"), ", tile_rows = 33 : i64", "up to 32 rows"),
    ((None, "m, k"), ", tile_vectors = 3 : i64", "16 or 32 columns, not 48"),
    (("n, k", "m, k"), ", block_depth = 32 : i64, woven = true", "isn't woven"),
]


@pytest.mark.parametrize("form, entries, reason", REFUSED)
def test_what_does_not_fit_is_refused(form, entries, reason):
    place, left = form
    with pytest.raises(irc.InvalidIR, match=reason):
        formed(text(40, 64, 64, entries, place, left))


@pytest.mark.parametrize("change, reason", [
    (("%half, %half", "%half"), "1 distances between parts"),
])  # fmt: skip
def test_the_operation_is_verified(change, reason):
    pointer = "!kernel.ptr<bf16>"
    types = f"{pointer}, index, index, index, {pointer}, index, index, !kernel.ptr<f32>"
    program = f"""kernel.func @k(%a: !kernel.ptr<bf16>, %b: !kernel.ptr<bf16>,
    %y: !kernel.ptr<f32>, %begin: index, %end: index)
    attributes {{target = "cpu", outputs = array<i64: 2>}} {{
  %room = kernel.scratch {{count = 512 : i64}} : !kernel.ptr<f32>
  %zero = arith.constant 0 : index
  %half = arith.constant 1024 : index
  %depth = arith.constant 64 : index
  %rows = arith.constant 16 : index
  kernel.dot_rows %a, %zero, %half, %rows, %b, %zero, %half, %room, %depth, %half, %half
    {{tiles = 1 : i64, columns = 32 : i64, in_tiles = true}} : ({types}, index, index, index)
  kernel.return }}"""
    irc.verify(irc.parse(program))
    wrong = program.replace(*change)
    if "half" in change[0]:
        wrong = wrong.replace("index, index, index)", "index, index)")
    with pytest.raises(irc.InvalidIR, match=reason):
        irc.verify(irc.parse(wrong))
