"""What is measured together with a product: what a compiler would compute in the same kernels.

    Surroundings(function).of(call)     # operations, in order, the call among them

In front of it stands what makes its operands for nobody else: element by element, or by sums of
rows: a kernel of irc's computes the last of it on the way, a library needs a kernel in front. But
what is done to each element of another product's result is measured with that one. Behind it stands
what is done to its result up to the next product or library call: for a kernel of irc's a part of
the same one.
"""

from __future__ import annotations

from irc.analysis.channels_last import BACKWARD, CONVOLUTION
from irc.dialects import func, graph
from irc.dialects.aten.facts import MATRIX_PRODUCTS
from irc.dialects.graph.pointwise import PointwiseOp
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.traits import ViewLike
from irc.ir.types import TensorType, element_bytes

ELEMENTWISE = PointwiseOp, graph.Cast, graph.Select, graph.Bitcast
SUMMING = graph.Reduce, graph.Moments
FREE = graph.Full, graph.Iota
MOST_IN_FRONT, MOST_BEHIND = 40, 40
"""Operations that are measured with a product: a layer norm and its residual have 20."""
LOOKED_AT = 256
"""Operations of the program among which they are looked for."""


class Surroundings:
    """What stands around the products of a function."""

    def __init__(self, function: func.FuncOp) -> None:
        ops = list(function.block.ops)
        self._places = {op: place for place, op in enumerate(ops)}
        #: What is an element-wise function of a product's results and of memory.
        self._of_products: set[Operation] = set()
        #: What depends on sums that kernels of irc's make.
        self._of_sums: set[Operation] = set()
        for op in ops:
            sources = {value.defining_op for value in op.operands}
            through = isinstance(op, ELEMENTWISE) or ViewLike in op.traits
            if isinstance(op, SUMMING) or through and sources & self._of_sums:
                self._of_sums.add(op)
            elif is_product(op) or through and sources & self._of_products:
                self._of_products.add(op)

    def of(self, call: graph.CallAten, frozen: bool = False) -> list[Operation]:
        """The operations that are measured together with a product, in the program's order. frozen:
        constants beside the text are among them, as what is computed of them once takes no time."""
        inside: set[Operation] = {call, *self._in_front(call), *self._behind(call)}
        if frozen:
            sources = (value.defining_op for op in inside for value in op.operands)
            inside |= {op for op in sources if isinstance(op, graph.Constant)}
        return sorted(inside, key=self._places.__getitem__)

    def _in_front(self, call: graph.CallAten) -> set[Operation]:
        inside: set[Operation] = set()
        waiting = [value.defining_op for value in call.operands]
        while waiting and len(inside) < MOST_IN_FRONT:
            op = waiting.pop()
            if op is not None and op not in inside and self._may_be_in_front(op):
                inside.add(op)
                waiting += [value.defining_op for value in op.operands]
        dropped = True
        while dropped:
            last = {op for op in inside if not _is_read_here(op, inside, call)}
            inside -= last
            dropped = bool(last)
        return inside

    def _may_be_in_front(self, op: Operation) -> bool:
        if isinstance(op, graph.Constant):
            return not isinstance(op.value, A.ResourceAttr)
        if isinstance(op, FREE):
            return not op.operands
        if op in self._of_products:
            return False
        return isinstance(op, ELEMENTWISE + SUMMING) or ViewLike in op.traits


    def _behind(self, call: graph.CallAten) -> set[Operation]:
        """What is done to a product's result up to the next product or call, of what is there when
        the product is computed, or may be: what stands behind it and needs no product or call since
        (a batch norm's numbers) could as well stand in front."""
        inside: set[Operation] = {call}
        free: set[Operation] = set()
        movable: set[Operation] = set()
        op, looked = call.next, 0
        while op is not None and looked < LOOKED_AT and len(inside) < MOST_BEHIND:
            sources = [v.defining_op for v in op.operands]
            if isinstance(op, ELEMENTWISE + SUMMING) or ViewLike in op.traits:
                there = all(_is_there(s, call, inside, free | movable) for s in sources)
                if inside.intersection(sources):
                    if there:
                        inside.add(op)
                elif free.issuperset(sources):
                    free.add(op)
                elif there:
                    movable.add(op)
            elif not op.operands and isinstance(op, FREE + (graph.Constant,)):
                free.add(op)
            op, looked = op.next, looked + 1
        inside.discard(call)
        _drop_ends(inside)
        inside |= self._read_here(movable, inside)
        return inside | _needed(inside, free, call)

    def _read_here(self, movable: set[Operation], inside: set[Operation]) -> set[Operation]:
        """What could stand in front of a product and is computed for what is measured with it
        alone, but for what is measured with another product."""
        read: set[Operation] = set()
        for op in sorted(movable - self._of_products, key=self._places.__getitem__, reverse=True):
            users = [user for value in op.results for user in value.users]
            if users and all(user in inside or user in read for user in users):
                read.add(op)
        return read


