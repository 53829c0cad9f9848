"""Operators that only rearrange elements: views, parts, reversals."""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import graph
from irc.ir.core import Value
from irc.ir.symbols import dim_product, from_start
from irc.ir.types import TensorType, contiguous_strides
from irc.passes.graph.convert_aten.positions import element_position, slice_start
from irc.passes.graph.convert_aten.support import (
    Call,
    converts,
    decline,
    moved_source,
    normalized,
    rank_of,
    shape_of,
)


@converts("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default",
          "aten._reshape_alias.default", "aten.view_copy.default", "aten.view_as.default",
          "aten.reshape_as.default", "aten.flatten.using_ints", "aten.unflatten.int",
          "aten.squeeze.default", "aten.squeeze_copy.default",
          "aten.extern.prims.view_of.default", "aten.ravel.default",
          "aten.extern.prims.squeeze.default", "aten.extern.prims.collapse_view.default",
          "aten.extern.prims.split_dim.default", "aten.atleast_1d.default",
          "aten.atleast_2d.default")  # fmt: skip
def reshape(c: Call) -> Value:
    return c.reshape(moved_source(c), c.result.shape)


@converts("aten.unsqueeze.default", "aten.unsqueeze_copy.default", more=1)
@converts("aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze_copy.dim",
          "aten.squeeze_copy.dims", more=0)  # fmt: skip
def at_dimensions(c: Call, *, more: int) -> Value:
    """Dimensions of size 1 that go, or come."""
    source = moved_source(c)
    for dim in c.dim if isinstance(c.dim, list) else [c.dim]:
        normalized(dim, rank_of(source) + more)
    return c.reshape(source, c.result.shape)


@converts("aten.permute.default", "aten.permute_copy.default",
          "aten.extern.prims.transpose.default")  # fmt: skip
def permute(c: Call) -> Value:
    source = moved_source(c)
    order = [normalized(d, rank_of(source)) for d in c.one_of("dims", "permutation")]
    if sorted(order) != list(range(rank_of(source))):
        decline(f"{order} is no permutation of {rank_of(source)} dimensions")
    return c.permute(source, order)


@converts("aten.transpose.int", "aten.transpose_copy.int", "aten.swapaxes.default",
          "aten.swapdims.default")  # fmt: skip
def transpose(c: Call) -> Value:
    names = [n for n in c.arguments if n != "self"]
    first, second = (normalized(c.arguments[n], rank_of(c.self_)) for n in names)
    order = list(range(rank_of(c.self_)))
    if order:
        order[first], order[second] = order[second], order[first]
    return c.permute(moved_source(c), order)


@converts("aten.numpy_T.default")
def reversed_dims(c: Call) -> Value:
    return c.permute(moved_source(c), list(range(rank_of(c.self_)))[::-1])


@converts("aten.t.default", "aten.t_copy.default", "aten.mT.default", "aten.adjoint.default",
          "aten.mH.default", "aten.matrix_H.default")  # fmt: skip
def matrix_transpose(c: Call) -> Value:
    rank = rank_of(c.self_)
    order = list(range(rank))
    if rank >= 2:
        order[-2:] = [rank - 1, rank - 2]
    return c.permute(moved_source(c), order)


@converts("aten.movedim.intlist", "aten.movedim.int")
def movedim(c: Call) -> Value:
    rank = rank_of(c.self_)
    as_list = lambda v: v if isinstance(v, list) else [v]  # noqa: E731
    sources = [normalized(d, rank) for d in as_list(c.source)]
    targets = [normalized(d, rank) for d in as_list(c.destination)]
    order = [d for d in range(rank) if d not in sources]
    for target, source in sorted(zip(targets, sources, strict=True)):
        order.insert(target, source)
    return c.permute(moved_source(c), order)


@converts("aten.expand.default", "aten.expand_copy.default", "aten.expand_as.default",
          "aten.broadcast_to.default")  # fmt: skip
def expand(c: Call) -> Value:
    return c.broadcast(moved_source(c), c.result.shape)


@converts("aten.extern.prims.broadcast_in_dim.default")
def broadcast_in_dim(c: Call) -> Value:
    source = moved_source(c)
    dims = list(c.broadcast_dimensions)
    if shape_of(source) == c.result.shape:
        return source
    return c.emit_typed(graph.Broadcast, source, c.result, dims=dims)


