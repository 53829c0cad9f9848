"""Which computes become one, and why others stay apart: spaces, limits, order, and where a compute
reads what another one makes."""

from __future__ import annotations

import re

import pytest
import torch

from irc.interp.core import run
from tests.passes.loop.texts import computes, heads, parsed, ran, remarks

ARGUMENTS = "%x: f32[64, 128], %w: f32[64, 128], %v: f32[64], %i: i64[64]"
READ = "%a = loop.read %x[i0, i1] : f32"


def compute(name: str, axes: str, out: str, type_: str, body: str, yields: str = "%a") -> str:
    return f"{name} = loop.compute {axes} -> {out} {{ {body} loop.yield {yields} }} : {type_}\n"


SPACE = "par(i0: 64, i1: 128)"
MAP = compute("%m", SPACE, "map", "f32[64, 128]", READ + "%e = math.exp %a : f32", "%e")
ROWS = compute("%r", "par(i0: 64) red(i1: 128)", "reduce(sum, f32)", "f32[64]", READ)
COLUMNS = compute("%c", "red(i0: 64) par(i1: 128)", "reduce(sum, f32)", "f32[128]", READ)
ALL = compute("%t", "red(i0: 64, i1: 128)", "reduce(sum, f32)", "f32[]", READ)
SCAN = compute("%s", "par(i0: 64) scan(i1: 128)", "scan(sum, f32)", "f32[64, 128]", READ)
DOWN = compute("%d", "scan(i0: 64) par(i1: 128)", "scan(sum, f32)", "f32[64, 128]", READ)
TURNED = compute("%n", "par(i0: 128, i1: 64)", "map", "f32[128, 64]",
                 "%a = loop.read %x[i1, i0] : f32")  # fmt: skip
BESIDE = compute("%b, %b2", "red(i0: 64) par(i1: 128)", "reduce(sum, f32), map",
                 "f32[128], f32[64, 128]", READ, "%a, %a")  # fmt: skip


def of(
    name: str, read: str, axes: str = SPACE, out: str = "map", type_: str = "f32[64, 128]"
) -> str:
    """A compute of one read."""
    return compute(name, axes, out, type_, f"%a = loop.read {read} : f32")


def merged(*texts: str, options: str = "", results: str = "") -> tuple[list[str], list[str]]:
    """The heads of the computes after the pass, and the remarks about such as stayed apart."""
    module = parsed(ARGUMENTS, "".join(texts), results)
    context = ran(module, f"merge-computes{options}")
    return heads(module), remarks(context)


