"""Which values of the graph level are the same at every call, because only constants make them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key

from irc.dialects import graph
from irc.ir.core import Operation, Value
from irc.ir.traits import Pure
from irc.ir.types import TensorType, element_bytes

#: What gives a constant's elements another place and can be a view of it: no work at run time.
VIEWS = (graph.Permute, graph.Broadcast, graph.Slice)


class ConstantValues:
    """Answers for one function; ask again with a new one after a change."""

    def __init__(self) -> None:
        self._known: dict[Operation, bool] = {}

    def __contains__(self, value: Value) -> bool:
        """Whether `value` is made of constants alone.

        Never what is random, reads an argument or the world outside, is undefined, or has a size
        that is only known at run time.
        """
        op = value.defining_op
        return op is not None and self.is_constant(op)

    def is_constant(self, op: Operation) -> bool:
        """Whether all results of `op` are."""
        known = self._known.get(op)
        if known is None:
            known = self._known[op] = _is_foldable(op) and all(o in self for o in op.operands)
        return known


def _is_foldable(op: Operation) -> bool:
    """Whether `op` gives equal results whenever its operands are equal."""
    if isinstance(op, graph.CallAten):
        name = op.callee.split(".")[-2]
        if op.random or op.mutates or "empty" in name:
            return False
    elif Pure not in op.traits or not op.name.startswith("graph.") or op.regions:
        return False
    elif isinstance(op, graph.Undefined | graph.Pack):
        return False
    kinds = [v.type for v in (*op.operands, *op.results)]
    return bool(op.results) and all(
        isinstance(k, TensorType) and all(isinstance(size, int) for size in k.shape) for k in kinds
    )


def cone(values: Iterable[Value], until: Iterable[Value] = ()) -> list[Operation]:
    """All operations that `values` are made of, in order; none behind those in `until`.

    All stand in one block.
    """
    ops: dict[Operation, None] = {}
    stops = set(until)
    stack = [v for v in values if v not in stops]
    while stack:
        op = stack.pop().defining_op
        if op is not None and op not in ops:
            ops[op] = None
            stack.extend(o for o in op.operands if o not in stops)
    return in_order(ops)


def in_order(ops: Iterable[Operation]) -> list[Operation]:
    """Operations of one block in its order."""

    def compare(a: Operation, b: Operation) -> int:
        return 0 if a is b else -1 if a.is_before_in_block(b) else 1

    return sorted(ops, key=cmp_to_key(compare))


def byte_size(type_: TensorType) -> int:
    """How many bytes a tensor of known sizes has when it is dense."""
    count = element_bytes(type_.element)
    for size in type_.shape:
        assert isinstance(size, int)
        count *= size
    return count


def is_free(value: Value) -> bool:
    """Whether a constant value costs nothing at run time: a `graph.constant`, one number or the
    positions along a dimension, or a view of such."""
    op = value.defining_op
    while isinstance(op, VIEWS):
        op = op.operands[0].defining_op
    return isinstance(op, graph.Constant | graph.Full | graph.Iota)


__all__ = ["ConstantValues", "VIEWS", "byte_size", "cone", "in_order", "is_free"]
