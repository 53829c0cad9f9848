"""ATen's attention on a CPU as a group of streamed products, which `expand-streams` makes blocks of
rows that walk over the keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from irc.dialects import graph, loop
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.symbols import Dim, floordiv, symbol
from irc.ir.types import TensorType, contiguous_strides, f32, i1
from irc.passes.common.bodies import Body, axis_name, make_axes, make_compute
from irc.passes.loop.grouping import group_members

MAX, SUM = (loop.ResultAttr("reduce", combiner, f32, None) for combiner in ("max", "sum"))
I0, I1, I2, I3, I4 = (symbol(axis_name(k)) for k in range(5))


def widened(body: Body, value: Value) -> Value:
    """A number as f32."""
    return value if value.type is f32 else body.op("arith.extf", value, type=f32)


def place_in_mask(mask: Value, every: Sequence[Dim]) -> list[Dim]:
    """Where a mask is read, by the places of a batch, a head, a row and a key."""
    type_: Any = mask.type
    return [0 if size == 1 else place
            for size, place in zip(type_.shape, every[4 - type_.rank :], strict=True)]  # fmt: skip


def seen_score(
    body: Body, score: Value, scale: float, mask: Value | None, places: tuple[Dim, Dim] | None
) -> Value:
    """A score, scaled, with what is read of a mask; places: of a row and a key, of which only those
    up to the row's are seen."""
    score = body.op("arith.mulf", score, body.constant(scale, f32))
    if mask is not None and mask.type is i1:
        score = body.select(mask, score, body.constant(-math.inf, f32))
    elif mask is not None:
        score = body.op("arith.addf", score, widened(body, mask))
    if places is not None:
        row, key = places
        seen = body.compare("sle", body.index(key), body.index(row))
        score = body.select(seen, score, body.constant(-math.inf, f32))
    return score


def other_than(body: Body, value: Value, number: float, instead: float) -> Value:
    """A number, or another one where it is some number: 0 for the greatest score of a row that sees
    nothing, 1 for its sum."""
    same = body.op("arith.cmpf", value, body.constant(number, f32), type=i1, predicate="oeq")
    return body.select(same, body.constant(instead, f32), value)


class AttentionWalk:
    """The members of the group that takes a call's place: scores, scaled and masked ones, the
    greatest of each row, powers below it with their sum, and what these make of the values. Rows
    that see nothing have zeros, as ATen's do.

    scale: of the scores; causal: a row sees the keys up to its own."""

    def __init__(
        self, call: graph.CallAten, operands: Sequence[Value], mask: Value | None, scale: float,
        causal: bool,
    ) -> None:  # fmt: skip
        self.call, self.mask, self.scale, self.causal = call, mask, scale, causal
        self.query, self.key, self.value = operands
        types: Any = [operand.type for operand in operands]
        self.element: Type = types[0].element
        self.rows = types[0].shape[:3]
        self.keys, self.width = types[1].shape[2], types[0].shape[3]
        self.shared = floordiv(I1, types[0].shape[1] // types[1].shape[1])
        self.builder = Builder.before(call)
        self.members: list[loop.ComputeOp] = []

    def run(self) -> Value:
        """The group's result."""
        scores = self._member((self.keys, self.width), 1, SUM, self._product(
            (self.query, [I0, I1, I2, I4]), (self.key, [I0, self.shared, I3, I4])))  # fmt: skip
        seen = self._member((self.keys,), 0, loop.MAP, self._seen(scores))
        most = self._member((self.keys,), 1, MAX, self._read(seen))
        powers = self._member((self.keys,), 0, loop.MAP, self._powers(seen, most))
        total = self._member((self.keys,), 1, SUM, self._read(powers))
        sums = self._member((self.width, self.keys), 1, SUM, self._product(
            (powers, [I0, I1, I2, I4]), (self.value, [I0, self.shared, I4, I3])))  # fmt: skip
        result = self._member((self.width,), 0, loop.MAP, self._quotient(sums, total),
                              self.call.results[0].type)  # fmt: skip
        for member in (self.members[0], self.members[5]):
            member.attributes["schedule"] = loop.ScheduleAttr("cpu", A.DictAttr({}))
        self.call.results[0].replace_all_uses_with(result)  # what is read behind a group is stored
        prefix = tuple(self.rows)
        group = group_members(self.members, dict.fromkeys(self.members, prefix))
        assert group.results[0].type is result.type
        return group.results[0]

    def _member(
        self, own: Sequence[Dim], combined: int, output: loop.ResultAttr, body: Body,
        type_: Type | None = None,
    ) -> Value:  # fmt: skip
        """A compute of each row and axes of its own, the last `combined` of which are combined."""
        extents = [*self.rows, *own]
        kept = extents[: len(extents) - combined]
        axes = make_axes(extents, range(len(kept), len(extents)))
        type_ = type_ or TensorType(tuple(kept), f32, contiguous_strides(kept))
        compute = make_compute(self.builder, axes, [output], [type_], body, (), self.call)
        self.members.append(compute)
        return compute.results[0]

    def _product(
        self, left: tuple[Value, list[Dim]], right: tuple[Value, list[Dim]]
    ) -> Body:
        """What is summed up: factors of the call's element, widened."""
        body, factors = Body(), []
        for value, place in (left, right):
            factor = body.read(value, place)
            if factor.type is not self.element:
                factor = body.op("arith.truncf", factor, type=self.element)
            factors.append(widened(body, factor))
        body.finish([body.op("arith.mulf", *factors)])
        return body

    def _read(self, value: Value) -> Body:
        body = Body()
        body.finish([body.read(value, [I0, I1, I2, I3])])
        return body

    def _seen(self, scores: Value) -> Body:
        """A score, scaled and masked."""
        body = Body()
        score, mask = body.read(scores, [I0, I1, I2, I3]), None
        if self.mask is not None:
            mask = body.read(self.mask, place_in_mask(self.mask, (I0, I1, I2, I3)))
        places = (I2, I3) if self.causal else None
        body.finish([seen_score(body, score, self.scale, mask, places)])
        return body

    def _powers(self, seen: Value, most: Value) -> Body:
        body = Body()
        score, top = body.read(seen, [I0, I1, I2, I3]), body.read(most, [I0, I1, I2])
        gap = body.op("arith.subf", score, other_than(body, top, -math.inf, 0.0))
        body.finish([body.op("math.exp", gap, nonpositive=A.UNIT)])
        return body

    def _quotient(self, sums: Value, total: Value) -> Body:
        body = Body()
        part, whole = body.read(sums, [I0, I1, I2, I3]), body.read(total, [I0, I1, I2])
        value = body.op("arith.divf", part, other_than(body, whole, 0.0, 1.0))
        if self.element is not f32:
            value = body.op("arith.truncf", value, type=self.element)
        body.finish([value])
        return body


__all__ = ["AttentionWalk", "other_than", "place_in_mask", "seen_score", "widened"]
