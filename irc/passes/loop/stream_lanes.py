"""What lies along the lanes of vectors where blocks of rows walk over a stream: the rows, or the
columns of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irc.analysis.contraction import Side
from irc.dialects import loop
from irc.dialects.kernel.dots import Rows, rows_of
from irc.ir.core import Value
from irc.ir.symbols import Dim, floordiv, mod, symbol
from irc.ir.types import f32
from irc.passes.common.bodies import Body
from irc.passes.kernel.cpu.contraction.register_tiles import panel_vectors
from irc.passes.kernel.cpu.schedule import CpuSchedule
from irc.passes.kernel.gpu.stream_space import StreamSpace
from irc.passes.loop.stream_points import ROW, StreamPoints
from irc.passes.loop.stream_terms import not_rounded
from irc.target import Target

PANEL, LANE = symbol("panel"), symbol("lane")


class RowLanes(StreamPoints):
    """Rows are lanes all along, in panels that are as wide as a tile of products: nothing of the
    stream is laid out anew, and what is combined over it are vectors. Products are of f32, whose
    tiles have columns of the stream for rows."""

    def __init__(
        self, group: loop.GroupOp, stream: Sequence[Dim], rows: int, columns: int, target: Target
    ) -> None:
        self.panel = panel_vectors(target, target.lanes(f32)) * target.lanes(f32)
        super().__init__(group, stream, rows, columns, target, self.panel, 1)
        self.extents |= {"panel": self.rows // self.panel, "lane": self.panel}

    @property
    def line(self) -> Dim:
        return PANEL * self.panel + LANE

    def row_axes(self, *own: tuple[Any, Dim], stepped: bool = False) -> list[Any]:
        panels = self.rows // self.panel
        return self.axes((PANEL, panels), *own, (LANE, self.panel), stepped=stepped)

    def column_axes(self) -> tuple[list[Any], CpuSchedule]:
        *axes, lane = self.row_axes(stepped=True)
        axes += [loop.AxisAttr("column", "red", self.columns), lane]
        return axes, self.vectors("lane", ["panel", "lane", "column"])

    def place_of(self, point: Sequence[Dim], own: Sequence[Dim] = ()) -> list[Dim]:
        return [*point, PANEL, *own, LANE]

    def place_of_product(self, point: Sequence[Dim], own: Dim) -> list[Dim]:
        return [*point, own, self.line]

    def factor_place(self, point: Sequence[Dim], own: Sequence[Dim]) -> list[Dim]:
        return [*point, floordiv(ROW, self.panel), *own, mod(ROW, self.panel)]

    def factor(self, side: Side) -> Value:
        return not_rounded(side.value)

    def multiply(self, body: Body, row: Value, column: Value) -> Value:
        return body.op("arith.mulf", column, row)

    def product_rows(self, own: tuple[Any, Dim]) -> tuple[tuple[Any, Dim], tuple[Any, Dim]]:
        return own, (ROW, self.rows)

    def product_entries(self) -> dict[str, Any]:
        return {"products": "lanes", "group": 1, "tile_vectors": self.panel // self.lanes,
                "pack_left": False, "pack_right": False}  # fmt: skip


class ColumnLanes(StreamPoints):
    """Rows lie one after the other, and columns of the stream are lanes: what registers of whole
    tiles multiply (`kernel.dot_rows`) are rows of queries, and of powers, as they lie, and panels
    of keys and of values. Products are of 16 bits; columns and terms behind the last ones that a
    register has are zeros."""

    def __init__(
        self, group: loop.GroupOp, stream: Sequence[Dim], rows: int, columns: int, target: Target,
        dot: Rows,
    ) -> None:  # fmt: skip
        self.dot = dot
        height, _, terms = dot.tile
        super().__init__(group, stream, rows, columns, target, height, terms)

    @property
    def line(self) -> Dim:
        return ROW

    def row_axes(self, *own: tuple[Any, Dim], stepped: bool = False) -> list[Any]:
        return self.axes((ROW, self.rows), *own, stepped=stepped)

    def column_axes(self) -> tuple[list[Any], CpuSchedule]:
        axes = [*self.row_axes(stepped=True), loop.AxisAttr("column", "red", self.columns)]
        return axes, self.vectors("column", ["row", "column"])

    def place_of(self, point: Sequence[Dim], own: Sequence[Dim] = ()) -> list[Dim]:
        return [*point, ROW, *own]

    def place_of_product(self, point: Sequence[Dim], own: Dim) -> list[Dim]:
        return [*point, ROW, own]

    def factor_place(self, point: Sequence[Dim], own: Sequence[Dim]) -> list[Dim]:
        return [*point, ROW, *own]

    def factor(self, side: Side) -> Value:
        return side.narrow

    def multiply(self, body: Body, row: Value, column: Value) -> Value:
        wide = (body.op("arith.extf", value, type=f32) for value in (row, column))
        return body.op("arith.mulf", *wide)

    def product_rows(self, own: tuple[Any, Dim]) -> tuple[tuple[Any, Dim], tuple[Any, Dim]]:
        return (ROW, self.rows), own

    def product_entries(self) -> dict[str, Any]:
        return {"products": "matrix"}

    def padded(self, extent: Dim) -> Dim:
        assert isinstance(extent, int)
        whole = self.dot.tile[2]
        return -(-extent // whole) * whole


def whole_tiles(space: StreamSpace, target: Target) -> Rows | None:
    """How a target's registers of whole tiles multiply all products of a stream; None where they
    don't."""
    products = [contraction for _, contraction in space.products]
    elements = {side.narrow.type for c in products for side in (c.left, c.right)}
    dot = rows_of(elements.pop()) if len(elements) == 1 else None
    if dot is None or not set(dot.sets) <= set(target.features.sets):
        return None
    # What products have of axes that are not the stream: terms of one, and columns of another.
    own = [contraction.depth for _, contraction in space.scores]
    own += [each.contraction.columns for each in space.sums if each.contraction is not None]
    known = all(len(axes) == 1 and isinstance(axes[0].extent, int) for axes in own)
    return dot if known else None


__all__ = ["ColumnLanes", "RowLanes", "whole_tiles"]
