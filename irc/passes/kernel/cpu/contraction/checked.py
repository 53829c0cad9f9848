"""The tiles of a contraction as its schedule has them, checked."""

from __future__ import annotations

from irc.dialects import loop
from irc.ir.symbols import Range
from irc.passes.kernel.cpu.collapse import collapse_plan
from irc.passes.kernel.cpu.contraction.ahead import check_ahead
from irc.passes.kernel.cpu.contraction.fetching import check_rows_ahead
from irc.passes.kernel.cpu.contraction.matrices import check_matrix
from irc.passes.kernel.cpu.contraction.tiling import Tiling, simplify_places, tiling_of
from irc.passes.kernel.cpu.contraction.woven import check_woven
from irc.passes.kernel.cpu.plan import CpuPlan
from irc.passes.kernel.cpu.schedule import read_schedule


def checked_tiling(
    plan: CpuPlan, schedule: loop.ScheduleAttr, ranges: dict[str, Range]
) -> Tiling:
    """A plan as a contraction in tiles. Raises InvalidIR for a schedule that does not fit it."""
    top = read_schedule(schedule, plan.op)
    simplify_places(plan)
    own = collapse_plan(plan, top)[0]
    tiling = tiling_of(plan, top, own)
    if own.in_matrices:
        check_matrix(tiling)
    if own.woven:
        check_woven(tiling)
    if own.pack_ahead:
        check_ahead(tiling, ranges)
    if own.rows_ahead:
        check_rows_ahead(tiling)
    return tiling


__all__ = ["checked_tiling"]
