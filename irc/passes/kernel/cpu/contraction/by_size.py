"""Schedules of a contraction in tiles for several ranges of a symbolic size.

A compute or group is scheduled as it would be with each of a few sizes (`RUNGS`) in the symbol's
place. What differs becomes `variants` of its schedule, among which the host program chooses. Where
a contraction's schedule has `variants` already, as of some entries from some number of rows on,
each of their ranges is scheduled like that, and keeps its entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import attrs

from irc.analysis.contraction import contraction_of
from irc.analysis.symbolic_sizes import SymbolicSize
from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.diagnostics import InvalidIR
from irc.ir.renaming import rename_symbols
from irc.ir.symbols import Dim, dim_product, free_symbols, symbol
from irc.ir.types import ImpossibleSizeError
from irc.passes.kernel.cpu.collapse import find_collapses
from irc.passes.kernel.cpu.contraction.choose import TILES, schedule_tiles
from irc.passes.kernel.cpu.contraction.tiling import simplify_places
from irc.passes.kernel.cpu.plan import plan_for_cpu
from irc.passes.kernel.plan.plan import flatten
from irc.target import Target

RUNGS = (4, 16, 128, 512)
"""Sizes that a schedule is looked for; of `processor.product_rows` each class has one or two."""
FORM = ("products", "vector_axis", "pack_left", "pack_right", "group", "block_depth")
"""Where one of these differs, it is looked for the very size from which on it does; else the
schedule of the next rung begins at the geometric mean."""

ROW_AXES = ("row_axis", "outer_rows")
WHOLE = ("tile_rows", "block_rows")
MATRICES = (A.StringAttr("matrix"), A.StringAttr("bf16x6"))
OF_ROWS: Mapping[A.Attribute, Sequence[str]] = {
    A.StringAttr("depth"): ("tile_rows",), **dict.fromkeys(MATRICES, WHOLE),
}  # fmt: skip
"""The entries of tiles that are the same for all sizes, by `products`."""
AHEAD = "pack_ahead"

Entries = Mapping[str, A.Attribute]


@attrs.frozen
class RangeOfSizes:
    """Sizes from `least` to `most` (None: and more), with the entries that a contraction's schedule
    has for them already."""

    least: int
    most: int | None
    entries: Entries

    def rungs(self) -> list[int]:
        """The sizes that schedules are looked for."""
        top = RUNGS[-1] if self.most is None else self.most
        inside = [rung for rung in RUNGS if self.least <= rung <= top]
        return inside or [max(self.least, 1)]


def schedule_by_size(op: Operation, target: Target) -> bool:
    """Write the schedule of a contraction's operation, with `variants` for sizes of its symbol.
    False where there is no such choice; then its contraction's schedule has no variants, either.
    Raises InvalidIR for variants of several sizes."""
    compute, size = _first_compute(op), size_of(op)
    if compute is None:
        return False
    size, ranges = _ranges(compute, size)
    ranges = [attrs.evolve(each, entries=_with_columns(compute, each.entries)) for each in ranges]
    chosen = [] if size is None else [
        each for sizes in ranges for each in _in_range(op, size, sizes, target)
    ]  # fmt: skip
    arms = [scheduled_with(op, tiles, target) for _, tiles in chosen]
    if size is None or not arms or any(arm is None for arm in arms):
        return False
    variants: list[A.Attribute] = []
    for (begin, _), arm in zip(chosen[1:], arms, strict=False):
        variants.append(_variant(size.dim, begin - 1, arm or []))
    for part, entries in zip(_parts(op), arms[-1] or [], strict=True):
        own = {**entries}
        if part is op and variants:
            own["variants"] = A.ArrayAttr(variants)
        part.attributes["schedule"] = loop.ScheduleAttr("cpu", A.DictAttr(own))
    return True


def _with_columns(compute: loop.ComputeOp, entries: Entries) -> Entries:
    """Entries with the axis of columns that registers of whole tiles are to have, where these are
    among them: one of a number of points. Without them where no side of the contraction has such an
    axis alone."""
    contraction = contraction_of(compute)
    if entries.get("products") not in MATRICES or isinstance(contraction, str):
        return entries
    known = [axes[0].name for axes in (contraction.columns, contraction.rows)
             if len(axes) == 1 and not free_symbols(axes[0].extent)]  # fmt: skip
    if not known:
        return {name: entry for name, entry in entries.items() if name != "products"}
    if "vector_axis" in entries or len(known) > 1:
        return entries
    return {**entries, "vector_axis": A.StringAttr(known[0])}


def _in_range(
    op: Operation, size: SymbolicSize, sizes: RangeOfSizes, target: Target
) -> list[tuple[int, dict[str, A.Attribute]]]:
    """From which sizes of a range on which entries of tiles are best; none where a kernel of these
    has no tiles."""
    at_rungs = {rung: tiles_at(op, size, rung, target, sizes.entries) for rung in sizes.rungs()}
    rungs = [rung for rung in at_rungs if at_rungs[rung] is not None]
    if not rungs:
        return []
    begins = [rungs[0]]
    for rung in rungs[1:]:
        if at_rungs[rung] != at_rungs[begins[-1]]:
            begins.append(rung)
    ends = [_boundary(op, size, *pair, target, sizes.entries) for pair in pairwise(begins)]
    leasts = [sizes.least, *(end + 1 for end in ends)]
    chosen: list[tuple[int, dict[str, A.Attribute]]] = []
    for rung, least in zip(begins, leasts, strict=True):
        tiles = dict(at_rungs[rung] or {})
        for begin, ahead in _packed_ahead(op, size, least, rung, tiles, target, sizes.entries):
            chosen.append((begin, {**sizes.entries, **tiles, AHEAD: ahead}))
    return chosen


def _first_compute(op: Operation) -> loop.ComputeOp | None:
    return next((each for each in op.walk() if isinstance(each, loop.ComputeOp)), None)


def _ranges(
    compute: loop.ComputeOp, size: SymbolicSize | None
) -> tuple[SymbolicSize | None, list[RangeOfSizes]]:
    """The size that a contraction is scheduled by, and the ranges that it has entries for. Of
    variants for a size that is known the schedule keeps the entries that count, else the last ones.
    """
    whole = {} if compute.schedule is None else dict(compute.schedule.entries.items)
    variants = whole.pop("variants", A.ArrayAttr(()))
    ranges, least, dims = list[RangeOfSizes](), 0, set[Dim]()
    for each in variants if isinstance(variants, A.ArrayAttr) else ():
        entries = dict(each.as_dict())  # type: ignore[attr-defined]
        dim, most = entries.pop("size").dim, int(entries.pop("most").value)
        dims.add(dim)
        if isinstance(dim, int) and least <= dim <= most:
            whole = entries
        ranges.append(RangeOfSizes(least, most, entries))
        least = most + 1
    if len(dims) > 1:
        raise InvalidIR("the variants of its schedule are for several sizes", op=compute)
    if dims:
        compute.attributes["schedule"] = loop.ScheduleAttr("cpu", A.DictAttr(whole))
    dim = next(iter(dims), None)
    if dim is None or isinstance(dim, int) or size is None:
        return size, [RangeOfSizes(0, None, whole)]
    return SymbolicSize.of(dim), [*ranges, RangeOfSizes(least, None, whole)]


def size_of(op: Operation) -> SymbolicSize | None:
    """The size by which an operation's contraction is scheduled: the only symbol of its rows,
    columns and depth, or, where only its rows or its columns have symbols, what these axes have
    together."""
    compute = _first_compute(op)
    contraction = None if compute is None else contraction_of(compute)
    if contraction is None or isinstance(contraction, str):
        return None
    sides = [[axis.extent for axis in axes if free_symbols(axis.extent)]
             for axes in (contraction.rows, contraction.columns, contraction.depth)]  # fmt: skip
    names = sorted({name for side in sides for size in side for name in free_symbols(size)})
    if len(names) == 1:
        return SymbolicSize(symbol(names[0]), tuple(names))
    used = [side for side in sides if side]
    if len(used) != 1 or sides[2]:
        return None
    return SymbolicSize(dim_product(used[0]), tuple(names))


def tiles_at(
    op: Operation, size: SymbolicSize, number: int, target: Target, chosen: Entries
) -> Entries | None:
    """The entries of tiles that an operation has with a number for its symbolic size, beside those
    that are chosen; None where its kernel has no tiles then. Registers of whole tiles are for terms
    and columns that are numbers whatever the size is; of terms that aren't, `block_depth` is chosen
    as of any number of them."""
    for whole in (True, False):
        twin = op.clone()
        assert op.parent is not None
        op.parent.insert_before(twin, op)
        try:
            rename_symbols(twin, size.values(number))
            _preset(twin, chosen)
            tiles = _tiles(twin, target, whole)
        except (ZeroDivisionError, ImpossibleSizeError):  # No program has such sizes.
            return None
        finally:
            twin.erase()
        if tiles is None or tiles["products"] not in MATRICES or _known_but_rows(op, tiles):
            break
    if tiles is None or _is_known(op, "red"):
        return tiles
    return {name: entry for name, entry in tiles.items() if name != "block_depth"}


def _known_but_rows(op: Operation, tiles: Entries) -> bool:
    """Whether the terms and columns of an operation's contraction, in such tiles, are numbers."""
    columns = tiles["vector_axis"]
    assert isinstance(columns, A.StringAttr)
    return _is_known(op, "red") and _is_known(op, "par", columns.value)


