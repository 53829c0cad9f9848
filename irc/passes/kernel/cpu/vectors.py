"""Covering a vector axis: whole vectors by blocks, then the rest, masked or as scalars."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from irc.dialects import arith
from irc.ir.symbols import Dim, known_divisible
from irc.ir.types import index
from irc.passes.kernel.cpu.emit import Emitter, Lanes, Scalar
from irc.passes.kernel.cpu.schedule import CpuSchedule


@attrs.define(eq=False)
class Vectors:
    """How an axis is vectorized: lanes, vectors handled together, how the rest is done: "mask" (one
    masked vector at a time) or "peel" (scalars), into how many spans conditions may cut it, and how
    far elements may lie apart that are chosen from whole vectors."""

    axis: str
    width: int
    copies: int
    tail: str
    spans: int
    strided: int = 1


def vectors_of(schedule: CpuSchedule) -> Vectors:
    """The vectors that a schedule asks for."""
    strided = schedule.strided if schedule.has("strided") else 1
    return Vectors(
        schedule.vector_axis, schedule.lanes, schedule.copies, schedule.tail, schedule.spans,
        strided,
    )  # fmt: skip


@attrs.define(eq=False)
class Phase:
    """One loop over part of a vector axis: `copies` vectors of `width` lanes from `lower` to
    `upper` by `step`, masked below `limit` where that is given. With `apart`, each vector begins
    so many points after the one before: [lower, upper) are the points of the first."""

    lower: Scalar
    upper: Scalar
    step: int
    width: int
    copies: int
    limit: Scalar | None = None
    apart: int = 0

    @property
    def span(self) -> tuple[int, int] | None:
        """The points that the loop visits, where both ends are known."""
        if isinstance(self.lower, int) and isinstance(self.upper, int) and not self.apart:
            return self.lower, self.upper
        return None

    def lanes(self, emitter: Emitter, axis: str, position: Scalar) -> Lanes:
        """The lanes at one position."""
        mask = None
        if self.limit is not None:
            mask = emitter.lane_mask(position, self.limit, self.width)
        apart = self.apart or self.width
        return Lanes(axis, self.width, self.copies, mask, self.limit, apart)


def whole_blocks(emitter: Emitter, upper: Scalar, extent: Dim, block: int) -> Scalar:
    """`upper` rounded down to a multiple of `block`, a power of two; `upper` itself where it is
    one, as it is if the axis's `extent` is."""
    if isinstance(upper, int):
        return upper // block * block
    if block == 1 or known_divisible(extent, block):
        return upper
    rounding = emitter.number(-block, index)
    return emitter.add(arith.AndIOp, (emitter.value(upper), rounding), index)


def phases(
    emitter: Emitter, vectors: Vectors, lower: Scalar, upper: Scalar, extent: Dim
) -> Iterable[Phase]:
    """The loops that cover [lower, upper): whole blocks, then the rest.

    `lower` is a multiple of a block, `upper` too or the axis's `extent`.
    """
    width, copies = vectors.width, vectors.copies
    block = width * copies
    if isinstance(lower, int) and isinstance(upper, int):
        middle: Scalar = lower + (upper - lower) // block * block
    else:
        middle = whole_blocks(emitter, upper, extent, block)
    yield Phase(lower, middle, block, width, copies)
    if middle is upper or middle == upper:
        return
    whole = isinstance(lower, int) and isinstance(upper, int)
    even = known_divisible(upper - lower if whole else extent, width)  # type: ignore[operator]
    if even or vectors.tail == "mask":
        yield Phase(middle, upper, width, width, 1, None if even else upper)
        return
    if copies > 1:
        if isinstance(middle, int) and isinstance(upper, int):
            last: Scalar = middle + (upper - middle) // width * width
        else:
            last = emitter.add(
                arith.AndIOp, (emitter.value(upper), emitter.number(-width, index)), index
            )
        yield Phase(middle, last, width, width, 1)
        middle = last
    yield Phase(middle, upper, 1, 1, 1)
