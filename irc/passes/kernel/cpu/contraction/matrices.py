"""Sums of products by registers of whole tiles: `products = "matrix"`.

The factor with the rows is read where it lies, its terms side by side, or is packed as registers
hold it, so that each is loaded from lines of the cache that follow each other. The one with the
columns lies, or is packed, in panels of a register's columns in which groups of terms of a column
are side by side: of bf16, `w[floordiv(n, 16), floordiv(k, 2), mod(n, 16), mod(k, 2)]`. The sums
of a tile, of all of the depth, go into the room of the tile's sums, from where what follows takes
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.dialects import kernel
from irc.dialects.kernel.dots import Rows, rows_of
from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import coefficient, substitute, symbol
from irc.passes.kernel.cpu.contraction.packing import LEFT, number_in, pack_rows
from irc.passes.kernel.cpu.contraction.runs import AxisRun, Stretch
from irc.passes.kernel.cpu.contraction.tiling import (
    TiledFactor,
    Tiling,
    reads_depth,
    reads_panels,
    reads_rows,
    reads_vectors,
)
from irc.passes.kernel.cpu.contraction.woven import beside
from irc.passes.kernel.cpu.emit import Scalar, VectorScope
from irc.passes.kernel.cpu.plan import Axis

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.contraction.products import ProductWriter
    from irc.passes.kernel.cpu.contraction.tile import SumTile

_PANEL = "_panel"


def dot_of_factors(left: TiledFactor, right: TiledFactor) -> Rows | None:
    """What multiplies two factors of which one is read as it lies; None for nothing."""
    element = left.side.narrow.type
    if right.access is None or right.side.narrow.type is not element:
        return None
    return rows_of(element)


def misfit(
    left: TiledFactor, right: TiledFactor, rows: AxisRun, columns: Axis, depths: AxisRun,
    panel: int,
) -> str:  # fmt: skip
    """Why two factors are not multiplied by registers of whole tiles; "" where they are."""
    dot = dot_of_factors(left, right)
    if dot is None:
        return "no registers hold tiles of its factors' elements, or they are not read as they lie"
    tile, depth = dot.tile, depths.axis
    if not isinstance(rows.axis.extent, int) or not isinstance(depth.extent, int):
        return "its numbers of rows and of terms are to be known"
    if depth.extent % tile[2] or not isinstance(columns.extent, int) or columns.extent % panel:
        return f"its terms are no multiple of {tile[2]}, or its columns none of {panel}"
    if panel not in (tile[1], 2 * tile[1]):
        return f"a panel has {tile[1]} or {2 * tile[1]} columns, not {panel}"
    if not left.packed and not reads_terms(left, rows, depths):
        return "the factor with the rows has not its terms side by side"
    if right.packed:
        along = reads_depth(right, columns.name, depths)
        across = reads_vectors(right, columns.name, depths, tile[1])
        return "" if along or across else "the factor with the columns is no matrix"
    if len(depths.parts) > 1 or not _in_panels(right, columns.name, depth, dot):
        return f"the factor with the columns is not in panels with groups of {dot.group} terms"
    return ""


def reads_terms(left: TiledFactor, rows: AxisRun, depths: AxisRun) -> bool:
    """Whether the factor with the rows has its terms side by side where it lies."""
    return reads_rows(left, rows, depths) and reads_depth(left, rows.axis.name, depths)


def _in_panels(right: TiledFactor, columns: str, depth: Axis, dot: Rows) -> bool:
    """Whether the factor with the columns lies in panels of a tile's columns, one after the other.
    """
    access, width = right.access, dot.tile[1]
    if access is None or not reads_panels(right, columns, depth.name, width, dot.group):
        return False
    first = substitute(access.expression, {columns: symbol(_PANEL) * width, depth.name: 0})
    return coefficient(first, _PANEL) == width * depth.extent


def check_matrix(tiling: Tiling) -> None:
    """Raise InvalidIR for a schedule that doesn't fit the factors."""
    left, right, own = tiling.left, tiling.right, tiling.schedule
    reason = misfit(
        left, right, tiling.row_run, tiling.columns, tiling.depth_run, tiling.panel
    )
    if own.block_depth:
        reason = "all terms are summed up at once (block_depth)"
    dot = dot_of_factors(left, right)
    if dot is not None and own.tile_rows > 2 * dot.tile[0]:
        reason = reason or f"a tile has up to {2 * dot.tile[0]} rows (tile_rows)"
    if reason:
        raise InvalidIR(f"it can't be multiplied as matrices (products): {reason}",
                        op=tiling.products.member.compute)  # fmt: skip


def whole_tiles(tiling: Tiling) -> int:
    """The elements of the rows of a tile of sums that are packed, in whole registers."""
    dot = dot_of_factors(tiling.left, tiling.right)
    depth = tiling.depth.extent
    assert dot is not None and isinstance(depth, int)
    return -(-tiling.schedule.tile_rows // dot.tile[0]) * dot.tile[0] * depth


def pack_tiles(
    owner: ProductWriter, scope: VectorScope, rows: Stretch, depth: Stretch
) -> None:
    """Evaluate the factor with the rows over a block, as registers hold it."""
    tiling, emitter = owner.tiling, owner.emitter
    dot, count = dot_of_factors(tiling.left, tiling.right), tiling.schedule.tile_rows
    assert dot is not None and isinstance(tiling.depth.extent, int)
    (height, _, length), whole = dot.tile, whole_tiles(tiling)
    before = emitter.times(emitter.quotient(rows.lower, count, True), whole)
    row, term = number_in(tiling.row_run), number_in(tiling.depth_run)
    within = row % count
    target = row // count * whole + within // height * (height * tiling.depth.extent)
    target = target + within % height * length + term // length * (height * length)
    pack_rows(owner, scope, rows, depth, before, target + term % length)


def multiply(tile: SumTile, room: Value, column: Scalar) -> None:
    """Write the sums of the panel from `column` on into the tile's room."""
    emitter, tiling = tile.emitter, tile.tiling
    columns, depth = tile.right_lines([column]), tiling.depth.extent
    dot = dot_of_factors(tiling.left, tiling.right)
    assert dot is not None and isinstance(depth, int)
    step: Scalar
    pointer: Value
    if tiling.left.packed:
        number = emitter.quotient(
            emitter.minus(tile.row, tile.rows.lower), tiling.schedule.tile_rows, True
        )
        place = emitter.plus(tile.scope.names[LEFT], emitter.times(number, whole_tiles(tiling)))
        pointer, step = tile.owner.memory[LEFT], dot.tile[0] * depth
    else:
        rows, access = tile.left_lines(), tiling.left.access
        assert access is not None
        pointer, place = rows.pointer, rows.places[0]
        along = coefficient(access.expression, tiling.rows.name) or 0
        step = emitter.scalar(along, tile.scope)
    attributes: dict[str, A.Attribute] = {
        "rows": A.IntegerAttr(tile.count), "columns": A.IntegerAttr(tiling.panel),
    }  # fmt: skip
    if tiling.left.packed:
        attributes["in_tiles"] = A.BoolAttr(True)
    operands = (pointer, emitter.value(place), emitter.value(step), columns.pointer,
                emitter.value(columns.places[0]), room, emitter.value(depth))  # fmt: skip
    regions = (beside(tile, column, dot),) if tiling.schedule.woven else ()
    op = kernel.DotRowsOp(operands, (), attributes, regions, emitter.location)
    emitter.block.append(op)


__all__ = ["check_matrix", "dot_of_factors", "misfit", "multiply", "pack_tiles", "reads_terms",
           "whole_tiles"]  # fmt: skip
