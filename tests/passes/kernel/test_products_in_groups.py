"""Products whose terms vectors multiply in groups: values of all layouts, sizes and schedules
against float64 and eager bf16, which targets have them, and what their schedules may say."""

from __future__ import annotations

import attrs
import pytest
import torch

import irc
from irc.codegen.llvm.kernel_emitter import emit_text
from irc.dialects import loop
from irc.dialects.kernel import KernelFuncOp
from irc.interp.core import run
from irc.ir.passes import PassContext, PassManager
from irc.target import Target
from irc.target.attribute import carry
from irc.target.cpu import TargetFeatures
from irc.target.figures import evolve
from tests.passes.kernel.test_contractions import matrix

AVX512 = TargetFeatures.avx512()
PAIRS = Target(attrs.evolve(AVX512, sets=(*AVX512.sets, "avx512bf16")))
ARM = TargetFeatures.neon()
NEON = Target(attrs.evolve(ARM, sets=(*ARM.sets, "bf16")))
HERE = TargetFeatures.host().has_bf16 and TargetFeatures.host().vector_bits == 512


def product(
    rows, inner, columns, entries="group = 2 : i64", left="m, k", right="k, n", panel=48, group=2,
    before="", element="bf16", strides=None,
):  # fmt: skip
    """A product of bf16; `right` may be "panels"."""
    sizes = {"m": rows, "k": inner, "n": columns}
    shapes = [[sizes[name] for name in place.split(", ")] for place in (left, right)
              if place != "panels"]  # fmt: skip
    if right == "panels":
        shapes.append([-(-columns // panel), -(-inner // group), panel, group])
        right = f"floordiv(n, {panel}), floordiv(k, {group}), mod(n, {panel}), mod(k, {group})"
    a, b = (matrix(shape, strides if not k else None, element=element)
            for k, shape in enumerate(shapes))  # fmt: skip
    y = matrix((rows, columns))
    schedule = f"schedule #loop.schedule<cpu, {entries}>" if entries else ""
    one, lines = "%p", ""
    if before:
        one = "%t"
        lines = f"""%e = arith.extf %p : bf16 to f32
    %f = {before} %e : f32
    %t = arith.truncf %f : f32 to bf16"""
    return f"""func.func @main(%a: {a}, %b: {b}) -> {y} attributes {{level = "loop"}} {{
  %y = loop.compute par(m: {rows}, n: {columns}) red(k: {inner}) -> reduce(sum, f32) {schedule} {{
    %p = loop.read %a[{left}] : {element}
    %q = loop.read %b[{right}] : {element}
    {lines}
    %p1 = arith.extf {one} : {element} to f32
    %q1 = arith.extf %q : {element} to f32
    %v = arith.mulf %p1, %q1 : f32
    loop.yield %v }} : {y}
  func.return %y : {y} }}"""


def formed(text, target=PAIRS):
    module = irc.parse(text)
    carry(module, target)
    PassManager.parse("schedule,form-kernels", verify="each").run(module)
    return module


def scheduled(text, target=PAIRS):
    module = irc.parse(text)
    carry(module, target)
    PassManager.parse("schedule").run(module)
    (compute,) = (op for op in module.walk() if isinstance(op, loop.ComputeOp))
    return compute.schedule.entries.as_dict()


def arguments(module):
    torch.manual_seed(0)
    found = []
    for value in module.lookup("main").block.arguments:
        made = torch.empty_strided(value.type.shape, value.type.strides, dtype=torch.bfloat16)
        found.append(made.copy_(torch.randn(value.type.shape)))
    return found


def check(text, target=PAIRS):
    """The kernel beside the text as it stands, over the reals; and its machine code."""
    before, module = irc.parse(text), formed(text, target)
    assert "kernel.dot_lanes" in irc.print_op(module)
    given = arguments(before)
    (wanted,) = run(before, *given, mode="real")
    (got,) = run(module, *given, mode="real")
    torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)
    if HERE and target is PAIRS:
        (native,) = built(module)(*given)
        torch.testing.assert_close(native.double(), wanted, rtol=1e-4, atol=1e-4)


def built(module):
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    return irc.build(module)


SIZES = [(9, 32, 48), (7, 33, 50), (2, 17, 31), (13, 2, 7), (21, 47, 65), (5, 3, 16)]
LAYOUTS = ["k, n", "n, k", "panels"]


@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("sizes", SIZES)
def test_values(sizes, right):
    check(product(*sizes, "group = 2 : i64, tile_rows = 4 : i64, tile_vectors = 3 : i64"
                  + ", pack_right = true" * (right != "panels"), right=right))  # fmt: skip


ENTRIES = [
    "tile_rows = 3 : i64, tile_vectors = 1 : i64, inner = \"columns\"",
    "tile_rows = 6 : i64, lanes = 8 : i64, tile_vectors = 2 : i64, block_depth = 16 : i64",
    "tile_rows = 5 : i64, tile_vectors = 2 : i64, point_rows = 10 : i64, point_columns = 64 : i64,"
    " block_rows = 5 : i64",
    "tile_rows = 4 : i64, tile_vectors = 2 : i64, pack_left = true, block_depth = 16 : i64, "
    "block_rows = 8 : i64, point_rows = 16 : i64",
]


@pytest.mark.parametrize("right", ["k, n", "n, k"])
@pytest.mark.parametrize("entries", ENTRIES)
def test_every_schedule_gives_the_values(entries, right):
    check(product(19, 53, 70, f"group = 2 : i64, pack_right = true, {entries}", right=right))


@pytest.mark.parametrize("inner", [2, 31, 32, 33, 64, 97])
def test_values_along_the_depth(inner):
    entries = 'group = 2 : i64, products = "depth"'
    check(product(5, inner, 21, entries, right="n, k"))


def test_factors_with_a_prologue_or_across_are_packed():
    for more in ({"before": "arith.negf"}, {"left": "k, m"}):
        text = product(11, 35, 40, "group = 2 : i64, pack_right = true", **more)
        assert scheduled(text)["pack_left"].value
        check(text)


def test_neon_takes_them():
    text = product(9, 34, 40, right="n, k")
    check(text, NEON)
    kernels = [op for op in formed(text, NEON).walk() if isinstance(op, KernelFuncOp)]
    assert "bfdot" in emit_text(kernels, NEON.features, "asm")


CHOSEN = [
    ((64, 96, 96), "n, k", "", 2), ((64, 96, 96), "k, n", "", 2), ((9, 96, 96), "k, n", "", 1),
    ((9, 96, 960), "n, k", "", 2), ((64, 96, 96), "panels", "", 2), ((9, 96, 96), "panels", "", 2),
    ((64, 96, 96), "k, n", "pack_right = false", 1),
]  # fmt: skip


@pytest.mark.parametrize("sizes, right, entries, group", CHOSEN)
def test_a_target_that_has_them_takes_them_where_they_pay(sizes, right, entries, group):
    text = product(*sizes, entries, right=right)
    assert scheduled(text)["group"].value == group
    if right != "panels":
        assert scheduled(text, Target(AVX512))["group"].value == 1
    if group > 1 and right != "panels":
        slow = evolve(PAIRS, processor=evolve(PAIRS.processor, pairs_time=3.0))
        assert scheduled(text, slow)["group"].value == 1


def test_other_elements_are_widened():
    assert scheduled(product(64, 96, 96, "", right="n, k", element="f16"))["group"].value == 1


REFUSED = [
    ({"right": "panels", "panel": 32}, "", "is not in panels with groups of 2"),
    ({"right": "n, k"}, ", pack_right = false", "is not in panels with groups of 2"),
    ({"left": "k, m"}, ", pack_left = false", "has not its terms side by side"),
    ({}, ", lanes = 2 : i64", "at least 4 lanes"),
    ({"element": "f16"}, "", "no cpu multiplies f16 and f16 in groups of 2"),
]


@pytest.mark.parametrize("form, entries, reason", REFUSED)
def test_what_does_not_fit_is_refused(form, entries, reason):
    known = "tile_vectors = 3 : i64, group = 2 : i64" + ", pack_right = true" * (
        form.get("right") != "panels" and "pack_right" not in entries) + entries  # fmt: skip
    known += ", pack_right = false" * (form.get("right") == "panels")
    with pytest.raises(irc.InvalidIR, match=reason):
        formed(product(40, 64, 96, known, **form))


def test_a_target_without_them_refuses_the_kernel():
    module = formed(product(9, 32, 48, "group = 2 : i64, pack_right = true"), Target(AVX512))
    kernels = [op for op in module.walk() if isinstance(op, KernelFuncOp)]
    with pytest.raises(irc.InvalidIR, match="multiplies no groups of bf16"):
        emit_text(kernels, AVX512, "asm")


NATIVE = pytest.mark.skipif(not HERE, reason="this processor has no such products")


@NATIVE
@pytest.mark.parametrize("right, entries", [
    ("n, k", "pack_right = true"), ("k, n", "pack_right = true"), ("n, k", 'products = "depth"'),
    ("panels", ""),
])  # fmt: skip
@pytest.mark.parametrize("inner", [64, 65])
def test_what_is_no_number_stays_in_its_row_and_column(right, entries, inner):
    """Also where a panel's padding holds such, and numbers behind a row's last term."""
    text = product(6, inner, 21, "group = 2 : i64" + ", " * bool(entries) + entries, right=right)
    module = formed(text)
    a, b = arguments(module)
    a[3, inner - 1], a[4, 0], a[2, 0] = float("nan"), float("inf"), 3e38
    plain = torch.randn(21, inner).bfloat16()
    plain[20, 5], plain[0, inner - 1] = float("inf"), float("nan")
    if right == "panels":
        padded = torch.full((48, inner + inner % 2), float("nan"), dtype=torch.bfloat16)
        padded[:21, :inner] = plain
        b.copy_(padded.reshape(1, 48, -1, 2).transpose(1, 2))
    else:
        b.copy_(plain if right == "n, k" else plain.t())
    (got,) = built(module)(a, b)
    torch.testing.assert_close(got, a.float() @ plain.float().t(), rtol=1e-4, atol=1e-4,
                               equal_nan=True)  # fmt: skip


@NATIVE
def test_as_eager_rounds():
    """Numbers below the normal ones are zero, as eager's products of bf16 take them here, and sums
    as close to what is exact as eager's."""
    text = product(8, 130, 32, "group = 2 : i64", right="n, k")
    module = formed(text)
    a, b = arguments(module)
    a[0] = 1e-39
    a[1] *= 1e30
    (got,) = built(module)(a, b)
    exact = a.double() @ b.double().t()
    assert (got[0] == 0).all()
    eager = a @ b.t()
    assert (eager[0] == 0).all()
    scale = a.double().abs() @ b.double().abs().t()
    error = ((got.double() - exact).abs() / scale)[1:]
    assert error.max() < 2e-7 * 16
    assert torch.equal(got[2:].bfloat16(), eager[2:]) or (
        (got[2:].bfloat16().double() - exact[2:]).abs().max()
        <= 1.01 * (eager[2:].double() - exact[2:]).abs().max()
    )


def test_the_figure_is_in_the_record():
    context = PassContext(target=Target.named("#irc.target<avx512, pairs_time = 2.0>"))
    assert context.target.processor.pairs_time == 2.0


# -- integers

FOURS = Target(attrs.evolve(AVX512, sets=(*AVX512.sets, "avx512vnni")))
VNNI = "avx512vnni" in TargetFeatures.host().sets and TargetFeatures.host().vector_bits == 512
SIGNED = Target(attrs.evolve(TargetFeatures.avx2(), sets=(*TargetFeatures.avx2().sets,
                                                          "avxvnniint8")))  # fmt: skip
ARM_FOURS = Target(attrs.evolve(ARM, sets=(*ARM.sets, "dotprod")))


def integers(rows, inner, columns, entries="", right="n, k", element="i8"):
    """A product of integers that are widened."""
    text = product(rows, inner, columns, entries, right=right, element=element, panel=32, group=4)
    text = text.replace("f32", "i32").replace("arith.extf", "arith.extsi")
    return text.replace("arith.mulf", "arith.muli")


def extremes(module):
    torch.manual_seed(0)
    found = []
    for value in module.lookup("main").block.arguments:
        bits = value.type.element.width
        dtype = {8: torch.int8, 16: torch.int16, 32: torch.int32}[bits]
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        made = torch.randint(low, high, value.type.shape).to(dtype)
        made.view(-1)[:7] = low
        found.append(made)
    return found


def check_integers(text, target, groups=True):
    before, module = irc.parse(text), formed(text, target)
    assert ("kernel.dot_lanes" in irc.print_op(module)) == groups
    given = extremes(before)
    (wanted,), (got,) = run(before, *given), run(module, *given)
    assert torch.equal(got, wanted)
    if VNNI and target.features.vector_bits == 512:
        (native,) = built(module)(*given)
        assert torch.equal(native, wanted)


@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("sizes", [(9, 32, 48), (7, 33, 50), (2, 17, 31), (21, 130, 65)])
def test_integers_are_exact(sizes, right):
    entries = "group = 4 : i64, offset = 128 : i64, tile_rows = 4 : i64, tile_vectors = 2 : i64"
    check_integers(integers(*sizes, entries + ", pack_right = true" * (right != "panels"), right),
                   FOURS)  # fmt: skip


@pytest.mark.parametrize("entries", [
    "", "pack_left = true, block_depth = 16 : i64", 'products = "depth"',
    "point_rows = 8 : i64, tile_rows = 4 : i64, point_columns = 64 : i64, tile_vectors = 2 : i64",
])  # fmt: skip
@pytest.mark.parametrize("inner", [5, 64, 67])
def test_schedules_of_integers(entries, inner):
    check_integers(integers(11, inner, 77, "group = 4 : i64" + ", " * bool(entries) + entries),
                   FOURS)  # fmt: skip


@pytest.mark.parametrize("element", ["i16", "i32"])
@pytest.mark.parametrize("right", ["n, k", "k, n"])
def test_other_integers_are_multiplied_one_by_one(element, right):
    text = integers(9, 41, 50, "tile_rows = 4 : i64, block_depth = 16 : i64", right, element)
    text = text.replace(": i32 to i32", ": i32 to i64") if element == "i32" else text
    if element == "i32":
        text = text.replace("muli %p1, %q1 : i32", "muli %p1, %q1 : i64")
        text = text.replace("reduce(sum, i32)", "reduce(sum, i64)")
        shape = text[text.index("-> tensor") + 3 : text.index(" attributes")]
        text = text.replace(shape, shape.replace("i32", "i64"))
    check_integers(text, FOURS, groups=False)


@pytest.mark.parametrize("target, instruction", [
    (FOURS, "vpdpbusd"), (SIGNED, "vpdpbssd"), (ARM_FOURS, "sdot"),
])  # fmt: skip
def test_each_target_takes_integers_as_it_can(target, instruction):
    text = integers(40, 64, 96)
    entries = scheduled(text, target)
    assert entries["group"].value == 4
    assert entries["offset"].value == (128 if instruction == "vpdpbusd" else 0)
    check_integers(text, target)
    kernels = [op for op in formed(text, target).walk() if isinstance(op, KernelFuncOp)]
    assert instruction in emit_text(kernels, target.features, "asm")


@pytest.mark.parametrize("entries, reason", [
    ("group = 2 : i64", "no cpu multiplies i8 and i8 in groups of 2"),
])  # fmt: skip
def test_integers_that_do_not_fit_are_refused(entries, reason):
    with pytest.raises(irc.InvalidIR, match=reason):
        formed(integers(40, 64, 96, entries + ", pack_right = true"), FOURS)


def test_an_offset_that_no_vectors_take_is_refused():
    entries = "group = 2 : i64, offset = 128 : i64, pack_right = true"
    with pytest.raises(irc.InvalidIR, match="no cpu multiplies bf16 with an offset of 128"):
        formed(product(40, 64, 96, entries))
