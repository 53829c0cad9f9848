"""Softmaxes and norms of short rows of 16 bits that are held by parts.

A tile has a power of two of points. Of a row of 197 or 768 a quarter of its lanes are outside, with
all that is computed for them, and where rows begin anywhere each lane asks whether it is inside.
Parts of a row are tiles of their own, read all at once (`abreast`), of which only the first and the
last ask (`peeled`): softmax of 16384x320 bf16 4.4 us of an H200 rather than 6.2, of 8192x577 4.8
rather than 6.8, a copy 4.4 and 4.1; layer_norm of 16384x320 5.0 rather than 7.1, of 8192x577 5.7
rather than 7.4.
"""

from __future__ import annotations

from irc.dialects.loop.schedule import MOST_ABREAST
from irc.ir import attributes as A
from irc.ir.symbols import dim_product
from irc.passes.kernel.gpu.odd_rows import row_group
from irc.passes.kernel.gpu.own_points import (
    begins_at_groups,
    longest_own,
    moves_along,
    power_of_two,
    row_order,
    stores_along,
)
from irc.passes.kernel.gpu.plan import GpuPlan, accesses, offset_of
from irc.passes.kernel.gpu.rough_powers import rough_powers
from irc.passes.kernel.gpu.scaled_powers import gaps_below_maxima
from irc.passes.kernel.gpu.summed_powers import summed_powers
from irc.target.gpu import GpuFeatures


def parted_rows(plan: GpuPlan, gpu: GpuFeatures, entries: dict[str, A.Attribute]) -> int:
    """The schedule for rows in parts, which gives the number of warps; 0 where rows had better be
    held whole."""
    rows, points, norm = dim_product(plan.rows), _points(plan), _norm_arrays(plan) > 0
    if not isinstance(rows, int) or not points or power_of_two(points) == points:
        return 0
    aligned, group = begins_at_groups(plan), row_group(plan)
    part = max(gpu.least_part // 2, power_of_two(-(-points // gpu.row_parts)))
    if norm and not aligned and points + group - 1 <= MOST_ABREAST * gpu.norm_part:
        part = min(part, gpu.norm_part)
    warps = gpu.part_warps
    x = warps * gpu.warp * 4 // part
    if x == 0:
        return 0
    two = x <= 2
    if aligned:
        read = {r.source for m in plan.members for r in m.compute.reads}
        arrays = len(read & set(plan.inputs)) + len(plan.outputs)
        while 4 * x * arrays * points <= gpu.program_bytes:
            x, warps = 2 * x, 2 * warps
    elif group == 1:
        return 0
    elif points < gpu.short_group_points:
        group = min(group, gpu.short_group)
    # Little is outside of such rows held whole; each of few rows has more threads.
    filled = x > 1 and 8 * points > 7 * longest_own(plan)
    if filled and (aligned if norm else not two or not (aligned or _are_scaled(plan))):
        return 0
    if rows < x * gpu.started_programs:
        return 0
    entries["x_block"], entries["r_block"] = A.IntegerAttr(x), A.IntegerAttr(part)
    entries["row_group"] = A.IntegerAttr(group)
    entries["peeled"] = A.TRUE
    entries["abreast"] = A.IntegerAttr(power_of_two(-(-(points + group - 1) // part)))
    return min(gpu.row_warps, warps)


def _are_scaled(plan: GpuPlan) -> bool:
    """Whether a power takes one operation before it (softmax of bf16 8192x1001: 6.9 us of an H200,
    held whole 7.1; log_softmax 7.3 and 7.1, softmax of x / 8 7.5 and 7.2)."""
    return bool(gaps_below_maxima(plan, rough_powers(plan)))


def _combined(plan: GpuPlan) -> set[str]:
    """What points of rows are combined by; "" where something else is made of them, too."""
    outputs = [output for m in plan.members for output in m.compute.output_list]
    return {o.combiner if o.kind == "reduce" else "" for o in outputs if o.kind != "map"}


def _norm_arrays(plan: GpuPlan) -> int:
    """How many arrays are read along rows that have moments or sums alone: norms, and gradients of
    norms and softmaxes; 0 for others."""
    if _combined(plan) not in ({"moments"}, {"sum"}):
        return 0
    return len({
        r.source for m in plan.members for r in m.compute.reads
        if plan.origin(r.source) is None and moves_along(m, offset_of(r.indices, r.source.type))
    })  # fmt: skip


def _points(plan: GpuPlan) -> int:
    """The points of a softmax's or norm's rows of 16 bits, which are stored; 0 for what else rows
    have, among them gradients' that begin anywhere (of a softmax of 8192x765 7.4 us of an H200,
    held whole 7.2, of a norm 11.1 and 11.3)."""
    arrays = _norm_arrays(plan)
    if arrays > 2 or arrays == 2 and not begins_at_groups(plan):
        return 0
    if not arrays and not (_combined(plan) <= {"max", "sum"} and summed_powers(plan)):
        return 0
    sizes = {size for m, o, size, _ in accesses(plan) if moves_along(m, o)}
    points = {m.points for m in plan.members if m.own}
    if sizes != {2} or len(points) > 1 or not stores_along(plan) or row_order(plan) is not None:
        return 0
    (count,) = points
    return count if isinstance(count, int) else 0


__all__ = ["parted_rows"]
