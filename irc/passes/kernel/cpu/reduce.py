"""Reductions: how each combiner starts, takes in values and ends, on scalars and vectors.

A reducer's state is a flat list of SSA values that loops carry. It reduces `horizontal`ly when
the vector axis is combined over: then vectors (several, to break the dependence chain and to keep
partial sums short) become scalars at the end. Else each lane is a result of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from irc.dialects import arith, kernel
from irc.dialects import math as math_ops
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.types import FloatType, IntegerType, i1, i8, i32, i64, index
from irc.passes.kernel.cpu.emit import Emitter
from irc.passes.kernel.cpu.partial_sums import sums_restart


@attrs.define(eq=False)
class ReducerShape:
    """The vectors that a reducer works on: `copies` of `width` lanes, combined at the end if
    `horizontal`. `peeled`: a scalar remainder comes beside the vectors."""

    width: int
    copies: int
    horizontal: bool
    peeled: bool = False
    uneven: bool = False


@attrs.define(eq=False)
class Evaluation:
    """One evaluation of the body: a value per copy; `width` 1 in a peeled remainder.

    `mask`: lanes that count. `positions`: of argmin and argmax, per copy, in the position type.
    """

    values: Sequence[Value]
    width: int
    mask: Value | None = None
    positions: Sequence[Value] = ()


class Reducer:
    """Base: combiners that need one value per copy (sum prod min max any all xor)."""

    parts = 1

    def __init__(
        self, emitter: Emitter, combiner: str, accumulator: Type, shape: ReducerShape
    ) -> None:
        self.emitter = emitter
        self.combiner = combiner
        unsigned = isinstance(accumulator, IntegerType) and accumulator.unsigned
        self.type: Type = IntegerType(accumulator.width) if unsigned else accumulator  # type: ignore[attr-defined]
        self.shape = shape
        self.scans = False
        # Unsigned extremes: with the sign bit flipped, the order is that of signed numbers.
        self.flips = unsigned and combiner in ("min", "max", "argmin", "argmax")

    # -- helpers

    def vector(self, width: int) -> Type:
        """The accumulator's type for `width` lanes."""
        return self.emitter.vector_type(self.type, width)

    def op(self, cls: type[Operation], *operands: Value) -> Value:
        """An operation whose result has the type of its first operand."""
        return self.emitter.add(cls, operands, operands[0].type)

    def number(self, value: float, width: int) -> Value:
        """A constant of the accumulator type."""
        number = float(value) if isinstance(self.type, FloatType) else int(value)
        return self.emitter.number(number, self.type, width)

    def test(self, cls: type[Operation], predicate: str, a: Value, b: Value) -> Value:
        """A comparison."""
        attributes: dict[str, Attribute] = {"predicate": A.StringAttr(predicate)}
        return self.emitter.add(cls, (a, b), arith.with_element(a.type, i1), attributes)

    def select(self, mask: Value | None, new: Value, old: Value) -> Value:
        """`new` where the mask holds (None: everywhere)."""
        if mask is None:
            return new
        return self.emitter.add(arith.SelectOp, (mask, new, old), new.type)

    def lanes(self, combiner: str, *vectors: Value) -> list[Value]:
        """All lanes of vectors combined to scalars."""
        elements = [arith.element_type(v.type) for v in vectors]
        attributes = {"combiner": A.StringAttr(combiner), "dim": A.IntegerAttr(0)}
        op = kernel.ReduceOp(vectors, elements, attributes, (), self.emitter.location)
        self.emitter.block.append(op)
        return list(op.results)

    # -- the interface

    @property
    def identity(self) -> float:
        """The value that changes nothing."""
        return identity_of(self.combiner, self.type)

    @property
    def restarts(self) -> bool:
        """Whether rounding asks for sums of partial sums."""
        return sums_restart(self.combiner, self.type, self.scans, self.shape.horizontal)

    def flipped(self, value: Value) -> Value:
        """A value with its sign bit flipped if this reducer works on such."""
        if not self.flips:
            return value
        lowest = self.number(-(2 ** (self.type.width - 1)), arith_width(value))  # type: ignore[attr-defined]
        return self.op(arith.XOrIOp, value, lowest)

    def initial(self) -> list[Value]:
        """The state before the first value."""
        state = [self.number(self.identity, self.shape.width)] * self.shape.copies
        return state + ([self.number(self.identity, 1)] if self.shape.peeled else [])

    def combine(self, a: Value, b: Value) -> Value:
        """Two partial results as one, the first of which is what there was before."""
        if self.combiner in ("min", "max"):
            # The left one is what is kept of equal ones. So x86 has the value's load in vmaxps.
            a, b = b, a
        return self.op(combining_op(self.combiner, self.type), a, b)

    def join(self, state: list[Value], other: list[Value]) -> list[Value]:
        """The state after the values of two states; of those that `restarts`."""
        return [self.combine(a, b) for a, b in zip(state, other, strict=True)]

    def nothing_lost(self, state: list[Value]) -> list[Value]:
        """What `join_exactly` lost before the first time."""
        return [self.number(0, arith_width(value)) for value in state]

    def join_exactly(
        self, state: list[Value], other: list[Value], lost: Iterator[Value]
    ) -> tuple[list[Value], list[Value]]:
        """What `join` gives with what its rounding `lost` before made good, and what it loses
        now: nothing of a sum that is infinite or NaN. It takes from `lost` as many values as it
        gives."""
        changes, rest = self.changes(state, other)
        sums, losses = [], []
        for total, value in zip(state, changes, strict=False):
            change = self.op(arith.SubFOp, value, next(lost))
            result = self.op(arith.AddFOp, total, change)
            loss = self.op(arith.SubFOp, self.op(arith.SubFOp, result, total), change)
            nothing = self.op(arith.SubFOp, result, result)
            finite = self.test(arith.CmpFOp, "oeq", nothing, nothing)
            sums.append(result)
            losses.append(self.select(finite, loss, self.number(0, arith_width(loss))))
        return [*sums, *rest], losses

    def changes(self, state: list[Value], other: list[Value]) -> tuple[list[Value], list[Value]]:
        """What the first values of a state of sums grow by where `other` joins it, and what the
        last ones are then."""
        return other, []

    def step(self, state: list[Value], step: Evaluation) -> list[Value]:
        """The state after one evaluation of the body."""
        state = list(state)
        if self.in_peel(step):
            state[-1] = self.combine(state[-1], self.flipped(step.values[0]))
            return state
        for copy, value in enumerate(step.values):
            combined = self.combine(state[copy], self.flipped(value))
            state[copy] = self.select(step.mask, combined, state[copy])
        return state

    def in_peel(self, step: Evaluation) -> bool:
        """Whether a step belongs to the scalar remainder beside the vectors."""
        return self.shape.peeled and step.width == 1

    def finish(self, state: list[Value]) -> list[list[Value]]:
        """For each result the final values: one scalar, or one vector per copy."""
        copies = self.shape.copies
        if not self.shape.horizontal:
            return [[self.flipped(v) for v in state[:copies]]]
        total = pairwise(self.combine, state[:copies])
        if self.shape.width > 1:
            (total,) = self.lanes(self.combiner, total)
        if self.shape.peeled:
            total = self.combine(total, state[-1])
        return [[self.flipped(total)]]


