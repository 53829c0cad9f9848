"""Pooling: maxima and means over windows, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from irc.dialects import graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir.core import Value
from irc.ir.symbols import Dim, ceildiv, dim_product, maximum, minimum
from irc.ir.types import ComplexType, i1, i32, i64
from irc.passes.graph.convert_aten.indexing import identity_of
from irc.passes.graph.convert_aten.support import (
    Call,
    converts,
    decline,
    element_of,
    float_tensor,
    rank_of,
    shape_of,
    wrapped,
)


def _pairs(value: Any, count: int, default: Any = None) -> list[Any]:
    sizes = list(value) if isinstance(value, list) else [value]
    if not sizes and default is not None:
        sizes = list(default)
    return sizes * count if len(sizes) == 1 else sizes


def windows(
    c: Call, source: Value, kernel: Sequence[Dim], stride: list[int], padding: list[int],
    dilation: list[int], outside: float,
) -> Value:  # fmt: skip
    """The source with a new last dimension per pooled dimension, over its windows; positions
    outside of the source are `outside`."""
    count = len(kernel)
    rank = rank_of(source)
    result_sizes = c.result.shape[-count:]
    low: list[Dim] = [0] * rank
    high: list[Dim] = [0] * rank
    for k in range(count):
        dim = rank - count + k
        low[dim] = high[dim] = padding[k]
        if c.arguments.get("ceil_mode"):
            last = (result_sizes[k] - 1) * stride[k] + (kernel[k] - 1) * dilation[k] + 1
            high[dim] = maximum(last - shape_of(source)[dim] - padding[k], 0)
    if any(p != 0 for p in (*low, *high)):
        element = element_of(source)
        value = graph.scalar_attribute(wrapped(outside, element), element)
        source = c.emit(graph.Pad, source, low=low, high=high, value=value)
    for k in range(count):
        type_ = graph.replace_size(tensor_type(source), rank - count + k, result_sizes[k])
        shape = (*type_.shape, kernel[k])
        source = c.emit_typed(
            graph.Window, source, type_.with_shape(shape), dim=rank - count + k, step=stride[k],
            dilation=dilation[k],
        )  # fmt: skip
    return source


@converts("aten.max_pool2d_with_indices.default", count=2)
@converts("aten.max_pool3d_with_indices.default", count=3)
def max_pool(c: Call, *, count: int) -> Sequence[Value | None]:
    window = _window(c, count)
    if not c.op.results[1].has_uses:
        return [_maxima(c, *window)[0], None]
    best, place = _placed_maxima(c, *window)
    return [best, _flat_position(c, place, shape_of(c.self_), *window)]


@converts("aten.extern.irc.max_pool_places.default")
def max_pool_places(c: Call) -> Sequence[Value]:
    best, place = _placed_maxima(c, *_window(c, len(c.kernel_size)))
    return [best, c.cast(place, c.result_at(1).element)]


def _window(c: Call, count: int) -> tuple[list[int], list[int], list[int], list[int]]:
    """The sizes, steps, paddings and dilations of windows of so many dimensions."""
    kernel = _pairs(c.kernel_size, count)
    stride = _pairs(c.stride, count, kernel)
    return kernel, stride, _pairs(c.padding, count), _pairs(c.dilation, count)


def _maxima(
    c: Call, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int]
) -> tuple[Value, Value, Value, int | float]:
    """The maxima of windows, in the result's type and in the one they are compared in, the windows,
    and what stands in their padding, as low as any element."""
    count = len(kernel)
    source = c.arguments["self"]
    if isinstance(element_of(source), ComplexType) or element_of(source) is i1:
        decline("not a tensor of numbers")
    value = c.compute(source)
    lowest = identity_of("max", element_of(value))
    view = windows(c, value, kernel, stride, padding, dilation, lowest)
    best = c.reduce("max", view, list(range(rank_of(view) - count, rank_of(view))))
    return c.finish(best), best, view, lowest


def _placed_maxima(
    c: Call, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int]
) -> tuple[Value, Value]:
    """The maxima of windows, and where in its window each is, in order of elements: if nothing is
    above the padding, where the window's first element is, as in ATen."""
    result, best, view, lowest = _maxima(c, kernel, stride, padding, dilation)
    dims = list(range(rank_of(view) - len(kernel), rank_of(view)))
    place = c.emit(graph.ArgReduce, view, combiner="argmax", dims=dims)
    if any(padding):
        first = _first_elements(c, place, kernel, stride, padding, dilation)
        place = c.select(c.pointwise("eq", best, c.full(lowest, best)), first, place)
    return result, place


