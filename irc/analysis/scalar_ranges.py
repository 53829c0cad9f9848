"""Between which two numbers the scalars of a body lie, at every point of its axes.

    ranges = ScalarRanges(extents_of(compute))
    ranges.of(value)            # Between(lo=0, hi=47); an end that nobody knows is infinite
    ranges.outcome(comparison)  # True, False, or None

Integers come of index expressions, constants and what is computed of them; floats of such integers,
as the places of an interpolation do. Floats whose ends are known are no NaN. A sum or a product of
floats may be rounded once where it is fused with the next, so its ends are moved apart by more than
that changes. A choice by a comparison with a constant knows it in either case: what is chosen where
0 <= x < 48 lies there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from irc.dialects import arith, loop
from irc.dialects import math as math_ops
from irc.ir.attributes import Type
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim, Range, range_of
from irc.ir.types import FloatType, IndexType, IntegerType, f32, f64, i1

_DEEPEST = 200
# More than a float of 32 bits is rounded by, as a part of the largest operand.
_ROUNDING = 2.0**-22


@attrs.frozen
class Between:
    """The closed interval [lo, hi]; an end that is not known is infinite."""

    lo: float = -math.inf
    hi: float = math.inf

    @property
    def is_known(self) -> bool:
        """Whether both ends are known."""
        return self.lo > -math.inf and self.hi < math.inf

    def hull(self, other: Between) -> Between:
        """The least interval with both."""
        return Between(min(self.lo, other.lo), max(self.hi, other.hi))

    def within(self, other: Between) -> Between:
        """What is in both; itself where nothing is, as at points that there are none of."""
        lo, hi = max(self.lo, other.lo), min(self.hi, other.hi)
        return Between(lo, hi) if lo <= hi else self


ANYTHING = Between()
Ends = Callable[[Between, Between], Between]


def _products(a: Between, b: Between) -> Between:
    if not (a.is_known and b.is_known):
        return ANYTHING
    ends = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    return Between(min(ends), max(ends))


def _quotients(a: Between, b: Between) -> Between:
    """By a constant that is not 0."""
    if not (a.is_known and b.lo == b.hi) or not b.lo:
        return ANYTHING
    ends = [a.lo / b.lo, a.hi / b.lo]
    return Between(min(ends), max(ends))


def _remainders(a: Between, b: Between) -> Between:
    """By a positive constant, with the dividend's sign."""
    if b.lo != b.hi or b.lo <= 0:
        return ANYTHING
    most = b.lo - 1
    return Between(max(-most, min(a.lo, 0)), min(most, max(a.hi, 0)))


def _sums(a: Between, b: Between) -> Between:
    return Between(a.lo + b.lo, a.hi + b.hi)


def _differences(a: Between, b: Between) -> Between:
    return Between(a.lo - b.hi, a.hi - b.lo)


def _least(a: Between, b: Between) -> Between:
    return Between(min(a.lo, b.lo), min(a.hi, b.hi))


def _most(a: Between, b: Between) -> Between:
    return Between(max(a.lo, b.lo), max(a.hi, b.hi))


_INTEGERS: Mapping[type[Operation], Ends] = {
    arith.AddIOp: _sums, arith.SubIOp: _differences, arith.MulIOp: _products,
    arith.MinSIOp: _least, arith.MaxSIOp: _most, arith.RemSIOp: _remainders,
}  # fmt: skip
_FLOATS: Mapping[type[Operation], Ends] = {
    arith.AddFOp: _sums, arith.SubFOp: _differences, arith.MulFOp: _products,
    arith.DivFOp: _quotients,
}  # fmt: skip
_EXTREMES: Mapping[type[Operation], Ends] = {
    arith.MinimumFOp: _least, arith.MaximumFOp: _most,
}  # fmt: skip
_STEPS: Mapping[type[Operation], Callable[[float], float]] = {
    math_ops.FloorOp: math.floor, math_ops.CeilOp: math.ceil, math_ops.TruncOp: math.trunc,
    math_ops.RoundEvenOp: round,
}  # fmt: skip
# By predicate: the interval of x where `x predicate c` holds, of whole numbers and of any.
_WHERE: Mapping[str, Callable[[float], Between]] = {
    "slt": lambda c: Between(hi=c - 1), "sle": lambda c: Between(hi=c),
    "sgt": lambda c: Between(lo=c + 1), "sge": lambda c: Between(lo=c),
    "eq": lambda c: Between(c, c), "oeq": lambda c: Between(c, c),
    "olt": lambda c: Between(hi=c), "ole": lambda c: Between(hi=c),
    "ogt": lambda c: Between(lo=c), "oge": lambda c: Between(lo=c),
}  # fmt: skip
_OPPOSITE = {"slt": "sge", "sge": "slt", "sle": "sgt", "sgt": "sle", "ne": "eq"}
#: A comparison's predicate with its operands exchanged.
EXCHANGED = {
    "slt": "sgt", "sgt": "slt", "sle": "sge", "sge": "sle", "eq": "eq", "ne": "ne",
    "olt": "ogt", "ogt": "olt", "ole": "oge", "oge": "ole", "oeq": "oeq",
}  # fmt: skip


