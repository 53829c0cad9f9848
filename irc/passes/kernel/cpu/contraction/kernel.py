"""The kernel of a contraction in tiles of registers.

A point of the parallel space is a block of rows by a block of columns (by a point of the outer
axes). It goes over blocks of the depth, packs what its schedule says, and computes tile after tile
(`ProductWriter`).
"""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import kernel, loop
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Value
from irc.ir.symbols import Dim, Range, ceildiv, dim_product, known_positive
from irc.passes.kernel.axis_costs import cost_of
from irc.passes.kernel.cpu.contraction.checked import checked_tiling
from irc.passes.kernel.cpu.contraction.products import ProductWriter
from irc.passes.kernel.cpu.contraction.tiling import Tiling
from irc.passes.kernel.cpu.emit import Emitter, Scalar, VectorScope
from irc.passes.kernel.cpu.form import kernel_function, kernel_symbols
from irc.passes.kernel.cpu.place import ENTRY, OUTER, KernelState
from irc.passes.kernel.cpu.plan import CpuPlan
from irc.passes.kernel.cpu.sharing import inplace_pairs


def form_contraction_kernel(
    plan: CpuPlan, schedule: loop.ScheduleAttr, name: str, ranges: dict[str, Range]
) -> tuple[kernel.KernelFuncOp, list[Type]]:
    """The kernel of a plan, and the types of its own memory. Raises InvalidIR for a schedule that
    does not fit it."""
    inplace = inplace_pairs(plan)
    tiling = checked_tiling(plan, schedule, ranges)
    return _ContractionKernel(tiling, name, ranges).form(inplace)


class _ContractionKernel:
    def __init__(self, tiling: Tiling, name: str, ranges: dict[str, Range]) -> None:
        self.tiling, self.plan, self.schedule = tiling, tiling.plan, tiling.schedule
        self.symbols = [name for name in kernel_symbols(self.plan) if name != tiling.rows.name]
        self._points()
        plan = self.plan
        self.products = ProductWriter(tiling, plan.parts_of(self.grid), ranges)
        self.workspaces = self.products.workspaces
        self.func = kernel_function(plan, name, self.symbols, self.workspaces.values())
        self.emitter = Emitter(self.func.block)
        self.emitter.location = plan.op.location
        self.state = KernelState(self.emitter)
        self.state.positive = lambda d: known_positive(d, ranges)
        self.scope = VectorScope()
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

    def _bind_arguments(self) -> None:
        plan, arguments, state = self.plan, self.func.block.arguments, self.state
        arrays = [*plan.inputs, *plan.outputs]
        for value, argument in zip(arrays, arguments, strict=False):
            state.pointers[value] = argument
            argument.name_hint = value.name_hint
        rest = arguments[len(arrays) :]
        count = len(self.workspaces)
        self.products.bind(self.emitter, state, rest[:count])
        scalars = rest[count:]
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
        emitter.extents = self.products.extents
        for axis in (*self.plan.axes(), tiling.rows, tiling.depth):
            emitter.scalar(axis.extent, scope)
        self.products.find_memory(scope, self.begin)
        self.products.enter(ENTRY, scope)
        emitter.for_loop(self.begin, self.end, 1, (), lambda i, _: self._point(i))
        emitter.location = self.plan.op.location
        emitter.effect(kernel.KernelReturnOp, ())
        emitter.finish()
        self._attributes(inplace)
        for op in self.products.temporary:
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
            blocks[axis] = self.products.block(emitter.times(place, step), step, axis, scope)
        self.products.run(scope, blocks[tiling.rows], blocks[tiling.columns])
        return []

    # -- facts about the kernel

    def _attributes(self, inplace: Sequence[int]) -> None:
        plan, entries = self.plan, self.func.attributes
        first, count = len(plan.inputs), len(plan.outputs) + len(self.workspaces)
        symbols: list[Attribute] = [A.StringAttr(n) for n in self.symbols]
        entries["symbols"] = A.ArrayAttr(symbols)
        entries["grid"] = A.DimAttr(self.grid)
        entries["work"] = A.DimAttr(self._work())
        entries["outputs"] = A.DenseIntsAttr(range(first, first + count))
        if self.workspaces:
            own = range(first + len(plan.outputs), first + count)
            entries["private"] = A.DenseIntsAttr(own)
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
