"""Positions along a dimension as Python counts them: negative ones from the end.

A position may be symbolic, and its sign then be known from the range of its symbols only, or not
at all: torch states no guard about the index of `select_scatter`, for one.
"""

from __future__ import annotations

from typing import Any

from irc.dialects import sym
from irc.ir.symbols import Dim, Expr, maximum, minimum, provable_le
from irc.passes.graph.convert_aten.support import Call


def from_start(c: Call, position: Dim, size: Dim) -> Dim:
    """A position at least -size, counted from the start."""
    if not isinstance(position, Expr):
        return size + position if position < 0 else position
    if provable_le(0, position, c.ranges):
        return position
    if provable_le(position, -1, c.ranges):
        return size + position
    is_negative = maximum(0, minimum(1, -position))
    return position + size * is_negative


def element_position(c: Call, index: Dim, size: Dim) -> Dim:
    """The place of element `index`, which may be negative, among `size`.

    An index that may be out of range is an IndexError when the program runs.
    """
    place = from_start(c, index, size)
    text = f"index {index} is out of bounds for a dimension with size {size}"
    for lower, upper in ((0, place), (place + 1, size)):
        if not provable_le(lower, upper, c.ranges):
            c.builder.create(
                sym.AssertOp, relation="le", lhs=lower, rhs=upper, message=text,
                error="IndexError",
            )  # fmt: skip
    return place


def slice_start(c: Call, start: Any, end: Any, size: Dim, length: Dim, step: Dim) -> Dim:
    """Where a slice of `length` elements (as torch traced it) begins."""
    if start is None or (isinstance(start, int) and start == 0):
        return 0
    place = from_start(c, start, size)
    # Lengths without a minimum or maximum: torch knows that nothing was clamped.
    if step == 1 and length == size - place:
        return place
    if step == 1 and end is not None and length == from_start(c, end, size) - place:
        return place
    return clamped(c, place, size)


def clamped(c: Call, place: Dim, size: Dim) -> Dim:
    """A place that may lie outside of a dimension as one between 0 and `size`."""
    if not provable_le(0, place, c.ranges):
        place = maximum(0, place)
    return place if provable_le(place, size, c.ranges) else minimum(place, size)
