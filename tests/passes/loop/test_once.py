"""Which maps kernels compute once: each side of every condition, and what becomes of the others."""

from __future__ import annotations

import pytest
import torch

from irc.analysis.cost import class_of
from irc.dialects import loop
from irc.interp.core import run
from irc.passes.loop import once
from irc.target import Target
from tests.passes.loop.texts import body_of, computes, heads, parsed, ran, remarks

ARGUMENTS = "%x: f32[40, 30], %v: f32[30], %w: f32[30], %s: f32[40]"
EXP = "math.exp"


def column(name: str = "%m", of: str = "%v", made: str = EXP, size: int = 30) -> str:
    return (f"{name} = loop.compute par(i0: {size}) -> map {{ %a = loop.read {of}[i0] : f32\n"
            f"%b = {made} %a : f32\n loop.yield %b }} : f32[{size}]\n")  # fmt: skip


def rows(reads: list[str], name: str = "%y", size: str = "40, 30", out: str = "map") -> str:
    """The sum of what is read, at each point of some rows and columns."""
    count = size.partition(",")
    axes = f"par(i0: {count[0]}, i1: {count[2]})" if out == "map" else (
        f"par(i0: {count[0]}) red(i1: {count[2]})")  # fmt: skip
    lines = "".join(f"%a{k} = loop.read {read} : f32\n" for k, read in enumerate(reads))
    total = "%a0"
    for k in range(1, len(reads)):
        lines += f"%b{k} = arith.addf {total}, %a{k} : f32\n"
        total = f"%b{k}"
    type_ = f"f32[{size}]" if out == "map" else f"f32[{count[0]}]"
    return f"{name} = loop.compute {axes} -> {out} {{ {lines} loop.yield {total} }} : {type_}\n"


def fused(*texts: str, results: str = "%y: f32[40, 30]", target: str = "avx2", fuel=None):
    """The heads of the computes after inlining and grouping, the values checked."""
    module = parsed(ARGUMENTS, "".join(texts), results)
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.rand(s, generator=generator) for s in ((40, 30), (30,), (30,), (40,))]
    wanted = run(module, *inputs)
    ran(module, "inline-computes,group-computes,localize", target, fuel)
    for got, expected in zip(run(module, *inputs), wanted, strict=True):
        assert torch.equal(got, expected)
    return heads(module), module


BOTH = ["group(i0: 40, i1: 30)", "- par(c0: 30) -> map", "- par(i0: 40) par(i1: 30) -> map"]


def test_what_differs_by_column_is_a_member_of_its_readers_group():
    found, module = fused(column(), rows(["%x[i0, i1]", "%m[i1]"]))
    assert found == BOTH
    (group,) = [op for op in module.walk() if isinstance(op, loop.GroupOp)]
    once, other = computes(module)
    assert group.is_once(once) and not group.is_once(other)
    assert body_of(once) == "read exp yield" and body_of(other) == "read read addf yield"


def test_what_differs_by_row_is_evaluated_in_each_row():
    found, _ = fused(column("%m", "%s", size=40), rows(["%x[i0, i1]", "%m[i0]"]))
    assert found == ["par(i0: 40) par(i1: 30) -> map"]


def test_a_gpu_evaluates_it_where_it_is_read():
    found, _ = fused(column(), rows(["%x[i0, i1]", "%m[i1]"]), target="sm_90")
    assert found == ["par(i0: 40) par(i1: 30) -> map"]


@pytest.mark.parametrize("made, wanted", [("arith.negf", 1), ("math.sqrt", 3), (EXP, 3)])
def test_what_costs_no_more_than_to_load_it_is_evaluated_again(made, wanted):
    assert len(fused(column(made=made), rows(["%x[i0, i1]", "%m[i1]"]))[0]) == wanted


@pytest.mark.parametrize("many, wanted", [(1, 1), (2, 3)])
def test_one_row_evaluates_nothing_again(many, wanted):
    text = column(), rows(["%w[i1]", "%m[i1]"], size=f"{many}, 30")
    assert len(fused(*text, results=f"%y: f32[{many}, 30]")[0]) == wanted


