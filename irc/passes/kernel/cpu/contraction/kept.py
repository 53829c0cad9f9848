"""Sums of a part of the depth, put aside in the kernel's memory until the next part's are there.

Those of a tile lie side by side, row after row of its panel's columns; the tiles of a panel follow
each other, then those of the next one. A point of the parallel space begins with its first tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irc.dialects import kernel
from irc.ir.core import Value
from irc.ir.types import i1
from irc.passes.kernel.cpu.emit import Scalar

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.contraction.tile import SumTile


class KeptSums:
    """Those of a tile with the panel from `column` on."""

    def __init__(self, tile: SumTile, column: Scalar) -> None:
        self.tile, self.emitter, self.tiling = tile, tile.emitter, tile.tiling
        self.memory = tile.owner.memory["sums"]
        emitter, own, row = self.emitter, self.tiling.schedule, tile.row
        if own.point_rows:
            row = emitter.remainder(row, own.point_rows, True)
        if own.point_columns:
            column = emitter.remainder(column, own.point_columns, True)
        panels = emitter.quotient(column, self.tiling.panel, True)
        size = emitter.scalar(tile.owner.sums_panel, tile.scope)
        base = emitter.plus(tile.scope.names["sums"], emitter.times(panels, size))
        self.begin = emitter.plus(base, emitter.times(row, self.tiling.panel))

    def _place(self, row: int, vector: int) -> Scalar:
        after = row * self.tiling.panel + vector * self.tiling.schedule.lanes
        return self.emitter.plus(self.begin, after)

    def fetch(self) -> None:
        """Have them fetched, for when they are needed."""
        for row in range(self.tile.most):
            for vector in range(self.tiling.schedule.tile_vectors):
                place = self.emitter.value(self._place(row, vector))
                self.emitter.effect(kernel.PrefetchOp, (self.memory, place))

    def added_to(self, sums: list[list[Value]]) -> list[list[Value]]:
        """The tile's sums, rows of vectors, with what was added before, if anything was."""
        emitter, type_ = self.emitter, self.tile.tiles.vector
        later = emitter.compare("sgt", self.tile.depth.lower, 0)
        lanes = self.tiling.schedule.lanes
        mask = emitter.add(kernel.SplatOp, (later,), emitter.vector_type(i1, lanes))

        def total(row: int, vector: int, value: Value) -> Value:
            before = emitter.load(self.memory, self._place(row, vector), type_, mask, None)
            return self.tile.tiles.arithmetic.add(value, before)

        return [
            [total(row, vector, value) for vector, value in enumerate(line)]
            for row, line in enumerate(sums)
        ]

    def add_room(self, room: Value, finish: Callable[[], None]) -> None:
        """Add the sums in the tile's room to what was put aside, if anything was: there, or after
        the last part in the room, of which `finish` computes what follows."""
        emitter, tile = self.emitter, self.tile
        extent = emitter.scalar(self.tiling.depth.extent, tile.scope)

        def last() -> None:
            self._add(room, room, 0)
            finish()

        emitter.when(
            emitter.compare("sge", tile.depth.upper, extent), last,
            lambda: self._add(room, self.memory, self.begin),
        )  # fmt: skip

    def _add(self, room: Value, target: Value, begin: Scalar) -> None:
        """Write the sums of a room and of what was put aside to a target."""
        emitter, type_, own = self.emitter, self.tile.tiles.vector, self.tiling.schedule
        later = emitter.compare("sgt", self.tile.depth.lower, 0)
        mask = emitter.add(kernel.SplatOp, (later,), emitter.vector_type(i1, own.lanes))

        def at(place: Scalar, _: Sequence[Value]) -> list[Value]:
            value = emitter.load(room, place, type_, None, None)
            before = emitter.load(self.memory, emitter.plus(self.begin, place), type_, mask, None)
            total = self.tile.tiles.arithmetic.add(value, before)
            emitter.store(total, target, emitter.plus(begin, place), None)
            return []

        count = emitter.times(self.tile.count, self.tiling.panel)
        emitter.for_loop(0, count, own.lanes, (), at)

    def replace(self, sums: list[list[Value]]) -> None:
        """Put these aside."""
        for row, line in enumerate(sums):
            for vector, value in enumerate(line):
                self.emitter.store(value, self.memory, self._place(row, vector), None)


__all__ = ["KeptSums"]
