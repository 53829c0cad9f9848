"""What a plan is as a contraction in tiles: its axes, factors, and what follows the sums.

A tile has a few points of a run of rows and a few vectors along one axis of columns; which of
the contraction's sides has the columns is the schedule's choice (`vector_axis`). All other shared
axes are outer ones, each point of which is a product of its own. What is summed over is a run, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import attrs

from irc.analysis.contraction import Contraction, Side, contraction_of
from irc.dialects.kernel.dots import LANE_DOTS, Rows, rows_of, split_rows_of
from irc.ir.attributes import Type
from irc.ir.core import Operation
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import coefficient, free_symbols, simplify, substitute, symbol
from irc.ir.types import i1
from irc.passes.kernel.cpu.contraction.runs import AxisRun
from irc.passes.kernel.cpu.plan import Access, Axis, CpuMember, CpuPlan, lane_stride
from irc.passes.kernel.cpu.schedule import CpuSchedule

ROWS, DEPTH = "_rows", "_depth"
"""The names of runs of several axes."""
_GROUP = "_group"


@attrs.define(eq=False)
class TiledFactor:
    """A side of the products. `access`: where it is read, if it is a plain read of an array.
    `packed`: it is evaluated into memory of the kernel's first. `first`: where the first part of a
    number is read that lies cut into parts, each of them `apart` elements behind the one before."""

    side: Side
    access: Access | None
    packed: bool = False
    first: Access | None = None
    apart: int = 0

    @property
    def begin(self) -> Access | None:
        """Where it, or its first part, is read."""
        return self.first if self.access is None else self.access


@attrs.define(eq=False)
class TiledPlan:
    """A plan of which the first member is a contraction and all others are maps over its sums."""

    plan: CpuPlan
    member: CpuMember
    contraction: Contraction

    @property
    def after(self) -> list[CpuMember]:
        """What follows the sums."""
        return self.plan.members[1:]

    @property
    def depth(self) -> list[Axis]:
        """The axes that are summed over."""
        return self.member.own

    def sides_along(self, rows: str, columns: str) -> tuple[Side, Side] | None:
        """The sides that have an axis of rows and one of columns, if these are of two sides."""
        contraction = self.contraction
        first, second = ({a.name for a in axes} for axes in (contraction.rows, contraction.columns))
        if rows in first and columns in second:
            return contraction.left, contraction.right
        if rows in second and columns in first:
            return contraction.right, contraction.left
        return None

    def stores(self) -> Iterable[Access]:
        """What is written to the caller's arrays."""
        for member in self.plan.members:
            for group in member.stores.values():
                yield from (a for a in group if a.storage and a.storage.kind == "argument")


def simplify_places(plan: CpuPlan) -> None:
    """Write the places of a plan's accesses without the divisions that their sizes make needless,
    as of `x[floordiv(m, 8), mod(m, 8), k]` in a contiguous array."""
    shared = {a.name: a.extent for a in plan.shared}
    for member in plan.members:
        extents = {**shared, **{a.name: a.extent for a in member.own}}
        for access in member.accesses():
            access.expression = simplify(access.expression, {}, extents)


def products_of(plan: CpuPlan) -> TiledPlan | str:
    """A plan as products in tiles, or why it is none. Its axes may be collapsed or not."""
    if not plan.members or plan.once or plan.initialized:
        return "it is more than a contraction with maps over its sums"
    member, *after = plan.members
    contraction = contraction_of(member.compute)
    if isinstance(contraction, str):
        return contraction
    product = contraction.product.results[0].type
    if product is not contraction.accumulator:
        return f"it sums {product} in {contraction.accumulator}"
    for other in after:
        if other.own or any(o.kind != "map" for o in other.compute.output_list):
            return "what follows the sums is more than maps over them"
    if any(s.kind == "scratch" for s in plan.storage.values()):
        return "its members hand on more than an element a point"
    return TiledPlan(plan, member, contraction)


