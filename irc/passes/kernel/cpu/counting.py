"""Which points of a reduction count, where those that don't give what changes nothing.

A window at the edge of an image reads the combiner's identity outside of it. The loops over the
window then run over the points inside, and what they read needs no condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irc.dialects import arith, loop
from irc.ir.core import Value
from irc.ir.symbols import Dim, ceildiv, coefficient, floordiv, free_symbols, symbol
from irc.passes.kernel.cpu.emit import Emitter, Scalar, VectorScope
from irc.passes.kernel.cpu.reduce import identity_of
from irc.passes.kernel.cpu.spans import BELOW

_SKIPPING = frozenset(
    {"sum", "prod", "min", "max", "any", "all", "xor", "argmin", "argmax"}
)


def conditions_of_counting(op: loop.ComputeOp) -> list[arith.CmpIOp]:
    """The comparisons that all hold at each point that changes a result; none unless all results
    are reductions that a value changes nothing of."""
    common: list[arith.CmpIOp] | None = None
    for number, output in enumerate(op.output_list):
        if output.kind != "reduce" or output.combiner not in _SKIPPING:
            return []
        nothing = identity_of(output.combiner.removeprefix("arg"), output.accumulator)  # type: ignore[arg-type]
        mask = _counts_where(op.yield_op.operands[number], nothing)
        mine = [] if mask is None else list(_conjuncts(mask))
        common = mine if common is None else [each for each in common if each in mine]
    return common or []


def _counts_where(value: Value, nothing: float) -> Value | None:
    """The condition without which a value is `nothing`, if it is written as such."""
    maker = value.defining_op
    while isinstance(maker, arith.ExtFOp):
        maker = maker.operands[0].defining_op
    if isinstance(maker, loop.ReadOp) and maker.mask is not None:
        other = 0 if maker.other is None else _number(maker.other)
        return maker.mask if other == nothing else None
    if isinstance(maker, arith.SelectOp) and _number(maker.if_false) == nothing:
        return maker.condition
    return None


def _number(value: Value) -> Any:
    maker = value.defining_op
    return maker.attributes["value"].value if isinstance(maker, arith.ConstantOp) else None  # type: ignore[attr-defined]


def _conjuncts(mask: Value) -> Iterator[arith.CmpIOp]:
    maker = mask.defining_op
    if isinstance(maker, arith.AndIOp):
        for operand in maker.operands:
            yield from _conjuncts(operand)
    elif isinstance(maker, arith.CmpIOp):
        yield maker


def _place(value: Value) -> Dim | None:
    """The index expression that a value is, of axes and sizes alone."""
    maker = value.defining_op
    if isinstance(maker, loop.IndexOp):
        return None if maker.operands else maker.expression
    return _number(value)


def narrowed(
    emitter: Emitter, condition: arith.CmpIOp, axis: str, scope: VectorScope, vector_axis: str,
    lower: Scalar, upper: Scalar,
) -> tuple[Scalar, Scalar] | None:  # fmt: skip
    """The part of a loop [lower, upper) over an axis in which a condition holds; None where that
    can't be said before the loop."""
    left, right = _place(condition.lhs), _place(condition.rhs)
    if left is None or right is None or condition.predicate not in BELOW:
        return None
    shift, below = BELOW[condition.predicate]
    scale = coefficient(left - right, axis)
    if not isinstance(scale, int) or scale == 0:
        return None
    rest = right + shift - (left - scale * symbol(axis))
    if not free_symbols(rest) <= scope.names.keys() - {vector_axis}:
        return None
    # scale * axis < rest where it is below, else >= rest.
    if scale < 0:
        edge, below = floordiv(-rest, -scale) + 1, not below
    else:
        edge = ceildiv(rest, scale)
    place = emitter.scalar(edge, scope)
    return (lower, emitter.least(upper, place)) if below else (emitter.most(lower, place), upper)


__all__ = ["conditions_of_counting", "narrowed"]
