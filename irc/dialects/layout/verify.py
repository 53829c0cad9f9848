"""What well-formed programs with strides are: views that can be ones, copies, results as promised.

Strides are compared by identity: what isn't the same expression isn't known to be equal.
"""

from __future__ import annotations

from collections.abc import Iterator

from irc.dialects import func, loop
from irc.dialects.func.ops import STRIDED
from irc.dialects.func.verify import checks_level
from irc.dialects.graph.views import view_strides
from irc.dialects.layout import ops
from irc.dialects.layout.places import begin_of, verify_inside, verify_places, verify_same_memory
from irc.ir.core import Block, Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.hooks import verifies
from irc.ir.strides import same_places, words
from irc.ir.symbols import dim_sum
from irc.ir.traits import MayAlias, ViewLike
from irc.ir.types import TensorType


@checks_level(*STRIDED)
def verify_level(function: func.FuncOp) -> None:
    """Strides and views of a function on the layout or loop level. Raises InvalidIR."""
    for argument in function.block.arguments:
        if isinstance(argument.type, TensorType) and argument.type.strides is None:
            function.fail(_unordered(f"argument {argument.index}", argument.type, function))
    for op in _operations(function.block):
        for result in op.results:
            if isinstance(result.type, TensorType) and result.type.strides is None:
                raise InvalidIR(_unordered("the result", result.type, function), op=op)
        if "view" in op.attributes:
            _verify_flagged(op)


def _operations(block: Block) -> Iterator[Operation]:
    """The operations on arrays: of a block, and of the groups in it at any depth."""
    for op in block.ops:
        yield op
        if isinstance(op, loop.GroupOp):
            yield from _operations(op.regions[0].blocks[0])


def _unordered(what: str, type_: TensorType, function: func.FuncOp) -> str:
    return f"{what} is {type_}, which has no strides; on the {function.level} level all have"


def _verify_flagged(op: Operation) -> None:
    """A view op with the flag `view`: its result's strides are those of a view of its operand."""
    if ViewLike not in op.traits:
        raise InvalidIR("has the flag 'view', which is of operations that only show elements "
                        "of their operand", op=op)  # fmt: skip
    source, result = op.operands[0].type, op.results[0].type
    assert isinstance(source, TensorType) and isinstance(result, TensorType)
    if source.strides is None or result.strides is None:
        raise InvalidIR(f"has the flag 'view' on types without strides: {source}", op=op)
    place = view_strides(op)
    if place is None:
        raise InvalidIR(f"has the flag 'view', but {result} of {source} takes a copy", op=op)
    if not same_places(result, place[0]):
        raise InvalidIR(f"has the flag 'view' and strides {words(result.strides)}; a view of "
                        f"{source} has {words(place[0])}", op=op)  # fmt: skip


# -- operations of the layout dialect


@verifies(ops.ViewOp)
def verify_view(op: ops.ViewOp) -> None:
    """Another handle on the same elements, inside the memory they are in. Raises InvalidIR."""
    verify_same_memory(op, op.source.type, op.view.type)
    begin, root = begin_of(op.view)
    if has_own_memory(root):
        verify_inside(op, op.view.type, begin, root.type)  # type: ignore[arg-type]


@verifies(ops.CopyOp)
def verify_copy(op: ops.CopyOp) -> None:
    """The same elements, each in a place of its own. Raises InvalidIR."""
    source, result = op.source.type, op.copy.type
    if result.with_strides(None) is not source.with_strides(None):
        op.fail(f"copies {source} to {result}: another size, element or device")
    verify_places(op, result)


@verifies(ops.JoinOp)
def verify_join(op: ops.JoinOp) -> None:
    """Pieces that fill the array, whose elements have a place each. Raises InvalidIR."""
    whole, dim = op.array.type, op.dim
    if not 0 <= dim < whole.rank:
        op.fail(f"joins along dimension {dim} of {whole}")
    rest = (*whole.shape[:dim], *whole.shape[dim + 1 :])
    for piece in op.pieces:
        type_ = piece.type
        fits = type_.shape == rest or (
            type_.rank == whole.rank and (*type_.shape[:dim], *type_.shape[dim + 1 :]) == rest
        )
        if not fits or (type_.element, type_.device) != (whole.element, whole.device):
            op.fail(f"{type_} can't be a piece of {whole} along dimension {dim}")
    if dim_sum(op.sizes()) != whole.shape[dim]:
        op.fail(f"the pieces don't have the size of {whole} along dimension {dim}")
    verify_places(op, whole)


def has_own_memory(value: Value) -> bool:
    """Whether a value is made where no other is, in just the memory that its type takes."""
    maker = value.defining_op
    return (
        maker is not None and "view" not in maker.attributes and MayAlias not in maker.traits
    )
