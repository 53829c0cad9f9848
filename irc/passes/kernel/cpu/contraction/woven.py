"""What follows a tile's sums, computed between the steps of the next tile's products: `woven`.

Registers of whole tiles multiply for many cycles, in which vectors have nothing to do. So the sums
of a tile stay in its room while the next tile of the block is multiplied: with each step of the
depth some rows of the one before are finished, as many as all steps need for a whole tile. The
last tile of a block is finished behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irc.dialects.kernel.dots import Rows
from irc.ir.core import Region, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim
from irc.ir.types import index
from irc.passes.kernel.cpu.contraction.runs import Stretch
from irc.passes.kernel.cpu.contraction.tiling import Tiling
from irc.passes.kernel.cpu.emit import Emitter, Scalar, VectorScope
from irc.passes.kernel.cpu.place import OUTER
from irc.passes.kernel.cpu.schedule import CpuSchedule

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.contraction.tile import SumTile, TileWriter

Beside = Callable[[Value], None]
"""Writes what is done beside a step of products, by the step's first term."""


def check_woven(tiling: Tiling) -> None:
    """Raise InvalidIR for a schedule that doesn't fit."""
    reason = ""
    if not tiling.schedule.in_matrices:
        reason = "what follows sums is woven into products of registers that hold whole tiles alone"
    elif not may_weave(tiling.columns.extent, tiling.depth.extent, tiling.schedule):
        reason = "what follows sums of parts, or of some of a panel's columns, isn't woven"
    if reason:
        raise InvalidIR(f"{reason} (woven, products)", op=tiling.products.member.compute)


def may_weave(columns: Dim, depth: Dim, own: CpuSchedule) -> bool:
    """Whether what follows sums may be computed while others are multiplied: each tile has all
    terms, and all columns of its panel."""
    panel = own.tile_vectors * own.lanes
    in_parts = own.block_depth and not (isinstance(depth, int) and depth <= own.block_depth)
    return not in_parts and columns % panel == 0


def finish_before(tile: SumTile, column: Scalar, dot: Rows) -> Beside:
    """What is done beside a tile's products: some rows of the tile before are finished."""
    emitter, tiling = tile.emitter, tile.tiling
    before, first_column, count = _before(tile, column)
    length, depth, own = dot.tile[2], tiling.depth.extent, tiling.schedule
    assert isinstance(depth, int)
    each = -(-own.tile_rows // max(-(-depth // length), 1))

    def some(term: Value) -> None:
        first = emitter.times(emitter.quotient(term, length, True), each)
        finish_rows(before, first_column, first, emitter.least(emitter.plus(first, each), count))

    return some


def region_of(emitter: Emitter, every: Sequence[Beside]) -> tuple[Region, ...]:
    """The region of what is done beside products, if there is anything."""
    def all_of(term: Value) -> Sequence[Value]:
        for one in every:
            one(term)
        return ()

    return (emitter.region((index,), all_of),) if every else ()


def finish_last(
    tiles: TileWriter, scope: VectorScope, rows: Stretch, columns: Stretch, depth: Stretch
) -> None:
    """Finish the last tile of a block."""
    emitter, own = tiles.emitter, tiles.schedule
    row, count = _last(emitter, rows, own.tile_rows)
    column, _ = _last(emitter, columns, tiles.tiling.panel)
    tile = tiles.tile(scope.child(OUTER), rows, columns, depth, row)
    finish_rows(tile, column, 0, count)


def finish_rows(tile: SumTile, column: Scalar, first: Scalar, end: Scalar) -> None:
    """Compute what follows some rows of sums in the room of a tile with the panel from `column` on,
    and store."""
    emitter, own, tiles = tile.emitter, tile.tiling.schedule, tile.tiles
    room = tiles.scratch
    assert room is not None

    def one(number: Scalar, _: Sequence[Value]) -> Sequence[Value]:
        begin = emitter.times(number, tile.tiling.panel)
        sums = [emitter.load(room, emitter.plus(begin, v * own.lanes), tiles.vector, None, None)
                for v in range(own.tile_vectors)]  # fmt: skip
        row = emitter.plus(tile.row, number)
        tile.finish_row(row, column, [None] * own.tile_vectors, sums)
        return ()

    emitter.for_loop(first, end, 1, (), one)


def _before(tile: SumTile, column: Scalar) -> tuple[SumTile, Scalar, Scalar]:
    """The tile that was multiplied before another one of the block, where its panel begins, and its
    number of rows: 0 before the first."""
    emitter, own, rows, columns = tile.emitter, tile.tiling.schedule, tile.rows, tile.columns
    panel = tile.tiling.panel
    last_row, last_count = _last(emitter, rows, own.tile_rows)
    last_column, _ = _last(emitter, columns, panel)
    if own.inner == "rows":
        begins = emitter.compare("sle", tile.row, rows.lower)
        first = emitter.compare("sle", column, columns.lower)
        row = emitter.either(begins, last_row, emitter.minus(tile.row, own.tile_rows))
        there = emitter.either(begins, emitter.minus(column, panel), column)
        count = emitter.either(begins, last_count, own.tile_rows)
    else:
        begins = emitter.compare("sle", column, columns.lower)
        first = emitter.compare("sle", tile.row, rows.lower)
        row = emitter.either(begins, emitter.minus(tile.row, own.tile_rows), tile.row)
        there = emitter.either(begins, last_column, emitter.minus(column, panel))
        count = emitter.either(begins, own.tile_rows, tile.count)
    none = emitter.both(begins, first)
    before = tile.tiles.tile(tile.scope.child(OUTER), rows, columns, tile.depth, row)
    return before, there, emitter.either(none, 0, count)


def _last(emitter: Emitter, stretch: Stretch, step: int) -> tuple[Scalar, Scalar]:
    """Where the last tile of a stretch begins, and how much it has: 0 of a stretch of nothing."""
    before = emitter.minus(emitter.minus(stretch.upper, stretch.lower), 1)
    before = emitter.most(before, 0)
    passed = emitter.times(emitter.quotient(before, step, True), step)
    begin = emitter.plus(stretch.lower, passed)
    return begin, emitter.minus(stretch.upper, begin)


__all__ = ["Beside", "check_woven", "finish_before", "finish_last", "finish_rows", "may_weave",
           "region_of"]  # fmt: skip
