"""Sums of products of f32 whose factors are cut into parts of bf16 (`precision = "bf16x6"`).

A factor is a1 + a2 + a3, of 8 bits each: as many as f32 has. Of the nine products the six largest
are added up: those of the first parts in one sum of f32, the other five, which `kernel.dot` sums up
by themselves in each step, in another one, together with what rounding has left out of the first:

    t = a1 * b1;  high' = high + t;  low' = low + (a1 * b2 + a2 * b1 + ...) + (t - (high' - high))

A GPU's matrices cut what they sum up off rather than to round it, so that long sums are not theirs:
a step's are. Infinities and NaN are of the first parts, too, so that `high` is what IEEE says then;
what is no number in `low` is left out at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import kernel
from irc.ir import attributes as A
from irc.ir.types import f32
from irc.passes.kernel.gpu.tiles import Tile, TileBuilder

CUT = "bf16x6"
"""The precision of a schedule."""
FIRST, REST = "bf16x1", "bf16x5"
"""Those of `kernel.dot`: the product of the first parts, and the five after it."""


def added(
    b: TileBuilder, factors: Sequence[Tile], sums: Sequence[Tile]
) -> list[Tile]:
    """`high` and `low` with the product of two tiles of factors."""
    high, low = sums
    zero = b.expand(b.constant(0, f32), high.dims)
    # The other way round takes 26 registers of a thread more (4096^3: 2.10 ms of an H200, 1.99).
    rest, first = (_dot(b, factors, zero, precision) for precision in (REST, FIRST))
    total = b.op("arith.addf", high, first)
    left = b.op("arith.subf", first, b.op("arith.subf", total, high))
    return [total, b.op("arith.addf", low, b.op("arith.addf", rest, left))]


def summed(b: TileBuilder, sums: Sequence[Tile]) -> Tile:
    """`high` and `low` as one number."""
    high, low = sums
    size = b.op("math.absf", low)
    known = b.compare("olt", size, b.constant(float("inf"), f32))
    return b.op("arith.addf", high, b.select(known, low, b.constant(0, f32)))


def _dot(b: TileBuilder, factors: Sequence[Tile], start: Tile, precision: str) -> Tile:
    attributes: dict[str, A.Attribute] = {"precision": A.StringAttr(precision)}
    return b.make(kernel.DotOp, [*factors, start], [(start.dims, f32)], attributes)[0]


__all__ = ["CUT", "added", "summed"]