def _first_elements(
    c: Call, place: Value, kernel: list[int], stride: list[int], padding: list[int],
    dilation: list[int],
) -> Value:  # fmt: skip
    """Where in each window the first element is that is no padding."""
    count, rank = len(kernel), rank_of(place)
    total = zero = c.full(0, place)
    for k in range(count):
        before = c.pointwise("mul", c.iota(rank - count + k, place), c.full(stride[k], place))
        outside = c.pointwise("sub", c.full(padding[k] + dilation[k] - 1, place), before)
        skipped = c.pointwise("floor_div", outside, c.full(dilation[k], place))
        step = c.full(math.prod(kernel[k + 1 :]), place)
        skipped = c.pointwise("mul", c.pointwise("maximum", skipped, zero), step)
        total = c.pointwise("add", total, skipped)
    return total


@converts("aten.max_pool2d_with_indices_backward.default", count=2)
@converts("aten.max_pool3d_with_indices_backward.default", count=3)
def max_pool_backward(c: Call, *, count: int) -> Value:
    """The gradients of a plane's windows, added up where their maxima were.

    On a GPU, as torch does it there, each element looks at the few windows that it lies in: what
    others would have to add to it at the same time, and in any order, it adds itself.
    """
    gradient = float_tensor(c, c.grad_output)
    window = _window(c, count)
    if c.result.device != "cpu" and _is_looked_up(c, *window):
        return _looked_up(c, gradient, c.indices, _own_positions, *window)
    return _scattered(c, gradient, c.indices, count, is_checked=True)


@converts("aten.extern.irc.max_pool_places_backward.default")
def max_pool_places_backward(c: Call) -> Value:
    """As above, and on a CPU, too, each element of images with their channels innermost looks at
    its windows."""
    gradient = float_tensor(c, c.grad_output)
    window = _window(c, len(c.kernel_size))
    if (c.result.device != "cpu" or c.channels_innermost) and _is_looked_up(c, *window):
        return _looked_up(c, gradient, c.cast(c.places, i32), _own_places, *window)
    positions = _flat_position(c, c.cast(c.places, i32), c.result.shape, *window)
    return _scattered(c, gradient, positions, len(c.kernel_size), is_checked=False)


def _scattered(
    c: Call, gradient: Value, positions: Value, count: int, *, is_checked: bool
) -> Value:
    """Zeros with the gradients of windows added at their positions in planes."""
    outer, window = shape_of(gradient)[:-count], dim_product(shape_of(gradient)[-count:])
    plane = dim_product(c.result.shape[-count:])
    zeros = c.full(0, c.result.with_shape((*outer, plane)), element_of(gradient))
    parts = [c.reshape(v, (*outer, window)) for v in (positions, gradient)]
    sums = c.emit(
        graph.Scatter, zeros, *parts, dim=len(outer), combiner="sum", check_bounds=is_checked
    )
    return c.finish(c.reshape(sums, c.result.shape))


