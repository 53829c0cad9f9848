"""Sums of powers of e below the maximum of their row, as softmax has them.

    m = max(x), s = sum(exp(x - m))

The maximum itself adds 1 to such a sum: it is from 1 to the number of points, or NaN, so its
inverse is a normal number. And both can be had in one walk over the row: the sum of powers below
the maximum so far becomes smaller where a greater element comes (M. Milakov and N. Gimelshein,
Online normalizer calculation for softmax, 2018).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from irc.dialects import arith, loop
from irc.dialects import math as math_ops
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim, substitute, symbol
from irc.ir.types import f32
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan, Origin, stored_axes


@attrs.frozen(eq=False)
class SummedPowers:
    """A sum of powers, the maximum that they are below, the operation that makes them, and the
    scalars of bodies that are what the maximum is taken of, in members behind it."""

    total: Origin
    maximum: Origin
    power: Operation
    elements: tuple[tuple[GpuMember, Value], ...]


def walked_together(plan: GpuPlan) -> list[SummedPowers]:
    """Those sums that can be had in one walk with their maxima: nothing else of their computes is
    combined or stored."""
    stored = {value for _, value in plan.outputs}
    together = []
    for powers in summed_powers(plan):
        compute = powers.total.member.compute
        others = [o for k, o in enumerate(compute.output_list) if k != powers.total.output]
        own = set(compute.results_of(powers.total.output))
        if (all(o.kind == "map" for o in others)
                and not any(r in stored and r not in own for r in compute.results)):  # fmt: skip
            together.append(powers)
    return together


def walk_together(plan: GpuPlan) -> list[SummedPowers]:
    """Let each sum of powers that can be be done in the phase of its maximum: it needs nothing that
    the maximum doesn't, and what else its compute has is evaluated where it is read."""
    together = walked_together(plan)
    for powers in together:
        powers.total.member.phase = powers.maximum.member.phase
    return together


def summed_powers(plan: GpuPlan) -> list[SummedPowers]:
    """The sums of powers of a kernel's rows, of f32."""
    bodies = _Bodies(plan)
    sums = []
    for member in plan.members:
        for number, output in enumerate(member.compute.output_list):
            if output.kind == "reduce" and output.combiner == "sum" and member.own:
                summed = bodies.summed(Origin(member, number, 0))
                sums += [] if summed is None else [summed]
    return sums


@attrs.frozen
class _Place:
    """A scalar of a member's body."""

    member: GpuMember
    value: Value


