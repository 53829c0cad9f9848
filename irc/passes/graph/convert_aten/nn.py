"""Operators of neural networks: activations, normalization, pooling, losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from irc.dialects import graph
from irc.ir.core import Value
from irc.ir.symbols import Dim, dim_product
from irc.ir.types import ComplexType, i1
from irc.passes.graph.convert_aten.support import (
    Call,
    converts,
    decline,
    element_of,
    is_float,
    normalized,
    rank_of,
    shape_of,
    wrapped,
)

SQRT_HALF = math.sqrt(0.5)
SQRT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)


def _float(c: Call, value: Value) -> Value:
    if not is_float(element_of(value)):
        decline("not a tensor of floats")
    return c.compute(value)


# -- activations


@converts("aten.gelu.default")
def gelu(c: Call) -> Value:
    x = _float(c, c.self_)
    half = c.full(0.5, x)
    if c.approximate == "tanh":
        cube = c.pointwise("mul", c.pointwise("mul", x, x), x)
        inner = c.pointwise("add", x, c.pointwise("mul", c.full(0.044715, x), cube))
        curve = c.pointwise("tanh", c.pointwise("mul", c.full(SQRT_TWO_OVER_PI, x), inner))
    else:
        curve = c.pointwise("erf", c.pointwise("mul", x, c.full(SQRT_HALF, x)))
    one_more = c.pointwise("add", curve, c.full(1.0, x))
    return c.finish(c.pointwise("mul", c.pointwise("mul", half, x), one_more))


@converts("aten.silu.default")
def silu(c: Call) -> Value:
    x = _float(c, c.self_)
    return c.finish(c.pointwise("mul", x, c.pointwise("sigmoid", x)))


@converts("aten.leaky_relu.default")
def leaky_relu(c: Call) -> Value:
    (x,) = c.operands(c.self_)
    positive = c.pointwise("gt", x, c.full(0, x))
    scaled = c.pointwise("mul", x, c.full(c.negative_slope, x))
    return c.finish(c.select(positive, x, scaled))


@converts("aten.elu.default")
def elu(c: Call) -> Value:
    x = _float(c, c.self_)
    positive = c.pointwise("gt", x, c.full(0, x))
    curve = c.pointwise("expm1", c.pointwise("mul", x, c.full(c.input_scale, x)))
    below = c.pointwise("mul", curve, c.full(c.alpha * c.scale, x))
    above = c.pointwise("mul", x, c.full(c.scale, x))
    return c.finish(c.select(positive, above, below))


@converts("aten.hardtanh.default", "aten.relu6.default")
def hardtanh(c: Call) -> Value:
    (x,) = c.operands(c.self_)
    low, high = c.arguments.get("min_val", 0), c.arguments.get("max_val", 6)
    x = c.pointwise("maximum", x, c.full(low, x))
    return c.finish(c.pointwise("minimum", x, c.full(high, x)))


@converts("aten.hardsigmoid.default", "aten.hardswish.default")
def hardsigmoid(c: Call) -> Value:
    x = _float(c, c.self_)
    shifted = c.pointwise("add", x, c.full(3.0, x))
    clipped = c.pointwise("maximum", shifted, c.full(0.0, x))
    clipped = c.pointwise("minimum", clipped, c.full(6.0, x))
    if c.op.schema.name == "hardswish":
        clipped = c.pointwise("mul", x, clipped)
    return c.finish(c.pointwise("div", clipped, c.full(6.0, x)))


@converts("aten.softplus.default")
def softplus(c: Call) -> Value:
    x = _float(c, c.self_)
    scaled = c.pointwise("mul", x, c.full(c.beta, x))
    curve = c.pointwise("log1p", c.pointwise("exp", scaled))
    curve = c.pointwise("div", curve, c.full(c.beta, x))
    return c.finish(c.select(c.pointwise("gt", scaled, c.full(c.threshold, x)), x, curve))


@converts("aten.mish.default")
def mish(c: Call) -> Value:
    x = _float(c, c.self_)
    curve = c.pointwise("log1p", c.pointwise("exp", x))
    large = c.pointwise("gt", x, c.full(20.0, x))
    return c.finish(c.pointwise("mul", x, c.pointwise("tanh", c.select(large, x, curve))))


@converts("aten.threshold.default")
def threshold(c: Call) -> Value:
    (x,) = c.operands(c.self_)
    below = c.pointwise("le", x, c.full(c.threshold, x))
    return c.finish(c.select(below, c.full(c.value, x), x))


@converts("aten.threshold_backward.default")
def threshold_backward(c: Call) -> Value:
    gradient, x = c.operands(c.grad_output, c.self_)
    below = c.pointwise("le", x, c.full(c.threshold, x))
    return c.finish(c.select(below, c.full(0, gradient), gradient))


@converts("aten.sigmoid_backward.default", "aten.tanh_backward.default")
def curve_backward(c: Call) -> Value:
    gradient, y = c.operands(c.grad_output, c.output)
    one = c.full(1.0, y)
    if c.op.schema.name == "sigmoid_backward":
        slope = c.pointwise("mul", c.pointwise("sub", one, y), y)
    else:
        slope = c.pointwise("sub", one, c.pointwise("mul", y, y))
    return c.finish(c.pointwise("mul", gradient, slope))


@converts("aten.gelu_backward.default")
def gelu_backward(c: Call) -> Value:
    gradient, x = c.operands(c.grad_output, c.arguments["self"])
    half, one = c.full(0.5, x), c.full(1.0, x)
    if c.approximate == "tanh":
        slope = _gelu_tanh_slope(c, x)
    else:
        curve = c.pointwise("erf", c.pointwise("mul", x, c.full(SQRT_HALF, x)))
        density = c.pointwise("mul", c.pointwise("mul", x, x), c.full(-0.5, x))
        density = c.pointwise("exp", density)
        density = c.pointwise("mul", density, c.full(1.0 / math.sqrt(2.0 * math.pi), x))
        left = c.pointwise("mul", half, c.pointwise("add", one, curve))
        slope = c.pointwise("add", left, c.pointwise("mul", x, density))
    return c.finish(c.pointwise("mul", gradient, slope))


def _gelu_tanh_slope(c: Call, x: Value) -> Value:
    half, one = c.full(0.5, x), c.full(1.0, x)
    square = c.pointwise("mul", x, x)
    inner = c.pointwise("add", x, c.pointwise(
        "mul", c.full(0.044715, x), c.pointwise("mul", square, x)))  # fmt: skip
    curve = c.pointwise("tanh", c.pointwise("mul", c.full(SQRT_TWO_OVER_PI, x), inner))
    left = c.pointwise("mul", half, c.pointwise("add", one, curve))
    steep = c.pointwise("sub", one, c.pointwise("mul", curve, curve))
    growth = c.pointwise("add", one, c.pointwise("mul", c.full(3 * 0.044715, x), square))
    growth = c.pointwise("mul", growth, c.full(SQRT_TWO_OVER_PI, x))
    right = c.pointwise("mul", c.pointwise("mul", half, x), c.pointwise("mul", steep, growth))
    return c.pointwise("add", left, right)


@converts("aten.silu_backward.default")
def silu_backward(c: Call) -> Value:
    gradient, x = c.operands(c.grad_output, c.arguments["self"])
    one, curve = c.full(1.0, x), c.pointwise("sigmoid", x)
    inner = c.pointwise("mul", x, c.pointwise("sub", one, curve))
    slope = c.pointwise("mul", curve, c.pointwise("add", one, inner))
    return c.finish(c.pointwise("mul", gradient, slope))


# -- normalization


@converts("aten.native_layer_norm.default")
def layer_norm(c: Call) -> Sequence[Value]:
    source = _float(c, c.input)
    rank, count = rank_of(source), len(c.normalized_shape)
    dims = list(range(rank - count, rank))
    made = c.builder.create(graph.Moments, source, dims=dims, keepdim=True)
    mean, deviations = made.results
    size = dim_product([shape_of(source)[d] for d in dims])
    variance = c.pointwise("div", deviations, c.full(size, deviations))
    scale = c.pointwise("rsqrt", c.pointwise("add", variance, c.full(c.eps, variance)))
    shape = shape_of(source)
    result = c.pointwise("sub", source, c.broadcast(mean, shape))
    result = c.pointwise("mul", result, c.broadcast(scale, shape))
    if c.weight is not None:
        result = c.pointwise("mul", result, c.broadcast(c.compute(c.weight), shape))
    if c.bias is not None:
        result = c.pointwise("add", result, c.broadcast(c.compute(c.bias), shape))
    kinds = c.result_types[1:]
    statistics = [
        c.cast(c.reshape(v, k.shape), k.element)  # type: ignore[attr-defined]
        for v, k in zip((mean, scale), kinds, strict=True)
    ]
    return [c.finish(result), *statistics]


@converts("aten.native_group_norm.default")
def group_norm(c: Call) -> Sequence[Value]:
    source = _float(c, c.input)
    shape = shape_of(source)
    if not isinstance(c.group, int) or not isinstance(shape[1], int):
        decline("the number of groups is symbolic")
    width = shape[1] // c.group
    grouped = c.reshape(source, (shape[0], c.group, width * dim_product(shape[2:])))
    made = c.builder.create(graph.Moments, grouped, dims=[2], keepdim=True)
    mean, deviations = made.results
    variance = c.pointwise("div", deviations, c.full(shape_of(grouped)[2], deviations))
    scale = c.pointwise("rsqrt", c.pointwise("add", variance, c.full(c.eps, variance)))
    result = c.pointwise("sub", grouped, c.broadcast(mean, shape_of(grouped)))
    result = c.pointwise("mul", result, c.broadcast(scale, shape_of(grouped)))
    result = c.reshape(result, shape)
    for function, parameter in (("mul", c.weight), ("add", c.bias)):
        if parameter is not None:
            wide = per_channel(c, c.compute(parameter), shape)
            result = c.pointwise(function, result, wide)
    kinds = c.result_types[1:]
    statistics = [
        c.cast(c.reshape(v, k.shape), k.element)  # type: ignore[attr-defined]
        for v, k in zip((mean, scale), kinds, strict=True)
    ]
    return [c.finish(result), *statistics]


def per_channel(c: Call, value: Value, shape: Sequence[Dim]) -> Value:
    """A tensor with one element per channel (dimension 1), repeated to `shape`."""
    kind = value.type.with_shape(shape)  # type: ignore[attr-defined]
    return c.emit_typed(graph.Broadcast, value, kind, dims=[1])


@converts("aten._weight_norm_interface_backward.default")
def weight_norm_backward(c: Call) -> Sequence[Value]:
    """For w = v * g / norm(v), the norm over all dimensions but one."""
    gradient, v, g, norms = (
        _float(c, c.arguments[n]) for n in ("grad_w", "saved_v", "saved_g", "saved_norms")
    )
    rank, shape = rank_of(v), shape_of(v)
    kept = None if c.dim == -1 else normalized(c.dim, rank)
    dims = [d for d in range(rank) if d != kept]
    total = c.reduce("sum", c.pointwise("mul", gradient, v), dims, keepdim=True)
    norms, g = (c.reshape(value, shape_of(total)) for value in (norms, g))
    along = c.pointwise("div", total, norms)
    shrink = c.broadcast(c.pointwise("div", along, norms), shape)
    across = c.pointwise("sub", gradient, c.pointwise("mul", v, shrink))
    scale = c.broadcast(c.pointwise("div", g, norms), shape)
    results = c.pointwise("mul", across, scale), along
    return [
        c.cast(c.reshape(value, kind.shape), kind.element)  # type: ignore[attr-defined]
        for value, kind in zip(results, c.result_types, strict=True)
    ]


# -- pooling


def _pairs(value: Any, count: int, default: Any = None) -> list[Any]:
    given = list(value) if isinstance(value, list) else [value]
    if not given and default is not None:
        given = list(default)
    return given * count if len(given) == 1 else given


def windows(
    c: Call, source: Value, kernel: list[int], stride: list[int], padding: list[int],
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
            high[dim] = last - shape_of(source)[dim] - padding[k]
    if any(p != 0 for p in (*low, *high)):
        element = element_of(source)
        value = graph.scalar_attribute(wrapped(outside, element), element)
        source = c.emit(graph.Pad, source, low=low, high=high, value=value)
    for k in range(count):
        kind = graph.replace_size(source.type, rank - count + k, result_sizes[k])  # type: ignore
        shape = (*kind.shape, kernel[k])
        source = c.emit_typed(
            graph.Window, source, kind.with_shape(shape), dim=rank - count + k, step=stride[k],
            dilation=dilation[k],
        )  # fmt: skip
    return source


def _smallest(element: Any) -> Any:
    from irc.passes.graph.convert_aten.indexing import identity_of

    return identity_of("max", element)


@converts("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool(c: Call) -> Sequence[Value]:
    count = 2 if "2d" in c.op.schema.name else 3
    kernel = _pairs(c.kernel_size, count)
    stride = _pairs(c.stride, count, kernel)
    padding, dilation = _pairs(c.padding, count), _pairs(c.dilation, count)
    source = c.arguments["self"]
    if isinstance(element_of(source), ComplexType) or element_of(source) is i1:
        decline("not a tensor of numbers")
    value = c.compute(source)
    view = windows(c, value, kernel, stride, padding, dilation, _smallest(element_of(value)))
    dims = list(range(rank_of(view) - count, rank_of(view)))
    best = c.reduce("max", view, dims)
    place = c.emit(graph.ArgReduce, view, combiner="argmax", dims=dims)
    return [c.finish(best), _flat_position(c, place, source, kernel, stride, padding, dilation)]


@converts("aten.max_pool2d_with_indices_backward.default",
          "aten.max_pool3d_with_indices_backward.default")  # fmt: skip
def max_pool_backward(c: Call) -> Value:
    """The gradients of a plane's windows, added up where their maxima were."""
    count = 2 if "2d" in c.op.schema.name else 3
    gradient = _float(c, c.grad_output)
    outer, window = shape_of(gradient)[:-count], dim_product(shape_of(gradient)[-count:])
    plane = dim_product(c.result.shape[-count:])
    zeros = c.full(0, c.result.with_shape((*outer, plane)), element_of(gradient))
    parts = [c.reshape(v, (*outer, window)) for v in (c.indices, gradient)]
    made = c.emit(
        graph.Scatter, zeros, *parts, dim=len(outer), combiner="sum", check_bounds=True
    )
    return c.finish(c.reshape(made, c.result.shape))