# Two computes that read one large array: the heads of one, or the reason.
PAIRS = {
    "map, map": (MAP, MAP.replace("%m", "%m2"), ["par(i0: 64) par(i1: 128) -> map, map"]),
    "map, rows": (MAP, ROWS, ["par(i0: 64) red(i1: 128) -> map, reduce"]),
    "rows, map": (ROWS, MAP, ["par(i0: 64) red(i1: 128) -> reduce, map"]),
    "map, all": (MAP, ALL, ["red(i0: 64) red(i1: 128) -> map, reduce"]),
    "map, columns": (MAP, COLUMNS, "a map beside a reduction over leading axes would keep it out "
                                   "of row groups"),
    "columns, map": (COLUMNS, MAP, "a map beside a reduction over leading axes would keep it out "
                                   "of row groups"),
    "columns, columns beside a map": (
        COLUMNS, BESIDE, "a map beside a reduction over leading axes would keep it out of row "
                         "groups"),
    "rows, rows": (ROWS, ROWS.replace("sum", "max").replace("%r", "%r2"),
                   ["par(i0: 64) red(i1: 128) -> reduce, reduce"]),
    "columns, columns": (COLUMNS, COLUMNS.replace("%c", "%c2"),
                         ["red(i0: 64) par(i1: 128) -> reduce, reduce"]),
    "rows, columns": (ROWS, COLUMNS, "they combine over the axes [1] and [0] of one space"),
    "rows, all": (ROWS, ALL, "they combine over the axes [1] and [0, 1] of one space"),
    "map, scan": (MAP, SCAN, ["par(i0: 64) scan(i1: 128) -> map, scan"]),
    "scan down, map": (DOWN, MAP, ["scan(i0: 64) par(i1: 128) -> scan, map"]),
    "scan, scan": (SCAN, SCAN.replace("%s", "%s2"), ["par(i0: 64) scan(i1: 128) -> scan, scan"]),
    "scan, scan down": (SCAN, DOWN, "they combine over the axes [1] and [0] of one space"),
    "scan, rows": (SCAN, ROWS, "one reduces and the other scans"),
    "rows, scan down": (ROWS, DOWN, "one reduces and the other scans"),
    "map, turned": (MAP, TURNED, "their spaces are [64, 128] and [128, 64]"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_siblings(name):
    one, other, wanted = PAIRS[name]
    kept = []
    for text in (one, other):
        result, _, rest = text.partition(" = ")
        types = re.findall(r"\w+\[[^\]]*\]", rest.rpartition(" : ")[2])
        kept += [f"{r}: {t}" for r, t in zip(result.split(", "), types, strict=True)]
    found, told = merged(one, other, results=", ".join(kept))
    if isinstance(wanted, list):
        assert found == wanted and not told
    else:
        assert len(found) == 2
        text = "is not merged with one that reads the same array"
        assert told == [f"'loop.compute': {text}: {wanted}"]


def test_a_map_merges_with_a_reduction_whose_inner_axes_have_one_point():
    """Such axes count as combined: no row is cut."""
    read = "%a = loop.read %x[i0, i1] : f32"
    for axes, extents, together in (
        ("par(i0: 64) red(i1: 128) par(i2: 1)", "64, 128, 1", True),
        ("par(i0: 64) red(i1: 128) par(i2: 2)", "64, 128, 2", False),
        ("par(i0: 64) red(i1: 128) par(i2: 1) red(i3: 1)", "64, 128, 1, 1", True),
    ):
        names = ", ".join(f"i{k}: {e}" for k, e in enumerate(extents.split(", ")))
        rows = compute("%r", axes, "reduce(sum, f32)",
                       "f32[64, 2]" if "i2: 2" in axes else "f32[64, 1]", read)  # fmt: skip
        map_ = compute("%m", f"par({names})", "map", f"f32[{extents}]", read)
        assert len(merged(rows, map_)[0]) == 2 - together, axes


ODD = {
    "a scatter": ("%q = loop.compute par(i0: 64, i1: 128) inits(%v) -> scatter(sum, [_0]) {\n"
                  f"{READ} %k = loop.read %i[i0] : i64 loop.yield %a extra(%k) }} : f32[64]\n"),
    "a scatter beside a map": (
        "%q, %q2 = loop.compute par(i0: 64, i1: 128) inits(%v) -> map, scatter(sum, [_0]) {\n"
        f"{READ} %k = loop.read %i[i0] : i64 loop.yield %a, %a extra(%k) }} "
        ": f32[64, 128], f32[64]\n"),
    "other names": compute("%q", "par(i0: 64, j: 128)", "map", "f32[64, 128]",
                           "%a = loop.read %x[i0, j] : f32"),
    "all names exchanged": compute("%q", "par(i1: 64, i0: 128)", "map", "f32[64, 128]",
                                   "%a = loop.read %x[i1, i0] : f32"),
    "a schedule": MAP.replace("%m", "%q").replace("map {", "map schedule #loop.schedule<cpu> {"),
    "a reduction and a scan": (
        "%q, %q2 = loop.compute red(i0: 64) scan(i1: 128) -> reduce(sum, f32), scan(sum, f32) {\n"
        f"{READ} loop.yield %a, %a }} : f32[128], f32[64, 128]\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("first", [True, False])
def test_what_merges_with_nothing(name, first):
    texts = [ODD[name], MAP] if first else [MAP, ODD[name]]
    found, told = merged(*texts)
    assert len(found) == 2 and not told


def test_limits():
    """Operations: a read and the yield, then a read, an exp and the yield; results: as many."""
    for option, number in (("max_ops", 6), ("max_outputs", 2)):
        for limit in (number - 1, number):
            found, told = merged(MAP, MAP.replace("%m", "%m2").replace("exp", "sin"),
                                 options=f"{{{option}={limit}}}")  # fmt: skip
            assert len(found) == 1 + (limit < number)
            kind = "operations" if option == "max_ops" else "results"
            why = f"{number} {kind} together are more than {option}={limit}"
            assert [t.rpartition(": ")[2] for t in told] == [why] * (limit < number)


READERS = {
    "at its point": ("%m[i0, i1]", None),
    "at another point": ("%m[63 - i0, i1]", "it reads the other's array at other points than its "
                                            "own"),
    "at another point along the last axis": (
        "%m[i0, 127 - i1]", "it reads the other's array at other points than its own"),
    "where a mask holds": ("%m[i0, i1] (where %k)", "it reads the other's array at other points "
                                                    "than its own"),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_a_map_and_its_reader(name):
    read, why = READERS[name]
    mask = "%p = loop.read %i[i0] : i64 %z = arith.constant 3 : i64\n"
    mask += "%k = arith.cmpi slt, %p, %z : i64\n"
    body = f"{mask if 'where' in read else ''} %a = loop.read {read} : f32"
    reader = compute("%y", SPACE, "map", "f32[64, 128]", body)
    found, told = merged(MAP, reader, results="%y: f32[64, 128]")
    if why is None:
        assert found == ["par(i0: 64) par(i1: 128) -> map"] and not told
    else:
        assert len(found) == 2
        assert told == [f"'loop.compute': is not merged with a compute that it reads: {why}"]


def test_a_reader_at_two_points_of_which_one_is_another():
    for second in ("%m[i0, i1]", "%m[i0, 127 - i1]"):
        reader = compute("%y", SPACE, "map", "f32[64, 128]",
                         f"%b = loop.read %m[i0, i1] : f32 %c = loop.read {second} : f32\n"
                         "%a = arith.addf %b, %c : f32")  # fmt: skip
        assert len(merged(MAP, reader)[0]) == 1 + ("127" in second)


def test_an_axis_of_one_point_may_be_read_at_0():
    for extent in (1, 2):
        type_ = f"f32[64, {extent}]"
        one = of("%m", "%v[i0]", f"par(i0: 64, i1: {extent})", type_=type_)
        reader = of("%y", "%m[i0, 0]", f"par(i0: 64, i1: {extent})", type_=type_)
        assert len(merged(one, reader)[0]) == extent


RESULTS = {
    "rows": (ROWS, of("%y", "%r[i0]", "par(i0: 64) red(i1: 128)", "reduce(max, f32)", "f32[64]"),
             "reduce"),
    "scan": (SCAN, of("%y", "%s[i0, i1]", "par(i0: 64) scan(i1: 128)", "scan(max, f32)"), "scan"),
    "scan read by a map": (SCAN, of("%y", "%s[i0, i1]"), "scan"),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_who_reads_what_is_combined(name):
    one, other, kind = RESULTS[name]
    found, told = merged(one, other)
    assert len(found) == 2
    assert told == [f"'loop.compute': is not merged with a compute that it reads: it needs the "
                    f"whole result of the other's {kind}"]  # fmt: skip


def test_a_reader_of_a_map_and_of_a_reduction_beside_it():
    """Of the two results of one compute, the map may be read at its point, the sums not."""
    both = """%m, %r = loop.compute par(i0: 64) red(i1: 128) -> map, reduce(sum, f32) {
      %a = loop.read %x[i0, i1] : f32 loop.yield %a, %a } : f32[64, 128], f32[64]\n"""
    assert len(merged(both, of("%y", "%m[i0, i1]"))[0]) == 1
    assert len(merged(both, of("%y", "%r[i0]"))[0]) == 2


def test_a_sibling_that_reads_the_other_at_another_point():
    """%y joins %m, which it reads; then %n, which reads %m reversed, must stay apart."""
    reversed_ = compute("%n", SPACE, "map", "f32[64, 128]",
                        "%b = loop.read %m[63 - i0, i1] : f32 %c = loop.read %w[i0, i1] : f32\n"
                        "%a = arith.addf %b, %c : f32")  # fmt: skip
    both = compute("%y", SPACE, "map", "f32[64, 128]",
                   "%b = loop.read %m[i0, i1] : f32 %c = loop.read %w[i0, i1] : f32\n"
                   "%a = arith.mulf %b, %c : f32")  # fmt: skip
    results = "%y: f32[64, 128], %n: f32[64, 128]"
    module = parsed(ARGUMENTS, MAP + reversed_ + both, results)
    inputs = [torch.linspace(-1, 1, 8192).reshape(64, 128), torch.ones(64, 128),
              torch.ones(64), torch.ones(64, dtype=torch.int64)]  # fmt: skip
    wanted = run(module, *inputs)
    context = ran(module, "merge-computes")
    space = "par(i0: 64) par(i1: 128)"
    assert heads(module) == [f"{space} -> map, map", f"{space} -> map"]
    assert all(torch.equal(a, b) for a, b in zip(run(module, *inputs), wanted, strict=True))
    assert any("it reads the other's array at other points" in t for t in remarks(context))


def test_what_stands_between():
    """%y reads %x as %m does, and %r, which needs %m: the three can't be one."""
    sums = of("%r", "%m[i0, i1]", "par(i0: 64) red(i1: 128)", "reduce(sum, f32)", "f32[64]")
    small = of("%h", "%r[i0]", "par(i0: 64)", type_="f32[64]")
    reader = compute("%y", SPACE, "map", "f32[64, 128]",
                     f"{READ} %b = loop.read %h[i0] : f32 %c = arith.addf %a, %b : f32",
                     "%c")  # fmt: skip
    found, told = merged(MAP, sums, small, reader)
    assert found == ["par(i0: 64) red(i1: 128) -> reduce", "par(i0: 64) -> map",
                     "par(i0: 64) par(i1: 128) -> map"]  # fmt: skip
    why = "what stands between them needs the one and is needed by the other"
    assert f"'loop.compute': is not merged with one that reads the same array: {why}" in told


def test_computes_of_few_points_merge_though_they_share_nothing():
    """4096 points are few; one that reads what a compute makes waits for that one."""
    for extent, together in ((4096, True), (4097, False)):
        arguments = f"%p: f32[{extent}], %q: f32[{extent}], %g: f32[4096, 2]"
        one = of("%a1", "%p[i0]", f"par(i0: {extent})", type_=f"f32[{extent}]")
        other = of("%a2", "%q[i0]", f"par(i0: {extent})", type_=f"f32[{extent}]")
        module = parsed(arguments, one + other)
        ran(module, "merge-computes")
        assert len(computes(module)) == 2 - together
    sums = of("%r", "%g[i0, i1]", "par(i0: 4096) red(i1: 2)", "reduce(sum, f32)", "f32[4096]")
    one = of("%a1", "%p[i0]", "par(i0: 4096)", type_="f32[4096]")
    for after in (False, True):
        end = compute("%e", "par(i0: 4096)", "map", "f32[4096]",
                      "%b = loop.read %q[i0] : f32 %c = loop.read %r[i0] : f32\n"
                      "%a = arith.addf %b, %c : f32")  # fmt: skip
        module = parsed("%p: f32[4096], %q: f32[4096], %g: f32[4096, 2]",
                        one + sums + end if after else sums + end + one)  # fmt: skip
        ran(module, "merge-computes")
        assert len(computes(module)) == 3


def test_a_reduction_that_a_third_compute_makes():
    """%y reads %m at its point, and sums, which have nothing to do with %m."""
    sums = of("%r", "%w[i0, i1]", "par(i0: 64) red(i1: 128)", "reduce(sum, f32)", "f32[64]")
    reader = compute("%y", SPACE, "map", "f32[64, 128]",
                     "%b = loop.read %m[i0, i1] : f32 %c = loop.read %r[i0] : f32\n"
                     "%a = arith.addf %b, %c : f32")  # fmt: skip
    assert merged(MAP, sums, reader, results="%y: f32[64, 128]")[0] == [
        "par(i0: 64) red(i1: 128) -> reduce", "par(i0: 64) par(i1: 128) -> map"
    ]  # fmt: skip


def test_siblings_share_what_does_not_stay_in_cache():
    """4096 elements of 4 bytes do; what a scatter makes brings its reader to nothing."""
    for extent in (4096, 4097):
        axes, type_ = f"par(i0: {extent}, i1: 2)", f"f32[{extent}, 2]"
        texts = [of(name, "%p[i0]", axes, type_=type_) for name in ("%a1", "%a2")]
        module = parsed(f"%p: f32[{extent}]", "".join(texts))
        ran(module, "merge-computes")
        assert len(computes(module)) == 1 + (extent == 4096)
    scatter = ODD["a scatter"]
    reader = of("%y", "%q[i0]", "par(i0: 64)", type_="f32[64]")
    assert len(merged(scatter, reader)[0]) == 2


def test_which_results_are_kept():
    """A map that only the merged compute read goes; one that another compute, the caller or only
    one of two reads stays."""
    reader = of("%y", "%m[i0, i1]")
    turned = compute("%n", "par(i0: 128, i1: 64)", "map", "f32[128, 64]",
                     "%a = loop.read %m[i1, i0] : f32")  # fmt: skip
    assert merged(MAP, reader, results="%y: f32[64, 128]")[0] == ["par(i0: 64) par(i1: 128) -> map"]
    both = "par(i0: 64) par(i1: 128) -> map, map"
    assert merged(MAP, reader, results="%y: f32[64, 128], %m: f32[64, 128]")[0] == [both]
    found = merged(MAP, reader, turned, results="%y: f32[64, 128], %n: f32[128, 64]")[0]
    assert found == [both, "par(i0: 128) par(i1: 64) -> map"]


def test_without_fuel_they_stay_apart():
    for fuel in (0, 1):
        module = parsed(ARGUMENTS, MAP + of("%y", "%m[i0, i1]"))
        told = remarks(ran(module, "merge-computes", fuel=fuel))
        assert any("there is no fuel left" in text for text in told) == (fuel == 0)
        assert [op.name for op in next(iter(module.ops)).block.ops].count("loop.compute") == (
            2 if fuel == 0 else 1
        )
