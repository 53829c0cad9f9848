"""Numbers of f32 cut into three of bf16, whose sum they are.

    a1 = a without its last 16 bits;  a2 = a - a1, rounded to 8 bits;  a3 = a - a1 - a2

Each difference is exact. The first part is cut off rather than rounded, so that no number becomes
an infinity; the second is rounded (what lies half-way up), so that what products leave out of the
third has either sign. Of an infinity, which has no rest, the second part is NaN. Roundings that
look at bits alone take less time than the one to even, which looks after numbers below the normal
ones; registers of whole tiles take these as zero anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irc.dialects import arith
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.types import bf16, f32

TOWARD_ZERO, TO_NEAREST = "toward_zero", "to_nearest_away"


def cut(
    add: Callable[..., Value], value: Value, typed: Callable[[Type], Type]
) -> list[Value]:
    """The parts of a number, or of a vector of them. add: makes an operation of a class, operands,
    a type and attributes; typed: the type of a number of an element, or of a vector of them."""
    parts, left = list[Value](), value
    for mode in (TOWARD_ZERO, TO_NEAREST, TOWARD_ZERO):
        if parts:
            wide = add(arith.ExtFOp, (parts[-1],), typed(f32))
            left = add(arith.SubFOp, (left, wide), typed(f32))
        entries: dict[str, Any] = {"roundingmode": A.StringAttr(mode)}
        parts.append(add(arith.TruncFOp, (left,), typed(bf16), entries))
    return parts


__all__ = ["cut"]
