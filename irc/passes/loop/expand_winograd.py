"""The pass `expand-winograd`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from irc.analysis.loop import estimate
from irc.dialects import func, graph, loop
from irc.dialects.graph import winograd
from irc.dialects.graph.winograd import TileLine, TilePhase, WinogradShape, coefficients
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, ceildiv, symbol
from irc.ir.types import TensorType, f32, i1
from irc.passes.common.bodies import SEGMENTS, Body, make_compute
from irc.passes.kernel.cpu.schedule import CpuSchedule
from irc.target import Target, target_of

BLOCK, PANEL, TILES, PART = symbol("block"), symbol("panel"), symbol("tile"), symbol("part")
CHANNEL, COLUMN, DOWN, RIGHT = symbol("c"), symbol("n"), symbol("down"), symbol("right")


@register_pass
class ExpandWinograd(Pass):
    """Makes each `graph.winograd_conv` three computes in a group: the image's transform, a product
    for each of a tile's parts, 36 where it has 4x4 results of 3x3 weights, and the results' transform with what follows it.

    The group's points are blocks of tiles, and inside the panels of channels out: what the
    computes hand on for one of them stays in the caches (`irc.passes.kernel.cpu.stages`).

    vector_bits: the width of the vector registers (0: the target's).

    Before:
        %y = graph.winograd_conv %x, %u, %b {activation = "relu", ...} : (...) -> ...
    After:
        %y = loop.group (block: 28) schedule #loop.schedule<cpu, ...> {
          %v = loop.compute par(block: 28, part: 36, tile: 28, c: 64) -> map {...}
          %z = loop.group (block: 28, panel: 2) {
            %m = loop.compute par(block: 28, panel: 2, part: 36, tile: 28, n: 32) red(c: 64) -> reduce(sum, f32) {...}
            %s = loop.compute par(block: 28, panel: 2, tile: 28, n: 32, down: 4, right: 4) -> scatter(set, [...]) {...}
            loop.yield %s }
          loop.yield %z }
    """  # noqa: E501

    name = "expand-winograd"
    summary = "make convolutions in Winograd's form groups of computes"
    preserves = "real"
    asks_target = True
    vector_bits: int = 0

    def run(self, op: Operation, context: PassContext) -> None:
        target = target_of(context)
        functions = [o for o in op.regions[0].blocks[0].ops if isinstance(o, func.FuncOp)]
        for conv in [o for function in functions for o in function.block.ops]:
            if isinstance(conv, graph.WinogradConv):
                expanded = _Winograd(conv, self.vector_bits or target.vector_bits, target).run()
                expanded.name_hint = conv.value.name_hint
                conv.value.replace_all_uses_with(expanded)
                conv.erase()
                context.count("expanded")


def tiles_of_block(count: Dim, rows: Iterable[int], most: int) -> tuple[int, int]:
    """How many tiles a block has, about as many as `most`, and how many of them the innermost loop
    takes: those that compute the fewest tiles that there aren't, in the largest steps."""
    total, sizes = estimate(count), range(max(most * 2 // 3, 1), most * 4 // 3 + 1)
    every = [(size, step) for step in rows for size in sizes if size % step == 0]
    return min(every, key=lambda e: (-(-total // e[0]) * e[0], -e[1], abs(e[0] - most)))


class _Winograd:
    """The computes of one convolution."""

    def __init__(self, conv: graph.WinogradConv, bits: int, target: Target) -> None:
        self.conv, self.bits, self.target = conv, bits, target
        source: Any = conv.source.type
        self.down, self.right = down, right = conv.lines
        batch, channels, high, wide = source.shape
        self.shape = shape = WinogradShape(
            batch=batch, height=high, width=wide, channels=channels,
            channels_out=conv.value.type.shape[1], bits=bits,  # type: ignore[arg-type]
            panel=conv.weight.type.shape[-1],  # type: ignore[arg-type]
            padding=(conv.padding[0], conv.padding[1]), down=down, right=right,
        )  # fmt: skip
        most = self._most_rows()
        self.tiles, self.rows = tiles_of_block(
            shape.tile_count, range(most // 2, most + 1), winograd.FIGURES.tiles
        )
        self.blocks = ceildiv(shape.tile_count, self.tiles)
        self.tile = BLOCK * self.tiles + TILES
        high, wide = shape.tile_counts
        self.image = self.tile // wide // high
        #: The first result of a tile.
        self.top, self.left = self.tile // wide % high * down.tile, self.tile % wide * right.tile

    def run(self) -> Value:
        """The result of the group, which stands before the operation."""
        conv = self.conv
        outer = Builder.before(conv)
        init = outer.value(graph.Undefined, result_types=conv.value.type)
        return self._group(outer, init)

    def _most_rows(self) -> int:
        """Rows whose sums fit into the registers, with a panel's vectors and a row's element."""
        features = self.target.features
        registers = 32 if self.bits == 512 or not features.is_x86 else 16
        return max((registers - 1) // self.shape.vectors - 1, 1)

    # -- structure

    def _axes(self, *axes: tuple[Any, Dim], role: str = "par") -> list[loop.AxisAttr]:
        return [loop.AxisAttr(axis.name, role, extent) for axis, extent in axes]

    def _group(self, outer: Builder, init: Value) -> Value:
        """The group of all three computes."""
        shape = self.shape
        blocks, panels = (BLOCK, self.blocks), (PANEL, shape.panels)
        whole, inside = Block(), Block()
        image = self._image(Builder.at_end(whole), blocks)
        sums = self._sums(Builder.at_end(inside), image, [blocks, panels])
        result = self._result(Builder.at_end(inside), sums, init, [blocks, panels])
        inner = self._grouped(inside, result, [blocks, panels], CpuSchedule(outer=[PANEL.name]))
        whole.append(inner)
        several = [BLOCK.name] if self.blocks != 1 else []
        top = CpuSchedule(collapse=[], outer=several, scratch=0, vector_axis="")
        group = self._grouped(whole, inner.results[0], [blocks], top)
        outer.insert(group)
        return group.results[0]

    def _grouped(
        self, block: Block, value: Value, axes: Sequence[tuple[Any, Dim]], schedule: CpuSchedule
    ) -> loop.GroupOp:
        segments = {SEGMENTS: A.DenseIntsAttr((1, 0, 0))}
        block.append(loop.YieldOp([value], (), segments, (), self.conv.location))
        entries: dict[str, A.Attribute] = {
            "axes": A.ArrayAttr(self._axes(*axes)), "schedule": schedule.to_attribute(),
        }  # fmt: skip
        return loop.GroupOp((), [value.type], entries, (Region([block]),), self.conv.location)

    def _compute(
        self, builder: Builder, axes: Sequence[loop.AxisAttr], output: loop.ResultAttr,
        type_: Any, body: Body, schedule: CpuSchedule, inits: Sequence[Value] = (),
    ) -> Value:  # fmt: skip
        compute = make_compute(
            builder, A.ArrayAttr(axes), [output], [type_], body, inits, self.conv
        )
        compute.attributes["schedule"] = schedule.to_attribute()
        return compute.results[0]

    def _vectors(self, axis: Any, order: Sequence[Any], written: Sequence[Any]) -> CpuSchedule:
        return CpuSchedule(
            collapse=[], vector_axis=axis.name, lanes=self.shape.lanes, copies=1, tail="mask",
            spans=1, order=[a.name for a in (*order, *written)],
            written_out=[a.name for a in written],
        )  # fmt: skip

    def _parts(self, leading: Sequence[Dim], row: int) -> TensorType:
        """An array of parts of a block's tiles, each part set apart for other sets of the cache."""
        shape = (*leading, self.shape.products, self.tiles, row)
        part = self.tiles * row + winograd.FIGURES.skew
        strides: list[Dim] = [part, row, 1]
        step: Dim = part * self.shape.products
        for size in reversed(leading):
            strides.insert(0, step)
            step = step * size
        return TensorType(shape, f32, strides)

    # -- the computes

    def _image(self, builder: Builder, blocks: tuple[Any, Dim]) -> Value:
        """B' d B of each tile."""
        shape, body, down, right = self.shape, Body(), self.down, self.right
        top, left = self.top * down.stride, self.left * right.stride
        rows = [self._inside(body, top, i - shape.padding[0], shape.height)
                for i in range(down.reads)]  # fmt: skip
        columns = [self._inside(body, left, j - shape.padding[1], shape.width)
                   for j in range(right.reads)]  # fmt: skip

        def element(i: int, j: int) -> Value:
            place = [self.image, CHANNEL, top + (i - shape.padding[0]),
                     left + (j - shape.padding[1])]  # fmt: skip
            mask = self._all(body, [self._is_tile(body), rows[i], columns[j]])
            return self._read(body, self.conv.source, place, mask)

        read = [[element(i, j) for i in range(down.reads)] for j in range(right.reads)]
        parts = twice(read, functools.partial(image_line, body, down),
                      functools.partial(image_line, body, right))  # fmt: skip
        body.finish([chosen(body, PART, [value for row in parts for value in row])])
        type_ = self._parts([blocks[1]], shape.image_row)
        type_ = type_.with_shape((*type_.shape[:-1], shape.channels), type_.strides)
        axes = self._axes(
            blocks, (PART, shape.products), (TILES, self.tiles), (CHANNEL, shape.channels)
        )
        schedule = self._vectors(CHANNEL, [TILES, CHANNEL], [PART])
        if winograd.FIGURES.ahead:
            schedule.fetch_axis, schedule.fetch_points = TILES.name, winograd.FIGURES.ahead
        return self._compute(builder, axes, loop.MAP, type_, body, schedule)

    def _sums(self, builder: Builder, image: Value, points: Sequence[tuple[Any, Dim]]) -> Value:
        """A product for each part."""
        shape, body = self.shape, Body()
        left = body.read(image, [BLOCK, PART, TILES, CHANNEL])
        right = body.read(self.conv.weight, [PANEL, PART, CHANNEL, COLUMN])
        body.finish([body.op("arith.mulf", left, right)])
        axes = self._axes(
            *points, (PART, shape.products), (TILES, self.tiles), (COLUMN, shape.panel)
        ) + self._axes((CHANNEL, shape.channels), role="red")
        figures = self.target.features
        schedule = CpuSchedule(
            collapse=[], vector_axis=COLUMN.name, lanes=shape.lanes, products="lanes",
            tile_rows=self.rows, tile_vectors=shape.vectors, row_axis=TILES.name, outer_rows=[],
            depth_order=[CHANNEL.name], point_rows=0, point_columns=0, block_rows=0,
            block_depth=0, inner="rows", pack_left=False, pack_right=False, pack_ahead=0,
            rows_ahead=0, group=1, offset=0, terms=figures.unrolled_terms, in_turn=False,
            woven=False, skew=figures.packed_skew,
        )  # fmt: skip
        output = loop.ResultAttr("reduce", "sum", f32, None)
        type_ = self._parts([size for _, size in points], shape.panel)
        return self._compute(builder, axes, output, type_, body, schedule)

    def _result(
        self, builder: Builder, sums: Value, init: Value, points: Sequence[tuple[Any, Dim]]
    ) -> Value:
        """A' m A of each tile, and what follows it."""
        shape, body, down, right = self.shape, Body(), self.down, self.right
        parts = [
            [body.read(sums, [BLOCK, PANEL, i * right.products + j, TILES, COLUMN])
             for i in range(down.products)] for j in range(right.products)
        ]  # fmt: skip
        lines = twice(parts, functools.partial(result_line, body, down),
                      functools.partial(result_line, body, right))  # fmt: skip
        columns = [chosen(body, DOWN, list(column)) for column in zip(*lines, strict=True)]
        value = chosen(body, RIGHT, columns)
        high, wide = shape.out_sizes
        channel = PANEL * shape.panel + COLUMN
        whole = None
        if shape.channels_out % shape.panel:
            whole = body.compare("slt", body.index(channel), body.index(shape.channels_out))
        mask = self._all(body, [
            self._is_tile(body), self._below(body, self.top, DOWN, high, down.tile),
            self._below(body, self.left, RIGHT, wide, right.tile), whole,
        ])  # fmt: skip
        place = [self.image, channel, self.top + DOWN, self.left + RIGHT]
        if self.conv.bias is not None:
            value = body.op(
                "arith.addf", value, self._read(body, self.conv.bias, [channel], whole)
            )
        if self.conv.other is not None:
            value = body.op("arith.addf", value, self._read(body, self.conv.other, place, mask))
        scalars = [s.value for s in self.conv.scalars or ()]
        value = activated(body, value, self.conv.activation, scalars)
        if init.type.element is not f32:  # type: ignore[attr-defined]
            value = body.op("arith.truncf", value, type=init.type.element)  # type: ignore[attr-defined]
        body.finish([value], masks=[] if mask is None else [mask])
        output = loop.ResultAttr("scatter", "set", None, A.DimsAttr(place))
        axes = self._axes(
            *points, (TILES, self.tiles), (COLUMN, shape.panel), (DOWN, down.tile),
            (RIGHT, right.tile),
        )  # fmt: skip
        schedule = self._vectors(COLUMN, [TILES, COLUMN], [DOWN, RIGHT])
        return self._compute(builder, axes, output, init.type, body, schedule, [init])

    def _read(
        self, body: Body, source: Value, place: Sequence[Dim], mask: Value | None
    ) -> Value:  # fmt: skip
        """An element as f32, zero where a mask is not."""
        element: Any = source.type.element  # type: ignore[attr-defined]
        other = None if mask is None else body.constant(0, element)
        value = body.read(source, place, mask=mask, other=other)
        return value if element is f32 else body.op("arith.extf", value, type=f32)

    # -- conditions

    def _is_tile(self, body: Body) -> Value | None:
        """Whether a block's tile is one: the last block may have fewer."""
        count = self.shape.tile_count
        if isinstance(count, int) and count % self.tiles == 0:
            return None
        return body.compare("slt", body.index(self.tile), body.index(count))

    def _inside(self, body: Body, start: Dim, shift: int, size: Dim) -> Value | None:
        """Whether 0 <= start + shift < size, where start is a tile's."""
        place = body.index(start + shift)
        first = None if shift >= 0 else body.compare("sge", place, body.index(0))
        last = body.compare("slt", place, body.index(size))
        return body.both(first, last)

    def _below(self, body: Body, start: Dim, axis: Any, size: Dim, tile: int) -> Value | None:
        if isinstance(size, int) and size % tile == 0:
            return None
        return body.compare("slt", body.index(start + axis), body.index(size))

    def _all(self, body: Body, conditions: Sequence[Value | None]) -> Value | None:
        return functools.reduce(body.both, conditions, None)


# -- transforms

Transform = Callable[[Sequence[Value]], list[Value]]


def twice(elements: Sequence[Sequence[Value]], down: Transform, right: Transform) -> list[Any]:
    """The transform of each column of elements, then of each row of what that gives: rows."""
    columns = [down(column) for column in elements]
    return [right(row) for row in zip(*columns, strict=True)]


def image_line(body: Body, line: TileLine, d: Sequence[Value]) -> list[Value]:
    """B' d, phase by phase."""
    phases = (_image_phase(body, phase, [d[p] for p in phase.places]) for phase in line.phases)
    return [value for values in phases for value in values]


def _image_phase(body: Body, phase: TilePhase, d: Sequence[Value]) -> list[Value]:
    """At +-p the polynomial (x +- p) q, q of the other points: its sum for d one further, plus and
    minus p times that for d."""
    if phase.plain:
        return list(d)
    points, between = phase.points, []
    for point in phase.pairs:
        others = [q for q in points if abs(q) != point]
        low, high = (_polynomial(body, others, d[first:]) for first in (0, 1))
        between += [_fma(body, point, low, high), _fma(body, -point, low, high)]
    zero = [_polynomial(body, points[1:], d)] if phase.has_zero else []
    return [*zero, *between, _polynomial(body, points, d)]


def _polynomial(body: Body, roots: Sequence[Any], d: Sequence[Value]) -> Value:
    """The sum of d times the coefficients of the polynomial that has these roots and is 1 x^n."""
    factors = coefficients(roots, len(roots) + 1)
    total = d[len(roots)]
    for factor, value in zip(reversed(factors[:-1]), reversed(d[: len(roots)]), strict=True):
        if factor:
            total = _fma(body, factor, value, total)
    return total


def result_line(body: Body, line: TileLine, m: Sequence[Value]) -> list[Value]:
    """A' m: the sums of all phases."""
    results: list[Value] = []
    for phase in line.phases:
        more = _result_phase(body, phase, m[: phase.products])
        m = m[phase.products :]
        results = [
            body.op("arith.addf", a, b) for a, b in zip(results, more, strict=True)
        ] if results else more  # fmt: skip
    return results


def _result_phase(body: Body, phase: TilePhase, m: Sequence[Value]) -> list[Value]:
    """Sums of the pairs at +-p for even powers, differences for odd ones."""
    def add(a: Value, b: Value) -> Value:
        return body.op("arith.addf", a, b)

    if phase.taps == 1:
        return list(m)
    if phase.tile == 1:
        return [functools.reduce(add, m)]
    paired = m[int(phase.has_zero) : -1]
    pairs = list(zip(phase.pairs, paired[::2], paired[1::2], strict=True))
    even = [(point, add(plus, minus)) for point, plus, minus in pairs]
    odd = [(point, body.op("arith.subf", plus, minus)) for point, plus, minus in pairs]
    results = []
    for power in range(phase.tile):
        total = m[-1] if power == phase.tile - 1 else None
        for point, value in reversed(odd if power % 2 else even):
            total = _added(body, point**power, value, total)
        assert total is not None
        results.append(add(m[0], total) if phase.has_zero and not power else total)
    return results


def _added(body: Body, factor: Any, value: Value, total: Value | None) -> Value:
    """`total` and a factor's product, with as few operations as that takes."""
    if total is not None:
        return _fma(body, factor, value, total)
    return body.op("arith.mulf", body.constant(factor, f32), value) if factor != 1 else value


def _fma(body: Body, factor: Any, a: Value, b: Value) -> Value:
    if factor == 1:
        return body.op("arith.addf", a, b)
    if factor == -1:
        return body.op("arith.subf", b, a)
    return body.op("math.fma", body.constant(factor, f32), a, b)


def chosen(body: Body, axis: Any, values: Sequence[Value]) -> Value:
    """The value whose number an axis is at."""
    place, result = body.index(axis), values[-1]
    for number in reversed(range(len(values) - 1)):
        before = body.compare("slt", place, body.index(number + 1))
        result = body.select(before, values[number], result)
    return result


def activated(body: Body, value: Value, name: str | None, scalars: Sequence[float]) -> Value:
    """An activation of `graph.PANEL_ACTIVATIONS`; NaN stays NaN."""
    if name is None:
        return value

    def clipped(value: Value, low: float, high: float) -> Value:
        least = body.op("arith.maximumf", value, body.constant(low, f32))
        return body.op("arith.minimumf", least, body.constant(high, f32))

    if name == "relu":
        return body.op("arith.maximumf", value, body.constant(0, f32))
    if name == "hardtanh":
        return clipped(value, *scalars)
    if name == "hardswish":
        shifted = body.op("arith.addf", value, body.constant(3, f32))
        product = body.op("arith.mulf", value, clipped(shifted, 0, 6))
        return body.op("arith.divf", product, body.constant(6, f32))
    assert name == "leaky_relu", name
    zero = body.constant(0, f32)
    positive = body.op("arith.cmpf", value, zero, type=i1, predicate="ogt")
    less = body.op("arith.mulf", value, body.constant(scalars[0], f32))
    return body.select(positive, value, less)


__all__ = ["ExpandWinograd", "tiles_of_block"]
