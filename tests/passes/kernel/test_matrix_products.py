"""Products by registers of whole tiles: values, which targets have them, and what their schedules
may say."""

from __future__ import annotations

import math

import attrs
import pytest
import torch

import irc
from irc.codegen.llvm.kernel_emitter import emit_text
from irc.dialects.kernel import KernelFuncOp
from irc.interp.core import run
from irc.ir.passes import PassManager
from irc.target import Target
from irc.target.attribute import carry
from irc.target.cpu import TargetFeatures

MATRIX = 'products = "matrix"'
AVX512 = TargetFeatures.avx512()
TILES = attrs.evolve(
    AVX512, chip="sapphirerapids", sets=(*AVX512.sets, "amx-bf16", "amx-tile")
)
HERE = "amx-bf16" in TargetFeatures.host().sets


def sums(rows, inner, columns, schedule, result, left="m, k", place="n, k"):
    """A compute of products of bf16, summed up in f32."""
    return f"""%s = loop.compute par(m: {rows}, n: {columns}) red(k: {inner}) -> reduce(sum, f32)
    {schedule} {{
    %p = loop.read %a[{left}] : bf16
    %q = loop.read %w[{place}] : bf16
    %p1 = arith.extf %p : bf16 to f32
    %q1 = arith.extf %q : bf16 to f32
    %v = arith.mulf %p1, %q1 : f32
    loop.yield %v }} : {result}"""


def text(rows, inner, columns, entries=MATRIX, panel=16, group=2, left="m, k", plain=False):
    a = f"tensor<[{rows}, {inner}] x bf16, strides [{inner}, 1]>"
    if left == "k, m":
        a = f"tensor<[{inner}, {rows}] x bf16, strides [{rows}, 1]>"
    sizes = [-(-columns // panel), inner // group, panel, group]
    w = f"tensor<{sizes} x bf16, strides {[inner * panel, panel * group, group, 1]}>"
    place = f"floordiv(n, {panel}), floordiv(k, {group}), mod(n, {panel}), mod(k, {group})"
    if plain:
        w, place = f"tensor<[{columns}, {inner}] x bf16, strides [{inner}, 1]>", "n, k"
    y = f"tensor<[{rows}, {columns}] x f32, strides [{columns}, 1]>"
    schedule = f"schedule #loop.schedule<cpu, {entries}>" if entries else ""
    return f"""func.func @main(%a: {a}, %w: {w}) -> {y} attributes {{level = "loop"}} {{
  %y = loop.group (m: {rows}, n: {columns}) {{
  {sums(rows, inner, columns, schedule, y, left, place)}
  %r = loop.compute par(m: {rows}, n: {columns}) -> map {{
    %x = loop.read %s[m, n] : f32
    %o = math.tanh %x : f32
    loop.yield %o }} : {y}
  loop.yield %r : {y} }} : {y}
  func.return %y : {y} }}"""


WITH_TILES = Target(TILES)


def formed(text, target=WITH_TILES, scheduled=False):
    module = irc.parse(text)
    carry(module, target)
    passes = "schedule" if scheduled else "schedule,form-kernels"
    PassManager.parse(passes, verify="each").run(module)
    return module


def kernels(module):
    return [op for op in module.walk() if isinstance(op, KernelFuncOp)]


def arguments(module):
    torch.manual_seed(0)
    types = [a.type for a in module.lookup("main").block.arguments]
    return [torch.randn(type_.shape).bfloat16() for type_ in types]


CASES = [
    ((2, 32, 32), "tile_rows = 1 : i64"), ((16, 64, 32), ""),
    ((45, 64, 96), "point_rows = 32 : i64"),
    ((33, 32, 64), "tile_rows = 17 : i64, inner = \"columns\", point_columns = 32 : i64"),
    ((40, 96, 48), "tile_vectors = 1 : i64, block_rows = 32 : i64"),
    ((45, 64, 96), "pack_left = true"),
    ((71, 96, 64), "pack_left = true, tile_rows = 9 : i64, block_rows = 18 : i64"),
    ((77, 32, 64), "pack_left = true, tile_rows = 23 : i64, point_rows = 46 : i64"),
    ((45, 160, 64), "block_depth = 64 : i64"),
    ((71, 96, 96), "pack_left = true, block_depth = 32 : i64, block_rows = 32 : i64"),
]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("sizes, entries", CASES)
def test_values(sizes, entries, plain):
    entries = f"{MATRIX}{', pack_right = true' * plain}{', ' * bool(entries)}{entries}"
    program = text(*sizes, entries, plain=plain)
    module, before = formed(program), irc.parse(program)
    assert "kernel.dot_rows" in irc.print_op(module)
    a, w = arguments(before)
    (got,), (wanted,) = run(module, a, w, mode="real"), run(before, a, w, mode="real")
    torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)
    assembly = emit_text(kernels(module), TILES, "asm")
    assert "tdpbf16ps" in assembly
    assert assembly.count("tilerelease") == 1
    if HERE:
        PassManager.parse("bufferize,plan-memory").run(module)
        (native,) = irc.build(module)(a, w)
        torch.testing.assert_close(native.double(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sizes, entries", [
    ((45, 45, 64), ""), ((65, 7, 96), ""), ((40, 197, 48), "tile_rows = 17 : i64"),
    ((71, 100, 96), "block_rows = 32 : i64, point_columns = 32 : i64"),
    ((20, 31, 80), "tile_vectors = 1 : i64, inner = \"columns\""),
])  # fmt: skip
def test_terms_that_fill_no_whole_registers(sizes, entries):
    """Zeros stand behind the last terms of packed factors, whatever was there."""
    program = text(*sizes, entries=entries, plain=True)
    module, before = formed(program), irc.parse(program)
    assert "kernel.dot_rows" in irc.print_op(module)
    a, w = arguments(before)
    (got,), (wanted,) = run(module, a, w, mode="real"), run(before, a, w, mode="real")
    torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)
    if HERE:
        PassManager.parse("bufferize,plan-memory").run(module)
        program = irc.build(module)
        program(a * math.nan, w * math.nan)
        (native,) = program(a, w)
        torch.testing.assert_close(native.double(), wanted, rtol=1e-4, atol=1e-4)