class ScalarRanges:
    """The intervals of the scalars of one body. extents: of its axes."""

    def __init__(self, extents: Mapping[str, Dim]) -> None:
        self._axes = {
            name: Range(0, max(extent - 1, 0))
            for name, extent in extents.items()
            if isinstance(extent, int)
        }
        self._known: dict[Value, Between] = {}

    def of(self, value: Value, depth: int = _DEEPEST) -> Between:
        """The interval of an integer or a float; of one of several lanes or of i1, anything."""
        known = self._known.get(value)
        if known is None:
            op = value.defining_op
            if op is None or depth == 0 or value.type is i1:
                return ANYTHING
            known = self._known[value] = self._of(op, value.type, depth - 1)
        return known

    def outcome(self, op: Operation) -> bool | None:
        """What a comparison gives at every point; None if it isn't known."""
        if not isinstance(op, arith.CmpIOp | arith.CmpFOp):
            return None
        left, right, predicate = self.of(op.lhs), self.of(op.rhs), op.predicate
        if isinstance(op, arith.CmpFOp):
            if not (left.is_known and right.is_known):
                return None
            # Neither is NaN, so that ordered and unordered ones are the same.
            predicate = {"eq": "eq", "ne": "ne"}.get(predicate[1:], "s" + predicate[1:])
        if predicate in ("slt", "sge"):
            below = True if left.hi < right.lo else False if left.lo >= right.hi else None
            return below if below is None else below is (predicate == "slt")
        if predicate in ("sgt", "sle"):
            above = True if left.lo > right.hi else False if left.hi <= right.lo else None
            return above if above is None else above is (predicate == "sgt")
        if predicate in ("eq", "ne") and (left.hi < right.lo or left.lo > right.hi):
            return predicate == "ne"
        return None

    def _of(self, op: Operation, type_: Type, depth: int) -> Between:
        if isinstance(op, arith.ConstantOp):
            return _constant(op)
        if isinstance(op, loop.IndexOp):
            return self._index(op, depth)
        if isinstance(op, arith.SelectOp):
            yes = self._where(op.if_true, op.condition, True, depth)
            return yes.hull(self._where(op.if_false, op.condition, False, depth))
        operands = [self.of(o, depth) for o in op.operands]
        if isinstance(type_, FloatType):
            return _float(op, type_, operands)
        if isinstance(type_, IntegerType | IndexType):
            return _integer(op, type_, operands)
        return ANYTHING

    def _index(self, op: loop.IndexOp, depth: int) -> Between:
        ranges = dict(self._axes)
        for number, operand in enumerate(op.positions):
            part = self.of(operand, depth)
            ranges[loop.placeholder(number)] = Range(_whole(part.lo), _whole(part.hi))
        known = range_of(op.expression, ranges)
        return Between(
            -math.inf if known.lo is None else known.lo, math.inf if known.hi is None else known.hi
        )

    def _where(self, value: Value, condition: Value, holds: bool, depth: int) -> Between:
        """The interval of what a choice gives where its condition holds, or doesn't."""
        known, maker = self.of(value, depth), value.defining_op
        facts = dict[Value, Between]()
        for compared, part in _facts(condition, holds):
            facts[compared] = facts.get(compared, ANYTHING).within(part)
        for compared, part in facts.items():
            if compared is value:
                known = known.within(part)
                continue
            if isinstance(maker, arith.FPToSIOp) and maker.operands[0] is compared:
                moved = _truncated(part)
            elif isinstance(maker, arith.AddIOp) and compared in maker.operands:
                other = maker.rhs if maker.lhs is compared else maker.lhs
                moved = _sums(self.of(compared, depth).within(part), self.of(other, depth))
            else:
                continue
            known = known.within(moved) if _holds(value.type, moved) else known
        return known


def _constant(op: arith.ConstantOp) -> Between:
    number: Any = op.attributes["value"].value  # type: ignore[attr-defined]
    if isinstance(number, bool) or not isinstance(number, int | float) or number != number:
        return ANYTHING
    return Between(number, number)


def _whole(end: float) -> int | None:
    return None if math.isinf(end) else int(end)


def _truncated(part: Between) -> Between:
    ends = [end if math.isinf(end) else math.trunc(end) for end in (part.lo, part.hi)]
    return Between(*ends)


