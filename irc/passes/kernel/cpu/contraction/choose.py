"""The schedule of a contraction in tiles: what nobody chose is chosen by the target's facts."""

from __future__ import annotations

from typing import Any

import attrs

from irc.analysis.loop import estimate
from irc.dialects import loop
from irc.ir.core import Operation
from irc.ir.symbols import Dim, coefficient
from irc.passes.kernel.cpu.contraction.tiling import (
    TiledPlan,
    factor_of,
    products_of,
    reads_rows,
    reads_vectors,
)
from irc.passes.kernel.cpu.plan import Axis, CpuPlan, find_collapses, lane_stride
from irc.passes.kernel.cpu.schedule import CpuSchedule, read_schedule
from irc.passes.kernel.plan.plan import Plan
from irc.target import Target

TILES = frozenset((
    "tile_rows", "tile_vectors", "row_axis", "point_rows", "point_columns", "block_rows",
    "block_depth", "inner", "pack_left", "pack_right",
))
"""The keys that contractions in tiles alone have."""
LEAST_WORK = 32_768
"""Multiplications below which a contraction stays a reduction like others."""
LATENCY = 8
"""Sums in flight that keep the multipliers busy."""
PAGE = 4096
"""Bytes at which rows of one distance fall on one set of the first-level cache."""


def has_tiles(flat: Plan) -> bool:
    """Whether a plan's schedule asks for tiles."""
    schedule = flat.members[0].compute.schedule
    return schedule is not None and any(key in TILES for key, _ in schedule.entries.items)


def is_open(op: Operation) -> bool:
    """Whether an operation's schedule is yet to be written, or has some entries of tiles only."""
    if "schedule" not in op.attributes:
        return True
    return isinstance(op, loop.ComputeOp) and not read_schedule(op.schedule, op).has("outer")


def schedule_tiles(op: Operation, plan: CpuPlan, target: Target) -> bool:
    """Write the schedules of a plan that is to be computed in tiles, keeping what is there; whether
    it is one. The plan's axes collapse."""
    compute = plan.members[0].compute if plan.members else None
    preset = _chosen_entries(compute)
    products = products_of(plan)
    if isinstance(products, str) or (not preset and not _worthwhile(products, target)):
        return False
    shared_pairs, own_pairs = find_collapses(plan)
    if len(products.depth) != 1:
        return False
    axes = _axes(products, target, preset)
    if axes is None:
        return False
    chosen = _TileChooser(products, *axes, target, preset).run()
    assert compute is not None
    if isinstance(op, loop.ComputeOp):
        chosen.collapse = shared_pairs + own_pairs[0]
        chosen.outer = _outer(plan, axes)
        op.attributes["schedule"] = chosen.to_attribute()
        return True
    room = target.features.stack_bytes
    top = CpuSchedule(collapse=shared_pairs, outer=_outer(plan, axes), scratch=room)
    op.attributes["schedule"] = top.to_attribute()
    for member, pairs in zip(plan.members, own_pairs, strict=True):
        own = chosen if member.compute is compute else CpuSchedule()
        own.collapse = pairs
        member.compute.attributes["schedule"] = own.to_attribute()
    return True


def _chosen_entries(compute: loop.ComputeOp | None) -> dict[str, Any]:
    """The entries of tiles that a contraction has."""
    if compute is None or compute.schedule is None:
        return {}
    own = read_schedule(compute.schedule, compute)
    return {k: v for k, v in vars(own).items() if k not in ("_op", "collapse", "outer")}


def _worthwhile(products: TiledPlan, target: Target) -> bool:
    """Whether tiles are faster than a reduction along vectors: enough rows and columns to use each
    element several times."""
    contraction = products.contraction
    rows, columns, depth = (
        _points(axes) for axes in (contraction.rows, contraction.columns, contraction.depth)
    )  # fmt: skip
    least, lanes = min(rows, columns), target.lanes(contraction.accumulator)
    return least >= 4 and max(rows, columns) >= lanes and rows * columns * depth >= LEAST_WORK


def _points(axes: Any) -> int:
    total = 1
    for axis in axes:
        total *= estimate(axis.extent)
    return total


