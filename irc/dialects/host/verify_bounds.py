"""Places that a launch reaches for certain and that are in no array, where sizes are numbers.

An offset that is a sum of multiples of loop variables, whose ranges don't depend on each other,
takes its least and its greatest value at some point: one outside of its array is an error. What is
read or written under a mask or a branch that data decides, and offsets that are data, are not
looked at here; a build with `check_bounds` checks all of them when it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irc.dialects import arith, kernel
from irc.dialects.arith.folds import fold_compare, function_of, width_of, wrap_integer
from irc.dialects.host import ops as host
from irc.ir import attributes as A
from irc.ir.core import Block, BlockArgument, Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.strides import last_element
from irc.ir.types import TensorType, VectorType

# Multiples of loop variables by their block argument, and a constant.
Offset = tuple[dict[Value, int], int]


def verify_launch_bounds(
    op: host.LaunchOp, callee: kernel.KernelFuncOp, arrays: Sequence[Value]
) -> None:
    """The unmasked loads and stores of a kernel on these arrays, where offsets are sums of
    multiples of loop variables with constant bounds. Raises InvalidIR."""
    if callee.grid == 0:
        return  # no program runs
    lasts: dict[Value, int] = {}
    for argument, array in zip(callee.block.arguments, arrays, strict=False):
        type_ = array.type
        assert isinstance(type_, TensorType)
        last = last_element(type_)
        if last is not None:
            lasts[argument] = last
    if lasts:
        grid = callee.grid if isinstance(callee.grid, int) else None
        _Kernel(callee, grid, lasts).block(callee.block)


class _Kernel:
    """One walk over what surely runs of a kernel, all of whose points are run at once.

    `lasts`: the last element of the arrays behind pointers."""

    def __init__(
        self, callee: kernel.KernelFuncOp, grid: int | None, lasts: Mapping[Value, int]
    ) -> None:
        self.callee = callee
        self.lasts = lasts
        arguments = callee.block.arguments
        # The least value of each loop variable, its step and the number of steps.
        self.loops: dict[Value, tuple[int, int, int]] = {}
        self.offsets: dict[Value, Offset | None] = {}
        if not callee.is_gpu and grid is not None:  # one thread runs all points at once
            self.offsets = {arguments[-2]: ({}, 0), arguments[-1]: ({}, grid)}

    def block(self, block: Block) -> None:
        op = block.first
        while op is not None:
            if isinstance(op, kernel.LoadOp | kernel.StoreOp):
                self.access(op)
            elif isinstance(op, kernel.ForOp):
                self.loop(op)
            elif isinstance(op, kernel.IfOp):
                taken = self.constant(op.operands[0])
                if taken is not None:
                    self.block(op.regions[0 if taken else 1].blocks[0])
            op = op.next

    def loop(self, op: Any) -> None:
        """A loop of constant bounds, if it runs."""
        low, high, step = (self.constant(v) for v in (op.lower, op.upper, op.step))
        if low is None or high is None or step is None or step < 1 or high <= low:
            return
        self.loops[op.block.arguments[0]] = low, step, (high - low - 1) // step
        self.block(op.block)

    def access(self, op: Any) -> None:
        pointer = op.pointer
        last = self.lasts.get(pointer)
        if last is None or op.mask is not None:
            return
        offset = self.offset(op.offset)
        if offset is None:
            return
        low = high = offset[1]
        for variable, scale in offset[0].items():
            first, step, count = self.loops[variable]
            low, high = low + scale * first, high + scale * first
            reach = scale * step * count
            low, high = low + min(reach, 0), high + max(reach, 0)
        moved = op.results[0].type if op.results else op.stored.type
        high += moved.shape[-1] - 1 if isinstance(moved, VectorType) else 0
        if low < 0 or high > last:
            place = low if low < 0 else high
            raise InvalidIR(
                f"reaches element {place} of argument {pointer.index} of @{self.callee.sym_name}, "
                f"which a launch gives an array whose last element is {last}", op=op,
            )  # fmt: skip

    def constant(self, value: Value) -> int | None:
        offset = self.offset(value)
        return offset[1] if offset is not None and not offset[0] else None

    def offset(self, value: Value) -> Offset | None:
        if value not in self.offsets:
            self.offsets[value] = self.computed(value)
        return self.offsets[value]

    def computed(self, value: Value) -> Offset | None:
        if isinstance(value, BlockArgument):
            return ({value: 1}, 0) if value in self.loops else None
        op: Operation | None = value.defining_op
        assert op is not None
        if isinstance(op, arith.ConstantOp):
            attr = op.attributes.get("value")
            return ({}, attr.value) if isinstance(attr, A.IntegerAttr) else None
        if not isinstance(op, arith.CmpIOp) and function_of(op) is None:
            return None
        first, second = (self.offset(v) for v in op.operands)
        if first is None or second is None:
            return None
        if not first[0] and not second[0]:
            return self.of_constants(op, first[1], second[1])
        if isinstance(op, arith.MulIOp):
            if first[0] and second[0]:
                return None
            whole, scale = (first, second[1]) if first[0] else (second, first[1])
            return {v: c * scale for v, c in whole[0].items()}, whole[1] * scale
        if not isinstance(op, arith.AddIOp | arith.SubIOp):
            return None
        sign = 1 if isinstance(op, arith.AddIOp) else -1
        scales = dict(first[0])
        for variable, scale in second[0].items():
            scales[variable] = scales.get(variable, 0) + sign * scale
        return scales, first[1] + sign * second[1]

    def of_constants(self, op: Operation, first: int, second: int) -> Offset | None:
        """What an operation makes of two constants."""
        lhs, _ = op.operands
        type_ = lhs.type
        if isinstance(op, arith.CmpIOp):
            attrs = (A.IntegerAttr(first, type_), A.IntegerAttr(second, type_))
            outcome = fold_compare(op, attrs)
            return None if outcome is None else ({}, int(outcome.value))  # type: ignore[attr-defined]
        width = width_of(type_)
        function = function_of(op)
        assert function is not None
        number = function(first, second, width)
        return None if number is None else ({}, wrap_integer(number, width))
