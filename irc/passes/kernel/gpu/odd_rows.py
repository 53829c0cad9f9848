"""Rows that don't begin at a multiple of what a thread moves at once.

Row 3 of rows of 30,523 elements begins at element 91,569: no thread may read 16 bytes there. So a
tile of such rows covers the groups of elements that memory has, from the one that holds the row's
first element on. Whole groups are read, with what they hold of the rows beside; groups that belong
to the row alone are stored whole, and the elements of the first and the last group, if these are
shared with the rows beside, are computed again on a few lanes and stored one by one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import attrs

from irc.ir.symbols import (
    Dim,
    coefficient,
    dim_product,
    free_symbols,
    known_divisible,
    known_divisor,
    symbol,
)
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan, accesses

if TYPE_CHECKING:
    from irc.passes.kernel.gpu.contraction_space import ContractionSpace
    from irc.passes.kernel.gpu.tiles import Tile, TileBuilder, TileDim

GROUP_BYTES = 16
"""What a thread moves at once."""


@attrs.frozen(eq=False)
class Cover:
    """How the lanes of a tile cover rows: the lane `name` is at element `base` + lane, a multiple
    of `group`. read: lanes of groups that have an element of the row; whole: of those that have no
    other's."""

    name: str
    group: int
    read: Tile
    whole: Tile

    def fits(self, offset: Dim) -> bool:
        """Whether the groups of lanes are groups in memory at an offset."""
        if coefficient(offset, self.name) != 1:
            return False
        return known_divisor(offset - symbol(self.name)) % self.group == 0


@attrs.frozen(eq=False)
class OddRows:
    """Rows of `points` elements of which the first is number `start` of its array, for groups of
    `group`."""

    b: TileBuilder
    start: Dim
    points: int
    group: int

    @property
    def base(self) -> Dim:
        """The first element of the group that has the row's first one."""
        return self.start // self.group * self.group

    @property
    def reach(self) -> int:
        """The most lanes from the base to a row's end."""
        return self.points + self.group - 1

    def _shift(self) -> Tile:
        """How far behind its group's first element a row begins. The compiler sees by the bits how
        little that is, and that most lanes are inside: masks of all took a third of the time."""
        b = self.b
        return b.op("arith.andi", b.index(self.start - self.base), b.index(self.group - 1))

    def place(self, name: str, dim: TileDim, start: Tile | None, within: bool = False) -> Dim:
        """The position in the row of the lanes of a tile that begins `start` lanes (a multiple of
        the group; None: 0) behind `base`, and the dimension's masks; within: all are inside."""
        b, group = self.b, self.group
        if within:
            at = b.iota(dim) if start is None else b.op("arith.addi", start, b.iota(dim))
            return b.bind(name, at) + self.base - self.start
        lanes, first = b.iota(dim), self._shift()
        if start is not None:
            first = b.op("arith.subi", first, start)
        end = b.op("arith.addi", first, b.index(self.points))
        inside = b.compare("sge", lanes, first), b.compare("slt", lanes, end)
        dim.mask = b.both(*inside)
        # `start` would hide from the compiler which lanes share a group.
        size = b.index(group)
        left = b.op("arith.muli", b.op("arith.divsi", lanes, size), size)
        right = b.op("arith.addi", left, size)
        whole = b.both(b.compare("sge", left, first), b.compare("sle", right, end))
        assert whole is not None
        dim.cover = Cover(name, group, b.compare("slt", left, end), whole)
        at = lanes if start is None else b.op("arith.addi", start, lanes)
        return b.bind(name, at) + self.base - self.start

    def ends(self, name: str, dim: TileDim) -> Dim:
        """The position in the row of the lanes of `dim`, of two groups: of the row's first group
        and of its last, as far as they are shared with other rows."""
        b, group = self.b, self.group
        last = (self.start + self.points) // group * group
        lanes = b.iota(dim)
        head = b.compare("slt", lanes, b.index(group))
        shift = self._shift()
        at_head = b.op("arith.subi", lanes, shift)
        at_tail = b.op("arith.addi", lanes, b.index(last - self.start - group))
        place = b.select(head, at_head, at_tail)
        zero = b.index(0)
        shared = b.select(head, b.compare("sgt", shift, zero), b.compare("sge", place, zero))
        inside = b.both(b.compare("sge", place, zero),
                        b.compare("slt", place, b.index(self.points)))  # fmt: skip
        dim.mask = b.both(shared, inside)
        return b.bind(name, place)


def row_group(plan: GpuPlan) -> int:
    """The group for tiles of a kernel's rows; 1 where rows begin at groups, or where it can't be.

    All arrays that rows are stored to, and most that they are read from, have the same places for
    them: row after row without gaps, in whole groups all together, so that nobody reads outside.
    """
    members = [m for m in plan.members if m.own]
    points = members[0].points
    if any(len(m.rows) != len(plan.rows) for m in members):
        return 1
    if not isinstance(points, int) or any(not _is_plain(m, points) for m in members):
        return 1
    fits, others, least = 0, 0, GROUP_BYTES
    for member, offset, size, stored in accesses(plan):
        if not member.own or member.own[0].name not in free_symbols(offset):
            continue
        if offset == _linear(plan, member) * points + symbol(member.own[0].name):
            fits, least = fits + 1, min(least, size)
        elif stored:
            return 1
        else:
            others += 1
    group = GROUP_BYTES // least
    if group < 2 or fits <= others or points % group == 0 or points < 4 * group:
        return 1
    return group if known_divisible(dim_product([*plan.rows, points]), group) else 1


def product_row_group(plan: GpuPlan, space: ContractionSpace, least: int = 1) -> int:
    """The group, of so many elements at least, for tiles of a product's result; 1 where its rows
    begin at groups that a thread moves at once, or where not all that is stored has the same places
    for it, row after row without gaps, in whole groups."""
    if len(space.rows) != 1 or len(space.columns) != 1:
        return 1
    (row,), (column,) = space.rows, space.columns
    points, stored = column.extent, [a for a in accesses(plan) if a[3]]
    if not isinstance(points, int) or len(stored) < len(plan.outputs):
        return 1
    group = GROUP_BYTES // min(size for _, _, size, _ in stored)
    if group < 2 or points % group == 0:
        return 1
    group = max(group, least)
    if points < 4 * group:
        return 1
    for _, offset, _, _ in stored:
        rest = offset - symbol(row.name) * points - symbol(column.name)
        if {row.name, column.name} & free_symbols(rest) or known_divisor(rest) % group:
            return 1
    return group if known_divisible(row.extent, group // math.gcd(points, group)) else 1


def _is_plain(member: GpuMember, points: int) -> bool:
    """Whether a member has one own axis of so many points, and maps or reduces along it."""
    kinds = {output.kind for output in member.compute.output_list}
    return (member.points == points and len(member.own) == 1
            and kinds <= {"map", "reduce"} and member.own[0].kind != "scan")  # fmt: skip


def _linear(plan: GpuPlan, member: GpuMember) -> Dim:
    """The number of a row."""
    place: Dim = 0
    for name, extent in zip(member.rows, plan.rows, strict=True):
        place = place * extent + symbol(name)
    return place


__all__ = ["Cover", "OddRows", "product_row_group", "row_group"]
