"""How operands fall to the declared groups when nothing says it."""

from __future__ import annotations

from collections.abc import Sequence

from irc.ir.definition import Field


def implied_segments(fields: Sequence[Field], count: int) -> tuple[int, ...] | None:
    """The sizes of the groups when `count` operands are dealt from left to right: each single
    operand takes one, optional ones take one and the first variadic one takes all that is left
    over for it. None when the count fits no such reading."""
    spare = count - sum(1 for f in fields if f.kind == "one")
    sizes = []
    for field in fields:
        size = 1
        if field.kind == "optional":
            size = min(spare, 1)
            spare -= size
        elif field.kind == "variadic":
            size = spare
            spare = 0
        sizes.append(size)
    return tuple(sizes) if spare == 0 and min(sizes, default=0) >= 0 else None
