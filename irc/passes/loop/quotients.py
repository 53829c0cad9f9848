"""Quotients of bodies that are products as exactly."""

from __future__ import annotations

from irc.dialects import arith
from irc.dialects.arith.rules import has_exact_inverse
from irc.ir.core import Block, Operation, Value
from irc.passes.common.bodies import Body


def fold_quotient(op: Operation, block: Block) -> Value | None:
    """x / c -> x * (1 / c) where c is a power of two: what `canonicalize` does of whole arrays, for
    numbers that became constants of a body since. A quotient takes a GPU ten operations."""
    if not isinstance(op, arith.DivFOp):
        return None
    maker = op.operands[1].defining_op
    if not isinstance(maker, arith.ConstantOp):
        return None
    number = maker.attributes["value"].value  # type: ignore[attr-defined]
    if not has_exact_inverse(number):
        return None
    body = Body(block, op)
    body.location = op.location
    return body.op("arith.mulf", op.operands[0], body.constant(1.0 / number, op.results[0].type))


__all__ = ["fold_quotient"]
