"""Places that a program reaches for certain and that are in no array, where sizes are numbers.

An index or offset that is a sum of multiples of loop variables, whose ranges don't depend on each
other, takes its least and its greatest value at some point: one outside of its array is an error.
What is read or written under a mask or a branch that data decides, and indices that are data, are
not looked at here; a build with `check_bounds` checks all of them when it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from irc.dialects.arith.fold import INTEGER, fold_compare, width_of, wrap_integer
from irc.dialects.layout.verify import last_element
from irc.ir import attributes as A
from irc.ir.core import Block, BlockArgument, Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim, Expr, affine_parts, evaluate
from irc.ir.types import TensorType, VectorType

if TYPE_CHECKING:
    from irc.dialects import host, kernel
    from irc.dialects.loop import ComputeOp, ReadOp

#: Corners of a space at which an index that is no sum of multiples is tried.
CORNERS = 64

# Indices, sizes and axes that passed.
_passed: set[Any] = set()


# -- the loop level


def verify_read_bounds(op: ReadOp, indices: Sequence[Dim], source: TensorType) -> None:
    """An unmasked read at indices of its compute's axes. Raises InvalidIR."""
    compute: Any = op.parent_op
    if compute is None or compute.name != "loop.compute":
        return
    key = (indices, source.shape, compute.attributes["axes"])
    if key not in _passed:
        _verify_indices(op, indices, source, compute)
        _passed.add(key)


def verify_scatter_bounds(op: ComputeOp, indices: Sequence[Dim], array: TensorType) -> None:
    """The places of a scatter without masks. Raises InvalidIR."""
    if not op.yield_op.masks:
        _verify_indices(op, indices, array, op)


def _verify_indices(op: Any, indices: Sequence[Dim], array: TensorType, compute: Any) -> None:
    axes = compute.axis_list
    extents = {a.name: a.extent for a in axes}
    if len(extents) != len(axes) or any(not isinstance(n, int) or n < 1 for n in extents.values()):
        return  # no axes of a compute, or a space that may have no points
    for dim, (index, size) in enumerate(zip(indices, array.shape, strict=True)):
        if not isinstance(size, int):
            continue
        ends = _ends(index, extents)
        if ends is not None and (ends[0] < 0 or ends[1] >= size):
            place = ends[0] if ends[0] < 0 else ends[1]
            op.fail(f"index {dim}, {index}, is {place} at a point of its space; the size is {size}")


def _ends(index: Dim, extents: Mapping[str, Dim]) -> tuple[int, int] | None:
    """Values that an index takes, the least and the greatest found; None where that isn't known."""
    if not isinstance(index, Expr):
        return index, index
    sizes: dict[str, int] = {}
    for name in index.symbols:
        extent = extents.get(name)
        if not isinstance(extent, int):
            return None
        sizes[name] = extent
    parts = affine_parts(index, sizes)
    if parts is not None:
        assert isinstance(parts[1], int)  # the index mentions sized axes alone
        low = high = parts[1]
        for name, step in parts[0].items():
            assert isinstance(step, int)
            reach = step * (sizes[name] - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high
    if 2 ** len(sizes) > CORNERS:
        return None
    values = [
        evaluate(index, dict(zip(sizes, corner, strict=True)))
        for corner in product(*({0, n - 1} for n in sizes.values()))
    ]
    return min(values), max(values)


# -- kernels

# Multiples of loop variables by their block argument, and a constant.
Offset = tuple[dict[Value, int], int]


def verify_launch_bounds(op: host.LaunchOp, callee: kernel.FuncOp, arrays: Sequence[Value]) -> None:
    """The unmasked loads and stores of a kernel on these arrays, where offsets are sums of
    multiples of loop variables with constant bounds. Raises InvalidIR."""
    if callee.grid == 0:
        return  # no program runs
    lasts: dict[Value, int] = {}
    for argument, array in zip(callee.block.arguments, arrays, strict=False):
        kind = array.type
        assert isinstance(kind, TensorType)
        last = last_element(kind)
        if last is not None:
            lasts[argument] = last
    if lasts:
        grid = callee.grid if isinstance(callee.grid, int) else None
        _Kernel(callee, grid, lasts).block(callee.block)


class _Kernel:
    """One walk over what surely runs of a kernel, all of whose points are run at once.

    `lasts`: the last element of the arrays behind pointers."""

    def __init__(
        self, callee: kernel.FuncOp, grid: int | None, lasts: Mapping[Value, int]
    ) -> None:
        self.callee = callee
        self.lasts = lasts
        arguments = callee.block.arguments
        # The least value of each loop variable, its step and the number of steps.
        self.loops: dict[Value, tuple[int, int, int]] = {}
        self.offsets: dict[Value, Offset | None] = {}
        if callee.target == "cpu" and grid is not None:  # one thread runs all points at once
            self.offsets = {arguments[-2]: ({}, 0), arguments[-1]: ({}, grid)}

    def block(self, block: Block) -> None:
        op = block.first
        while op is not None:
            if op.name in ("kernel.load", "kernel.store"):
                self.access(op)
            elif op.name == "kernel.for":
                self.loop(op)
            elif op.name == "kernel.if":
                taken = self.constant(op._operands[0])
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
        found = self.offset(value)
        return found[1] if found is not None and not found[0] else None

    def offset(self, value: Value) -> Offset | None:
        if value not in self.offsets:
            self.offsets[value] = self.computed(value)
        return self.offsets[value]

    def computed(self, value: Value) -> Offset | None:
        if isinstance(value, BlockArgument):
            return ({value: 1}, 0) if value in self.loops else None
        op: Operation | None = value.defining_op
        assert op is not None
        if op.name == "arith.constant":
            attr = op.attributes.get("value")
            return ({}, attr.value) if isinstance(attr, A.IntegerAttr) else None
        name = op.name.removeprefix("arith.")
        if name != "cmpi" and name not in INTEGER:
            return None
        first, second = (self.offset(v) for v in op._operands)
        if first is None or second is None:
            return None
        if not first[0] and not second[0]:
            return self.of_constants(op, first[1], second[1])
        if name == "muli":
            if first[0] and second[0]:
                return None
            whole, scale = (first, second[1]) if first[0] else (second, first[1])
            return {v: c * scale for v, c in whole[0].items()}, whole[1] * scale
        if name not in ("addi", "subi"):
            return None
        sign = 1 if name == "addi" else -1
        scales = dict(first[0])
        for variable, scale in second[0].items():
            scales[variable] = scales.get(variable, 0) + sign * scale
        return scales, first[1] + sign * second[1]

    def of_constants(self, op: Operation, first: int, second: int) -> Offset | None:
        """What an operation makes of two constants."""
        lhs, _ = op._operands
        type_ = lhs.type
        if op.name == "arith.cmpi":
            attrs = (A.IntegerAttr(first, type_), A.IntegerAttr(second, type_))
            outcome = fold_compare(op, attrs)
            return None if outcome is None else ({}, int(outcome.value))  # type: ignore[attr-defined]
        width = width_of(type_)
        made = INTEGER[op.name.removeprefix("arith.")](first, second, width)
        return None if made is None else ({}, wrap_integer(made, width))
