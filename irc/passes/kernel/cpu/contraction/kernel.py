"""The kernel of a contraction in tiles of registers.

A point of the parallel space is a block of rows by a block of columns (by a point of the outer
axes). It goes over blocks of the depth, packs what its schedule says, and computes tile after tile.
Memory of the kernel's own, for packed factors and for sums of a part of the depth, has a part for
each point; a call uses that of its first.
"""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import kernel, loop
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim, Range, ceildiv, dim_product, known_positive, maximum
from irc.ir.types import TensorType, contiguous_strides
from irc.passes.kernel.cpu.contraction.ahead import check_ahead, pack_panel
from irc.passes.kernel.cpu.contraction.groups import pack_groups
from irc.passes.kernel.cpu.contraction.matrices import check_matrix, pack_tiles, whole_tiles
from irc.passes.kernel.cpu.contraction.packing import LEFT, RIGHT, pack_left, pack_right
from irc.passes.kernel.cpu.contraction.runs import Stretch
from irc.passes.kernel.cpu.contraction.tile import TileWriter
from irc.passes.kernel.cpu.contraction.tiling import Tiling, simplify_places, tiling_of
from irc.passes.kernel.cpu.contraction.woven import check_woven
from irc.passes.kernel.cpu.emit import Emitter, Scalar, VectorScope
from irc.passes.kernel.cpu.form import collapse_plan, kernel_function, kernel_symbols
from irc.passes.kernel.cpu.place import ENTRY, OUTER, SHARED, KernelState
from irc.passes.kernel.cpu.plan import Axis, CpuPlan
from irc.passes.kernel.cpu.schedule import read_schedule
from irc.passes.kernel.cpu.sharing import inplace_pairs
from irc.passes.kernel.cpu.vectors import Vectors
from irc.passes.kernel.schedule import cost_of


def form_contraction_kernel(
    plan: CpuPlan, schedule: loop.ScheduleAttr, name: str, ranges: dict[str, Range]
) -> tuple[kernel.KernelFuncOp, list[Type]]:
    """The kernel of a plan, and the types of its own memory. Raises InvalidIR for a schedule that
    does not fit it."""
    inplace = inplace_pairs(plan)
    top = read_schedule(schedule, plan.op)
    simplify_places(plan)
    own = collapse_plan(plan, top)[0]
    tiling = tiling_of(plan, top, own)
    if own.products == "matrix":
        check_matrix(tiling)
    if own.woven:
        check_woven(tiling)
    if own.pack_ahead:
        check_ahead(tiling)
    return _ContractionKernel(tiling, name, ranges).form(inplace)


