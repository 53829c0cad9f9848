"""Panels that are packed while those before them are multiplied: `pack_ahead = T`.

Products keep the multipliers busy and leave places of loads and stores free. So each tile of rows
copies a part of the next panel, element by element: a vector's worth of it in the time of T terms,
some columns of T terms, which lie apart, before the next columns of these terms, so that few lines
are read at a time. Two panels have memory, which are used in turn; the first one of a point, and
one that is not whole, are packed by themselves, as all are without `pack_ahead`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from irc.dialects import kernel
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Range, coefficient, range_of, substitute
from irc.passes.kernel.cpu.contraction.packing import RIGHT, pack_right
from irc.passes.kernel.cpu.contraction.runs import Stretch
from irc.passes.kernel.cpu.contraction.tiling import TiledFactor, Tiling, moves_along
from irc.passes.kernel.cpu.emit import Scalar, VectorScope
from irc.passes.kernel.cpu.place import OUTER
from irc.passes.kernel.cpu.plan import Axis
from irc.passes.kernel.cpu.schedule import CpuSchedule

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.contraction.products import ProductWriter
    from irc.passes.kernel.cpu.contraction.runs import AxisRun
    from irc.passes.kernel.cpu.contraction.tile import SumTile

LINE_BITS = 512
"""Of a line of the cache."""


def copies_ahead(factor: TiledFactor, columns: str, depth: AxisRun) -> bool:
    """Whether a factor's elements are copied as they lie, at places that move evenly."""
    access = factor.access
    if access is None or access.storage is None or not moves_along(access, depth):
        return False
    return coefficient(access.expression, columns) is not None