def _facts(condition: Value, holds: bool) -> Iterator[tuple[Value, Between]]:
    """Values that are compared with constants, and where they lie if the condition holds, or
    doesn't."""
    op = condition.defining_op
    if isinstance(op, arith.AndIOp) and holds or isinstance(op, arith.OrIOp) and not holds:
        for operand in op.operands:  # type: ignore[union-attr]
            yield from _facts(operand, holds)
        return
    if not isinstance(op, arith.CmpIOp | arith.CmpFOp):
        return
    predicate: str = op.predicate
    for value, other, name in (
        (op.lhs, op.rhs, predicate),
        (op.rhs, op.lhs, EXCHANGED.get(op.predicate, "")),
    ):
        if not holds:
            # What isn't below another float may be NaN.
            name = _OPPOSITE.get(name, "") if isinstance(op, arith.CmpIOp) else ""
        maker = other.defining_op
        if name in _WHERE and isinstance(maker, arith.ConstantOp):
            bound = _constant(maker)
            if bound.lo == bound.hi:
                yield value, _WHERE[name](bound.lo)


def _integer(op: Operation, type_: Type, operands: list[Between]) -> Between:
    combined = _INTEGERS.get(type(op))
    if combined is not None:
        part = combined(*operands)
        return part if _holds(type_, part) or combined in (_least, _most) else ANYTHING
    if isinstance(op, arith.IndexCastOp | arith.TruncIOp):
        return operands[0] if _holds(type_, operands[0]) else ANYTHING
    if isinstance(op, arith.ExtSIOp):
        return operands[0].within(_all_of(op.operands[0].type))
    if isinstance(op, arith.ExtUIOp):
        known = operands[0].is_known and operands[0].lo >= 0
        return operands[0] if known else _unsigned(op.operands[0].type)
    if isinstance(op, math_ops.AbsIOp) and operands[0].is_known:
        lo, hi = operands[0].lo, operands[0].hi
        ends = abs(lo), abs(hi)
        part = Between(0 if lo <= 0 <= hi else min(ends), max(ends))
        return part if _holds(type_, part) else ANYTHING
    if isinstance(op, arith.FPToSIOp) and operands[0].is_known:
        part = _truncated(operands[0])
        return part if _holds(type_, part) else ANYTHING
    return ANYTHING


def _unsigned(type_: Type) -> Between:
    width = type_.width if isinstance(type_, IntegerType) else 64
    return Between(0, (1 << width) - 1)


def _all_of(type_: Type) -> Between:
    """All signed numbers of a type."""
    width = type_.width if isinstance(type_, IntegerType) else 64
    return Between(-(1 << width - 1), (1 << width - 1) - 1)


def _holds(type_: Type, part: Between) -> bool:
    """Whether all numbers of an interval are some of a type."""
    every = _all_of(type_)
    return part.is_known and every.lo <= part.lo and part.hi <= every.hi


def _float(op: Operation, type_: Type, operands: list[Between]) -> Between:
    # Narrower ones are rounded by more, and may become infinite.
    if type_ is not f32 and type_ is not f64:
        return ANYTHING
    if isinstance(op, arith.MaxNumFOp | arith.MinNumFOp):
        return _beside_nan(op, operands)
    if not operands or not all(part.is_known for part in operands):
        return ANYTHING
    if type(op) in _EXTREMES:
        return _EXTREMES[type(op)](*operands)
    if type(op) in _STEPS:
        step = _STEPS[type(op)]
        return Between(step(operands[0].lo), step(operands[0].hi))
    if isinstance(op, arith.ExtFOp):
        return operands[0]
    if isinstance(op, arith.NegFOp):
        return Between(-operands[0].hi, -operands[0].lo)
    combined = _FLOATS.get(type(op))
    if combined is not None:
        part = combined(*operands)
    elif isinstance(op, arith.SIToFPOp):
        part = Between(float(operands[0].lo), float(operands[0].hi))
        if max(-part.lo, part.hi) <= 1 << 24:
            return part  # such integers are floats
    else:
        return ANYTHING
    if not part.is_known or max(abs(part.lo), abs(part.hi)) > 2.0**100:
        return ANYTHING
    largest = max(abs(end) for each in (*operands, part) for end in (each.lo, each.hi))
    if combined is _products and part.lo == part.hi == 0:
        return part
    return Between(part.lo - largest * _ROUNDING, part.hi + largest * _ROUNDING)


def _beside_nan(op: Operation, operands: list[Between]) -> Between:
    """An extreme that takes no NaN where one operand, a constant, is none: only the end that the
    constant gives is sure of what may be NaN."""
    for part, constant in (operands, operands[::-1]):
        if constant.is_known:
            if part.is_known:
                return (_most if isinstance(op, arith.MaxNumFOp) else _least)(part, constant)
            if isinstance(op, arith.MaxNumFOp):
                return Between(constant.lo, max(part.hi, constant.hi))
            return Between(min(part.lo, constant.lo), constant.hi)
    return ANYTHING


__all__ = ["ANYTHING", "EXCHANGED", "Between", "ScalarRanges"]
