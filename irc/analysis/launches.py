"""How many bytes a launch of a kernel moves."""

from __future__ import annotations

from irc.analysis.loop import array_bytes
from irc.dialects import arith, host, kernel
from irc.ir.core import Operation, Value
from irc.ir.strides import estimate
from irc.ir.symbols import Dim
from irc.ir.types import TensorType, element_bytes

_READS = kernel.LoadOp | kernel.LoadStridedOp | kernel.GatherOp


def launch_bytes(launch: host.LaunchOp, callee: kernel.KernelFuncOp) -> int:
    """The bytes that a launch reads and writes: of each array all, or as many as its kernel has
    reads of it. What is looked up in a table is a few rows of that."""
    values = (*launch.inputs, *launch.results)
    pointers = callee.block.arguments
    written = set(pointers[len(tuple(launch.inputs)) :])
    total = 0
    for value, pointer in zip(values, pointers, strict=False):
        if not isinstance(value.type, TensorType):
            continue
        size = array_bytes(value.type)
        read = None if pointer in written else elements_read(pointer, callee)
        total += size if read is None else min(size, read * element_bytes(value.type.element))
    return total


def elements_read(pointer: Value, callee: kernel.KernelFuncOp) -> int | None:
    """How many elements the program instances of a kernel read of an array, one that is read
    again counted again; None where that isn't known."""
    total = 0
    for op in {user for user in pointer.users if isinstance(user, Operation)}:
        times = times_run(op, callee) if isinstance(op, _READS) else None
        if times is None:
            return None
        total += times * elements(op.results[0])
    return total


def elements(value: Value) -> int:
    """The elements of a tile; 1 for a scalar."""
    count = 1
    for size in getattr(value.type, "shape", ()):
        count *= estimate(size)
    return count


def times_run(op: Operation, callee: kernel.KernelFuncOp) -> int | None:
    """How often the program instances of a kernel run an operation, at most; None where that isn't
    known: a kernel for a CPU runs from where to where it is told to."""
    grid: Dim | None = callee.grid
    if not callee.is_gpu or not isinstance(grid, int):
        return None
    times, outer = grid, op.parent_op
    while outer is not None and outer is not callee:
        if isinstance(outer, kernel.ForOp):
            turns = _turns(outer)
            if turns is None:
                return None
            times *= turns
        elif not isinstance(outer, kernel.IfOp):
            return None
        outer = outer.parent_op
    return times


def _turns(loop: kernel.ForOp) -> int | None:
    """How often a loop between known bounds runs its body."""
    bounds = [_constant(value) for value in loop.operands[:3]]
    if None in bounds:
        return None
    begin, end, step = (int(number) for number in bounds if number is not None)
    return max(0, -(-(end - begin) // step)) if step > 0 else None


def _constant(value: Value) -> int | None:
    maker = value.defining_op
    if not isinstance(maker, arith.ConstantOp):
        return None
    return int(maker.attributes["value"].value)  # type: ignore[attr-defined]


__all__ = ["elements", "elements_read", "launch_bytes", "times_run"]