class ArgReducer(Reducer):
    """argmin and argmax: the state is (value, position) per copy; NaN wins, then the first."""

    parts = 2

    def __init__(
        self,
        emitter: Emitter,
        combiner: str,
        accumulator: Type,
        shape: ReducerShape,
        position_bits: int,
    ) -> None:
        super().__init__(emitter, combiner, i8 if accumulator is i1 else accumulator, shape)
        self.position_type = i32 if position_bits == 32 else i64

    @property
    def identity(self) -> float:
        return identity_of(self.combiner[3:], self.type)

    def initial(self) -> list[Value]:
        width, copies = self.shape.width, self.shape.copies
        values = [self.number(self.identity, width)] * copies
        places = [self.emitter.number(0, self.position_type, width)] * copies
        if self.shape.peeled:
            values.append(self.number(self.identity, 1))
            places.append(self.emitter.number(0, self.position_type))
        return [*values, *places]

    def beats(self, new: Value, old: Value) -> Value:
        """Whether `new` is a strictly better value."""
        greater = self.combiner == "argmax"
        if isinstance(self.type, FloatType):
            better = self.test(arith.CmpFOp, "ugt" if greater else "ult", new, old)
            known = self.test(arith.CmpFOp, "ord", old, old)
            return self.op(arith.AndIOp, better, known)
        return self.test(arith.CmpIOp, "sgt" if greater else "slt", new, old)

    def equal(self, a: Value, b: Value) -> Value:
        """Whether two values are equal, NaN being equal to NaN."""
        if not isinstance(self.type, FloatType):
            return self.test(arith.CmpIOp, "eq", a, b)
        same = self.test(arith.CmpFOp, "oeq", a, b)
        first = self.test(arith.CmpFOp, "uno", a, a)
        second = self.test(arith.CmpFOp, "uno", b, b)
        return self.op(arith.OrIOp, same, self.op(arith.AndIOp, first, second))

    def step(self, state: list[Value], step: Evaluation) -> list[Value]:
        state, slots = list(state), len(state) // 2
        for copy, value in enumerate(step.values):
            slot = slots - 1 if self.in_peel(step) else copy
            value = self.flipped(value)
            wins = self.beats(value, state[slot])
            if step.mask is not None:
                wins = self.op(arith.AndIOp, wins, step.mask)
            state[slot] = self.select(wins, value, state[slot])
            place = step.positions[copy]
            state[slots + slot] = self.select(wins, place, state[slots + slot])
        return state

    def merge(self, a: tuple[Value, Value], b: tuple[Value, Value]) -> tuple[Value, Value]:
        """Two (value, position) pairs of positions in any order as one."""
        earlier = self.test(arith.CmpIOp, "slt", b[1], a[1])
        tie = self.op(arith.AndIOp, self.equal(b[0], a[0]), earlier)
        wins = self.op(arith.OrIOp, self.beats(b[0], a[0]), tie)
        return self.select(wins, b[0], a[0]), self.select(wins, b[1], a[1])

    def finish(self, state: list[Value]) -> list[list[Value]]:
        slots, copies = len(state) // 2, self.shape.copies
        pairs = list(zip(state[:slots], state[slots:], strict=True))
        if not self.shape.horizontal:
            return [[self.wide(place) for _, place in pairs[:copies]]]
        total = pairwise(self.merge, pairs[:copies])
        if self.shape.width > 1:
            value, place = self.lanes(self.combiner, *total)
            total = (value, place)
        if self.shape.peeled:
            total = self.merge(total, pairs[-1])
        return [[self.wide(total[1])]]

    def wide(self, place: Value) -> Value:
        """A position as i64."""
        return self.emitter.convert(place, i64)


