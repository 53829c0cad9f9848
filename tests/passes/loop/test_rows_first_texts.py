"""Which computes are turned so that results come first: the predicates, one by one."""

from __future__ import annotations

import pytest

from irc.passes.loop.rows_first import (
    RowsFirst,
    axes_read,
    is_turnable,
    producers_to_turn,
    readers_to_turn,
)
from irc.target import Target
from tests.passes.loop.texts import computes, parsed

H100, AVX2 = Target.named("sm_90"), Target.named("avx2")

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
    assert RowsFirst(min_results=8, max_points=16).is_worth_it(op, H100) is wanted
    assert not RowsFirst().is_worth_it(op, H100), "2048 results are few"


def test_two_thousand_results_are_enough():
    for results, each, wanted in ((2048, 16384, True), (2047, 4, False), (2048, 16385, False)):
        op = only(f"red(i0: {each}) par(i1: {results})", "reduce(sum, f32)", f"f32[{results}]")
        assert RowsFirst().is_worth_it(op, H100) is wanted
    busy = Target.named("#irc.target<sm_90, parallel = 100>")
    for results, wanted in ((800, True), (799, False)):
        op = only(f"red(i0: 4) par(i1: {results})", "reduce(sum, f32)", f"f32[{results}]")
        assert RowsFirst().is_worth_it(op, busy) is wanted


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


def many(*texts: str):
    return computes(parsed(ARGUMENTS + ", %d: f32[8, 12]", "".join(texts)))


def of(name: str, axes: str, reads: list[str], type_: str, out: str = "map") -> str:
    body = "".join(f"%a{k} = loop.read {read} : f32\n" for k, read in enumerate(reads))
    for k in range(1, len(reads)):
        body += f"%s{k} = arith.addf %{'s' if k > 1 else 'a'}{k - 1}, %a{k} : f32\n"
    last = f"%s{len(reads) - 1}" if len(reads) > 1 else "%a0"
    return f"{name} = loop.compute {axes} -> {out} {{ {body} loop.yield {last} }} : {type_}\n"


SUMS = of("%r", "red(i0: 8) par(i1: 12)", ["%d[i0, i1]"], "f32[12]", "reduce(sum, f32)")
PLANES = of("%r", "red(i0: 8) par(i1: 3, i2: 4)", ["%s[]"], "f32[3, 4]", "reduce(sum, f32)")
READERS = [
    (SUMS, "par(i0: 8, i1: 12)", ["%r[i1]"], "map", [1, 0]),
    (SUMS, "par(i0: 12, i1: 8)", ["%r[i0]"], "map", None),
    (SUMS, "par(i0: 8, i1: 12)", ["%r[3]"], "map", None),
    (SUMS, "par(i0: 12, i1: 12)", ["%r[i1]", "%r[i0]"], "map", None),
    (SUMS, "par(i0: 12, i1: 12)", ["%r[i1]", "%r[3]"], "map", None),
    (SUMS, "par(i0: 8, i1: 12)", ["%r[i1]", "%r[i1]"], "map", [1, 0]),
    (SUMS, "par(i0: 8, i1: 12)", ["%r[i1]"], "reduce(sum, f32)", None),
    (SUMS, "par(i0: 12)", ["%r[i0]"], "map", None),
    (SUMS, "par(i0: 2, i1: 8, i2: 12)", ["%r[i2]"], "map", [2, 0, 1]),
    (SUMS, "par(i0: 2, i1: 12, i2: 8)", ["%r[i1]"], "map", [1, 0, 2]),
    (PLANES, "par(i0: 4, i1: 3)", ["%r[i1, i0]"], "map", None),
    (PLANES, "par(i0: 4, i1: 3, i2: 5)", ["%r[i1, i0]"], "map", [1, 0, 2]),
    (PLANES, "par(i0: 5, i1: 3, i2: 4)", ["%r[i1, i2]"], "map", [1, 2, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("made", "axes", "reads", "out", "order"), READERS)
def test_readers_that_are_turned(made, axes, reads, out, order):
    sizes = ", ".join(part.partition(": ")[2] for part in axes[4:-1].split(", "))
    op, reader = many(made, of("%y", axes, reads, f"f32[{sizes}]", out))
    assert list(readers_to_turn(op, AVX2)) == ([] if order is None else [(reader, order)])


def test_readers_of_two_results():
    both = """%r, %q = loop.compute red(i0: 8) par(i1: 12) -> reduce(sum, f32), reduce(max, f32) {
      %a = loop.read %d[i0, i1] : f32 loop.yield %a, %a } : f32[12], f32[12]\n"""
    op, one, other = many(both, of("%y", "par(i0: 8, i1: 12)", ["%r[i1]", "%q[i1]"], "f32[8, 12]"),
                          of("%z", "par(i0: 2, i1: 12)", ["%q[i1]"], "f32[2, 12]"))  # fmt: skip
    assert list(readers_to_turn(op, AVX2)) == [(one, [1, 0]), (other, [1, 0])]


MADE = of("%m", "par(i0: 8, i1: 12)", ["%d[i0, i1]"], "f32[8, 12]")
CUBE = of("%m", "par(i0: 2, i1: 3, i2: 4)", ["%s[]"], "f32[2, 3, 4]")
PRODUCERS = [
    (MADE, "par(i0: 12) red(i1: 8)", ["%m[i1, i0]"], [1, 0]),
    (MADE, "par(i0: 8) red(i1: 12)", ["%m[i0, i1]"], None),
    (MADE, "par(i0: 12) red(i1: 8)", ["%m[i1, i0]", "%m[i1, i0]"], [1, 0]),
    (MADE, "par(i0: 12) red(i1: 8)", ["%d[i1, i0]"], None),
    (MADE, "par(i0: 12) red(i1: 8)", ["%m[i1, 3]"], None),
    (MADE, "par(i0: 12, i1: 2) red(i2: 8)", ["%m[i2, i0]"], None),
    (MADE, "par(i0: 12) red(i1: 8)", ["%d[i1, i0]", "%m[i1, i0]"], [1, 0]),
    (MADE, "par(i0: 12) red(i1: 8)", ["%m[i1, 3]", "%m[i1, i0]"], [1, 0]),
    (of("%m", "par(i0: 8) red(i1: 12)", ["%s[]"], "f32[8]", "reduce(sum, f32)"),
     "red(i0: 8)", ["%m[i0]"], None),
    (of("%m", "red(i0: 9) par(i1: 8, i2: 12)", ["%s[]"], "f32[8, 12]", "reduce(sum, f32)"),
     "par(i0: 12) red(i1: 8)", ["%m[i1, i0]"], None),
    (CUBE, "par(i0: 3, i1: 4) red(i2: 2)", ["%m[i2, i0, i1]"], [1, 2, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("made", "axes", "reads", "order"), PRODUCERS)
def test_producers_that_are_turned(made, axes, reads, order):
    kept = [p.partition(": ")[2].rstrip(")") for p in axes.replace(") red", ", red").split(", ")
            if "red" not in p]  # fmt: skip
    op, reduction = many(made, of("%y", axes, reads, f"f32[{', '.join(kept)}]", "reduce(sum, f32)"))
    assert list(producers_to_turn(reduction)) == ([] if order is None else [(op, order)])
