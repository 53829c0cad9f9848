"""What narrow-integers does where floats become positions, and that values stay the same."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import irc
from tests.passes.loop.texts import body_of, computes, parsed, ran

ARGUMENTS = "%x: f32[16], %k: i64[16], %t: f32[48]"
# The element of %t that a position says.
READ = """%p = arith.index_cast %s : i64 to index
  %v = loop.read %t[%p] : f32
"""
NUMBERS = """%c0 = arith.constant 0 : i64
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
"""


def place(first: str) -> str:
    """A place of an interpolation, its integer %n and the next one that there is, %s."""
    return f"""%i = loop.index {{expression = #sym<i0 + {first}>}} : index
      %l = arith.index_cast %i : index to i64
      %f = arith.sitofp %l : i64 to f32
      %a = arith.addf %f, %half : f32
      %m = arith.mulf %a, %half : f32
      %d = arith.subf %m, %half : f32
      %e = arith.maximumf %d, %zero : f32
      %n = arith.fptosi %e : f32 to i64
      %one = arith.constant 1 : i64
      %u = arith.addi %n, %one : i64
      %last = arith.constant 7 : i64
      %s = arith.minsi %u, %last : i64
      {READ}"""


def guarded(size: str = "48.0", condition: str = "%b", other: str = "%c0") -> str:
    """A float of data where it lies in [0, size), as an integer, %s."""
    return f"""%f = loop.read %x[i0] : f32
      %size = arith.constant {size} : f32
      %g = arith.cmpf oge, %f, %zero : f32
      %h = arith.cmpf olt, %f, %size : f32
      %b = arith.andi %g, %h : i1
      %n = arith.fptosi %f : f32 to i64
      %q = loop.read %k[i0] : i64
      %s = arith.select {condition}, %n, {other} : i64
      """


CLAMPED = """%seven = arith.constant 7 : i64
  %two = arith.constant 2 : i64
  %y = arith.minsi %s, %seven : i64
  %w = arith.maxsi %y, %two : i64
  %v = arith.sitofp %w : i64 to f32
"""
WIDE = "%v = arith.sitofp %s : i64 to f32\n"
# A body, what it yields, and how many of its values keep 64 bits.
NARROW = {
    "an interpolation": (place("0"), "%v", 0),
    "a sample": (guarded() + READ, "%v", 0),
    "a sample, the other way round": (
        guarded().replace("oge", "ult").replace("olt", "uge").replace("andi", "ori").replace(
            "%n, %c0", "%c0, %n") + READ, "%v", None),
    "a sample that is clamped, too": (guarded() + CLAMPED, "%v", 0),
    "a sample whose integer is stored": (guarded() + READ, "%n", 1),
    "a large table": (guarded("1.0e9") + WIDE, "%v", 0),
}  # fmt: skip
KEPT = {
    "a table with too many elements": (guarded("3.0e9") + WIDE, "%v"),
    "a guard on one side": (guarded(condition="%g") + WIDE, "%v"),
    "a guard on the other side": (guarded(condition="%h") + WIDE, "%v"),
    "without a guard": (guarded().replace("olt, %f, %size", "olt, %half, %size") + WIDE, "%v"),
    "beside data": (guarded(other="%q") + WIDE, "%v"),
    "of 64 bits": (
        guarded().replace("%n = arith.fptosi %f : f32",
                          "%r = arith.extf %f : f32 to f64\n%n = arith.fptosi %r : f64") + WIDE,
        "%v"),
}  # fmt: skip

ODD = [math.nan, math.inf, -math.inf, 1e30, -1e30, 2.0**31, 3e9, 4294967297.0, -2.0**31, -0.5,
       -0.0, 0.0, 0.9, 47.0, 47.99, 48.0]  # fmt: skip


def program(body: str, value: str) -> Any:
    type_ = "i64[16]" if value == "%n" else "f32[16]"
    text = f"%y = loop.compute par(i0: 16) -> map {{ {NUMBERS} {body} loop.yield {value} }}"
    return parsed(ARGUMENTS, f"{text} : {type_}".replace("%y = arith", "%z = arith").replace(
        "%y, %two", "%z, %two"), f"%y: {type_}")  # fmt: skip


def narrowed(body: str, value: str) -> tuple[Any, Any]:
    """A program before and after the pass, which gives the same."""
    before, after = program(body, value), program(body, value)
    ran(after, "narrow-integers", "sm_90")
    table = torch.arange(48.0) + 0.25
    arguments = torch.tensor(ODD), torch.arange(16) << 40, table
    for change in (1, -1):
        changed = arguments[0] * change, *arguments[1:]
        (expected,), (result,) = irc.run(before, *changed), irc.run(after, *changed)
        torch.testing.assert_close(result, expected, rtol=0, atol=0)
    return before, after


def wide(module: Any) -> int:
    """How many values of a body have 64 bits, but those that are read."""
    (compute,) = computes(module)
    return sum(
        str(result.type) == "i64"
        for op in compute.block.ops
        for result in op.results
        if op.name != "loop.read"
    )


def types_of(module: Any, name: str) -> list[str]:
    """The types of what operations of a name give in a body."""
    (compute,) = computes(module)
    return [str(op.results[0].type) for op in compute.block.ops if op.name == name]


@pytest.mark.parametrize("name", NARROW)
def test_floats_that_are_positions_have_32_bits(name: str) -> None:
    body, value, kept = NARROW[name]
    before, after = narrowed(body, value)
    assert wide(before) > (kept or 0)
    if kept is not None:
        assert wide(after) == kept


@pytest.mark.parametrize("name", KEPT)
def test_floats_that_may_be_larger_keep_64_bits(name: str) -> None:
    body, value = KEPT[name]
    _, after = narrowed(body, value)
    assert types_of(after, "arith.select") == ["i64"]


def test_an_interpolation_is_not_clamped() -> None:
    """Its float is known to be small, so nothing is added to it."""
    (compute,) = computes(narrowed(place("0"), "%v")[1])
    assert "num" not in body_of(compute)


@pytest.mark.parametrize(("first", "kept"), [("4000000000", False), ("9000000000", True)])
def test_an_interpolations_place_past_32_bits(first: str, kept: bool) -> None:
    """Half of the second is more than 32 bits hold; the axis itself is in both."""
    _, after = narrowed(place(first).replace(READ, "%v = arith.sitofp %n : i64 to f32\n"), "%v")
    assert types_of(after, "arith.fptosi") == ["i64" if kept else "i32"]


def test_widened_data_has_32_bits() -> None:
    body = """%o = arith.trunci %q : i64 to i16
      %s = arith.extsi %o : i16 to i64
      %u = arith.addi %s, %c0 : i64
      """
    text = "%q = loop.read %k[i0] : i64\n" + body + WIDE.replace("%s", "%u")
    assert wide(narrowed(text, "%v")[1]) == 0