class MomentsReducer(Reducer):
    """Mean and sum of squared deviations. Values are taken in by blocks (all copies of one
    evaluation), each block's moments merged into the running ones after Chan, Golub and LeVeque
    (1979). State: mean, m2, count; and those of the peeled remainder. If `exact`, mean and m2 have
    what rounding loses beside them (Kahan 1965), between m2 and count; where each lane is a
    result of its own, chunks of steps have moments of their own, which are joined so."""

    parts = 2

    def __init__(
        self, emitter: Emitter, combiner: str, accumulator: Type, shape: ReducerShape, exact: bool
    ) -> None:
        super().__init__(emitter, combiner, accumulator, shape)
        self.exact = exact

    def initial(self) -> list[Value]:
        shape = self.shape
        runs = 1 if shape.horizontal else shape.copies
        zeros = [self.number(0, shape.width)] * (2 * runs + 2 * self.exact)
        count_width = shape.width if shape.horizontal and shape.uneven else 1
        state = [*zeros, self.number(0, count_width)]
        return state + ([self.number(0, 1)] * 3 if shape.peeled else [])

    def join(self, state: list[Value], other: list[Value]) -> list[Value]:
        changes, rest = self.changes(state, other)
        pairs = zip(state, changes, strict=False)
        return [*(self.op(arith.AddFOp, a, change) for a, change in pairs), *rest]

    def nothing_lost(self, state: list[Value]) -> list[Value]:
        return super().nothing_lost(state[:-1])

    def changes(self, state: list[Value], other: list[Value]) -> tuple[list[Value], list[Value]]:
        runs, width = self.shape.copies, self.shape.width
        count, more = state[-1], other[-1]
        total = self.op(arith.AddFOp, count, more)
        safe = self.op(arith.MaximumFOp, total, self.number(1, 1))
        share = self.spread(self.op(arith.DivFOp, more, safe), width)
        before = self.spread(count, width)
        means, squares = [], []
        for run in range(runs):
            delta = self.op(arith.SubFOp, other[run], state[run])
            moved = self.op(arith.MulFOp, delta, share)
            means.append(moved)
            scaled = self.op(arith.MulFOp, moved, before)
            squares.append(self.op(math_ops.FmaOp, scaled, delta, other[runs + run]))
        return [*means, *squares], [total]

    def step(self, state: list[Value], step: Evaluation) -> list[Value]:
        if self.in_peel(step):
            return [*state[:-3], *self.take(state[-3:], step)]
        peel = state[-3:] if self.shape.peeled else []
        state = state[:-3] if peel else state
        if self.shape.horizontal:
            return [*self.take(state, step), *peel]
        runs = len(step.values)
        count = self.op(arith.AddFOp, state[-1], self.number(1, 1))
        share = self.op(arith.DivFOp, self.number(1, 1), count)
        weight = self.spread(share, step.width)
        means, squares = [], []
        for run, value in enumerate(step.values):
            delta = self.op(arith.SubFOp, value, state[run])
            mean = self.op(math_ops.FmaOp, delta, weight, state[run])
            rest = self.op(arith.SubFOp, value, mean)
            means.append(mean)
            squares.append(self.op(math_ops.FmaOp, delta, rest, state[runs + run]))
        return [*means, *squares, count]

    def take(self, state: list[Value], step: Evaluation) -> list[Value]:
        """The running (mean, m2, count) after the block of one evaluation; what mean and m2 miss
        comes before the count, where it is kept."""
        mean, squares, *missing, count = state
        width, size = step.width, len(step.values)
        center, spread = self.block(step)
        many = self.number(size, arith_width(count))
        total = self.op(arith.AddFOp, count, many)
        share = self.spread(self.op(arith.DivFOp, many, total), width)
        delta = self.op(arith.SubFOp, center, mean)
        # In this order a count of 0 keeps delta^2 from overflowing.
        before = self.spread(count, width)
        scaled = self.op(arith.MulFOp, self.op(arith.MulFOp, delta, share), before)
        if missing:
            change = self.op(math_ops.FmaOp, delta, share, missing[0])
            moved, left = self.added(mean, change)
            more = missing[1] if spread is None else self.op(arith.AddFOp, spread, missing[1])
            grown, rest = self.added(squares, self.op(math_ops.FmaOp, scaled, delta, more))
            news = [moved, grown, left, rest, total]
        else:
            moved = self.op(math_ops.FmaOp, delta, share, mean)
            grown = self.op(math_ops.FmaOp, scaled, delta, squares)
            if spread is not None:
                grown = self.op(arith.AddFOp, grown, spread)
            news = [moved, grown, total]
        return [self.select(step.mask, new, old) for new, old in zip(news, state, strict=True)]

    def added(self, total: Value, change: Value) -> tuple[Value, Value]:
        """The sum of a total and a smaller change, and what it misses."""
        moved = self.op(arith.AddFOp, total, change)
        return moved, self.op(arith.SubFOp, change, self.op(arith.SubFOp, moved, total))

    def block(self, step: Evaluation) -> tuple[Value, Value | None]:
        """The mean and the sum of squared deviations over the copies, lane by lane."""
        values = list(step.values)
        if len(values) == 1:
            return values[0], None
        total = pairwise(lambda a, b: self.op(arith.AddFOp, a, b), values)
        center = self.op(arith.MulFOp, total, self.number(1 / len(values), step.width))
        squares: Value | None = None
        for value in values:
            delta = self.op(arith.SubFOp, value, center)
            if squares is None:
                squares = self.op(arith.MulFOp, delta, delta)
            else:
                squares = self.op(math_ops.FmaOp, delta, delta, squares)
        return center, squares

    def spread(self, value: Value, width: int) -> Value:
        """A scalar in each lane; a vector as it is."""
        if width == 1 or arith_width(value) > 1:
            return value
        return self.emitter.add(kernel.SplatOp, (value,), self.vector(width))

    def finish(self, state: list[Value]) -> list[list[Value]]:
        shape = self.shape
        if not shape.horizontal:
            runs = shape.copies
            count = state[-1]
            none = self.test(arith.CmpFOp, "oeq", count, self.number(0, 1))
            empty = self.select(none, self.number(math.nan, 1), self.number(0, 1))
            lost = self.spread(empty, shape.width)
            means = [self.op(arith.AddFOp, mean, lost) for mean in state[:runs]]
            return [means, state[runs : 2 * runs]]
        if shape.width == 1:
            return self.total([(*state[:2], state[2 + 2 * self.exact])])
        mean, squares, count = *state[:2], state[2 + 2 * self.exact]
        count = self.spread(count, shape.width)
        (amount,) = self.lanes("sum", count)
        # Lanes are added up as distances from the first one, which are small and round little.
        first = self.emitter.add(
            kernel.ExtractOp, (mean, self.emitter.number(0, index)), self.type
        )
        apart = self.op(arith.SubFOp, mean, self.spread(first, shape.width))
        (apart,) = self.lanes("sum", self.op(arith.MulFOp, apart, count))
        amount_or_one = self.op(arith.MaximumFOp, amount, self.number(1, 1))
        center = self.op(arith.AddFOp, first, self.op(arith.DivFOp, apart, amount_or_one))
        delta = self.op(arith.SubFOp, mean, self.spread(center, shape.width))
        moved = self.op(arith.MulFOp, self.op(arith.MulFOp, delta, delta), count)
        (second,) = self.lanes("sum", self.op(arith.AddFOp, squares, moved))
        runs_left = [(center, second, amount)]
        if shape.peeled:
            runs_left.append(tuple(state[-3:]))  # type: ignore[arg-type]
        return self.total(runs_left)

    def total(self, runs: Sequence[tuple[Value, ...]]) -> list[list[Value]]:
        """Scalar (mean, m2, count) triples merged; the mean of nothing is NaN."""
        mean, squares, count = runs[0]
        for other_mean, other_squares, other_count in runs[1:]:
            total = self.op(arith.AddFOp, count, other_count)
            safe = self.op(arith.MaximumFOp, total, self.number(1, 1))
            share = self.op(arith.DivFOp, other_count, safe)
            delta = self.op(arith.SubFOp, other_mean, mean)
            scaled = self.op(arith.MulFOp, self.op(arith.MulFOp, delta, share), count)
            squares = self.op(arith.AddFOp, squares, other_squares)
            squares = self.op(math_ops.FmaOp, scaled, delta, squares)
            mean = self.op(math_ops.FmaOp, delta, share, mean)
            count = total
        none = self.test(arith.CmpFOp, "oeq", count, self.number(0, 1))
        mean = self.select(none, self.number(math.nan, 1), mean)
        return [[mean], [squares]]


