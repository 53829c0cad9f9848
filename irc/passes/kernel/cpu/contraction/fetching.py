"""What a tile has fetched while its sums are computed: the next panel, or what is packed next.

The tiles of rows that a panel meets share its lines: each has some fetched for each term, and all
tiles together all, so that few rows read a weight as fast as the memory gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from irc.dialects import kernel
from irc.ir.symbols import coefficient, substitute
from irc.passes.kernel.cpu.contraction.ahead import LINE_BITS
from irc.passes.kernel.cpu.emit import Scalar
from irc.passes.kernel.cpu.place import OUTER

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.contraction.tile import SumTile

Fetch = Callable[[Scalar], None]


def fetch_ahead(tile: SumTile, column: Scalar) -> Fetch | None:
    """What has memory fetched at a place of the depth: of what is packed next, where its terms
    lie side by side, else of the next panel."""
    number = tile.number
    if number is None:
        return None
    return _fetch_source(tile, column, number) or _fetch_panel(tile, column, number)


def _fetch_panel(tile: SumTile, column: Scalar, number: Scalar) -> Fetch:
    """Some lines of the cache for each term, or group of them, others with each tile of rows."""
    emitter, tiling = tile.emitter, tile.tiling
    pointer, type_, step = tile.right_array()
    line = LINE_BITS // type_.width  # type: ignore[attr-defined]
    each = -(-tiling.panel * tiling.group // (line * tile.whole_tiles))
    begin = _next_panel(tile, column)
    begin = emitter.plus(begin, emitter.times(number, each * line))

    def fetch(place: Scalar) -> None:
        here = emitter.plus(begin, emitter.times(place, step))
        for number in range(each):
            there = emitter.value(emitter.plus(here, number * line))
            emitter.effect(kernel.PrefetchOp, (pointer, there))

    return fetch


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


def _fetch_source(tile: SumTile, column: Scalar, number: Scalar) -> Fetch | None:
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

    return fetch


__all__ = ["fetch_ahead"]
