"""Operators that move elements by index: gather, advanced indexing, scatter, embedding."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from irc.dialects import graph
from irc.dialects.graph.indexing import take_shape
from irc.ir.core import Value
from irc.ir.symbols import Dim, dim_product
from irc.ir.types import ComplexType, IntegerType, TensorType, i1, i32, i64
from irc.passes.graph.convert_aten.support import (
    Call,
    compute_element,
    converts,
    decline,
    element_of,
    is_float,
    normalized,
    rank_of,
    shape_of,
)


def _source(c: Call, name: str = "self") -> Value:
    value = c.arguments[name]
    if isinstance(element_of(value), ComplexType):
        decline("complex elements are moved by ATen")
    return value


def as_index(c: Call, index: Value) -> Value:
    """An index tensor in a type that indexing has."""
    if element_of(index) in (i32, i64):
        return index
    if not isinstance(element_of(index), IntegerType) or element_of(index) is i1:
        decline("the index is not an integer tensor")
    return c.cast(index, i64)


def _checked(c: Call, error: str = "IndexError") -> dict[str, Any]:
    """The attributes of an operation that checks its indices. error: what ATen raises, unless the
    operator stands for another one, which the importer has noted."""
    noted = c.op.attributes.get("error")
    error = error if noted is None else noted.value
    return {"check_bounds": True} | ({} if error == "IndexError" else {"error": error})


def wrapped_index(c: Call, index: Value, size: Dim) -> Value:
    """Negative positions counted from the end."""
    index = as_index(c, index)
    zero = c.full(0, index)
    negative = c.pointwise("lt", index, zero)
    return c.select(negative, c.pointwise("add", index, c.full(size, index)), index)


def broadcast_shapes(shapes: Sequence[Sequence[Dim]]) -> tuple[Dim, ...]:
    """The common shape of several, dimensions aligned from the right."""
    rank = max(len(s) for s in shapes)
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for position, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                result[position] = size
    return tuple(result)


def advanced(c: Call, source: Value, indices: Sequence[Any]) -> tuple[list[Value], list[int], int]:
    """Index tensors of one shape (negative ones wrapped), their dimensions, and where the index
    dimensions go in the result."""
    dims = [d for d, index in enumerate(indices) if index is not None]
    if len(indices) > rank_of(source):
        decline("there are more indices than dimensions, and ATen raises")
    tensors = [indices[d] for d in dims]
    if any(element_of(t) is i1 or getattr(element_of(t), "unsigned", False) for t in tensors):
        decline("an index by a mask has a size that depends on data")
    shape = broadcast_shapes([shape_of(t) for t in tensors])
    positions = []
    for dim, tensor in zip(dims, tensors, strict=True):
        wide = wrapped_index(c, tensor, shape_of(source)[dim])
        wide = c.cast(wide, i64)
        positions.append(c.broadcast(wide, shape))
    adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
    return positions, dims, dims[0] if adjacent else 0


@converts("aten.index.Tensor", checked=True)
@converts("aten._unsafe_index.Tensor", checked=False)
def index_(c: Call, *, checked: bool) -> Value:
    source = _source(c)
    if all(i is None for i in c.indices):
        return source
    indices, dims, position = advanced(c, source, c.indices)
    if checked:
        rest = _checked(c)
    elif any(shape_of(source)[d] == 0 for d in dims):
        rest = _checked(c, "RuntimeError")  # an image without pixels, of which ATen makes none
    else:
        rest = {}
    value = c.emit(graph.Take, source, indices, dims=dims, position=position, **rest)
    return c.broadcast(value, c.result.shape)


@converts("aten.index_put.default", checked=True)
@converts("aten._unsafe_index_put.default", checked=False)
def index_put(c: Call, *, checked: bool) -> Value:
    source = _source(c)
    if element_of(c.arguments["values"]) is not element_of(source):
        decline("values of another dtype are refused by ATen")
    tensors = [i for i in c.indices if i is not None]
    if len(tensors) == 1 and element_of(tensors[0]) is i1 and not c.accumulate:
        return _masked_put(c, source, tensors[0])
    indices, dims, position = advanced(c, source, c.indices)
    shape = graph_take_shape(source, indices[0], dims, position)
    values = c.broadcast(c.cast(c.arguments["values"], c.result.element), shape)
    combiner = "sum" if c.accumulate else "set"
    if c.accumulate and element_of(source) is i1:
        decline("adding bools is ATen's")
    element = compute_element(element_of(source)) if c.accumulate else element_of(source)
    value = c.emit(
        graph.Put, c.cast(source, element), c.cast(values, element), indices, dims=dims,
        position=position, combiner=combiner,
        **(_checked(c) if checked else {}),
    )  # fmt: skip
    return c.finish(value)


def graph_take_shape(
    source: Value, index: Value, dims: Sequence[int], position: int
) -> tuple[Dim, ...]:
    """The sizes that advanced indexing of `source` gives."""
    return take_shape(shape_of(source), shape_of(index), dims, position)


def _masked_put(c: Call, source: Value, mask: Value) -> Value:
    """x[mask] = one value: a choice between it and the old elements."""
    values = c.arguments["values"]
    if any(s != 1 for s in shape_of(values)):
        decline("the number of values depends on data")
    first = next(d for d, i in enumerate(c.indices) if i is not None)
    dims = list(range(first, first + rank_of(mask)))
    mask = c.agree(mask, [c.result.shape[d] for d in dims])
    type_ = mask.type.with_shape(c.result.shape)  # type: ignore[attr-defined]
    if shape_of(mask) != c.result.shape:
        mask = c.emit_typed(graph.Broadcast, mask, type_, dims=dims)
    value = c.reshape(c.cast(values, c.result.element), ())
    return c.select(mask, c.broadcast(value, c.result.shape), source)


@converts("aten.gather.default")
def gather(c: Call) -> Value:
    source, index = _source(c), as_index(c, c.index)
    if not rank_of(source) or not rank_of(index):
        decline("a tensor of rank 0 is ATen's")
    if rank_of(source) != rank_of(index):
        # torch takes an index of another rank if it is empty, as the result then is.
        return c.full(0, c.result)
    dim = normalized(c.dim, rank_of(source))
    return c.emit(graph.Gather, source, index, dim=dim, **_checked(c, "RuntimeError"))


@converts("aten.index_select.default")
def index_select(c: Call) -> Value:
    source = _source(c)
    index = as_index(c, c.index)
    if not rank_of(source):
        return c.reshape(source, c.result.shape)
    if not rank_of(index):
        index = c.reshape(index, (1,))
    dim = normalized(c.dim, rank_of(source))
    return c.emit(
        graph.Take, source, [index], dims=[dim], position=dim, check_bounds=True
    )


@converts("aten.take.default")
def take(c: Call) -> Value:
    source = _source(c)
    size = dim_product(shape_of(source))
    flat = c.reshape(source, (size,))
    index = wrapped_index(c, c.index, size)
    return c.emit(graph.Take, flat, [index], dims=[0], position=0, check_bounds=True)


@converts("aten.embedding.default")
def embedding(c: Call) -> Value:
    weight = _source(c, "weight")
    index = as_index(c, c.indices)
    return c.emit(graph.Take, weight, [index], dims=[0], position=0, check_bounds=True)


@converts("aten.embedding_dense_backward.default")
def embedding_backward(c: Call) -> Value:
    """Gradients added up in the rows that were looked up, but for the padding's.

    On a GPU nothing is checked: the lookup was, and torch's own kernels there check nothing. What
    is no row adds nothing to the first one.
    """
    if c.scale_grad_by_freq:
        decline("scaling by frequency is ATen's")
    index = as_index(c, c.indices)
    gradient = c.compute(_source(c, "grad_output"))
    ignored = []
    if isinstance(c.padding_idx, int) and c.padding_idx >= 0:
        ignored.append(c.pointwise("eq", index, c.full(c.padding_idx, index)))
    checks = c.result.device == "cpu"
    if not checks:
        zero, size = c.full(0, index), c.full(c.result.shape[0], index)
        outside = c.pointwise("lt", index, zero), c.pointwise("ge", index, size)
        ignored += outside
        index = c.select(c.pointwise("or", *outside), zero, index)
    if ignored:
        mask = functools.reduce(functools.partial(c.pointwise, "or"), ignored)
        type_ = mask.type.with_shape(shape_of(gradient))  # type: ignore[attr-defined]
        mask = c.emit_typed(graph.Broadcast, mask, type_, dims=list(range(rank_of(index))))
        gradient = c.select(mask, c.full(0, gradient), gradient)
    zeros = c.full(0, c.result, element_of(gradient))
    value = c.emit(
        graph.Put, zeros, gradient, [index], dims=[0], position=0, combiner="sum",
        check_bounds=checks,
    )  # fmt: skip
    return c.finish(value)


# -- scatter


@converts("aten.scatter.src", "aten.scatter.value", combiner="set")
@converts("aten.scatter_add.default", combiner="sum")
def scatter(c: Call, *, combiner: str) -> Value:
    return _scatter(c, _source(c), combiner)


@converts("aten.scatter.reduce", "aten.scatter.value_reduce")
def scatter_combined(c: Call) -> Value:
    combiner = {"add": "sum", "multiply": "prod"}.get(c.arguments["reduce"])
    if combiner is None:
        decline(f"ATen has no '{c.arguments['reduce']}' of elements")
    return _scatter(c, _source(c), combiner)


def _scatter(c: Call, source: Value, combiner: str) -> Value:
    index = as_index(c, c.index)
    if not rank_of(source) or rank_of(index) != rank_of(source):
        decline("a tensor of rank 0 is ATen's")
    element = element_of(source)
    if element is i1 and combiner in ("sum", "prod", "min", "max"):
        decline("combining bools is ATen's")
    if combiner != "set":
        element = compute_element(element)
    value = c.one_of("src", "value")
    if isinstance(value, Value) and isinstance(value.type, TensorType):
        value = c.cast(value, element)
        for dim, size in enumerate(shape_of(index)):
            if shape_of(value)[dim] != size:
                value = c.slice(value, dim, 0, size)
    else:
        value = c.full(value, index, element)
    dim = normalized(c.dim, rank_of(source))
    result = c.emit(
        graph.Scatter, c.cast(source, element), index, value, dim=dim, combiner=combiner,
        **_checked(c, "RuntimeError"),
    )  # fmt: skip
    return c.finish(result)


@converts("aten.scatter_reduce.two")
def scatter_reduce(c: Call) -> Value:
    names = {"sum": "sum", "prod": "prod", "amax": "max", "amin": "min"}
    combiner = names.get(c.arguments["reduce"])
    if combiner is None:
        decline("a mean is ATen's")
    source = _source(c)
    if c.include_self:
        return _scatter(c, source, combiner)
    # The elements that are written start from the combiner's identity.
    element = element_of(source)
    index = as_index(c, c.index)
    if not rank_of(source) or element is i1:
        decline("a tensor of rank 0 or of bools is ATen's")
    identity = c.full(identity_of(combiner, element), index, element)
    dim = normalized(c.dim, rank_of(source))
    cleared = c.emit(
        graph.Scatter, source, index, identity, dim=dim, combiner="set",
        **_checked(c, "RuntimeError"),
    )  # fmt: skip
    return _scatter(c, cleared, combiner)


def identity_of(combiner: str, element: Any) -> Any:
    """The element that changes nothing when it is combined."""
    if combiner in ("sum", "prod"):
        return 0 if combiner == "sum" else 1
    if is_float(element):
        return float("-inf") if combiner == "max" else float("inf")
    bits = element.width if element.unsigned else element.width - 1
    largest = (1 << bits) - 1
    smallest = 0 if element.unsigned else -largest - 1
    return smallest if combiner == "max" else largest


@converts("aten.index_add.default")
def index_add(c: Call) -> Value:
    source = _source(c)
    if not rank_of(source) or element_of(source) is i1:
        decline("a tensor of rank 0 or of bools is ATen's")
    if element_of(c.arguments["source"]) is not element_of(source):
        decline("a source of another dtype is refused by ATen")
    if 0 in shape_of(c.arguments["source"]):
        return source  # nothing is read, and no index looked at
    element = compute_element(element_of(source))
    part = c.cast(c.arguments["source"], element)
    if not (isinstance(c.alpha, int | float) and c.alpha == 1):
        part = c.pointwise("mul", part, c.full(c.alpha, part))
    # ATen takes rows apart by an operator of their own, which raises another class.
    error = "RuntimeError" if rank_of(source) > 1 else "IndexError"
    return _put_along(c, c.cast(source, element), part, "sum", error=error)


@converts("aten.index_copy.default")
def index_copy(c: Call) -> Value:
    source = _source(c)
    if not rank_of(source):
        decline("a tensor of rank 0 is ATen's")
    if element_of(c.arguments["source"]) is not element_of(source):
        decline("a source of another dtype is refused by ATen")
    return _put_along(c, source, c.arguments["source"], "set")


@converts("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(c: Call) -> Value:
    source = _source(c)
    if not rank_of(source):
        decline("a tensor of rank 0 is ATen's")
    dim = normalized(c.dim, rank_of(source))
    count = shape_of(c.index)[0] if rank_of(c.index) else 1
    shape = [count if d == dim else s for d, s in enumerate(shape_of(source))]
    part = c.operand(c.value, shape, element_of(source))
    return _put_along(c, source, part, "set", wrap=True)


def _put_along(
    c: Call,
    source: Value,
    part: Value,
    combiner: str,
    *,
    wrap: bool = False,
    error: str = "IndexError",
) -> Value:
    dim = normalized(c.dim, rank_of(source))
    index = wrapped_index(c, c.index, shape_of(source)[dim]) if wrap else as_index(c, c.index)
    if not rank_of(index):
        index = c.reshape(index, (1,))
    shape = graph_take_shape(source, index, [dim], dim)
    part = c.reshape(part, shape) if rank_of(part) != len(shape) else part
    result = c.emit(
        graph.Put, source, c.broadcast(part, shape), [index], dims=[dim], position=dim,
        combiner=combiner, **_checked(c, error),
    )  # fmt: skip
    return c.finish(result)


@converts("aten.isin.Tensor_Tensor")
def isin(c: Call) -> Value:
    """Each element compared with each test element."""
    elements, tests = c.elements, c.test_elements
    if any(isinstance(element_of(v), ComplexType) for v in (elements, tests)):
        decline("complex elements are ATen's")
    element = compute_element(c.promoted(elements, tests))
    count = dim_product(shape_of(tests))
    shape = (*shape_of(elements), count)
    x = c.cast(elements, element)
    spread = x.type.with_shape(shape)  # type: ignore[attr-defined]
    left = c.emit_typed(graph.Broadcast, x, spread, dims=list(range(rank_of(x))))
    right = c.broadcast(c.reshape(c.cast(tests, element), (count,)), shape)
    member = c.reduce("any", c.pointwise("eq", left, right), [len(shape) - 1])
    return c.pointwise("not", member) if c.invert else member


@converts("aten.histc.default")
def histc(c: Call) -> Value:
    """Each element adds 1 to its bin; those outside of [min, max] add 0 to the first."""
    low, high, bins = c.min, c.max, c.bins
    if not isinstance(low, int | float) or not isinstance(high, int | float) or low >= high:
        decline("the range depends on data")
    x = c.compute(_source(c))
    x = c.reshape(x, (dim_product(shape_of(x)),))
    inside = c.pointwise("ge", x, c.full(low, x))
    inside = c.pointwise("and", inside, c.pointwise("le", x, c.full(high, x)))
    x = c.select(inside, x, c.full(low, x))
    scaled = c.pointwise("mul", c.pointwise("sub", x, c.full(low, x)), c.full(bins, x))
    function = "div" if is_float(element_of(x)) else "trunc_div"
    place = c.cast(c.pointwise(function, scaled, c.full(high - low, x)), i64)
    place = c.pointwise("minimum", place, c.full(bins - 1, place))
    element = compute_element(c.result.element)
    ones = c.cast(inside, element)
    zeros = c.full(0, c.result, element)
    counts = c.emit(graph.Put, zeros, ones, [place], dims=[0], position=0, combiner="sum")
    return c.finish(counts)
