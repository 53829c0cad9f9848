"""Sums of products by registers of whole tiles: `products = "matrix"`, `products = "bf16x6"`.

The factor with the rows is read where it lies, its terms side by side, or is packed as registers
hold it, so that each is loaded from lines of the cache that follow each other. The one with the
columns lies, or is packed, in panels of a register's columns in which groups of terms of a column
are side by side: of bf16, `w[floordiv(n, 16), floordiv(k, 2), mod(n, 16), mod(k, 2)]`. The sums
of a tile go into the room of the tile's sums, from where what follows takes them.

Factors of f32 are cut into three parts of bf16 when they are packed: a = a1 + a2 + a3, each with 8
of its 24 bits. What has the rows may have been cut by another kernel (`cut-rows`), and one with the
columns that was frozen has an array of panels for each part; products read them as their sum. Of
the nine products of parts three are less than 2^-24 of the whole and are left out, so that sums are
as exact as those of f32 (Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence
Datatype For Higher-Precision Computations", 2019), and take six of the registers' products for 16
times a vector's rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from irc.dialects import kernel
from irc.dialects.kernel.dots import Rows
from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim, coefficient, dim_product, substitute, symbol
from irc.ir.types import TensorType, element_bytes
from irc.passes.kernel.cpu.contraction.ahead import LINE_BITS
from irc.passes.kernel.cpu.contraction.packing import LEFT, RIGHT, number_in, pack_rows
from irc.passes.kernel.cpu.contraction.runs import AxisRun, Stretch
from irc.passes.kernel.cpu.contraction.tiling import (
    TiledFactor,
    Tiling,
    reads_depth,
    reads_panels,
    reads_rows,
    reads_vectors,
    rows_for,
)
from irc.passes.kernel.cpu.contraction.woven import Beside, finish_before, region_of
from irc.passes.kernel.cpu.emit import Scalar, VectorScope
from irc.passes.kernel.cpu.plan import Axis
from irc.passes.kernel.cpu.schedule import CpuSchedule
from irc.target import Target

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.contraction.products import ProductWriter
    from irc.passes.kernel.cpu.contraction.tile import SumTile

_PANEL = "_panel"


def dot_of_factors(
    left: TiledFactor, right: TiledFactor, own: CpuSchedule
) -> Rows | None:
    """What multiplies two factors of which one is read as it lies; None for nothing."""
    if own.is_split:
        both = {factor.side.value.type for factor in (left, right)}
        return None if right.begin is None or len(both) > 1 else rows_for(left, own)
    element = left.side.narrow.type
    if right.access is None or right.side.narrow.type is not element:
        return None
    return rows_for(left, own)


def misfit(
    left: TiledFactor, right: TiledFactor, rows: AxisRun, columns: Axis, depths: AxisRun,
    panel: int, own: CpuSchedule,
) -> str:  # fmt: skip
    """Why two factors are not multiplied by registers of whole tiles; "" where they are."""
    dot = dot_of_factors(left, right, own)
    if dot is None:
        return "no registers hold tiles of its factors' elements, or they are not read as they lie"
    tile, depth = dot.tile, depths.axis
    if not isinstance(depth.extent, int):
        return "its number of terms is to be known"
    if not isinstance(columns.extent, int):
        return "its number of columns is to be known"
    whole = own.has("block_depth") and 0 < own.block_depth < depth.extent
    if depth.extent % tile[2] and (whole or not (left.packed and right.packed)):
        return f"its terms are no multiple of {tile[2]}, and not all of both factors' are packed"
    if panel not in (tile[1], 2 * tile[1]):
        return f"a panel has {tile[1]} or {2 * tile[1]} columns, not {panel}"
    if not left.packed and not reads_terms(left, rows, depths, own):
        return "the factor with the rows has not its terms side by side"
    if right.packed:
        along = reads_depth(right, columns.name, depths)
        across = reads_vectors(right, columns.name, depths, tile[1])
        return "" if along or across else "the factor with the columns is no matrix"
    if len(depths.parts) > 1 or not _in_panels(right, columns, depth, dot, panel):
        return f"the factor with the columns is not in panels with groups of {dot.group} terms"
    return ""


def reads_terms(
    left: TiledFactor, rows: AxisRun, depths: AxisRun, own: CpuSchedule
) -> bool:
    """Whether the factor with the rows, or each part of it, has its terms side by side where it
    lies."""
    if own.is_split:
        dot, first = rows_for(left, own), left.first
        if dot is None or first is None or first.storage is None:
            return False
        if first.storage.element is not dot.element:
            return False
        left = attrs.evolve(left, access=first)
    return reads_rows(left, rows, depths) and reads_depth(left, rows.axis.name, depths)


def _in_panels(
    right: TiledFactor, columns: Axis, depth: Axis, dot: Rows, panel: int
) -> bool:
    """Whether the factor with the columns, or each part of it, lies in panels of a tile's columns,
    one after the other, of which a tile reads whole ones."""
    begin, width = (right.first if dot.parts > 1 else right.access), dot.tile[1]
    if begin is None or begin.storage is None:
        return False
    if begin.storage.element is not dot.element:
        return False
    of = attrs.evolve(right, access=begin)
    if not reads_panels(of, columns.name, depth.name, width, dot.group):
        return False
    first = substitute(begin.expression, {columns.name: symbol(_PANEL) * width, depth.name: 0})
    extents = columns.extent, depth.extent
    assert isinstance(extents[0], int) and isinstance(extents[1], int)
    step, count = width * extents[1], -(-extents[0] // panel) * (panel // width)
    begins, array = substitute(first, {_PANEL: 0}), begin.storage.value.type
    assert isinstance(array, TensorType)
    room = dim_product(array.shape) - (dot.parts - 1) * right.apart
    if isinstance(begins, int) and isinstance(room, int):
        inside = begins + count * step <= room  # of the last part's array, or of the only one
    else:
        inside = extents[0] % panel == 0
    return coefficient(first, _PANEL) == step and inside


def check_matrix(tiling: Tiling) -> None:
    """Raise InvalidIR for a schedule that doesn't fit the factors."""
    left, right, own = tiling.left, tiling.right, tiling.schedule
    dot, reason = dot_of_factors(left, right, own), ""
    if dot is not None and own.block_depth % dot.tile[2]:
        reason = f"parts of the depth are multiples of {dot.tile[2]} (block_depth)"
    if own.packed_columns % tiling.panel:
        reason = f"whole panels of {tiling.panel} columns are packed together (pack_columns)"
    reason = reason or misfit(
        left, right, tiling.row_run, tiling.columns, tiling.depth_run, tiling.panel, own
    )
    if dot is not None and own.tile_rows > 2 * dot.tile[0]:
        reason = reason or f"a tile has up to {2 * dot.tile[0]} rows (tile_rows)"
    if reason:
        raise InvalidIR(f"it can't be multiplied as matrices (products): {reason}",
                        op=tiling.products.member.compute)  # fmt: skip


