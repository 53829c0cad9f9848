"""Other axes of streamed products' rows and stream.

**Heads.** Queries of a few heads may share keys: an index of what is streamed is `h // 4`. Where a
tile has room for more rows than there are, the heads are two axes, of which the last one is of the
rows of a tile, so that one tile goes over the keys for all of these heads:

    (b, h: 32, m: 1)  k[b, h // 4, n, d]    becomes    (b, h: 8, g: 4, m: 1)  k[b, h, n, d]

**Parts.** A few tiles of rows that each walk over a long stream leave most of a GPU idle. Then parts
of the stream are rows, too, and what each part combines is combined behind: of powers below a part's
maximum, each part's sum counts as much as the power of its maximum below that of all.

    (b, m)  t, l = max of s[n], sum of exp(s[n] - t)
becomes
    (b, p, m)  t', l' = the same of s[p * size + n];   t = max of t'[p],  l = sum of exp(t'[p] - t) * l'[p]

A stream of listed blocks is dealt out in turns, so that parts are equal however many blocks count.
(T. Dao et al., Flash-Decoding for long-context inference, 2023.)
"""  # noqa: E501

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from irc.analysis.loop import estimate
from irc.dialects import layout, loop
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.symbols import (
    Dim,
    Expr,
    FloorQuotient,
    ceildiv,
    dim_product,
    free_symbols,
    known_divisible,
    simplify,
    substitute,
    symbol,
)
from irc.ir.symbols.expr import postorder
from irc.ir.types import FloatType, TensorType, contiguous_strides, i1, index
from irc.passes.common.bodies import (
    SEGMENTS,
    Body,
    Transplant,
    axis,
    axis_name,
    make_axes,
    make_compute,
)
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan
from irc.passes.kernel.gpu.stream_space import (
    Streamed,
    StreamSpace,
    limit_of,
    tiled_rows,
)
from irc.target.gpu import GpuFeatures


def split_heads(
    group: loop.GroupOp, plan: GpuPlan, space: StreamSpace, gpu: GpuFeatures
) -> loop.GroupOp:
    """A group of streamed products whose rows fill a tile as far as they can: with those of several
    heads that share what is streamed, if it has any; itself if not."""
    rows = tiled_rows(plan, space)
    points = dim_product([each.extent for each in rows])
    place = len(group.axis_list) - len(rows) - 1
    if place < 0 or not isinstance(points, int) or points >= gpu.stream_rows[0]:
        return group
    heads = _shared_by(plan, space, place)
    return group if heads is None else _GroupedHeads(group, plan, space, place, heads).run()


def split_stream(
    group: loop.GroupOp, plan: GpuPlan, space: StreamSpace, gpu: GpuFeatures
) -> tuple[loop.GroupOp, int]:
    """A group with parts of the stream among its rows, where there are few, and how many parts;
    itself and 1 where there is one."""
    parts = _parts(plan, space, gpu)
    if parts > 1:
        group = _StreamParts(group, plan, space, parts).run()
    return group, parts


def _shared_by(plan: GpuPlan, space: StreamSpace, place: int) -> int | None:
    """How many points of a row axis, one after the other, share all that is streamed; None if they
    share nothing, or what is streamed depends on them otherwise."""
    extent, sizes = plan.flat.axes[place].extent, set[int]()
    outer, inner = symbol("outer"), symbol("inner")
    for member, contraction in space.products:
        name = member.rows[place]
        for read in contraction.right.reads:
            for dim in read.indices:
                quotients = [q for q in _quotients(dim) if q.arguments[0] == symbol(name)]
                sizes |= {q.arguments[1] for q in quotients if isinstance(q.arguments[1], int)}
                if len(sizes) != 1:
                    if name in free_symbols(dim):
                        return None
                    continue
                (size,) = sizes
                apart = substitute(dim, {name: outer * size + inner})
                if "inner" in free_symbols(simplify(apart, {}, {"inner": size})):
                    return None
    if len(sizes) != 1:
        return None
    (size,) = sizes
    return size if 1 < size and known_divisible(extent, size) else None


def _quotients(dim: Dim) -> Iterator[FloorQuotient]:
    """The quotients in an index."""
    for part in postorder(dim) if isinstance(dim, Expr) else ():
        if isinstance(part, FloorQuotient):
            yield part


