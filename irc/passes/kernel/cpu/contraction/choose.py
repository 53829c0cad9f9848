"""The schedule of a contraction in tiles: what nobody chose is chosen by the target's facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from irc.analysis.contraction import Side, group_time, grouped, tiled
from irc.analysis.cost import op_cost
from irc.analysis.loop import estimate
from irc.dialects import arith, loop
from irc.dialects.kernel.dots import LaneDot, Rows
from irc.ir.core import Operation
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim, coefficient
from irc.ir.types import element_bytes
from irc.passes.kernel.cpu.collapse import find_collapses
from irc.passes.kernel.cpu.contraction.ahead import copies_ahead, parts_of, tiles_of
from irc.passes.kernel.cpu.contraction.axes import axes_of, points_of
from irc.passes.kernel.cpu.contraction.fetching import rows_ahead
from irc.passes.kernel.cpu.contraction.matrices import (
    depth_of_block,
    dot_of_factors,
    misfit,
    reads_terms,
    rows_of_block,
    rows_stay,
)
from irc.passes.kernel.cpu.contraction.points import Points
from irc.passes.kernel.cpu.contraction.register_tiles import best_tile, vector_registers
from irc.passes.kernel.cpu.contraction.runs import AxisRun
from irc.passes.kernel.cpu.contraction.tiling import (
    TiledFactor,
    TiledPlan,
    factor_of,
    misses_groups,
    move_along,
    products_of,
    reads_depth,
    reads_panels,
    reads_rows,
    reads_vectors,
    runs_of,
    simplify_places,
)
from irc.passes.kernel.cpu.contraction.woven import may_weave
from irc.passes.kernel.cpu.plan import Axis, CpuPlan, lane_stride
from irc.passes.kernel.cpu.schedule import CpuSchedule, read_schedule
from irc.passes.kernel.plan.plan import Plan
from irc.target import Target

TILES = frozenset((
    "tile_rows", "tile_vectors", "row_axis", "outer_rows", "depth_order", "point_rows",
    "point_columns", "block_rows", "block_depth", "inner", "pack_left", "pack_right", "pack_ahead",
    "rows_ahead", "pack_columns", "products", "group", "offset", "tile_columns", "terms", "in_turn",
    "woven", "skew",
))
"""The keys that contractions in tiles alone have."""
_RUNS = frozenset(("vector_axis", "row_axis", "outer_rows", "depth_order"))
"""Those of the axes that tiles go over."""


def has_tiles(flat: Plan) -> bool:
    """Whether a plan's schedule asks for tiles, of which its points are made."""
    schedule = flat.members[0].compute.schedule
    if any(axis.kind == "par" for axis in flat.members[0].own):
        return False
    return schedule is not None and any(key in TILES for key, _ in schedule.entries.items)


def is_open(op: Operation) -> bool:
    """Whether an operation's schedule is yet to be written, or has some entries of tiles only."""
    if "schedule" not in op.attributes:
        return True
    return isinstance(op, loop.ComputeOp) and not read_schedule(op.schedule, op).has("outer")


def schedule_tiles(
    op: Operation, plan: CpuPlan, target: Target, whole: bool = True
) -> str | None:
    """Write the schedules of a plan that is to be computed in tiles, keeping what is there: None.
    Else why it has entries of tiles and gets none; "" where it has no entries. The plan's axes
    collapse. whole: whether registers of whole tiles may be chosen."""
    compute = plan.members[0].compute if plan.members else None
    preset = _chosen_entries(compute)
    simplify_places(plan)
    products = products_of(plan)
    if isinstance(products, str):
        return products if preset else ""
    if not preset and not _worthwhile(products, target):
        return ""
    shared_pairs, own_pairs = find_collapses(plan)
    axes = axes_of(products, target, preset)
    if axes is None:
        return "it has no axis of rows, of columns or of depth" * bool(preset)
    own = _with_runs(products, *axes, preset)
    runs = runs_of(products, own)
    move_along(plan, runs[0])
    chosen = _TileChooser(products, *runs, axes[1], target, own, whole).run()
    assert compute is not None
    outer = _outer(plan, [*own.outer_rows, own.row_axis], own.vector_axis)
    if isinstance(op, loop.ComputeOp):
        chosen.collapse = shared_pairs + own_pairs[0]
        chosen.outer = outer
        op.attributes["schedule"] = chosen.to_attribute()
        return None
    room = target.features.stack_bytes
    top = CpuSchedule(collapse=shared_pairs, outer=outer, scratch=room)
    op.attributes["schedule"] = top.to_attribute()
    for member, pairs in zip(plan.members, own_pairs, strict=True):
        own = chosen if member.compute is compute else CpuSchedule()
        own.collapse = pairs
        member.compute.attributes["schedule"] = own.to_attribute()
    return None


