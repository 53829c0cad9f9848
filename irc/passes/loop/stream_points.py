"""The points of streamed products on a CPU: blocks of rows, steps of a stream, computes there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import attrs

from irc.analysis.contraction import Contraction, Side
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
from irc.passes.kernel.cpu.schedule import CpuSchedule, vectors_along
from irc.passes.loop.stage_products import stage_schedule
from irc.target import Target

BLOCK, STEP, ROW, COLUMN, WIDTH = (symbol(n) for n in ("block", "step", "row", "column", "width"))

Axes = Sequence[tuple[Any, Dim]]


class StreamPoints(ABC):
    """The points of a group: blocks of its last row axis, and steps of the stream, of some columns
    each. What lies along the lanes of vectors is a subclass's choice.

    rows, columns: about as many as a block and a step have, in whole `row_unit`, `column_unit`.
    """

    def __init__(
        self, group: loop.GroupOp, stream: Sequence[Dim], rows: int, columns: int, target: Target,
        row_unit: int, column_unit: int,
    ) -> None:  # fmt: skip
        self.group, self.stream = group, stream
        # Points are blocks: no product has points of its own.
        self.target = attrs.evolve(target, threads=1)
        self.lanes = target.lanes(f32)
        *batch, last = group.axis_list
        self.last = last.extent
        self.rows = even_part(last.extent, rows, row_unit)
        self.points: list[tuple[Any, Dim]] = [(symbol(a.name), a.extent) for a in batch]
        self.points.append((BLOCK, ceildiv(last.extent, self.rows)))
        #: A row of all, by one of a block.
        self.row = BLOCK * self.rows + self.line
        self.row_places: list[Dim] = [*(place for place, _ in self.points[:-1]), self.row]
        self._split_stream(columns, column_unit)
        self.extents: dict[str, Dim] = {place.name: size for place, size in self.points}
        self.extents |= {"step": self.steps, "row": self.rows, "column": self.columns}
        self.here: list[Dim] = [place for place, _ in self.points]
        self.stepped: list[Dim] = [*self.here, STEP]
        self.outside = [*(place.name for place, _ in self.points), "step"]

    def _split_stream(self, columns: int, unit: int) -> None:
        """Steps of the stream, and where its axes are at a column of one."""
        *outer, inner = self.stream
        self.columns = even_part(inner, columns, unit)
        turns = ceildiv(inner, self.columns)
        self.steps = dim_product([*outer, turns])
        self.turns = turns
        place = mod(STEP, turns) if outer else STEP
        self.place: list[Dim] = [place * self.columns + COLUMN]
        if outer:
            self.place.insert(0, floordiv(STEP, turns))

    # -- what a subclass decides

    @property
    @abstractmethod
    def line(self) -> Dim:
        """A row of a block, by the axes of what is computed for each row."""

    @abstractmethod
    def row_axes(self, *own: tuple[Any, Dim], stepped: bool = False) -> list[Any]:
        """Axes of what is computed for each row of a point; vectors run along the last one."""

    @abstractmethod
    def column_axes(self) -> tuple[list[Any], CpuSchedule]:
        """Axes of what a step combines over its columns, for each row, and its loops."""

    @abstractmethod
    def place_of(self, point: Sequence[Dim], own: Sequence[Dim] = ()) -> list[Dim]:
        """Where arrays of `row_axes` are read there."""

    @abstractmethod
    def place_of_product(self, point: Sequence[Dim], own: Dim) -> list[Dim]:
        """Where sums of products are read there."""

    @abstractmethod
    def factor_place(self, point: Sequence[Dim], own: Sequence[Dim]) -> list[Dim]:
        """Where arrays of `row_axes` are read by a product, whose axis of rows is one."""

    @abstractmethod
    def factor(self, side: Side) -> Value:
        """What is multiplied of a side of a contraction, in its own body."""

    @abstractmethod
    def multiply(self, body: Body, row: Value, column: Value) -> Value:
        """The product of what rows have and what the stream has."""

    @abstractmethod
    def product_rows(self, own: tuple[Any, Dim]) -> tuple[tuple[Any, Dim], tuple[Any, Dim]]:
        """The axes of a product's rows and of its columns: those of the block's rows and another
        one."""

    @abstractmethod
    def product_entries(self) -> dict[str, Any]:
        """What a product's schedule has in any case."""

    def padded(self, extent: Dim) -> Dim:
        """How many columns or terms a product has of an extent of the program."""
        return extent

    def stored_axes(self, *own: tuple[Any, Dim]) -> tuple[list[Any], CpuSchedule]:
        """Axes of what is stored for each row behind a walk, and its loops, where rows lie one
        after the other."""
        axes, names = self.row_axes(*own), [place.name for place, _ in own]
        inside = [axis.name for axis in axes[len(self.points) :] if axis.name not in names]
        order = [*inside, *names]
        return axes, self.vectors(order[-1], order)

    # -- structure

    def axes(self, *own: tuple[Any, Dim], red: Axes = (), stepped: bool = False) -> list[Any]:
        """Axes of what is computed at a point."""
        outer = [*self.points, (STEP, self.steps)] if stepped else self.points
        par = [loop.AxisAttr(place.name, "par", size) for place, size in (*outer, *own)]
        return par + [loop.AxisAttr(place.name, "red", size) for place, size in red]

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
        """Arrays of values, in vectors along the last axis."""
        sizes = [axis.extent for axis in axes]
        types = [array(value.type, sizes) for value in values]
        body.finish(values)
        own = axes[len(self.points) :]
        order = [axis.name for axis in own if axis.name != "step"]
        schedule = self.vectors(order[-1], order)
        return list(self.compute(builder, axes, [loop.MAP] * len(values), types, body,
                                  schedule).results)  # fmt: skip

    def vectors(self, name: str, order: Sequence[str]) -> CpuSchedule:
        """Loops with vectors along an axis."""
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

    def depth_of(self, contraction: Contraction) -> list[tuple[Any, Dim]]:
        """The axes of a product's terms, by names of their own."""
        return [(symbol(f"depth{k}"), self.padded(axis.extent))
                for k, axis in enumerate(contraction.depth)]  # fmt: skip

    def product(
        self, builder: Builder, body: Body, row: Value, column: Value, own: tuple[Any, Dim],
        depth: Axes,
    ) -> Value:  # fmt: skip
        """Sums of products, of a step: of what rows have, and the stream at another axis."""
        body.finish([self.multiply(body, row, column)])
        rows, columns = self.product_rows(own)
        axes = self.axes(rows, columns, red=depth, stepped=True)
        output = loop.ResultAttr("reduce", "sum", f32, None)
        type_ = array(f32, [axis.extent for axis in axes if axis.kind == "par"])
        compute = self.compute(builder, axes, [output], [type_], body, None)

        def alone(schedule: CpuSchedule) -> loop.ComputeOp:
            single = make_compute(
                builder,
                A.ArrayAttr(axes[len(self.stepped) :]),
                [output],
                [array(f32, [rows[1], columns[1]])],
                with_axes(compute, dict.fromkeys(self.outside, 0), self.extents),
            )  # fmt: skip
            single.attributes["schedule"] = schedule.to_attribute()
            return single

        schedule = stage_schedule(
            alone, rows[0].name, columns[0].name, [place.name for place, _ in depth], self.target,
            **self.product_entries(),
        )  # fmt: skip
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


__all__ = ["BLOCK", "COLUMN", "ROW", "STEP", "WIDTH", "Axes", "StreamPoints", "array", "even_part"]
