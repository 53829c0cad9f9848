"""A plan whose axes are collapsed as the schedules of its members say."""

from __future__ import annotations

from irc.dialects import loop
from irc.passes.kernel.cpu.plan import CpuPlan, apply_collapses
from irc.passes.kernel.cpu.schedule import CpuSchedule, read_schedule


def collapse_plan(plan: CpuPlan, schedule: CpuSchedule) -> list[CpuSchedule]:
    """Collapse a plan's axes as its schedules say; gives those of `everybody`, in order."""
    pairs, schedules = schedule.collapse, []
    everything = [a for m in plan.members for a in m.accesses()]
    shared = {a.name for a in plan.shared}
    apply_collapses(plan.op, plan.shared, everything, [p for p in pairs if p[0] in shared])
    for member in plan.everybody:
        if isinstance(plan.op, loop.ComputeOp):
            mine = schedule
            names = {a.name for a in member.own}
            own = [p for p in pairs if p[0] not in shared and p[0] in names]
        else:
            mine = read_schedule(member.compute.schedule, member.compute)
            own = mine.collapse
        apply_collapses(member.compute, member.own, list(member.accesses()), own)
        schedules.append(mine)
    return schedules


__all__ = ["collapse_plan"]
