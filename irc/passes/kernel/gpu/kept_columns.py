"""Tiles of rows that are stored as they were read or turned, with accesses that are contiguous from
row to row: columns.

Softmaxes of 16 bits are held by parts (`abreast`) where these leave little outside, and where rows
are turned, whose threads then have points of one row each. Longer ones are walked over twice, by
tiles small enough that eight of them are read before any is combined.
"""

from __future__ import annotations

from irc.ir import attributes as A
from irc.ir.symbols import dim_product
from irc.passes.kernel.gpu.own_points import longest_own, moves_along, power_of_two
from irc.passes.kernel.gpu.plan import GpuPlan, accesses
from irc.passes.kernel.gpu.summed_powers import walked_together
from irc.passes.kernel.gpu.transposed import contiguous_axis
from irc.target.gpu import GpuFeatures


def kept_columns(plan: GpuPlan, gpu: GpuFeatures, entries: dict[str, A.Attribute]) -> int:
    """The schedule for columns; gives the number of warps."""
    rows, longest = dim_product(plan.rows), longest_own(plan)
    size = max((size for m, o, size, _ in accesses(plan) if moves_along(m, o)), default=4)
    least = power_of_two(gpu.sector_bytes // size)
    powers = bool(walked_together(plan))
    if powers and isinstance(rows, int) and longest:
        points = max(int(m.points) for m in plan.members if m.own)  # type: ignore[arg-type]
        if _is_walked(plan, rows, points, size, least, gpu):
            return _walked_twice(rows, points, size, least, gpu, entries)
        if size == 2 and (warps := _in_parts(plan, rows, points, least, gpu, entries)):
            return warps
    x = gpu.column_block
    if longest and least * longest <= gpu.persistent_points:
        x = min(gpu.column_block, max(least, gpu.kept_tile // longest))
        entries["persistent"] = A.TRUE
    if isinstance(rows, int):
        x = min(x, power_of_two(rows))
    online = "persistent" not in entries and powers
    if online:
        entries["online"] = A.TRUE
    # A loop over a number of points that isn't known takes one tile in a turn, twice as large.
    tile = 2 * gpu.walked_kept_tile if online else gpu.walked_kept_tile
    r = longest if "persistent" in entries else max(1, tile // x)
    entries["x_block"], entries["r_block"] = A.IntegerAttr(x), A.IntegerAttr(r)
    if "persistent" in entries:
        if isinstance(rows, int):
            x = _fewer_kept(x, least, rows, r, gpu)
            entries["x_block"] = A.IntegerAttr(x)
        warps = max(1, min(gpu.row_warps * 2, x * r // (gpu.warp * gpu.kept_points)))
        few = isinstance(rows, int) and -(-rows // x) * warps <= gpu.parallel * gpu.row_spread
        return min(gpu.row_warps * 2, warps * 4 if few else warps)
    each = 16 if online or size > 2 else 8
    return max(1, min(gpu.walked_kept_warps, x * r // (gpu.warp * each)))


def _is_turned(plan: GpuPlan) -> bool:
    """Whether something that is read is contiguous along the own axes."""
    return any(
        contiguous_axis(offset, [a.name for a in member.own]) is not None
        for member, offset, _, stored in accesses(plan)
        if not stored and moves_along(member, offset)
    )


def _is_walked(
    plan: GpuPlan, rows: int, points: int, size: int, least: int, gpu: GpuFeatures
) -> bool:
    """Whether softmaxes of so many points are walked over: those that no registers hold, of 16 bits
    shorter ones, and of f32 where many would be held by a sector's columns."""
    held = power_of_two(points)
    if least * held > gpu.persistent_points:
        return True
    if size == 2:
        return points > (gpu.turned_points if _is_turned(plan) else gpu.online_points)
    return gpu.kept_tile // held < least and 4 * rows >= 3 * gpu.online_columns * gpu.processors


def _walked_twice(
    rows: int, points: int, size: int, least: int, gpu: GpuFeatures,
    entries: dict[str, A.Attribute],
) -> int:  # fmt: skip
    """Tiles for the maximum with the sum of powers, and for what is stored; of short columns two
    program instances share a processor. Gives the number of warps."""
    x, tile = _online_columns(rows, least, gpu), gpu.online_tile
    if size == 2 and points <= 2 * gpu.online_points:
        x, tile = min(x, gpu.online_columns // 2), tile // 2
    tile = max(x, tile * 2 // size)
    entries["online"] = A.TRUE
    entries["x_block"], entries["r_block"] = A.IntegerAttr(x), A.IntegerAttr(tile // x)
    entries["abreast"] = A.IntegerAttr(gpu.online_abreast)
    return max(1, tile * size // (gpu.warp * 16))


def _in_parts(
    plan: GpuPlan, rows: int, points: int, least: int, gpu: GpuFeatures,
    entries: dict[str, A.Attribute],
) -> int:  # fmt: skip
    """Tiles that hold columns of 16 bits by parts; gives the number of warps, 0 where they had
    better be held whole."""
    part = max(gpu.least_part, power_of_two(-(-points // gpu.column_parts)))
    count, turned = -(-points // part), _is_turned(plan)
    if count == 1 or not turned and 8 * count * part > 7 * power_of_two(points):
        return 0
    x = gpu.column_block
    while x > least and 4 * rows < 3 * x * gpu.processors:
        x //= 2
    entries["x_block"], entries["r_block"] = A.IntegerAttr(x), A.IntegerAttr(part)
    entries["abreast"] = A.IntegerAttr(power_of_two(count))
    wide = turned and 2 * points > gpu.turned_points
    return max(1, x // 2 if wide else x // 4)


def _online_columns(rows: int, least: int, gpu: GpuFeatures) -> int:
    """Columns of a tile that is walked over them twice: as many as leave nearly each processor one,
    since more of memory then lies together."""
    x = gpu.online_columns
    while x > least and 4 * rows < 3 * x * gpu.processors:
        x //= 2
    return max(x, least)


def _fewer_kept(x: int, least: int, rows: int, points: int, gpu: GpuFeatures) -> int:
    """Columns of a tile that holds all of their points, for few columns: all of a GPU is to have
    some of them (f32 768x256 of an H200: 3.4 us with 8 columns a tile, 4.3 with 16)."""
    while x > least:
        warps = max(1, x * points // (gpu.warp * gpu.kept_points))
        if -(-rows // x) * warps > gpu.parallel * gpu.row_spread:
            break
        x //= 2
    return x


__all__ = ["kept_columns"]
