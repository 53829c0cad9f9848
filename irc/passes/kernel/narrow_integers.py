"""The pass `narrow-integers`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from irc.analysis.scalar_ranges import ScalarRanges
from irc.dialects import arith, loop
from irc.dialects import math as math_ops
from irc.ir.core import Block, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Range
from irc.ir.types import IndexType, f32, i32, i64
from irc.passes.common.bodies import Body, clean_block, extents_of
from irc.target import target_of

_LEAST, _MOST = -(1 << 31), (1 << 31) - 1
# Integers up to this are floats of 32 bits.
_EXACT = 1 << 24
_SIGNED = ("eq", "ne", "slt", "sle", "sgt", "sge")

_ANY = Range()


@register_pass
class NarrowIntegers(Pass):
    """Computes integers of 64 bits with 32 of them on a GPU, which has no others, and in what walks
    over a stream on a CPU, where a vector has as many of these as of floats.

    Positions, and what is made of them by sums, products, extremes and choices, are so large as
    the extents of their axes say. Where only comparisons and clamps are made of a float's integer,
    it matters up to their bounds: the float is clamped instead. What 32 bits hold is computed with
    32, and widened where something else reads it.

    Before:
        %c = arith.index_cast %i : index to i64
        %d = arith.subi %c, %b : i64
        %f = arith.sitofp %d : i64 to f32
    After:
        %c = arith.index_cast %i : index to i32
        %d = arith.subi %c, %b : i32
        %f = arith.sitofp %d : i32 to f32
    """

    name = "narrow-integers"
    summary = "compute integers with 32 bits where these hold them, on a GPU and in walks"
    anchor = "func.func"
    asks_target = True

    def run(self, op: Operation, context: PassContext) -> None:
        is_gpu = target_of(context).is_gpu
        for outer in op.regions[0].blocks[0].ops:
            for compute in _computes_of(outer) if is_gpu else _walked(outer):
                if isinstance(compute, loop.ComputeOp) and _has_wide(compute.block):
                    if not context.spend("narrow-integers", compute):
                        return
                    context.count("narrowed", _Narrower(compute).narrow())


def _has_wide(block: Block) -> bool:
    """Whether a body computes integers of 64 bits."""
    return any(_is_wide(o) for op in block.ops for o in op.operands)


def _is_wide(value: Value) -> bool:
    return value.type is i64


def _computes_of(outer: Operation) -> Iterator[Operation]:
    """An operation, or the members of a group."""
    yield from outer.block.ops if isinstance(outer, loop.GroupOp) else [outer]


def _walked(outer: Operation) -> Iterator[Operation]:
    """The members of the walks in a group."""
    for member in _computes_of(outer) if isinstance(outer, loop.GroupOp) else ():
        if isinstance(member, loop.GroupOp) and member.carried:
            yield from member.block.ops


class _Narrower:
    """Computes integers of one body with 32 bits.

    ranges: the least and the largest that a value of 64 bits may be, where that is known; asked:
    what of a value matters to all that reads it, beyond which it is as good as the bound; narrow:
    values of 32 bits in place of wide ones, the same as far as that is asked, and their ranges.
    """

    def __init__(self, compute: loop.ComputeOp) -> None:
        self.block = compute.block
        self.scalars = ScalarRanges(extents_of(compute))
        self.ranges: dict[Value, Range] = {}
        self.asked: dict[Value, Range] = {}
        self.narrowed: dict[Value, tuple[Value, Range]] = {}

    def narrow(self) -> int:
        """Do it; gives the number of operations with 32 bits."""
        ops = list(self.block.ops)
        for op in ops:
            if len(op.results) == 1 and _is_wide(op.results[0]):
                self.ranges[op.results[0]] = self.range_of(op.results[0])
        for op in reversed(ops):
            for value, part in self.parts_asked(op):
                before = self.asked.get(value)
                self.asked[value] = part if before is None else _hull(before, part)
        for op in ops:
            body = Body(self.block, op)
            body.location = op.location
            self.rewrite(op, body)
        if self.narrowed:
            clean_block(self.block)
        return len(self.narrowed)

    def range_of(self, value: Value) -> Range:
        """What a wide value may be."""
        known = self.scalars.of(value)
        return Range(int(known.lo), int(known.hi)) if known.is_known else _ANY

    def parts_asked(self, op: Operation) -> Iterator[tuple[Value, Range]]:
        """What an operation asks of its wide operands."""
        asked = self.asked.get(op.results[0], _ANY) if len(op.results) == 1 else _ANY
        for number, value in enumerate(op.operands):
            if not _is_wide(value):
                continue
            if isinstance(op, arith.SelectOp):
                yield value, asked
                continue
            other = self.ranges.get(op.operands[1 - number], _ANY) if number < 2 <= len(
                op.operands) else _ANY  # fmt: skip
            yield value, _part(op, asked, other) if _is_finite(other) else _ANY

    def rewrite(self, op: Operation, body: Body) -> None:
        """Make an operation with 32 bits, or let it read what is made so."""
        operands = op.operands
        wide = [o for o in operands if _is_wide(o)]
        result = op.results[0] if len(op.results) == 1 else None
        if result is not None and _is_wide(result):
            narrow = self.of_32_bits(op, body)
            if narrow is not None and _fits(narrow[1]):
                self.narrowed[result] = narrow
                return
        if not wide or isinstance(op, arith.ConstantOp):
            return
        if result is not None and all(o in self.narrowed for o in wide):
            parts = [self.narrowed[o][0] if _is_wide(o) else o for o in operands]
            signed = isinstance(op, arith.CmpIOp) and op.predicate in _SIGNED
            if signed or isinstance(op, arith.SIToFPOp) or (
                isinstance(op, arith.IndexCastOp) and isinstance(result.type, IndexType)
            ):  # fmt: skip
                value = body.add(type(op), parts, result.type, op.attributes)
                result.replace_all_uses_with(value)
                return
        for number, operand in enumerate(operands):
            if operand in self.narrowed and not _is_free(operand.defining_op):
                widened = body.op("arith.extsi", self.narrowed[operand][0], type=i64)
                op.set_operand(number, widened)

    def of_32_bits(self, op: Operation, body: Body) -> tuple[Value, Range] | None:
        """The result with 32 bits, and its range."""
        result, operands = op.results[0], op.operands
        known = self.ranges[result]
        if isinstance(op, arith.ConstantOp):
            return (body.constant(known.lo, i32), known) if _fits(known) else None
        if isinstance(op, arith.IndexCastOp | arith.ExtUIOp | arith.ExtSIOp):
            if not _fits(known):
                return None
            (source,) = operands
            return (source if source.type is i32
                    else body.add(type(op), (source,), i32, op.attributes)), known  # fmt: skip
        if isinstance(op, arith.FPToSIOp) and operands[0].type is f32 and _fits(known):
            return body.op("arith.fptosi", operands[0], type=i32), known
        if isinstance(op, arith.SelectOp) and _fits(known):
            arms = [self.arm(value, known, body) for value in operands[1:]]
            chosen = [arm for arm, _ in arms if arm is not None]
            if len(chosen) == 2:
                bounds = _hull(arms[0][1], arms[1][1])
                return body.add(arith.SelectOp, (operands[0], *chosen), i32), bounds
        if isinstance(op, arith.FPToSIOp):
            asked = self.asked.get(result, _ANY)
            if operands[0].type is not f32 or not _is_finite(asked) or not _is_float(asked):
                return None
            # Not a number is the least, as a GPU's conversion has it.
            above = body.op("arith.maxnumf", operands[0], body.constant(asked.lo, f32))
            inside = body.op("arith.minnumf", above, body.constant(asked.hi, f32))
            return body.op("arith.fptosi", inside, type=i32), asked
        if type(op) not in _RANGES or any(o not in self.narrowed for o in operands if _is_wide(o)):
            return None
        ranges = [self.narrowed[o][1] for o in operands if _is_wide(o)]
        bounds = _combined(op, ranges)
        if not _fits(bounds):
            return None
        parts = [self.narrowed[o][0] if _is_wide(o) else o for o in operands]
        return body.add(type(op), parts, i32, op.attributes), bounds

    def arm(self, value: Value, known: Range, body: Body) -> tuple[Value | None, Range]:
        """One of two values, of which what is chosen lies in `known`, with 32 bits, and its range;
        None if it has none. A float's integer may be any where it is not chosen."""
        if value in self.narrowed:
            return self.narrowed[value]
        maker = value.defining_op
        if not isinstance(maker, arith.FPToSIOp) or maker.operands[0].type is not f32:
            return None, known
        return body.op("arith.fptosi", maker.operands[0], type=i32), known