def _chosen_entries(compute: loop.ComputeOp | None) -> dict[str, Any]:
    """The entries of tiles that a contraction has."""
    if compute is None or compute.schedule is None:
        return {}
    own = read_schedule(compute.schedule, compute)
    return {k: v for k, v in vars(own).items() if k not in ("_op", "collapse", "outer")}


def _worthwhile(products: TiledPlan, target: Target) -> bool:
    """Whether tiles are faster than a reduction along vectors: there is enough to multiply, and one
    side fills them. Two rows that meet a weight are enough (2 x 4096 x 4096 on a Zen 4 read it at
    19 to 22 GB/s instead of 11 to 13)."""
    contraction = products.contraction
    if tiled(contraction.compute, target) is None:
        return False
    rows, columns, depth = (
        points_of(axes) for axes in (contraction.rows, contraction.columns, contraction.depth)
    )  # fmt: skip
    enough = rows * columns * depth >= target.features.tiled_work
    return enough and max(rows, columns) >= target.lanes(contraction.accumulator)


def _outer(plan: CpuPlan, rows: list[str], columns: str) -> list[str]:
    rest = [a.name for a in plan.shared if a.name != columns and a.name not in rows]
    return [*rest, columns, *rows]


def _with_runs(
    products: TiledPlan, rows: list[Axis], columns: Axis, preset: dict[str, Any]
) -> CpuSchedule:
    """The entries that are there, and those of the axes that tiles go over."""
    own = CpuSchedule(**preset)
    own.vector_axis = columns.name
    if not own.has("row_axis"):
        own.row_axis = rows[-1].name
    if not own.has("outer_rows"):
        own.outer_rows = [a.name for a in rows if a.name != own.row_axis]
    sides = products.sides_along(own.row_axis, columns.name)
    if not own.has("depth_order") and sides is not None:
        own.depth_order = _depth_order(products, sides)
    return own


def _depth_order(products: TiledPlan, sides: tuple[Side, Side]) -> list[str]:
    """The axis along which factors lie innermost, so that vectors of it are packed."""

    def along(axis: Axis) -> tuple[int, int]:
        reads = [products.member.reads[read] for side in sides for read in side.reads]
        steps = [coefficient(access.expression, axis.name) for access in reads]
        return steps.count(1), estimate(axis.extent)

    last = max(products.depth, key=along)
    return [*(a.name for a in products.depth if a is not last), last.name]


