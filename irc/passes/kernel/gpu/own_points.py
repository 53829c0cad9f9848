"""How many points the rows of a kernel have, and what is contiguous along and across them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from irc.analysis.loop import estimate
from irc.ir.symbols import Dim, coefficient, free_symbols, known_divisor, symbol
from irc.passes.kernel.gpu.combine import TELL_PLACES
from irc.passes.kernel.gpu.odd_rows import GROUP_BYTES
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan, accesses
from irc.passes.kernel.gpu.transposed import contiguous_axis


def power_of_two(count: int) -> int:
    """The least power of two that is at least `count` (1 for 0)."""
    return 1 << max(0, count - 1).bit_length()


def longest_own(plan: GpuPlan) -> int:
    """The power of two that holds every member's own points; 0 where one is symbolic."""
    sizes = [m.points for m in plan.members if m.own]
    static = [s for s in sizes if isinstance(s, int)]
    return power_of_two(max(static)) if len(static) == len(sizes) else 0


def moves_along(member: GpuMember, offset: Dim) -> bool:
    """Whether an offset moves along rows, and from row to row."""
    used = free_symbols(offset)
    return bool(used & {a.name for a in member.own}) and bool(used & set(member.row_names))


def stores_along(plan: GpuPlan) -> bool:
    """Whether something is stored along rows."""
    return any(stored and moves_along(m, o) for m, o, _, stored in accesses(plan))


def row_order(plan: GpuPlan) -> list[int] | None:
    """The row axes by how far a step moves in the memory that is written (where that doesn't have
    all of them, in what is read); None for their own order, and where steps are symbolic."""
    if plan.members[0].folded:
        return None
    # Where an axis of one point stands is all one.
    long = [k for k, extent in enumerate(plan.rows) if estimate(extent) > 1]
    for member, offset, _, _ in sorted(accesses(plan), key=lambda access: not access[3]):
        steps = {k: coefficient(offset, member.rows[k]) for k in long}
        sizes = {k: abs(step) for k, step in steps.items() if isinstance(step, int) and step}
        if len(sizes) == len(long):
            order = sorted(long, key=lambda k: -sizes[k])
            rest = [k for k in range(len(plan.rows)) if k not in long]
            return None if order == long else rest + order
    return None


def own_order(plan: GpuPlan, warp: int, sector_bytes: int) -> list[int]:
    """The order of the own axes, outermost first, in which a warp's lanes touch the fewest sectors
    of memory."""
    orders = [order for member in plan.members if member.own for order in _stepped(plan, member)]
    return min([list(range(ordered_axes(plan))), *orders],
               key=lambda order: _sectors(plan, order, warp, sector_bytes))  # fmt: skip


def ordered_axes(plan: GpuPlan) -> int:
    """How many own axes have an order that is to choose, in which all members' points lie in the
    same ones and may come in any order; 0 where they stand as they are."""
    own = [m for m in plan.members if m.own]
    extents = {tuple(a.extent for a in m.tiled) for m in own}
    outputs = [o for m in plan.members for o in m.compute.output_list]
    alike = len(extents) == 1 and all(
        o.kind == "map" or (o.kind == "reduce" and o.combiner not in TELL_PLACES)
        for o in outputs
    )
    count = len(own[0].tiled) if alike else 0
    return count if count > 1 else 0


def _stepped(plan: GpuPlan, member: GpuMember) -> Iterator[list[int]]:
    """For what a member reads or stores along its own axes: these by how far a step moves."""
    lengths = [estimate(a.extent) for a in member.tiled]
    for other, offset, _, _ in accesses(plan):
        if other is member and (steps := _steps(member, offset)):
            yield sorted(range(len(steps)), key=lambda k: (lengths[k] > 1, -abs(steps[k])))


def _steps(member: GpuMember, offset: Dim) -> list[int]:
    """How far a step along each of the own axes moves; none where one isn't known."""
    steps = [coefficient(offset, a.name) for a in member.tiled]
    known = [step for step in steps if isinstance(step, int)]
    return known if len(known) == len(steps) else []


def _sectors(plan: GpuPlan, order: Sequence[int], warp: int, sector_bytes: int) -> int:
    """The sectors of memory that a row's first lanes touch in all that is read and stored."""
    total = 0
    for member, offset, size, _ in accesses(plan):
        steps = _steps(member, offset) if member.own else []
        if len(steps) == len(order):
            sizes = [max(1, estimate(member.tiled[k].extent)) for k in order]
            points = _first_points(sizes, warp)
            places = {
                sum(steps[k] * place for k, place in zip(order, point, strict=True))
                for point in points
            }
            total += len({place * size // sector_bytes for place in places})
    return total


def _first_points(sizes: Sequence[int], count: int) -> Iterator[tuple[int, ...]]:
    """The first points of a space in order, at most so many."""
    # `product` makes lists of its ranges: what isn't reached of outer axes is cut.
    return itertools.islice(itertools.product(*[range(min(n, count)) for n in sizes]), count)


def next_row(plan: GpuPlan, member: GpuMember) -> str:
    """The axis along which a tile's next row is found."""
    if member.folded:
        return member.row_names[-1]
    order = row_order(plan) or list(range(len(plan.rows)))
    return member.rows[next((k for k in reversed(order) if estimate(plan.rows[k]) > 1), order[-1])]


def begins_at_groups(plan: GpuPlan) -> bool:
    """Whether all rows lie in one piece, and begin at what a thread moves at once."""
    for member, offset, size, _ in accesses(plan):
        if moves_along(member, offset):
            own = contiguous_axis(offset, [a.name for a in member.own])
            if own is None or known_divisor(offset - symbol(own)) * size % GROUP_BYTES:
                return False
    return True


__all__ = [
    "begins_at_groups",
    "longest_own",
    "moves_along",
    "next_row",
    "ordered_axes",
    "own_order",
    "power_of_two",
    "row_order",
    "stores_along",
]
