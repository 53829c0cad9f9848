"""What each target multiplies as matrices: the elements and the least sizes of a `kernel.dot`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
    lie side by side in a panel; the instruction sets that it takes; the parts that a factor's
    numbers are cut into, each of them an array of `element` (`split_rows_of`)."""

    element: Type
    accumulator: Type
    tile: tuple[int, int, int]
    group: int
    sets: tuple[str, ...]
    parts: int = 1

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The parts of the left and of the right factor that are multiplied with each other: the
        products of the others are less than what the accumulator rounds. From one pair to the next
        one of both parts changes, as far as that is possible, so that fewer tiles are loaded."""
        some = [(i, j) for i in range(self.parts) for j in range(self.parts - i)]
        order, here = list[tuple[int, int]](), (self.parts - 1, 0)
        while some:
            here = min(some, key=lambda pair: (sum(a != b for a, b in zip(pair, here, strict=True)),
                                               -pair[0]))  # fmt: skip
            some.remove(here)
            order.append(here)
        return tuple(order)


#: By element.
ROWS = (Rows(bf16, f32, (16, 16, 32), 2, ("amx-bf16", "amx-tile")),)
#: By the element that is cut into parts: 24 bits of f32 are three times 8, whose six largest
#: products have all but 2^-24 of theirs.
SPLIT_ROWS = {f32: Rows(bf16, f32, (16, 16, 32), 2, ("amx-bf16", "amx-tile"), parts=3)}


def rows_of(element: Type) -> Rows | None:
    """How rows of an element are multiplied by panels; None where no CPU does."""
    return next((rows for rows in ROWS if rows.element is element), None)


def split_rows_of(element: Type) -> Rows | None:
    """How rows of an element are multiplied by panels where both are cut into parts of a narrower
    one; None where no CPU does."""
    return SPLIT_ROWS.get(element)


@attrs.frozen
class LaneDot:
    """How a CPU's vectors multiply and add up groups of terms (`kernel.dot_lanes`): the element of
    the factors and that of the sums; the terms of a group; whether the left factor's integers are
    unsigned; the architecture and the instruction sets that it takes; the instruction."""

    element: Type
    accumulator: Type
    group: int
    unsigned_left: bool
    architecture: str
    sets: tuple[str, ...]
    instruction: str

    @property
    def offset(self) -> int:
        """What makes signed left factors unsigned, where it takes these alone."""
        return 1 << (self.element.width - 1) if self.unsigned_left else 0  # type: ignore[attr-defined]


#: Of an element and an architecture, what is better first.
LANE_DOTS = (
    LaneDot(bf16, f32, 2, False, "x86_64", ("avx512bf16", "avx512vl"), "vdpbf16ps"),
    LaneDot(bf16, f32, 2, False, "aarch64", ("bf16",), "bfdot"),
    LaneDot(I8, I32, 4, False, "x86_64", ("avxvnniint8",), "vpdpbssd"),
    LaneDot(I8, I32, 4, True, "x86_64", ("avx512vl", "avx512vnni"), "vpdpbusd"),
    LaneDot(I8, I32, 4, True, "x86_64", ("avxvnni",), "vpdpbusd"),
    LaneDot(I8, I32, 4, False, "aarch64", ("dotprod",), "sdot"),
    LaneDot(I8, I32, 4, True, "aarch64", ("i8mm",), "usdot"),
)


def lane_dot_of(
    element: Type, architecture: str, sets: Iterable[str], unsigned_left: bool | None = None
) -> LaneDot | None:
    """How vectors of an element are multiplied in groups on a CPU with some instruction sets, with
    left factors of either kind unless that is said; None where they aren't."""
    there = set(sets)
    return next((
        dot for dot in LANE_DOTS
        if dot.element is element and dot.architecture == architecture
        and there.issuperset(dot.sets) and unsigned_left in (None, dot.unsigned_left)
    ), None)  # fmt: skip


__all__ = [
    "DOTS", "LANE_DOTS", "ROWS", "SPLIT_ROWS", "Dot", "LaneDot", "Rows", "dot_of", "lane_dot_of",
    "rows_of", "split_rows_of",
]  # fmt: skip