def factor_of(member: CpuMember, side: Side, runs: Iterable[AxisRun]) -> TiledFactor:
    """A side of a plan's contraction, read along runs of its axes where it moves evenly."""
    plain = side.plain
    access = None if plain is None else member.reads[plain]
    if access is not None and access.positions:
        access = None
    for run in runs:
        access = access if access is None else run.moved(access)
    factor = TiledFactor(side, access)
    parts = [member.reads[read] for read in side.parts]
    for run in runs:
        parts = [run.moved(part) for part in parts]
    if parts and not any(part.positions for part in parts):
        _find_parts(factor, parts)
    return factor


def _find_parts(factor: TiledFactor, parts: Sequence[Access]) -> None:
    """Where a factor's parts lie, if they are in one array at equal distances."""
    first = parts[0]
    steps = {b.expression - a.expression for a, b in pairwise(parts)}
    step = steps.pop()
    together = all(part.storage is first.storage for part in parts)
    if together and first.storage is not None and not steps and isinstance(step, int):
        factor.first, factor.apart = first, step


def runs_of(products: TiledPlan, own: CpuSchedule) -> tuple[AxisRun, AxisRun]:
    """The runs of rows and of depth that a schedule says. Raises InvalidIR for others than that
    the contraction has."""
    compute, shared = products.member.compute, {a.name: a for a in products.plan.shared}
    rows, depth = [*own.outer_rows, own.row_axis], {a.name: a for a in products.depth}
    sides = {products.sides_along(name, own.vector_axis) for name in rows}
    if None in sides or len(sides) != 1 or not {*rows, own.vector_axis} <= shared.keys():
        raise InvalidIR(f"{', '.join(rows)} and {own.vector_axis} are no axes of rows and columns "
                        "of this contraction", op=compute)  # fmt: skip
    if not depth or len(own.depth_order) != len(depth) or set(own.depth_order) != depth.keys():
        raise InvalidIR(f"the schedule adds terms along {', '.join(own.depth_order)}, not along "
                        f"{', '.join(depth)}", op=compute)  # fmt: skip
    return (AxisRun.of(ROWS, [shared[name] for name in rows]),
            AxisRun.of(DEPTH, [depth[name] for name in own.depth_order]))  # fmt: skip


def reads_vectors(factor: TiledFactor, columns: str, depth: AxisRun, lanes: int) -> bool:
    """Whether vectors along the columns are read where the factor lies, at places that move evenly
    along the depth."""
    access = factor.access
    if access is None:
        return False
    step = lane_stride(access.expression, columns, lanes)
    return step == 1 and moves_along(access, depth)


def reads_rows(factor: TiledFactor, rows: AxisRun, depth: AxisRun) -> bool:
    """Whether scalars are read where the factor lies, at places that move evenly."""
    access = factor.access
    return access is not None and moves_along(access, rows) and moves_along(access, depth)


def moves_along(access: Access, run: AxisRun) -> bool:
    """Whether a place that was moved along a run has none of its parts left, and moves evenly."""
    parts = {part.name for part in run.parts} - {run.axis.name}
    if parts & free_symbols(access.expression):
        return False
    return coefficient(access.expression, run.axis.name) is not None


def reads_depth(factor: TiledFactor, across: str, depth: AxisRun) -> bool:
    """Whether vectors along the depth are read where the factor lies."""
    access = factor.access
    if access is None or coefficient(access.expression, across) is None:
        return False
    even = moves_along(access, depth)
    return even and coefficient(access.expression, depth.axis.name) == 1


def reads_panels(factor: TiledFactor, columns: str, depth: str, panel: int, group: int) -> bool:
    """Whether a factor lies in panels of so many columns, in groups of so many terms."""
    access = factor.access
    if access is None:
        return False
    first, *others = (
        substitute(access.expression, {depth: symbol(_GROUP) * group + term})
        for term in range(group)
    )
    side_by_side = all(other - first == term for term, other in enumerate(others, 1))
    begin = substitute(access.expression, {depth: 0})
    return (
        side_by_side
        and coefficient(first, _GROUP) == group * panel
        and lane_stride(begin, columns, panel) == group
    )