def _is_known(op: Operation, axes: str, name: str = "") -> bool:
    """Whether the extents of a contraction's axes ("par" or "red"), or of one of these, are
    numbers."""
    compute = _first_compute(op)
    assert compute is not None
    return not any(free_symbols(axis.extent) for axis in compute.axis_list
                   if axis.kind == axes and name in ("", axis.name))  # fmt: skip


def _preset(op: Operation, tiles: Entries) -> None:
    """Give an operation's contraction entries of tiles."""
    compute = flatten(op).members[0].compute
    compute.attributes["schedule"] = loop.ScheduleAttr("cpu", A.DictAttr(dict(tiles)))


def _tiles(op: Operation, target: Target, whole: bool = True) -> Entries | None:
    """Schedule an operation in tiles; the entries of its contraction that are of tiles, and the
    axis of columns, which may be another side's for another size. Along the depth kernels have
    tiles of each number of rows, and registers of whole tiles as many rows as there are, so that
    these are not chosen by the size. whole: whether registers of whole tiles may be."""
    plan = plan_for_cpu(flatten(op), scratch=target.features.stack_bytes)
    if schedule_tiles(op, plan, target, whole) is not None:
        return None
    compute = plan.members[0].compute
    assert compute.schedule is not None
    entries = compute.schedule.entries.as_dict()
    names = {*TILES, "vector_axis"}
    names -= set(OF_ROWS.get(entries["products"], ()))
    return {name: entry for name, entry in entries.items() if name in names}


