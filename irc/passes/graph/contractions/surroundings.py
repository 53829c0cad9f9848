"""What is measured together with a product: what a compiler would compute in the same kernels.

    surroundings(call)      # operations of the call's block, in order, the call among them

In front of it stands what makes its factors of arrays in memory, element by element, for nobody
else: a kernel of irc's computes that on the way, a library needs a kernel in front. Behind it
stands what is done to its result up to the next product or library call: for a kernel of irc's a
part of the same one. What another product's result becomes is measured with that one.
"""

from __future__ import annotations

from irc.analysis.channels_last import CONVOLUTION
from irc.dialects import graph
from irc.dialects.aten.facts import MATRIX_PRODUCTS
from irc.dialects.graph.pointwise import PointwiseOp
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.traits import ViewLike

ELEMENTWISE = PointwiseOp, graph.Cast, graph.Select, graph.Bitcast
SUMMING = graph.Reduce, graph.Moments
FREE = graph.Full, graph.Iota
MOST_BEHIND = 40
"""Operations behind a product that are measured with it: a layer norm and its residual have 20."""
LOOKED_AT = 256
"""Operations of the program among which they are looked for."""


def surroundings(call: graph.CallAten, frozen: bool = False) -> list[Operation]:
    """The operations that are measured together with a product, in the program's order. frozen:
    constants beside the text are among them, as what is computed of them once takes no time."""
    inside: set[Operation] = {call}
    for value in call._operands:
        inside |= _made_of_memory(value) or set()
    inside |= _behind(call)
    if frozen:
        sources = (value.defining_op for op in inside for value in op._operands)
        inside |= {op for op in sources if isinstance(op, graph.Constant)}
    block = call.parent
    assert block is not None
    places = {op: place for place, op in enumerate(block.ops)}
    return sorted(inside, key=places.__getitem__)


def is_product(op: Operation | None) -> bool:
    """Whether something is a product or a convolution, chosen for or not."""
    if isinstance(op, graph.CallAten):
        return op.callee in MATRIX_PRODUCTS or op.callee == CONVOLUTION
    return isinstance(op, graph.DotGeneral)


def _made_of_memory(value: Value) -> set[Operation] | None:
    """The operations that make a value of arrays in memory; None where it is made of something
    else, or something of it is read elsewhere, too."""
    op = value.defining_op
    if op is None:
        return set()
    if isinstance(op, graph.CallAten):
        return None if is_product(op) else set()
    if isinstance(op, graph.Constant):
        return _constant(op)
    if isinstance(op, FREE) and not op._operands:
        return {op}
    if not isinstance(op, ELEMENTWISE) and ViewLike not in op.traits:
        return None
    makers: set[Operation] = {op}
    for operand in op._operands:
        inner = _made_of_memory(operand)
        if inner is None:
            return None
        makers |= inner
    computes = any(isinstance(each, ELEMENTWISE) for each in makers)
    return None if computes and len(tuple(value.users)) > 1 else makers


def _constant(op: graph.Constant) -> set[Operation]:
    """A constant that stands in the text belongs to the problem, a weight is its argument."""
    return set() if isinstance(op.value, A.ResourceAttr) else {op}


def _behind(call: graph.CallAten) -> set[Operation]:
    """What is done to a product's result up to the next product or call, of what is there when the
    product is computed."""
    inside: set[Operation] = {call}
    free: set[Operation] = set()
    op, looked = call.next, 0
    while op is not None and looked < LOOKED_AT and len(inside) < MOST_BEHIND:
        sources = [v.defining_op for v in op._operands]
        if isinstance(op, ELEMENTWISE + SUMMING) or ViewLike in op.traits:
            if inside.intersection(sources):
                if all(_is_there(s, call, inside, free) for s in sources):
                    inside.add(op)
            elif free.issuperset(sources):
                free.add(op)
        elif not op._operands and isinstance(op, FREE + (graph.Constant,)):
            free.add(op)
        op, looked = op.next, looked + 1
    inside.discard(call)
    _drop_views(inside)
    return inside | _needed(inside, free, call)


def _is_there(
    source: Operation | None, call: Operation, inside: set[Operation], free: set[Operation]
) -> bool:
    if source is None or source in inside or source in free:
        return True
    return source.parent is call.parent and source.is_before_in_block(call)


def _drop_views(inside: set[Operation]) -> None:
    """Drop views that nothing inside reads: what another kernel reads them for is not known."""
    dropped = True
    while dropped:
        last = {op for op in inside if ViewLike in op.traits
                and not any(user in inside for v in op.results for user in v.users)}  # fmt: skip
        inside -= last
        dropped = bool(last)


def _needed(inside: set[Operation], free: set[Operation], call: Operation) -> set[Operation]:
    """The constants, in front of the product or behind it, that operations read."""
    needed: set[Operation] = set()
    waiting = list(inside)
    while waiting:
        for value in waiting.pop()._operands:
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
    if isinstance(op, FREE + (graph.Constant,)) and not op._operands:
        return {op}
    if ViewLike not in op.traits or len(op._operands) != 1:
        return set()
    makers = _only_constants(op._operands[0])
    return {op, *makers} if makers else set()


__all__ = ["is_product", "surroundings"]
