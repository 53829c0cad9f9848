"""The intervals of a body's scalars, rule by rule, and of random bodies at every point."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import irc
from irc.analysis.scalar_ranges import ANYTHING, Between, ScalarRanges
from irc.passes.common.bodies import extents_of
from tests.analysis.random_bodies import RandomBody
from tests.passes.loop.texts import computes, parsed

ARGUMENTS = "%x: f32[4, 6], %h: f16[4, 6], %w: f64[4, 6], %p: i64[4], %b: i8[4], %t: i1[4]"
# i0 in [0, 3] as %l, i1 in [0, 5] as %m and %s, the place 0.5 to 5.5 as %c; data in %d, %k, ...
SCALARS = """
  %i = loop.index {expression = #sym<i0>} : index
  %j = loop.index {expression = #sym<i1>} : index
  %l = arith.index_cast %i : index to i64
  %m = arith.index_cast %j : index to i64
  %d = loop.read %x[i0, i1] : f32
  %e = loop.read %h[i0, i1] : f16
  %g = loop.read %w[i0, i1] : f64
  %k = loop.read %p[i0] : i64
  %o = loop.read %b[i0] : i8
  %q = loop.read %t[i0] : i1
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %two = arith.constant 2.0 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %inf = arith.constant 0x7F800000 : f32
  %n0 = arith.constant 0 : i64
  %n3 = arith.constant 3 : i64
  %n7 = arith.constant 7 : i64
  %f = arith.sitofp %m : i64 to f32
  %c = arith.addf %f, %half : f32
"""
AXES = "par(i0: 4, i1: 6)"


def body(text: str, value: str, axes: str = AXES) -> Any:
    """A compute that yields `value` of a body with the scalars above; it is only looked at."""
    text = f"%y = loop.compute {axes} -> map {{ {SCALARS} {text} loop.yield {value} }} : f32[4, 6]"
    (op,) = computes(parsed(ARGUMENTS, text))
    return op


def interval(text: str, value: str, axes: str = AXES) -> Between:
    op = body(text, value, axes)
    return ScalarRanges(extents_of(op)).of(op.yield_op.values[0])


def op(name: str, *operands: str, of: str = "i64", to: str = "") -> str:
    """`%n = arith.name operands : of`."""
    dialect = "math" if name in ("absi", "floor", "ceil", "trunc", "roundeven", "exp") else "arith"
    return f"%n = {dialect}.{name} {', '.join(operands)} : {of}{f' to {to}' if to else ''}\n"


def index(expression: str, of: str = "") -> str:
    source = f"%n = loop.index {of} {{expression = #sym<{expression}>}} : "
    return source + ("(i64) -> index\n" if of else "index\n")


def number(value: object, type_: str, name: str = "%n") -> str:
    return f"{name} = arith.constant {value} : {type_}\n"


INF = math.inf
# What makes %n, or another value, and its ends.
INTEGERS = {
    "an axis": ("", "%i", 0, 3),
    "an expression": (index("i0*2 - i1 + 1"), "%n", -4, 7),
    "a quotient and a remainder": (index("floordiv(i0, 2) + mod(i1, 3)"), "%n", 0, 3),
    "an expression of another value": (
        op("subi", "%l", "%m") + index("_0*2 + i1", "%n").replace("%n =", "%r ="), "%r", -10, 11),
    "an expression of data": (index("_0 + i1", "%k"), "%n", -INF, INF),
    "a remainder of data": (index("mod(_0, 7)", "%k"), "%n", 0, 6),
    "as 64 bits": ("", "%l", 0, 3),
    "data": ("", "%k", -INF, INF),
    "a number": ("", "%n7", 7, 7),
    "a negative number": (number(-5, "i32"), "%n", -5, -5),
    "a truth": (number("true", "i1"), "%n", -INF, INF),
    "a sum": (op("addi", "%l", "%n7"), "%n", 7, 10),
    "a sum with data": (op("addi", "%l", "%k"), "%n", -INF, INF),
    "a difference": (op("subi", "%l", "%m"), "%n", -5, 3),
    "a product": (op("subi", "%l", "%m") + op("muli", "%n", "%n").replace("%n =", "%r ="),
                  "%r", -15, 25),
    "a product with data": (op("muli", "%k", "%n0"), "%n", -INF, INF),
    "a minimum": (op("minsi", "%m", "%n3"), "%n", 0, 3),
    "a maximum": (op("maxsi", "%m", "%n3"), "%n", 3, 5),
    "a minimum with data": (op("minsi", "%k", "%m"), "%n", -INF, 5),
    "a maximum with data": (op("maxsi", "%k", "%m"), "%n", 0, INF),
    "clamped data": (op("maxsi", "%k", "%n0") + "%r = arith.minsi %n, %n7 : i64", "%r", 0, 7),
    "a remainder of an axis": (op("remsi", "%m", "%n3"), "%n", 0, 2),
    "a remainder of less": (op("remsi", "%m", "%n7"), "%n", 0, 5),
    "a remainder of any": (op("remsi", "%k", "%n7"), "%n", -6, 6),
    "a remainder of what isn't positive": (
        op("subi", "%n0", "%m") + "%r = arith.remsi %n, %n3 : i64", "%r", -2, 0),
    "a remainder by an axis": (op("remsi", "%k", "%l"), "%n", -INF, INF),
    "a remainder by a negative number": (
        number(-3, "i64") + "%r = arith.remsi %k, %n : i64", "%r", -INF, INF),
    "a quotient": (op("divsi", "%m", "%n3"), "%n", -INF, INF),
    "an absolute value on both sides of 0": (
        op("subi", "%l", "%m") + "%r = math.absi %n : i64", "%r", 0, 5),
    "an absolute value below 0": (op("subi", "%l", "%n7") + "%r = math.absi %n : i64", "%r", 4, 7),
    "an absolute value above 0": (op("addi", "%l", "%n7") + "%r = math.absi %n : i64", "%r", 7, 10),
    "an absolute value of data": (op("absi", "%k"), "%n", -INF, INF),
    "as 8 bits": (op("index_cast", "%j", of="index", to="i8"), "%n", 0, 5),
    "cut": (op("trunci", "%m", of="i64", to="i8"), "%n", 0, 5),
    "data cut": (op("trunci", "%k", of="i64", to="i8"), "%n", -INF, INF),
    "widened": (op("trunci", "%m", of="i64", to="i8") + "%r = arith.extsi %n : i8 to i32",
                "%r", 0, 5),
    "unsigned bits": (op("extui", "%o", of="i8", to="i64"), "%n", 0, 255),
    "a truth as a number": (op("extui", "%q", of="i1", to="i64"), "%n", 0, 1),
    "what isn't negative, as unsigned": (
        op("trunci", "%m", of="i64", to="i8") + "%r = arith.extui %n : i8 to i32", "%r", 0, 5),
    "what is negative, as unsigned": (
        op("subi", "%l", "%m") + "%r = arith.trunci %n : i64 to i8 %s = arith.extui %r : i8 to i32",
        "%s", 0, 255),
    "another operation": (op("xori", "%l", "%m"), "%n", -INF, INF),
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    text, value, lo, hi = INTEGERS[name]
    assert interval(text, value) == Between(lo, hi)


@pytest.mark.parametrize("name", ["addi", "subi", "muli"])
@pytest.mark.parametrize(("type_", "width"), [("i8", 8), ("i32", 32), ("i64", 64)])
def test_what_does_not_fit_its_type_is_anything(name: str, type_: str, width: int) -> None:
    """The last number that fits, and the next one."""
    largest = (1 << width - 1) - 1
    narrow = "" if type_ == "i64" else f"%z = arith.trunci %m : i64 to {type_}\n"
    axis = "%m" if type_ == "i64" else "%z"
    other, ends = {
        "addi": (largest - 5, (largest - 5, largest)),
        "subi": (4 - largest, (-largest - 1, 4 - largest)),
        "muli": (largest // 5, (0, largest // 5 * 5)),
    }[name]
    operands = "%last, " + axis
    for more in (0, 1):
        past = {"addi": 1, "subi": -1, "muli": 1}[name] * more
        text = narrow + number(other + past, type_, "%last") + op(name, operands, of=type_)
        assert interval(text, "%n") == (ANYTHING if more else Between(*ends)), more


def test_casts_to_what_holds_less_are_anything() -> None:
    for factor, part in ((25, Between(0, 125)), (26, ANYTHING)):
        text = number(factor, "i64", "%a") + op("muli", "%m", "%a")
        assert interval(text + "%r = arith.trunci %n : i64 to i8", "%r") == part
        wide = text + "%u = arith.sitofp %n : i64 to f32\n%r = arith.fptosi %u : f32 to i8"
        assert interval(wide, "%r") == part
        position = index(f"i1*{factor}") + "%r = arith.index_cast %n : index to i8"
        assert interval(position, "%r") == part


def test_axes_of_an_extent_that_is_not_known() -> None:
    text = "%y = loop.compute par(i0: n) -> map { %i = loop.index {expression = #sym<i0 + 2>} "
    text += ": index %l = arith.index_cast %i : index to i64 loop.yield %i } : i64[n]"
    (compute,) = computes(parsed("%x: f32[n]", text))
    ranges = ScalarRanges(extents_of(compute))
    first, second = (inner.results[0] for inner in list(compute.block.ops)[:2])
    assert ranges.of(first) == Between(2, INF) and ranges.of(second) == ANYTHING
    assert interval("", "%l", "par(i0: 0, i1: 6)") == Between(0, 0)


def near(part: Between, lo: float, hi: float) -> bool:
    """Whether an interval holds another, and is hardly wider."""
    most = 1e-5 * max(1.0, abs(lo), abs(hi))
    return part.lo <= lo <= part.lo + most and part.hi - most <= hi <= part.hi


# A place of an interpolation from 6 to 12 elements and as its integer; data clamped by extremes.
PLACE = """%a = arith.mulf %c, %half : f32
  %v = arith.subf %a, %half : f32
  %n = arith.maximumf %v, %zero : f32
"""
FLOATS = {
    "an axis": ("", "%f", 0, 5),
    "a sum": ("", "%c", 0.5, 5.5),
    "a difference": (op("subf", "%half", "%f", of="f32"), "%n", -4.5, 0.5),
    "a product": (op("mulf", "%c", "%c", of="f32"), "%n", 0.25, 30.25),
    "a quotient": (op("divf", "%c", "%half", of="f32"), "%n", 1, 11),
    "a place before its clamp": (PLACE, "%v", -0.25, 2.25),
    "a place": (PLACE, "%n", 0, 2.25),
    "its floor": (PLACE + "%r = math.floor %v : f32", "%r", -1, 2),
    "its ceiling": (PLACE + "%r = math.ceil %v : f32", "%r", 0, 3),
    "cut": (PLACE + "%r = math.trunc %v : f32", "%r", 0, 2),
    "rounded": (PLACE + "%r = math.roundeven %v : f32", "%r", 0, 2),
    "its integer": (PLACE + "%r = arith.fptosi %n : f32 to i64", "%r", 0, 2),
    "negated": (op("negf", "%c", of="f32"), "%n", -5.5, -0.5),
    "widened": (op("extf", "%c", of="f32", to="f64"), "%n", 0.5, 5.5),
    "a minimum": (op("minimumf", "%c", "%two", of="f32"), "%n", 0.5, 2),
    "a maximum": (op("maximumf", "%c", "%two", of="f32"), "%n", 2, 5.5),
    "a minimum that is no NaN": (op("minnumf", "%c", "%two", of="f32"), "%n", 0.5, 2),
    "a maximum that is no NaN": (op("maxnumf", "%two", "%c", of="f32"), "%n", 2, 5.5),
    "data clamped": (op("maxnumf", "%d", "%half", of="f32") + "%r = arith.minnumf %n, %two : f32",
                     "%r", 0.5, 2),
    "data clamped from above": (
        op("minnumf", "%two", "%d", of="f32") + "%r = arith.maxnumf %half, %n : f32", "%r", 0.5, 2),
    "clamped data as an integer": (
        op("maxnumf", "%d", "%half", of="f32") + "%u = arith.minnumf %n, %two : f32\n"
        "%r = arith.fptosi %u : f32 to i32", "%r", 0, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    text, value, lo, hi = FLOATS[name]
    assert near(interval(text, value), lo, hi), interval(text, value)


def test_only_integers_of_24_bits_are_floats() -> None:
    for size, exact in ((1 << 24, True), (1 << 25, False)):
        text = number(size - 5, "i64") + "%r = arith.addi %n, %m : i64\n"
        part = interval(text + "%u = arith.sitofp %r : i64 to f32", "%u")
        assert near(part, size - 5, size) and (part == Between(size - 5, size)) is exact


ONE_END = {
    "data, not below": (op("maxnumf", "%d", "%half", of="f32"), "%n", 0.5, INF),
    "data, not above": (op("minnumf", "%d", "%half", of="f32"), "%n", -INF, 0.5),
    "with another constant behind": (
        op("maxnumf", "%d", "%half", of="f32") + "%r = arith.maxnumf %n, %two : f32",
        "%r", 2, INF),
    "beside an axis": (op("maxnumf", "%f", "%d", of="f32"), "%n", 0, INF),
}  # fmt: skip
UNKNOWN = {
    "data": ("", "%d"),
    "NaN": ("", "%nan"),
    "infinity clamped by nothing": (op("subf", "%inf", "%inf", of="f32"), "%n"),
    "a sum with infinity": (op("addf", "%c", "%inf", of="f32"), "%n"),
    "the integer of infinity": (op("fptosi", "%inf", of="f32", to="i64"), "%n"),
    "the integer of data": (op("fptosi", "%d", of="f32", to="i64"), "%n"),
    "the integer of data with one end": (
        op("maxnumf", "%d", "%half", of="f32") + "%r = arith.fptosi %n : f32 to i64", "%r"),
    "data where NaN wins": (op("maximumf", "%d", "%half", of="f32"), "%n"),
    "data where NaN wins below": (op("minimumf", "%half", "%d", of="f32"), "%n"),
    "a sum with data": (op("addf", "%c", "%d", of="f32"), "%n"),
    "a product of data with 0": (op("mulf", "%zero", "%d", of="f32"), "%n"),
    "an extreme of NaN and data": (op("maxnumf", "%nan", "%d", of="f32"), "%n"),
    "a quotient by an axis": (op("divf", "%half", "%c", of="f32"), "%n"),
    "a quotient by 0": (op("divf", "%c", "%zero", of="f32"), "%n"),
    "a function": (op("exp", "%c", of="f32"), "%n"),
    "a float of data": (op("sitofp", "%k", of="i64", to="f32"), "%n"),
    "a float of 16 bits": (op("sitofp", "%m", of="i64", to="f16"), "%n"),
    "a bfloat": (op("sitofp", "%m", of="i64", to="bf16"), "%n"),
    "a clamp of 16 bits": (number("0.5", "f16") + "%r = arith.maxnumf %e, %n : f16", "%r"),
    "cut to 16 bits": (op("truncf", "%c", of="f32", to="bf16"), "%n"),
    "cut to 32 bits": (op("truncf", "%g", of="f64", to="f32"), "%n"),
    "a product past what floats hold": (
        number("1.0e30", "f32") + "%a = arith.mulf %n, %n : f32\n%r = arith.mulf %a, %zero : f32",
        "%r"),
}  # fmt: skip


@pytest.mark.parametrize("name", [*ONE_END, *UNKNOWN])
def test_floats_with_an_end_that_is_not_known(name: str) -> None:
    text, value, *ends = ONE_END.get(name) or UNKNOWN[name]
    assert interval(text, value) == (Between(*ends) if ends else ANYTHING)


def test_sums_that_are_rounded_are_moved_apart() -> None:
    """More than one of them may be off, by half a unit in the last place of the largest."""
    third = number(repr(1 / 3), "f32", "%third")
    part = interval(third + op("mulf", "%f", "%third", of="f32"), "%n")
    exact = 5 * float(torch.tensor(1 / 3))
    unit = 2.0**-24 * exact
    assert part.hi >= exact + unit and part.lo <= -unit and near(part, 0, exact)
    zero = op("mulf", "%f", "%zero", of="f32")
    assert interval(zero, "%n") == Between(0, 0)


def select(condition: str, yes: str, no: str, of: str = "i64") -> str:
    return f"{condition}\n%n = arith.select %z, {yes}, {no} : {of}\n"


def compare(predicate: str, left: str, right: str, of: str = "i64", name: str = "%z") -> str:
    kind_of = "cmpf" if of[0] == "f" else "cmpi"
    return f"{name} = arith.{kind_of} {predicate}, {left}, {right} : {of}\n"


SIZE = number("48.0", "f32", "%size")
INSIDE = SIZE + compare("oge", "%d", "%zero", "f32", "%u") + compare(
    "olt", "%d", "%size", "f32", "%v")  # fmt: skip
BOTH = INSIDE + "%z = arith.andi %u, %v : i1\n"
EITHER = SIZE + compare("slt", "%k", "%n0", name="%u") + compare("sgt", "%k", "%n7", name="%v")
EITHER += "%z = arith.ori %u, %v : i1\n"
CAST = op("fptosi", "%d", of="f32", to="i64").replace("%n", "%r")
# x = i1*19 - 48 in [-48, 47], as positions are that count from the end.
WRAPPED = index("i1*19 - 48").replace("%n", "%a") + "%r = arith.index_cast %a : index to i64\n"
WRAPPED += number(48, "i64", "%more") + "%sum = arith.addi %r, %more : i64\n"
NEGATIVE = compare("slt", "%r", "%n0")
CHOICES = {
    "of two": (select(compare("slt", "%k", "%l"), "%l", "%n7"), 0, 7),
    "of two by data": (select("%z = arith.cmpi eq, %k, %k : i64", "%m", "%n7"), 0, 7),
    "with data": (select(compare("slt", "%k", "%l"), "%l", "%k"), -INF, INF),
    "a wrapped position": (WRAPPED + select(NEGATIVE, "%sum", "%r"), 0, 47),
    "a wrapped position, exchanged": (
        WRAPPED + select(compare("sgt", "%n0", "%r"), "%sum", "%r"), 0, 47),
    "a wrapped position, the other way round": (
        WRAPPED + select(compare("sge", "%r", "%n0"), "%r", "%sum"), 0, 47),
    "a wrapped position by <=": (
        WRAPPED + select(compare("sle", "%r", "%n0"), "%sum", "%r"), 0, 48),
    "a wrapped position the wrong way": (WRAPPED + select(NEGATIVE, "%r", "%sum"), -48, 95),
    "a wrapped position of unsigned order": (
        WRAPPED + select(compare("ult", "%r", "%n0"), "%sum", "%r"), -48, 95),
    "a minimum": (select(compare("slt", "%m", "%n3"), "%m", "%n3"), 0, 3),
    "a minimum of data": (select(compare("slt", "%k", "%n3"), "%k", "%n3"), -INF, 3),
    "what is more": (select(compare("sgt", "%k", "%n3"), "%k", "%n7"), 4, INF),
    "what is less or the same": (select(compare("sgt", "%k", "%n3"), "%n0", "%k"), -INF, 3),
    "what is equal": (select(compare("eq", "%k", "%n3"), "%k", "%n7"), 3, 7),
    "what isn't different": (select(compare("ne", "%k", "%n3"), "%n7", "%k"), 3, 7),
    "what is different": (select(compare("ne", "%m", "%n7"), "%m", "%n0"), 0, 5),
    "by what isn't a constant": (select(compare("slt", "%k", "%l"), "%k", "%n0"), -INF, INF),
    "outside of either": (select(EITHER, "%n3", "%k"), 0, 7),
    "inside of either": (select(EITHER, "%k", "%n3"), -INF, INF),
    "a sample's position": (BOTH + CAST + select("", "%r", "%n0"), 0, 48),
    "a sample's place": (BOTH + select("", "%d", "%half", "f32"), 0, 48),
    "not in both": (BOTH + CAST + select("", "%n0", "%r"), -INF, INF),
    "a place where not below": (
        SIZE + select(compare("olt", "%d", "%zero", "f32"), "%half", "%d", "f32"), -INF, INF),
    "a place where not above, or NaN": (
        select(compare("ult", "%d", "%two", "f32"), "%d", "%half", "f32"), -INF, INF),
    "by two": (CAST + select(compare("oeq", "%d", "%two", "f32"), "%r", "%n7"), 2, 7),
    "by infinity": (
        select(compare("olt", "%d", "%inf", "f32"), "%d", "%half", "f32"), -INF, INF),
    "by NaN": (select(compare("olt", "%d", "%nan", "f32"), "%d", "%half", "f32"), -INF, INF),
    "that is never the case": (select(compare("sgt", "%m", "%n7"), "%m", "%n0"), 0, 5),
    "a sum that may wrap": (
        "%sum = arith.addi %k, %n7 : i64\n" + select(compare("slt", "%k", "%n0"), "%sum", "%n0"),
        -INF, INF),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_choices_know_their_comparisons(name: str) -> None:
    text, lo, hi = CHOICES[name]
    assert interval(text, "%n") == Between(lo, hi)


# Of axes in [0, 3] or [0.5, 5.5]: what a comparison gives, by how the two lie.
BELOW = {"lt": True, "le": True, "gt": False, "ge": False}
ABOVE = {predicate: not holds for predicate, holds in BELOW.items()}
TOUCH = {"lt": None, "le": True, "gt": False, "ge": None}
TOUCH_ABOVE = {"lt": False, "le": None, "gt": None, "ge": True}
ACROSS = dict.fromkeys(BELOW)
ORDERS = {
    "below": ("%l", 7, BELOW), "above": ("%l", -1, ABOVE), "touching": ("%l", 3, TOUCH),
    "touching above": ("%l", 0, TOUCH_ABOVE), "across": ("%l", 2, ACROSS),
    "data": ("%k", 2, ACROSS),
}  # fmt: skip


def outcome(text: str) -> bool | None:
    compute = body(text, "%z")
    return ScalarRanges(extents_of(compute)).outcome(compute.yield_op.values[0].defining_op)


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("order", BELOW)
def test_outcomes(name: str, order: str) -> None:
    value, other, known = ORDERS[name]
    constant = number(other, "i64")
    assert outcome(constant + compare("s" + order, value, "%n")) is known[order]
    assert outcome(constant + compare("u" + order, value, "%n")) is None
    swapped = order.translate(str.maketrans("gl", "lg"))
    assert outcome(constant + compare("s" + swapped, "%n", value)) is known[order]
    # The same of floats, which are wider than they need be unless they are exact.
    cast = f"%r = arith.sitofp {value} : i64 to f32\n" + number(f"{other}.0", "f32", "%u")
    for first in "ou":
        assert outcome(cast + compare(first + order, "%r", "%u", "f32")) is known[order], first


def test_outcomes_of_equality() -> None:
    for other, apart in ((-1, True), (0, False), (3, False), (4, True)):
        for predicate in ("eq", "ne"):
            text = number(other, "i64") + compare(predicate, "%l", "%n")
            assert outcome(text) is ((predicate == "ne") if apart else None)
    assert outcome(compare("eq", "%n3", "%n3")) is None


def test_outcomes_that_are_not_known() -> None:
    clamped = op("maxnumf", "%d", "%half", of="f32")
    assert outcome(clamped + compare("oge", "%n", "%zero", "f32")) is None
    for predicate in ("ord", "uno", "true", "false"):
        assert outcome(compare(predicate, "%c", "%half", "f32")) is None
    for predicate in ("olt", "ult", "oge", "uge"):
        assert outcome(compare(predicate, "%c", "%nan", "f32")) is None
        assert outcome(compare(predicate, "%c", "%inf", "f32")) is None
    assert outcome("%z = arith.andi %q, %q : i1") is None
    assert outcome(number("true", "i1") + compare("slt", "%q", "%n", "i1")) is None


def test_intervals() -> None:
    assert Between(0, 3).hull(Between(5, 7)) == Between(0, 7)
    assert Between(0, 6).within(Between(5, 7)) == Between(5, 6)
    assert Between(0, 3).within(Between(5, 7)) == Between(0, 3)
    assert Between(0, 3).is_known
    assert not Between(0).is_known and not Between(hi=3).is_known and not ANYTHING.is_known


def is_between(values: list[float], part: Between) -> bool:
    if part.is_known and any(math.isnan(x) for x in values):
        return False
    return not any(x < part.lo or x > part.hi for x in values)


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_random_bodies_at_every_point(first: int) -> None:
    """All that is known of what a body computes is so; of much something is known."""
    known = decided = 0
    for seed in range(first, first + 50):
        bodies = RandomBody(seed)
        module = bodies.module(steps=14)
        (compute,) = computes(module)
        ranges = ScalarRanges(extents_of(compute))
        yielded = compute.yield_op.values
        for _ in range(2):
            outcomes = irc.run(module, *bodies.data())
            for value, result in zip(yielded, outcomes, strict=True):
                values, maker = result.flatten().tolist(), value.defining_op
                part, holds = ranges.of(value), ranges.outcome(maker)
                assert is_between(values, part), f"{seed}: {maker.name} {part} {values}"
                if holds is not None:
                    assert set(values) == {holds}, f"{seed}: {maker.name} {holds} {values}"
                known += part.is_known
                decided += holds is not None
    assert known > 500 and decided > 20


# Each is some number outside of what is said of it at present.
FAULTS = {
    "the absolute value of the least of its type": (
        index("i0 - 128") + "%r = arith.index_cast %n : index to i8\n%s = math.absi %r : i8", "%s"),
    "the integer of a float with a guard on one side": (
        CAST + select(compare("oge", "%d", "%zero", "f32"), "%r", "%n0"), "%n"),
    "the integer of a guarded float that is more than its type holds": (
        INSIDE.replace("48.0", "3.0e9") + "%z = arith.andi %u, %v : i1\n"
        "%r = arith.fptosi %d : f32 to i32\n%less = arith.constant 0 : i32\n"
        "%n = arith.select %z, %r, %less : i32", "%n"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_what_a_type_does_not_hold(name: str) -> None:
    assert interval(*FAULTS[name]) == ANYTHING
