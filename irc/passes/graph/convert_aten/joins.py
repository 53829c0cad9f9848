"""Operators that join tensors, put elements around them, or repeat them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irc.dialects import graph
from irc.ir.core import Value
from irc.ir.symbols import Dim, dim_product, dim_sum
from irc.ir.types import ComplexType
from irc.passes.graph.convert_aten.support import (
    Call,
    converts,
    decline,
    element_of,
    moved_source,
    normalized,
    rank_of,
    shape_of,
    wrapped,
)


@converts("aten.cat.default", "aten.concat.default", "aten.extern.prims.cat.default")
def cat(c: Call) -> Value:
    rank = c.result.rank
    dim = normalized(c.dim, rank)
    tensors = c.arguments["tensors"]
    parts = []
    for tensor in tensors:
        if isinstance(element_of(tensor), ComplexType):
            decline("complex elements are moved by ATen")
        if shape_of(tensor) == (0,) and rank != 1:
            continue  # torch lets an empty tensor of rank 1 join anything
        part = c.cast(tensor, c.result.element)
        shape = [shape_of(part)[d] if d == dim else s for d, s in enumerate(c.result.shape)]
        parts.append(c.broadcast(part, shape))
    if not parts:
        return c.full(0, c.result)
    return concat(c, parts, dim)


def concat(c: Call, parts: Sequence[Value], dim: int) -> Value:
    """`graph.concat`, in the shape of the result."""
    if len(parts) == 1:
        return c.broadcast(parts[0], c.result.shape)
    joined = dim_sum([shape_of(p)[dim] for p in parts])
    if joined != c.result.shape[dim]:
        type_ = graph.replace_size(c.result, dim, joined)
        value = c.emit(graph.Concat, list(parts), dim=dim, result_types=type_)
        return c.broadcast(value, c.result.shape)
    return c.emit(graph.Concat, list(parts), dim=dim, result_types=c.result)


@converts("aten.stack.default")
def stack(c: Call) -> Value:
    dim = normalized(c.dim, c.result.rank)
    parts = []
    for tensor in c.tensors:
        if isinstance(element_of(tensor), ComplexType):
            decline("complex elements are moved by ATen")
        shape = [1 if d == dim else s for d, s in enumerate(c.result.shape)]
        parts.append(c.reshape(c.cast(tensor, c.result.element), shape))
    return concat(c, parts, dim)


@converts("aten.constant_pad_nd.default")
def constant_pad(c: Call) -> Value:
    source = moved_source(c)
    rank = rank_of(source)
    low: list[Dim] = [0] * rank
    high: list[Dim] = [0] * rank
    for k in range(len(c.pad) // 2):
        low[rank - 1 - k], high[rank - 1 - k] = c.pad[2 * k], c.pad[2 * k + 1]
    return pad(c, source, low, high, c.value)


def pad(c: Call, source: Value, low: Sequence[Dim], high: Sequence[Dim], value: Any) -> Value:
    """`graph.pad` with a constant."""
    if not isinstance(value, bool | int | float):
        decline("the padding is not a constant")
    element = element_of(source)
    attribute = graph.scalar_attribute(wrapped(value, element), element)
    return c.emit_typed(
        graph.Pad, source, c.result, low=list(low), high=list(high), value=attribute
    )


@converts("aten.repeat.default", "aten.tile.default")
def repeat(c: Call) -> Value:
    source = moved_source(c)
    repeats = list(c.one_of("repeats", "dims"))
    rank = max(len(repeats), rank_of(source))
    repeats = [1] * (rank - len(repeats)) + repeats
    sizes: list[Dim] = [*[1] * (rank - rank_of(source)), *shape_of(source)]
    wide: list[Dim] = []
    dims = []
    for position, (times, size) in enumerate(zip(repeats, sizes, strict=True)):
        wide.append(times)
        if position >= rank - rank_of(source):
            dims.append(len(wide))
        wide.append(size)
    type_ = source.type.with_shape(wide)  # type: ignore[attr-defined]
    spread = c.emit_typed(graph.Broadcast, source, type_, dims=dims)
    return c.reshape(spread, c.result.shape)


@converts("aten.repeat_interleave.self_int")
def repeat_interleave(c: Call) -> Value:
    source = moved_source(c)
    if c.dim is None:
        source = c.reshape(source, (dim_product(shape_of(source)),))
    dim = normalized(0 if c.dim is None else c.dim, rank_of(source))
    shape = list(shape_of(source))
    wide = [*shape[: dim + 1], c.repeats, *shape[dim + 1 :]]
    dims = [d if d <= dim else d + 1 for d in range(len(shape))]
    type_ = source.type.with_shape(wide)  # type: ignore[attr-defined]
    spread = c.emit_typed(graph.Broadcast, source, type_, dims=dims)
    return c.reshape(spread, c.result.shape)
