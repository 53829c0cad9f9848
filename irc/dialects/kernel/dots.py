"""What each target multiplies as matrices: the elements and the least sizes of a `kernel.dot`."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from irc.ir.attributes import Type
from irc.ir.types import IntegerType, bf16, f8E4M3FN, f8E5M2, f16, f32

I8, I32 = IntegerType(8), IntegerType(32)


@attrs.frozen
class Dot:
    """What a target multiplies: the element of both factors, that of the sums, and the least sizes
    m, n and k of tiles, which are powers of two."""

    element: Type
    accumulator: Type
    least: tuple[int, int, int]


#: By target. Smaller products are padded with zeros.
DOTS: Mapping[str, tuple[Dot, ...]] = {
    "cpu": (),
    "gpu": (
        Dot(bf16, f32, (16, 8, 16)),
        Dot(f16, f32, (16, 8, 16)),
        Dot(f32, f32, (16, 8, 16)),
        Dot(f8E4M3FN, f32, (16, 8, 32)),
        Dot(f8E5M2, f32, (16, 8, 32)),
        Dot(I8, I32, (16, 8, 32)),
    ),
}


def dot_of(target: str, element: Type) -> Dot | None:
    """How a target multiplies matrices of an element; None where it doesn't."""
    return next((dot for dot in DOTS[target] if dot.element is element), None)


@attrs.frozen
class Rows:
    """How a CPU's registers of whole tiles multiply (`kernel.dot_rows`): the element of the
    factors and that of the sums; the rows, columns and terms of a tile; the terms of a column that
    lie side by side in a panel; the instruction sets that it takes."""

    element: Type
    accumulator: Type
    tile: tuple[int, int, int]
    group: int
    sets: tuple[str, ...]


ROWS = (Rows(bf16, f32, (16, 16, 32), 2, ("amx-bf16", "amx-tile")),)


def rows_of(element: Type) -> Rows | None:
    """How rows of an element are multiplied by panels; None where no CPU does."""
    return next((rows for rows in ROWS if rows.element is element), None)


__all__ = ["DOTS", "ROWS", "Dot", "Rows", "dot_of", "rows_of"]
