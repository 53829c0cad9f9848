"""Axes of a plan that become one: which may, and those that schedules name."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from irc.dialects import loop
from irc.ir.core import Operation
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import coefficient, substitute
from irc.passes.kernel.cpu.plan import Access, Axis, CpuMember, CpuPlan
from irc.passes.kernel.cpu.schedule import CpuSchedule, Pairs, read_schedule


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


def find_collapses(
    plan: CpuPlan, whole: Collection[CpuMember] = ()
) -> tuple[Pairs, list[Pairs]]:
    """Pairs (outer, inner) of axes that may become one, in the order in which to apply them: of
    the shared axes, and of each member's own (`everybody`).

    Two axes collapse when every expression steps along the outer one by as much as along the
    whole of the inner one. The plan is changed as `apply_collapses` does. whole: members that
    keep their own axes.
    """
    everything = [a for m in plan.members for a in m.accesses()]
    shared = _collapse_list(plan.shared, everything, True)
    own: list[Pairs] = []
    for member in plan.everybody:
        if member in whole:
            own.append([])
            continue
        ordered = any(o.kind == "scatter" for o in member.compute.output_list)
        own.append(_collapse_list(member.own, list(member.accesses()), not ordered))
    return shared, own


def _collapse_list(
    axes: list[Axis], accesses: list[Access], any_order: bool
) -> Pairs:
    pairs: Pairs = []
    drop_units(axes, accesses)
    changed = True
    while changed:
        changed = False
        for outer in axes:
            for inner in axes:
                if outer is inner or (not any_order and axes.index(outer) + 1 != axes.index(inner)):
                    continue
                if can_collapse(outer, inner, accesses):
                    collapse(axes, accesses, outer, inner)
                    pairs.append((outer.name, inner.name))
                    changed = True
                    break
            if changed:
                break
    return pairs


def drop_units(axes: list[Axis], accesses: Iterable[Access]) -> None:
    """Remove the axes of one point."""
    units = {a.name: 0 for a in axes if a.extent == 1 and a.kind != "scan"}
    if units:
        axes[:] = [a for a in axes if a.name not in units]
        for access in accesses:
            access.expression = substitute(access.expression, units)


def can_collapse(outer: Axis, inner: Axis, accesses: Iterable[Access]) -> bool:
    """Whether every access steps along `outer` by as much as along all of `inner`."""
    if outer.kind != inner.kind or outer.kind == "scan":
        return False
    for access in accesses:
        # Equal steps hold neither axis: the one along `outer` has no `outer`, an extent no axis.
        inside = coefficient(access.expression, inner.name)
        if inside is None or coefficient(access.expression, outer.name) != inside * inner.extent:
            return False
    return True


def collapse(axes: list[Axis], accesses: Iterable[Access], outer: Axis, inner: Axis) -> None:
    """Make `inner` stand for both axes."""
    inner.extent = inner.extent * outer.extent
    axes.remove(outer)
    for access in accesses:
        access.expression = substitute(access.expression, {outer.name: 0})


def apply_collapses(
    op: Operation, axes: list[Axis], accesses: list[Access], pairs: Iterable[tuple[str, str]]
) -> None:
    """Drop the axes of one point and collapse those that a schedule names. Raises InvalidIR
    where that is not legal."""
    drop_units(axes, accesses)
    for outer_name, inner_name in pairs:
        named = {a.name: a for a in axes}
        outer, inner = named.get(outer_name), named.get(inner_name)
        if outer is None or inner is None or not can_collapse(outer, inner, accesses):
            raise InvalidIR(
                f"the schedule collapses the axes {outer_name} and {inner_name}, which don't", op=op
            )
        collapse(axes, accesses, outer, inner)


__all__ = ["can_collapse", "collapse_plan", "find_collapses"]