def _is_free(op: Operation | None) -> bool:
    """Whether a wide value costs no more than the narrow one."""
    return isinstance(op, arith.ConstantOp | arith.IndexCastOp | arith.ExtUIOp | arith.ExtSIOp)


def _part(op: Operation, asked: Range, other: Range) -> Range:
    """What an operation asks of an operand, of whose result so much is asked, where the other
    operand is between two numbers. Sums with what isn't negative don't begin anew at the least."""
    low, high = other.lo, other.hi
    assert low is not None and high is not None
    if isinstance(op, arith.CmpIOp) and op.predicate in _SIGNED:
        return Range(low - 1, high + 1)
    if isinstance(op, arith.MinSIOp) and low == high:
        return Range(
            None if asked.lo is None else min(asked.lo, low),
            low if asked.hi is None else min(asked.hi, low),
        )
    if isinstance(op, arith.MaxSIOp) and low == high:
        return Range(
            low if asked.lo is None else max(asked.lo, low),
            None if asked.hi is None else max(asked.hi, low),
        )
    if isinstance(op, arith.AddIOp) and 0 <= low and high <= _MOST:
        return Range(
            None if asked.lo is None else asked.lo - high,
            None if asked.hi is None else asked.hi - low,
        )
    return _ANY


def _hull(a: Range, b: Range) -> Range:
    return Range(
        None if a.lo is None or b.lo is None else min(a.lo, b.lo),
        None if a.hi is None or b.hi is None else max(a.hi, b.hi),
    )


