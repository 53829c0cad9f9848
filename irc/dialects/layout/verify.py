"""What well-formed programs with strides are: views that can be ones, copies, results as promised.

Strides are compared by identity: what isn't the same expression isn't known to be equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from irc.ir import attributes as A
from irc.ir.core import Block, Operation, Value
from irc.ir.definition import Op
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim
from irc.ir.traits import MayAlias, MemoryView, ViewLike
from irc.ir.types import TensorType

if TYPE_CHECKING:
    from irc.dialects import func
    from irc.dialects.layout import ops as layout

#: The levels on which every tensor type has strides.
STRIDED = ("layout", "loop")


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
        if op.name == "loop.group":
            yield from _operations(op.regions[0].blocks[0])


def _unordered(what: str, type_: TensorType, function: func.FuncOp) -> str:
    return f"{what} is {type_}, which has no strides; on the {function.level} level all have"


def _verify_flagged(op: Operation) -> None:
    """A view op with the flag `view`: its result's strides are those of a view of its operand."""
    from irc.analysis.views import view_strides

    if ViewLike not in op.traits:
        raise InvalidIR("has the flag 'view', which is of operations that only show elements "
                        "of their operand", op=op)  # fmt: skip
    source, made = op._operands[0].type, op.results[0].type
    assert isinstance(source, TensorType) and isinstance(made, TensorType)
    if source.strides is None or made.strides is None:
        raise InvalidIR(f"has the flag 'view' on types without strides: {source}", op=op)
    found = view_strides(op)
    if found is None:
        raise InvalidIR(f"has the flag 'view', but {made} of {source} takes a copy", op=op)
    if not same_places(made, found[0]):
        raise InvalidIR(f"has the flag 'view' and strides {_list(made.strides)}; a view of "
                        f"{source} has {_list(found[0])}", op=op)  # fmt: skip


# -- operations of the layout dialect


def verify_view(op: layout.ViewOp) -> None:
    """Another handle on the same elements, inside the memory they are in. Raises InvalidIR."""
    verify_same_memory(op, op.source.type, op.view.type)
    begin, root = begin_of(op.view)
    if has_own_memory(root):
        verify_inside(op, op.view.type, begin, root.type)  # type: ignore[arg-type]


def verify_copy(op: layout.CopyOp) -> None:
    """The same elements, each in a place of its own. Raises InvalidIR."""
    source, made = op.source.type, op.copy.type
    if made.with_strides(None) is not source.with_strides(None):
        op.fail(f"copies {source} to {made}: another size, element or device")
    verify_places(op, made)


# -- what the host dialect shares


def verify_same_memory(op: Op, source: TensorType, made: TensorType) -> None:
    """A view's type against its source's: element, device, strides. Raises InvalidIR."""
    if made.element is not source.element or made.device != source.device:
        op.fail(f"{made} is no view of {source}: another element or device")
    if made.strides is None or source.strides is None:
        op.fail(f"a view of {source} as {made} needs the strides of both")


def verify_places(op: Op, made: TensorType) -> None:
    """Fresh memory: strides, and no place for two elements. Raises InvalidIR."""
    if made.strides is None:
        op.fail(f"{made} has no strides: memory needs them")
    for size, stride in zip(made.shape, made.strides or (), strict=True):
        if stride == 0 and not (isinstance(size, int) and size <= 1) and 0 not in made.shape:
            op.fail(f"two elements of {made} share a place in memory")


def begin_of(value: Value) -> tuple[Dim, Value]:
    """The element at which a view begins in what it is a view of in the end, and that value."""
    offset: Dim = 0
    maker: Any = value.defining_op
    while maker is not None and MemoryView in maker.traits:
        offset, value = offset + maker.offset, maker.source
        maker = value.defining_op
    return offset, value


def has_own_memory(value: Value) -> bool:
    """Whether a value is made where no other is, in just the memory that its type takes."""
    maker = value.defining_op
    return (
        maker is not None and "view" not in maker.attributes and MayAlias not in maker.traits
    )


def verify_inside(op: Op, made: TensorType, offset: Dim, memory: TensorType) -> None:
    """A view stays inside of memory, where sizes are known. Raises InvalidIR."""
    reach, room = last_element(made), last_element(memory)
    if reach is None or room is None or not isinstance(offset, int) or reach < 0:
        return
    if offset < 0 or offset + reach > room:
        op.fail(f"reaches from element {offset} to {offset + reach} of memory whose last element "
                f"is {room}")  # fmt: skip


def last_element(kind: TensorType) -> int | None:
    """The place of a tensor's last element, -1 for none; None where that isn't known."""
    if kind.strides is None or not all(isinstance(d, int) for d in (*kind.shape, *kind.strides)):
        return None
    if 0 in kind.shape:
        return -1
    return sum((n - 1) * s for n, s in zip(kind.shape, kind.strides, strict=True))  # type: ignore[return-value]


def verify_result_strides(op: Op, infos: A.ArrayAttr | None) -> None:
    """Each returned tensor has the strides that its caller must see. Raises InvalidIR."""
    for position, (value, info) in enumerate(zip(op._operands, infos or (), strict=False)):
        kind = value.type
        wanted = info.get("strides") if isinstance(info, A.DictAttr) else None
        if not isinstance(wanted, A.DimsAttr) or not isinstance(kind, TensorType):
            continue
        if kind.strides is not None and not same_places(kind, wanted.dims):
            op.fail(f"result {position} has strides {_list(kind.strides)}, its caller must see "
                    f"{_list(wanted.dims)}")  # fmt: skip


def same_places(kind: TensorType, wanted: Sequence[Dim | None]) -> bool:
    """Whether strides place every element as a type's do: those of sizes up to 1 don't count."""
    assert kind.strides is not None
    if len(wanted) != kind.rank:
        return False
    return 0 in kind.shape or all(
        have == want or (isinstance(size, int) and size <= 1)
        for size, have, want in zip(kind.shape, kind.strides, wanted, strict=True)
    )


def _list(dims: Sequence[Any]) -> str:
    return f"[{', '.join(map(str, dims))}]"
