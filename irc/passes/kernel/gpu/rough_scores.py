"""Functions of scores that may be as rough as what is made of them.

A power of a score that is rounded to 16 bits sees of the score no more than its distance from the
maximum, to 2^-9. So a hyperbolic tangent that is right to 2^-22 is good enough where it is
multiplied with no more than `FACTOR` on the way, as in scores that are kept below some number:

    30 * tanh(score / 30)

and so are tangents and powers that are rounded to 16 bits with all that they are multiplied with,
as in gradients of scores.
"""

from __future__ import annotations

import math

from irc.dialects import arith, loop
from irc.dialects import math as math_ops
from irc.ir.core import Operation, Value
from irc.ir.types import f32
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan
from irc.passes.kernel.gpu.rough_powers import (
    inverse_of,
    is_narrow,
    is_rounded,
    number_of,
    zero_of,
)
from irc.passes.kernel.gpu.stream_space import StreamSpace

FACTOR = 2.0**10
"""What a tangent may be multiplied with: 2^-22 of it are 2^-12 then."""


def rough_scores(
    plan: GpuPlan, space: StreamSpace, rough: frozenset[Operation]
) -> frozenset[Operation]:
    """The tangents, powers, quotients by numbers and sums with zero of a streamed kernel of which
    nothing is made but rough powers, and what is rounded to 16 bits. rough: powers that are."""
    powers = {each.power.exp for each in space.combined if each.power is not None}
    if not powers <= rough:
        return frozenset()
    rounded = frozenset(
        op for member in plan.members for op in member.compute.block.ops
        if isinstance(op, math_ops.ExpOp) and op.results[0].type is f32
        and is_rounded(op.results[0], member, plan)
    )  # fmt: skip
    powers |= rounded
    maxima = {
        (each.power.maximum.member.compute, each.power.maximum.output)
        for each in space.combined if each.power is not None
    }  # fmt: skip
    gaps = {op.operands[0].defining_op for op in powers}

    def ends(value: Value, member: GpuMember, factor: float) -> bool:
        """Whether all that is made of a value is rough; factor: what it was multiplied with, which
        nobody knows if that is infinite."""
        return all(ends_in(user, value, member, factor) for user in value.users)

    def ends_in(user: Operation, value: Value, member: GpuMember, factor: float) -> bool:
        if is_narrow(user):
            return True
        if user in gaps or user in powers:
            return factor <= FACTOR
        if isinstance(user, arith.MulFOp):
            number = number_of(user.operands[1 if user.operands[0] is value else 0])
            times = math.inf if number is None else abs(number)
            return ends(user.results[0], member, factor * times)
        if isinstance(user, arith.DivFOp):
            divisor = number_of(user.operands[1])
            by = abs(divisor) if divisor and user.operands[0] is value else 0.0
            return ends(user.results[0], member, factor / by if by else math.inf)
        if isinstance(user, arith.SelectOp | arith.AddFOp | arith.SubFOp | math_ops.TanhOp):
            return ends(user.results[0], member, factor)
        if not isinstance(user, loop.YieldOp):
            return False
        numbers = [k for k, scalar in enumerate(user.values) if scalar is value]
        return all(goes_on(member, number, factor) for number in numbers)

    def goes_on(member: GpuMember, number: int, factor: float) -> bool:
        if (member.compute, number) in maxima:
            return factor <= FACTOR
        if member.compute.output_list[number].kind != "map":
            return False
        (array,) = member.compute.results_of(number)
        readers = {m.compute: m for m in plan.members}
        return all(
            isinstance(read, loop.ReadOp) and read.parent_op in readers
            and ends(read.results[0], readers[read.parent_op], factor)  # type: ignore[index]
            for read in array.users
        )  # fmt: skip

    return rounded | frozenset(
        op
        for member in plan.members
        for op in member.compute.block.ops
        if op.results and op.results[0].type is f32
        and (isinstance(op, math_ops.TanhOp) or inverse_of(op) is not None
             or zero_of(op) is not None)
        and ends(op.results[0], member, 1.0)
    )  # fmt: skip


def differences(
    plan: GpuPlan, rough: frozenset[Operation]
) -> list[tuple[GpuMember, Operation, Operation]]:
    """The rough powers of differences: in which member, the power, and the difference."""
    powers = [(member, op) for member in plan.members for op in member.compute.block.ops
              if op in rough and isinstance(op, math_ops.ExpOp)]  # fmt: skip
    pairs = [(member, op, op.operands[0].defining_op) for member, op in powers]
    return [(member, op, gap) for member, op, gap in pairs if isinstance(gap, arith.SubFOp)]


__all__ = ["differences", "rough_scores"]