def _parts(plan: GpuPlan, space: StreamSpace, gpu: GpuFeatures) -> int:
    """How many parts a stream is to have."""
    rows = tiled_rows(plan, space)
    batch = plan.flat.axes[: -len(rows)]
    tiles = ceildiv(dim_product([a.extent for a in rows]), gpu.stream_rows[0])
    programs = estimate(dim_product([*(a.extent for a in batch), tiles]))
    points, (outermost, *_) = estimate(space.points), space.stream
    if points <= gpu.short_stream or programs < 1:
        return 1
    parts = min(gpu.stream_programs // programs, points // gpu.stream_part, estimate(outermost))
    for each in space.combined:
        below = each.power is not None or each.origin.attr.combiner == "max"
        if not below and _is_uneven(space, max(parts, 1)):
            return 1
    return max(parts, 1)


def _is_uneven(space: StreamSpace, parts: int) -> bool:
    """Whether parts reach beyond the stream."""
    return not known_divisible(space.stream[0], parts)


class _Respaced:
    """Makes a group's members anew over other axes: `rows`, of which `places` says where each old
    row axis is, and the stream, of which `stream` says how many points each of its axes has."""

    def __init__(
        self, group: loop.GroupOp, plan: GpuPlan, space: StreamSpace, rows: Sequence[Dim],
        places: Sequence[Dim], stream: Sequence[Dim],
    ) -> None:  # fmt: skip
        self.group, self.plan, self.space = group, plan, space
        self.rows, self.places, self.stream = list(rows), list(places), list(stream)
        self.new: dict[Value, Value] = {}

    def _member(self, builder: Builder, member: GpuMember) -> loop.ComputeOp:
        """A member over the new axes."""
        compute, count = member.compute, len(self.rows)
        mapping: dict[str, Dim] = dict(zip(member.rows, self.places, strict=True))
        streamed = [a.name for a in self.space.axes_of(member)]
        sizes = dict(zip(streamed, self.stream, strict=True)) if streamed else {}
        own = [a for a in compute.axis_list if a.name not in member.rows]
        axes = list(make_axes(self.rows).parameters[0])
        apart = {a.name: axis(count + k) for k, a in enumerate(own)}
        axes += [loop.AxisAttr(axis_name(count + k), a.kind, sizes.get(a.name, a.extent))
                 for k, a in enumerate(own)]  # fmt: skip
        mapping |= apart
        if streamed:
            mapping |= self._stream_places(streamed, apart)
        body = Body()
        body.location = compute.location
        copier = Transplant(body, mapping, {a.name: a.extent for a in axes})
        for op in compute.block.ops:
            if op is compute.yield_op:
                continue
            if isinstance(op, loop.ReadOp) and op.source in self.new:
                # A member reads another one's result at its own rows.
                rest = [substitute(dim, apart) for dim in op.indices[len(self.places) :]]
                whole = [axis(k) for k in range(count)]
                copier.values[op.results[0]] = body.read(self.new[op.source], [*whole, *rest])
            else:
                self._copy(body, copier, op, member)
        values = [copier.values.get(value, value) for value in compute.yield_op.values]
        body.finish(self._yielded(body, copier, member, values))
        outputs = compute.output_list
        types = [self._type(compute, number, axes) for number in range(len(outputs))]
        new = make_compute(builder, A.ArrayAttr(axes), outputs, types, body, (), compute)
        if compute.schedule is not None:
            new.attributes["schedule"] = compute.schedule
        for old, result in zip(compute.results, new.results, strict=True):
            self.new[old] = result
        return new

    def _stream_places(self, names: Sequence[str], apart: Mapping[str, Dim]) -> dict[str, Dim]:
        """The places along the old stream, by the names of its axes."""
        return {name: apart[name] for name in names}

    def _copy(self, body: Body, copier: Transplant, op: Operation, member: GpuMember) -> None:
        copier.copy(op)

    def _yielded(
        self, body: Body, copier: Transplant, member: GpuMember, values: Sequence[Value]
    ) -> Sequence[Value]:
        return values

    def _type(
        self, compute: loop.ComputeOp, number: int, axes: Sequence[loop.AxisAttr]
    ) -> TensorType:
        """The type of an output over the new axes."""
        output = compute.output_list[number]
        old: Any = compute.results_of(number)[0].type
        shape = [a.extent for a in axes if output.kind == "map" or a.kind == "par"]
        return TensorType(shape, old.element, contiguous_strides(shape), old.device)

    def _group(
        self, builder: Builder, members: Sequence[GpuMember], yielded: Sequence[Value]
    ) -> loop.GroupOp:
        """The group of some members, made anew, that yields what stands for some old values."""
        group, inside = self.group, Block()
        within = Builder.at_end(inside)
        for member in members:
            self._member(within, member)
        values = [self.new[value] for value in yielded]
        segments = {SEGMENTS: A.DenseIntsAttr((len(values), 0, 0))}
        inside.append(loop.YieldOp(values, (), segments, (), group.location))
        entries = {**group.attributes, "axes": make_axes(self.rows)}
        types = [value.type for value in values]
        respaced = loop.GroupOp((), types, entries, (Region([inside]),), group.location)
        builder.insert(respaced)
        return respaced


class _GroupedHeads(_Respaced):
    """Makes a group whose axis at a place is two, of which the inner one has `size` points."""

    def __init__(
        self, group: loop.GroupOp, plan: GpuPlan, space: StreamSpace, place: int, size: int
    ) -> None:
        self.place, self.size = place, size
        extents = [a.extent for a in group.axis_list]
        rows = [*extents[:place], ceildiv(extents[place], size), size, *extents[place + 1 :]]
        places = [axis(k + (k > place)) for k in range(len(extents))]
        places[place] = axis(place) * size + axis(place + 1)
        super().__init__(group, plan, space, rows, places, space.stream)

    def run(self) -> loop.GroupOp:
        group, outer = self.group, Builder.before(self.group)
        respaced = self._group(outer, self.plan.members, group.yield_op.values)
        for old, result in zip(group.results, respaced.results, strict=True):
            view = outer.value(layout.ViewOp, result, offset=A.DimAttr(0), result_types=old.type)
            view.name_hint = old.name_hint
            old.replace_all_uses_with(view)
        group.erase()
        return respaced

    def _type(
        self, compute: loop.ComputeOp, number: int, axes: Sequence[loop.AxisAttr]
    ) -> TensorType:
        type_ = super()._type(compute, number, axes)
        old: Any = compute.results_of(number)[0].type
        if compute.results_of(number)[0] not in self.group.yield_op.values:
            return type_
        place, step = self.place, old.strides[self.place]
        strides = [*old.strides[:place], step * self.size, step, *old.strides[place + 1 :]]
        return TensorType(type_.shape, old.element, tuple(strides), old.device)


class _StreamParts(_Respaced):
    """Makes a group that has parts of the stream among its rows, and what combines the parts."""

    def __init__(
        self, group: loop.GroupOp, plan: GpuPlan, space: StreamSpace, parts: int
    ) -> None:
        extents = [a.extent for a in group.axis_list]
        self.at = len(extents) - len(tiled_rows(plan, space))
        self.parts, (outermost, *rest) = parts, space.stream
        self.size = ceildiv(outermost, parts)
        self.uneven = _is_uneven(space, parts)
        limit = limit_of(plan, space)
        self.ends = {end for _, end in limit.ends} if limit is not None else set()
        #: The elements of which powers are, in members' bodies, by the gaps.
        self.gaps = {each.power.exp.operands[0].defining_op: each.power.element
                     for each in space.combined if each.power is not None}  # fmt: skip
        rows = [*extents[: self.at], parts, *extents[self.at :]]
        places = [axis(k + (k >= self.at)) for k in range(len(extents))]
        super().__init__(group, plan, space, rows, places, [self.size, *rest])

    def run(self) -> loop.GroupOp:
        group, outer = self.group, Builder.before(self.group)
        members = [m for m in self.plan.members if m not in self.space.behind]
        combined = [each.origin.member.compute.results_of(each.origin.output)[0]
                    for each in self.space.combined]  # fmt: skip
        respaced = self._group(outer, members, combined)
        whole: dict[tuple[GpuMember, int], Value] = {}
        for each, old, part in zip(
            self.space.combined, combined, respaced.results, strict=True
        ):
            top = None
            if each.power is not None:
                maximum = each.power.maximum
                number = [(e.origin.member, e.origin.output) for e in self.space.combined].index(
                    (maximum.member, maximum.output))  # fmt: skip
                top = respaced.results[number], whole[maximum.member, maximum.output]
            value = self._whole(outer, each, old, part, top)
            whole[each.origin.member, each.origin.output] = value
            old.replace_all_uses_with(value)
        for member in self.space.behind:
            member.compute.detach()
            assert group.parent is not None
            group.parent.insert_before(member.compute, group)
        for result, value in zip(group.results, group.yield_op.values, strict=True):
            result.replace_all_uses_with(value)
        group.erase()
        return respaced

    def _place(self, turn: Dim) -> Dim:
        """The place along the old stream's outermost axis of a part's: parts of columns lie one
        after the other, blocks are dealt out in turns."""
        if len(self.stream) > 1:
            return turn * self.parts + axis(self.at)
        return axis(self.at) * self.size + turn

    def _stream_places(self, names: Sequence[str], apart: Mapping[str, Dim]) -> dict[str, Dim]:
        places = {name: apart[name] for name in names}
        self.turn = apart[names[0]]
        places[names[0]] = self._place(self.turn)
        return places

    def _copy(self, body: Body, copier: Transplant, op: Operation, member: GpuMember) -> None:
        own = [a.name for a in self.space.axes_of(member)]
        if op in self.ends:
            copier.values[op.results[0]] = self._end(body, copier, op)
            return
        inside = self._inside(body, copier, own)
        if inside is not None and isinstance(op, loop.ReadOp):
            if op.positions or any(own[0] in free_symbols(dim) for dim in op.indices):
                copier.values[op.results[0]] = _read_inside(body, copier, op, inside)
                return
        if inside is not None and op in self.gaps:
            element = op.operands[0]
            copier.values[element] = self._or_lowest(body, inside, copier.values[element])
        copier.copy(op)

    def _end(self, body: Body, copier: Transplant, op: Operation) -> Value:
        """Whether a part's turn is before an end: turn * parts + part < end."""
        type_ = op.operands[1].type
        turn, part = body.index(self.turn), body.index(axis(self.at))
        if type_ is not index:
            turn, part = (body.op("arith.index_cast", v, type=type_) for v in (turn, part))
        end = body.op("arith.subi", copier.values.get(op.operands[1], op.operands[1]), part)
        end = body.op("arith.addi", end, body.constant(self.parts - 1, type_))
        end = body.op("arith.floordivsi", end, body.constant(self.parts, type_))
        return body.compare("slt", turn, end)

    def _inside(self, body: Body, copier: Transplant, own: Sequence[str]) -> Value | None:
        """Whether a part's point is one of the stream; None where all are."""
        if not self.uneven or not own:
            return None
        place = body.index(copier.mapping[own[0]])
        return body.compare("slt", place, body.index(self.space.stream[0]))

    def _or_lowest(self, body: Body, inside: Value, value: Value) -> Value:
        """A score inside of the stream, -inf outside; what only counts inside asks for itself."""
        if self.ends:
            return value
        return body.select(inside, value, body.constant(-math.inf, value.type))

    def _yielded(
        self, body: Body, copier: Transplant, member: GpuMember, values: Sequence[Value]
    ) -> Sequence[Value]:
        inside = self._inside(body, copier, [a.name for a in self.space.axes_of(member)])
        if inside is None:
            return values
        outputs = member.compute.output_list
        return [self._or_lowest(body, inside, value)
                if (output.kind, output.combiner) == ("reduce", "max") else value
                for output, value in zip(outputs, values, strict=True)]  # fmt: skip

    def _type(
        self, compute: loop.ComputeOp, number: int, axes: Sequence[loop.AxisAttr]
    ) -> TensorType:
        """Parts are kept as wide as they are summed up."""
        type_, output = super()._type(compute, number, axes), compute.output_list[number]
        element: Any = output.accumulator or type_.element
        return TensorType(type_.shape, element, type_.strides, type_.device)

    def _whole(
        self, builder: Builder, each: Streamed, old: Value, part: Value,
        top: tuple[Value, Value] | None,
    ) -> Value:  # fmt: skip
        """What parts combined, combined. top: the parts' maxima that they are powers below, and the
        maximum of these."""
        old_type: Any = old.type
        extents, at, output = list(old_type.shape), self.at, each.origin.attr
        rows, red = len(self.places), axis(len(extents))
        places: list[Dim] = [axis(k) for k in range(len(extents))]
        body = Body()
        body.location = each.origin.member.compute.location
        value = body.read(part, [*places[:at], red, *places[at:]])
        if top is not None:
            parts, whole = top
            own = body.read(parts, [*places[:at], red, *places[at:rows]])
            most = body.read(whole, places[:rows])
            lowest = body.constant(-math.inf, most.type)
            none = body.op("arith.cmpf", most, lowest, type=i1, predicate="oeq")
            most = body.select(none, body.constant(0.0, most.type), most)
            gap = body.op("arith.subf", own, most)
            power = body.op("math.exp", gap, nonpositive=A.UNIT)
            value = body.op("arith.mulf", value, power)
        body.finish([value])
        axes = make_axes([*extents, self.parts], red=[len(extents)])
        assert isinstance(value.type, FloatType)
        return make_compute(
            builder, axes, [output], [old_type], body, (), each.origin.member.compute
        ).results[0]


def _read_inside(body: Body, copier: Transplant, op: loop.ReadOp, inside: Value) -> Value:
    """What is read, where its place is inside; else what it is elsewhere, or 0."""
    mask = body.both(inside, None if op.mask is None else copier.values[op.mask])
    other = body.zero(op.results[0].type) if op.other is None else copier.values[op.other]
    dims, positions = copier.expressions(op.indices, op.positions)
    return body.read(op.source, dims, positions, mask, other)


__all__ = ["split_heads", "split_stream"]
