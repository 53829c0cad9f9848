"""What every gpu kernel has, however its tiles go: its function, what it asks of its schedule, and
how results are stored."""

from __future__ import annotations

from typing import Any

from irc.dialects import kernel, loop
from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim, known_divisible
from irc.ir.types import FunctionType, TensorType, i8, index
from irc.passes.kernel.gpu.combine import convert
from irc.passes.kernel.gpu.evaluate import Evaluator, Point
from irc.passes.kernel.gpu.plan import (
    GpuMember,
    GpuPlan,
    Origin,
    offset_of,
    stored_axes,
    symbols_of,
)
from irc.passes.kernel.gpu.sharing import placeholders, scatter_number, set_sharing
from irc.passes.kernel.gpu.tiles import Tile, TileBuilder, TileDim, union
from irc.program.gpu_kernels import DESCRIPTOR_BYTES


def memory_of(func: kernel.KernelFuncOp, device: str) -> list[TensorType]:
    """The types of a kernel's own memory, behind its results: for the descriptors of all program
    instances, with what aligning them takes."""
    if func.descriptor_bytes is None:
        return []
    grid: Dim = 1 if func.grid is None else func.grid
    size = grid * int(func.descriptor_bytes) + DESCRIPTOR_BYTES
    return [TensorType((size,), i8, (1,), device)]


class KernelFrame:
    """A kernel under construction."""

    def __init__(self, plan: GpuPlan, settings: dict[str, A.Attribute], name: str) -> None:
        self.plan = plan
        self.settings = settings
        self.symbols = symbols_of(plan)
        pointers = [kernel.PointerType(v.type.element) for v in plan.inputs]  # type: ignore[attr-defined]
        pointers += [kernel.PointerType(r.type.element) for r, _ in plan.outputs]  # type: ignore[attr-defined]
        #: The place of memory for the hardware's descriptors, where the schedule asks for these.
        self.memory = None
        if settings.get("access") == A.StringAttr("descriptors"):
            self.memory = len(pointers)
            pointers.append(kernel.PointerType(i8))
        types = [*pointers, *[index] * len(self.symbols)]
        self.func = kernel.KernelFuncOp.create(name, types, "gpu")
        arguments = self.func.block.arguments
        count = len(plan.inputs)
        self.b = TileBuilder(self.func.block)
        self.evaluator = Evaluator(
            self.b, plan, dict(zip(plan.inputs, arguments[:count], strict=True))
        )
        self.outputs = list(zip(plan.outputs, arguments[count : len(pointers)], strict=False))
        for symbol_name, argument in zip(self.symbols, arguments[len(pointers) :], strict=True):
            self.b.bind(symbol_name, Tile(argument, (), 0))

    def entry(self, key: str) -> Any:
        """An entry of the schedule. Raises InvalidIR where it has none."""
        if key not in self.settings:
            raise InvalidIR(f"its schedule has no entry '{key}'; the pass 'schedule' writes it",
                            op=self.plan.op)  # fmt: skip
        return self.settings[key]

    def setting(self, key: str) -> int:
        """A number of the schedule."""
        return int(self.entry(key).value)

    def finished(self, grid: Dim) -> kernel.KernelFuncOp:
        """The kernel, of so many program instances, with its last operation appended already."""
        func = self.func
        func.attributes["grid"] = A.DimAttr(grid)
        func.attributes["symbols"] = A.ArrayAttr([A.StringAttr(n) for n in self.symbols])
        first, outputs = len(self.plan.inputs), len(self.outputs)
        if self.memory is not None:
            outputs += self._describe(self.memory)
        func.attributes["outputs"] = A.DenseIntsAttr(range(first, first + outputs))
        for key in ("num_warps", "num_stages", "index_bits"):
            func.attributes[key] = self.entry(key)
        set_sharing(func, self.plan)
        return func

    def _describe(self, place: int) -> int:
        """Say how much memory descriptors take; without any, its argument goes. Gives how many
        arguments it is."""
        func = self.func
        tiles = {op.described for op in func.walk() if isinstance(op, kernel.LoadTileOp)}
        if tiles:
            func.attributes["descriptor_bytes"] = A.IntegerAttr(len(tiles) * DESCRIPTOR_BYTES)
            return 1
        func.block.erase_argument(place)
        inputs = [a.type for a in func.block.arguments]
        func.attributes["function_type"] = A.TypeAttr(FunctionType(inputs, ()))
        return 0

    # -- places

    def program(self) -> Tile:
        """The number of this program instance."""
        return self.b.make(kernel.ProgramIdOp, [], [((), index)])[0]

    def place(
        self, name: str, dim: TileDim, start: Tile | None, total: Dim, whole: int = 0
    ) -> Dim:
        """The positions of a dimension's lanes from `start` on in [0, total), as `name`; the
        dimension masks those outside. `whole`: what of the dimension lanes are a part of."""
        b = self.b
        lanes = b.iota(dim)
        if start is not None:
            lanes = b.op("arith.addi", start, lanes)
        if not known_divisible(total, whole or dim.block):
            dim.mask = b.compare("slt", lanes, b.index(total))
        return b.bind(name, lanes, total)

    # -- results

    def record(self, member: GpuMember, number: int, point: Point, results: list[Tile]) -> None:
        """Let readers (and the store) find a reduce or scan result."""
        output = member.compute.output_list[number]
        axes = [str(a) for a in stored_axes(member.compute, output)]
        indices = [point.axes[name] for name in axes]
        self.evaluator.keep(member, number, indices, results)

    def store(self, member: GpuMember, number: int, point: Point) -> None:
        """Write an output of a member at a point, for each result of the kernel that it is."""
        output = member.compute.output_list[number]
        results = member.compute.results_of(number)
        for (result, value), pointer in self.outputs:
            if value not in results:
                continue
            if output.kind == "scatter":
                self._scatter(member, number, point, result, pointer)
                continue
            origin = Origin(member, number, results.index(value))
            names = [str(a) for a in stored_axes(member.compute, output)]
            indices = [point.axes[name] for name in names]
            tile = self.evaluator.element(origin, indices, point.mask)
            tile = convert(self.b, tile, loop.signless(result.type.element))  # type: ignore[attr-defined]
            offset = self.b.simplified(offset_of(indices, result.type))
            self.b.store(pointer, offset, tile, None)

    def _scatter(
        self, member: GpuMember, number: int, point: Point, result: Value, pointer: Value
    ) -> None:
        compute, b, evaluator = member.compute, self.b, self.evaluator
        output = compute.output_list[number]
        assert output.indices is not None
        turn = scatter_number(Origin(member, number, 0))
        first = 0
        for other in compute.output_list[:number]:
            first += placeholders(other) if other.kind == "scatter" else 0
        extra = compute.yield_op.extra[first : first + placeholders(output)]
        for value in extra:
            evaluator.value(member, value, point)
        indices = evaluator.expressions(list(output.indices), extra, point)
        mask = None
        if compute.yield_op.masks:
            mask = evaluator.value(member, compute.yield_op.masks[turn], point)
        content = evaluator.yielded(member, number, point)
        content = convert(b, content, loop.signless(result.type.element))  # type: ignore[attr-defined]
        own = [b.index(point.axes[a.name]) for a in compute.axis_list]
        # Every point counts once, also where neither place nor value depends on an axis.
        dims = union(content, *own)
        offset = b.simplified(offset_of(indices, result.type))
        b.store(pointer, offset, b.expand(content, dims), mask, output.combiner)


__all__ = ["KernelFrame", "memory_of"]
