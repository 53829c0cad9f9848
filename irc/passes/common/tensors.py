"""Building what reads a tensor of the graph level in another form, and the products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import aten, graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.symbols import Dim
from irc.ir.types import TensorType, contiguous_strides


def reshaped(builder: Builder, value: Value, shape: Sequence[Dim]) -> Value:
    """A value under other sizes."""
    type_ = tensor_type(value)
    if type_.shape == tuple(shape):
        return value
    return builder.value(graph.Reshape, value, result_types=type_.with_shape(shape))


def permuted(builder: Builder, value: Value, order: Sequence[int]) -> Value:
    """A value whose dimension k is `order[k]` of what is given."""
    if list(order) == list(range(len(order))):
        return value
    return builder.value(graph.Permute, value, permutation=list(order))


def in_rows(builder: Builder, value: Value, order: Sequence[int]) -> Value:
    """A permutation of a value that lies row by row; where the value lies as that does, nothing is
    moved."""
    turned = permuted(builder, value, order)
    strides = A.DimsAttr(contiguous_strides(tensor_type(turned).shape))
    copied: Value = builder.value(graph.Copy, turned, eager_strides=A.ArrayAttr([strides]))
    return copied


def cut(builder: Builder, value: Value, shape: Sequence[Dim]) -> Value:
    """The first elements of each dimension, so many as `shape` has."""
    for dim, size in enumerate(shape):
        type_ = tensor_type(value)
        if type_.shape[dim] != size:
            smaller = graph.replace_size(type_, dim, size)
            value = builder.value(
                graph.Slice, value, dim=dim, start=0, step=1, result_types=smaller
            )
    return value


def with_zeros(
    builder: Builder, value: Value, high: Sequence[Dim], low: Sequence[Dim] | None = None
) -> Value:
    """A value with so many zeros behind each dimension, and before it."""
    low = [0] * len(high) if low is None else low
    if not any(size != 0 for size in (*low, *high)):
        return value
    type_ = tensor_type(value)
    sizes = zip(low, type_.shape, high, strict=True)
    return builder.value(
        graph.Pad, value, low=list(low), high=list(high),
        value=graph.scalar_attribute(0, type_.element),
        result_types=type_.with_shape([before + size + behind for before, size, behind in sizes]),
    )  # fmt: skip


def matrix_product(
    builder: Builder, left: Value, right: Value, added: Value | None = None
) -> Value:
    """A call of the library's product of two matrices; `added` is a row that each of its rows gets
    in addition."""
    factors = {"self" if added is None else "mat1": left, "mat2": right}
    operands = factors if added is None else {"self": added, **factors}
    shape = tensor_type(left).shape[0], tensor_type(right).shape[1]
    entries: dict[str, A.Attribute] = {
        "callee": A.StringAttr("aten.mm.default" if added is None else "aten.addmm.default"),
        "arguments": A.DictAttr({name: aten.OperandAttr(k) for k, name in enumerate(operands)}),
        "eager_strides": A.ArrayAttr([A.DimsAttr(contiguous_strides(shape))]),
    }
    result: TensorType = tensor_type(left).with_shape(shape)
    call = graph.CallAten(list(operands.values()), [result], entries, (), builder.location)
    return builder.insert(call).results[0]


__all__ = ["cut", "in_rows", "matrix_product", "permuted", "reshaped", "with_zeros"]