def _several(kernel: list[int], stride: list[int], dilation: list[int]) -> list[int]:
    """In how many windows an element lies along each dimension."""
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    return [-(-r // s) for r, s in zip(reach, stride, strict=True)]


def _is_looked_up(
    c: Call, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int]
) -> bool:
    return math.prod(_several(kernel, stride, dilation)) <= c.figures.seen_windows


def _looked_up(
    c: Call, gradient: Value, places: Value, own: Callable[..., Value], kernel: list[int],
    stride: list[int], padding: list[int], dilation: list[int],
) -> Value:  # fmt: skip
    """For each element the sum over the windows that it lies in and whose maximum it is. `places`:
    where maxima are; `own`: what says so of each element in each of its windows."""
    count, rank = len(kernel), rank_of(gradient)
    several = _several(kernel, stride, dilation)
    for k in range(count):
        size, dim = c.result.shape[rank - count + k], rank - count + k
        steps = several[k], stride[k], padding[k]
        gradient = _windows_of_elements(c, gradient, dim, size, *steps, outside=0)
        places = _windows_of_elements(c, places, dim, size, *steps, outside=-1)
    mine = own(c, places, rank, kernel, stride, padding, dilation)
    parts = c.select(c.pointwise("eq", places, mine), gradient, c.full(0, gradient))
    return c.finish(c.reduce("sum", parts, list(range(rank, rank + count))))


def _own_positions(
    c: Call, places: Value, rank: int, kernel: list[int], *window: list[int]
) -> Value:
    """Where in its plane each element is."""
    own = c.full(0, places)
    for dim in range(rank - len(kernel), rank):
        width = c.full(c.result.shape[dim], own)
        own = c.pointwise("add", c.pointwise("mul", own, width), c.iota(dim, own))
    return own


def _own_places(
    c: Call, places: Value, rank: int, kernel: list[int], stride: list[int], padding: list[int],
    dilation: list[int],
) -> Value:  # fmt: skip
    """Where each element is in each of its windows; -1 where it is in none."""
    count = len(kernel)
    several = _several(kernel, stride, dilation)
    own, none = c.full(0, places), c.full(-1, places)
    inside: list[Value] = []
    for k in range(count):
        dims = rank - count + k, rank + k
        at = _in_window(c, places, dims, stride[k], padding[k], several[k])
        if dilation[k] > 1:
            step = c.full(dilation[k], places)
            rest = c.pointwise("remainder", at, step)
            inside.append(c.pointwise("eq", rest, c.full(0, places)))
            at = c.pointwise("floor_div", at, step)
        inside.append(c.pointwise("lt", at, c.full(kernel[k], places)))
        own = c.pointwise("add", c.pointwise("mul", own, c.full(kernel[k], places)), at)
    for test in inside:
        own = c.select(test, own, none)
    return own


def _in_window(
    c: Call, like: Value, dims: tuple[int, int], stride: int, padding: int, several: int
) -> Value:
    """How far elements lie behind the beginning of each of the windows that they may lie in.
    `dims`: along which the elements are, and the windows, the earliest first."""
    at, window = (c.cast(c.iota(dim, like), i32) for dim in dims)
    at = c.pointwise("add", at, c.full(padding, at))
    at = c.pointwise("remainder", at, c.full(stride, at))
    later = c.pointwise("sub", c.full(several - 1, window), window)
    return c.pointwise("add", at, c.pointwise("mul", later, c.full(stride, later)))


def _windows_of_elements(
    c: Call, value: Value, dim: int, size: Dim, several: int, stride: int, padding: int, *,
    outside: int,
) -> Value:  # fmt: skip
    """What there is of each window along `dim`, for each of `size` elements and the windows that it
    lies in, a new last dimension; `outside` where there is no such window."""
    shape, rank = shape_of(value), rank_of(value)
    total = ceildiv(size + padding, stride)
    low: list[Dim] = [0] * rank
    high: list[Dim] = [0] * rank
    low[dim], high[dim] = several - 1, maximum(total - shape[dim], 0)
    element = element_of(value)
    number = graph.scalar_attribute(wrapped(outside, element), element)
    value = c.emit(graph.Pad, value, low=low, high=high, value=number)
    value = c.slice(value, dim, 0, total + several - 1)
    type_ = graph.replace_size(tensor_type(value), dim, total)
    type_ = type_.with_shape((*type_.shape, several))
    value = c.emit_typed(graph.Window, value, type_, dim=dim, step=1, dilation=1)
    wide = (*type_.shape[: dim + 1], stride, *type_.shape[dim + 1 :])
    kept = [k for k in range(rank + 2) if k != dim + 1]
    value = c.emit_typed(graph.Broadcast, value, type_.with_shape(wide), dims=kept)
    value = c.reshape(value, (*type_.shape[:dim], total * stride, *type_.shape[dim + 1 :]))
    return c.slice(value, dim, padding, size)


def _flat_position(
    c: Call, place: Value, shape: Sequence[Dim], kernel: list[int], stride: list[int],
    padding: list[int], dilation: list[int],
) -> Value:  # fmt: skip
    """The position in planes of a source of this shape for a position in the window."""
    count, rank = len(kernel), len(shape)
    total: Value | None = None
    for k in range(count):
        dim = rank - count + k
        inside, place = _divided(c, place, math.prod(kernel[k + 1 :]), kernel[k])
        start = c.iota(dim, place)
        at = c.pointwise("mul", start, c.full(stride[k], start))
        inside = c.cast(inside, i64)
        at = c.pointwise("add", at, c.pointwise("mul", inside, c.full(dilation[k], at)))
        if padding[k]:
            at = c.pointwise("sub", at, c.full(padding[k], at))
        if total is not None:
            total = c.pointwise("mul", total, c.full(shape[dim], total))
        total = at if total is None else c.pointwise("add", total, at)
    assert total is not None
    return total


def _divided(
    c: Call, value: Value, divisor: int, below: int, compared: int = 5
) -> tuple[Value, Value]:
    """Quotient and remainder of numbers from 0 to `divisor * below - 1`. Up to `compared` quotients
    are told apart by comparisons: a division takes a product of twice the width, and more for what
    may be below 0."""
    whole = c.full(divisor, value)
    if below == 1:
        return c.full(0, value), value
    if below <= compared:
        quotient = c.full(0, value)
        for k in range(1, below):
            reached = c.pointwise("ge", value, c.full(k * divisor, value))
            quotient = c.pointwise("add", quotient, c.cast(reached, element_of(value)))
    else:
        quotient = c.pointwise("floor_div", value, whole)
    return quotient, c.pointwise("sub", value, c.pointwise("mul", quotient, whole))


@converts("aten.avg_pool1d.default", count=1)
@converts("aten.avg_pool2d.default", count=2)
@converts("aten.avg_pool3d.default", count=3)
def avg_pool(c: Call, *, count: int) -> Value:
    value = float_tensor(c, c.arguments["self"])
    kernel, stride, padding = _average_windows(c, shape_of(value)[-count:])
    view = windows(c, value, kernel, stride, padding, [1] * count, 0.0)
    total = c.reduce("sum", view, list(range(rank_of(view) - count, rank_of(view))))
    sizes = shape_of(value)[-count:]
    return c.finish(c.pointwise("div", total, _divisor(c, total, sizes, kernel, stride, padding)))


@converts("aten.avg_pool2d_backward.default", count=2)
@converts("aten.avg_pool3d_backward.default", count=3)
def avg_pool_backward(c: Call, *, count: int) -> Value:
    """Each element gets its share of the windows that it lies in: on a GPU of all at once, if they
    are few, elsewhere along one dimension after the other."""
    sizes = c.result.shape[-count:]
    kernel, stride, padding = _average_windows(c, sizes)
    gradient = float_tensor(c, c.grad_output)
    divisor = _divisor(c, gradient, sizes, kernel, stride, padding)
    share = c.pointwise("div", gradient, divisor)
    known = [k for k in kernel if isinstance(k, int)]
    if c.result.device != "cpu" and len(known) == count:
        if _is_looked_up(c, known, stride, padding, [1] * count):
            return c.finish(_shares(c, share, known, stride, padding))
    for k in range(count):
        dim = rank_of(share) - count + k
        share = _spread(c, share, dim, sizes[k], kernel[k], stride[k], padding[k])
    return c.finish(share)


def _shares(
    c: Call, share: Value, kernel: list[int], stride: list[int], padding: list[int]
) -> Value:
    """For each element the sum over the windows that it lies in; `share`: what each of their
    elements gets."""
    count, rank = len(kernel), rank_of(share)
    several = _several(kernel, stride, [1] * count)
    for k in range(count):
        size, dim = c.result.shape[rank - count + k], rank - count + k
        share = _windows_of_elements(
            c, share, dim, size, several[k], stride[k], padding[k], outside=0
        )
    for k in range(count):
        if kernel[k] % stride[k]:  # not all elements lie in so many windows
            dims = rank - count + k, rank + k
            at = _in_window(c, share, dims, stride[k], padding[k], several[k])
            inside = c.pointwise("lt", at, c.full(kernel[k], at))
            share = c.select(inside, share, c.full(0, share))
    return c.reduce("sum", share, list(range(rank, rank + count)))


def _average_windows(c: Call, sizes: Sequence[Dim]) -> tuple[list[Dim], list[int], list[int]]:
    """Kernel, stride and padding; a kernel beyond the padded tensor is cut to it (that occurs with
    `ceil_mode`, and changes no sum)."""
    count = len(sizes)
    kernel: list[Dim] = _pairs(c.kernel_size, count)
    stride, padding = _pairs(c.stride, count, kernel), _pairs(c.padding, count)
    if c.ceil_mode:
        kernel = [
            minimum(k, s + 2 * p) for k, s, p in zip(kernel, sizes, padding, strict=True)
        ]
    return kernel, stride, padding


def _divisor(
    c: Call, like: Value, sizes: Sequence[Dim], kernel: Sequence[Dim], stride: Sequence[int],
    padding: Sequence[int],
) -> Value:  # fmt: skip
    """What the sum of each window is divided by: `divisor_override`, or the size of the window
    (`ceil_mode` cuts it at the padded tensor's end, without `count_include_pad` at the
    tensor's)."""
    override = c.arguments.get("divisor_override")
    if override is not None:
        return c.full(override, like)
    cut = [c.ceil_mode or (not c.count_include_pad and p != 0) for p in padding]
    fixed = dim_product([k for k, is_cut in zip(kernel, cut, strict=True) if not is_cut])
    divisor = c.full(fixed, like)
    for k, is_cut in enumerate(cut):
        if not is_cut:
            continue
        position = c.iota(rank_of(like) - len(cut) + k, like)
        start = c.pointwise("mul", position, c.full(stride[k], position))
        start = c.pointwise("sub", start, c.full(padding[k], position))
        end = c.pointwise("add", start, c.full(kernel[k], position))
        limit = sizes[k] + padding[k] if c.count_include_pad else sizes[k]
        end = c.pointwise("minimum", end, c.full(limit, position))
        if not c.count_include_pad:
            start = c.pointwise("maximum", start, c.full(0, position))
        width = c.cast(c.pointwise("sub", end, start), element_of(like))
        divisor = c.pointwise("mul", divisor, width)
    return divisor


def _spread(
    c: Call, value: Value, dim: int, size: Dim, kernel: Dim, stride: int, padding: int
) -> Value:
    """For each of `size` positions along `dim`, the sum over the windows that it lies in."""
    shape = shape_of(value)
    windows_of_one = ceildiv(kernel, stride)
    table = c.result.with_shape((size, windows_of_one))
    place = c.iota(0, table)
    place = c.pointwise("add", place, c.full(padding, place))
    step = c.full(stride, place)
    window = c.pointwise("sub", c.pointwise("floor_div", place, step), c.iota(1, table))
    inside = c.pointwise("sub", place, c.pointwise("mul", window, step))
    valid = c.pointwise("lt", inside, c.full(kernel, place))
    valid = c.pointwise("and", valid, c.pointwise("ge", window, c.full(0, place)))
    valid = c.pointwise("and", valid, c.pointwise("lt", window, c.full(shape[dim], place)))
    window = c.select(valid, window, c.full(0, place))
    taken = c.emit(graph.Take, value, [window], dims=[dim], position=dim)
    type_ = valid.type.with_shape(shape_of(taken))  # type: ignore[attr-defined]
    mask = c.emit_typed(graph.Broadcast, valid, type_, dims=[dim, dim + 1])
    return c.reduce("sum", c.select(mask, taken, c.full(0, taken)), [dim + 1])


@converts("aten._adaptive_avg_pool2d.default", "aten.adaptive_avg_pool2d.default",
          "aten._adaptive_avg_pool3d.default", "aten.adaptive_avg_pool1d.default")  # fmt: skip
def adaptive_avg_pool(c: Call) -> Value:
    sizes = c.output_size
    value = float_tensor(c, c.arguments["self"])
    count = len(sizes)
    before = shape_of(value)[-count:]
    if 0 in before:
        decline("an image without pixels has no mean, and ATen raises")
    if all(s == 1 for s in sizes):
        dims = list(range(rank_of(value) - count, rank_of(value)))
        total = c.reduce("sum", value, dims, True)
        mean = c.pointwise("div", total, c.full(dim_product(before), total))
        return c.finish(c.reshape(mean, c.result.shape))
    if not all(isinstance(b, int) and isinstance(s, int) and s and b % s == 0
               for b, s in zip(before, sizes, strict=True)):  # fmt: skip
        return c.finish(_uneven_means(c, value, sizes))
    kernel = [b // s for b, s in zip(before, sizes, strict=True)]
    view = windows(c, value, kernel, kernel, [0] * count, [1] * count, 0.0)
    total = c.reduce("sum", view, list(range(rank_of(view) - count, rank_of(view))))
    return c.finish(c.pointwise("div", total, c.full(math.prod(kernel), total)))


def _uneven_means(c: Call, value: Value, sizes: Sequence[Dim]) -> Value:
    """Means over windows that differ in size: window k of s over n elements has those from
    floor(k*n/s) to ceil((k+1)*n/s). One dimension after the other is summed."""
    if not all(isinstance(size, int) and size for size in sizes):
        decline("there are no windows, or as many as data says")
    counts = c.full(1.0, c.result.with_shape(sizes), element_of(value))
    first = rank_of(value) - len(sizes)
    for number, windows_ in enumerate(sizes):
        dim = first + number
        places, inside = _uneven_windows(c, shape_of(value)[dim], windows_)
        taken = c.emit(
            graph.Take, value, [places], dims=[dim], position=dim, check_bounds=False
        )
        spread = _along(c, inside, taken, [dim, dim + 1])
        value = c.reduce("sum", c.select(spread, taken, c.full(0, taken)), [dim + 1])
        count = c.reduce("sum", c.cast(inside, element_of(value)), [1])
        counts = c.pointwise("mul", counts, _along(c, count, counts, [number]))
    dims = list(range(first, rank_of(value)))
    return c.pointwise("div", value, _along(c, counts, value, dims))


def _uneven_windows(c: Call, size: Dim, count: Dim) -> tuple[Value, Value]:
    """The positions `[count, longest]` of the windows' elements, and which of them count."""
    longest: Dim = ceildiv(size, count) + 1
    if isinstance(size, int) and isinstance(count, int):
        longest = max(-(-(k + 1) * size // count) - k * size // count for k in range(count))
    like = c.result.with_shape((count, longest))
    window, step = c.iota(0, like), c.iota(1, like)
    full = lambda number: c.full(number, window)  # noqa: E731
    start = c.pointwise("floor_div", c.pointwise("mul", window, full(size)), full(count))
    last = c.pointwise("mul", c.pointwise("add", window, full(1)), full(size))
    end = c.pointwise("floor_div", c.pointwise("add", last, full(count - 1)), full(count))
    place = c.pointwise("add", start, step)
    return c.pointwise("minimum", place, full(size - 1)), c.pointwise("lt", place, end)


def _along(c: Call, value: Value, like: Value, dims: list[int]) -> Value:
    """`value` with the shape of `like`, whose dimensions `dims` it has."""
    type_ = tensor_type(value).with_shape(shape_of(like))
    return c.emit(graph.Broadcast, value, dims=dims, result_types=type_)
