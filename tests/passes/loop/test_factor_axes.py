"""Which axes are split, at which factors, and why others stay whole."""

from __future__ import annotations

import pytest

from irc.ir.symbols import floordiv, symbol
from irc.passes.loop.factor_axes import (
    factors,
    is_splittable,
    own_factor,
    readers_factor,
    reduces_rows,
    vanishes,
    why_whole,
)
from tests.passes.loop.texts import computes, heads, parsed, ran

ARGUMENTS = ("%x: f32[12], %c: f32[3, 4], %d: f32[12, 8], %z: f32[2, 6], %big: f32[9999], "
             "%k: i64[12], %init: f32[4]")  # fmt: skip
S0, S1 = symbol("s0"), symbol("s1")


def compute(axes: str, reads: list[str], out: str = "map", type_: str = "f32[12]",
            name: str = "%y", values: int = 1, extra: str = "") -> str:  # fmt: skip
    body = f"%a0 = loop.read {reads[0]} : f32\n"
    for k, read in enumerate(reads[1:], 1):
        body += f"%b{k} = loop.read {read} : f32 %a{k} = arith.addf %a{k - 1}, %b{k} : f32\n"
    if extra:
        body += "%p = loop.read %k[0] : i64\n"
    body += f"loop.yield {', '.join([f'%a{len(reads) - 1}'] * values)}{extra}"
    return f"{name} = loop.compute {axes} -> {out} {{ {body} }} : {type_}\n"


@pytest.mark.parametrize(
    ("extent", "inner", "wanted"),
    [
        (12, 4, (3, 4)), (12, 5, None), (12, 12, None), (12, 1, None), (12, 24, None),
        (12, 6, (2, 6)), (S0 * 4, 4, (S0, 4)), (S0 * S1, S1, None), (S0, 4, None),
        (S0 * 4, S0, None), (S0, S0, None), (S0, 1, None), (0, S0, None),
        (floordiv(S0, 2) * 3, floordiv(S0, 2), None),
    ],
)  # fmt: skip
def test_factors(extent, inner, wanted):
    assert factors(extent, inner) == wanted


SPLITTABLE = {
    "a map": (compute("par(i0: 12)", ["%x[i0]"]), True),
    "a reduction": (compute("red(i0: 12)", ["%x[i0]"], "reduce(sum, f32)", "f32[]"), True),
    "both": (compute("red(i0: 12)", ["%x[i0]"], "map, reduce(sum, f32)", "f32[12], f32[]",
                     "%y, %y2", 2), True),
    "an index of the largest": (
        compute("red(i0: 12)", ["%x[i0]"], "reduce(argmax, f32)", "i64[]"), False),
    "an index of the smallest": (
        compute("red(i0: 12)", ["%x[i0]"], "reduce(argmin, f32)", "i64[]"), False),
    "an index beside a sum": (
        compute("red(i0: 12)", ["%x[i0]"], "reduce(sum, f32), reduce(argmin, f32)", "f32[], i64[]",
                "%y, %y2", 2), False),
    "a scan": (compute("scan(i0: 12)", ["%x[i0]"], "scan(sum, f32)"), False),
    "a map along a scanned axis": (compute("scan(i0: 12)", ["%x[i0]"]), False),
    "a map along one of two scanned axes": (
        compute("par(i0: 3) scan(i1: 4)", ["%c[i0, i1]"], type_="f32[3, 4]"), False),
    "a scatter": (compute("par(i0: 12) inits(%init)", ["%x[i0]"], "scatter(sum, [_0])", "f32[4]",
                          extra=" extra(%p)"), False),
    "a schedule": (compute("par(i0: 12)", ["%x[i0]"], "map schedule #loop.schedule<cpu>"), False),
    "another name": (compute("par(j: 12)", ["%x[j]"]), False),
    "another second name": (compute("par(i0: 3, j: 4)", ["%c[i0, j]"], type_="f32[3, 4]"), False),
}  # fmt: skip


@pytest.mark.parametrize("name", SPLITTABLE)
def test_is_splittable(name):
    text, wanted = SPLITTABLE[name]
    assert is_splittable(computes(parsed(ARGUMENTS, text))[0]) is wanted


