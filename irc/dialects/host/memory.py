"""The memory of a host program: which values share it, and from where to where it is in use."""

from __future__ import annotations

from typing import Any

import attrs

from irc.dialects import aten, flow, graph, layout, sym
from irc.dialects.host import ops as host
from irc.dialects.host.ops import ALIGNMENT
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.strides import is_dense
from irc.ir.symbols import Dim, dim_product, dim_sum, floordiv, maximum
from irc.ir.types import TensorType, element_bytes


class Aliases:
    """Which memory each value of a straight-line program lives in.

    A root is a value with memory of its own: an argument, a constant, an allocation, a fresh
    result of a call. A view has its source's roots; a call that may return a view of its
    operands, theirs and its own.
    """

    def __init__(self) -> None:
        self.roots: dict[Value, frozenset[Value]] = {}
        # The values in `roots` that may be in the memory of a root.
        self._members: dict[Value, list[Value]] = {}

    def of(self, value: Value) -> frozenset[Value]:
        """The roots whose memory `value` may be in."""
        return self.roots.get(value) or frozenset((value,))

    def add(self, op: Operation) -> None:
        """Take note of what an operation's results alias."""
        if isinstance(op, host.HostViewOp | layout.ViewOp | sym.RefineOp):
            self._put(op.results[0], self.of(op.operands[0]))
        elif isinstance(op, host.CallAtenOp | graph.CallAten) and may_alias(op):
            shared = frozenset().union(*(self.of(v) for v in op.operands if is_tensor(v)))
            for result in op.results:
                if is_tensor(result):
                    self._put(result, shared | {result})

    def _put(self, value: Value, roots: frozenset[Value]) -> None:
        self.roots[value] = roots
        for root in roots:
            self._members.setdefault(root, []).append(value)

    def rename(self, old: Value, new: Value) -> None:
        """What was the memory of the value `old` is that of `new`."""
        for value in self._members.pop(old, ()):
            roots = self.roots.get(value)
            if roots is not None and old in roots:
                self.roots[value] = (roots - {old}) | {new}
                self._members.setdefault(new, []).append(value)

    def replace(self, old: Value, new: Value) -> None:
        """The value `new` is in the place of `old`."""
        roots = self.roots.pop(old, None)
        if roots is not None:
            self._put(new, roots)


def may_alias(op: Any) -> bool:
    """Whether a call may return a view of an operand."""
    schema = aten.callee_schema(op)
    return schema is None or schema.returns_alias


class Keepers:
    """Which operands calls may keep: read, and have read by others, when they have returned.

    That is a property of operators (`Schema.may_keep`), and of functions that call such. What is
    kept must not be memory that a program writes or uses again.
    """

    def __init__(self) -> None:
        self.functions: dict[Operation, bool] = {}

    def operands(self, op: Operation) -> list[int]:
        """The numbers of the tensors that `op` may keep."""
        if not self.keeps(op):
            return []
        return [number for number, value in enumerate(op.operands) if is_tensor(value)]

    def keeps(self, op: Operation) -> bool:
        """Whether `op` may keep its operands."""
        if isinstance(op, host.CallAtenOp | graph.CallAten):
            schema = aten.callee_schema(op)
            return schema is None or schema.may_keep
        if not isinstance(op, flow.FlowOp):
            return False
        function = op.parent_op
        module: Any = None if function is None else function.parent_op
        called = [] if module is None else [module.lookup(name) for name in op.callees]
        return any(self._function_keeps(body) for body in called if body is not None)

    def _function_keeps(self, function: Operation) -> bool:
        known = self.functions.get(function)
        if known is None:
            self.functions[function] = False  # a recursive call adds nothing
            inner = (op for block in function.regions[0].blocks for op in block.ops)
            known = self.functions[function] = any(map(self.keeps, inner))
        return known


def is_tensor(value: Value) -> bool:
    """Whether a value is a tensor."""
    return isinstance(value.type, TensorType)


@attrs.define(eq=False)
class Life:
    """An allocation with its size in bytes and the steps between which it is in use."""

    op: host.AllocOp
    size: Dim
    start: int
    end: int

    def meets(self, other: Life) -> bool:
        """Whether both are in use at some step."""
        return self.start <= other.end and other.start <= self.end

    def place(self, offset: Dim) -> None:
        """Give the allocation its place."""
        self.op.attributes["offset"] = A.DimAttr(offset)


def lifetimes(function: host.HostFuncOp) -> list[Life]:
    """The allocations of a host program that don't escape, in order."""
    aliases = Aliases()
    lives: dict[Value, Life] = {}
    for step, op in enumerate(function.block.ops):
        aliases.add(op)
        for value in op.operands:
            for root in aliases.of(value):
                life = lives.get(root)
                if life is not None:
                    life.end = step
        if isinstance(op, host.AllocOp) and not op.escapes:
            size = aligned(memory_bytes(op.memory.type))
            lives[op.memory] = Life(op, size, step, step)
    return list(lives.values())


def memory_bytes(type_: TensorType) -> Dim:
    """The bytes from the first element of a tensor to the end of its last."""
    width = element_bytes(type_.element)
    assert type_.strides is not None
    if is_dense(type_.shape, type_.strides):
        return dim_product(type_.shape) * width
    spans = [(size - 1) * step for size, step in zip(type_.shape, type_.strides, strict=True)]
    reach = dim_sum([1, *spans])
    return (max(reach, 0) if isinstance(reach, int) else maximum(reach, 0)) * width


def aligned(size: Dim) -> Dim:
    """The size rounded up to the alignment; something even for nothing."""
    if isinstance(size, int):
        return max(-(-size // ALIGNMENT), 1) * ALIGNMENT
    return floordiv(size + (ALIGNMENT - 1), ALIGNMENT) * ALIGNMENT