def test_factors_across_are_packed():
    program = text(40, 64, 64, f"{MATRIX}, pack_right = true", left="k, m", plain=True)
    program = program.replace("%w[n, k]", "%w[k, n]")
    module, before = formed(program), irc.parse(program)
    assert irc.print_op(module).count("in_tiles = true") == 2
    a, w = arguments(before)
    (got,), (wanted,) = run(module, a, w, mode="real"), run(before, a, w, mode="real")
    torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)


def test_rows_are_packed_where_they_meet_many_columns():
    for columns, packed in ((64, False), (2048, True)):
        printed = irc.print_op(formed(text(64, 2048, columns, entries="")))
        assert ("in_tiles = true" in printed) == packed


def test_rows_of_few_terms_stay_where_panels_pass_by_and_others_pass():
    """In blocks of columns that stay in the second-level cache; what passes is loaded so."""
    few, many = (irc.print_op(formed(text(96, inner, 4096, entries=""), scheduled=True))
                 for inner in (1024, 2048))  # fmt: skip
    assert 'inner = "columns"' in few and 'inner = "rows"' in many
    size = int(few.split("point_columns = ")[1].split(" ")[0])
    assert 0 < size < 4096 and size % 32 == 0
    assert "point_columns = 0" in many and "point_columns = 0" not in few
    for inner, side in (("columns", "right"), ("rows", "left")):
        program = text(96, 64, 64, f'{MATRIX}, inner = "{inner}"')
        assert f'passing = "{side}"' in irc.print_op(formed(program))
        lines = emit_text(kernels(formed(program)), TILES, "asm").splitlines()
        loads = [line.split()[0] for line in lines if "tileload" in line]
        assert loads.count("tileloaddt1") == loads.count("tileloadd") > 0
    one = irc.print_op(formed(text(32, 4096, 64, entries=""), scheduled=True))
    assert 'inner = "columns"' in one  # one tile of rows: panels pass in any case


