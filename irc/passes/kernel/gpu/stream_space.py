"""What a gpu kernel of streamed products computes: products of rows with a stream of columns, and
what is made of these on the way.

    s = sum over k of q[m, k] * k[n, k]        scores: a contraction whose columns are the stream
    t = max over n of f(s)                     of the stream: reductions, also below a maximum,
    l = sum over n of exp(f(s) - t)
    o = sum over n of exp(f(s) - t) * v[n, d]  and contractions whose depth is the stream
    y = o / l                                  behind it: maps

A kernel walks over the stream once, tile by tile, and never has a whole row of it. Where terms are
powers below the row's maximum, sums so far are those below the maximum so far, and become smaller
where a greater element comes (M. Milakov and N. Gimelshein, Online normalizer calculation for
softmax, 2018; T. Dao et al., FlashAttention, 2022).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs

from irc.analysis.contraction import Contraction, axes_of_values, contraction_of
from irc.dialects import arith, loop
from irc.dialects import math as math_ops
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim, dim_product, free_symbols, symbol
from irc.ir.types import FloatType
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan, Origin

#: What is combined tile by tile, of floats.
COMBINED = frozenset({"sum", "max", "min", "prod"})


@attrs.frozen(eq=False)
class Power:
    """A power of e that a term is, in a member's body: of `element` less the row's maximum, which
    is read where the scalar `top` is made."""

    member: GpuMember
    exp: Operation
    element: Value
    top: arith.SelectOp
    maximum: Origin


@attrs.frozen(eq=False)
class Streamed:
    """An output that is combined over the stream, and the power below a maximum that its terms are
    (None: they don't depend on one)."""

    origin: Origin
    power: Power | None
    contraction: Contraction | None = None


@attrs.frozen(eq=False)
class StreamSpace:
    """The members of a kernel by what they are. stream: the extents that are walked over, outermost
    first. scores, combined: in the order of the program; behind: maps of what is combined."""

    stream: tuple[Dim, ...]
    scores: tuple[tuple[GpuMember, Contraction], ...]
    maps: tuple[GpuMember, ...]
    combined: tuple[Streamed, ...]
    behind: tuple[GpuMember, ...]

    @property
    def points(self) -> Dim:
        """How many points the stream has."""
        return dim_product(self.stream)

    def axes_of(self, member: GpuMember) -> list[loop.AxisAttr]:
        """A member's own axes that are the stream."""
        if member in self.behind:
            return []
        red = [a for a in member.own if a.kind == "red"]
        if not red or any(score is member for score, _ in self.scores):
            return [a for a in member.own if a.kind == "par"]
        return red

    @property
    def products(self) -> tuple[tuple[GpuMember, Contraction], ...]:
        """Those of the scores, and those over the stream."""
        return (*self.scores, *((each.origin.member, each.contraction) for each in self.combined
                                if each.contraction is not None))  # fmt: skip

    @property
    def sums(self) -> tuple[Streamed, ...]:
        """The contractions over the stream."""
        return tuple(each for each in self.combined if each.contraction is not None)


@attrs.frozen(eq=False)
class Limit:
    """How far a stream goes: nothing of it counts unless one of some comparisons of its outermost
    axis holds. ends: these, in members. chosen: scalars of members that are a score where one of
    `always` holds, whatever else: then all that a score needs to count."""

    ends: tuple[tuple[GpuMember, arith.CmpIOp], ...]
    chosen: tuple[tuple[GpuMember, arith.SelectOp, arith.CmpIOp], ...]


def limit_of(plan: GpuPlan, space: StreamSpace) -> Limit | None:
    """How far a stream of several axes has to be walked over; None for all of it."""
    if len(space.stream) < 2:
        return None
    ends: list[tuple[GpuMember, arith.CmpIOp]] = []

    def outside(member: GpuMember, condition: Value) -> list[Any] | None:
        member, op = made_in(plan, member, condition)
        own = space.axes_of(member)
        named = _ends(op, own[0].name) if own else None
        return None if named is None else [(member, end) for end in named]

    for each in space.combined:
        needed = unchanged(plan, each, outside)
        if needed is None:
            return None
        ends += needed
    chosen = list[tuple[GpuMember, arith.SelectOp, arith.CmpIOp]]()
    for member in plan.members:
        for op in member.compute.block.ops:
            if not isinstance(op, arith.SelectOp):
                continue
            condition = op.operands[0].defining_op
            for operand in condition.operands if isinstance(condition, arith.OrIOp) else ():
                chosen += [(member, op, end) for _, end in ends if end.results[0] is operand]
    return Limit(tuple(dict.fromkeys(ends)), tuple(dict.fromkeys(chosen)))


def tiled_rows(
    plan: GpuPlan, space: StreamSpace, fewest: int | None = None
) -> list[loop.AxisAttr]:
    """The last axes of a plan's rows that a tile goes over: those on which neither what is streamed
    nor how far depends, as few as have `fewest` points (None: all); at least the last one."""
    apart = [(member, contraction.right.axes) for member, contraction in space.products]
    limit = limit_of(plan, space)
    for member, end in limit.ends if limit is not None else ():
        apart.append((member, axes_of_values(member.compute)[end.operands[1]]))
    tiled: list[loop.AxisAttr] = []
    for number, axis in reversed(list(enumerate(plan.flat.axes))):
        points = dim_product([each.extent for each in tiled])
        enough = fewest is not None and not (isinstance(points, int) and points < fewest)
        shared = axis.extent != 1 and any(member.rows[number] in axes for member, axes in apart)
        if tiled and (enough or shared or not isinstance(axis.extent, int)):
            break
        tiled.insert(0, axis)
    return tiled


def lookups(
    plan: GpuPlan, space: StreamSpace, batch: int
) -> list[tuple[GpuMember, loop.ReadOp]]:
    """What members read of arrays once a turn of the stream, as lists of blocks are read: at the
    first `batch` row axes and at the outer axes of the stream."""
    reads = list[tuple[GpuMember, loop.ReadOp]]()
    for member in plan.members:
        outer = {axis.name for axis in space.axes_of(member)[:-1]}
        if member in space.behind or not outer:
            continue
        for read in member.compute.reads:
            names = {name for dim in read.indices for name in free_symbols(dim)}
            plain = read.mask is None and not read.positions and plan.origin(read.source) is None
            if plain and names & outer and names <= outer | {*member.rows[:batch]}:
                reads.append((member, read))
    return reads


def unchanged(plan: GpuPlan, each: Streamed, outside: Any) -> Any:
    """What `outside(member, condition)` gives, if not None, for a condition without which a term
    changes nothing that is combined: a maximum's element is -inf, a sum's term 0. What a term is
    multiplied with is taken to be finite. None where there is none."""
    member = each.origin.member
    value = member.compute.yield_op.values[each.origin.output]
    if each.contraction is not None:
        value = each.contraction.left.value
    if each.origin.attr.combiner == "max":
        return _lowest(plan, member, value, outside)
    return _zero(plan, member, value, outside) if each.origin.attr.combiner == "sum" else None


def _lowest(plan: GpuPlan, member: GpuMember, value: Value, outside: Any) -> Any:
    """As `unchanged`, for a scalar that is -inf."""
    member, op = made_in(plan, member, value)
    if isinstance(op, arith.SelectOp) and is_number(op.operands[2], -math.inf):
        known = outside(member, op.operands[0])
        return _lowest(plan, member, op.operands[1], outside) if known is None else known
    if isinstance(op, arith.MulFOp):
        for factor, other in (op.operands, op.operands[::-1]):
            if positive(factor.defining_op) is not None:
                return _lowest(plan, member, other, outside)
    return None


def _zero(plan: GpuPlan, member: GpuMember, value: Value, outside: Any) -> Any:
    """As `unchanged`, for a scalar that is 0."""
    member, op = made_in(plan, member, value)
    if isinstance(op, arith.TruncFOp | arith.ExtFOp):
        return _zero(plan, member, op.operands[0], outside)
    if isinstance(op, arith.SelectOp):
        condition, yes, no = op.operands
        if is_number(no, 0.0):
            known = outside(member, condition)
            return _zero(plan, member, yes, outside) if known is None else known
        return _zero(plan, member, no, outside) if is_number(yes, 0.0) else None
    if isinstance(op, math_ops.ExpOp):
        gap = op.operands[0].defining_op
        return _lowest(plan, member, gap.operands[0], outside) if isinstance(
            gap, arith.SubFOp) else None  # fmt: skip
    if isinstance(op, arith.MulFOp):
        for operand in op.operands:
            known = _zero(plan, member, operand, outside)
            if known is not None:
                return known
    return None


def made_in(plan: GpuPlan, member: GpuMember, value: Value) -> tuple[GpuMember, Any]:
    """The member in whose body a scalar is made that a member reads, and what makes it."""
    maker: Any = value.defining_op
    while isinstance(maker, loop.ReadOp) and maker.mask is None:
        origin = plan.origin(maker.source)
        if origin is None or origin.attr.kind != "map":
            break
        member = origin.member
        maker = member.compute.yield_op.values[origin.output].defining_op
    return member, maker


def _ends(op: Any, name: str) -> list[arith.CmpIOp] | None:
    """The comparisons of an axis with something of the rows one of which a condition needs; None
    where it needs none."""
    if isinstance(op, arith.OrIOp | arith.AndIOp):
        both = [_ends(operand.defining_op, name) for operand in op.operands]
        if isinstance(op, arith.AndIOp):
            return next((ends for ends in both if ends is not None), None)
        return None if None in both else [end for ends in both for end in ends]  # type: ignore[union-attr]
    if not isinstance(op, arith.CmpIOp) or op.predicate != "slt":
        return None
    place: Any = op.operands[0].defining_op
    while isinstance(place, arith.IndexCastOp):
        place = place.operands[0].defining_op
    plain = isinstance(place, loop.IndexOp) and place.expression == symbol(name)
    return [op] if plain and not _depends_on_own(op.operands[1]) else None


def _depends_on_own(value: Value) -> bool:
    """Whether a scalar is more than numbers, and what is read at the rows."""
    op: Any = value.defining_op
    compute: Any = None if op is None else op.parent_op
    if isinstance(op, loop.ReadOp):
        own = {a.name for a in compute.axis_list} - set(_rows_of(compute))
        return bool(op.operands[1:]) or any(own & free_symbols(dim) for dim in op.indices)
    if isinstance(op, loop.IndexOp):
        own = {a.name for a in compute.axis_list} - set(_rows_of(compute))
        return bool(op.operands) or bool(own & free_symbols(op.expression))
    if isinstance(op, arith.ConstantOp):
        return False
    kinds = (arith.AddIOp | arith.SubIOp | arith.FloorDivSIOp | arith.IndexCastOp | arith.TruncIOp
             | arith.ExtSIOp)  # fmt: skip
    return not isinstance(op, kinds) or any(_depends_on_own(each) for each in op.operands)


def _rows_of(compute: loop.ComputeOp) -> tuple[str, ...]:
    group = compute.parent_op
    return group.local_symbols() if isinstance(group, loop.GroupOp) else ()


def product_of(member: GpuMember) -> Contraction | str:
    """The contraction that a member is, with what its own columns are of as the right factor; or
    why it is none."""
    contraction = contraction_of(member.compute)
    if isinstance(contraction, str):
        return contraction
    columns = {a.name for a in member.own if a.kind == "par"}
    is_left = bool(columns) and columns <= contraction.left.axes
    return contraction.exchanged if is_left else contraction


def stream_space(plan: GpuPlan) -> StreamSpace | str:
    """What a plan streams, or why it is no kernel of streamed products."""
    return _Sorting(plan).space()


class _Sorting:
    """Sorts the members of a plan."""

    def __init__(self, plan: GpuPlan) -> None:
        self.plan = plan
        self.stream: tuple[Dim, ...] | None = None
        self.scores: list[tuple[GpuMember, Contraction]] = []
        self.maps: list[GpuMember] = []
        self.combined: list[Streamed] = []
        self.behind: list[GpuMember] = []

    def space(self) -> StreamSpace | str:
        plan = self.plan
        if not plan.flat.axes or any(m.folded for m in plan.members):
            return "its members share no rows"
        for member in plan.members:
            reason = self._sort(member)
            if reason:
                return reason
        if not self.scores or not any(each.contraction for each in self.combined):
            return "no product of rows and a stream goes into one over the stream"
        inside = {member for member, _ in self.scores} | {*self.maps}
        for _, value in plan.outputs:
            origin = plan.origin(value)
            if origin is None or origin.member in inside:
                return "it stores what it has of the stream"
        assert self.stream is not None
        return StreamSpace(self.stream, tuple(self.scores), tuple(self.maps),
                           tuple(self.combined), tuple(self.behind))  # fmt: skip

    def _sort(self, member: GpuMember) -> str:
        """Put a member where it belongs; gives why it has no place."""
        outputs, own = member.compute.output_list, member.own
        sources = [origin.member for read in member.compute.reads
                   if (origin := self.plan.origin(read.source)) is not None]  # fmt: skip
        after = any(each.origin.member in sources for each in self.combined) or any(
            each in sources for each in self.behind)  # fmt: skip
        streamed = any(member_ in sources for member_, _ in self.scores) or any(
            each in sources for each in self.maps)  # fmt: skip
        stored = after and all(o.kind == "scatter" and o.combiner == "set" for o in outputs)
        if stored or all(output.kind == "map" for output in outputs):
            if any(a.kind != "par" for a in own):
                return "a map combines points"
            (self.maps if streamed else self.behind).append(member)
            return "" if streamed or after else "a map is of nothing that it computes"
        if not streamed:
            return "" if not after and self._is_score(member) else "a member is no product of rows"
        if any(output.kind not in ("map", "reduce") for output in outputs):
            return "a member scatters or scans"
        return self._combine(member)

    def _is_score(self, member: GpuMember) -> bool:
        contraction = product_of(member)
        if isinstance(contraction, str) or not self._is_across(member, contraction):
            return False
        columns = [a for a in member.own if a.kind == "par"]
        return bool(columns) and self._streams([a.extent for a in columns]) and self._add(
            member, contraction)  # fmt: skip

    def _add(self, member: GpuMember, contraction: Contraction) -> bool:
        self.scores.append((member, contraction))
        return True

    def _is_across(self, member: GpuMember, contraction: Contraction) -> bool:
        """Whether the kernel's last rows are of the left factor alone (or one row, of neither), the
        member's own par axes of the right one."""
        row, own = member.rows[-1], {a.name for a in member.own if a.kind == "par"}
        left, right = contraction.left.axes, contraction.right.axes
        is_row = row in left or self.plan.flat.axes[-1].extent == 1
        return is_row and row not in right and own <= right and not own & left

    def _streams(self, extents: Sequence[Dim]) -> bool:
        """Whether it is the stream that has these extents."""
        if self.stream is None:
            self.stream = tuple(extents)
        return self.stream == tuple(extents)

    def _combine(self, member: GpuMember) -> str:
        """Put what a member combines of the stream among the rest of this."""
        outputs, own = member.compute.output_list, member.own
        red, par = ([a for a in own if a.kind == word] for word in ("red", "par"))
        if not self._streams([a.extent for a in red]) or len(red) + len(par) != len(own):
            return "a member combines what is no stream"
        contraction = product_of(member) if par else None
        if isinstance(contraction, str) or len(par) > 1:
            return contraction if isinstance(contraction, str) else "a sum has several columns"
        if contraction is not None and not self._is_across(member, contraction):
            return "the rows of a sum over the stream aren't those of what is streamed"
        for number, output in enumerate(outputs):
            if output.kind == "map":
                continue
            value = member.compute.yield_op.values[number]
            if not isinstance(value.type, FloatType) or output.combiner not in COMBINED:
                return f"it has a {output.combiner} of {value.type} over the stream"
            term = value if contraction is None else contraction.left.value
            power = self._below(member, term)
            if isinstance(power, str):
                return power
            if power is not None and output.combiner != "sum":
                return f"it has a {output.combiner} of powers below a maximum"
            self.combined.append(Streamed(Origin(member, number, 0), power, contraction))
        if any(output.kind == "map" for output in outputs):
            self.maps.append(member)
        return ""

    def _below(self, member: GpuMember, term: Value) -> Power | None | str:
        """The power below a maximum that a term is; None if it needs nothing that is combined, and
        a text if it needs that otherwise."""
        maxima = self._needs(term)
        if not maxima:
            return None
        member, power = made_in(self.plan, member, term)
        while isinstance(power, arith.TruncFOp | arith.ExtFOp):
            member, power = made_in(self.plan, member, power.operands[0])
        gap = power.operands[0].defining_op if isinstance(power, math_ops.ExpOp) else None
        if isinstance(gap, arith.SubFOp) and not self._needs(gap.operands[0]):
            top: Any = gap.operands[1].defining_op
            read = guarded(top)
            maximum = None if read is None else self.plan.origin(read.source)
            if maximum is not None and maxima == {(maximum.member, maximum.output)} and (
                (maximum.attr.kind, maximum.attr.combiner) == ("reduce", "max")
            ):  # fmt: skip
                return Power(member, power, gap.operands[0], top, maximum)
        return "it needs what is combined of the stream before all of it is"

    def _needs(self, value: Value) -> set[tuple[GpuMember, int]]:
        """The outputs combined over the stream that a scalar depends on."""
        needed, seen = set[tuple[GpuMember, int]](), set[Any]()
        pending = [value]
        while pending:
            maker: Any = pending.pop().defining_op
            if maker is None or maker in seen:
                continue
            seen.add(maker)
            if not isinstance(maker, loop.ReadOp):
                pending += maker.operands
                continue
            pending += maker.operands[1:]
            origin = self.plan.origin(maker.source)
            if origin is None or any(origin.member is m for m, _ in self.scores):
                continue
            if origin.attr.kind == "map":
                pending.append(origin.member.compute.yield_op.values[origin.output])
            else:
                needed.add((origin.member, origin.output))
        return needed


def guarded(maker: Any) -> loop.ReadOp | None:
    """What is read where a scalar is that, or 0 where it is -inf; None for any other scalar."""
    if not isinstance(maker, arith.SelectOp):
        return None
    condition, _, read = (operand.defining_op for operand in maker.operands)
    if not isinstance(read, loop.ReadOp) or not is_number(maker.operands[1], 0.0):
        return None
    if not isinstance(condition, arith.CmpFOp) or condition.predicate != "oeq":
        return None
    first, lowest = condition.operands
    same = first is read.results[0]
    return read if same and is_number(lowest, -math.inf) else None


def is_number(value: Value, number: float) -> bool:
    """Whether a scalar is a constant."""
    maker = value.defining_op
    return isinstance(maker, arith.ConstantOp) and getattr(maker.value, "value", None) == number


def positive(maker: Any) -> float | None:
    """The positive and finite number that a constant is; None for anything else."""
    number = getattr(maker.value, "value", None) if isinstance(maker, arith.ConstantOp) else None
    return float(number) if isinstance(number, float) and 0 < number < math.inf else None


__all__ = ["Limit", "Power", "StreamSpace", "Streamed", "is_number", "limit_of", "lookups",
           "made_in", "positive", "stream_space", "tiled_rows", "unchanged"]  # fmt: skip
