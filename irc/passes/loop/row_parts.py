"""Rows of a group in parts, as kernels that take its place."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from irc.analysis.loop import strides_of
from irc.dialects import layout, loop
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Block, Value
from irc.ir.symbols import Dim
from irc.ir.types import TensorType, contiguous_strides, i1
from irc.passes.common.bodies import (
    Body,
    Transplant,
    axes_of,
    axis,
    axis_name,
    clean_block,
    make_axes,
    make_compute,
)
from irc.passes.kernel.gpu.summed_powers import SummedPowers
from irc.passes.loop.grouping import make_group
from irc.passes.loop.identities import identity
from irc.passes.loop.row_groups import GroupRows, is_reduction, type_of
from irc.target.costs import Cost


@attrs.frozen(eq=False)
class Spread:
    """Rows in parts: by own axis in how many. apart: what is stored along rows is computed in
    kernels of their own, from what has been combined once. narrow: the own axis whose points are
    each a part, and lie beside those of other rows."""

    rows: GroupRows
    parts: tuple[int, ...]
    apart: bool
    narrow: int | None = None

    @property
    def count(self) -> int:
        """The parts of a row."""
        return math.prod(self.parts)

    @property
    def sizes(self) -> list[int]:
        """Points of a part, by own axis."""
        return [-(-n // count) for n, count in zip(self.rows.own, self.parts, strict=True)]

    def cost(self) -> Cost:
        """What the kernels do."""
        moved = self.rows.moved()
        points = self.rows.count * self.rows.points
        far = points * sum(size for phase in moved for size in phase.values())
        once = [v for v in self.rows.group.yield_op.values if self.rows.is_of_rows(v)]
        kernels = sum(1 for phase in moved if phase) + (self.apart or bool(once))
        # The launch of the group is there anyway.
        return Cost(far=far, launches=kernels - 1)

    def write(self) -> None:
        """Put them in the place of the group."""
        rows, group = self.rows, self.rows.group
        writer = _PartWriter(self, Builder.before(group))
        stored: dict[Value, Value] = {}
        for phase in rows.phases:
            stored |= writer.kernel(phase)
        once = [value for value in group.yield_op.values if rows.is_of_rows(value)]
        maps = [m for m in rows.along() if self.apart and rows.stored(m)]
        once += [value for value in writer.read_by(maps) if value not in once]
        stored |= writer.once(once)
        for member in maps:
            stored |= writer.lone(member, stored)
        for value, result in zip(group.yield_op.values, group.results, strict=True):
            stored[value].name_hint = result.name_hint
            result.replace_all_uses_with(stored[value])
        group.erase()


class _PartWriter:
    """Makes the kernels, one after the other."""

    def __init__(self, spread: Spread, builder: Builder) -> None:
        self.spread, self.rows, self.builder = spread, spread.rows, builder
        self.partials: dict[Value, Value] = {}
        self.combined: dict[Value, Value] = {}
        self.part_sizes = [n for n in spread.parts if n > 1]

    # -- kernels

    def kernel(self, phase: int) -> dict[Value, Value]:
        """A kernel of parts of what a phase has; gives what it stores of the group's results."""
        rows = self.rows
        kernel = _PartKernel(self, [*rows.sizes, *self.part_sizes])
        for member in rows.along():
            if is_reduction(member) and rows.sums[member] == phase:
                kernel.reduce(member)
        along = [] if self.spread.apart else [m for m in rows.along() if rows.maps[m] == phase]
        stored = {value: kernel.value(value) for m in along for value in rows.stored(m)}
        arrays = [*kernel.reduced.values(), *kernel.combined.values(), *stored.values()]
        outside = iter(kernel.close(arrays))
        self.partials |= {old: next(outside) for old in kernel.reduced}
        self.combined |= {old: next(outside) for old in kernel.combined}
        return {
            old: self.builder.value(layout.ViewOp, next(outside), offset=0, result_types=old.type)
            for old in stored
        }

    def once(self, values: Sequence[Value]) -> dict[Value, Value]:
        """A kernel that combines what the parts gave, and what is made of that, once."""
        if not values:
            return {}
        kernel = _PartKernel(self, self.rows.sizes)
        outside = kernel.close([kernel.alone(value) for value in values])
        return {
            old: new if new.type == old.type
            else self.builder.value(layout.ViewOp, new, offset=0, result_types=old.type)
            for old, new in zip(values, outside, strict=True)
        }  # fmt: skip

    def read_by(self, members: Sequence[loop.ComputeOp]) -> list[Value]:
        """What members, and those that they read along rows, read of the rows' results."""
        values: dict[Value, None] = {}
        pending = list(members)
        while pending:
            for read in pending.pop().reads:
                maker = read.source.defining_op
                if not self.rows.has(read.source):
                    continue
                assert isinstance(maker, loop.ComputeOp)
                if self.rows.is_of_rows(read.source):
                    values[read.source] = None
                else:
                    pending.append(maker)
        return list(values)

    def lone(self, member: loop.ComputeOp, stored: dict[Value, Value]) -> dict[Value, Value]:
        """A map along rows as a kernel of its own."""
        kernel = _PartKernel(self, [*self.rows.sizes, *self.rows.own], stored, whole=True)
        values = self.rows.stored(member)
        return dict(zip(values, kernel.close([kernel.value(v) for v in values]), strict=True))


