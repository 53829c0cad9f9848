"""One gpu kernel of several: its program instances are those of the first, then of the second..."""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import arith, kernel
from irc.ir import attributes as A
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.types import i1, index

SETTINGS = ("num_warps", "num_stages", "index_bits")


def fill_joined(
    function: kernel.KernelFuncOp,
    parts: Sequence[tuple[kernel.KernelFuncOp, dict[Value, Value]]],
) -> None:
    """Write the body of a joined kernel: which part a program instance is of, and that part's own
    code; `parts`: kernels, and what their arguments are here. The settings are the largest ones."""
    number = kernel.ProgramIdOp((), [index])
    function.block.append(number)
    block, first = function.block, 0
    for place, (part, arguments) in enumerate(parts):
        rest = None
        if place < len(parts) - 1:
            inside, rest = Block(), Block()
            end = _constant(block, first + _grid(part))
            below = arith.CmpIOp(
                (number.results[0], end), [i1], {"predicate": A.StringAttr("slt")}
            )
            block.append(below)
            regions = (Region([inside]), Region([rest]))
            block.append(kernel.IfOp((below.results[0],), (), {}, regions, part.location))
            if block is not function.block:
                block.append(kernel.KernelYieldOp((), ()))
        else:
            inside = block
        _copy(part, inside, dict(arguments), number.results[0], first)
        if inside is not function.block:
            inside.append(kernel.KernelYieldOp((), ()))
        first += _grid(part)
        block = inside if rest is None else rest
    function.block.append(kernel.KernelReturnOp())
    for name in SETTINGS:
        most = max(part.attributes[name].value for part, _ in parts)  # type: ignore[attr-defined]
        function.attributes[name] = A.IntegerAttr(most)


def _grid(part: kernel.KernelFuncOp) -> int:
    assert isinstance(part.grid, int)
    return part.grid


def _copy(
    part: kernel.KernelFuncOp, block: Block, mapping: dict[Value, Value], number: Value, first: int
) -> None:
    """The code of a part, whose program instances begin at number `first`."""
    for op in part.block.ops:
        if isinstance(op, kernel.ProgramIdOp):
            mapping[op.results[0]] = number
            if first:
                own = arith.SubIOp((number, _constant(block, first)), [index])
                block.append(own)
                mapping[op.results[0]] = own.results[0]
        elif not isinstance(op, kernel.KernelReturnOp):
            block.append(op.clone(mapping))


def _constant(block: Block, number: int) -> Value:
    op: Operation = arith.ConstantOp((), [index], {"value": A.IntegerAttr(number, index)})
    block.append(op)
    return op.results[0]


__all__ = ["SETTINGS", "fill_joined"]