def test_tiles_fit_the_blocks_that_are_there():
    program = text(15, 64, 64, "point_rows = 32 : i64, block_rows = 8 : i64", plain=True)
    printed = irc.print_op(formed(program))
    assert "kernel.scratch {count = 512 : i64}" in printed and "kernel.dot_rows" in printed


def test_a_part_of_a_tile_sets_the_tiles_up_for_itself():
    lines = emit_text(kernels(formed(text(45, 32, 32))), TILES, "asm").splitlines()
    loads = [line.split()[1] for line in lines if "ldtilecfg" in line]
    assert len(loads) == 3 and loads[0] == loads[2] != loads[1]


@pytest.mark.parametrize("sizes, plain, chosen", [
    ((64, 64, 64), False, True), ((64, 48, 64), False, False), ((64, 64, 40), True, True),
    ((64, 48, 64), True, True),
    ((64, 64, 64), True, True), ((4, 64, 256), True, False), ((4, 64, 256), False, True),
])  # fmt: skip
def test_a_target_that_has_them_takes_them(sizes, plain, chosen):
    program = text(*sizes, entries="", plain=plain)
    printed = irc.print_op(formed(program))
    assert ("kernel.dot_rows" in printed) == chosen
    assert "kernel.dot_rows" not in irc.print_op(formed(program, Target(AVX512)))


def test_a_target_without_them_refuses_the_kernel():
    with pytest.raises(irc.InvalidIR, match="has no amx-bf16, by which rows of bf16"):
        emit_text(kernels(formed(text(16, 32, 32))), AVX512, "asm")


REFUSED = [
    ({"group": 1}, ", pack_right = false", "is not in panels with groups of 2 terms"),
    ({"left": "k, m"}, ", pack_left = false", "has not its terms side by side"),
    ({}, ", pack_right = true", "the factor with the columns is no matrix"),
    ({"plain": True}, ", pack_right = false", "is not in panels"),
    ({"plain": True, "inner": 48}, ", pack_right = true, pack_left = false", "no multiple of 32"),
    ({}, ", block_depth = 48 : i64", "multiples of 32"),
    ({}, ", block_depth = 32 : i64, woven = true", "of parts, or of some of a panel's columns"),
    ({}, ", tile_rows = 33 : i64", "up to 32 rows"),
    ({}, ", tile_vectors = 3 : i64", "16 or 32 columns, not 48"),
    ({"panel": 32}, ", tile_vectors = 2 : i64, pack_right = false", "is not in panels"),
]


@pytest.mark.parametrize("form, entries, reason", REFUSED)
def test_what_does_not_fit_is_refused(form, entries, reason):
    more = dict(form)
    with pytest.raises(irc.InvalidIR, match=reason):
        formed(text(40, more.pop("inner", 64), 64, MATRIX + entries, **more))


OP = """kernel.func @k(%a: !kernel.ptr<bf16>, %b: !kernel.ptr<{element}>, %y: !kernel.ptr<f32>,
    %begin: index, %end: index) attributes {{target = "{target}", outputs = array<i64: 2>}} {{
  %room = kernel.scratch {{count = {count} : i64}} : !kernel.ptr<f32>
  %zero = arith.constant 0 : index
  %depth = arith.constant {depth} : index
  %rows = arith.constant {rows} : index
  kernel.dot_rows %a, %zero, %depth, %{count_of}, %b, %zero, %depth, %{sums}, %depth
    {{tiles = {tiles} : i64, columns = {columns} : i64}} : (!kernel.ptr<bf16>, index, index, index,
    !kernel.ptr<{element}>, index, index, !kernel.ptr<f32>, index)
  kernel.return }}"""
FITTING = {"element": "bf16", "target": "cpu", "count": 512, "depth": 64, "rows": 16,
           "count_of": "rows", "tiles": 1, "columns": 32, "sums": "room"}  # fmt: skip