class _PartKernel:
    """A kernel that is being made: a group of computes that share axes of such sizes.

    known: what there is of the group's values, here; `whole`: all axes of rows are shared."""

    def __init__(
        self, writer: _PartWriter, sizes: Sequence[Dim], known: dict[Value, Value] | None = None,
        whole: bool = False,
    ) -> None:  # fmt: skip
        self.writer, self.spread, self.rows = writer, writer.spread, writer.rows
        self.sizes: list[Dim] = list(sizes)
        self.whole = whole
        self.block = Block()
        self.builder = Builder.at_end(self.block, self.rows.group.location)
        # What was combined before has one value for each part, so that all kernels have the same.
        self.known = {**writer.combined, **(known or {})}
        self.combined: dict[Value, Value] = {}
        self.reduced: dict[Value, Value] = {}

    def close(self, values: Sequence[Value]) -> list[Value]:
        """Insert it; gives the arrays outside that such values are stored in."""
        members = list(self.block.ops)
        builder = self.writer.builder
        if not members:
            return list(values)
        if len(members) == 1:
            members[0].detach()
            builder.insert(members[0])
            return list(values)
        return list(make_group(builder, self.sizes, self.block, values).results)

    # -- values

    def value(self, old: Value) -> Value:
        """The array here that stands for one of the group's."""
        if old not in self.known:
            maker, of_rows = old.defining_op, self.rows.is_of_rows(old)
            assert isinstance(maker, loop.ComputeOp)
            results: Sequence[Value]
            if self.rows.combines(old):
                results = self._combination(maker)
            elif of_rows or self.whole:
                results = self._same(maker)
            else:
                results = self._part(maker, _maps(maker))
            olds = [value for value in maker.results if self.rows.is_of_rows(value) is of_rows]
            self.known |= zip(olds, results, strict=True)
            if self.rows.combines(old):
                self.combined |= zip(olds, results, strict=True)
        return self.known[old]

    def alone(self, old: Value) -> Value:
        """The same, with one value for each row."""
        new = self.value(old)
        if type_of(new).rank == len(self.sizes):
            return new
        body = Body()
        body.location = self.rows.group.location
        body.finish([self._read(body, new)])
        axes, types = make_axes(self.sizes), [self._local(old, self.sizes)]
        return make_compute(self.builder, axes, [loop.MAP], types, body).results[0]

    def _read(self, body: Body, value: Value) -> Value:
        """Read what there is for each row, or part of it, here."""
        place = axes_of(len(self.sizes))
        return body.read(value, (*place, *(0,) * (type_of(value).rank - len(place))))

    def reduce(self, member: loop.ComputeOp) -> None:
        """Have parts of the reductions of a member, as `reduced`. Sums of powers below a maximum
        are of those below the part's own."""
        numbers = [k for k, o in enumerate(member.output_list) if o.kind == "reduce"]
        known = self.known
        if member in self.rows.powers:
            maximum = self.rows.powers[member].maximum
            (top,) = maximum.member.compute.results_of(maximum.output)
            self.known = {**known, top: self.reduced[top]}
        olds = [value for number in numbers for value in member.results_of(number)]
        self.reduced |= zip(olds, self._part(member, numbers), strict=True)
        self.known = known

    def _same(self, member: loop.ComputeOp) -> Sequence[Value]:
        """What a member has for each row, or its maps over all axes, at the axes shared here."""
        every = range(len(member.output_list))
        numbers, sizes = _maps(member) if self.whole else every, [*self.sizes]
        mapping: dict[str, Dim] = {}
        for k, a in enumerate(member.axis_list):
            if k < self.rows.shared or self.whole:
                mapping[a.name] = axis(k)
            elif a.extent == 1:
                mapping[a.name] = 0
            else:
                mapping[a.name] = axis(len(sizes))
                sizes.append(a.extent)
        names = {axis_name(k): n for k, n in enumerate(sizes)}
        body = self._body(member, numbers, mapping, names)
        results = [r for number in numbers for r in member.results_of(number)]
        types = [type_of(r) if self.whole else self._local(r, self.sizes) for r in results]
        axes = make_axes(sizes, range(len(self.sizes), len(sizes)))
        outputs = [member.output_list[number] for number in numbers]
        return make_compute(self.builder, axes, outputs, types, body, (), member).results

    def _part(self, member: loop.ComputeOp, numbers: Sequence[int]) -> Sequence[Value]:
        """A part of what a member does along rows: outputs that are all maps, or reductions."""
        shared, spread, sizes = self.rows.shared, self.spread, [*self.sizes]
        mapping: dict[str, Dim] = {a.name: axis(k) for k, a in enumerate(member.axis_list[:shared])}
        part = shared
        mask: tuple[Dim, int] | None = None
        for k, a in enumerate(member.axis_list[shared:]):
            size, count, extent = spread.sizes[k], spread.parts[k], self.rows.own[k]
            place: Dim = 0
            if count > 1:
                place, part = axis(part) * size, part + 1
            if size > 1 or count == 1:
                place = place + axis(len(sizes))
                sizes.append(size)
            mapping[a.name] = place
            if size * count != extent:
                mask = place, extent
        names = {axis_name(k): n for k, n in enumerate(sizes)}
        body = self._body(member, numbers, mapping, names, mask)
        outputs, types = [member.output_list[number] for number in numbers], list[Type]()
        for number, output in zip(numbers, outputs, strict=True):
            for result in member.results_of(number):
                local = self._partial(result, output)
                types.append(self._turned(type_of(result)) if output.kind == "map" else local)
        red = range(len(self.sizes), len(sizes)) if outputs[0].kind == "reduce" else ()
        axes = make_axes(sizes, red)
        return make_compute(self.builder, axes, outputs, types, body, (), member).results

    def _combination(self, member: loop.ComputeOp) -> list[Value]:
        """What all parts of each row give together."""
        shared, parts = self.rows.shared, self.writer.part_sizes
        sizes = [*self.sizes, *parts]
        place = [*axes_of(shared), *(axis(len(self.sizes) + k) for k in range(len(parts)))]
        body, outputs, values, types = Body(), [], [], []
        body.location = member.location
        reduced = [k for k, output in enumerate(member.output_list) if output.kind == "reduce"]
        for number in reduced:
            output = member.output_list[number]
            mean, *squares = member.results_of(number)
            part = body.read(self.writer.partials[mean], place)
            if member in self.rows.powers:
                part = self._below(body, self.rows.powers[member], part, place)
            values.append(part)
            outputs.append(output)
            types.append(self._local(mean, self.sizes))
            for each in squares:
                # The moments of the parts' means, and the sum of what is within the parts.
                outputs.append(loop.ResultAttr("reduce", "sum", output.accumulator, None))
                values.append(body.read(self.writer.partials[each], place))
                types += [self._local(each, self.sizes)] * 2
        body.finish(values)
        axes = make_axes(sizes, range(len(self.sizes), len(sizes)))
        op = make_compute(self.builder, axes, outputs, types, body, (), member)
        combined, results = iter(op.results), list[Value]()
        for number in reduced:
            results.append(next(combined))
            for _ in member.results_of(number)[1:]:
                results.append(self._squares(member, next(combined), next(combined)))
        return results

    def _below(
        self, body: Body, powers: SummedPowers, total: Value, place: Sequence[Dim]
    ) -> Value:
        """A part's sum of powers below its own maximum, as one of those below the row's; a part
        that has nothing but -inf has none."""
        maximum = powers.maximum
        (old,) = maximum.member.compute.results_of(maximum.output)
        part = body.read(self.writer.partials[old], place)
        whole = self._read(body, self.value(old))
        nothing = body.constant(float("-inf"), part.type)
        empty = body.op("arith.cmpf", part, nothing, type=i1, predicate="oeq")
        total = body.select(empty, body.zero(total.type), total)
        gap = body.op("arith.subf", part, whole)
        power = body.add(type(powers.power), [gap], gap.type, powers.power.attributes)
        return body.op("arith.mulf", total, power)

    def _squares(self, member: loop.ComputeOp, between: Value, within: Value) -> Value:
        """Sums of squared deviations, by those of the parts' means and those within parts."""
        body, place = Body(), axes_of(len(self.sizes))
        body.location = member.location
        left, right = body.read(between, place), body.read(within, place)
        each = body.constant(math.prod(self.spread.sizes), left.type)
        scaled = body.op("arith.mulf", left, each)
        body.finish([body.op("arith.addf", scaled, right)])
        axes, type_ = make_axes(self.sizes), type_of(within)
        (result,) = make_compute(
            self.builder, axes, [loop.MAP], [type_], body, (), member).results  # fmt: skip
        return result

    # -- bodies and types

    def _body(
        self, member: loop.ComputeOp, numbers: Sequence[int], mapping: dict[str, Dim],
        names: dict[str, Dim], mask: tuple[Dim, int] | None = None,
    ) -> Body:  # fmt: skip
        """A member's body for some outputs over other axes, with what it reads of the group's
        values read here; `mask`: only where a place is below an extent does it have points."""
        body = Body()
        inside = None
        if mask is not None:
            place, extent = mask
            inside = body.compare("slt", body.index(place), body.index(extent))
        copier = Transplant(body, mapping, names, (), inside)
        copier.copy_body(member)
        values = []
        for number in numbers:
            value, output = member.yield_op.values[number], member.output_list[number]
            copied = copier.values.get(value, value)
            if inside is not None:
                nothing = identity(body, output.combiner, copied.type, output.accumulator)
                copied = body.select(inside, copied, nothing)
            values.append(copied)
        body.finish(values)
        clean_block(body.block)
        for read in [op for op in body.block.ops if isinstance(op, loop.ReadOp)]:
            if self.rows.has(read.source):
                self._redirect(read, len(names))
        return body

    def _redirect(self, read: loop.ReadOp, axes: int) -> None:
        """Let what reads one of the group's values read that here, at the same point."""
        old = read.source
        of_row = self.rows.is_of_rows(old)
        new = self.value(old)
        old.replace_uses_if(new, lambda user: user is read)
        if of_row:
            axes = self.rows.shared if self.whole else len(self.sizes)
        units = (0,) * (type_of(new).rank - axes)
        read.attributes["indices"] = A.DimsAttr((*axes_of(axes), *units))

    def _local(
        self, value: Value, sizes: Sequence[Dim], element: Type | None = None
    ) -> TensorType:
        """The type of what stands for a value of rows here; where there is one for each row, as
        that one lies in memory."""
        type_, shared = type_of(value), self.rows.shared
        element = type_.element if element is None else element
        known = strides_of(type_)[:shared] if len(sizes) == shared else contiguous_strides(sizes)
        return TensorType(tuple(sizes), element, tuple(known), type_.device)

    def _partial(self, value: Value, output: loop.ResultAttr) -> TensorType:
        """What parts give of a reduction: where rows are narrow, as they lie beside each other."""
        type_ = self._local(value, self.sizes, output.accumulator)
        if self.spread.narrow is None:
            return type_
        cut = [k for k, count in enumerate(self.spread.parts) if count > 1]
        narrow = self.rows.shared + cut.index(self.spread.narrow)
        others = [k for k in range(self.rows.shared, len(self.sizes)) if k != narrow]
        order = [*others, *range(self.rows.shared), narrow]
        steps = dict(zip(order, contiguous_strides([self.sizes[k] for k in order]), strict=True))
        strides = tuple(steps[k] for k in range(len(order)))
        return TensorType(type_.shape, type_.element, strides, type_.device)

    def _turned(self, type_: TensorType) -> TensorType:
        """The type of an array of rows over the axes here: its memory, cut into parts."""
        shared, steps = self.rows.shared, strides_of(type_)
        outer: list[tuple[int, Dim]] = []
        inner: list[tuple[int, Dim]] = []
        for size, count, step in zip(self.spread.sizes, self.spread.parts, steps[shared:],
                                     strict=True):  # fmt: skip
            if count > 1:
                outer.append((count, step * size))
            if size > 1 or count == 1:
                inner.append((size, step))
        rest = [*outer, *inner]
        shape = (*type_.shape[:shared], *(n for n, _ in rest))
        strides = (*steps[:shared], *(step for _, step in rest))
        return TensorType(shape, type_.element, strides, type_.device)


def _maps(member: loop.ComputeOp) -> list[int]:
    """The numbers of a member's outputs that are maps."""
    return [k for k, output in enumerate(member.output_list) if output.kind == "map"]


__all__ = ["Spread"]
