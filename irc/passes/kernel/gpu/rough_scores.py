"""Functions of scores that may be as rough as what is made of them.

A power of a score that is rounded to 16 bits sees of the score no more than its distance from the
maximum, to 2^-9. So a hyperbolic tangent that is right to 2^-22 is good enough where it is
multiplied with no more than `FACTOR` on the way, as in scores that are kept below some number:

    30 * tanh(score / 30)

and so are tangents and powers that are rounded to 16 bits with all that they are multiplied with,
as in gradients of scores.
"""

from __future__ import annotations

from irc.dialects import arith, loop
from irc.dialects import math as math_ops
from irc.ir.core import Operation, Value
from irc.ir.types import f32
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan
from irc.passes.kernel.gpu.rough_powers import is_narrow, is_rounded
from irc.passes.kernel.gpu.stream_space import StreamSpace

FACTOR = 2.0**10
"""What a tangent may be multiplied with: 2^-22 of it are 2^-12 then."""


def rough_scores(
    plan: GpuPlan, space: StreamSpace, rough: frozenset[Operation]
) -> frozenset[Operation]:
    """The tangents and powers of a streamed kernel of which nothing is made but rough powers, and
    what is rounded to 16 bits. rough: powers that are."""
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
        return factor <= FACTOR and all(ends_in(u, value, member, factor) for u in value.users)

    def ends_in(user: Operation, value: Value, member: GpuMember, factor: float) -> bool:
        if user in gaps or user in powers or is_narrow(user):
            return True
        if isinstance(user, arith.MulFOp):
            other = user.operands[1 if user.operands[0] is value else 0].defining_op
            number = getattr(other.value, "value", None) if isinstance(
                other, arith.ConstantOp) else None  # fmt: skip
            if isinstance(number, float):
                return ends(user.results[0], member, factor * abs(number))
            return is_rounded(user.results[0], member, plan)
        if isinstance(user, arith.DivFOp):
            return is_rounded(user.results[0], member, plan)
        if isinstance(user, arith.SelectOp | arith.AddFOp | arith.SubFOp):
            return ends(user.results[0], member, factor)
        if not isinstance(user, loop.YieldOp):
            return False
        numbers = [k for k, scalar in enumerate(user.values) if scalar is value]
        return all(goes_on(member, number, factor) for number in numbers)

    def goes_on(member: GpuMember, number: int, factor: float) -> bool:
        if (member.compute, number) in maxima:
            return True
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
        if isinstance(op, math_ops.TanhOp) and op.results[0].type is f32
        and ends(op.results[0], member, 1.0)
    )  # fmt: skip


__all__ = ["rough_scores"]
