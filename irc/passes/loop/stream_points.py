"""The points of streamed products on a CPU: blocks of rows, steps of a stream, computes there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Block, Region, Value
from irc.ir.symbols import (
    Dim,
    ceildiv,
    dim_product,
    floordiv,
    known_divisible,
    mod,
    symbol,
)
from irc.ir.types import TensorType, contiguous_strides, f32
from irc.passes.common.bodies import Body, clean_block, make_compute, with_axes
from irc.passes.kernel.cpu.contraction.choose import schedule_tiles
from irc.passes.kernel.cpu.contraction.register_tiles import panel_vectors
from irc.passes.kernel.cpu.plan import plan_for_cpu
from irc.passes.kernel.cpu.schedule import CpuSchedule, read_schedule, vectors_along
from irc.passes.kernel.plan.plan import flatten
from irc.target import Target

BLOCK, STEP, ROW, COLUMN, WIDTH = (symbol(n) for n in ("block", "step", "row", "column", "width"))
PANEL, LANE = symbol("panel"), symbol("lane")

Axes = Sequence[tuple[Any, Dim]]


class StreamPoints:
    """The points of a group: blocks of its last row axis. Each has its rows in panels that are as
    wide as a tile of products, and steps of the stream, of some columns each."""

    def __init__(
        self, group: loop.GroupOp, stream: Sequence[Dim], rows: int, columns: int, target: Target
    ) -> None:
        self.group, self.stream = group, stream
        # Points are blocks: no product has points of its own.
        self.target = attrs.evolve(target, threads=1)
        self.lanes = target.lanes(f32)
        *batch, last = group.axis_list
        self.last = last.extent
        self.panel = panel_vectors(target, self.lanes) * self.lanes
        self.rows = even_part(last.extent, rows, self.panel)
        self.points: list[tuple[Any, Dim]] = [(symbol(a.name), a.extent) for a in batch]
        self.points.append((BLOCK, ceildiv(last.extent, self.rows)))
        #: A row of a block, and of all. Products have their rows in panels, as tiles read them.
        self.line = PANEL * self.panel + LANE
        self.row = BLOCK * self.rows + self.line
        self.row_places: list[Dim] = [*(place for place, _ in self.points[:-1]), self.row]
        self._split_stream(columns)
        self.extents: dict[str, Dim] = {place.name: size for place, size in self.points}
        self.extents |= {"step": self.steps, "row": self.rows, "column": self.columns}
        self.extents |= {"panel": self.rows // self.panel, "lane": self.panel}
        self.here: list[Dim] = [place for place, _ in self.points]
        self.stepped: list[Dim] = [*self.here, STEP]
        self.outside = [*(place.name for place, _ in self.points), "step"]

    def _split_stream(self, columns: int) -> None:
        """Steps of the stream, and where its axes are at a column of one."""
        *outer, inner = self.stream
        self.columns = even_part(inner, columns, 1)
        turns = ceildiv(inner, self.columns)
        self.steps = dim_product([*outer, turns])
        self.turns = turns
        place = mod(STEP, turns) if outer else STEP
        self.place: list[Dim] = [place * self.columns + COLUMN]
        if outer:
            self.place.insert(0, floordiv(STEP, turns))

    # -- structure

    def axes(self, *own: tuple[Any, Dim], red: Axes = (), stepped: bool = False) -> list[Any]:
        """Axes of what is computed at a point."""
        outer = [*self.points, (STEP, self.steps)] if stepped else self.points
        par = [loop.AxisAttr(place.name, "par", size) for place, size in (*outer, *own)]
        return par + [loop.AxisAttr(place.name, "red", size) for place, size in red]

    def row_axes(self, *own: tuple[Any, Dim], stepped: bool = False) -> list[Any]:
        """Axes of what is computed for each row of a point, in panels."""
        panels, lanes = self.rows // self.panel, self.panel
        return self.axes((PANEL, panels), *own, (LANE, lanes), stepped=stepped)

    def in_panels(self, point: Sequence[Dim], own: Sequence[Dim]) -> list[Dim]:
        """Where the axis of rows reads something that is in panels."""
        return [*point, floordiv(ROW, self.panel), *own, mod(ROW, self.panel)]

    def group_of(
        self, block: Block, axes: Sequence[Any], schedule: CpuSchedule, operands: Sequence[Value],
        types: Sequence[Type],
    ) -> loop.GroupOp:  # fmt: skip
        entries: dict[str, A.Attribute] = {
            "axes": A.ArrayAttr(axes), "schedule": schedule.to_attribute(),
        }  # fmt: skip
        return loop.GroupOp(operands, types, entries, (Region([block]),), self.group.location)

    def compute(
        self, builder: Builder, axes: Sequence[Any], outputs: Sequence[loop.ResultAttr],
        types: Sequence[Type], body: Body, schedule: CpuSchedule | None,
        inits: Sequence[Value] = (),
    ) -> loop.ComputeOp:  # fmt: skip
        compute = make_compute(
            builder, A.ArrayAttr(axes), list(outputs), list(types), body, inits, self.group
        )
        clean_block(compute.block)
        if schedule is not None:
            compute.attributes["schedule"] = schedule.to_attribute()
        return compute

    def map(
        self, builder: Builder, axes: Sequence[Any], values: Sequence[Value], body: Body
    ) -> list[Value]:
        """Arrays of values, with the rows innermost."""
        sizes = [axis.extent for axis in axes]
        types = [array(value.type, sizes) for value in values]
        body.finish(values)
        own = axes[len(self.points) :]
        order = [axis.name for axis in own if axis.name != "step"]
        schedule = self.vectors("lane", order)
        return list(self.compute(builder, axes, [loop.MAP] * len(values), types, body,
                                  schedule).results)  # fmt: skip

    def vectors(self, name: str, order: Sequence[str]) -> CpuSchedule:
        size = self.extents[name]
        assert isinstance(size, int)
        return vectors_along(name, size, self.lanes, order)

    def row_mask(self, body: Body) -> Value | None:
        """Whether there is a row; None where all are there."""
        if known_divisible(self.last, self.rows):
            return None
        return body.compare("slt", body.index(self.row), body.index(self.last))

    def column_mask(
        self, body: Body, place: Dim, positions: Sequence[Value] = ()
    ) -> Value | None:
        """Whether there is a column; None where all are there."""
        inner = self.stream[-1]
        if known_divisible(inner, self.columns):
            return None
        return body.compare("slt", body.index(place, positions), body.index(inner))

    def product(self, builder: Builder, body: Body, rows: tuple[Any, Dim], depth: Axes) -> Value:
        """Sums of products, of a step, that have the lanes of vectors along the rows."""
        own = (rows, (ROW, self.rows))
        axes = self.axes(*own, red=depth, stepped=True)
        output = loop.ResultAttr("reduce", "sum", f32, None)
        type_ = array(f32, [axis.extent for axis in axes if axis.kind == "par"])
        compute = self.compute(builder, axes, [output], [type_], body, None)
        alone = make_compute(
            builder,
            A.ArrayAttr(axes[len(self.stepped) :]),
            [output],
            [array(f32, [size for _, size in own])],
            with_axes(compute, dict.fromkeys(self.outside, 0), self.extents),
        )  # fmt: skip
        preset = CpuSchedule(
            products="lanes", group=1, tile_vectors=self.panel // self.lanes, pack_left=False,
            pack_right=False, pack_ahead=0, row_axis=rows[0].name, vector_axis="row",
            outer_rows=[], depth_order=[place.name for place, _ in depth], point_rows=0,
            point_columns=0,
        )  # fmt: skip
        alone.attributes["schedule"] = preset.to_attribute()
        reason = schedule_tiles(alone, plan_for_cpu(flatten(alone)), self.target)
        assert reason is None, reason
        schedule = read_schedule(alone.schedule, alone)
        alone.erase()
        schedule.collapse = []
        del schedule.outer
        compute.attributes["schedule"] = schedule.to_attribute()
        return compute.results[0]


def array(element: Type, sizes: Sequence[Dim]) -> TensorType:
    """A row-major array."""
    return TensorType(tuple(sizes), element, contiguous_strides(sizes))


def even_part(extent: Dim, most: int, unit: int) -> int:
    """About so many points of an extent, a multiple of a unit: all of few, and of others a number
    from a half to twice as many, parts of which cover the extent with the least left over."""
    most = max(most // unit, 1) * unit
    if not isinstance(extent, int):
        return most
    if extent <= most:
        return max(-(-extent // unit) * unit, unit)
    least = -(-most // (2 * unit)) * unit
    return min(range(least, 2 * most + 1, unit),
               key=lambda n: (-(-extent // n) * n, max(n / most, most / n)))  # fmt: skip


__all__ = ["BLOCK", "COLUMN", "LANE", "PANEL", "ROW", "STEP", "WIDTH", "Axes", "StreamPoints",
           "array", "even_part"]  # fmt: skip