@attrs.define(eq=False)
class _TileChooser:
    products: TiledPlan
    row_run: AxisRun
    depth_run: AxisRun
    columns: Axis
    target: Target
    own: CpuSchedule
    whole: bool

    @property
    def rows(self) -> Axis:
        return self.row_run.axis

    def run(self) -> CpuSchedule:
        """All entries of the tiles, those that are there first."""
        own = self.own

        def fill(**entries: Any) -> None:
            for name, value in entries.items():
                if not own.has(name):
                    setattr(own, name, value)

        element: Any = self.products.contraction.accumulator
        lanes = self.target.lanes(element)
        fill(lanes=lanes)
        self._keep_parts(own)
        fill(products=self._products(own))
        features, rest = self.target.features, self.products.after
        ops = [op for member in rest for op in member.compute.block.ops]
        heavy = sum(map(op_cost, ops)) >= features.heavy_rest
        heavy |= any(isinstance(op, arith.TruncFOp) for op in ops)
        fill(terms=features.unrolled_terms, in_turn=heavy, skew=features.packed_skew)
        if own.in_matrices:
            fill(group=1, offset=0)
            return self._matrix(own, fill)
        fill(woven=False)
        if own.products == "depth":
            fill(group=self._group(own))
            fill(offset=self._offset(own))
            return self._along_depth(own, fill)
        asked = own.has("tile_rows")
        fill(**dict(zip(("tile_rows", "tile_vectors"), self._tile(own), strict=True)))
        fill(group=self._group(own))
        fill(offset=self._offset(own))
        left, right = self._sides(own)
        depth = self.depth_run.axis
        fill(
            pack_right=(own.has("pack_ahead") and own.pack_ahead > 0)
            or not self._reads_columns(right, own) or self._far_columns(right, depth, own),
            pack_left=not reads_rows(left, self.row_run, self.depth_run)
            or self._collides(left, depth, own.tile_rows),
        )
        fill(block_depth=self._depth(depth.extent, own))
        across = self._stays_near(own) and not (own.has("pack_ahead") and own.pack_ahead)
        fill(inner="columns" if across else "rows")
        self._fill_points(own, fill, 1 if asked else 2)
        fill(block_rows=0 if own.pack_ahead else self._block_rows(own))
        fill(**rows_ahead(own, left, (self.row_run, self.depth_run, self.columns), self.target))
        return own

    def _keep_parts(self, own: CpuSchedule) -> None:
        """Have vectors multiply where parts of factors were asked for before it was known what is
        fused with them, and neither lies as registers take it."""
        chosen = {"products", "tile_vectors", "lanes", *_RUNS}
        if not own.has("products") or not own.is_split or not {*vars(own)} - {"_op"} <= chosen:
            return
        left, right = self._sides(own)
        dot, left.packed = dot_of_factors(left, right, own), True
        for right.packed in (False, True):
            panel = 0 if dot is None else 2 * dot.tile[1]
            if not misfit(left, right, self.row_run, self.columns, self.depth_run, panel, own):
                return
        del own.products

    def _fill_points(self, own: CpuSchedule, fill: Callable[..., None], share: int) -> None:
        """The points of the parallel space, and whether panels are packed ahead in them, for which
        rows may have more tiles, of as few rows as a `share` of one: 65 x 3072 x 768 takes 0.72 of
        the time in tiles of 4 rows that pack ahead of that in tiles of 5 that don't."""
        if not own.has("pack_ahead"):
            fixed, most = own.has("point_rows"), own.tile_rows
            for own.tile_rows in range(most, -(-most // share) - 1, -1):
                # The points are those of tiles of so many rows, which pack ahead.
                own.pack_ahead = self.target.features.least_ahead_terms
                rows = own.point_rows if fixed else self._points(own)[0]
                own.pack_ahead = self._ahead(own, rows)
                if own.pack_ahead:
                    break
            else:
                own.tile_rows = most
        points = self._points(own)
        fill(point_rows=points[0], point_columns=points[1])

    def _ahead(self, own: CpuSchedule, point_rows: int) -> int:
        """In the time of how many terms a vector of the next panel is packed: the most with which
        the tiles of a point's rows are enough; 0 where it can't be soon enough
        (`least_ahead_terms`), or all terms are added at once: then what is packed next is fetched
        meanwhile, which is as fast."""
        columns, right, depth = self.columns, self._sides(own)[1], self.depth_run.axis.extent
        if own.group > 1 or not isinstance(depth, int) or not 0 < own.block_depth < depth:
            return 0
        if not own.pack_right or own.inner != "rows" or (own.has("block_rows") and own.block_rows):
            return 0
        if not isinstance(columns.extent, int) or columns.extent <= own.tile_vectors * own.lanes:
            return 0
        if not copies_ahead(right, columns.name, self.depth_run):
            return 0
        tiles = tiles_of(own, self.rows, point_rows) // own.tile_vectors
        terms = min(self.target.features.ahead_terms, own.lanes)
        while terms >= self.target.features.least_ahead_terms:
            if 0 < parts_of(own, self.depth_run.axis, terms) <= tiles:
                return terms
            terms //= 2
        return 0

    def _stays_near(self, own: CpuSchedule) -> bool:
        """Whether all columns stay in the second-level cache, so that rows and results pass
        once."""
        depth = own.block_depth or estimate(self.depth_run.axis.extent)
        size = self._factor_bytes(own) * depth
        room = self.target.features.near_columns * self.target.processor.core_bytes
        return size * estimate(self.columns.extent) <= room

    def _products(self, own: CpuSchedule) -> str:
        """What a vector of sums has: parts of the depth, where few rows meet a factor that would
        have to be packed and has its terms one after the other. Registers hold whole tiles where
        the target has such and factors lie as these take them."""
        left, right = self._sides(own)
        if self.whole and any(self._multiplies(own, packed) for packed in (False, True)):
            return "matrix"
        most = self.target.features.unpacked_rows
        few = estimate(self.rows.extent) <= most and own.lanes > 1
        if not few or own.has("pack_right") or own.has("block_depth"):
            return "lanes"
        if reads_vectors(right, own.vector_axis, self.depth_run, own.lanes):
            return "lanes"
        along = reads_depth(right, own.vector_axis, self.depth_run)
        rows = self._reads_rows_along(left) or isinstance(self.depth_run.axis.extent, int)
        return "depth" if along and rows else "lanes"

    def _reads_rows_along(self, left: TiledFactor) -> bool:
        """Whether vectors along the depth are read where the factor with the rows lies."""
        rows = reads_rows(left, self.row_run, self.depth_run)
        return rows and reads_depth(left, self.rows.name, self.depth_run)

    def _multiplies(self, own: CpuSchedule, packed: bool) -> bool:
        """Whether the target's registers of whole tiles take the factors, the one with the columns
        as it lies or packed, where it meets enough rows."""
        left, right = self._sides(own)
        own = CpuSchedule(**{"products": "matrix", **vars(own)})
        dot = dot_of_factors(left, right, own)
        if dot is None or not set(dot.sets) <= set(self.target.features.sets):
            return False
        if own.has("block_depth") and own.block_depth % dot.tile[2]:
            return False
        if (own.has("pack_right") and own.pack_right != packed) or (
            packed and estimate(self.rows.extent) < self.target.features.matrix_rows
        ):
            return False
        panel = self._panel(own, dot)
        if own.has("point_columns") and own.point_columns % panel:
            return False
        right.packed, left.packed = packed, self._rows_lie_across(own)
        return not misfit(left, right, self.row_run, self.columns, self.depth_run, panel, own)

    def _rows_lie_across(self, own: CpuSchedule) -> bool:
        """Whether rows must be packed for registers that hold whole tiles, or are meant to be."""
        if own.has("pack_left"):
            return own.pack_left
        dot, depth = dot_of_factors(*self._sides(own), own), self.depth_run.axis.extent
        if dot is not None and isinstance(depth, int) and depth % dot.tile[2]:
            return True
        return not reads_terms(self._sides(own)[0], self.row_run, self.depth_run, own)

    def _dividing(self, own: CpuSchedule, most: int) -> int:
        """The most rows of a tile up to so many that blocks which are there consist of."""
        blocks = [getattr(own, name) for name in ("point_rows", "block_rows") if own.has(name)]
        return next(r for r in range(most, 0, -1) if not any(block % r for block in blocks))

    def _panel(self, own: CpuSchedule, dot: Rows) -> int:
        """Columns of a panel for registers that hold whole tiles: two of these side by side."""
        return own.tile_vectors * own.lanes if own.has("tile_vectors") else 2 * dot.tile[1]

    def _matrix(self, own: CpuSchedule, fill: Callable[..., None]) -> CpuSchedule:
        """The other entries where registers hold whole tiles: two of rows by two of columns."""
        depth, extent = self.depth_run.axis, self.rows.extent
        dot = dot_of_factors(*self._sides(own), own)
        if dot is None:
            raise InvalidIR("no registers hold tiles of its factors' elements (products)",
                            op=self.products.member.compute)  # fmt: skip
        fill(tile_vectors=self._panel(own, dot) // own.lanes)
        # Of rows that nobody knows there may be as many as a tile has, or more than a block.
        rows = max(extent, 1) if isinstance(extent, int) else None
        fill(tile_rows=self._dividing(own, min(2 * dot.tile[0], rows or 2 * dot.tile[0])))
        fill(pack_right=not self._multiplies(own, False))
        asked = own.has("pack_left")
        fill(pack_left=self._rows_lie_across(own), pack_ahead=0, rows_ahead=0)
        fill(block_depth=depth_of_block(depth.extent, dot, self.target) if own.is_split else 0)
        fill(woven=may_weave(self.columns.extent, depth.extent, own))
        terms = max(own.block_depth or estimate(depth.extent), 1)
        if own.is_split:
            fill(pack_columns=self._packed_columns(own, dot))
        few = own.is_split and own.packed_columns > 0
        few |= not own.is_split and rows_stay(own, extent, terms, dot, self.target)
        fill(inner="columns" if few else "rows")
        points = self._points(own)
        fill(point_rows=points[0], point_columns=points[1])
        if own.inner == "rows" and not (asked or own.pack_left or own.pack_right or own.is_split):
            # Each point packs them for itself.
            together = own.point_columns or estimate(self.columns.extent)
            own.pack_left = together >= self.target.features.matrix_columns
        if few:
            fill(block_rows=0)
        size, features = dot.parts * element_bytes(dot.element), self.target.features
        share = features.cut_room if own.is_split else features.matrix_room
        room = int(share * self.target.processor.core_bytes / (size * terms))
        fill(block_rows=rows_of_block(own, rows, room))
        return own

    def _packed_columns(self, own: CpuSchedule, dot: Rows) -> int:
        """Columns that are packed together, of a factor that would leave the second-level cache
        before it is read again; 0: all."""
        terms = own.block_depth or estimate(self.depth_run.axis.extent)
        each = terms * dot.parts * element_bytes(dot.element)
        room = self.target.features.cut_room * self.target.processor.core_bytes
        if not own.pack_right or 2 * each * estimate(self.columns.extent) <= room:
            return 0
        return self.target.features.matrix_panels * own.tile_vectors * own.lanes

    def _along_depth(self, own: CpuSchedule, fill: Callable[..., None]) -> CpuSchedule:
        """The other entries where vectors run along the depth."""
        left = self._sides(own)[0]
        features, registers = self.target.features, vector_registers(self.target)
        fill(tile_columns=features.unpacked_columns, tile_vectors=1)
        most = max((registers - 1) // own.tile_columns - 1 - (own.offset > 0), 1)
        # Of rows that nobody knows whole tiles have the most, the others what is left.
        extent = self.rows.extent
        rows = max(extent, 1) if isinstance(extent, int) else most
        fill(tile_rows=self._dividing(own, -(-rows // -(-rows // most))))
        fill(pack_right=False, pack_left=not self._reads_rows_along(left))
        fill(block_depth=0, inner="rows", block_rows=0, pack_ahead=0, rows_ahead=0)
        points = self._points(own)
        fill(point_rows=points[0], point_columns=points[1])
        return own

    def _points(self, own: CpuSchedule) -> tuple[int, int]:
        """Rows and columns of a point of the parallel space; 0: all."""
        outer, element = 1, self._sides(own)[1].side.narrow.type
        for axis in self.products.plan.shared:
            if axis is not self.columns and axis not in self.row_run.parts:
                outer *= max(estimate(axis.extent), 1)
        rows, columns = estimate(self.rows.extent), estimate(self.columns.extent)
        depth = own.block_depth or estimate(self.depth_run.axis.extent)
        size = self._factor_bytes(own) if own.products != "matrix" else element_bytes(element)
        return Points(self.target, rows, columns, depth, outer, size).divided(own)

    def _sides(self, own: CpuSchedule) -> tuple[TiledFactor, TiledFactor]:
        sides = self.products.sides_along(own.row_axis, own.vector_axis)
        assert sides is not None
        runs = self.row_run, self.depth_run
        left, right = (factor_of(self.products.member, side, runs) for side in sides)
        return left, right

    def _tile(self, own: CpuSchedule) -> tuple[int, int]:
        """Rows and vectors of a tile: those that take least time, with what is left at the ends."""
        right = self._sides(own)[1]
        together = [
            vectors
            for vectors in range(1, self.target.features.most_vectors + 1)
            if right.access is None or vectors == 1
            or coefficient(right.access.expression, own.vector_axis) is not None
            or lane_stride(right.access.expression, own.vector_axis, vectors * own.lanes) == 1
        ]  # fmt: skip
        dot = self._dot(own)
        grouped = [
            vectors for vectors in range(1, self.target.features.most_vectors + 1)
            if dot is not None and self._in_panels(right, own, vectors * own.lanes, dot.group)
        ]  # fmt: skip
        lines, vectors = list(range(1, 65)), grouped or together
        if own.has("tile_rows"):
            lines = [own.tile_rows]
        if own.has("tile_vectors"):
            vectors = [own.tile_vectors]
        for name in ("point_rows", "block_rows"):
            if own.has(name):
                lines = [r for r in lines if getattr(own, name) % r == 0]
        if own.has("point_columns"):
            vectors = [v for v in vectors if own.point_columns % (v * own.lanes) == 0]
        rows, columns = estimate(self.rows.extent), estimate(self.columns.extent)
        beside = int(dot is not None and dot.offset > 0)
        return best_tile(self.target, own.lanes, rows, columns, lines, vectors, beside)

    def _factor_bytes(self, own: CpuSchedule) -> int:
        """Of an element of a factor while it is multiplied."""
        element: Any = self.products.contraction.accumulator
        if own.has("group") and own.group > 1:
            element = self._sides(own)[1].side.narrow.type
        return element_bytes(element)

    def _reads_columns(self, right: TiledFactor, own: CpuSchedule) -> bool:
        """Whether the factor with the columns is multiplied where it lies."""
        if own.group > 1:
            return self._in_panels(right, own, own.tile_vectors * own.lanes, own.group)
        return reads_vectors(right, own.vector_axis, self.depth_run, own.lanes)

    def _in_panels(
        self, right: TiledFactor, own: CpuSchedule, panel: int, group: int
    ) -> bool:
        """Whether it lies in panels of so many columns, in groups of terms."""
        depth = self.depth_run
        return len(depth.parts) == 1 and reads_panels(
            right, own.vector_axis, depth.axis.name, panel, group
        )

    def _dot(self, own: CpuSchedule) -> LaneDot | None:
        """How the target's vectors multiply the factors' elements in groups, if that is no slower
        than one by one."""
        left, right = self._sides(own)
        dot = grouped(left.side.narrow.type, self.target)
        if dot is None or own.lanes < 4:
            return None
        return None if misses_groups(left, right, dot.group, dot.offset) else dot

    def _offset(self, own: CpuSchedule) -> int:
        """What makes the factor with the rows as the target's vectors take it."""
        dot = self._dot(own) if own.group > 1 else None
        return 0 if dot is None else dot.offset

    def _group(self, own: CpuSchedule) -> int:
        """Terms that are multiplied together: as many as the target's vectors take of the factors'
        elements, where that is no slower with what has to be packed for it."""
        (left, right), dot = self._sides(own), self._dot(own)
        if dot is None:
            return 1
        group, features = dot.group, self.target.features
        side_by_side = reads_rows(left, self.row_run, self.depth_run) and reads_depth(
            left, self.rows.name, self.depth_run
        )
        if not side_by_side and own.has("pack_left") and not own.pack_left:
            return 1
        if own.products == "depth":
            known = isinstance(self.depth_run.axis.extent, int)
            return group if side_by_side or known else 1
        if self._in_panels(right, own, own.tile_vectors * own.lanes, group):
            return group
        known = isinstance(self.depth_run.axis.extent, int) or own.has("block_depth")
        if (own.has("pack_right") and not own.pack_right) or right.access is None or not known:
            return 1
        if reads_vectors(right, own.vector_axis, self.depth_run, own.lanes):
            # Else it lies so that it is packed in any case.
            saved = estimate(self.rows.extent) * (1 - group_time(dot, self.target) / group)
            return group if saved >= features.packed_element else 1
        return group

    def _far_columns(self, right: Any, depth: Axis, own: CpuSchedule) -> bool:
        """Whether terms that follow each other of a panel lie apart, and are used often."""
        if own.group > 1:
            return False
        panel = own.tile_vectors * own.lanes
        step = coefficient(right.access.expression, depth.name)
        return step != panel and estimate(self.rows.extent) > 2 * panel

    def _collides(self, left: Any, depth: Axis, rows: int) -> bool:
        """Whether a tile's rows fall on few sets of the cache, or aren't contiguous."""
        access = left.access
        step = coefficient(access.expression, self.rows.name)
        if coefficient(access.expression, depth.name) != 1 or not isinstance(step, int):
            return True
        apart = self.target.features.aliasing_bytes
        lines = {(k * step * access.bytes) % apart // 64 for k in range(rows)}
        most = self.target.features.aliasing_rows * len(lines)
        return rows > most and estimate(depth.extent) > 64

    def _depth(self, extent: Dim, own: CpuSchedule) -> int:
        deepest = self.target.features.tiled_depth * 4 // self._factor_bytes(own)
        if not isinstance(extent, int) or extent <= deepest:
            return 0 if isinstance(extent, int) else deepest
        parts = -(-extent // deepest)
        return -(-extent // (parts * own.lanes)) * own.lanes

    def _block_rows(self, own: CpuSchedule) -> int:
        """Blocks of about as many rows, each of which stays in the second-level cache by itself:
        what is read again and again is worth more there than panels, which pass once for each."""
        depth = max(own.block_depth or estimate(self.depth_run.axis.extent), 1)
        room = self.target.processor.core_bytes // (self._factor_bytes(own) * depth)
        rows = max(estimate(self.rows.extent), 1)
        blocks = -(-rows // max(room, own.tile_rows))
        each = -(-rows // (blocks * own.tile_rows)) * own.tile_rows
        return 0 if blocks == 1 else each
