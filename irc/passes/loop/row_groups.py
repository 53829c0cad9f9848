"""Groups whose members are rows: reductions of them, and what is computed from their results."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence

import attrs

from irc.analysis.contraction import tiled
from irc.analysis.loop import read_offset, strides_of
from irc.dialects import arith, loop, sym
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim, coefficient, free_symbols, symbol
from irc.ir.types import TensorType, element_bytes
from irc.passes.kernel.gpu.plan import plan_for_gpu
from irc.passes.kernel.gpu.summed_powers import SummedPowers, walked_together
from irc.passes.kernel.plan.plan import flatten
from irc.passes.loop.split_reductions import SPLITTABLE
from irc.target import Target


@attrs.frozen(eq=False)
class GroupRows:
    """A group of reductions of rows and what is computed from their results.

    members: all, in order. sizes: of the axes that they share; own: of those that members along
    rows have of their own; others have a point for each row, or reduce a few.
    """

    group: loop.GroupOp
    members: tuple[loop.ComputeOp, ...]
    sizes: tuple[int, ...]
    own: tuple[int, ...]

    @functools.cached_property
    def powers(self) -> dict[Operation, SummedPowers]:
        """Sums of powers of e below a maximum, which are had with that in one walk, by member."""
        powers = walked_together(plan_for_gpu(flatten(self.group)))
        return {each.total.member.compute: each for each in powers}

    @property
    def sums(self) -> dict[Operation, int]:
        """The phases of members' reductions: how many, each of which needs the one before it, are
        done before them."""
        return self._phases[0]

    @property
    def maps(self) -> dict[Operation, int]:
        """The phases of members' maps."""
        return self._phases[1]

    @functools.cached_property
    def _phases(self) -> tuple[dict[Operation, int], dict[Operation, int]]:
        sums, maps = dict[Operation, int](), dict[Operation, int]()
        for member in self.members:
            phase = 0
            for read in member.reads:
                maker = read.source.defining_op
                if maker in maps:
                    before = sums[maker] + 1 if self.combines(read.source) else maps[maker]
                    phase = max(phase, before)
            maps[member] = sums[member] = phase
            if member in self.powers:
                sums[member] = sums[self.powers[member].maximum.member.compute]
        return sums, maps

    @property
    def phases(self) -> range:
        """All phases."""
        return range(1 + max(self.last(member) for member in self.along()))

    def last(self, member: loop.ComputeOp) -> int:
        """The phase of what a member stores along rows, or of its reductions."""
        return self.maps[member] if self.stored(member) else self.sums[member]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return math.prod(self.sizes)

    @property
    def points(self) -> int:
        """Points of a row."""
        return math.prod(self.own)

    @property
    def shared(self) -> int:
        """How many axes the members share."""
        return len(self.group.axis_list)

    def has(self, value: Value) -> bool:
        """Whether a value is a member's."""
        maker = value.defining_op
        return maker is not None and maker.parent is self.group.block

    def is_of_rows(self, value: Value) -> bool:
        """Whether a member's result has one value a row."""
        return all(size == 1 for size in type_of(value).shape[self.shared :])

    def along(self) -> Iterator[loop.ComputeOp]:
        """The members that go along rows."""
        return (member for member in self.members if self.goes_along(member))

    def goes_along(self, member: loop.ComputeOp) -> bool:
        """Whether a member goes along rows."""
        return [a.extent for a in _own(member, self.shared)] == list(self.own)

    def combines(self, value: Value) -> bool:
        """Whether a value is a reduction of a member along rows."""
        member = value.defining_op
        assert isinstance(member, loop.ComputeOp)
        return self.is_of_rows(value) and is_reduction(member) and self.goes_along(member)

    def stored(self, member: Operation) -> list[Value]:
        """The results of a member along rows that the group stores."""
        yielded = set(self.group.yield_op.values)
        return [r for r in member.results if r in yielded and not self.is_of_rows(r)]

    def sources(self, member: loop.ComputeOp) -> dict[Value, list[loop.ReadOp]]:
        """What a member reads of arrays in memory along its own axes."""
        own = {a.name for a in member.axis_list[self.shared :]}
        sources: dict[Value, list[loop.ReadOp]] = {}
        for read in member.reads:
            if not self.has(read.source) and own & free_symbols(read_offset(read)):
                sources.setdefault(read.source, []).append(read)
        return sources

    def moved(self) -> list[dict[Value, int]]:
        """By phase: the bytes of a point of what is read and stored along rows."""
        moved: list[dict[Value, int]] = [{} for _ in self.phases]
        for member in self.along():
            stored, read = self.stored(member), self._read_along(member)
            for array in (*read, *stored) if stored else ():
                moved[self.maps[member]][array] = element_bytes(type_of(array).element)
            for array in read if is_reduction(member) else ():
                moved[self.sums[member]][array] = element_bytes(type_of(array).element)
        return moved

    def _read_along(self, member: loop.ComputeOp) -> list[Value]:
        """What a member, and those whose values along rows it reads, reads in memory along them."""
        arrays, pending = dict[Value, None](), [member]
        while pending:
            each = pending.pop()
            arrays |= dict.fromkeys(self.sources(each))
            inside = [r.source for r in each.reads if self.has(r.source)]
            makers = [v.defining_op for v in inside if not self.is_of_rows(v)]
            pending += [maker for maker in makers if isinstance(maker, loop.ComputeOp)]
        return list(arrays)

    def time(self, target: Target) -> int:
        """What the group takes with a program instance for each row, in femtoseconds."""
        gpu, moved = target.gpu, self.moved()
        kept = len({array for phase in moved for array in phase})
        walked = sum(len(phase) for phase in moved)
        held = kept * self.points <= gpu.persistent_points
        waves = -(-self.count // gpu.processors)
        moves = gpu.crossed_points if self.crosses() else gpu.instance_points
        return waves * self.points * (kept if held else walked) * 10**9 // moves

    def crosses(self) -> bool:
        """Whether something is stored along another own axis than all is read along."""
        read, stored = set[int](), set[int]()
        for member in self.along():
            names = [a.name for a in member.axis_list[self.shared :]]
            for each in self.sources(member).values():
                steps = [coefficient(read_offset(each[0]), n) for n in names]
                read |= {k for k, step in enumerate(steps) if step == 1 and self.own[k] > 1}
            for result in self.stored(member):
                strides = strides_of(type_of(result))[self.shared :]
                stored |= {k for k, step in enumerate(strides) if step == 1 and self.own[k] > 1}
        return bool(stored) and not stored & read


def rows_of(group: loop.GroupOp, target: Target) -> GroupRows | str:
    """The rows of a group; a text says why it has none that can be spread."""
    shared = len(group.axis_list)
    sizes = [a.extent for a in group.axis_list]
    if not shared or sym.range_entry(group) or group.schedule is not None:
        return "it shares no axes, or is scheduled"
    members: list[loop.ComputeOp] = []
    own: set[tuple[Dim, ...]] = set()
    for member in group.block.ops:
        if isinstance(member, loop.YieldOp):
            continue
        if not isinstance(member, loop.ComputeOp) or group.is_once(member) or member.operands:
            return "it has a member that is no plain compute of its rows"
        if member.schedule is not None or tiled(member, target) is not None:
            return "a member is scheduled, or multiplies tiles"
        axes = _own(member, shared)
        combined = [o for o in member.output_list if o.kind != "map"]
        if len({a.kind for a in axes}) > 1:
            return "a member has reduced axes beside others"
        if any(o.kind != "reduce" or o.combiner not in SPLITTABLE | {"moments"} for o in combined):
            return "what parts give can't be combined"
        if not all(_reads_own_point(read, member, shared) for read in member.reads
                   if read.source.defining_op in members):  # fmt: skip
            return "a member reads another one at other points than its own"
        members.append(member)
        own |= {tuple(a.extent for a in axes)} if axes else set()
    rows_sizes, own_sizes = _known(sizes), [_known(each) for each in own]
    if not own_sizes or not rows_sizes or not all(own_sizes):
        return "sizes aren't known"
    if not any(map(is_reduction, members)):
        return "its members reduce nothing"
    longest = max(own_sizes, key=math.prod)
    if any(math.prod(each) * target.gpu.few_beside > math.prod(longest)
           for each in own_sizes if each != longest):  # fmt: skip
        return "its members have no equal axes, and some of them not few points"
    rows = GroupRows(group, tuple(members), rows_sizes, longest)
    if not all(rows.goes_along(m) or all(map(rows.is_of_rows, m.results)) for m in members):
        return "its members have no equal axes"
    if any(_asks_for_extremes(rows, member) for member in members):
        return "a member asks which points are extremes, which kernels may compute by a bit apart"
    across = [_lies_across(each, reads[0], shared)
              for each in rows.along() for reads in rows.sources(each).values()]  # fmt: skip
    return "its rows lie across memory" if any(across) or not across else rows


def _asks_for_extremes(rows: GroupRows, member: loop.ComputeOp) -> bool:
    """Whether points are compared for equality with a result of rows, as an extreme's gradient
    does: each kernel computes them anew, and what takes the place of a division, or rounds, is
    decided in each by what else it has."""
    for op in member.block.ops:
        if isinstance(op, arith.CmpFOp) and op.predicate[1:] in ("eq", "ne"):
            for operand in op.operands:
                read = operand.defining_op
                if isinstance(read, loop.ReadOp) and rows.has(read.source):
                    if rows.combines(read.source):
                        return True
    return False


def _own(member: loop.ComputeOp, shared: int) -> list[loop.AxisAttr]:
    """A member's own axes; none if they have one point."""
    own = list(member.axis_list[shared:])
    return own if any(a.extent != 1 for a in own) else []


def _reads_own_point(read: loop.ReadOp, reader: loop.ComputeOp, shared: int) -> bool:
    """Whether a member is read at the point of who reads it."""
    for k, (place, size) in enumerate(zip(read.indices, type_of(read.source).shape, strict=True)):
        own = k < len(reader.axis_list) and place == symbol(reader.axis_list[k].name)
        if not own and (k < shared or size != 1):
            return False
    return True


def _known(sizes: Sequence[Dim]) -> tuple[int, ...]:
    """Sizes that are all known, and have points; else none."""
    known = tuple(n for n in sizes if isinstance(n, int) and n > 0)
    return known if len(known) == len(sizes) else ()


def _lies_across(member: loop.ComputeOp, read: loop.ReadOp, shared: int) -> bool:
    """Whether what is read along rows lies side by side from row to row."""
    offset, axes = read_offset(read), member.axis_list
    steps = [coefficient(offset, a.name) if a.extent != 1 else 0 for a in axes]
    return 1 in steps[:shared] or 1 not in steps[shared:]


def is_reduction(member: Operation) -> bool:
    """Whether a member reduces its own axes."""
    return isinstance(member, loop.ComputeOp) and any(
        a.kind == "red" and a.extent != 1 for a in member.axis_list)  # fmt: skip


def type_of(value: Value) -> TensorType:
    """The type of an array."""
    assert isinstance(value.type, TensorType)
    return value.type


__all__ = ["GroupRows", "is_reduction", "rows_of", "type_of"]
