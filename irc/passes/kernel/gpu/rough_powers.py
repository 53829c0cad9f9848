"""Powers of e that may be as rough as what is made of them.

Each power of a softmax's row is at most 1 and goes into a sum, or is rounded to 16 bits. The
machine's own power of two, of x * log2(e), is wrong by |x| units in the last place or so: of a sum
of f32 that is less than its rounding, as |x| * exp(x) is at most 0.37, and of 16 bits nothing.

So are sigmoids, and what gelu multiplies with: 1 + tanh(x) is 2 sigmoid(2x), 1 + erf(x) is
erfc(-x), both right also where the sum cancels. A gelu with tanh then takes 18 instructions a
point rather than 36, of bf16.
"""

from __future__ import annotations

from irc.dialects import arith, loop
from irc.dialects import math as math_ops
from irc.ir.core import Operation, Value
from irc.ir.types import FloatType, f32
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan


def rough_powers(plan: GpuPlan) -> frozenset[Operation]:
    """The exponentials, sigmoids, `one_more` and quotients of a kernel that are only summed up, or
    rounded to 16 bits."""
    return frozenset(
        op
        for member in plan.members
        for op in member.compute.block.ops
        if _has_rough_form(op)
        and op.results[0].type is f32
        and _ends(op.results[0], member, plan, scaled=False)
    )


def _has_rough_form(op: Operation) -> bool:
    if isinstance(op, math_ops.ExpOp):
        return "nonpositive" in op.attributes
    return isinstance(op, math_ops.SigmoidOp | arith.DivFOp) or one_more(op) is not None


def one_more(op: Operation) -> Operation | None:
    """The tanh or erf that an operation adds 1 to; None for any other operation."""
    if not isinstance(op, arith.AddFOp):
        return None
    for function, other in (op.operands, op.operands[::-1]):
        maker, one = function.defining_op, other.defining_op
        if (isinstance(maker, math_ops.TanhOp | math_ops.ErfOp)
                and isinstance(one, arith.ConstantOp) and one.value.value == 1):  # fmt: skip
            return maker
    return None


def is_rounded(value: Value, member: GpuMember, plan: GpuPlan) -> bool:
    """Whether all that is made of a value, multiplied with other ones, is rounded to 16 bits."""
    return _ends(value, member, plan, scaled=True)


def number_of(value: Value) -> float | None:
    """The number that a scalar is, if it is a constant float."""
    maker = value.defining_op
    number = getattr(maker.value, "value", None) if isinstance(maker, arith.ConstantOp) else None
    return number if isinstance(number, float) else None


def inverse_of(op: Operation) -> float | None:
    """The inverse of the number by which an operation divides, if both are normal ones."""
    number = number_of(op.operands[1]) if isinstance(op, arith.DivFOp) else None
    return None if number is None or not 2.0**-100 < abs(number) < 2.0**100 else 1 / number


def zero_of(op: Operation) -> int | None:
    """Which operand of a sum is zero; without it, zeros of a sum keep their signs."""
    if not isinstance(op, arith.AddFOp):
        return None
    return next((k for k, value in enumerate(op.operands) if number_of(value) == 0), None)


def is_narrow(op: Operation) -> bool:
    """Whether an operation rounds to 16 bits."""
    element = op.results[0].type if isinstance(op, arith.TruncFOp) else None
    return isinstance(element, FloatType) and element.width == 16


def _ends(value: Value, member: GpuMember, plan: GpuPlan, scaled: bool) -> bool:
    """Whether all that is made of a value is a sum, or rounded; scaled: it was multiplied, and a
    sum of products may be small."""
    return all(_ends_in(user, value, member, plan, scaled) for user in value.users)


def _ends_in(
    user: Operation, value: Value, member: GpuMember, plan: GpuPlan, scaled: bool
) -> bool:
    if isinstance(user, arith.TruncFOp):
        return is_narrow(user)
    if isinstance(user, arith.MulFOp | arith.DivFOp):
        if isinstance(user, arith.DivFOp) and user.operands[1] is value:
            return False
        return _ends(user.results[0], member, plan, scaled=True)
    if isinstance(user, arith.SelectOp):
        return _ends(user.results[0], member, plan, scaled)
    if not isinstance(user, loop.YieldOp):
        return False
    numbers = [k for k, scalar in enumerate(user.values) if scalar is value]
    return all(_output_ends(member, k, plan, scaled) for k in numbers)


def _output_ends(member: GpuMember, number: int, plan: GpuPlan, scaled: bool) -> bool:
    output = member.compute.output_list[number]
    if output.kind == "reduce":
        return output.combiner == "sum" and not scaled
    if output.kind != "map":
        return False
    (array,) = member.compute.results_of(number)
    if any(stored is array for _, stored in plan.outputs):
        return False
    readers: dict[Operation | None, GpuMember] = {m.compute: m for m in plan.members}
    for read in array.users:
        reader = readers.get(read.parent_op)
        if reader is None or not isinstance(read, loop.ReadOp):
            return False
        if not _ends(read.results[0], reader, plan, scaled):
            return False
    return True


__all__ = [
    "inverse_of", "is_narrow", "is_rounded", "number_of", "one_more", "rough_powers", "zero_of",
]  # fmt: skip