def test_a_loop_that_is_inside_by_the_strides_of_the_result():
    """The elements of a column lie side by side, so that i0 is inside: a map of i1 is evaluated
    once for each column, and one of i0 again and again."""
    turned = rows(["%x[i0, i1]", "%m[i1]"]).replace(
        "f32[40, 30]", "tensor<[40, 30] x f32, strides [1, 40]>")  # fmt: skip
    cases = ((column(), "%m[i1]", False), (column("%m", "%s", size=40), "%m[i0]", True))
    for text, place, wanted in cases:
        module = parsed(ARGUMENTS, text + turned.replace("%m[i1]", place))
        told = remarks(ran(module, "inline-computes", "avx2"))
        assert any("computed once for its reader" in line for line in told) is wanted


def test_through_views():
    view = ("%t = loop.compute par(i0: 1, i1: 30) -> map { %a = loop.read %m[i1] : f32\n"
            "loop.yield %a } : f32[1, 30]\n")  # fmt: skip
    assert fused(column(), view, rows(["%x[i0, i1]", "%t[0, i1]"]))[0] == BOTH


def test_axes_that_do_not_matter_go():
    """exp of what was broadcast over rows is a map over columns."""
    wide = ("%t = loop.compute par(i0: 40, i1: 30) -> map { %a = loop.read %v[i1] : f32\n"
            "loop.yield %a } : f32[40, 30]\n")
    made = ("%m = loop.compute par(i0: 40, i1: 30) -> map { %a = loop.read %t[i0, i1] : f32\n"
            "%b = math.exp %a : f32\n loop.yield %b } : f32[40, 30]\n")
    found, module = fused(wide, made, rows(["%x[i0, i1]", "%m[i0, i1]"]))
    assert found == BOTH and body_of(computes(module)[0]) == "read exp yield"


def test_the_sums_of_rows_have_it_too():
    found, _ = fused(column(), rows(["%x[i0, i1]", "%m[i1]"], out="reduce(sum, f32)"),
                     results="%y: f32[40]")  # fmt: skip
    assert found == ["group(i0: 40)", "- par(c0: 30) -> map", "- par(i0: 40) red(i1: 30) -> reduce"]


def test_a_reduction_that_is_split_reads_an_array():
    few = rows(["%x[i0, i1]", "%m[i1]"], size="4, 30", out="reduce(sum, f32)")
    found, _ = fused(column(), few, results="%y: f32[4]")
    assert "group" not in "".join(found)


def test_two_kernels_compute_it_each():
    other = rows(["%x[39 - i0, i1]", "%w[i1]", "%m[i1]"], "%z", "20, 30")
    found, module = fused(column(), rows(["%x[i0, i1]", "%m[i1]"]), other,
                          results="%y: f32[40, 30], %z: f32[20, 30]")  # fmt: skip
    assert found == [*BOTH, "group(i0: 20, i1: 30)", BOTH[1], "- par(i0: 20) par(i1: 30) -> map"]
    assert [body_of(op) for op in computes(module)][::2] == ["read exp yield"] * 2


def test_who_reads_it_once_evaluates_it():
    """The sum of the columns' values has each of them once; the rows have them again."""
    total = ("%z = loop.compute red(i0: 30) -> reduce(sum, f32) { %a = loop.read %m[i0] : f32\n"
             "loop.yield %a } : f32[]\n")
    found, module = fused(column(), rows(["%x[i0, i1]", "%m[i1]"]), total,
                          results="%y: f32[40, 30], %z: f32[]")  # fmt: skip
    assert found == [*BOTH, "red(i0: 30) -> reduce"]
    assert body_of(computes(module)[-1]) == "read exp yield"


def test_what_is_returned_is_an_array():
    found, _ = fused(column(), rows(["%x[i0, i1]", "%m[i1]"]),
                     results="%y: f32[40, 30], %m: f32[30]")  # fmt: skip
    assert "group" not in "".join(found)


