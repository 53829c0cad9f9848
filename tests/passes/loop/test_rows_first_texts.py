"""Which computes are turned so that results come first: the predicates, one by one."""

from __future__ import annotations

import pytest

from irc.passes.loop.rows_first import RowsFirst, axes_read, is_turnable
from tests.passes.loop.texts import computes, parsed

ARGUMENTS = "%x: f32[99, 99], %s: f32[]"


def only(axes: str, out: str, type_: str, read: str = "%s[]", values: int = 1):
    names = ", ".join(["%y", "%z"][:values])
    text = f"""{names} = loop.compute {axes} -> {out} {{ %a = loop.read {read} : f32
      loop.yield {", ".join(["%a"] * values)} }} : {type_}\n"""
    return computes(parsed(ARGUMENTS, text))[0]


# With at least 8 results of at most 16 points each.
WORTH = [
    ("red(i0: 16) par(i1: 8)", "reduce(sum, f32)", "f32[8]", True),
    ("red(i0: 16) par(i1: 7)", "reduce(sum, f32)", "f32[7]", False),
    ("red(i0: 17) par(i1: 8)", "reduce(sum, f32)", "f32[8]", False),
    ("red(i0: 4) par(i1: 2) red(i2: 4) par(i3: 4)", "reduce(sum, f32)", "f32[2, 4]", True),
    ("red(i0: 4) par(i1: 2) red(i2: 5) par(i3: 4)", "reduce(sum, f32)", "f32[2, 4]", False),
    ("red(i0: 4) par(i1: 2) red(i2: 4) par(i3: 3)", "reduce(sum, f32)", "f32[2, 3]", False),
    ("par(i0: 8, i1: 8)", "reduce(sum, f32)", "f32[8, 8]", False),
    ("red(i0: 4, i1: 4)", "reduce(sum, f32)", "f32[]", False),
    ("red(i0: 16) par(i1: 8)", "reduce(argmax, f32)", "i64[8]", False),
    ("red(i0: 16) par(i1: 8)", "map", "f32[16, 8]", False),
    ("red(i0: 16) par(i1: 8)", "reduce(sum, f32), map", "f32[8], f32[16, 8]", False),
    ("red(i0: 16) par(i1: 8)", "reduce(sum, f32), reduce(max, f32)", "f32[8], f32[8]", True),
]  # fmt: skip


@pytest.mark.parametrize(("axes", "out", "type_", "wanted"), WORTH)
def test_reductions_that_are_worth_it(axes, out, type_, wanted):
    op = only(axes, out, type_, values=out.count("map") + out.count("reduce"))
    assert RowsFirst(min_results=8, max_points=16).is_worth_it(op) is wanted
    assert not RowsFirst().is_worth_it(op), "2048 results are few"


def test_two_thousand_results_are_enough():
    for results, each, wanted in ((2048, 16384, True), (2047, 4, False), (2048, 16385, False)):
        op = only(f"red(i0: {each}) par(i1: {results})", "reduce(sum, f32)", f"f32[{results}]")
        assert RowsFirst().is_worth_it(op) is wanted


@pytest.mark.parametrize(
    ("read", "wanted"),
    [("i0, i1", [0, 1]), ("i1, i0", [1, 0]), ("i1, i2", [1, 2]), ("i2, i0", [2, 0]),
     ("i0, i0", None), ("i0, 0", None), ("i0, i1 + 1", None), ("i0 + i1, i2", None)],
)  # fmt: skip
def test_the_axes_that_are_read(read, wanted):
    op = only("par(i0: 4, i1: 4, i2: 4)", "map", "f32[4, 4, 4]", f"%x[{read}]")
    assert axes_read(next(iter(op.reads)), op) == wanted


TURNABLE = [
    ("par(i0: 4, i1: 4)", "map", "f32[4, 4]", True),
    ("par(i0: 4, i1: 4)", "map, map", "f32[4, 4], f32[4, 4]", True),
    ("par(i0: 4, i1: 4)", "map, reduce(sum, f32)", "f32[4, 4], f32[4, 4]", False),
    ("par(i0: 4, i1: 4)", "reduce(sum, f32)", "f32[4, 4]", False),
    ("par(i0: 4) red(i1: 4)", "map", "f32[4, 4]", False),
    ("red(i0: 4, i1: 4)", "map", "f32[4, 4]", False),
    ("par(i0: 4, j: 4)", "map", "f32[4, 4]", False),
    ("par(i0: 4, i1: 4)", "map schedule #loop.schedule<cpu>", "f32[4, 4]", False),
]


@pytest.mark.parametrize(("axes", "out", "type_", "wanted"), TURNABLE)
def test_maps_that_can_be_turned(axes, out, type_, wanted):
    assert is_turnable(only(axes, out, type_, values=type_.count("f32"))) is wanted