@attrs.define(eq=False)
class Tiling:
    """Products with all that a schedule decides. group: terms that are multiplied together."""

    products: TiledPlan
    outer: list[Axis]
    row_run: AxisRun
    columns: Axis
    depth_run: AxisRun
    left: TiledFactor
    right: TiledFactor
    schedule: CpuSchedule
    group: int

    @property
    def plan(self) -> CpuPlan:
        """The plan."""
        return self.products.plan

    @property
    def rows(self) -> Axis:
        """The axis that counts the rows."""
        return self.row_run.axis

    @property
    def depth(self) -> Axis:
        """The axis that counts the terms of a sum."""
        return self.depth_run.axis

    @property
    def element(self) -> Type:
        """The type of sums."""
        return self.products.contraction.accumulator

    @property
    def factor_element(self) -> Type:
        """The type of what is multiplied, and of packed factors: that of the sums, or the factors'
        own where terms are multiplied in groups."""
        if self.schedule.is_split:
            return self.dot.element
        return self.right.side.narrow.type if self.group > 1 else self.element

    @property
    def dot(self) -> Rows:
        """How registers of whole tiles multiply the factors."""
        dot = rows_for(self.left, self.schedule)
        assert dot is not None
        return dot

    @property
    def parts(self) -> int:
        """The parts that factors are cut into."""
        return self.dot.parts if self.schedule.is_split else 1

    @property
    def panel(self) -> int:
        """The columns of a tile."""
        return self.schedule.tile_vectors * self.schedule.lanes

    @property
    def packed_panel(self) -> int:
        """The columns of a panel of the packed factor: those of a tile, or of one of the registers
        that hold a tile."""
        return self.dot.tile[1] if self.schedule.in_matrices else self.panel


def move_along(plan: CpuPlan, rows: AxisRun) -> None:
    """Write the places of what is stored, and of what is read where the sums are, along a run of
    rows."""
    member, *after = plan.members
    for group in member.stores.values():
        group[:] = map(rows.moved, group)
    for other in after:
        for op, access in other.reads.items():
            other.reads[op] = rows.moved(access) if access.storage is not None else access
        for group in other.stores.values():
            group[:] = map(rows.moved, group)


def tiling_of(plan: CpuPlan, top: CpuSchedule, own: CpuSchedule) -> Tiling:
    """The tiling of a plan with collapsed axes. Raises InvalidIR where its schedules don't fit."""
    products = products_of(plan)
    if isinstance(products, str):
        raise InvalidIR(f"the schedule has tiles, which this can't be computed in: {products}",
                        op=plan.op)  # fmt: skip
    compute, shared = products.member.compute, {a.name: a for a in plan.shared}
    rows, depth = runs_of(products, own)
    if len(top.outer) != len(shared) or set(top.outer) != shared.keys():
        raise InvalidIR(f"the schedule's outer axes ({', '.join(top.outer)}) are not the shared "
                        f"axes ({', '.join(shared)})", op=plan.op)  # fmt: skip
    sides = products.sides_along(own.row_axis, own.vector_axis)
    assert sides is not None
    left, right = (factor_of(products.member, side, (rows, depth)) for side in sides)
    left.packed, right.packed = own.pack_left, own.pack_right
    _check_factors(compute, left, right, (rows, depth), own)
    if products.contraction.accumulator is i1:
        raise InvalidIR("tiles have sums of numbers", op=compute)
    if (own.pack_left or own.pack_right) and not (
        own.block_depth or isinstance(depth.axis.extent, int)
    ):
        raise InvalidIR("what is packed has a known depth (block_depth)", op=compute)
    inside = {axis.name for axis in rows.parts[:-1]}
    outer = [rows.axis if name == own.row_axis else shared[name]
             for name in top.outer if name not in inside]  # fmt: skip
    move_along(plan, rows)
    return Tiling(
        products, outer, rows, shared[own.vector_axis], depth, left, right, own, _group(left, own)
    )


def _group(left: TiledFactor, own: CpuSchedule) -> int:
    """The terms that are multiplied together."""
    if not own.in_matrices:
        return own.group
    dot = rows_for(left, own)
    return 1 if dot is None else dot.group