@pytest.mark.parametrize("change, reason", [
    ({"element": "f32"}, "sums products of bf16 up in f32"),
    ({"tiles": 3}, "one or two tiles"), ({"columns": 48}, "16 or 32 columns"),
    ({"rows": 17}, "17 rows in 1 tiles of 16"), ({"rows": 0}, "0 rows in 1 tiles"),
    ({"tiles": 2}, "16 rows in 2 tiles"),
    ({"count_of": "begin", "count": 1023, "tiles": 2}, "a kernel.scratch of 1024"),
    ({"depth": 48}, "not a multiple of 32"), ({"count": 511}, "a kernel.scratch of 512"),
    ({"sums": "y"}, "a kernel.scratch of 512"),
])  # fmt: skip
def test_the_operation_is_verified(change, reason):
    irc.verify(irc.parse(OP.format(**FITTING)))
    with pytest.raises(irc.InvalidIR, match=reason):
        irc.verify(irc.parse(OP.format(**{**FITTING, **change})))


ANY_ROWS = (0, 1, 2, 9, 15, 16, 17, 31, 32, 33, 47, 64, 65, 129)


def with_rows(program):
    """A program whose rows are a symbol, with what binds it."""
    bound = '  %n = sym.bind_size %a {dim = DIM : i64, symbol = "s0"} : (A) -> index\n'
    type_ = program.split("%a: ")[1].split(", %w")[0]
    bound = bound.replace("A)", f"{type_})").replace("DIM", str(int("strides [s0" in type_)))
    return program.replace("  %y = loop.group", bound + "  %y = loop.group")


def check_any_rows(program, arguments, tolerance):
    """The values of a program for numbers of rows: of its kernels as they are interpreted for a few
    of these, and as they run for all."""
    before, module = irc.parse(with_rows(program)), formed(with_rows(program))
    assert "kernel.dot_rows" in irc.print_op(module)
    printed = irc.print_op(module)
    assert irc.print_op(irc.parse(printed)) == printed
    for rows in (2, 33):
        given = arguments(rows)
        (wanted,) = run(before, *given, mode="real")
        (result,) = run(module, *given, mode="real")
        torch.testing.assert_close(result, wanted, rtol=1e-9, atol=1e-9)
    assert "tdpbf16ps" in emit_text(kernels(module), TILES, "asm")
    if not HERE:
        return
    PassManager.parse("bufferize,plan-memory").run(module)
    program = irc.build(module)
    for rows in ANY_ROWS:
        given = arguments(rows)
        (wanted,) = run(before, *given, mode="real")
        (native,) = program(*given)
        torch.testing.assert_close(native.double(), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("sizes, entries", CASES)
def test_values_of_any_number_of_rows(sizes, entries, plain):
    entries = f"{MATRIX}{', pack_right = true' * plain}{', ' * bool(entries)}{entries}"
    _, inner, columns = sizes
    w = arguments(irc.parse(text(*sizes, entries, plain=plain)))[1]
    check_any_rows(
        text("s0", inner, columns, entries, plain=plain),
        lambda rows: (torch.randn(rows, inner).bfloat16(), w), 1e-4,
    )  # fmt: skip


def test_sizes_of_a_symbol_choose_who_multiplies():
    """Few rows don't pay for packing a weight for registers of whole tiles."""
    bound = with_rows(text("s0", 64, 4096, "", plain=True))
    (group,) = (op for op in formed(bound, scheduled=True).walk() if op.name == "loop.group")
    entries = group.attributes["schedule"].entries
    contraction = next(op for op in group.walk() if op.name == "loop.compute")
    last = contraction.attributes["schedule"].entries
    assert last.get("products").value == "matrix" and last.get("tile_rows").value == 32
    (few, *_) = entries.get("variants")
    first = few.as_dict()["members"][0].as_dict()
    assert first["products"].value in ("lanes", "depth")
    assert 1 < few.as_dict()["most"].value < 512
