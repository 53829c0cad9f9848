"""Spans of a vector axis in which conditions on it are known: `i < 32` splits it at 32.

Concatenation, padding and rotary embeddings come as reads under such conditions; in each span the
choice is made when the kernel is formed, and only vectors across a border are masked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from irc.dialects import arith, loop
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.symbols import Symbol, substitute, symbol, terms_of
from irc.passes.kernel.cpu.emit import VectorScope
from irc.passes.kernel.cpu.vectors import Vectors

#: The condition `predicate(v, bound)` as (v < bound + shift) == outcome.
BELOW = {"slt": (0, True), "sle": (1, True), "sge": (0, False), "sgt": (1, False)}


def bound_of(op: Operation) -> tuple[int, bool] | None:
    """The bound b and the outcome below it, if `op` compares a place with a constant."""
    if not isinstance(op, arith.CmpIOp):
        return None
    place, bound = op.lhs.defining_op, op.rhs.defining_op
    if not isinstance(place, loop.IndexOp) or not isinstance(bound, arith.ConstantOp):
        return None
    rule, value = BELOW.get(op.predicate), bound.attributes["value"]
    if rule is None:
        return None
    assert isinstance(value, A.IntegerAttr)
    return value.value + rule[0], rule[1]


def border(op: Operation, axis: str) -> tuple[int, bool] | None:
    """The same of an axis: the bound b and the outcome below it, if `op` compares that with a
    constant."""
    bound = bound_of(op) if axis else None
    if bound is None:
        return None
    rest = op.operands[0].defining_op.expression - symbol(axis)  # type: ignore[union-attr]
    return (bound[0] - rest, bound[1]) if isinstance(rest, int) else None


def spans(
    ops: Iterable[Operation], vectors: Vectors, lower: Any, upper: Any
) -> list[tuple[Any, Any]]:
    """[lower, upper) cut where conditions change, at multiples of the vectors; whole if its ends
    are not known."""
    if not (isinstance(lower, int) and isinstance(upper, int)):
        return [(lower, upper)]
    width = vectors.width
    cuts = {lower, upper}
    for op in ops:
        edge = border(op, vectors.axis)
        if edge is not None:
            at = edge[0]
            cuts.update(c for c in (at // width * width, -(-at // width) * width)
                        if lower < c < upper)  # fmt: skip
    points = sorted(cuts)
    if len(points) > vectors.spans + 1 or len(points) < 2:
        return [(lower, upper)]
    return list(zip(points, points[1:], strict=False))


def decide(op: Operation, axis: str, scope: VectorScope) -> bool | Value | None:
    """What an operation on conditions is known to give in the scope's span: a bool, or the
    operand that it equals; None if nothing is known."""
    known = scope.known
    if isinstance(op, arith.CmpIOp):
        if op.results[0] in known:
            return known[op.results[0]]
        known_spans = [(axis, scope.span), *((n, (k, k + 1)) for n, k in scope.points.items())]
        results = [_compared(border(op, name), span) for name, span in known_spans]
        if scope.moved:
            results.append(_compared(bound_of(op), _places(op, scope)))
        return next((result for result in results if result is not None), None)
    if isinstance(op, arith.SelectOp):
        chosen = known.get(op.condition)
        if chosen is None:
            return None
        return op.if_true if chosen else op.if_false
    if isinstance(op, arith.AndIOp | arith.OrIOp):
        a, b = op.operands
        absorbing = isinstance(op, arith.OrIOp)
        for one, other in ((a, b), (b, a)):
            if one in known:
                return absorbing if known[one] is absorbing else other
    if isinstance(op, arith.XOrIOp):
        a, b = op.operands
        if a in known and b in known:
            return known[a] is not known[b]
    return None


def _places(op: arith.CmpIOp, scope: VectorScope) -> tuple[int, int] | None:
    """Where what is compared may lie at a point of a tile, [low, high); None if nobody knows."""
    place = op.lhs.defining_op
    if not isinstance(place, loop.IndexOp):
        return None
    terms, low = terms_of(substitute(place.expression, scope.moved))
    high = low
    for monomial, scale in terms:
        span = scope.ranges.get(monomial.name) if isinstance(monomial, Symbol) else None
        if span is None or not isinstance(scale, int):
            return None
        low, high = low + min(scale * n for n in span), high + max(scale * n for n in span)
    return low, high + 1


def _compared(edge: tuple[int, bool] | None, span: tuple[int, int] | None) -> bool | None:
    """What a comparison with such a border gives in all of a span."""
    if edge is None or span is None:
        return None
    bound, outcome = edge
    low, high = span
    if high <= bound:
        return outcome
    return not outcome if low >= bound else None