def parts_of(own: CpuSchedule, depth: Axis, terms: int) -> int:
    """How many tiles of rows a vector's columns of the next panel need, whose terms are copied in
    the time of `terms` each; 0 where it can't be, as for a depth that nobody knows."""
    extent = depth.extent
    if not isinstance(extent, int) or extent < 1:
        return 0
    block = min(own.block_depth or extent, extent)
    lengths = {block, extent - (extent - 1) // block * block}
    if min(lengths) < max(block // terms, terms):
        return 0
    return max(-(-(-(-length // terms) * terms) // (length // terms)) for length in lengths)


def tiles_of(
    own: CpuSchedule, rows: Axis, point_rows: int, ranges: Mapping[str, Range] | None = None
) -> int:
    """The least number of whole tiles of rows in a point of so many; 0 where nobody knows it.
    ranges: of symbols."""
    extent = rows.extent
    if not isinstance(extent, int):
        least = None if point_rows else range_of(extent, ranges or {}).lo
        return max(least or 0, 0) // own.tile_rows
    last = extent if not point_rows else extent % point_rows or point_rows
    return min(last, extent) // own.tile_rows


def check_ahead(tiling: Tiling, ranges: Mapping[str, Range]) -> None:
    """Raise InvalidIR for a schedule that doesn't fit."""
    own, columns = tiling.schedule, tiling.columns
    parts = parts_of(own, tiling.depth, own.pack_ahead)
    reason = ""
    if not own.pack_right or own.products != "lanes" or own.block_rows or own.inner != "rows":
        reason = ("it is for packed panels that all rows meet (pack_right, products, block_rows, "
                  "inner)")  # fmt: skip
    elif own.group > 1:
        reason = "terms are multiplied in groups (group)"
    elif not copies_ahead(tiling.right, columns.name, tiling.depth_run):
        reason = "the factor with the columns is not read as it lies, at places that move evenly"
    elif own.lanes % own.pack_ahead:
        reason = f"a vector's {own.lanes} elements are no multiple of its terms"
    elif not isinstance(columns.extent, int) or columns.extent < tiling.panel:
        reason = "there is no whole panel"
    elif not parts or parts * own.tile_vectors > tiles_of(
        own, tiling.rows, own.point_rows, ranges
    ):
        reason = "its rows have too few tiles"
    if reason:
        raise InvalidIR(f"panels can't be packed ahead (pack_ahead): {reason}",
                        op=tiling.products.member.compute)  # fmt: skip


def panel_place(owner: ProductWriter, scope: VectorScope, columns: Stretch, column: Scalar,
                depth: Stretch, after: int = 0) -> Scalar:
    """Where the memory of the panel from `column` on begins, or that of the one `after` it."""
    emitter, tiling = owner.emitter, owner.tiling
    number = emitter.quotient(emitter.minus(column, columns.lower), tiling.panel, True)
    if owner.in_parts:
        width = emitter.plus(emitter.minus(columns.upper, columns.lower), tiling.panel - 1)
        panels = emitter.quotient(width, tiling.panel, True)
        block = emitter.quotient(depth.lower, tiling.schedule.block_depth, True)
        number = emitter.plus(number, emitter.times(block, panels))
    place = emitter.remainder(emitter.plus(number, after), 2, True)
    size = emitter.scalar(owner.depth_block, scope)
    return emitter.plus(
        scope.names[RIGHT], emitter.times(place, emitter.times(size, tiling.panel))
    )


def pack_panel(
    owner: ProductWriter, scope: VectorScope, columns: Stretch, column: Scalar, depth: Stretch
) -> None:
    """Pack the panel from `column` on by itself, before it is multiplied."""
    emitter = owner.emitter
    end = emitter.least(emitter.plus(column, owner.tiling.panel), columns.upper)
    inner = scope.child(OUTER)
    inner.names[RIGHT] = panel_place(owner, scope, columns, column, depth)
    pack_right(owner, inner, Stretch(column, end), depth)


class NextPanel:
    """What a tile copies of the panel behind its own."""

    def __init__(self, tile: SumTile, column: Scalar) -> None:
        owner, emitter, tiling = tile.owner, tile.emitter, tile.tiling
        self.tile, self.emitter, self.tiling = tile, emitter, tiling
        self.terms = tiling.schedule.pack_ahead
        own, self.panel = tiling.schedule, tiling.panel
        self.each = own.lanes // self.terms
        access = tiling.right.access
        assert access is not None and access.storage is not None
        self.pointer = tile.tiles.state.pointers[access.storage.value]
        self.type, self.memory = access.storage.element, owner.memory[RIGHT]
        first, depth, self.length = self._source(column)
        number = emitter.quotient(emitter.minus(tile.row, tile.rows.lower), own.tile_rows, True)
        parts = parts_of(own, tiling.depth, self.terms)
        busy = emitter.compare("slt", number, parts * own.tile_vectors)
        self.takes_part = emitter.either(busy, 1, 0)
        vector = emitter.least(emitter.quotient(number, parts, True), own.tile_vectors - 1)
        part = emitter.minus(number, emitter.times(vector, parts))
        current = emitter.minus(tile.depth.upper, tile.depth.lower)
        self.group = emitter.times(part, emitter.quotient(current, self.terms, True))
        scope = tile.scope.child(OUTER)
        scope.names[tiling.columns.name] = emitter.plus(first, emitter.times(vector, own.lanes))
        begin = emitter.scalar(substitute(access.expression, {tiling.depth.name: 0}), scope)
        self.step = emitter.scalar(coefficient(access.expression, tiling.depth.name) or 0, scope)
        self.apart = emitter.scalar(
            coefficient(access.expression, tiling.columns.name) or 0, scope
        )
        self.source = emitter.plus(begin, emitter.times(depth, self.step))
        place = panel_place(owner, tile.scope, tile.columns, column, tile.depth, after=1)
        self.target = emitter.plus(place, emitter.times(vector, own.lanes))

    def _source(self, column: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """The next panel's first column and term, and its number of terms; the last panel has
        itself as the next one, and one that is not whole is taken elsewhere (and packed anew)."""
        emitter, tiling, tile = self.emitter, self.tiling, self.tile
        extent, columns, depth = tiling.columns.extent, tile.columns, tile.depth
        assert isinstance(extent, int)
        block = emitter.minus(depth.upper, depth.lower)
        after = emitter.plus(column, tiling.panel)
        if not tile.owner.in_parts:
            return emitter.least(after, extent - tiling.panel), depth.lower, block
        deepest, terms = tiling.schedule.block_depth, tiling.depth.extent
        assert isinstance(terms, int)
        wraps = emitter.compare("sge", after, columns.upper)
        first = emitter.either(wraps, columns.lower, after)
        last = (terms - 1) // deepest * deepest
        later = emitter.least(emitter.plus(depth.lower, deepest), last)
        begin = emitter.either(wraps, later, depth.lower)
        end = emitter.least(emitter.plus(begin, deepest), terms)
        return emitter.least(first, extent - tiling.panel), begin, emitter.minus(end, begin)

    def at(self, place: Scalar) -> Callable[[Scalar], None]:
        """What copies some columns of one of so many terms, from a place of the depth on."""
        emitter, terms = self.emitter, self.terms
        passed = emitter.quotient(emitter.minus(place, self.tile.depth.lower), terms, True)
        group = emitter.plus(self.group, passed)
        line = emitter.quotient(group, terms, True)
        first = emitter.least(emitter.times(line, terms), emitter.minus(self.length, terms))
        lane = emitter.times(emitter.remainder(group, terms, True), self.each)
        source = emitter.plus(self.source, emitter.times(first, self.step))
        self._fetch(source, emitter.plus(lane, emitter.remainder(line, self.each, True)))
        source = emitter.plus(source, emitter.times(lane, self.apart))
        target = emitter.plus(emitter.plus(self.target, lane), emitter.times(first, self.panel))

        def copy(term: Scalar) -> None:
            here = emitter.plus(source, emitter.times(term, self.step))
            place = emitter.plus(target, emitter.times(term, self.panel))
            for number in range(self.each):
                there = emitter.plus(here, emitter.times(self.apart, number))
                value = emitter.load(self.pointer, there, self.type, None, None)
                value = emitter.convert(value, self.tiling.element)
                emitter.store(value, self.memory, emitter.plus(place, number), None)

        return copy

    def _fetch(self, source: Scalar, lane: Scalar) -> None:
        """Have the line fetched that is copied two lines later, of one column after the other."""
        emitter, line = self.emitter, LINE_BITS // self.type.width  # type: ignore[attr-defined]
        there = emitter.plus(source, emitter.times(lane, self.apart))
        there = emitter.plus(there, emitter.times(self.step, 2 * line))
        emitter.effect(kernel.PrefetchOp, (self.pointer, emitter.value(there)))


__all__ = ["NextPanel", "check_ahead", "copies_ahead", "pack_panel", "panel_place", "parts_of",
           "tiles_of"]  # fmt: skip