def rows_for(left: TiledFactor, own: CpuSchedule) -> Rows | None:
    """How registers of whole tiles multiply a factor's elements, or the parts of these."""
    if own.is_split:
        return split_rows_of(left.side.value.type)
    return rows_of(left.side.narrow.type)


def _check_factors(
    compute: Operation, left: TiledFactor, right: TiledFactor, runs: tuple[AxisRun, AxisRun],
    own: CpuSchedule,
) -> None:  # fmt: skip
    """Raise InvalidIR for factors that must be packed, or can't be."""
    rows, depth = runs
    if own.in_matrices:
        return  # irc.passes.kernel.cpu.contraction.matrices looks at them
    if own.products == "depth":
        if right.packed or not reads_depth(right, own.vector_axis, depth):
            raise InvalidIR("products along the depth read the factor with the columns along it, "
                            "where it lies (products)", op=compute)  # fmt: skip
        if not (left.packed or (reads_rows(left, rows, depth)
                                and reads_depth(left, rows.axis.name, depth))):
            raise InvalidIR("the factor with the rows must be packed (pack_left)", op=compute)
        if own.block_depth or own.lanes < 2:
            raise InvalidIR("products along the depth are of all of it (block_depth), in vectors "
                            "(lanes)", op=compute)  # fmt: skip
        _check_groups(compute, left, right, runs, own)
        return
    if not (left.packed or reads_rows(left, rows, depth)):
        raise InvalidIR("the factor with the rows must be packed (pack_left)", op=compute)
    _check_groups(compute, left, right, runs, own)
    if own.group > 1:
        return
    if not (right.packed or reads_vectors(right, own.vector_axis, depth, own.lanes)):
        raise InvalidIR("the factor with the columns must be packed (pack_right)", op=compute)


def _check_groups(
    compute: Operation, left: TiledFactor, right: TiledFactor, runs: tuple[AxisRun, AxisRun],
    own: CpuSchedule,
) -> None:  # fmt: skip
    """Raise InvalidIR for factors whose terms can't be multiplied in groups."""
    if own.group == 1:
        if own.offset:
            raise InvalidIR("terms that are multiplied one by one have no offset", op=compute)
        return
    rows, depth = runs
    reason = misses_groups(left, right, own.group, own.offset)
    if own.lanes < 4:
        reason = "vectors have at least 4 lanes"
    elif not (left.packed or reads_depth(left, rows.axis.name, depth)):
        reason = "the factor with the rows has not its terms side by side (pack_left)"
    elif own.products == "lanes" and not right.packed:
        panel = own.tile_vectors * own.lanes
        if len(depth.parts) > 1 or not reads_panels(
            right, own.vector_axis, depth.axis.name, panel, own.group
        ):
            reason = (f"the factor with the columns is not in panels with groups of {own.group} "
                      "terms (pack_right)")  # fmt: skip
    if reason:
        raise InvalidIR(f"its terms can't be multiplied in groups (group): {reason}", op=compute)


def misses_groups(left: TiledFactor, right: TiledFactor, group: int, offset: int) -> str:
    """Why no CPU multiplies the factors' elements in groups of so many terms, the left one with an
    offset; "" where one does."""
    elements = [factor.side.narrow.type for factor in (left, right)]
    known = [dot for dot in LANE_DOTS if dot.element is elements[0] and dot.group == group]
    if not known or elements[0] is not elements[1]:
        return f"no cpu multiplies {elements[0]} and {elements[1]} in groups of {group}"
    if not any(offset == dot.offset for dot in known):
        return f"no cpu multiplies {elements[0]} with an offset of {offset}"
    return ""


__all__ = ["DEPTH", "ROWS", "TiledFactor", "TiledPlan", "Tiling", "factor_of", "move_along",
           "misses_groups", "moves_along", "products_of", "reads_depth", "reads_panels",
           "reads_rows", "reads_vectors", "runs_of", "simplify_places", "tiling_of"]  # fmt: skip