def test_two_maps_of_one_kernel():
    found, _ = fused(column(), column("%n", "%w"), rows(["%x[i0, i1]", "%m[i1]", "%n[i1]"]))
    assert found == ["group(i0: 40, i1: 30)", *BOTH[1:2] * 2, BOTH[2]]


@pytest.mark.parametrize("fuel", range(5))
def test_with_fuel_for_some_rewrites(fuel):
    fused(column(), column("%n", "%w"), rows(["%x[i0, i1]", "%m[i1]", "%n[i1]"]), fuel=fuel)


def test_sizes_that_are_not_known():
    text = column().replace("30", "s0"), rows(["%v[i1]", "%m[i1]"]).replace("30", "s0")
    bind = '%n = sym.bind_size %v {dim = 0 : i64, symbol = "s0"} : (f32[s0]) -> index\n'
    module = parsed("%v: f32[s0]", bind + "".join(text), "%y: f32[40, s0]")
    ran(module, "inline-computes,group-computes", "avx2")
    assert "group" not in "".join(heads(module))


@pytest.mark.parametrize(
    ("axes", "out", "kept", "wanted"),
    [
        ("par(i0: 40, i1: 30)", "map", "40, 30", True),
        ("par(i0: 1)", "map", "1", True),
        ("par(i0: 40) red(i1: 30)", "reduce(sum, f32)", "40", True),
        ("par(i0: 1) red(i1: 30)", "reduce(sum, f32)", "1", False),
        ("red(i0: 40)", "reduce(sum, f32)", "", False),
        ("red(i0: 40) par(i1: 30)", "reduce(sum, f32)", "30", False),
        ("par(i0: 40) red(i1: 30) par(i2: 2)", "reduce(sum, f32)", "40, 2", False),
        ("par(j0: 40, j1: 30)", "map", "40, 30", False),
    ],
)
def test_which_kernels_may_be_groups(axes, out, kept, wanted):
    """Those of leading par axes that `split-reductions` leaves alone."""
    text = f"%y = loop.compute {axes} -> {out} {{ loop.yield %f }} : f32[{kept}]\n"
    (op,) = computes(parsed("%f: f32", text))
    assert once._has_place(op, Target.named("avx2")) is wanted
    assert not once._has_place(None, Target.named("avx2"))


def inlined(made: str, size: str = "30") -> object:
    """Which readers evaluate a map again that 40 rows read; None: all or none had better."""
    text = column(made=made) + rows(["%x[i0, i1]", "%m[i1]"])
    bind = '%n = sym.bind_size %q {dim = 0 : i64, symbol = "s0"} : (f32[s0]) -> index\n'
    module = parsed(
        ARGUMENTS.replace("30", size) + ", %q: f32[s0]", bind + text.replace("30", size)
    )
    op = computes(module)[0]
    return once.inlined_by(op, {"i0"}, sum(map(class_of, op.block.ops)), Target.named("avx2"))


def test_only_small_maps_of_known_sizes_are_computed_once():
    assert inlined(EXP) == set()
    assert inlined(EXP, "s0") is None, "how many it has is not known"
    assert inlined("arith.negf") is None


@pytest.mark.parametrize("mask", ["", "(where %c)"])
def test_along_which_axes_a_map_is_read(mask):
    """Under a mask a read may be evaluated at any point of its reader."""
    reader = (f"%y = loop.compute par(i0: 40, i1: 30) -> map {{ %c = loop.index {{expression ="
              f" #sym<i0>}} : index\n %k = arith.constant 3 : index\n"
              f"%b = arith.cmpi slt, %c, %k : index\n %a = loop.read %m[i1] {mask} : f32\n"
              f"%z = arith.addf %a, %a : f32\n loop.yield %z }} : f32[40, 30]\n")  # fmt: skip
    op, other = computes(parsed(ARGUMENTS, column() + reader.replace("(where %c)", "(where %b)")))
    assert list(once._places(op, {"i0"})) == [(other, None if mask else {"i1"})]
    assert list(once._places(op, set())) == [(other, None if mask else set())]
