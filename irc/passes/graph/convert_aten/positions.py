"""Positions along a dimension as Python counts them: negative ones from the end.

A position may be symbolic, and its sign then be known from the range of its symbols only, or not
at all: torch states no guard about the index of `select_scatter`, for one.
"""

from __future__ import annotations

from typing import Any

from irc.dialects import sym
from irc.ir.symbols import Dim, clamped, from_start, provable_le
from irc.passes.graph.convert_aten.support import Call


def element_position(c: Call, index: Dim, size: Dim) -> Dim:
    """The place of element `index`, which may be negative, among `size`.

    An index that may be out of range is an IndexError when the program runs.
    """
    place = from_start(index, size, c.ranges)
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
    place = from_start(start, size, c.ranges)
    # Lengths without a minimum or maximum: torch knows that nothing was clamped.
    if step == 1 and length == size - place:
        return place
    if step == 1 and end is not None and length == from_start(end, size, c.ranges) - place:
        return place
    return clamped(place, size, c.ranges)