OWN = {
    "both parts": (["%c[floordiv(i0, 4), mod(i0, 4)]"], (0, 3, 4)),
    "a quotient": (["%c[floordiv(i0, 4), 0]"], (0, 3, 4)),
    "a remainder": (["%c[0, mod(i0, 4)]"], (0, 3, 4)),
    "the second of two": (["%x[i0]", "%c[0, mod(i0, 4)]"], (0, 3, 4)),
    "a factor that does not divide": (["%c[0, mod(i0, 3) + floordiv(i0, 12)]",
                                       "%x[mod(i0, 5)]"], (0, 4, 3)),
    "of no factor": (["%x[mod(i0, 5)]"], None),
    "no division": (["%x[i0]"], None),
    "of a sum": (["%c[0, mod(i0 + 1, 4)]"], None),
    "of a multiple": (["%c[0, mod(i0*3, 4)]"], None),
    "factors of both kinds": (["%x[mod(i0, 6)]", "%c[0, mod(i0, 4)]"], (0, 2, 6)),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_factors_of_what_it_reads(name):
    reads, wanted = OWN[name]
    (op,) = computes(parsed(ARGUMENTS, compute("par(i0: 12)", reads)))
    assert own_factor(op) == wanted


def test_factors_of_another_axis_and_of_a_size():
    text = compute("par(i0: 2, i1: 12)", ["%c[floordiv(i1, 4), mod(i1, 4)]"], type_="f32[2, 12]")
    assert own_factor(computes(parsed(ARGUMENTS, text))[0]) == (1, 3, 4)
    bind = """%n = sym.bind_size %s {dim = 0 : i64, hint = 5 : i64, minimum = 2 : i64,
      maximum = 9 : i64, symbol = "s0"} : (tensor<[s0] x f32, strides [1]>) -> index\n"""
    arguments = ARGUMENTS + ", %s: tensor<[s0] x f32, strides [1]>"
    text = compute("par(i0: 12)", ["%c[floordiv(s0, 4), 0]"])
    assert own_factor(computes(parsed(arguments, bind + text))[0]) is None


def test_factors_of_an_index_that_is_computed():
    text = """%y = loop.compute par(i0: 12) -> map {
      %n = loop.index {expression = #sym<mod(i0, 4)>} : index
      %v = arith.index_cast %n : index to i64 loop.yield %v } : i64[12]\n"""
    assert own_factor(computes(parsed(ARGUMENTS, text))[0]) == (0, 3, 4)


VANISH = {
    "one division goes": (["%c[0, mod(i0, 4)]"], True),
    "one stays": (["%x[mod(i0, 5)]"], False),
    "one goes, one stays": (["%c[0, mod(i0, 4)]", "%x[mod(i0, 5)]"], True),
    "one stays, one goes": (["%x[mod(i0, 5)]", "%c[0, mod(i0, 4)]"], True),
    "none is there": (["%x[i0]"], False),
    "one goes, none is there": (["%c[0, mod(i0, 4)]", "%x[i0]"], True),
    "of another axis": (["%c[0, mod(i1, 8)]", "%x[i0]"], False),
}  # fmt: skip


@pytest.mark.parametrize("name", VANISH)
def test_what_vanishes(name):
    reads, wanted = VANISH[name]
    text = compute("par(i0: 12, i1: 4)", reads, type_="f32[12, 4]")
    (op,) = computes(parsed(ARGUMENTS, text))
    assert vanishes(op, 0, 3, 4) is wanted


def test_an_index_that_gets_harder(monkeypatch):
    """No other may: here each plain index counts as one with two divisions once it is split."""
    from irc.passes.loop import factor_axes

    counted = factor_axes.divisions
    monkeypatch.setattr(
        factor_axes, "divisions", lambda e: 2 if str(e) == "i0*4 + i1" else counted(e)
    )
    for reads in (["%c[0, mod(i0, 4)]", "%x[i0]"], ["%x[i0]", "%c[0, mod(i0, 4)]"]):
        (op,) = computes(parsed(ARGUMENTS, compute("par(i0: 12)", reads)))
        assert not vanishes(op, 0, 3, 4)
        assert own_factor(op) is None
    text = ONE + reader(["%m[i0*4 + i1]"])
    assert readers_factor(computes(parsed(ARGUMENTS, text))[0]) is None
    text = compute("par(i0: 12)", ["%x[mod(i0, 5)]", "%x[i0]"], name="%m")
    text += reader(["%m[i0*4 + i1]"])
    assert readers_factor(computes(parsed(ARGUMENTS, text))[0]) is None, "one of two does"
    both = ONE.replace("%x[i0]", "%x[mod(i0, 5)]") + reader(["%m[i0*4 + i1]"])
    assert readers_factor(computes(parsed(ARGUMENTS, both))[0]) == (0, 3, 4)


# -- factors of what reads the results

ONE = compute("par(i0: 12)", ["%x[i0]"], name="%m")
ROWS = compute("par(i0: 12) red(i1: 8)", ["%d[i0, i1]"], "reduce(sum, f32)", name="%m")
TRUE = "%t = arith.constant true\n"


def reader(reads: list[str], axes: str = "par(i0: 3, i1: 4)", type_: str = "f32[3, 4]",
           name: str = "%r") -> str:  # fmt: skip
    text = compute(axes, reads, type_=type_, name=name)
    return text.replace("{ %a0", "{ " + TRUE + "%a0") if "where" in text else text


READERS = {
    "both factors": (["%m[i0*4 + i1]"], (0, 3, 4)),
    "exchanged": (["%m[i1*3 + i0]"], (0, 4, 3)),
    "twice": (["%m[i0*4 + i1]", "%m[i0*4 + i1]"], (0, 3, 4)),
    "two ways": (["%m[i0*4 + i1]", "%m[i1*3 + i0]"], None),
    "one not": (["%m[i0*4 + i1]", "%m[0]"], None),
    "a number": (["%m[3]"], None),
    "an axis": (["%m[i0]"], None),
    "shifted": (["%m[i0*4 + i1 + 1] (where %t)"], None),
    "steps of one": (["%m[i0 + i1]"], None),
    "steps of two": (["%m[i0*4 + i1*2] (where %t)"], None),
    "longer steps": (["%m[i0*5 + i1] (where %t)"], None),
    "three axes": (["%m[i0*4 + i1 + i2*12] (where %t)"], None, "par(i0: 3, i1: 4, i2: 2)",
                   "f32[3, 4, 2]"),
    "a part": (["%m[i0*4 + i1]"], None, "par(i0: 2, i1: 4)", "f32[2, 4]"),
    "a factor of one": (["%m[i0 + i1]"], None, "par(i0: 12, i1: 1)", "f32[12, 1]"),
    "other names": (["%m[a*4 + b]"], (0, 3, 4), "par(a: 3, b: 4)", "f32[3, 4]"),
    "along a reduction": (["%m[i0*4 + i1]"], (0, 3, 4), "par(i0: 3) red(i1: 4)", "f32[3]"),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("made", [ONE, ROWS], ids=["a map", "sums"])
def test_factors_of_what_reads_it(name, made):
    reads, wanted, *where = READERS[name]
    text = reader(reads, *where)
    if "red" in text:
        text = text.replace("-> map", "-> reduce(sum, f32)")
    assert readers_factor(computes(parsed(ARGUMENTS, made + text))[0]) == wanted


def test_factors_of_a_later_axis():
    made = compute("par(i0: 2, i1: 12)", ["%x[i1]"], type_="f32[2, 12]", name="%m")
    text = reader(["%m[0, i0*4 + i1]"])
    assert readers_factor(computes(parsed(ARGUMENTS, made + text))[0]) == (1, 3, 4)
    sums = compute("red(i0: 8) par(i1: 12)", ["%d[i1, i0]"], "reduce(sum, f32)", name="%m")
    text = reader(["%m[i0*4 + i1]"])
    assert readers_factor(computes(parsed(ARGUMENTS, sums + text))[0]) == (1, 3, 4)


def test_what_has_no_factors_of_readers():
    assert readers_factor(computes(parsed(ARGUMENTS, ONE))[0]) is None, "nobody reads it"
    assert readers_factor(computes(parsed(ARGUMENTS, ONE, "%m: f32[12]"))[0]) is None
    both = compute("par(i0: 12) red(i1: 8)", ["%d[i0, i1]"], "reduce(sum, f32), map",
                   "f32[12], f32[12, 8]", "%m, %m2", 2)  # fmt: skip
    text = both + reader(["%m[i0*4 + i1]"])
    assert readers_factor(computes(parsed(ARGUMENTS, text))[0]) is None, "a map of all its axes"
    maps = compute("par(i0: 12)", ["%x[i0]"], "map, map", "f32[12], f32[12]", "%m, %m2", 2)
    text = maps + reader(["%m[i0*4 + i1]", "%m2[i0*4 + i1]"])
    assert readers_factor(computes(parsed(ARGUMENTS, text))[0]) == (0, 3, 4)


def test_one_whose_readers_agree_but_not_all_read_it():
    """The caller gets a view of what is split."""
    module = parsed(ARGUMENTS, ONE + reader(["%m[i0*4 + i1]"]), "%m: f32[12], %r: f32[3, 4]")
    assert ran(module, "factor-axes").statistics["factor-axes", "split"] == 1
    assert heads(module) == ["par(i0: 3) par(i1: 4) -> map"] * 2


ROWS_FIRST = {
    "red, par, red": ("red(i0: 2) par(i1: 3) red(i2: 4)", "reduce(sum, f32)", "f32[3]", True),
    "par, red, par, red": ("par(i0: 2) red(i1: 1) par(i2: 3) red(i3: 4)", "reduce(sum, f32)",
                           "f32[2, 3]", True),
    "red, par": ("red(i0: 2) par(i1: 3)", "reduce(sum, f32)", "f32[3]", False),
    "par, red": ("par(i0: 2) red(i1: 3)", "reduce(sum, f32)", "f32[2]", False),
    "red, red": ("red(i0: 2, i1: 3)", "reduce(sum, f32)", "f32[]", False),
    "par, par": ("par(i0: 2, i1: 3)", "reduce(sum, f32)", "f32[2, 3]", False),
    "nothing": ("", "map", "f32[]", False),
    "positions": ("red(i0: 2) par(i1: 3) red(i2: 4)", "reduce(argmax, f32)", "i64[3]", False),
    "a map": ("red(i0: 2) par(i1: 3) red(i2: 4)", "map", "f32[2, 3, 4]", False),
    "a map beside it": ("red(i0: 2) par(i1: 3) red(i2: 4)", "reduce(sum, f32), map",
                        "f32[3], f32[2, 3, 4]", False),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS_FIRST)
def test_reductions_whose_rows_come_first(name):
    axes, out, type_, wanted = ROWS_FIRST[name]
    count = out.count("map") + out.count("reduce")
    text = compute(axes, ["%big[0]"], out, type_, ", ".join(["%y", "%y2"][:count]), count)
    module = parsed(ARGUMENTS, text)
    assert reduces_rows(computes(module)[0]) is wanted
    before = heads(module)
    ran(module, "factor-axes")
    assert (heads(module) != before) is wanted


WHOLE = {
    "a factor that does not divide": (
        compute("par(i0: 12)", ["%x[mod(i0, 5)]"]),
        "it reads at mod(i0, 5), but 5 is not known to divide 12"),
    "two axes": (compute("par(i0: 3, i1: 4)", ["%x[mod(i0 + i1, 5)]"], type_="f32[3, 4]"),
                 "mod(i0 + i1, 5) is not of one axis alone"),
    "a schedule": (compute("par(i0: 12)", ["%x[mod(i0, 4)]"], "map schedule #loop.schedule<cpu>"),
                   "it reads at mod(i0, 4), but it has a schedule"),
    "a scan": (compute("scan(i0: 12)", ["%x[mod(i0, 4)]"], "scan(sum, f32)"),
               "it reads at mod(i0, 4), but it scans"),
    "one of two axes scans": (
        compute("par(i0: 12) scan(i1: 2)", ["%x[mod(i0, 4)]"], "scan(sum, f32)", "f32[12, 2]"),
        "it reads at mod(i0, 4), but it scans"),
    "names": (compute("par(j: 12)", ["%x[mod(j, 4)]"]),
              "it reads at mod(j, 4), but its axes have names of their own"),
    "the second name": (compute("par(i0: 12, j: 2)", ["%x[mod(i0, 4)]"], type_="f32[12, 2]"),
                        "it reads at mod(i0, 4), but its axes have names of their own"),
    "a scatter": (compute("par(i0: 12) inits(%x)", ["%x[mod(i0, 4)]"], "scatter(sum, [i0])"),
                  "it reads at mod(i0, 4), but it scatters"),
    "a scatter beside a map": (
        compute("par(i0: 12) inits(%init)", ["%x[mod(i0, 4)]"], "map, scatter(sum, [_0])",
                "f32[12], f32[4]", "%y, %y2", 2, " extra(%p)"),
        "it reads at mod(i0, 4), but it scatters"),
    "positions": (compute("red(i0: 12)", ["%x[mod(i0, 4)]"], "reduce(argmax, f32)", "i64[]"),
                  "it reads at mod(i0, 4), but it gives positions in its space"),
    "more than max_splits": (compute("par(i0: 12)", ["%x[mod(i0, 4)]"]),
                             "it reads at mod(i0, 4), but max_splits axes were split already"),
    "a plain read first": (compute("par(i0: 12)", ["%x[i0]", "%x[3]", "%x[mod(i0, 5)]"]),
                           "it reads at mod(i0, 5), but 5 is not known to divide 12"),
    "no division": (compute("par(i0: 12)", ["%x[i0]"]), None),
    "readers of a scan": (
        compute("par(i0: 12) scan(i1: 2)", ["%x[i0]"], "scan(sum, f32)", "f32[12, 2]", "%m")
        + reader(["%m[i0*4 + i1, 0]"]), "readers have i0 as 3 x 4, but it scans"),
    "readers of which one differs": (
        ONE + reader(["%m[i0*4 + i1]", "%m[0]"]), "readers have i0 as 3 x 4, but not all of them"),
    "readers of the second axis": (
        compute("par(i0: 2, i1: 12)", ["%x[i1]"], type_="f32[2, 12]", name="%m")
        + reader(["%m[0, i0*4 + i1]", "%m[1, 0]"]),
        "readers have i1 as 3 x 4, but not all of them"),
    "readers that agree": (
        ONE + reader(["%m[i0*4 + i1]"]),
        "readers have i0 as 3 x 4, but its own indices get harder so"),
    "readers that have no factors": (ONE + reader(["%m[i0]"]), None),
    "readers of what is scattered over more axes": (
        compute("par(i0: 12, i1: 2) inits(%init)", ["%x[i0]"], "scatter(sum, [_0])", "f32[4]", "%m",
                extra=" extra(%p)") + reader(["%m[0]"]), None),
    "a reduced axis": (
        compute("red(i0: 12) par(i1: 12)", ["%x[i0]"], "reduce(sum, f32)", name="%m")
        + reader(["%m[i0*4 + i1]", "%m[0]"]), "readers have i1 as 3 x 4, but not all of them"),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_why_an_axis_is_whole(name):
    text, wanted = WHOLE[name]
    assert why_whole(computes(parsed(ARGUMENTS, text))[0]) == wanted


def test_a_size_that_is_divided_is_no_axis():
    bind = """%n = sym.bind_size %s {dim = 0 : i64, hint = 5 : i64, minimum = 2 : i64,
      maximum = 9 : i64, symbol = "s0"} : (tensor<[s0] x f32, strides [1]>) -> index\n"""
    arguments = ARGUMENTS + ", %s: tensor<[s0] x f32, strides [1]>"
    text = compute("par(i0: 12)", ["%x[floordiv(s0, 4)]"])
    assert why_whole(computes(parsed(arguments, bind + text))[0]) is None
    text = compute("par(i0: 2)", ["%big[floordiv(s0 + i0, 4)]"], type_="f32[2]")
    assert "not of one axis alone" in why_whole(computes(parsed(arguments, bind + text))[0])
    text = compute("par(i0: 2)", ["%big[floordiv(s0, i0 + 1)]"], type_="f32[2]")
    assert "not of one axis alone" in why_whole(computes(parsed(arguments, bind + text))[0])


def test_why_another_index_would_get_harder(monkeypatch):
    from irc.passes.loop import factor_axes

    monkeypatch.setattr(factor_axes, "vanishes", lambda *a: False)
    (op,) = computes(parsed(ARGUMENTS, compute("par(i0: 12)", ["%x[mod(i0, 4)]"])))
    assert why_whole(op) == "it reads at mod(i0, 4), but other indices get harder if i0 is split"
