"""Attributes are one object exactly where they mean the same."""

from __future__ import annotations

import itertools
import math
import struct

import pytest

from irc.ir import attributes as A
from irc.ir import types as T

pytestmark = pytest.mark.fault("V13")


class Loose(A.Attribute):
    """An attribute that says nothing of its fields."""

    __slots__ = ()
    dialect = "t"
    mnemonic = "loose"
    fields = ("value",)


class Counted(A.Attribute):
    """One that says that its field is an integer."""

    __slots__ = ()
    dialect = "t"
    mnemonic = "counted"
    fields = ("value",)
    value: int


NUMBERS = [1, True, 1.0, 0, False, 0.0, -0.0, math.nan, -math.nan, math.inf, (1,), (True,), (1.0,),
           (0.0,), (-0.0,), "1", None]  # fmt: skip


def test_numbers_that_python_finds_equal_are_apart() -> None:
    made = [Loose(n) for n in NUMBERS]
    for (m, a), (n, b) in itertools.combinations(zip(NUMBERS, made, strict=True), 2):
        assert a is not b, (m, n)
    for number, attr in zip(NUMBERS, made, strict=True):
        assert Loose(number) is attr
        assert attr.value.__class__ is number.__class__
    (other_nan,) = struct.unpack("<d", struct.pack("<d", math.nan))
    assert Loose(other_nan) is Loose(math.nan)


def test_a_truth_value_for_an_integer_is_that_integer() -> None:
    assert Counted(True) is Counted(1) and Counted(1).value.__class__ is int
    with pytest.raises(ValueError, match="a float among"):
        Counted(2.5)


@pytest.mark.parametrize("type_", [T.i1, T.i8, T.i16, T.i32, T.i64, T.ui8, T.index])
def test_an_integer_is_kept_as_its_type_reads_its_bits(type_: A.Type) -> None:
    width = getattr(type_, "width", 64)
    for number in (0, 1, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1):
        attr = A.IntegerAttr(number, type_)
        below = number - (1 << width)
        if below >= -(1 << (width - 1)):
            assert A.IntegerAttr(below, type_) is attr
        assert attr.value & ((1 << width) - 1) == number
    for number in (1 << width, -(1 << (width - 1)) - 1):
        with pytest.raises(ValueError, match="does not fit"):
            A.IntegerAttr(number, type_)
