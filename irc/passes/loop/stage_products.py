"""Products that are stages of a CPU's groups: the tiles of one point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irc.dialects import loop
from irc.passes.kernel.cpu.contraction.choose import schedule_tiles
from irc.passes.kernel.cpu.plan import plan_for_cpu
from irc.passes.kernel.cpu.schedule import CpuSchedule, read_schedule
from irc.passes.kernel.plan.plan import flatten
from irc.target import Target


def stage_schedule(
    alone: Callable[[CpuSchedule], loop.ComputeOp], rows: str, columns: str, depth: list[str],
    target: Target, **entries: Any,
) -> CpuSchedule:  # fmt: skip
    """The schedule of a product that a group computes at each of its points, which has none of its
    own. alone: makes that of one point, with a schedule, for a while. rows, columns, depth: its
    axes. entries: what it has in any case."""
    preset = CpuSchedule(row_axis=rows, vector_axis=columns, outer_rows=[], depth_order=depth,
                         point_rows=0, point_columns=0, pack_ahead=0, **entries)  # fmt: skip
    compute = alone(preset)
    reason = schedule_tiles(compute, plan_for_cpu(flatten(compute)), target)
    assert reason is None, reason
    schedule = read_schedule(compute.schedule, compute)
    compute.erase()
    schedule.collapse = []
    del schedule.outer
    return schedule


__all__ = ["stage_schedule"]