def _is_read_here(op: Operation, inside: set[Operation], call: Operation) -> bool:
    """Whether an operation has readers among those of a product, and no others if it computes
    anything."""
    users = [user for value in op.results for user in value.users]
    here = [user for user in users if user in inside or user is call]
    return bool(here) and (len(here) == len(users) or not isinstance(op, ELEMENTWISE + SUMMING))


def is_product(op: Operation | None) -> bool:
    """Whether something is a product, a convolution or one of its gradients, chosen for or not."""
    if isinstance(op, graph.CallAten):
        if op.callee == BACKWARD:
            return sum(isinstance(value.type, TensorType) for value in op.results) == 1
        return op.callee in MATRIX_PRODUCTS or op.callee == CONVOLUTION
    return isinstance(op, graph.DotGeneral)


def _is_there(
    source: Operation | None, call: Operation, inside: set[Operation], free: set[Operation]
) -> bool:
    if source is None or source in inside or source in free:
        return True
    return source.parent is call.parent and source.is_before_in_block(call)


def _drop_ends(inside: set[Operation]) -> None:
    """Drop views and casts to wider elements that nothing inside reads: what another kernel reads
    them for is not known, and it reads what they are made of."""
    dropped = True
    while dropped:
        last = {op for op in inside if (ViewLike in op.traits or _widens(op))
                and not any(user in inside for v in op.results for user in v.users)}  # fmt: skip
        inside -= last
        dropped = bool(last)


def _widens(op: Operation) -> bool:
    """Whether an operation is a cast to an element of more bytes."""
    if not isinstance(op, graph.Cast):
        return False
    types = op.operands[0].type, op.results[0].type
    before, after = (element_bytes(t.element) for t in types if isinstance(t, TensorType))
    return before < after


def _needed(inside: set[Operation], free: set[Operation], call: Operation) -> set[Operation]:
    """The constants, in front of the product or behind it, that operations read."""
    needed: set[Operation] = set()
    waiting = list(inside)
    while waiting:
        for value in waiting.pop().operands:
            source = value.defining_op
            if source is None or source in inside or source in needed or source is call:
                continue
            makers = {source} if source in free else _only_constants(value)
            needed |= makers
            waiting += makers
    return needed


def _only_constants(value: Value) -> set[Operation]:
    """The operations that make a value of nothing but constants; none where it is something else.
    """
    op = value.defining_op
    if op is None or (isinstance(op, graph.Constant) and isinstance(op.value, A.ResourceAttr)):
        return set()
    if isinstance(op, FREE + (graph.Constant,)) and not op.operands:
        return {op}
    if ViewLike not in op.traits or len(op.operands) != 1:
        return set()
    makers = _only_constants(op.operands[0])
    return {op, *makers} if makers else set()


__all__ = ["Surroundings", "is_product"]
