"""Sums of products by registers of whole tiles: `products = "matrix"`.

The factor with the rows is read where it lies, its terms side by side; the one with the columns
lies, or is packed, in panels in which groups of terms of a column are side by side: of bf16,
`w[floordiv(n, 32), floordiv(k, 2), mod(n, 32), mod(k, 2)]`. The sums of a tile, of all of the
depth, go into the room of the tile's sums, from where what follows takes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.dialects import kernel
from irc.dialects.kernel.dots import Rows, rows_of
from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import coefficient
from irc.passes.kernel.cpu.contraction.runs import AxisRun
from irc.passes.kernel.cpu.contraction.tiling import (
    TiledFactor,
    Tiling,
    reads_depth,
    reads_panels,
    reads_rows,
)
from irc.passes.kernel.cpu.emit import Scalar
from irc.passes.kernel.cpu.plan import Axis

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.contraction.tile import SumTile


def dot_of_factors(left: TiledFactor, right: TiledFactor) -> Rows | None:
    """What multiplies two factors that are read as they lie; None for nothing."""
    elements = [
        None if f.access is None or f.access.storage is None else f.access.storage.element
        for f in (left, right)
    ]
    if elements[0] is None or elements[0] is not elements[1]:
        return None
    return rows_of(elements[0])


def misfit(
    left: TiledFactor, right: TiledFactor, rows: AxisRun, columns: Axis, depths: AxisRun,
    panel: int, packed: bool,
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
    if not (reads_rows(left, rows, depths) and reads_depth(left, rows.axis.name, depths)):
        return "the factor with the rows has not its terms side by side"
    if packed:
        along = reads_depth(right, columns.name, depths)
        return "" if along else "the factor with the columns has not its terms side by side"
    if len(depths.parts) > 1 or not reads_panels(right, columns.name, depth.name, panel, dot.group):
        return f"the factor with the columns is not in panels with groups of {dot.group} terms"
    return ""


def check_matrix(tiling: Tiling) -> None:
    """Raise InvalidIR for a schedule that doesn't fit the factors."""
    left, right, own = tiling.left, tiling.right, tiling.schedule
    reason = misfit(left, right, tiling.row_run, tiling.columns, tiling.depth_run, tiling.panel,
                    right.packed)  # fmt: skip
    if left.packed or own.block_depth:
        reason = "the rows are read where they lie, all terms at once (pack_left, block_depth)"
    dot = dot_of_factors(left, right)
    if dot is not None and own.tile_rows > 2 * dot.tile[0]:
        reason = reason or f"a tile has up to {2 * dot.tile[0]} rows (tile_rows)"
    if reason:
        raise InvalidIR(f"it can't be multiplied as matrices (products): {reason}",
                        op=tiling.products.member.compute)  # fmt: skip


def multiply(tile: SumTile, room: Value, column: Scalar) -> None:
    """Write the sums of the panel from `column` on into the tile's room."""
    emitter, tiling = tile.emitter, tile.tiling
    rows, columns = tile.left_lines(), tile.right_lines([column])
    access = tiling.left.access
    assert access is not None
    step = emitter.scalar(coefficient(access.expression, tiling.rows.name) or 0, tile.scope)
    depth = emitter.minus(tile.depth.upper, tile.depth.lower)
    emitter.effect(
        kernel.DotRowsOp,
        (rows.pointer, emitter.value(rows.places[0]), emitter.value(step), columns.pointer,
         emitter.value(columns.places[0]), room, emitter.value(depth)),
        {"rows": A.IntegerAttr(tile.count), "columns": A.IntegerAttr(tiling.panel)},
    )  # fmt: skip


__all__ = ["check_matrix", "dot_of_factors", "misfit", "multiply"]
