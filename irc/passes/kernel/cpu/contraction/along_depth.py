"""Sums of products whose vectors run along the depth: `products = "depth"`.

Both factors are read where they lie, their terms one after the other, so that a weight of few rows
is neither packed nor read across. Each sum of a few rows by a few columns is a vector of partial
sums in a register; the lanes of these are added up behind the last term, and go into the room of
the tile's sums, from where what follows takes them along the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from irc.dialects import kernel
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.types import VectorType
from irc.passes.kernel.cpu.emit import Scalar

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.contraction.tile import Masks, SumTile


@attrs.frozen(eq=False)
class Lines:
    """Rows or columns of a factor: where each begins, with its terms one after the other."""

    pointer: Value
    element: Type
    places: list[Scalar]


def fill_room(tile: SumTile, room: Value, column: Scalar, masks: Masks) -> None:
    """Write the sums of the panel from `column` on into the tile's room, a row of the panel's
    columns after the other; what would lie behind the last column is that column once more."""
    emitter, tiling = tile.emitter, tile.tiling
    together, count = tiling.schedule.tile_columns, len(masks) * tiling.schedule.lanes
    last: Scalar | None = None if count % together == 0 else count - 1
    if any(mask is not None for mask in masks):
        last = emitter.minus(emitter.minus(tile.columns.upper, column), 1)
        last = emitter.least(last, count - 1)
    end = count if last is None else emitter.plus(last, 1)
    rows = tile.left_lines()

    def group(first: Scalar, _: Sequence[Value]) -> list[Value]:
        numbers = [emitter.plus(first, c) for c in range(together)]
        if last is not None:
            numbers = [emitter.least(n, last) for n in numbers]
        columns = tile.right_lines([emitter.plus(column, n) for n in numbers])
        ahead = emitter.plus(emitter.plus(column, numbers[0]), count)
        sums = _sums(tile, rows, columns, _fetched(tile, ahead, together))
        for r, total in enumerate(_added_up(tile, sums)):
            for c, value in enumerate(total):
                place = emitter.plus(numbers[c], r * tiling.panel)
                emitter.store(value, room, place, None)
        return []

    emitter.for_loop(0, end, together, (), group)


def _fetched(tile: SumTile, column: Scalar, together: int) -> Lines:
    """Columns of the next panel, of the group from `column` on, that this tile has fetched: with
    those of the other tiles of rows, all."""
    emitter, number = tile.emitter, tile.number
    if number is None:
        return tile.right_lines([])
    each = -(-together // tile.whole_tiles)
    first = emitter.plus(column, emitter.times(number, each))
    return tile.right_lines([emitter.plus(first, c) for c in range(each)])


def _sums(tile: SumTile, rows: Lines, columns: Lines, fetched: Lines) -> list[list[Value]]:
    """A vector of partial sums for each row and column."""
    emitter, arithmetic = tile.emitter, tile.tiles.arithmetic
    factor, several, width = tile.tiling.factor_element, arithmetic.several, len(columns.places)
    own = len(rows.places) * width

    def terms(
        carried: Sequence[Value], at: Scalar, mask: Value | None
    ) -> list[Value]:
        def line(lines: Lines, number: int) -> Value:
            place = emitter.plus(lines.places[number], at)
            type_ = emitter.vector_type(lines.element, several)
            return emitter.convert(emitter.load(lines.pointer, place, type_, mask, None), factor)

        for begin in fetched.places if mask is None else ():
            there = emitter.value(emitter.plus(begin, at))
            emitter.effect(kernel.PrefetchOp, (fetched.pointer, there))
        sums, seconds = list(carried[:own]), []
        firsts = [arithmetic.unsigned(line(rows, r)) for r in range(len(rows.places))]
        for c in range(width):
            second = line(columns, c)
            seconds.append(second)
            for r, first in enumerate(firsts):
                at_sum = r * width + c
                sums[at_sum] = arithmetic.add_product(first, second, sums[at_sum])
        return sums + arithmetic.add_beside(seconds, carried[own:])

    lower, upper = tile.depth.lower, tile.depth.upper
    sums = [*arithmetic.initial(own), *arithmetic.beside(width)]
    count = emitter.quotient(emitter.minus(upper, lower), several, True)
    middle = emitter.plus(lower, emitter.times(count, several))
    sums = emitter.for_loop(lower, middle, several, sums, lambda k, c: terms(c, k, None))
    if isinstance(innermost := emitter.block.last, kernel.ForOp):
        innermost.attributes["unroll"] = A.IntegerAttr(tile.tiling.schedule.terms)
    if not isinstance(middle, int) or middle != upper:
        sums = terms(sums, middle, emitter.lane_mask(middle, upper, several))
    sums = arithmetic.without(sums[:own], sums[own:])
    return [sums[k : k + width] for k in range(0, len(sums), width)]


def _added_up(tile: SumTile, sums: list[list[Value]]) -> list[list[Value]]:
    """The lanes of each vector added up, as many vectors at a time as one of them has lanes."""
    emitter, element, lanes = tile.emitter, tile.tiling.element, tile.tiling.schedule.lanes
    flat = [value for line in sums for value in line]
    square, vector = VectorType((lanes, lanes), element), emitter.vector_type(element, lanes)
    along: dict[str, A.Attribute] = {"combiner": A.StringAttr("sum"), "dim": A.IntegerAttr(1)}
    totals: list[Value] = []
    for begin in range(0, len(flat), lanes):
        part = flat[begin : begin + lanes]
        rows = emitter.filled(tile.tiles.arithmetic.zero, element, square)
        for number, value in enumerate(part):
            place = emitter.value(number)
            rows = emitter.add(kernel.InsertOp, (value, rows, place), square)
        total = emitter.add(kernel.ReduceOp, (rows,), vector, along)
        totals += [
            emitter.add(kernel.ExtractOp, (total, emitter.value(k)), element)
            for k in range(len(part))
        ]
    width = len(sums[0])
    return [totals[k : k + width] for k in range(0, len(totals), width)]


__all__ = ["Lines", "fill_room"]
