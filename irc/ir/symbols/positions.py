"""Positions along a dimension as Python counts them: negative ones from the end."""

from __future__ import annotations

from collections.abc import Mapping

from irc.ir.symbols.division import maximum, minimum
from irc.ir.symbols.expr import Dim, Expr
from irc.ir.symbols.ranges import Range, provable_le


def from_start(position: Dim, size: Dim, ranges: Mapping[str, Range]) -> Dim:
    """A position at least -size, counted from the start."""
    if not isinstance(position, Expr):
        return size + position if position < 0 else position
    if provable_le(0, position, ranges):
        return position
    if provable_le(position, -1, ranges):
        return size + position
    is_negative = maximum(0, minimum(1, -position))
    return position + size * is_negative


def clamped(place: Dim, size: Dim, ranges: Mapping[str, Range]) -> Dim:
    """A place that may lie outside of a dimension as one between 0 and `size`."""
    if not provable_le(0, place, ranges):
        place = maximum(0, place)
    return place if provable_le(place, size, ranges) else minimum(place, size)