def scheduled_with(
    op: Operation, tiles: Entries, target: Target
) -> list[dict[str, A.Attribute]] | None:
    """The schedules, of an operation and then of its members, with given entries of tiles."""
    twin = op.clone()
    assert op.parent is not None
    op.parent.insert_before(twin, op)
    try:
        fitting = _without_other_axes(twin, tiles, target)
        if fitting is None:
            return None
        _preset(twin, fitting)
        if _tiles(twin, target) is None:
            return None
        return [dict(part.attributes["schedule"].entries.as_dict())  # type: ignore[attr-defined]
                for part in _parts(twin)]  # fmt: skip
    finally:
        twin.erase()


def _without_other_axes(op: Operation, tiles: Entries, target: Target) -> Entries | None:
    """Entries of tiles without those of axes that an operation has not, as axes are collapsed by
    their sizes: these are chosen again. None where the axis of columns is one of them."""
    plan = plan_for_cpu(flatten(op), scratch=target.features.stack_bytes)
    simplify_places(plan)
    find_collapses(plan)
    shared = {axis.name for axis in plan.shared}
    depth = {axis.name for axis in plan.members[0].own}
    if not _names(tiles, "vector_axis") <= shared:
        return None
    left = dict(tiles)
    if not _names(tiles, "row_axis") | _names(tiles, "outer_rows") <= shared:
        left = {name: entry for name, entry in left.items() if name not in ROW_AXES}
    if _names(tiles, "depth_order") != depth:
        left.pop("depth_order", None)
    return left


def _names(tiles: Entries, key: str) -> set[str]:
    """The axes that an entry names."""
    entry = tiles.get(key)
    if isinstance(entry, A.StringAttr):
        return {entry.value}
    every = entry if isinstance(entry, A.ArrayAttr) else ()
    return {each.value for each in every if isinstance(each, A.StringAttr)}


def _boundary(
    op: Operation, size: SymbolicSize, low: int, high: int, target: Target, known: Entries
) -> int:
    """The last size that is scheduled as the rung `low` is. known: entries that it has already."""
    form, other = (_form(op, size, rung, target, known) for rung in (low, high))
    if form == other:
        return int((low * high) ** 0.5)
    while high - low > 1:
        middle = (low + high) // 2
        if _form(op, size, middle, target, known) == form:
            low = middle
        else:
            high = middle
    return low


def _packed_ahead(
    op: Operation, size: SymbolicSize, least: int, rung: int, tiles: Entries, target: Target,
    known: Entries,
) -> list[tuple[int, A.Attribute]]:  # fmt: skip
    """From which sizes on, of those from `least` on, panels are packed in which time, in tiles as
    the rung has: how many there are to do it is known of the least of them alone. known: entries
    that it has already."""
    none = A.IntegerAttr(0)
    of_tiles = {name: tiles[name] for name in ("tile_rows", "tile_vectors") if name in tiles}
    chosen = {**known, **of_tiles}
    if len(size.names) > 1 or size.dim != symbol(size.names[0]) or not least:
        return [(least, none)]

    def at(number: int) -> A.Attribute:
        return (tiles_at(op, size, number, target, chosen) or {}).get(AHEAD, none)

    low, high = least, max(least, rung)
    first, last = at(low), at(high)
    if first == last:
        return [(least, first)]
    while high - low > 1:
        middle = (low + high) // 2
        if at(middle) == last:
            high = middle
        else:
            low = middle
    return [(least, first), (high, last)]


def _form(
    op: Operation, size: SymbolicSize, number: int, target: Target, known: Entries
) -> list[A.Attribute | None]:
    entries = tiles_at(op, size, number, target, known) or {}
    return [entries.get(name) for name in FORM]


def _parts(op: Operation) -> list[Operation]:
    """An operation and the computes that are its members."""
    inner = [each for each in op.walk() if isinstance(each, loop.ComputeOp) and each is not op]
    return [op, *inner]


def _variant(size: Dim, most: int, arm: list[dict[str, A.Attribute]]) -> A.DictAttr:
    top, *members = arm
    named: dict[str, A.Attribute] = {"size": A.DimAttr(size), "most": A.IntegerAttr(most), **top}
    if members:
        named["members"] = A.ArrayAttr([A.DictAttr(each) for each in members])
    return A.DictAttr(named)


__all__ = ["schedule_by_size"]
