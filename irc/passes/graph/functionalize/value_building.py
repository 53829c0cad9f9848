"""Values on the aten level: inserting operators with the types that torch says, and places of
elements in a storage."""

from __future__ import annotations

import itertools
import math
import typing
from collections.abc import Sequence
from typing import Any

from irc.dialects import aten
from irc.dialects.aten.facts import Fact
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.strides import dense_like, same_layout
from irc.ir.symbols import Dim
from irc.ir.types import DTYPE_OF_ELEMENT, TensorType, contiguous_strides, element_bytes
from irc.passes.graph.result_types import types_of_call

EXACT_OVERLAP_LIMIT = 4096  # elements of which overlap is decided one by one


def call(builder: Builder, name: str, type_: TensorType, *args: Any) -> Value:
    """Insert the operator `aten.<name>` on values and plain arguments. The result has the type
    that torch says, where it can, else `type_`."""

    def value_of(argument: Any) -> Value | None:
        return argument if isinstance(argument, Value) else None

    op = aten.make_aten(f"aten.{name}", args, {}, value_of, [type_], builder.location)
    retype(op, types_of_call(op.schema, op.operands, op.arguments))
    return builder.insert(op).results[0]


def retype(op: Operation, types: Sequence[TensorType] | None) -> None:
    """Give an operation's tensor results these types."""
    if types is not None:
        for result, type_ in zip(op.results, types, strict=False):
            if isinstance(result.type, TensorType):
                result.type = type_.with_strides(None) if result.type.strides is None else type_


def contiguous(builder: Builder, value: Value) -> Value:
    """The value in row-major order, first in its storage: a view of it as elements of any size is
    one, whatever strides and place the value has."""
    type_ = type_of(value)
    if type_.strides is not None and type_.strides == contiguous_strides(type_.shape):
        return storage(builder, value)
    format_ = aten.MemoryFormatAttr("contiguous_format")
    entries = A.DictAttr({"self": aten.OperandAttr(0), "memory_format": format_})
    return _insert(builder, "aten.clone.default", value, entries, dense(type_))


def with_strides(builder: Builder, value: Value, type_: TensorType) -> Value:
    """The value with the strides of `type_`, those of size-1 dimensions too, if it lies so."""
    have = type_of(value)
    if have.strides is None or type_.strides is None or have.strides == type_.strides:
        return value
    known = is_static(have) and is_static(type_)
    if not known or not same_layout(type_.shape, have.strides, type_.strides):
        return value
    sizes, strides = list(type_.shape), list(type_.strides)
    return call(builder, "as_strided.default", type_, value, sizes, strides)


def regroups(op: aten.AtenOp) -> bool:
    """Whether a view groups the bytes of its operand into elements of another size: then torch
    asks for strides, those of size-1 dimensions too, and for a place between two such elements."""
    if Fact.OTHER_ELEMENTS not in op.schema.facts:
        return False
    old, new = type_of(op.operands[0]).element, type_of(op.results[0]).element
    return element_bytes(old) != element_bytes(new)


def retype_regrouped(op: aten.AtenOp) -> None:
    """Give the result its type, for an operand that `contiguous` gave."""
    types = types_of_call(op.schema, op.operands, op.arguments)
    retype(op, types or [dense(type_of(r)) for r in op.results])


def cast(builder: Builder, value: Value, element: Any) -> Value:
    """The value with another element type."""
    type_ = type_of(value)
    if type_.element is element:
        return value
    dtype = aten.DtypeAttr(DTYPE_OF_ELEMENT[element])
    entries = A.DictAttr({"self": aten.OperandAttr(0), "dtype": dtype})
    return _insert(builder, "aten._to_copy.default", value, entries, type_.with_element(element))


def _insert(
    builder: Builder, name: str, value: Value, arguments: A.DictAttr, type_: TensorType
) -> Value:
    cls = aten.op_class(name)
    assert cls is not None
    op = cls([value], [type_], {"arguments": arguments}, (), builder.location)
    retype(op, types_of_call(op.schema, op.operands, op.arguments))
    return builder.insert(op).results[0]


def permuted(builder: Builder, value: Value, order: Sequence[int]) -> Value:
    """The value with its dimensions in another order."""
    type_ = type_of(value)
    if list(order) == list(range(type_.rank)):
        return value
    strides = None if type_.strides is None else [type_.strides[d] for d in order]
    result_type = type_.with_shape([type_.shape[d] for d in order], strides)
    return call(builder, "permute.default", result_type, value, list(order))