def depth_of_block(extent: Dim, dot: Rows, target: Target) -> int:
    """Terms of sums of parts that are added before the next ones, about as many each, in whole
    registers; 0: all."""
    deepest = target.features.cut_depth
    if not isinstance(extent, int) or extent <= deepest:
        return 0
    parts = -(-extent // deepest)
    return -(-extent // (parts * dot.tile[2])) * dot.tile[2]


def rows_of_block(own: CpuSchedule, rows: int | None, room: int) -> int:
    """How many rows blocks have of which the caches have room for so many: of a number of rows
    that is known about as many each, in whole tiles; 0: one block has all."""
    most = max(room // own.tile_rows, 1) * own.tile_rows
    if rows is None or most < rows:
        tiles = -(-(rows or most) // own.tile_rows)
        return -(-tiles // -(-tiles * own.tile_rows // most)) * own.tile_rows
    return 0


def rows_stay(own: CpuSchedule, rows: Dim, depth: int, dot: Rows, target: Target) -> bool:
    """Whether the rows of a tile, of so many terms, stay in the first-level cache while panels pass
    by; where all rows are a tile's, panels pass in any case."""
    if isinstance(rows, int) and rows <= own.tile_rows:
        return True
    size = own.tile_rows * depth * dot.parts * element_bytes(dot.element)
    return not own.pack_left and size <= target.features.staying_rows


def part_of_tiles(tiling: Tiling, depth: int) -> int:
    """The elements of a part of the rows of a tile of sums that are packed, of so many terms, in
    whole registers."""
    height = tiling.dot.tile[0]
    return -(-tiling.schedule.tile_rows // height) * height * depth


def pack_tiles(
    owner: ProductWriter, scope: VectorScope, rows: Stretch, depth: Stretch
) -> None:
    """Evaluate the factor with the rows over a block, as registers hold it."""
    tiling, emitter = owner.tiling, owner.emitter
    (height, _, length), count = tiling.dot.tile, tiling.schedule.tile_rows
    part = part_of_tiles(tiling, owner.known_depth)
    whole = part * tiling.parts
    _clear_rows(owner, scope, rows, whole)
    before = emitter.times(emitter.quotient(rows.lower, count, True), whole)
    before = emitter.plus(before, emitter.times(depth.lower, height))
    row, term = number_in(tiling.row_run), number_in(tiling.depth_run)
    within = row % count
    target = row // count * whole + within // height * (height * owner.known_depth)
    target = target + within % height * length + term // length * (height * length)
    pack_rows(owner, scope, rows, depth, before, target + term % length, part)


def _clear_rows(owner: ProductWriter, scope: VectorScope, rows: Stretch, step: int) -> None:
    """Have zeros in what the last terms of a block of rows leave empty of registers. step: elements
    that a tile's rows take."""
    emitter, tiling = owner.emitter, owner.tiling
    height, count = tiling.dot.tile[0], tiling.schedule.tile_rows
    part = part_of_tiles(tiling, owner.known_depth)

    def tile(row: Scalar, _: Sequence[Value]) -> list[Value]:
        number = emitter.quotient(emitter.minus(row, rows.lower), count, True)
        begin = emitter.plus(scope.names[LEFT], emitter.times(number, step))
        for more in range(tiling.parts):
            for first in range(0, count, height):
                passed = more * part + first * owner.known_depth
                _clear_last(owner, LEFT, emitter.plus(begin, passed))
        return []

    if _is_ragged(tiling):
        emitter.for_loop(rows.lower, rows.upper, count, (), tile)


def clear_columns(owner: ProductWriter, scope: VectorScope, columns: Stretch) -> None:
    """The same for a block of columns."""
    emitter, tiling = owner.emitter, owner.tiling

    def panel(column: Scalar, _: Sequence[Value]) -> list[Value]:
        passed = emitter.times(emitter.minus(column, columns.lower), owner.known_depth)
        begin = emitter.plus(scope.names[RIGHT], passed)
        for more in range(tiling.parts):
            apart = emitter.scalar(owner.parts_apart * more, scope)
            _clear_last(owner, RIGHT, emitter.plus(begin, apart))
        return []

    if tiling.schedule.in_matrices and _is_ragged(tiling):
        emitter.for_loop(columns.lower, columns.upper, tiling.packed_panel, (), panel)


def _is_ragged(tiling: Tiling) -> bool:
    """Whether the last terms leave registers empty in part."""
    depth = tiling.depth.extent
    return isinstance(depth, int) and depth % tiling.dot.tile[2] > 0


def _clear_last(owner: ProductWriter, name: str, begin: Scalar) -> None:
    """Fill the last register of terms, those of whose first one begin there."""
    emitter, tiling = owner.emitter, owner.tiling
    height, width, length = tiling.dot.tile
    element, several = tiling.factor_element, owner.schedule.lanes * tiling.group
    side = height if name == LEFT else width
    zeros = emitter.filled(0.0, element, emitter.vector_type(element, several))
    begin = emitter.plus(begin, side * (owner.known_depth - length))

    def vector(place: Scalar, _: Sequence[Value]) -> list[Value]:
        emitter.store(zeros, owner.memory[name], emitter.plus(begin, place), None)
        return []

    emitter.for_loop(0, side * length, several, (), vector)


def multiply(tile: SumTile, room: Value, column: Scalar) -> None:
    """Write the sums of the panel from `column` on into the tile's room."""
    emitter, tiling, owner = tile.emitter, tile.tiling, tile.owner
    dot, depth, columns = tiling.dot, tile.depth, tile.right_array()[0]
    terms = emitter.minus(depth.upper, depth.lower)
    if _is_ragged(tiling):
        terms = owner.known_depth
    step: Scalar
    pointer: Value
    part = part_of_tiles(tiling, owner.known_depth)
    if tiling.left.packed:
        number = emitter.quotient(
            emitter.minus(tile.row, tile.rows.lower), tiling.schedule.tile_rows, True
        )
        passed = emitter.times(number, part * tiling.parts)
        place = emitter.plus(tile.scope.names[LEFT], passed)
        pointer, step = owner.memory[LEFT], dot.tile[0] * owner.known_depth
    else:
        pointer, place = tile.left_begin()
        place, access = emitter.plus(place, depth.lower), tiling.left.begin
        assert access is not None
        along = coefficient(access.expression, tiling.rows.name) or 0
        step = emitter.scalar(along, tile.scope)
    attributes: dict[str, A.Attribute] = {
        "tiles": A.IntegerAttr(-(-tile.most // dot.tile[0])),
        "columns": A.IntegerAttr(tiling.panel),
    }  # fmt: skip
    if tiling.left.packed:
        attributes["in_tiles"] = A.BoolAttr(True)
    if tiling.parts == 1:
        # Of parts, which take six products for each load, it made products up to 7 % slower.
        attributes["passing"] = A.StringAttr("left" if tiling.schedule.inner == "rows" else "right")
    first = _first_column(tile, column)
    operands = [pointer, emitter.value(place), emitter.value(step), emitter.value(tile.count),
                columns, emitter.value(first), emitter.value(owner.panel_step(tile.scope)), room,
                emitter.value(terms)]  # fmt: skip
    if tiling.parts > 1:
        apart = emitter.scalar(owner.parts_apart, tile.scope)
        between = part if tiling.left.packed else tiling.left.apart
        operands += [emitter.value(between), emitter.value(apart)]
    every = [_fetch_next(tile, column, dot)] if tiling.parts > 1 else []
    if tiling.schedule.woven:
        every.append(finish_before(tile, column, dot))
    regions = region_of(emitter, every)
    op = kernel.DotRowsOp(operands, (), attributes, regions, emitter.location)
    emitter.block.append(op)


def _first_column(tile: SumTile, column: Scalar) -> Scalar:
    """Where the panels from a column on begin, at the first term of a block of the depth."""
    emitter, tiling, owner = tile.emitter, tile.tiling, tile.owner
    if not tiling.right.packed:
        passed = emitter.times(tile.depth.lower, tiling.dot.tile[1])
        return emitter.plus(tile.right_place(column), passed)
    columns = emitter.minus(column, tile.columns.lower)
    columns = emitter.times(columns, emitter.scalar(owner.packed_depth, tile.scope))
    return emitter.plus(tile.scope.names[RIGHT], columns)


def _fetch_next(tile: SumTile, column: Scalar, dot: Rows) -> Beside:
    """Have the next panels brought to the second-level cache while these are multiplied: parts of a
    register's columns, of which each tile of rows has some."""
    emitter, tiling, owner = tile.emitter, tile.tiling, tile.owner
    pointer, type_, _ = tile.right_array()
    line = LINE_BITS // type_.width  # type: ignore[attr-defined]
    count = tiling.parts * (tiling.panel // dot.tile[1])
    each = -(-count // tile.whole_tiles)
    begin = _first_column(tile, emitter.plus(column, tiling.panel))
    number = emitter.times(0 if tile.number is None else tile.number, each)
    apart, step = emitter.scalar(owner.parts_apart, tile.scope), owner.panel_step(tile.scope)
    places = []
    for more in range(each):
        which = emitter.remainder(emitter.plus(number, more), count, True)
        part = emitter.remainder(which, tiling.parts, True)
        panel = emitter.quotient(which, tiling.parts, True)
        place = emitter.plus(begin, emitter.times(part, apart))
        places.append(emitter.plus(place, emitter.times(panel, step)))

    def fetch(term: Value) -> None:
        passed = emitter.times(term, dot.tile[1])
        for place in places:
            here = emitter.plus(place, passed)
            for number in range(dot.tile[1] * dot.tile[2] // line):
                there = emitter.value(emitter.plus(here, number * line))
                emitter.effect(kernel.PrefetchOp, (pointer, there))

    return fetch


__all__ = ["check_matrix", "clear_columns", "depth_of_block", "dot_of_factors", "misfit",
           "multiply", "pack_tiles", "part_of_tiles", "reads_terms", "rows_of_block",
           "rows_stay"]  # fmt: skip
