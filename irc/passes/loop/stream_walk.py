"""What walks over a stream on a CPU: the stages of a group of streamed products."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from irc.analysis.contraction import Contraction
from irc.analysis.cost import op_cost
from irc.dialects import arith, graph, loop
from irc.dialects import math as math_ops
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Block, Operation, Value
from irc.ir.symbols import (
    Dim,
    ceildiv,
    coefficient,
    floordiv,
    maximum,
    minimum,
    substitute,
    symbol,
)
from irc.ir.types import element_bytes, f32, i1, i64, index
from irc.passes.common.bodies import SEGMENTS, Body, Transplant, ops_needed
from irc.passes.kernel.cpu.schedule import CpuSchedule
from irc.passes.kernel.gpu.combine import largest
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan
from irc.passes.kernel.gpu.stream_space import Streamed, StreamSpace, limit_of
from irc.passes.loop.stream_ends import StreamEnds
from irc.passes.loop.stream_factors import StreamFactors
from irc.passes.loop.stream_points import (
    BLOCK,
    COLUMN,
    STEP,
    WIDTH,
    StreamPoints,
    array,
)
from irc.passes.loop.stream_terms import (
    COMBINE,
    IDENTITY,
    StepOutputs,
    origin_key,
)

Read = tuple[Value, list[Dim]]
"""An array, and where it is read."""


@attrs.frozen(eq=False)
class _WalkState:
    """Something combined over the stream: what a walk begins with, and carries."""

    each: Streamed
    init: Value
    argument: Value
    width: tuple[tuple[Any, Dim], ...]


class _Copier(Transplant):
    """Copies what a member computes of a point, and all that it is made of in its group."""

    def __init__(
        self, walk: StreamWalk, member: GpuMember, body: Body, own: Mapping[str, Dim],
        mask: Value | None, known: dict[GpuMember, _Copier],
    ) -> None:  # fmt: skip
        mapping = dict(zip(member.rows, walk.at.row_places, strict=True)) | dict(own)
        super().__init__(body, mapping, walk.at.extents, walk.positions(body), mask)
        self.walk, self.member, self.known = walk, member, known
        known[member] = self

    def value(self, value: Value) -> Value:
        """A scalar of the member's body in the new one."""
        for op in ops_needed(self.member.compute.block, value):
            if op.results[0] not in self.values:
                self.copy(op)
        return self.values.get(value, value)

    def copy(self, op: Operation) -> None:
        result = op.results[0]
        if result in self.walk.tops:
            self.values[result] = self.into.read(*self.walk.tops[result])
        elif op in self.walk.always:
            self.values[result] = self.values[op.operands[1]]
        elif (outcome := self.walk.outcome(op)) is not None:
            self.values[result] = self.into.constant(outcome, i1)
        else:
            super().copy(op)

    def _read(self, op: loop.ReadOp) -> Value:
        origin = self.walk.plan.origin(op.source)
        if origin is None:
            return super()._read(op)
        place = self.walk.places.get((origin.member, origin.output))
        if place is not None:
            return self.walk.ended(self.into, origin.attr, self.into.read(*place))
        # A map: what it is of, at the same point.
        maker = self.known.get(origin.member)
        if maker is None:
            names = (axis.name for axis in origin.member.own)
            here = [self.mapping[axis.name] for axis in self.member.own]
            own = dict(zip(names, here, strict=True))
            maker = _Copier(self.walk, origin.member, self.into, own, self.mask, self.known)
        return maker.value(origin.member.compute.yield_op.values[origin.output])


