"""The products of one contraction: its blocks of columns and depth, what is packed for them, tiles.

A kernel of one contraction has a `ProductWriter`, and so has each contraction that is a stage of a
group's kernel. Memory of the kernel's own, for packed factors and for sums of a part of the depth,
has a part for each point of the parallel space; a call uses that of its first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim, Range, ceildiv, maximum, range_of
from irc.ir.types import TensorType, contiguous_strides
from irc.passes.kernel.cpu.contraction.ahead import pack_panel
from irc.passes.kernel.cpu.contraction.groups import pack_groups
from irc.passes.kernel.cpu.contraction.matrices import clear_columns, pack_tiles, part_of_tiles
from irc.passes.kernel.cpu.contraction.packing import LEFT, RIGHT, pack_left, pack_right
from irc.passes.kernel.cpu.contraction.runs import Stretch
from irc.passes.kernel.cpu.contraction.tile import TileWriter
from irc.passes.kernel.cpu.contraction.tiling import Tiling
from irc.passes.kernel.cpu.emit import Emitter, Scalar, VectorScope
from irc.passes.kernel.cpu.place import OUTER, SHARED, KernelState
from irc.passes.kernel.cpu.plan import Axis
from irc.passes.kernel.cpu.vectors import Vectors


class ProductWriter:
    """Writes a contraction's products. `grid`: parts of its workspaces; `ranges`: of symbols;
    `next_point`: the innermost axis of points that follow each other, whose next one's panel is
    fetched behind the last one of this."""

    def __init__(
        self, tiling: Tiling, grid: Dim, ranges: Mapping[str, Range],
        next_point: Axis | None = None,
    ) -> None:  # fmt: skip
        self.tiling, self.schedule, self.next_point = tiling, tiling.schedule, next_point
        own = tiling.schedule
        rows = own.block_rows or own.point_rows or range_of(tiling.rows.extent, ranges).lo or 0
        self.whole_tiles = max(rows, 0) // own.tile_rows
        """At least how many tiles of rows a block has that are whole."""
        self.left_row: Dim = self.depth_block
        self.sums_panel: Dim = 0
        self.parts_apart: Dim = tiling.right.apart
        """Elements between the parts of the factor with the columns."""
        self.workspaces = self._workspaces(grid)
        self.temporary: list[Operation] = []

    @property
    def depth_block(self) -> Dim:
        """Terms that are added before the next ones."""
        own, extent = self.schedule, self.tiling.depth.extent
        if not own.block_depth or (isinstance(extent, int) and extent <= own.block_depth):
            return extent
        return own.block_depth

    @property
    def packed_depth(self) -> Dim:
        """As many, in whole groups, or in whole registers."""
        tiling = self.tiling
        group = tiling.dot.tile[2] if self.schedule.in_matrices else tiling.group
        return self.depth_block if group == 1 else ceildiv(self.depth_block, group) * group

    @property
    def known_depth(self) -> int:
        """The same of a block of the depth that has a number."""
        depth = self.packed_depth
        assert isinstance(depth, int)
        return depth

    def panel_step(self, scope: VectorScope) -> Scalar:
        """Elements between the panels of registers' columns."""
        depth = self.packed_depth if self.tiling.right.packed else self.tiling.depth.extent
        return self.emitter.scalar(depth * self.tiling.packed_panel, scope)

    @property
    def in_parts(self) -> bool:
        """Whether sums are of parts of the depth at first."""
        return self.depth_block is not self.tiling.depth.extent

    def _workspaces(self, grid: Dim) -> dict[str, TensorType]:
        """The kernel's own memory, a part for each point."""
        tiling, own, depth = self.tiling, self.schedule, self.depth_block
        padded = ceildiv(own.point_columns or tiling.columns.extent, tiling.panel) * tiling.panel
        together = own.packed_columns or padded
        sizes: dict[str, Dim] = {}
        if tiling.left.packed:
            assert isinstance(depth, int)
            self.left_row = (-(-depth // own.skew) + 1) * own.skew
            rows = own.block_rows or own.point_rows or tiling.rows.extent
            sizes[LEFT] = rows * self.left_row
            if own.in_matrices:
                tiles = part_of_tiles(tiling, self.known_depth) * tiling.parts
                sizes[LEFT] = ceildiv(rows, own.tile_rows) * tiles
        if tiling.right.packed:
            sizes[RIGHT] = (2 * tiling.panel if own.pack_ahead else together) * self.packed_depth
            self.parts_apart = sizes[RIGHT]
            sizes[RIGHT] = sizes[RIGHT] * tiling.parts
        if self.in_parts:
            # Those of a tile lie together, the tiles of a panel after each other.
            lines = ceildiv(own.point_rows or tiling.rows.extent, own.tile_rows)
            self.sums_panel = lines * (own.tile_rows * tiling.panel)
            sizes["sums"] = padded // tiling.panel * self.sums_panel
        types = {}
        for name, size in sizes.items():
            shape = (grid, size)
            element = tiling.element if name == "sums" else tiling.factor_element
            types[name] = TensorType(shape, element, contiguous_strides(shape))
        return types

    def bind(self, emitter: Emitter, state: KernelState, arguments: Sequence[Value]) -> None:
        """Where to write, and the pointers to the workspaces."""
        self.emitter, self.state = emitter, state
        self.memory = dict(zip(self.workspaces, arguments, strict=True))
        for name, argument in self.memory.items():
            state.pointers[argument] = argument
            argument.name_hint = name
        tiling, own = self.tiling, self.schedule
        for axis in (*tiling.outer, *tiling.row_run.parts):
            state.level_of[axis.name] = SHARED if axis is tiling.columns else OUTER
            state.extents[axis.name] = axis.extent
        state.shared = Vectors(tiling.columns.name, own.lanes, own.tile_vectors, "mask", 1)

    @property
    def extents(self) -> dict[str, Dim]:
        """Of all axes."""
        terms = (self.tiling.depth, *self.tiling.depth_run.parts)
        return {**self.state.extents, **{axis.name: axis.extent for axis in terms}}

    def enter(self, level: int, scope: VectorScope) -> None:
        """Write what is the same for all products, and for what follows them."""
        if self.in_parts:
            self.emitter.scalar(self.sums_panel, scope)
        self.tiles = TileWriter(self)
        for nest in self.tiles.after:
            nest.body.enter(level, scope)

    def find_memory(self, scope: VectorScope, begin: Scalar) -> None:
        """Where this call's part of each workspace begins."""
        for name in self.memory:
            size = self.emitter.scalar(self.workspaces[name].shape[1], scope)
            scope.names[name] = self.emitter.times(begin, size)

    # -- loops

    def run(self, scope: VectorScope, rows: Stretch, columns: Stretch) -> None:
        """The products of some rows with some columns."""
        emitter, tiling, own = self.emitter, self.tiling, self.schedule
        if own.pack_ahead:
            first = Stretch(0, emitter.scalar(self.depth_block, scope))
            pack_panel(self, scope, columns, columns.lower, first)
        if not self.in_parts:
            self._depth(scope, rows, columns, 0)
            return
        extent = maximum(tiling.depth.extent, 1)

        def body(start: Scalar, _: Sequence[Value]) -> list[Value]:
            self._depth(scope.child(OUTER), rows, columns, start)
            return []

        emitter.for_loop(0, emitter.scalar(extent, scope), own.block_depth, (), body)

    def block(self, lower: Scalar, step: int, axis: Axis, scope: VectorScope) -> Stretch:
        """The points of an axis from `lower` on that a block has; all with a step of 0."""
        extent, emitter = axis.extent, self.emitter
        if not step or (isinstance(extent, int) and extent <= step):
            return Stretch(0, emitter.scalar(extent, scope))
        upper = emitter.plus(lower, step)
        if not isinstance(extent, int) or extent % step:
            upper = emitter.least(upper, emitter.scalar(extent, scope))
        return Stretch(lower, upper)

    def _depth(self, scope: VectorScope, rows: Stretch, columns: Stretch, start: Scalar) -> None:
        """A block of the depth."""
        emitter, own, tiling = self.emitter, self.schedule, self.tiling
        depth = Stretch(start, emitter.scalar(tiling.depth.extent, scope))
        if self.in_parts:
            depth = self.block(start, own.block_depth, tiling.depth, scope)
        if tiling.right.packed and not own.pack_ahead and not own.packed_columns:
            self._pack_right(scope, columns, depth)

        def body(first: Scalar, _: Sequence[Value]) -> list[Value]:
            inner = scope.child(OUTER)
            part = Stretch(first, rows.upper)
            if own.block_rows:
                part.upper = emitter.least(emitter.plus(first, own.block_rows), rows.upper)
            if tiling.left.packed:
                (pack_tiles if own.in_matrices else pack_left)(self, inner, part, depth)
            self._columns(inner, part, columns, depth)
            return []

        if own.block_rows:
            emitter.for_loop(rows.lower, rows.upper, own.block_rows, (), body)
        else:
            body(rows.lower, ())

    def _pack_right(self, scope: VectorScope, columns: Stretch, depth: Stretch) -> None:
        clear_columns(self, scope, columns)
        (pack_groups if self.tiling.group > 1 else pack_right)(self, scope, columns, depth)

    def _columns(
        self, scope: VectorScope, rows: Stretch, columns: Stretch, depth: Stretch
    ) -> None:
        """The tiles of a block of rows: of all columns, or of some after the other, which are
        packed before them."""
        emitter, step = self.emitter, self.schedule.packed_columns
        if not step:
            self.tiles.over(scope, rows, columns, depth)
            return

        def some(first: Scalar, _: Sequence[Value]) -> list[Value]:
            upper = emitter.least(emitter.plus(first, step), columns.upper)
            inner, part = scope.child(OUTER), Stretch(first, upper)
            self._pack_right(inner, part, depth)
            self.tiles.over(inner, rows, part, depth)
            return []

        emitter.for_loop(columns.lower, columns.upper, step, (), some)


__all__ = ["ProductWriter"]
