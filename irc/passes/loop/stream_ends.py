"""Where a stream begins and ends for a row, by comparisons of places.

    select(n <= m and m - n < 128, s, -inf)

Of a row m only the columns from m - 127 to m count: whatever else is made of the scores there,
maxima, sums and products over the stream are the same without the others.
"""

from __future__ import annotations

import math
from typing import Any

import attrs

from irc.dialects import arith, loop
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim, coefficient, free_symbols, substitute, symbol
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan
from irc.passes.kernel.gpu.stream_space import StreamSpace, is_number, made_in, unchanged
from irc.passes.loop.stream_blocks import CASTS

STREAM = "stream"
"""The place along the stream, in what places are compared with."""


@attrs.frozen
class StreamEnds:
    """What counts of a stream of one axis: places from all of `lower` on and below all of `upper`,
    expressions in the group's axes. chosen: selections between scores and -inf by nothing else."""

    lower: frozenset[Dim]
    upper: frozenset[Dim]
    chosen: frozenset[Operation]


def ends_of(plan: GpuPlan, space: StreamSpace) -> StreamEnds | None:
    """Where a stream begins and ends; None where all of it counts, or nobody knows."""
    if len(space.stream) != 1:
        return None

    def outside(member: GpuMember, condition: Value) -> Any:
        return _bounds(plan, space, member, condition)[0] or None

    every = [unchanged(plan, each, outside) for each in space.combined]
    if None in every or len(set(every)) != 1:
        return None
    (bounds,) = set(every)
    chosen = set[Operation]()
    for member in plan.members:
        for op in member.compute.block.ops:
            if isinstance(op, arith.SelectOp) and is_number(op.operands[2], -math.inf):
                known, complete = _bounds(plan, space, member, op.operands[0])
                if complete and known <= bounds:
                    chosen.add(op)
    sides = [frozenset(place for is_upper, place in bounds if is_upper is side)
             for side in (False, True)]  # fmt: skip
    return StreamEnds(sides[0], sides[1], frozenset(chosen))


def _bounds(
    plan: GpuPlan, space: StreamSpace, member: GpuMember, condition: Value
) -> tuple[frozenset[tuple[bool, Dim]], bool]:
    """The bounds of the stream that a condition says, upper ones and lower ones, and whether it
    says nothing else."""
    member, op = made_in(plan, member, condition)
    if isinstance(op, arith.AndIOp):
        (first, one), (second, other) = (_bounds(plan, space, member, o) for o in op.operands)
        return first | second, one and other
    bound = _bound(plan, space, member, op)
    return (frozenset(), False) if bound is None else (frozenset([bound]), True)


def _bound(
    plan: GpuPlan, space: StreamSpace, member: GpuMember, op: Any
) -> tuple[bool, Dim] | None:
    """Whether a comparison is of the stream's place with an end, and that end, or a beginning."""
    if not isinstance(op, arith.CmpIOp) or op.predicate not in ("slt", "sle", "sgt", "sge"):
        return None
    axes = space.axes_of(member)
    names: dict[str, Dim] = {name: symbol(axis.name) for name, axis in
                             zip(member.rows, plan.flat.axes, strict=True)}  # fmt: skip
    names |= {axis.name: symbol(STREAM) for axis in axes}
    left, right = (_place(operand, names) for operand in op.operands)
    if len(axes) != 1 or left is None or right is None:
        return None
    # left - right < 0, or right - left < 0
    gap = left - right if op.predicate in ("slt", "sle") else right - left
    gap = gap - 1 if op.predicate in ("sle", "sge") else gap
    step = coefficient(gap, STREAM)
    if step not in (1, -1):
        return None
    rest = gap - step * symbol(STREAM)  # type: ignore[operator]
    last = plan.flat.axes[-1].name
    if not isinstance(coefficient(rest, last), int) or STREAM in free_symbols(rest):
        return None
    return (True, -rest) if step == 1 else (False, rest + 1)


def _place(value: Value, names: dict[str, Dim]) -> Dim | None:
    """A scalar as an expression in axes; None if it is something else."""
    op: Any = value.defining_op
    if isinstance(op, loop.IndexOp):
        return None if op.operands else substitute(op.expression, names)
    if isinstance(op, arith.ConstantOp):
        number = getattr(op.value, "value", None)
        return number if isinstance(number, int) and not isinstance(number, bool) else None
    if isinstance(op, CASTS):
        return _place(op.operands[0], names)
    if isinstance(op, arith.AddIOp | arith.SubIOp):
        left, right = (_place(operand, names) for operand in op.operands)
        if left is None or right is None:
            return None
        return left + right if isinstance(op, arith.AddIOp) else left - right
    return None


__all__ = ["StreamEnds", "ends_of"]
