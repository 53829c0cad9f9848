"""The default schedule of a gpu kernel: tiles and warps by how many bytes a thread moves.

The rules come from `python -m bench.gpu_schedules` on an H200: a thread does best with 64 bytes of
a row in flight, four loads of 16 bytes; rows stay in registers as long as these suffice; a strided
sum wants its warps where there are few program instances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from irc.analysis.loop import estimate
from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.symbols import (
    Dim,
    Range,
    coefficient,
    dim_product,
    free_symbols,
    known_divisor,
    substitute,
    symbol,
)
from irc.ir.types import element_bytes
from irc.passes.kernel.gpu.contraction_schedule import contraction_entries
from irc.passes.kernel.gpu.kept_columns import kept_columns
from irc.passes.kernel.gpu.odd_rows import GROUP_BYTES, row_group
from irc.passes.kernel.gpu.own_points import (
    begins_at_groups,
    longest_own,
    moves_along,
    next_row,
    ordered_axes,
    own_order,
    power_of_two,
    row_order,
    stores_along,
)
from irc.passes.kernel.gpu.parted_rows import parted_rows
from irc.passes.kernel.gpu.plan import (
    GpuMember,
    GpuPlan,
    accesses,
    fits_32_bits,
    offset_of,
    plan_for_gpu,
)
from irc.passes.kernel.gpu.reads_apart import reads_apart
from irc.passes.kernel.gpu.rows_ahead import stages_ahead
from irc.passes.kernel.gpu.stream_schedule import stream_entries
from irc.passes.kernel.gpu.summed_powers import walked_together
from irc.passes.kernel.gpu.transposed import contiguous_axis, transposed_tile
from irc.passes.kernel.plan.plan import flatten
from irc.target.gpu import GpuFeatures

USUAL_GPU = GpuFeatures.sm_90()
"""What a schedule is for, and completed for, where nothing says which gpu."""


def default_schedule(
    op: Operation,
    plan: GpuPlan | None = None,
    gpu: GpuFeatures = USUAL_GPU,
    ranges: Mapping[str, Range] | None = None,
    preset: Mapping[str, A.Attribute] | None = None,
    contract: bool = True,
) -> loop.ScheduleAttr:
    """The schedule for a gpu, with every key that `form_gpu_kernel` asks for
    (`irc.dialects.loop.schedule.GPU`). `ranges` bounds symbols; `preset`: entries of a contraction
    that it is to have; without `contract` a contraction is an ordinary reduction."""
    plan = plan_for_gpu(flatten(op)) if plan is None else plan
    streamed = stream_entries(plan, gpu, preset or {}) if contract else None
    if streamed is not None:
        return loop.ScheduleAttr("gpu", A.DictAttr(streamed))
    contracted = contraction_entries(plan, gpu, preset or {}, ranges or {}) if contract else None
    if contracted is not None:
        return loop.ScheduleAttr("gpu", A.DictAttr(contracted))
    entries: dict[str, A.Attribute] = {}
    if not any(m.own for m in plan.members):
        warps = _pointwise(plan, gpu, entries)
    elif _is_unrolled(plan, gpu):
        apart = not _across_rows(plan)
        block = gpu.apart_block if apart else gpu.unrolled_block
        entries["x_block"] = A.IntegerAttr(block)
        entries["r_block"] = A.IntegerAttr(1)
        entries["unrolled"] = A.TRUE
        warps = block // (gpu.warp if apart else gpu.warp * 4)
    elif _is_kept_across(plan):
        warps = kept_columns(plan, gpu, entries)
    elif _across_rows(plan):
        warps = _columns(plan, gpu, entries)
    else:
        warps = _rows(plan, gpu, entries)
        if ordered_axes(plan):
            order = own_order(plan, gpu.warp, gpu.sector_bytes)
            entries["own_order"] = A.DenseIntsAttr(order)
    if entries["r_block"] != A.IntegerAttr(0):
        entries.setdefault("persistent", A.FALSE)
        entries["turns"] = A.TRUE
        entries["tile_axes"] = A.DenseIntsAttr(_column_axis(plan, entries, gpu))
    if entries["tile_axes"] == A.DenseIntsAttr(()):
        entries["order"] = A.DenseIntsAttr(row_order(plan) or range(len(plan.rows)))
    if axes := ordered_axes(plan):
        entries.setdefault("own_order", A.DenseIntsAttr(range(axes)))
    entries["num_warps"] = A.IntegerAttr(max(1, min(32, warps)))
    entries.setdefault("unrolled", A.FALSE)
    entries.setdefault("programs", A.IntegerAttr(0))
    loops = entries.get("persistent") is A.FALSE and entries["unrolled"] is A.FALSE
    entries.setdefault("num_stages", A.IntegerAttr(3 if loops else 1))
    entries["edge_bytes"] = A.IntegerAttr(GROUP_BYTES)
    entries.setdefault("row_group", A.IntegerAttr(1))
    entries.setdefault("online", A.FALSE)
    entries.setdefault("peeled", A.FALSE)
    entries.setdefault("abreast", A.IntegerAttr(1))
    entries["rough_powers"] = A.TRUE
    entries.setdefault("cached_reads", A.FALSE)
    walks = entries["programs"] != A.IntegerAttr(0)
    entries["early_reads"] = A.BoolAttr(walks or _reads_early(plan, entries, gpu))
    entries["index_bits"] = A.IntegerAttr(32 if fits_32_bits(plan, ranges or {}) else 64)
    return loop.ScheduleAttr("gpu", A.DictAttr(entries))


def _reads_early(
    plan: GpuPlan, entries: Mapping[str, A.Attribute], gpu: GpuFeatures
) -> bool:
    """Whether threads have few enough points to read all before they combine or store any: few
    each, few bytes each of a tile of few warps, or of a tile that has a processor for itself so
    many that its registers hold them."""
    sizes = {k: v.value for k, v in entries.items() if isinstance(v, A.IntegerAttr)}
    points = sizes["x_block"] * sizes.get("y_block", 1) * max(1, sizes["r_block"])
    threads = gpu.warp * sizes["num_warps"]
    if points <= gpu.early_points * threads:
        return True
    read = {r.source for m in plan.members for r in m.compute.reads if _is_read_along(plan, m, r)}
    bytes_ = points * sum(element_bytes(source.type.element) for source in read)  # type: ignore[attr-defined]
    if sizes["num_warps"] <= gpu.row_warps and bytes_ <= gpu.early_bytes * threads:
        return True
    held = points * len(read)
    alone = 2 * held > gpu.accumulators
    return alone and points <= gpu.thread_points * threads and held <= gpu.accumulators


def changed(schedule: loop.ScheduleAttr, **entries: A.Attribute) -> loop.ScheduleAttr:
    """A schedule with other entries; with `r_block` a loop goes over tiles, unless they say."""
    if "r_block" in entries:
        entries.setdefault("persistent", A.FALSE)
    return loop.ScheduleAttr(
        schedule.target, A.DictAttr({**schedule.entries.as_dict(), **entries})
    )


def _pointwise(plan: GpuPlan, gpu: GpuFeatures, entries: dict[str, A.Attribute]) -> int:
    """Tiles without own axes; gives the number of warps."""
    tile = None if plan.members[0].folded else transposed_tile(plan, gpu)
    entries["r_block"] = A.IntegerAttr(0)
    if tile is not None:
        entries["tile_axes"] = A.DenseIntsAttr(tile.axes)
        entries["collapse"] = A.DenseIntsAttr(tile.collapsed)
        entries["y_block"], entries["x_block"] = map(A.IntegerAttr, tile.edges)
        return tile.points // gpu.transpose_warp
    if reads_apart(plan, gpu):
        entries["tile_axes"] = A.DenseIntsAttr(())
        entries["x_block"] = A.IntegerAttr(gpu.apart_block)
        return gpu.apart_block // gpu.warp
    line = None if plan.members[0].folded else _line(plan, gpu)
    entries["tile_axes"] = A.DenseIntsAttr(() if line is None else line[:1])
    total = dim_product(plan.rows)
    block = gpu.pointwise_block if line is None else line[1]
    if isinstance(total, int):
        block = min(block, power_of_two(total))
    entries["x_block"] = A.IntegerAttr(block)
    sizes = [size for m, o, size, _ in accesses(plan)
             if line is None or m.rows[line[0]] in free_symbols(o)]  # fmt: skip
    warps = max(1, min(4, block * max(sizes, default=4) // (gpu.warp * gpu.pointwise_bytes)))
    if not isinstance(total, int):
        return warps
    while line is None and block > gpu.least_block and 2 * -(-total // block) < gpu.parallel:
        block //= 2
    entries["x_block"] = A.IntegerAttr(block)
    if line is None:
        block, warps = _blind_block(plan, total, block, warps, gpu)
        entries["x_block"] = A.IntegerAttr(block)
    room = gpu.parallel * gpu.pointwise_warps
    while warps < min(4, block // gpu.warp) and -(-total // block) * warps < room:
        warps *= 2
    return warps


def _blind_block(
    plan: GpuPlan, total: int, block: int, warps: int, gpu: GpuFeatures
) -> tuple[int, int]:
    """Points and warps of tiles that wait for nothing, where there are many: those that only store
    are larger, as program instances start one after the other, those that are combined with what
    memory has are smaller."""
    read = [(size, any(name in free_symbols(o) for name in m.rows[-1:]))
            for m, o, size, stored in accesses(plan) if not stored]  # fmt: skip
    if any(o.kind == "scatter" for m in plan.members for o in m.compute.output_list):
        few = total < gpu.scattered_block * gpu.started_programs
        narrow = min((size for size, along in read if along), default=4) < 4
        return (block, warps) if few or narrow else (gpu.scattered_block, 2)
    if read:
        return block, warps
    each = sum(size for _, _, size, _ in accesses(plan))
    while block * each < gpu.program_bytes and total >= 2 * block * gpu.started_programs:
        block, warps = 2 * block, min(8, 2 * warps)
    return block, warps


def _line(plan: GpuPlan, gpu: GpuFeatures) -> tuple[int, int] | None:
    """(axis, points of a tile): the axis that all of memory is contiguous along, where several
    values are the same for a whole line of it, and tiles cover the lines with little to spare.

    A program instance then computes these once, and no lane divides to find its place.
    """
    stores = [(m, o) for m, o, _, stored in accesses(plan) if stored]
    names = {contiguous_axis(offset, member.rows) for member, offset in stores}
    name = names.pop() if len(names) == 1 else None
    if name is None or name not in plan.members[0].rows:
        return None
    axis = plan.members[0].rows.index(name)
    extent = plan.rows[axis]
    fitting = [t for t in gpu.line_blocks if isinstance(extent, int) and t <= extent
               and -(-extent // t) * t <= extent * gpu.line_spare]  # fmt: skip
    lines = 0
    for member, offset, size, _ in accesses(plan):
        own = member.rows[axis]
        if own not in free_symbols(offset):
            lines += bool(free_symbols(offset) & set(member.rows))
        elif coefficient(offset, own) != 1:
            return None
        elif known_divisor(offset - symbol(own)) % max(1, GROUP_BYTES // size):
            return None
    return (axis, fitting[0]) if fitting and lines >= gpu.line_values else None


def _column_axis(
    plan: GpuPlan, entries: Mapping[str, A.Attribute], gpu: GpuFeatures
) -> tuple[int, ...]:
    """The one axis that tiles of rows span, rather than all rows in a line: an axis inside others
    that something is contiguous along from row to row, where tiles in a line would split what a
    thread moves at once, as its length is no multiple of that, and tiles of its own cover it with
    little to spare, or sums are of 16-bit elements (of 8192x768 4.2 us of an H200, in a line 5.3);
    or where something else is the same for all of it, which each lane of a line would look up
    (gradients of a norm's weights, f32 8192x768: 13.6 us of an H200, in a line 33.9).
    """
    block = entries["x_block"].value  # type: ignore[attr-defined]
    several = sum(estimate(extent) > 1 for extent in plan.rows) > 1
    if plan.members[0].folded or not several or block == 1 or "programs" in entries:
        return ()
    axis = plan.members[0].rows.index(next_row(plan, plan.members[0]))
    extent = plan.rows[axis]
    if not isinstance(extent, int) or 2 * extent <= block:
        return ()
    across = apart = split = False
    summed = not stores_along(plan)
    for member, offset, size, _ in accesses(plan):
        if moves_along(member, offset):
            step = coefficient(offset, member.rows[axis])
            across |= step == 1
            apart |= step == 0
            split |= step == 1 and (extent * size % GROUP_BYTES != 0 or summed and size == 2)
    split &= -(-extent // block) * block <= extent * gpu.line_spare
    return (axis,) if split or across and apart else ()


def _columns(plan: GpuPlan, gpu: GpuFeatures, entries: dict[str, A.Attribute]) -> int:
    """Tiles of rows that are contiguous from row to row; gives the number of warps."""
    rows, longest = dim_product(plan.rows), longest_own(plan)
    x = min(gpu.column_block, power_of_two(rows)) if isinstance(rows, int) else gpu.column_block
    r = max(1, gpu.column_tile // x)
    many, arrays = gpu.wide_columns * gpu.wide_programs, _across(plan)
    if isinstance(rows, int) and not 0 < longest <= r and rows >= many and len(arrays) < 2:
        return _wide_columns(plan, gpu, entries)
    if isinstance(rows, int) and longest and (few := _few_columns(plan, rows, longest, gpu)):
        x, r = few, longest
    if 0 < longest <= r:
        r = longest
        entries["persistent"] = A.TRUE
    entries["x_block"] = A.IntegerAttr(x)
    entries["r_block"] = A.IntegerAttr(r)
    if rows and r == longest and x < gpu.column_block:
        points, each = x * r // gpu.warp, gpu.held_column_thread
        return max(1, min(16, max(min(4, points // each), points // (8 * each))))
    programs = max(1, estimate(rows) // x) if isinstance(rows, int) else gpu.parallel
    # A thread has 64 bytes of an array.
    bytes_ = gpu.column_warps * min(4, max(arrays, default=4))
    most = power_of_two(bytes_ // 4 // programs + 1) // 2
    several = len(arrays) > 1 and set(arrays) == {4} and most <= 4
    if several and gpu.several_abreast <= r < longest:
        r //= gpu.several_abreast
        entries["r_block"] = A.IntegerAttr(r)
        entries["abreast"] = A.IntegerAttr(gpu.several_abreast)
        return max(1, min(16, x * r // (2 * gpu.warp)))
    return max(1, min(max(2, most), 16, x * r // 128))


def _few_columns(plan: GpuPlan, rows: int, longest: int, gpu: GpuFeatures) -> int:
    """Rows of a tile that holds all points of few rows, which then have more program instances;
    0 where there are enough, or too many points."""
    sizes = [size for m, o, size, _ in accesses(plan) if moves_along(m, o)]
    least, x = gpu.sector_bytes // min(sizes, default=4), min(gpu.column_block, power_of_two(rows))
    while x > least and 2 * rows < x * gpu.parallel:
        x //= 2
    few = x < gpu.column_block and x * longest <= gpu.held_column_points
    return x if few and 2 * rows < gpu.column_block * gpu.parallel else 0


def _across(plan: GpuPlan) -> list[int]:
    """The sizes of elements of what is read contiguously from row to row."""
    return [
        size for member, offset, size, stored in accesses(plan)
        if not stored and moves_along(member, offset)
        and coefficient(offset, next_row(plan, member)) == 1
    ]  # fmt: skip


def _wide_columns(plan: GpuPlan, gpu: GpuFeatures, entries: dict[str, A.Attribute]) -> int:
    """Tiles of long strided reductions with many results; gives the number of warps."""
    size = max(_across(plan), default=4)
    x, warps, each = max(1, gpu.wide_columns * 2 // size), gpu.wide_warps, max(1, 32 // size)
    for member, offset, wide, _ in accesses(plan):
        steps = [coefficient(offset, a.name) for a in member.own]
        if any(isinstance(s, int) and s * wide % GROUP_BYTES for s in steps):
            x, warps, each = gpu.odd_columns, gpu.odd_warps, 16
    entries["x_block"] = A.IntegerAttr(x)
    entries["r_block"] = A.IntegerAttr(max(1, each * gpu.warp * warps // x))
    return warps


def _is_kept_across(plan: GpuPlan) -> bool:
    """Whether something is stored along rows, and some of what is read or stored is contiguous
    from row to row."""
    stored = across = False
    for member, offset, _, written in accesses(plan):
        if moves_along(member, offset):
            stored |= written
            own = [a.name for a in member.own]
            across |= (contiguous_axis(offset, own) is None
                       and coefficient(offset, next_row(plan, member)) == 1)  # fmt: skip
    return stored and across


def _is_unrolled(plan: GpuPlan, gpu: GpuFeatures) -> bool:
    """Whether the few points of each of many rows are combined one after the other."""
    rows, points = dim_product(plan.rows), {m.points for m in plan.members if m.own}
    several = {o.kind for m in plan.members for o in m.compute.output_list}
    few = all(isinstance(p, int) and 0 < p <= gpu.unrolled_points for p in points)
    return (isinstance(rows, int) and rows >= 2 * gpu.unrolled_block * gpu.parallel
            and len(points) == 1 and few
            and several <= {"map", "reduce"} and (_across_rows(plan) or _are_windows(plan, gpu))
            and not any(m.phase and m.own for m in plan.members))  # fmt: skip


def _are_windows(plan: GpuPlan, gpu: GpuFeatures) -> bool:
    """Whether all that is read along own axes is windows that begin a few elements apart: threads
    with a row each read what lies side by side then, one point of their windows after the other,
    where a tile of the windows' points would be padded to a power of two."""
    steps = []
    for member, offset, size, stored in accesses(plan):
        own = [a.name for a in member.own]
        if not stored and own and free_symbols(offset) & set(own):
            steps.append(size * _widest_step(offset, next_row(plan, member)))
    return any(steps) and all(0 <= step <= gpu.window_bytes for step in steps)


def _widest_step(offset: Dim, axis: str, rows: int = 9) -> int:
    """How far apart the elements of some rows and the next are at most; of rows that are divided,
    as windows that lie over several elements have them, most read the same. -1: not known."""
    names = free_symbols(offset)
    at = [substitute(offset, {**dict.fromkeys(names, 0), axis: k}) for k in range(rows)]
    places = [place for place in at if isinstance(place, int)]
    if len(places) < rows:
        return -1
    return max(after - before for before, after in zip(places, places[1:], strict=False))


def _walked_tile(longest: int, gpu: GpuFeatures) -> int:
    """Points of a tile that walks over rows, of which the longest has so many; 0: not known."""
    if not longest:
        return gpu.symbolic_walked_tile
    return gpu.walked_tile if longest <= gpu.walked_row else gpu.long_walked_tile


def _rows(plan: GpuPlan, gpu: GpuFeatures, entries: dict[str, A.Attribute]) -> int:
    """Tiles of rows that are contiguous inside; gives the number of warps."""
    longest = longest_own(plan)
    whole = 0 < longest * _kept_arrays(plan) <= gpu.persistent_points
    if longest > gpu.held_row and _walks(plan):
        whole = False
    if longest > gpu.held_row and not stores_along(plan) and walked_together(plan):
        whole = False
    if not whole:
        return _walked_rows(plan, longest, gpu, entries)
    if parted := parted_rows(plan, gpu, entries):
        return parted
    entries["persistent"] = A.TRUE
    entries["r_block"] = A.IntegerAttr(longest)
    along = [(size, stored) for m, o, size, stored in accesses(plan) if moves_along(m, o)]
    short = gpu.short_rows if any(stored for _, stored in along) else 2 * gpu.short_rows
    x = max(1, short // longest)
    rows = dim_product(plan.rows)
    while x > 1 and isinstance(rows, int) and rows < x * gpu.parallel:
        x //= 2
    if any(o.combiner == "sort" for m in plan.members for o in m.compute.output_list):
        # What threads of one warp exchange needs no barrier.
        entries["x_block"] = A.IntegerAttr(max(1, gpu.sorted_points // longest))
        return 1
    # Places beside values make exchanging between threads dearer.
    pairs = any(o.combiner in ("argmin", "argmax") for m in plan.members
                for o in m.compute.output_list)  # fmt: skip
    points = gpu.row_bytes * (1 + pairs) // max((size for size, _ in along), default=4)
    points = min(gpu.thread_points, max(4, points))
    warps = min(gpu.row_warps, x * longest // (gpu.warp * points))
    read = {r.source for m in plan.members for r in m.compute.reads if _is_read_along(plan, m, r)}
    long = longest > gpu.held_row and len(read) <= 2 and points < gpu.thread_points and not pairs
    most = gpu.thread_points * (1 + (long and any(m.phase for m in plan.members)))
    warps = max(1, warps, x * longest // (gpu.warp * most))
    aligned, widest = begins_at_groups(plan), max((size for size, _ in along), default=4)
    if x > 1 and not aligned:
        # Lanes of one element each: several warps would share each row.
        warps = min(warps, max(1, x * longest // (gpu.warp * gpu.thread_points)))
    if isinstance(rows, int):
        x, warps = _spread(plan, rows, x, warps, gpu)
        if aligned and widest == 2 and stores_along(plan):
            x, warps = _fewer_programs(plan, rows, x, warps, gpu)
    entries["x_block"] = A.IntegerAttr(x)
    group = _row_group(plan, longest, gpu)
    if x > 1:
        group = min(group, gpu.short_group) if widest == 2 else 1
    entries["row_group"] = A.IntegerAttr(group)
    least = gpu.ahead_rows * gpu.processors
    if longest > gpu.held_row and isinstance(rows, int) and 0 < least <= rows:
        stages = stages_ahead(plan, gpu, longest, group)
        if stages >= gpu.ahead_stages:
            entries["programs"] = A.IntegerAttr(gpu.processors)
            entries["num_stages"] = A.IntegerAttr(stages)
            return longest // (2 * gpu.warp * gpu.thread_points)
    return warps


def _walked_rows(
    plan: GpuPlan, longest: int, gpu: GpuFeatures, entries: dict[str, A.Attribute]
) -> int:
    """Tiles that are walked over rows, of which the longest has so many points (0: not known);
    gives the number of warps."""
    stored, tile = stores_along(plan), _walked_tile(longest, gpu)
    sizes = [size for m, o, size, _ in accesses(plan) if moves_along(m, o)]
    # What the cache still holds is read again sooner than its sums are made smaller.
    once = not stored or longest * max(sizes, default=4) > gpu.cached_row
    group = row_group(plan) if _row_group_fits(plan) else 1
    if once and walked_together(plan):
        entries["online"] = A.TRUE
        if longest and not stored:
            tile = gpu.online_row_tile
            entries["abreast"] = A.IntegerAttr(gpu.online_abreast)
            entries["peeled"] = A.BoolAttr(_is_cut(plan, tile, group))
    if not stored and entries.get("peeled") is not A.TRUE:
        group = 1  # the masks take as long as what is moved
    entries["row_group"] = A.IntegerAttr(group)
    # Shorter rows stay in the cache by themselves.
    if not 0 < longest <= gpu.walked_row and begins_at_groups(plan):
        entries["cached_reads"] = A.TRUE
    entries["x_block"] = A.IntegerAttr(1)
    entries["r_block"] = A.IntegerAttr(tile)
    return min(32, tile // 128)


def _spread(plan: GpuPlan, rows: int, x: int, warps: int, gpu: GpuFeatures) -> tuple[int, int]:
    """Rows of a tile and warps for few rows: all of a GPU is to have some of them."""
    least = longest_own(plan) // (gpu.warp * gpu.spread_points)
    shared = any(not free_symbols(o) & set(m.row_names) for m, o, _, _ in accesses(plan))
    most = gpu.parallel * (gpu.shared_spread if shared else gpu.alone_spread)
    while x > 1 and x * least > warps and -(-rows // x) * warps <= most:
        x //= 2
    most = gpu.parallel * gpu.row_spread
    while x == 1 and warps < min(gpu.row_warps, least) and rows * warps <= most:
        warps *= 2
    return x, warps


def _fewer_programs(
    plan: GpuPlan, rows: int, x: int, warps: int, gpu: GpuFeatures
) -> tuple[int, int]:
    """Rows of a tile and warps for many short rows: what a program instance moves takes at least
    as long as the next one's start."""
    read = {r.source for m in plan.members for r in m.compute.reads if _is_read_along(plan, m, r)}
    each = sum(element_bytes(source.type.element) for source in read)  # type: ignore[attr-defined]
    each += sum(size for m, o, size, stored in accesses(plan) if stored and moves_along(m, o))
    row = each * max(int(m.points) for m in plan.members if m.own)  # type: ignore[arg-type]
    more = 1
    while x * more * row < gpu.program_bytes and rows >= 2 * x * more * gpu.started_programs:
        more *= 2
    if more == 1:
        return x, warps
    # Warps of as many rows as lanes have: none is shared, so that nothing goes between warps.
    return x * more, min(gpu.row_warps, x * more, 2 * more * warps)


def _is_cut(plan: GpuPlan, tile: int, group: int) -> bool:
    """Whether the ends of rows of a known length cut their first or last tile of several."""
    sizes = [m.points for m in plan.members if m.own]
    return all(isinstance(n, int) and n > 2 * tile and (group > 1 or n % tile) for n in sizes)


def _walks(plan: GpuPlan) -> bool:
    """Whether walking over long rows in each phase beats holding them: rows of 16-bit elements
    that begin at what a thread moves at once. Half of the registers then let one row be read while
    another is computed (bf16 2048x30528 of an H200: log_softmax 69 us, held 82)."""
    if not any(m.phase for m in plan.members):
        return False
    if any(o.combiner == "moments" for m in plan.members for o in m.compute.output_list):
        return False
    sizes = {size for member, offset, size, _ in accesses(plan) if moves_along(member, offset)}
    return sizes <= {2} and begins_at_groups(plan)


def _kept_arrays(plan: GpuPlan) -> int:
    """How many rows' registers a whole tile takes: the arrays that are read along rows, or where
    there are several phases those that more than one of them reads."""
    phases: dict[object, set[int]] = {}
    for member in plan.members:
        for read in member.compute.reads:
            if _is_read_along(plan, member, read):
                phases.setdefault(read.source, set()).add(member.phase)
    if any(m.phase for m in plan.members):
        phases = {array: p for array, p in phases.items() if len(p) > 1}
    return max(1, len(phases))


def _row_group(plan: GpuPlan, tile: int, gpu: GpuFeatures) -> int:
    """The group that tiles of so many points begin at, which hold a whole row."""
    if row_order(plan) is not None or (not stores_along(plan) and tile <= gpu.held_row):
        return 1  # the masks take as long as what is moved
    group = row_group(plan)
    reach = max(int(m.points) for m in plan.members if m.own) + group - 1  # type: ignore[arg-type]
    return group if reach <= tile else 1


def _row_group_fits(plan: GpuPlan) -> bool:
    """Whether tiles that are walked over rows may begin at groups: lanes of a loop that moments
    come from have to see points from the first one on."""
    combiners = {o.combiner for m in plan.members for o in m.compute.output_list}
    return row_order(plan) is None and "moments" not in combiners


def _is_read_along(plan: GpuPlan, member: GpuMember, read: loop.ReadOp) -> bool:
    """Whether an array in memory is read along the own axes."""
    if plan.origin(read.source) is not None:
        return False
    used = free_symbols(offset_of(read.indices, read.source.type))
    return bool(used & {a.name for a in member.own})


def _across_rows(plan: GpuPlan) -> bool:
    """Whether most bytes are contiguous from row to row rather than inside a row."""
    balance = 0
    for member, offset, size, _ in accesses(plan):
        own = [a.name for a in member.own]
        if not moves_along(member, offset):
            continue
        used = free_symbols(offset)
        axes = [a for a in member.compute.axis_list if a.name in used]
        bytes_ = size * math.prod(max(1, estimate(a.extent)) for a in axes)
        if contiguous_axis(offset, own) is not None:
            balance -= bytes_
        elif contiguous_axis(offset, member.row_names) is not None:
            balance += bytes_
    return balance > 0