def _is_finite(a: Range) -> bool:
    return a.lo is not None and a.hi is not None


def _fits(a: Range) -> bool:
    """Whether 32 bits hold it."""
    return a.lo is not None and a.hi is not None and _LEAST <= a.lo and a.hi <= _MOST


def _is_float(a: Range) -> bool:
    return a.lo is not None and a.hi is not None and -_EXACT <= a.lo and a.hi <= _EXACT


def _combined(op: Operation, parts: list[Range]) -> Range:
    """What an operation makes of operands between two numbers each."""
    bounds = [[int(r.lo), int(r.hi)] for r in parts]  # type: ignore[arg-type]
    ends = _RANGES[type(op)](*bounds)
    return Range(min(ends), max(ends))


_RANGES: dict[type[Operation], Callable[..., list[int]]] = {
    arith.AddIOp: lambda a, b: [a[0] + b[0], a[1] + b[1]],
    arith.SubIOp: lambda a, b: [a[0] - b[1], a[1] - b[0]],
    arith.MulIOp: lambda a, b: [x * y for x in a for y in b],
    arith.MinSIOp: lambda a, b: [min(a[0], b[0]), min(a[1], b[1])],
    arith.MaxSIOp: lambda a, b: [max(a[0], b[0]), max(a[1], b[1])],
    arith.SelectOp: lambda a, b: [*a, *b],
    math_ops.AbsIOp: lambda a: [0 if a[0] <= 0 <= a[1] else min(map(abs, a)), *map(abs, a)],
}
"""What the results of operations may be, by the bounds of their operands."""


__all__ = ["NarrowIntegers"]