def _flat_position(
    c: Call, place: Value, source: Value, kernel: list[int], stride: list[int],
    padding: list[int], dilation: list[int],
) -> Value:  # fmt: skip
    """The position in the pooled planes for a position in the window."""
    count, rank = len(kernel), c.result.rank
    total = c.full(0, place)
    rest = place
    steps = [math.prod(kernel[k + 1 :]) for k in range(count)]
    for k in range(count):
        dim = rank - count + k
        width = c.full(steps[k], place)
        inside = c.pointwise("floor_div", rest, width)
        rest = c.pointwise("sub", rest, c.pointwise("mul", inside, width))
        at = c.pointwise("mul", c.iota(dim, place), c.full(stride[k], place))
        at = c.pointwise("add", at, c.pointwise("mul", inside, c.full(dilation[k], place)))
        at = c.pointwise("sub", at, c.full(padding[k], place))
        size = shape_of(source)[rank_of(source) - count + k]
        total = c.pointwise("add", c.pointwise("mul", total, c.full(size, total)), at)
    return total


@converts("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def avg_pool(c: Call) -> Value:
    count = int(c.op.schema.name[8])
    kernel = _pairs(c.kernel_size, count)
    stride = _pairs(c.stride, count, kernel)
    padding = _pairs(c.padding, count)
    if c.ceil_mode:
        decline("ceil mode divides by clipped windows")
    value = _float(c, c.arguments["self"])
    ones = [1] * count
    view = windows(c, value, kernel, stride, padding, ones, 0.0)
    dims = list(range(rank_of(view) - count, rank_of(view)))
    total = c.reduce("sum", view, dims)
    divisor = c.arguments.get("divisor_override")
    if divisor is None and not c.count_include_pad and any(padding):
        weights = windows(c, c.full(1.0, value), kernel, stride, padding, ones, 0.0)
        return c.finish(c.pointwise("div", total, c.reduce("sum", weights, dims)))
    divisor = math.prod(kernel) if divisor is None else divisor
    return c.finish(c.pointwise("div", total, c.full(divisor, total)))


@converts("aten._adaptive_avg_pool2d.default", "aten.adaptive_avg_pool2d.default",
          "aten._adaptive_avg_pool3d.default", "aten.adaptive_avg_pool1d.default")  # fmt: skip
def adaptive_avg_pool(c: Call) -> Value:
    sizes = c.output_size
    value = _float(c, c.arguments["self"])
    count = len(sizes)
    before = shape_of(value)[-count:]
    if all(s == 1 for s in sizes):
        dims = list(range(rank_of(value) - count, rank_of(value)))
        total = c.reduce("sum", value, dims, True)
        mean = c.pointwise("div", total, c.full(dim_product(before), total))
        return c.finish(c.reshape(mean, c.result.shape))
    if not all(isinstance(b, int) and isinstance(s, int) and s and b % s == 0
               for b, s in zip(before, sizes, strict=True)):  # fmt: skip
        decline("the windows differ in size")
    kernel = [b // s for b, s in zip(before, sizes, strict=True)]
    view = windows(c, value, kernel, kernel, [0] * count, [1] * count, 0.0)
    total = c.reduce("sum", view, list(range(rank_of(view) - count, rank_of(view))))
    return c.finish(c.pointwise("div", total, c.full(math.prod(kernel), total)))


