"""Which points of a reduction have their sums in registers together (the schedule's `jam_axis`,
`jam_points`, `jam_ahead` and `written_out`, and the order of loops that they need), and which maps
are computed from such sums (`beside_sums`)."""

from __future__ import annotations

import attrs

from irc.analysis.loop import is_map
from irc.analysis.shared_reads import SharedReads, jam_of
from irc.dialects import loop
from irc.ir.symbols import symbol
from irc.passes.kernel.cpu.plan import CpuMember, CpuPlan
from irc.passes.kernel.cpu.schedule import CpuSchedule
from irc.target import Target

VECTORS = ("vector_axis", "lanes", "copies", "tail", "spans")
"""The keys of vectors, which maps beside sums have from these."""


@attrs.define(eq=False)
class JammedMembers:
    """A reduction several points of which are in registers, and the maps beside its sums. chosen:
    the reduction's schedule, when it has these keys."""

    jam: SharedReads
    reduction: CpuMember
    maps: list[CpuMember] = attrs.field(factory=list)
    chosen: CpuSchedule | None = None

    @property
    def members(self) -> list[CpuMember]:
        """All members."""
        return [self.reduction, *self.maps]

    def write(self, member: CpuMember, schedule: CpuSchedule) -> None:
        """Write the keys of a member, which come in the group's order: loops of other axes come
        first, then the points, then vectors, so that a tile of points reads what lies side by side,
        and inside of these what is combined. Vectors that run along another axis leave everything
        as it is."""
        jam = self.jam
        kinds = {axis.name: axis.kind for axis in member.own}
        first = [n for n in schedule.order if kinds[n] == "par" and n not in (jam.axis, jam.vector)]
        if member is not self.reduction:
            if self.chosen is not None:
                for name in VECTORS:
                    setattr(schedule, name, getattr(self.chosen, name))
                schedule.beside_sums, schedule.order = True, [*first, jam.axis, jam.vector]
            return
        if schedule.vector_axis != jam.vector:
            return
        self.chosen = schedule
        last = [n for n in schedule.order if n in jam.written_out]
        combined = [n for n in schedule.order if kinds[n] != "par" and n not in last]
        schedule.order = [*first, jam.axis, jam.vector, *combined, *last]
        schedule.copies, schedule.written_out = 1, last
        schedule.jam_axis, schedule.jam_points = jam.axis, jam.points
        schedule.jam_ahead = jam.ahead


def jams_of(plan: CpuPlan, target: Target) -> dict[CpuMember, JammedMembers]:
    """The members of a group that have points of a reduction in registers, if several share most of
    what they read: the reduction, and the maps that alone read its sums, each at its own point."""
    jams: dict[CpuMember, JammedMembers] = {}
    for member in plan.members:
        jam = jam_of(member.compute, target)
        kinds = {axis.name: axis.kind for axis in member.own}
        if isinstance(jam, str) or {kinds.get(jam.axis), kinds.get(jam.vector)} != {"par"}:
            continue
        jammed = JammedMembers(jam, member, _maps_beside(plan, member))
        jams.update(dict.fromkeys(jammed.members, jammed))
    return jams


def _maps_beside(plan: CpuPlan, reduction: CpuMember) -> list[CpuMember]:
    """The maps that alone read a reduction's sums, if all can be computed beside them: of nothing
    that is made after it."""
    (sums,) = reduction.stores
    if plan.storage[sums].kind != "scratch":
        return []
    place = plan.members.index(reduction)
    later = {value for member in plan.members[place:] for value in member.stores}
    around = [axis.name for axis in reduction.own if axis.kind == "par"]
    maps = []
    for member in plan.members[place + 1 :]:
        reads = [op for op in member.reads if isinstance(op, loop.ReadOp)]
        sources = [plan_value(member, op) for op in reads]
        if sums not in sources:
            continue
        fits = is_map(member.compute) and [axis.name for axis in member.own] == around
        own = all(reads_own_point(op) for op, s in zip(reads, sources, strict=True) if s is sums)
        if not (fits and own and not (later - {sums}) & set(sources)):
            return []
        maps.append(member)
    return maps


def reads_own_point(op: loop.ReadOp) -> bool:
    """Whether a map reads an array at its own point."""
    compute = op.parent_op
    assert isinstance(compute, loop.ComputeOp)
    return tuple(op.indices) == tuple(symbol(axis.name) for axis in compute.axis_list)


def plan_value(member: CpuMember, op: loop.ReadOp) -> object:
    """What a member reads, as the plan knows it."""
    storage = member.reads[op].storage
    return None if storage is None else storage.value


__all__ = ["JammedMembers", "jams_of", "reads_own_point"]
