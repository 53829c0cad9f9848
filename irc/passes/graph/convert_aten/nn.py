"""Operators of neural networks: activations, normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irc.dialects import graph
from irc.ir.core import Value
from irc.ir.symbols import Dim, dim_product
from irc.passes.graph.convert_aten.support import (
    Call,
    converts,
    decline,
    element_of,
    float_tensor,
    normalized,
    rank_of,
    shape_of,
)

SQRT_HALF = math.sqrt(0.5)
SQRT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)


# -- activations


@converts("aten.gelu.default")
def gelu(c: Call) -> Value:
    x = float_tensor(c, c.self_)
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
    x = float_tensor(c, c.self_)
    return c.finish(c.pointwise("mul", x, c.pointwise("sigmoid", x)))


@converts("aten.leaky_relu.default")
def leaky_relu(c: Call) -> Value:
    (x,) = c.operands(c.self_)
    positive = c.pointwise("gt", x, c.full(0, x))
    scaled = c.pointwise("mul", x, c.full(c.negative_slope, x))
    return c.finish(c.select(positive, x, scaled))


@converts("aten.elu.default")
def elu(c: Call) -> Value:
    x = float_tensor(c, c.self_)
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


@converts("aten.hardsigmoid.default", gates=False)
@converts("aten.hardswish.default", gates=True)
def hardsigmoid(c: Call, *, gates: bool) -> Value:
    x = float_tensor(c, c.self_)
    shifted = c.pointwise("add", x, c.full(3.0, x))
    clipped = c.pointwise("maximum", shifted, c.full(0.0, x))
    clipped = c.pointwise("minimum", clipped, c.full(6.0, x))
    if gates:
        clipped = c.pointwise("mul", x, clipped)
    return c.finish(c.pointwise("div", clipped, c.full(6.0, x)))


@converts("aten.softplus.default")
def softplus(c: Call) -> Value:
    x = float_tensor(c, c.self_)
    scaled = c.pointwise("mul", x, c.full(c.beta, x))
    curve = c.pointwise("log1p", c.pointwise("exp", scaled))
    curve = c.pointwise("div", curve, c.full(c.beta, x))
    return c.finish(c.select(c.pointwise("gt", scaled, c.full(c.threshold, x)), x, curve))


@converts("aten.mish.default")
def mish(c: Call) -> Value:
    x = float_tensor(c, c.self_)
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


@converts("aten.sigmoid_backward.default")
def sigmoid_backward(c: Call) -> Value:
    gradient, y = c.operands(c.grad_output, c.output)
    slope = c.pointwise("mul", c.pointwise("sub", c.full(1.0, y), y), y)
    return c.finish(c.pointwise("mul", gradient, slope))


@converts("aten.tanh_backward.default")
def tanh_backward(c: Call) -> Value:
    gradient, y = c.operands(c.grad_output, c.output)
    slope = c.pointwise("sub", c.full(1.0, y), c.pointwise("mul", y, y))
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
    source = float_tensor(c, c.input)
    rank, count = rank_of(source), len(c.normalized_shape)
    dims = list(range(rank - count, rank))
    moments = c.builder.create(graph.Moments, source, dims=dims, keepdim=True)
    mean, deviations = moments.results
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
    source = float_tensor(c, c.input)
    shape = shape_of(source)
    if not isinstance(c.group, int) or not isinstance(shape[1], int):
        decline("the number of groups is symbolic")
    width = shape[1] // c.group
    grouped = c.reshape(source, (shape[0], c.group, width * dim_product(shape[2:])))
    moments = c.builder.create(graph.Moments, grouped, dims=[2], keepdim=True)
    mean, deviations = moments.results
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


@converts("aten._native_batch_norm_legit_no_training.default")
def batch_norm(c: Call) -> Sequence[Value]:
    """With the running statistics; the weight is multiplied into each channel's scale."""
    source = float_tensor(c, c.input)
    shape, element = shape_of(source), element_of(source)
    mean, variance = (
        c.cast(c.compute(v), element) for v in (c.running_mean, c.running_var)
    )
    deviation = scale = c.pointwise("rsqrt", c.pointwise("add", variance, c.full(c.eps, variance)))
    if c.weight is not None:
        scale = c.pointwise("mul", scale, c.cast(c.compute(c.weight), element))
    result = c.pointwise("sub", source, per_channel(c, mean, shape))
    result = c.pointwise("mul", result, per_channel(c, scale, shape))
    if c.bias is not None:
        bias = c.cast(c.compute(c.bias), element)
        result = c.pointwise("add", result, per_channel(c, bias, shape))
    # The CPU's statistics are empty, another device's are those used.
    statistics = [
        c.full(0.0, type_) if type_.shape == (0,) else c.cast(value, type_.element)
        for value, type_ in zip((mean, deviation), (c.result_at(1), c.result_at(2)), strict=True)
    ]
    return [c.finish(result), *statistics]


def per_channel(c: Call, value: Value, shape: Sequence[Dim]) -> Value:
    """A tensor with one element per channel (dimension 1), repeated to `shape`."""
    type_ = value.type.with_shape(shape)  # type: ignore[attr-defined]
    return c.emit_typed(graph.Broadcast, value, type_, dims=[1])


@converts("aten._weight_norm_interface_backward.default")
def weight_norm_backward(c: Call) -> Sequence[Value]:
    """For w = v * g / norm(v), the norm over all dimensions but one."""
    gradient, v, g, norms = (
        float_tensor(c, c.arguments[n]) for n in ("grad_w", "saved_v", "saved_g", "saved_norms")
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
        c.cast(c.reshape(value, type_.shape), type_.element)  # type: ignore[attr-defined]
        for value, type_ in zip(results, c.result_types, strict=True)
    ]
