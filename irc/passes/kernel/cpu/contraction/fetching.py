"""What a tile has fetched while its sums are computed: the next panel, what is packed next, or
the rows of a later tile.

The tiles of rows that a panel meets share its lines: each has some fetched for each term or turn of
the innermost loop, and all tiles together all, so that few rows read a weight as fast as the memory
gives it, and many spend little on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from irc.analysis.loop import estimate
from irc.dialects import kernel
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import coefficient, substitute
from irc.ir.types import element_bytes
from irc.passes.kernel.cpu.contraction.ahead import LINE_BITS
from irc.passes.kernel.cpu.emit import Emitter, Scalar
from irc.passes.kernel.cpu.place import OUTER

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.contraction.runs import AxisRun
    from irc.passes.kernel.cpu.contraction.tile import SumTile
    from irc.passes.kernel.cpu.contraction.tiling import TiledFactor, Tiling
    from irc.passes.kernel.cpu.plan import Axis
    from irc.passes.kernel.cpu.schedule import CpuSchedule
    from irc.target import Target

Fetch = Callable[[Scalar], None]


@attrs.frozen
class Turn:
    """What is fetched at a time, from a place of the depth on: in the time of so many `terms`."""

    terms: int
    fetch: Fetch

    def behind(self, place: Scalar, emitter: Emitter) -> Turn:
        """The same, of places that count from another one on."""
        return Turn(self.terms, lambda term: self.fetch(emitter.plus(place, term)))


def turns_of(tile: SumTile, column: Scalar) -> list[Turn]:
    """What has memory fetched while a tile's sums are computed, that of most terms first: what is
    packed next, where its terms lie side by side, else the next panel; and rows of a later tile."""
    number, turns = tile.number, []
    if number is not None:
        columns = _source_turn(tile, column, number) or _panel_turn(tile, column, number)
        turns.append(columns)
    if tile.tiling.schedule.rows_ahead:
        turns.append(_rows_turn(tile))
    return sorted(turns, key=lambda turn: -turn.terms)


def _panel_turn(tile: SumTile, column: Scalar, number: Scalar) -> Turn:
    """Some lines of the cache of the next panel, others with each tile of rows. A turn is as long
    as the innermost loop's body where that saves some: with many tiles, a line of a term is more
    than there is to fetch."""
    emitter, tiling, tiles = tile.emitter, tile.tiling, tile.whole_tiles
    pointer, type_, step = tile.right_array()
    line = LINE_BITS // type_.width  # type: ignore[attr-defined]
    passed = tiling.panel * tiling.group
    each, several = (-(-passed * terms // (line * tiles)) for terms in (1, tile.terms_in_turn))
    terms = tile.terms_in_turn if several < each * tile.terms_in_turn else 1
    each = several if terms > 1 else each
    begin = _next_panel(tile, column)
    if terms > 1:
        # Tiles behind those that have fetched all lines begin with the first again.
        number = emitter.remainder(number, max(-(-passed * terms // (line * each)), 1), True)
    begin = emitter.plus(begin, emitter.times(number, each * line))

    def fetch(place: Scalar) -> None:
        here = emitter.plus(begin, emitter.times(place, step))
        for number in range(each):
            there = emitter.value(emitter.plus(here, number * line))
            emitter.effect(kernel.PrefetchOp, (pointer, there))

    return Turn(terms * tiling.group, fetch)


def _next_panel(tile: SumTile, column: Scalar) -> Scalar:
    """Where the panel begins that is multiplied next: the next columns, or where there are no
    more, those of the next point."""
    axis, columns = tile.owner.next_point, tile.tiling.columns.extent
    if axis is None or not isinstance(columns, int) or columns > tile.tiling.panel:
        return tile.right_place(tile.emitter.plus(column, tile.tiling.panel))
    scope = tile.scope.child(OUTER)
    scope.dims = {}
    scope.names[axis.name] = tile.emitter.plus(scope.names[axis.name], 1)
    return tile.right_place(column, scope)


def _source_turn(tile: SumTile, column: Scalar, number: Scalar) -> Turn | None:
    """What is packed into this panel's place next, the columns of the next point. Each tile of
    rows has some of the columns fetched, in turn with the terms."""
    emitter, tiling, own = tile.emitter, tile.tiling, tile.tiling.schedule
    access, rows = tiling.right.access, tiling.rows.extent
    if not tiling.right.packed or access is None or access.storage is None:
        return None
    apart = coefficient(access.expression, tiling.columns.name)
    if apart is None or coefficient(access.expression, tiling.depth.name) != 1:
        return None
    if not isinstance(rows, int) or not own.point_columns or tile.owner.in_parts:
        return None
    tiles = -(-(own.block_rows or own.point_rows or rows) // own.tile_rows)
    each = 1
    while each * tiles < tiling.panel:
        each *= 2
    first = emitter.plus(column, emitter.times(number, each))
    first = emitter.plus(first, own.point_columns)
    scope = tile.scope.child(OUTER)
    scope.names[tiling.columns.name] = first
    begin = emitter.scalar(substitute(access.expression, {tiling.depth.name: 0}), scope)
    step = emitter.scalar(apart, scope)
    pointer = tile.tiles.state.pointers[access.storage.value]

    def fetch(place: Scalar) -> None:
        turn = emitter.quotient(place, tiling.group, True)
        line = emitter.times(emitter.remainder(turn, each, True), step) if each > 1 else 0
        there = emitter.plus(emitter.plus(begin, place), line)
        emitter.effect(kernel.PrefetchOp, (pointer, emitter.value(there)))

    return Turn(tiling.group, fetch)


def _rows_turn(tile: SumTile) -> Turn:
    """Rows that a later tile multiplies, where they lie: a line of the cache of each in the time of
    as many terms as it has."""
    emitter, lines, tiling = tile.emitter, tile.left_lines(), tile.tiling
    access, own = tiling.left.access, tiling.schedule
    assert access is not None
    apart = emitter.scalar(coefficient(access.expression, tiling.rows.name) or 0, tile.scope)
    passed = emitter.times(apart, own.tile_rows * own.rows_ahead)
    places = [emitter.plus(place, passed) for place in lines.places]

    def fetch(place: Scalar) -> None:
        for begin in places:
            there = emitter.value(emitter.plus(begin, place))
            emitter.effect(kernel.PrefetchOp, (lines.pointer, there))

    return Turn(LINE_BITS // lines.element.width, fetch)  # type: ignore[attr-defined]


def lies_in_rows(left: TiledFactor, depth: AxisRun, own: CpuSchedule) -> bool:
    """Whether rows are read where they lie, and have their terms side by side."""
    access = left.access
    if left.packed or access is None or access.storage is None or own.products != "lanes":
        return False
    return bool(coefficient(access.expression, depth.axis.name) == 1)


def rows_ahead(
    own: CpuSchedule, left: TiledFactor, runs: tuple[AxisRun, AxisRun, Axis], target: Target
) -> dict[str, int]:
    """The entry of a schedule that says how many tiles before its sums a tile's rows are fetched: 0
    where rows are packed, or lie otherwise, or tiles copy panels meanwhile, or rows meet many
    panels (`met_panels`). All rows have to take more than half of a core's second-level cache:
    others come from there. runs: of rows, depth and columns."""
    rows, depth, columns = runs
    left.packed = own.pack_left
    panels = -(-estimate(columns.extent) // (own.tile_vectors * own.lanes))
    if own.pack_ahead or not lies_in_rows(left, depth, own) or panels > target.features.met_panels:
        return {"rows_ahead": 0}
    assert left.access is not None and left.access.storage is not None
    taken = element_bytes(left.access.storage.element)
    taken *= estimate(rows.axis.extent) * estimate(depth.axis.extent)
    near = 2 * taken <= target.processor.core_bytes
    return {"rows_ahead": 0 if near else target.features.fetched_rows}


def check_rows_ahead(tiling: Tiling) -> None:
    """Raise InvalidIR for a schedule that has rows fetched which are packed, or lie otherwise."""
    if not lies_in_rows(tiling.left, tiling.depth_run, tiling.schedule):
        raise InvalidIR("rows can't be fetched ahead (rows_ahead): they are packed, or their terms "
                        "don't lie side by side",
                        op=tiling.products.member.compute)  # fmt: skip


__all__ = ["Turn", "check_rows_ahead", "rows_ahead", "turns_of"]