class LogSumExpReducer(Reducer):
    """Maximum m and sum of exp(x - m), both in one pass: the sum is scaled down as m grows."""

    parts = 2

    def initial(self) -> list[Value]:
        runs = 1 if self.shape.horizontal else self.shape.copies
        width = self.shape.width
        low, zero = self.number(-math.inf, width), self.number(0, width)
        state = [low] * runs + [zero] * runs
        if self.shape.peeled:
            state += [self.number(-math.inf, 1), self.number(0, 1)]
        return state

    def shift(self, maximum: Value) -> Value:
        """The maximum, 0 where it is infinite."""
        width = arith_width(maximum)
        infinite = self.emitter.add(
            math_ops.IsInfOp, (maximum,), arith.with_element(maximum.type, i1)
        )
        return self.select(infinite, self.number(0, width), maximum)

    def exp_minus(self, value: Value, shift: Value) -> Value:
        """exp(value - shift)."""
        return self.op(math_ops.ExpOp, self.op(arith.SubFOp, value, shift))

    def together(self, maximum: Value, total: Value) -> Value:
        """The logarithm of the sum: what a scan stores."""
        logarithm = self.emitter.add(math_ops.LogOp, (total,), total.type)
        return self.op(arith.AddFOp, maximum, logarithm)

    def take(
        self, maximum: Value, total: Value, values: Sequence[Value], mask: Value | None
    ) -> tuple[Value, Value]:
        """The running pair after several values."""
        top = pairwise(lambda a, b: self.op(arith.MaximumFOp, a, b), [*values, maximum])
        shift = self.shift(top)
        grown = self.op(arith.MulFOp, total, self.exp_minus(maximum, shift))
        terms = [self.exp_minus(value, shift) for value in values]
        grown = pairwise(lambda a, b: self.op(arith.AddFOp, a, b), [*terms, grown])
        return self.select(mask, top, maximum), self.select(mask, grown, total)

    def step(self, state: list[Value], step: Evaluation) -> list[Value]:
        if self.in_peel(step):
            return [*state[:-2], *self.take(state[-2], state[-1], step.values, None)]
        peel = state[-2:] if self.shape.peeled else []
        if self.shape.horizontal:
            return [*self.take(state[0], state[1], step.values, step.mask), *peel]
        runs = self.shape.copies
        pairs = [
            self.take(state[run], state[runs + run], [value], step.mask)
            for run, value in enumerate(step.values)
        ]
        return [p[0] for p in pairs] + [p[1] for p in pairs]

    def finish(self, state: list[Value]) -> list[list[Value]]:
        runs = 1 if self.shape.horizontal else self.shape.copies
        if self.scans:
            pairs = zip(state[:runs], state[runs : 2 * runs], strict=True)
            return [[self.together(maximum, total) for maximum, total in pairs]]
        if not self.shape.horizontal:
            return [state[:runs], state[runs : 2 * runs]]
        maximum, total = state[0], state[1]
        if self.shape.width > 1:
            (top,) = self.lanes("max", maximum)
            shift = self.shift(top)
            wide = self.emitter.add(kernel.SplatOp, (shift,), maximum.type)
            scaled = self.op(arith.MulFOp, total, self.exp_minus(maximum, wide))
            (total,) = self.lanes("sum", scaled)
            maximum = top
        if self.shape.peeled:
            top = self.op(arith.MaximumFOp, maximum, state[-2])
            shift = self.shift(top)
            left = self.op(arith.MulFOp, total, self.exp_minus(maximum, shift))
            right = self.op(arith.MulFOp, state[-1], self.exp_minus(state[-2], shift))
            maximum, total = top, self.op(arith.AddFOp, left, right)
        return [[maximum], [total]]