class StreamWalk:
    """The stages of one group."""

    def __init__(
        self, at: StreamPoints, plan: GpuPlan, space: StreamSpace, ends: StreamEnds | None
    ) -> None:
        self.at, self.plan, self.space, self.ends = at, plan, space, ends
        self.factors = StreamFactors(self)
        #: Where computes are put.
        self.builder = Builder.before(at.group)
        #: Where outputs of members are read, and scalars that are maxima so far.
        self.places: dict[tuple[GpuMember, int], Read] = {}
        self.tops: dict[Value, Read] = {}
        #: What is the first choice in a walk, whatever else; comparisons with what ends the first
        #: one (True) or the last one of two walks; and where the second one begins.
        self.always: frozenset[Operation] = frozenset()
        self.passed: dict[Operation, bool] = {}
        self.begin: Value | None = None
        self.finished = False

    def run(self) -> None:
        """Put the stages in the group's place."""
        outer, inside = Builder.before(self.at.group), Block()
        self.builder = Builder.at_end(inside)
        self.rows_of = {member: self.factors.rows(member, c) for member, c in self.space.scores}
        states = [self._state(each) for each in self.space.combined]
        for state, result in zip(states, self._walks(states), strict=True):
            width = [place for place, _ in state.width]
            self.places[self._key(state.each)] = result, self.at.place_of(self.at.here, width)
        self.finished = True
        results = [self._result(outer, *pair) for pair in self.plan.outputs]
        segments = {SEGMENTS: A.DenseIntsAttr((len(results), 0, 0))}
        inside.append(loop.YieldOp(results, (), segments, (), self.at.group.location))
        several = [place.name for place, size in self.at.points if size != 1]
        top = CpuSchedule(collapse=[], outer=several, scratch=0, vector_axis="")
        group = self.at.group_of(inside, self.at.axes(), top, [], [r.type for r in results])
        outer.insert(group)
        for old, new in zip(self.at.group.results, group.results, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        self.at.group.erase()

    def copier(
        self, member: GpuMember, body: Body, own: Mapping[str, Dim], mask: Value | None,
        known: dict[GpuMember, _Copier] | None = None,
    ) -> _Copier:  # fmt: skip
        known = {} if known is None else known
        return known.get(member) or _Copier(self, member, body, own, mask, known)

    def streamed(self, member: GpuMember) -> dict[str, Dim]:
        """The places of a member's axes that are the stream."""
        names = (axis.name for axis in self.space.axes_of(member))
        return dict(zip(names, self._places(), strict=True))

    def _places(self) -> list[Dim]:
        """The places of the stream's axes in a walk that begins anywhere."""
        places = [*self.at.place]
        if self.begin is not None:
            step, at = symbol(loop.placeholder(0)), self.at
            lone = len(places) == 1
            places[0] = places[0] + (step * at.columns if lone else floordiv(step, at.turns))
        return places

    def column_mask(self, body: Body) -> Value | None:
        """Whether there is a column; None where all are there."""
        return self.at.column_mask(body, self._places()[-1], self.positions(body))

    @property
    def _of_rows(self) -> list[Dim]:
        """Where something of a step has a number for each row."""
        return self.at.place_of(self.at.stepped)

    @staticmethod
    def _key(each: Streamed) -> tuple[GpuMember, int]:
        return origin_key(each.origin)

    # -- before the walk

    def _state(self, each: Streamed) -> _WalkState:
        """What a sum or an extreme is before the walk; a maximum is finite, so that gaps from it
        are numbers."""
        body, output = Body(), each.origin.attr
        number = -largest(f32) if output.combiner == "max" else IDENTITY[output.combiner]
        width: tuple[tuple[Any, Dim], ...] = ()
        if each.contraction is not None:
            (axis,) = [a for a in each.origin.member.own if a.kind == "par"]
            width = ((WIDTH, self.at.padded(axis.extent)),)
            self.at.extents |= {place.name: size for place, size in width}
        value = body.constant(number, f32)
        (init,) = self.at.map(self.builder, self.at.row_axes(*width), [value], body)
        return _WalkState(each, init, init, width)

    def _limits(self, ends: Sequence[Sequence[tuple[GpuMember, Operation]]]) -> list[Value]:
        """How many steps a block of rows has in some walks, one behind the other, by its first row.
        ends: of each, comparisons with where it ends; the last of them counts."""
        body, before, limits = Body(), None, list[Value]()
        for several in ends:
            last = None
            for member, end in several:
                copier = self.copier(member, body, {}, None)
                copier.mapping = {**copier.mapping, member.rows[-1]: BLOCK * self.at.rows}
                value = copier.value(end.operands[1])
                if value.type is not i64:
                    cast = "arith.index_cast" if value.type is index else "arith.extsi"
                    value = body.op(cast, value, type=i64)
                last = value if last is None else body.op("arith.maxsi", last, value)
            assert last is not None
            steps = last if before is None else body.op("arith.subi", last, before)
            before = last
            if self.at.turns != 1:
                steps = body.op("arith.muli", steps, self._integer(body, self.at.turns))
            limits.append(steps)
        return self._of_points(body, limits)

    def _of_points(self, body: Body, values: Sequence[Value]) -> list[Value]:
        """Numbers that are computed once at each point."""
        body.finish(values)
        axes = self.at.axes()
        types = [array(i64, [axis.extent for axis in axes])] * len(values)
        schedule = CpuSchedule(collapse=[], vector_axis="", order=[], chunks={}, streams=False,
                               partial=[])  # fmt: skip
        outputs = [loop.MAP] * len(values)
        return list(self.at.compute(self.builder, axes, outputs, types, body, schedule).results)

    @staticmethod
    def _integer(body: Body, dim: Dim) -> Value:
        if isinstance(dim, int):
            return body.constant(dim, i64)
        return body.op("arith.index_cast", body.index(dim), type=i64)

    # -- the walk

    def _walks(self, states: list[_WalkState]) -> Sequence[Value]:
        """What is combined behind all steps. Where lists name blocks whose scores all count, and
        others, or what counts ends with a row, these are two walks."""
        limit = limit_of(self.plan, self.space)
        if limit is None and self.ends is not None and self.at.steps != 1:
            return self._bounded(states, self.ends)
        if limit is None:
            return self._walk(states, []).results
        places: dict[Value, list[tuple[GpuMember, Operation]]] = {}
        known: dict[GpuMember, _Copier] = {}
        body = Body()
        for member, end in limit.ends:
            copier = self.copier(member, body, {}, None, known)
            places.setdefault(copier.value(end.operands[1]), []).append((member, end))
        chosen = {op for _, _, op in limit.chosen}
        whole = [ends for ends in places.values() if any(end in chosen for _, end in ends)]
        if len(whole) != 1 or len(places) != 2:
            return self._walk(states, self._limits([limit.ends])).results
        (last,) = [ends for ends in places.values() if ends is not whole[0]]
        limits = self._limits([whole[0], [*whole[0], *last]])
        known_ends = {end: True for _, end in whole[0]} | {end: False for _, end in last}
        return self._twice(states, limits, frozenset(op for _, op, _ in limit.chosen), known_ends)

    def _twice(
        self, states: list[_WalkState], limits: Sequence[Value], always: frozenset[Operation],
        ends: Mapping[Operation, bool],
    ) -> Sequence[Value]:  # fmt: skip
        """Two walks, one behind the other, each of so many steps. always: what is the first choice
        in the first one. ends: comparisons that are known in the second one."""
        self.always = always
        first = self._walk(states, limits[:1])
        self.always, self.begin, self.passed = frozenset(), limits[0], dict(ends)
        states = [attrs.evolve(state, init=result)
                  for state, result in zip(states, first.results, strict=True)]  # fmt: skip
        self.tops.clear()
        second = self._walk(states, limits[1:])
        self.begin, self.passed = None, {}
        return second.results

    def _bounded(self, states: list[_WalkState], ends: StreamEnds) -> Sequence[Value]:
        """Walks over what counts for a block's rows: over steps that count for all rows, and those
        behind them; or, where it begins with a row, too, over all of them."""
        at, last = self.at, self.at.group.axis_list[-1].name

        def place(bound: Dim, most: bool) -> Dim:
            """The most, or the least, that a bound is of the rows of a block."""
            rising = coefficient(bound, last)
            assert isinstance(rising, int)
            edge = at.rows - 1 if (rising > 0) is most else 0
            return substitute(bound, {last: BLOCK * at.rows + edge})

        begin = maximum(0, *(floordiv(place(e, False), at.columns) for e in ends.lower))
        end = minimum(at.steps, *(ceildiv(place(e, True), at.columns) for e in ends.upper))
        if ends.lower:
            self.begin, count = self._numbers([begin, maximum(end - begin, 0)])
            walk = self._walk(states, [count])
            self.begin = None
            return walk.results
        whole = minimum(end, *(floordiv(place(e, False), at.columns) for e in ends.upper))
        whole = maximum(whole, 0)
        limits = self._numbers([whole, maximum(end - whole, 0)])
        return self._twice(states, limits, ends.chosen, {})

    def _numbers(self, dims: Sequence[Dim]) -> list[Value]:
        """Numbers of steps, at each point."""
        body = Body()
        return self._of_points(body, [self._integer(body, dim) for dim in dims])

    def positions(self, body: Body) -> list[Value]:
        """Where a walk begins, which the places of the stream name."""
        if self.begin is None:
            return []
        return [body.op("arith.index_cast", body.read(self.begin, self.at.here), type=index)]

    def outcome(self, op: Operation) -> bool | None:
        """What a comparison with an end is in a walk behind the first one."""
        if not isinstance(op, arith.CmpIOp) or op.predicate not in ("slt", "sge"):
            return None
        for end, is_first in self.passed.items():
            if end.operands == op.operands:
                return (op.predicate == "slt") is not is_first
        return None

    def _walk(self, states: list[_WalkState], ends: Sequence[Value]) -> loop.GroupOp:
        """The group that is walked along the steps."""
        inits = [state.init for state in states]
        block = Block([init.type for init in inits])
        states = [attrs.evolve(state, argument=argument)
                  for state, argument in zip(states, block.arguments, strict=True)]  # fmt: skip
        outside, self.builder = self.builder, Builder.at_end(block)
        for member, contraction in self.space.scores:
            scores = self._scores(member, contraction)
            place = self.at.place_of_product(self.at.stepped, COLUMN)
            self.places[member, 0] = scores, place
        following = dict[_WalkState, Value]()
        factors = dict[tuple[GpuMember, int], Value]()
        early = [s for s in states if s.each.power is None and s.each.contraction is None]
        maxima = {origin_key(s.each.power.maximum) for s in states if s.each.power is not None}
        first = [s for s in early if self._key(s.each) in maxima]
        for state, part in self._parts(first, states):
            following[state], factor = self._raised(state, part)
            factors[self._key(state.each)] = factor
            so_far = following[state], self._of_rows
            for power in (s.each.power for s in states):
                if power is not None and origin_key(power.maximum) == self._key(state.each):
                    self.tops[power.top.results[0]] = so_far
        for state, part in self._parts([s for s in states if s not in first]):
            power = state.each.power
            smaller = None if power is None else factors[origin_key(power.maximum)]
            following[state] = self._added(state, part, smaller)
        values = [following[state] for state in states]
        segments = {SEGMENTS: A.DenseIntsAttr((len(values), 0, 0))}
        block.append(loop.YieldOp(values, (), segments, (), self.at.group.location))
        self.builder = outside
        schedule = CpuSchedule(outer=[STEP.name])
        types = [init.type for init in inits]
        axes = self.at.axes(stepped=True)
        group = self.at.group_of(block, axes, schedule, [*inits, *ends], types)
        return self.builder.insert(group)

    def _scores(self, member: GpuMember, contraction: Contraction) -> Value:
        """Products of a step's columns with the rows."""
        body, depth = Body(), self.at.depth_of(contraction)
        self.at.extents |= {place.name: size for place, size in depth}
        column = self.factors.column(body, member, contraction, contraction.depth, depth)
        places = [place for place, _ in depth]
        row = body.read(self.rows_of[member], self.at.factor_place(self.at.here, places))
        own = COLUMN, self.at.columns
        return self.at.product(self.builder, body, row, column, own, depth)

    def _parts(
        self, states: Sequence[_WalkState], every: Sequence[_WalkState] = ()
    ) -> list[tuple[_WalkState, Value]]:
        """What a step has of some sums and extremes: all that is made of scores is made once. What
        powers below maxima, of `every` state, are of is kept where it takes longer to make."""
        if not states:
            return []
        body, outputs, numbers = Body(), StepOutputs(), dict[_WalkState, int]()
        mask = self.column_mask(body)
        masks = body.both(self.at.row_mask(body), mask)
        known, kept = dict[GpuMember, _Copier](), dict[Value, int]()
        axes, schedule = self.at.column_axes()
        sizes = [axis.extent for axis in axes if axis.kind == "par"]
        wide = [axis.extent for axis in axes]
        for state in states:
            each, member, output = state.each, state.each.origin.member, state.each.origin.attr
            copier = self.copier(member, body, self.streamed(member), masks, known)
            value, other = member.compute.yield_op.values[each.origin.output], 0.0
            if each.contraction is None:
                other = IDENTITY[output.combiner]
            else:
                value, output = self.at.factor(each.contraction.left), loop.MAP
            term = content = copier.value(value)
            if mask is not None:
                content = body.select(mask, term, body.constant(other, term.type))
            is_map = each.contraction is not None
            type_ = array(term.type, wide) if is_map else array(f32, sizes)
            numbers[state] = outputs.add(output, content, type_)
            if output.combiner == "max" and self._takes_long(body, term):
                for element in self._elements(state, every, term, body, masks, known):
                    kept[element] = outputs.add(loop.MAP, content, array(f32, wide))
        body.finish(outputs.values)
        results = self.at.compute(self.builder, axes, outputs.kinds, outputs.types, body,
                                schedule).results  # fmt: skip
        for element, number in kept.items():
            place = self.at.place_of(self.at.stepped, [COLUMN])
            self.tops[element] = results[number], place
        return [(state, self._part(state, results[number])) for state, number in numbers.items()]

    def _elements(
        self, state: _WalkState, every: Sequence[_WalkState], term: Value, body: Body,
        mask: Value | None, known: dict[GpuMember, _Copier],
    ) -> list[Value]:  # fmt: skip
        """The scalars that powers below a maximum are of, where the maximum is of the same."""
        elements = list[Value]()
        for each in every:
            power = each.each.power
            if power is None or origin_key(power.maximum) != self._key(state.each):
                continue
            places = self.streamed(power.member)
            copier = self.copier(power.member, body, places, mask, known)
            if copier.value(power.element) is term:
                elements.append(power.element)
        return elements

    def _takes_long(self, body: Body, value: Value) -> bool:
        """Whether a scalar takes longer to make than to write and to read again."""
        speeds = self.at.target.processor
        work = sum(op_cost(op, speeds) for op in ops_needed(body.block, value))
        return work > 2 * (speeds.access + element_bytes(f32) * speeds.byte)

    def _part(self, state: _WalkState, result: Value) -> Value:
        """What a step adds to a sum or an extreme: products of what was made of scores, or that."""
        each = state.each
        if each.contraction is None:
            return result
        return self._sums(each.origin.member, each.contraction, result, state)

    def _sums(
        self, member: GpuMember, contraction: Contraction, factor: Value, state: _WalkState
    ) -> Value:
        """A step's part of products over the stream."""
        body = Body()
        self.at.extents |= {place.name: size for place, size in state.width}
        own = [a for a in member.own if a.kind == "par"]
        column = self.factors.column(body, member, contraction, own, state.width)
        row = body.read(factor, self.at.factor_place(self.at.stepped, [COLUMN]))
        depth = [(COLUMN, self.at.columns)]
        return self.at.product(self.builder, body, row, column, state.width[0], depth)

    def _raised(self, state: _WalkState, part: Value) -> tuple[Value, Value]:
        """A maximum behind a step, and the power of e by which sums so far become smaller."""
        body = Body()
        before = body.read(state.argument, self.at.place_of(self.at.here))
        after = body.op("arith.maximumf", before, body.read(part, self._of_rows))
        gap = body.op("arith.subf", before, after)
        factor = body.add(math_ops.ExpOp, [gap], f32, {"nonpositive": A.UNIT})
        axes = self.at.row_axes(stepped=True)
        following, factors = self.at.map(self.builder, axes, [after, factor], body)
        return following, factors

    def _added(self, state: _WalkState, part: Value, factor: Value | None) -> Value:
        """A sum or an extreme behind a step."""
        body = Body()
        width = [place for place, _ in state.width]
        before = body.read(state.argument, self.at.place_of(self.at.here, width))
        if factor is not None:
            before = body.op("arith.mulf", before, body.read(factor, self._of_rows))
        # Sums of products have their rows as they come.
        place = self._of_rows
        if width:
            place = self.at.place_of_product(self.at.stepped, width[0])
        combine = COMBINE[state.each.origin.attr.combiner]
        after = body.op(combine, before, body.read(part, place))
        axes = self.at.row_axes(*state.width, stepped=True)
        return self.at.map(self.builder, axes, [after], body)[0]

    # -- behind the walk

    def ended(self, body: Body, output: loop.ResultAttr, value: Value) -> Value:
        """What something combined is: -inf for the maximum of no greater element."""
        if not self.finished or output.combiner != "max":
            return value
        lowest = body.constant(-largest(f32), f32)
        none = body.op("arith.cmpf", value, lowest, type=i1, predicate="oeq")
        return body.select(none, body.constant(-math.inf, f32), value)

    def _result(self, outer: Builder, result: Value, value: Value) -> Value:
        """What the group gives of the rows."""
        origin = self.plan.origin(value)
        assert origin is not None
        body, member = Body(), origin.member
        mask = self.at.row_mask(body)
        behind = member in self.space.behind
        columns = [a for a in member.own if a.kind == "par"] if behind or (
            origin.attr.kind == "reduce") else []  # fmt: skip
        own = {axis.name: WIDTH for axis in columns}
        width = [(WIDTH, axis.extent) for axis in columns]
        self.at.extents |= {place.name: size for place, size in width}
        copier = self.copier(member, body, own, mask)
        places: Sequence[Dim] = [*self.at.row_places, *(place for place, _ in width)]
        masks, positions = [] if mask is None else [mask], list[Value]()
        if behind:
            content = copier.value(member.compute.yield_op.values[origin.output])
        else:
            content = self.ended(body, origin.attr, body.read(*self.places[member, origin.output]))
        if origin.attr.kind == "scatter":
            init = member.compute.inits[0]
            yielded = member.compute.yield_op
            for extra in yielded.extra:
                copier.value(extra)
            places, positions = copier.expressions(origin.attr.index_dims, yielded.extra)
            for each in yielded.masks:
                masks = [body.both(masks[0] if masks else None, copier.value(each))]  # type: ignore[list-item]
        else:
            init = outer.value(graph.Undefined, result_types=result.type)
        body.finish([content], positions, masks)
        output = loop.ResultAttr("scatter", "set", None, A.DimsAttr(places))
        axes, schedule = self.at.stored_axes(*width)
        return self.at.compute(self.builder, axes, [output], [init.type], body, schedule,
                             [init]).results[0]  # fmt: skip


__all__ = ["StreamWalk"]