def _axes(
    products: TiledPlan, target: Target, preset: dict[str, Any]
) -> tuple[Axis, Axis] | None:
    """The axes of rows and columns: the largest of each side, columns where results are written one
    after the other."""
    contraction, shared = products.contraction, {a.name: a for a in products.plan.shared}
    sides = [[shared[a.name] for a in axes if a.name in shared]
             for axes in (contraction.rows, contraction.columns)]  # fmt: skip
    if not all(sides):
        return None
    stores = list(products.stores())

    def along(axis: Axis) -> tuple[int, int]:
        steps = [lane_stride(s.expression, axis.name, 16) for s in stores]
        return sum(1 for step in steps if step == 1), estimate(axis.extent)

    best = [max(side, key=along) for side in sides]
    if "vector_axis" in preset:
        best.sort(key=lambda a: a.name == preset["vector_axis"])
    else:
        best.sort(key=lambda a: along(a)[0])
    rows, columns = best
    return rows, columns


def _outer(plan: CpuPlan, axes: tuple[Axis, Axis]) -> list[str]:
    rest = [a.name for a in plan.shared if a not in axes]
    return [*rest, axes[1].name, axes[0].name]


@attrs.define(eq=False)
class _TileChooser:
    products: TiledPlan
    rows: Axis
    columns: Axis
    target: Target
    preset: dict[str, Any]

    def run(self) -> CpuSchedule:
        """All entries of the tiles, those that are there first."""
        own = CpuSchedule(**self.preset)

        def fill(**entries: Any) -> None:
            for name, value in entries.items():
                if not own.has(name):
                    setattr(own, name, value)

        element: Any = self.products.contraction.accumulator
        lanes = self.target.lanes(element)
        fill(row_axis=self.rows.name, vector_axis=self.columns.name, lanes=lanes)
        fill(tile_vectors=self._vectors(own.lanes))
        fill(tile_rows=self._rows(own.tile_vectors))
        sides = self.products.sides_along(own.row_axis, own.vector_axis)
        assert sides is not None
        left, right = (factor_of(self.products.member, side) for side in sides)
        depth = self.products.depth[0]
        fill(
            pack_right=not reads_vectors(right, own.vector_axis, depth.name, own.lanes)
            or self._far_columns(right, depth, own.tile_vectors * own.lanes),
            pack_left=not reads_rows(left, own.row_axis, depth.name)
            or self._collides(left, depth, own.tile_rows),
        )
        fill(block_depth=self._depth(depth.extent, own), inner="rows")
        fill(block_rows=self._block_rows(own), point_rows=0, point_columns=0)
        return own

    def _vectors(self, lanes: int) -> int:
        columns = estimate(self.columns.extent)
        return 1 if columns <= lanes else 2

    def _rows(self, vectors: int) -> int:
        """As many rows as there are registers for, with as little lost at the end as can be."""
        features = self.target.features
        registers = 32 if features.has_avx512 or not features.is_x86 else 16
        most = (registers - vectors - 2) // vectors
        extent = estimate(self.rows.extent)
        if extent <= most:
            return max(extent, 1)

        def time(rows: int) -> int:
            return max(rows * vectors, LATENCY) if rows else 0

        def total(rows: int) -> int:
            return extent // rows * time(rows) + time(extent % rows)

        return min(range(most, most // 2, -1), key=total)

    def _far_columns(self, right: Any, depth: Axis, panel: int) -> bool:
        """Whether terms that follow each other of a panel lie apart, and are used often."""
        step = coefficient(right.access.expression, depth.name)
        return step != panel and estimate(self.rows.extent) > 2 * panel

    def _collides(self, left: Any, depth: Axis, rows: int) -> bool:
        """Whether a tile's rows fall on few sets of the cache, or aren't contiguous."""
        access = left.access
        step = coefficient(access.expression, self.rows.name)
        if coefficient(access.expression, depth.name) != 1 or not isinstance(step, int):
            return True
        lines = {(k * step * access.bytes) % PAGE // 64 for k in range(rows)}
        return 4 * len(lines) < rows and estimate(depth.extent) > 64

    def _depth(self, extent: Dim, own: CpuSchedule) -> int:
        return 0 if isinstance(extent, int) and extent <= 1024 else 512

    def _block_rows(self, own: CpuSchedule) -> int:
        depth = max(own.block_depth or estimate(self.products.depth[0].extent), 1)
        size = max(self.target.processor.core_bytes // 2 // (4 * depth), 1)
        rows = max(size // own.tile_rows, 1) * own.tile_rows
        return 0 if rows >= estimate(self.rows.extent) else rows