def make_reducer(
    emitter: Emitter,
    combiner: str,
    accumulator: Type,
    shape: ReducerShape,
    exact: bool = False,
    position_bits: int = 64,
) -> Reducer:
    """The reducer of a combiner. `exact`: of moments; `position_bits`: of argmin and argmax."""
    if combiner == "sort":
        raise InvalidIR("a sort has no code on a cpu")
    if combiner in ("argmin", "argmax"):
        return ArgReducer(emitter, combiner, accumulator, shape, position_bits)
    if combiner == "moments":
        return MomentsReducer(emitter, combiner, accumulator, shape, exact)
    if combiner == "logsumexp":
        return LogSumExpReducer(emitter, combiner, accumulator, shape)
    return Reducer(emitter, combiner, accumulator, shape)


def arith_width(value: Value) -> int:
    """The lanes of a vector; 1 for a scalar."""
    shape = getattr(value.type, "shape", None)
    return shape[0] if shape else 1


def pairwise(combine: Callable[[Any, Any], Any], values: Sequence[Any]) -> Any:
    """Values combined as a balanced tree."""
    values = list(values)
    while len(values) > 1:
        pairs = [combine(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + values[len(values) & ~1 :]
    return values[0]


def identity_of(combiner: str, type_: Type) -> float:
    """The value that changes nothing when combined."""
    if combiner in ("sum", "xor", "any"):
        return 0
    if combiner == "prod":
        return 1
    if isinstance(type_, FloatType):
        return {"min": math.inf, "max": -math.inf}[combiner]
    width = type_.width  # type: ignore[attr-defined]
    if combiner == "all":
        return 1 if width == 1 else -1
    if width == 1:
        return 1 if combiner == "min" else 0
    return 2 ** (width - 1) - 1 if combiner == "min" else -(2 ** (width - 1))


def combining_op(combiner: str, type_: Type) -> type[Operation]:
    """The operation that combines two values."""
    if isinstance(type_, FloatType):
        return {
            "sum": arith.AddFOp,
            "prod": arith.MulFOp,
            "min": arith.MinimumFOp,
            "max": arith.MaximumFOp,
        }[combiner]
    if type_ is i1:
        return {
            "sum": arith.OrIOp, "any": arith.OrIOp, "max": arith.OrIOp, "xor": arith.XOrIOp,
            "prod": arith.AndIOp, "all": arith.AndIOp, "min": arith.AndIOp,
        }[combiner]  # fmt: skip
    return {
        "sum": arith.AddIOp,
        "prod": arith.MulIOp,
        "any": arith.OrIOp,
        "all": arith.AndIOp,
        "xor": arith.XOrIOp,
        "min": arith.MinSIOp,
        "max": arith.MaxSIOp,
    }[combiner]