class _Bodies:
    """The bodies of a kernel's members, compared at equal points."""

    def __init__(self, plan: GpuPlan) -> None:
        self.plan = plan
        self.same_values: dict[tuple[_Place, _Place], bool] = {}

    def summed(self, total: Origin) -> SummedPowers | None:
        """The sum `total` as one of powers; None if it is none."""
        power = self._yielded(total)
        gap = self._operand(power, math_ops.ExpOp, 0)
        element, top = (self._operand(gap, arith.SubFOp, k) for k in range(2))
        if element is None or top is None or not _is_plain(total):
            return None
        maximum = self._maximum(top)
        if maximum is None or not self._same_axes(maximum.member, total.member):
            return None
        if not self._same(element, self._yielded(maximum)):
            return None
        maker = power.value.defining_op
        assert maker is not None
        return SummedPowers(total, maximum, maker, tuple(self._elements(maximum)))

    def _maximum(self, top: _Place) -> Origin | None:
        """The maximum of its own row that a scalar is."""
        read = top.value.defining_op
        if not isinstance(read, loop.ReadOp) or read.mask is not None:
            return None
        maximum = self.plan.origin(read.source)
        if maximum is None or maximum.attr.kind != "reduce" or maximum.attr.combiner != "max":
            return None
        places = stored_axes(maximum.member.compute, maximum.attr)
        own = self._points(top.member, read.indices) == self._points(maximum.member, places)
        return maximum if own and _is_plain(maximum) else None

    def _elements(self, maximum: Origin) -> Iterator[tuple[GpuMember, Value]]:
        yielded = self._yielded(maximum)
        for member in self.plan.members:
            if member.phase > maximum.member.phase and self._same_axes(member, maximum.member):
                for op in member.compute.block.ops:
                    if len(op.results) == 1 and self._same(_Place(member, op.results[0]), yielded):
                        yield member, op.results[0]

    def _yielded(self, origin: Origin) -> _Place:
        compute = origin.member.compute
        return self._followed(_Place(origin.member, compute.yield_op.values[origin.output]))

    def _operand(self, place: _Place | None, type_: type[Operation], number: int) -> _Place | None:
        """Where an operand of an operation of a type comes from; None if it is another one."""
        if place is None:
            return None
        maker = place.value.defining_op
        if not isinstance(maker, type_):
            return None
        return self._followed(_Place(place.member, maker.operands[number]))

    def _followed(self, place: _Place) -> _Place:
        """Where a value is made: in the body of a map of the kernel, if it is read at its own
        point."""
        while True:
            read: Any = place.value.defining_op
            if not isinstance(read, loop.ReadOp) or read.mask is not None:
                return place
            origin = self.plan.origin(read.source)
            if origin is None or origin.attr.kind != "map":
                return place
            axes = stored_axes(origin.member.compute, origin.attr)
            if self._points(place.member, read.indices) != self._points(origin.member, axes):
                return place
            value = origin.member.compute.yield_op.values[origin.output]
            if value.type is not place.value.type:
                return place
            place = _Place(origin.member, value)

    def _same_axes(self, a: GpuMember, b: GpuMember) -> bool:
        extents = [[axis.extent for axis in m.own] for m in (a, b)]
        return extents[0] == extents[1] and len(a.row_names) == len(b.row_names)

    def _points(self, member: GpuMember, indices: Any) -> list[Dim]:
        """Indices over the axes of a member, named by their numbers."""
        rows, own = member.row_names, [axis.name for axis in member.own]
        names: dict[str, Dim] = {name: symbol(f"row_{k}") for k, name in enumerate(rows)}
        names |= {name: symbol(f"own_{k}") for k, name in enumerate(own)}
        return [substitute(index, names) for index in indices]

    def _same(self, a: _Place, b: _Place) -> bool:
        """Whether two values are the same at equal points."""
        a, b = self._followed(a), self._followed(b)
        known = self.same_values.get((a, b))
        if known is None:
            known = self.same_values[a, b] = self._made_alike(a, b)
        return known

    def _made_alike(self, a: _Place, b: _Place) -> bool:
        left: Any = a.value.defining_op
        right: Any = b.value.defining_op
        if left is None or type(left) is not type(right) or a.value.type is not b.value.type:
            return False
        first = 0
        if isinstance(left, loop.ReadOp):
            alias = self.plan.flat.alias
            if alias.get(left.source, left.source) is not alias.get(right.source, right.source):
                return False
            if self._points(a.member, left.indices) != self._points(b.member, right.indices):
                return False
            if left.attributes.get("operandSegmentSizes") != right.attributes.get(
                    "operandSegmentSizes"):  # fmt: skip
                return False
            first = 1
        elif isinstance(left, loop.IndexOp):
            if (self._points(a.member, [left.expression])
                    != self._points(b.member, [right.expression])):  # fmt: skip
                return False
        elif dict(left.attributes) != dict(right.attributes):
            return False
        pairs = zip(left.operands[first:], right.operands[first:], strict=True)
        return len(left.results) == 1 and all(
            self._same(_Place(a.member, x), _Place(b.member, y)) for x, y in pairs
        )


def _is_plain(origin: Origin) -> bool:
    """Whether a reduction is of f32 as it is yielded."""
    element = origin.member.compute.yield_op.values[origin.output].type
    return element is f32 and origin.attr.accumulator in (None, f32)


__all__ = ["SummedPowers", "summed_powers", "walk_together", "walked_together"]