@converts("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(c: Call) -> Value:
    source = moved_source(c)
    dim = normalized(c.dim, rank_of(source))
    size = shape_of(source)[dim]
    start = slice_start(c, c.start, c.end, size, c.result.shape[dim], c.step)
    if isinstance(c.step, int):
        return c.slice(source, dim, start, c.result.shape[dim], c.step)
    # The elements of a row-major tensor at a stride that is a symbol.
    strides = list(contiguous_strides(shape_of(source)))
    offset = start * strides[dim]
    strides[dim] = strides[dim] * c.step
    return c.emit_typed(graph.StridedWindow, source, c.result, strides=strides, offset=offset)


@converts("aten.select.int", "aten.select_copy.int")
def select(c: Call) -> Value:
    source = moved_source(c)
    dim = normalized(c.dim, rank_of(source))
    index = element_position(c, c.index, shape_of(source)[dim])
    return c.reshape(c.slice(source, dim, index, 1), c.result.shape)


@converts("aten.narrow.default", "aten.narrow_copy.default")
def narrow(c: Call) -> Value:
    source = moved_source(c)
    dim = normalized(c.dim, rank_of(source))
    start = from_start(c.start, shape_of(source)[dim], c.ranges)
    return c.slice(source, dim, start, c.length)


@converts("aten.split.Tensor", "aten.split_with_sizes.default",
          "aten.split_with_sizes_copy.default", "aten.split_copy.Tensor",
          "aten.chunk.default", "aten.unsafe_split.Tensor", "aten.unsafe_chunk.default",
          "aten.tensor_split.sections", "aten.split.sizes",
          "aten.unsafe_split_with_sizes.default", "aten.tensor_split.indices")  # fmt: skip
def split(c: Call) -> Sequence[Value]:
    source = moved_source(c)
    dim = normalized(c.dim, rank_of(source))
    parts, start = [], 0
    for type_ in c.result_types:
        size = type_.shape[dim]  # type: ignore[attr-defined]
        parts.append(c.slice(source, dim, start, size))
        start = start + size
    return parts


@converts("aten.unbind.int", "aten.unbind_copy.int")
def unbind(c: Call) -> Sequence[Value]:
    source = moved_source(c)
    dim = normalized(c.dim, rank_of(source))
    return [
        c.reshape(c.slice(source, dim, k, 1), type_.shape)  # type: ignore[attr-defined]
        for k, type_ in enumerate(c.result_types)
    ]


@converts("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(c: Call) -> Value:
    source = moved_source(c)
    first, second = (normalized(d, rank_of(source)) for d in (c.dim1, c.dim2))
    return c.emit_typed(
        graph.Diagonal, source, c.result, offset=c.offset, dim1=first, dim2=second
    )


@converts("aten.diag_embed.default")
def diag_embed(c: Call) -> Value:
    first, second = (normalized(d, c.result.rank) for d in (c.dim1, c.dim2))
    return c.emit_typed(
        graph.DiagonalEmbed, moved_source(c), c.result, offset=c.offset, dim1=first, dim2=second
    )


@converts("aten.unfold.default", "aten.unfold_copy.default")
def unfold(c: Call) -> Value:
    source = moved_source(c)
    if not rank_of(source):
        return c.reshape(source, c.result.shape)
    if not isinstance(c.step, int):
        decline("the step is symbolic")
    dim = normalized(c.dimension, rank_of(source))
    return c.emit_typed(graph.Window, source, c.result, dim=dim, step=c.step, dilation=1)


@converts("aten.flip.default", "aten.extern.prims.rev.default")
def flip(c: Call) -> Value:
    source = moved_source(c)
    dims = sorted({normalized(d, rank_of(source)) for d in c.dims})
    return c.emit(graph.Reverse, source, dims=dims) if dims and rank_of(source) else source


def _turned_round(c: Call, value: Value, dim: int, size: int, shift: int) -> Value:
    """The slices along a dimension in another order, the last `shift` of them first."""
    if not shift:
        return value
    type_ = value.type
    assert isinstance(type_, TensorType)
    line = type_.with_shape((size,))
    place = c.iota(0, line)
    later = c.pointwise("add", place, c.full(size - shift, place))
    earlier = c.pointwise("add", place, c.full(-shift, place))
    first = c.pointwise("lt", place, c.full(shift, place))
    index = c.select(first, later, earlier)
    return c.emit(graph.Take, value, [index], dims=[dim], position=dim)


@converts("aten.roll.default")
def roll(c: Call) -> Value:
    value = source = moved_source(c)
    shifts, dims = list(c.shifts), list(c.dims)
    if not dims:
        value, dims = c.reshape(source, (dim_product(shape_of(source)),)), [0]
    for shift, dim in zip(shifts, dims, strict=True):
        dim = normalized(dim, rank_of(value))
        size = shape_of(value)[dim]
        if size == 0 or not rank_of(value):
            continue
        if isinstance(size, int) and dim < rank_of(value) - 1:
            # One read at places that are chosen, the same for all elements of a row.
            value = _turned_round(c, value, dim, size, shift % size)
            continue
        start = (size - shift) % size
        parts = [
            c.slice(value, dim, start, size - start),
            c.slice(value, dim, 0, start),
        ]
        value = c.emit(graph.Concat, parts, dim=dim, result_types=value.type)
    return c.reshape(value, c.result.shape)