def storage(builder: Builder, vector: Value) -> Value:
    """The vector with its first element first in a storage: as_strided counts from there."""
    value = vector
    maker = value.defining_op
    while isinstance(maker, aten.AtenOp) and Fact.KEEPS_PLACE in maker.schema.facts:
        value = maker.operands[0]
        maker = value.defining_op
    if isinstance(maker, aten.AtenOp) and not maker.schema.returns_alias:
        return vector
    return call(builder, "clone.default", type_of(vector), vector)


def is_view_of(value: Value, source: Value) -> bool:
    """Whether a value is `source` or a view of it."""
    while value is not source:
        maker = value.defining_op
        if not isinstance(maker, aten.AtenOp) or not maker.schema.returns_alias:
            return False
        value = maker.operands[0]
    return True


def scatter_strided(
    builder: Builder, source: Value, content: Value, shape: Any, strides: Any, offset: Any
) -> Value:
    """The vector `source` with `content` at these places. Where many elements share one (only
    equal ones are ever written so), the first is written."""
    type_, shape = type_of(source), list(shape)
    for dim, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        if stride == 0 and size != 1 and size != 0:
            shape[dim] = 1
            part = type_of(content).with_shape(shape, type_of(content).strides)
            content = call(builder, "slice.Tensor", part, content, dim, 0, 1)
    return call(
        builder, "as_strided_scatter.default", type_, storage(builder, source), content,
        list(shape), list(strides), offset,
    )  # fmt: skip


# -- types and places


def type_of(value: Value) -> TensorType:
    """The type of a tensor value."""
    assert isinstance(value.type, TensorType)
    return value.type


def strides_of(type_: TensorType) -> tuple[Any, ...]:
    """A type's strides; those of a contiguous tensor where it has none."""
    return contiguous_strides(type_.shape) if type_.strides is None else type_.strides


def is_static(type_: TensorType) -> bool:
    """Whether sizes and strides are numbers."""
    return all(isinstance(d, int) for d in (*type_.shape, *(type_.strides or ())))


def numbers(dims: Sequence[Dim]) -> tuple[int, ...]:
    """Sizes or strides that are known to be numbers."""
    return typing.cast("tuple[int, ...]", tuple(dims))


def dense(type_: TensorType) -> TensorType:
    """The same sizes with row-major strides, if it has strides at all."""
    if type_.strides is None:
        return type_
    return type_.with_strides(contiguous_strides(type_.shape))


def extent(sizes: Sequence[Any], strides: Sequence[Any]) -> int:
    """How many places there are from the first element to the last."""
    if 0 in sizes:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(sizes, strides, strict=True))


def positions(sizes: Sequence[int], strides: Sequence[int], offset: int = 0) -> list[int]:
    """The place of every element; of the corners only where there are many."""
    if 0 in sizes:
        return []
    if math.prod(sizes) > EXACT_OVERLAP_LIMIT:
        return [offset, offset + extent(sizes, strides) - 1]
    steps = [range(0, n * step, step) if step else [0] * n
             for n, step in zip(sizes, strides, strict=True)]  # fmt: skip
    return [offset + sum(parts) for parts in itertools.product(*steps)]


def may_overlap(sizes: Sequence[Any], strides: Sequence[Any]) -> bool:
    """Whether two positions may name one element; True when it can't be told."""
    if 0 in sizes:
        return False
    pairs = [(st, si) for si, st in zip(sizes, strides, strict=True) if si != 1]
    if not all(isinstance(st, int) and isinstance(si, int) for st, si in pairs):
        return tuple(strides) != contiguous_strides(sizes)
    reach = 0
    for stride, size in sorted(pairs):
        if stride <= reach:
            break
        reach += stride * (size - 1)
    else:
        return False
    if math.prod(sizes) > EXACT_OVERLAP_LIMIT:
        return True
    places = positions(sizes, strides)
    return len(set(places)) < len(places)


def in_order(type_: TensorType) -> TensorType:
    """The type with its strides' gaps left out: the order of dimensions in memory stays."""
    if type_.strides is None or not is_static(type_):
        return type_
    return type_.with_strides(dense_like(type_.shape, [type_.strides]))