class _ContractionKernel:
    def __init__(self, tiling: Tiling, name: str, ranges: dict[str, Range]) -> None:
        self.tiling, self.plan, self.schedule = tiling, tiling.plan, tiling.schedule
        self.symbols = [name for name in kernel_symbols(self.plan) if name != tiling.rows.name]
        self._points()
        self.workspaces = self._workspaces()
        plan = self.plan
        self.func = kernel_function(plan, name, self.symbols, self.workspaces.values())
        self.emitter = Emitter(self.func.block)
        self.emitter.location = plan.op.location
        self.state = KernelState(self.emitter)
        self.state.positive = lambda d: known_positive(d, ranges)
        self.scope = VectorScope()
        self.temporary: list[Operation] = []
        self._bind_arguments()

    def _points(self) -> None:
        """The extents of the parallel space, in the order of the outer axes."""
        tiling, own = self.tiling, self.schedule
        steps = {tiling.rows: own.point_rows, tiling.columns: own.point_columns}
        self.extents: list[Dim] = []
        for axis in tiling.outer:
            step = steps.get(axis)
            whole = axis.extent if step is None else 1 if step == 0 else ceildiv(axis.extent, step)
            self.extents.append(whole)
        self.grid = dim_product(self.extents)

    @property
    def depth_block(self) -> Dim:
        """Terms that are added before the next ones."""
        own, extent = self.schedule, self.tiling.depth.extent
        if not own.block_depth or (isinstance(extent, int) and extent <= own.block_depth):
            return extent
        return own.block_depth

    @property
    def packed_depth(self) -> Dim:
        """As many, in whole groups."""
        group = self.tiling.group
        return self.depth_block if group == 1 else ceildiv(self.depth_block, group) * group

    @property
    def in_parts(self) -> bool:
        """Whether sums are of parts of the depth at first."""
        return self.depth_block is not self.tiling.depth.extent

    def _workspaces(self) -> dict[str, TensorType]:
        """The kernel's own memory, a part for each point."""
        tiling, own, depth = self.tiling, self.schedule, self.depth_block
        padded = ceildiv(own.point_columns or tiling.columns.extent, tiling.panel) * tiling.panel
        sizes: dict[str, Dim] = {}
        self.left_row = depth
        if tiling.left.packed:
            assert isinstance(depth, int)
            self.left_row = (-(-depth // own.skew) + 1) * own.skew
            rows = own.block_rows or own.point_rows or tiling.rows.extent
            sizes[LEFT] = rows * self.left_row
            if own.products == "matrix":
                sizes[LEFT] = ceildiv(rows, own.tile_rows) * whole_tiles(tiling)
        if tiling.right.packed:
            sizes[RIGHT] = (2 * tiling.panel if own.pack_ahead else padded) * self.packed_depth
        if self.in_parts:
            # Those of a tile lie together, the tiles of a panel after each other.
            lines = ceildiv(own.point_rows or tiling.rows.extent, own.tile_rows)
            self.sums_panel = lines * (own.tile_rows * tiling.panel)
            sizes["sums"] = padded // tiling.panel * self.sums_panel
        types = {}
        for name, size in sizes.items():
            shape = (self.grid, size)
            element = tiling.element if name == "sums" else tiling.factor_element
            types[name] = TensorType(shape, element, contiguous_strides(shape))
        return types

    def _bind_arguments(self) -> None:
        plan, arguments, state = self.plan, self.func.block.arguments, self.state
        arrays = [*plan.inputs, *plan.outputs]
        for value, argument in zip(arrays, arguments, strict=False):
            state.pointers[value] = argument
            argument.name_hint = value.name_hint
        rest = arguments[len(arrays) :]
        self.memory = dict(zip(self.workspaces, rest, strict=False))
        for name, argument in self.memory.items():
            state.pointers[argument] = argument
            argument.name_hint = name
        scalars = rest[len(self.memory) :]
        for name, argument in zip(self.symbols, scalars, strict=False):
            argument.name_hint = name
            self.scope.names[name] = argument
            state.level_of[name] = ENTRY
        self.begin, self.end = scalars[-2], scalars[-1]
        self.begin.name_hint, self.end.name_hint = "begin", "end"
        state.written = set(plan.outputs)

    def form(self, inplace: Sequence[int]) -> tuple[kernel.KernelFuncOp, list[Type]]:
        """Emit everything."""
        tiling, emitter, scope = self.tiling, self.emitter, self.scope
        state, own = self.state, self.schedule
        for axis in tiling.outer:
            state.level_of[axis.name] = SHARED if axis is tiling.columns else OUTER
            state.extents[axis.name] = axis.extent
        for axis in tiling.row_run.parts:
            state.level_of[axis.name] = OUTER
            state.extents[axis.name] = axis.extent
        state.shared = Vectors(tiling.columns.name, own.lanes, own.tile_vectors, "mask", 1)
        terms = (tiling.depth, *tiling.depth_run.parts)
        emitter.extents = {**state.extents, **{axis.name: axis.extent for axis in terms}}
        for axis in (*self.plan.axes(), tiling.rows, tiling.depth):
            emitter.scalar(axis.extent, scope)
        if self.in_parts:
            emitter.scalar(self.sums_panel, scope)
        for name in (LEFT, RIGHT, "sums"):
            if name in self.memory:
                size = emitter.scalar(self.workspaces[name].shape[1], scope)
                scope.names[name] = emitter.times(self.begin, size)
        self.tiles = TileWriter(self)
        for nest in self.tiles.after:
            nest.body.enter(ENTRY, scope)
        emitter.for_loop(self.begin, self.end, 1, (), lambda i, _: self._point(i))
        emitter.location = self.plan.op.location
        emitter.effect(kernel.KernelReturnOp, ())
        emitter.finish()
        self._attributes(inplace)
        for op in self.temporary:
            op.drop_all_references()
        return self.func, list(self.workspaces.values())

    # -- loops

    def _point(self, number: Scalar) -> list[Value]:
        emitter, tiling, own = self.emitter, self.tiling, self.schedule
        scope = self.scope.child(OUTER)
        sizes = [emitter.scalar(d, self.scope) for d in self.extents]
        rest: Scalar = number
        places: list[Scalar] = []
        for position in reversed(range(len(sizes))):
            place = emitter.remainder(rest, sizes[position], True) if position else rest
            rest = emitter.quotient(rest, sizes[position], True) if position else rest
            places.insert(0, 0 if sizes[position] == 1 else place)
        blocks = {}
        for axis, place in zip(tiling.outer, places, strict=True):
            step = {tiling.rows: own.point_rows, tiling.columns: own.point_columns}.get(axis)
            if step is None:
                scope.names[axis.name] = place
                continue
            blocks[axis] = self._block(emitter.times(place, step), step, axis, scope)
        rows, columns = blocks[tiling.rows], blocks[tiling.columns]
        if own.pack_ahead:
            first = Stretch(0, emitter.scalar(self.depth_block, scope))
            pack_panel(self, scope, columns, columns.lower, first)
        if not self.in_parts:
            self._depth(scope, rows, columns, 0)
            return []
        extent = maximum(tiling.depth.extent, 1)

        def body(start: Scalar, _: Sequence[Value]) -> list[Value]:
            self._depth(scope.child(OUTER), rows, columns, start)
            return []

        emitter.for_loop(0, emitter.scalar(extent, scope), own.block_depth, (), body)
        return []

    def _block(self, lower: Scalar, step: int, axis: Axis, scope: VectorScope) -> Stretch:
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
            depth = self._block(start, own.block_depth, tiling.depth, scope)
        if tiling.right.packed and not own.pack_ahead:
            pack = pack_groups if tiling.group > 1 else pack_right
            pack(self, scope, columns, depth)

        def body(first: Scalar, _: Sequence[Value]) -> list[Value]:
            inner = scope.child(OUTER)
            part = Stretch(first, rows.upper)
            if own.block_rows:
                part.upper = emitter.least(emitter.plus(first, own.block_rows), rows.upper)
            if tiling.left.packed:
                (pack_tiles if own.products == "matrix" else pack_left)(self, inner, part, depth)
            self.tiles.over(inner, part, columns, depth)
            return []

        if own.block_rows:
            emitter.for_loop(rows.lower, rows.upper, own.block_rows, (), body)
        else:
            body(rows.lower, ())

    # -- facts about the kernel

    def _attributes(self, inplace: Sequence[int]) -> None:
        plan, entries = self.plan, self.func.attributes
        first, count = len(plan.inputs), len(plan.outputs) + len(self.workspaces)
        symbols: list[Attribute] = [A.StringAttr(n) for n in self.symbols]
        entries["symbols"] = A.ArrayAttr(symbols)
        entries["grid"] = A.DimAttr(self.grid)
        entries["work"] = A.DimAttr(self._work())
        entries["outputs"] = A.DenseIntsAttr(range(first, first + count))
        if inplace:
            entries["inplace"] = A.DenseIntsAttr(inplace)

    def _work(self) -> Dim:
        """Operations on scalars in a point, as vectors do them."""
        tiling, own = self.tiling, self.schedule
        total: Dim = cost_of(tiling.products.member) * tiling.depth.extent
        total = total + sum(cost_of(m) for m in tiling.products.after)
        rows = own.point_rows or tiling.rows.extent
        return total * rows * (own.point_columns or tiling.columns.extent)


__all__ = ["form_contraction_kernel"]
