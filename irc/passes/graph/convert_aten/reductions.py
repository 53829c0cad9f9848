"""Reductions, scans, softmax and what else combines elements along dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from irc.dialects import graph
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.symbols import Dim, dim_product
from irc.ir.types import ComplexType, IntegerType, i1, i64
from irc.passes.graph.convert_aten.accumulation import accumulator_of
from irc.passes.graph.convert_aten.pointwise import round_cast, truth
from irc.passes.graph.convert_aten.support import (
    Call,
    compute_element,
    converts,
    decline,
    dims_list,
    element_of,
    is_float,
    normalized,
    rank_of,
    shape_of,
)


def _input(c: Call) -> Value:
    value = c.one_of("self", "inp")
    if isinstance(element_of(value), ComplexType):
        decline("complex reductions are ATen's")
    return value


def _dims(c: Call, source: Value, empty_is_all: bool = True) -> tuple[list[int], bool]:
    dim = c.one_of("dim", "dims")
    dims = dims_list(dim, rank_of(source), empty_is_all)
    return dims, bool(c.arguments.get("keepdim", False))


def _count(source: Value, dims: Sequence[int]) -> Dim:
    return dim_product([shape_of(source)[d] for d in dims])


def _accumulated(c: Call, source: Value, element: Type, way: str = "reduce") -> Value:
    """The source in the type that a sum with results of `element` is made in."""
    if isinstance(element, ComplexType):
        decline("complex reductions are ATen's")
    return round_cast(c, source, accumulator_of(way, element, c.result.device))


@converts("aten.sum.default", "aten.sum.dim_IntList", "aten.extern.prims.sum.default")
@converts("aten.prod.default", "aten.prod.dim_int", combiner="prod")
@converts("aten.nansum.default", skips_nan=True)
def sum_(c: Call, *, combiner: str = "sum", skips_nan: bool = False) -> Value:
    source = _input(c)
    dims, keepdim = _dims(c, source)
    value = _accumulated(c, source, c.result.element)
    if skips_nan and is_float(element_of(value)):
        value = c.select(c.pointwise("isnan", value), c.full(0, value), value)
    if element_of(value) is i1:
        decline("bools are not summed")
    return c.finish(c.reduce(combiner, value, dims, keepdim))


@converts("aten.mean.default", "aten.mean.dim")
def mean(c: Call) -> Value:
    source = _input(c)
    dims, keepdim = _dims(c, source)
    total = c.reduce("sum", _accumulated(c, source, c.result.element), dims, keepdim)
    return c.finish(c.pointwise("div", total, c.full(_count(source, dims), total)))


@converts("aten.amax.default", "aten.max.default", largest=True)
@converts("aten.amin.default", "aten.min.default", largest=False)
def extreme(c: Call, *, largest: bool) -> Value:
    source = _input(c)
    dims, keepdim = _dims(c, source)
    if element_of(source) is i1:
        return c.reduce("any" if largest else "all", source, dims, keepdim)
    if _count(source, dims) == 0:
        decline("ATen raises for an empty reduction")
    value = c.compute(source)
    return c.finish(c.reduce("max" if largest else "min", value, dims, keepdim))


@converts("aten.max.dim", combiner="max")
@converts("aten.min.dim", combiner="min")
def extreme_with_index(c: Call, *, combiner: str) -> Sequence[Value]:
    source = _input(c)
    (dim,), keepdim = dims_list(c.dim, rank_of(source)) or [0], c.keepdim
    if not rank_of(source):
        return [source, c.full(0, c.result_at(1))]
    if _count(source, [dim]) == 0:
        decline("ATen raises for an empty reduction")
    value = c.compute(source)
    if element_of(source) is i1:
        value = c.cast(source, i64)
    best = c.reduce(combiner, value, [dim], keepdim)
    place = c.emit(
        graph.ArgReduce, value, combiner=f"arg{combiner}", dims=[dim], keepdim=keepdim
    )
    return [c.finish(best), place]


@converts("aten.aminmax.default")
def aminmax(c: Call) -> Sequence[Value]:
    source = _input(c)
    dims, keepdim = _dims(c, source)
    if element_of(source) is i1 or _count(source, dims) == 0:
        decline("bools and empty tensors are ATen's")
    value = c.compute(source)
    return [c.finish(c.reduce(k, value, dims, keepdim)) for k in ("min", "max")]


@converts("aten.argmax.default", combiner="argmax")
@converts("aten.argmin.default", combiner="argmin")
def arg_extreme(c: Call, *, combiner: str) -> Value:
    source = _input(c)
    dims, keepdim = _dims(c, source)
    if _count(source, dims) == 0:
        decline("ATen raises for an empty reduction")
    if not rank_of(source):
        return c.full(0, c.result)
    value = c.cast(source, i64) if element_of(source) is i1 else c.compute(source)
    return c.emit(graph.ArgReduce, value, combiner=combiner, dims=dims, keepdim=keepdim)


@converts("aten.any.default", "aten.any.dim", combiner="any")
@converts("aten.any.dims", combiner="any", empty_is_all=False)
@converts("aten.all.default", "aten.all.dim", combiner="all")
@converts("aten.all.dims", combiner="all", empty_is_all=False)
def any_all(c: Call, *, combiner: str, empty_is_all: bool = True) -> Value:
    source = _input(c)
    dims, keepdim = _dims(c, source, empty_is_all)
    return c.cast(c.reduce(combiner, truth(c, source), dims, keepdim), c.result.element)


@converts("aten.count_nonzero.default", "aten.count_nonzero.dim_IntList")
def count_nonzero(c: Call) -> Value:
    source = _input(c)
    dims, _ = _dims(c, source)
    return c.reduce("sum", c.cast(truth(c, source), i64), dims)


@converts("aten.var.correction", "aten.var.dim", "aten.var.default",
          "aten.extern.prims.var.default")  # fmt: skip
@converts("aten.std.correction", "aten.std.dim", "aten.std.default", root=True)
@converts("aten.var_mean.correction", "aten.var_mean.dim", "aten.var_mean.default", with_mean=True)
@converts("aten.std_mean.correction", root=True, with_mean=True)
def variance(c: Call, *, root: bool = False, with_mean: bool = False) -> Any:
    source = _input(c)
    dims, keepdim = _dims(c, source)
    correction = c.arguments.get("correction", None)
    if correction is None:
        correction = 1 if c.arguments.get("unbiased", True) else 0
    moments = c.builder.create(
        graph.Moments, _accumulated(c, source, c.result.element, "moments"), dims=dims,
        keepdim=keepdim,
    )  # fmt: skip
    mean_, deviations = moments.results
    count = _count(source, dims)
    divisor: Value
    if isinstance(count, int) and isinstance(correction, int | float):
        divisor = c.full(float(max(count - correction, 0)), deviations)
    else:
        total = c.full(count, deviations)
        rest = c.pointwise("sub", total, c.full(correction, total))
        divisor = c.pointwise("maximum", rest, c.full(0, rest))
    result = c.pointwise("div", deviations, divisor)
    if root:
        result = c.pointwise("sqrt", result)
    result = c.finish(result)
    return [result, c.finish(mean_)] if with_mean else result


@converts("aten.logsumexp.default")
def logsumexp(c: Call) -> Value:
    source = _input(c)
    dims, keepdim = _dims(c, source)
    if _count(source, dims) == 0:
        decline("an empty reduction is ATen's")
    value = _accumulated(c, source, c.result.element)
    largest = c.reduce("max", value, dims, True)
    infinite = c.pointwise("isinf", largest)
    shift = c.select(infinite, c.full(0, largest), largest)
    spread = c.pointwise("sub", value, c.broadcast(shift, shape_of(value)))
    total = c.reduce("sum", c.pointwise("exp", spread), dims, True)
    result = c.pointwise("add", c.pointwise("log", total), shift)
    return c.finish(c.reshape(result, c.result.shape))


@converts("aten.linalg_vector_norm.default", "aten.norm.ScalarOpt_dim", "aten.norm.Scalar",
          "aten.norm.ScalarOpt_dim_dtype")  # fmt: skip
def vector_norm(c: Call) -> Value:
    source = _input(c)
    order = c.one_of("ord", "p")
    order = 2.0 if order is None else order
    dims, keepdim = _dims(c, source)
    if not isinstance(order, int | float):
        decline("the order is not a constant")
    if _count(source, dims) == 0 and (order < 0 or math.isinf(order)):
        decline("ATen decides about an empty norm")
    value = c.pointwise("abs", _accumulated(c, source, c.result.element))
    if order == math.inf or order == -math.inf:
        return c.finish(c.reduce("max" if order > 0 else "min", value, dims, keepdim))
    if order == 0:
        ones = c.cast(c.pointwise("ne", value, c.full(0, value)), element_of(value))
        return c.finish(c.reduce("sum", ones, dims, keepdim))
    if order == 1:
        return c.finish(c.reduce("sum", value, dims, keepdim))
    if order == 2:
        squares = c.reduce("sum", c.pointwise("mul", value, value), dims, keepdim)
        return c.finish(c.pointwise("sqrt", squares))
    powers = c.reduce("sum", c.pointwise("pow", value, c.full(order, value)), dims, keepdim)
    return c.finish(c.pointwise("pow", powers, c.full(1.0 / order, powers)))


# -- scans


@converts("aten.cumsum.default", combiner="sum")
@converts("aten.cumprod.default", combiner="prod")
@converts("aten.logcumsumexp.default", combiner="logsumexp")
def cumulative(c: Call, *, combiner: str) -> Value:
    source = _input(c)
    element = c.result.element
    if isinstance(element, ComplexType):
        decline("complex scans are ATen's")
    # Results of 16-bit floats are rounded behind the scan, where a rounding can be elided.
    value = round_cast(c, source, compute_element(element))
    if not rank_of(source):
        return c.finish(value)
    dim = normalized(c.dim, rank_of(source))
    wide = accumulator_of("scan", element, c.result.device)
    rest = {} if wide is element_of(value) else {"accumulator": wide}
    return c.finish(c.emit(graph.Scan, value, combiner=combiner, dim=dim, **rest))


@converts("aten.cummax.default", combiner="max")
@converts("aten.cummin.default", combiner="min")
def cumulative_extreme(c: Call, *, combiner: str) -> Sequence[Value]:
    """The position is the last one that set the extreme: a scan of the positions that did."""
    source = _input(c)
    if not rank_of(source):
        return [source, c.full(0, c.result_at(1))]
    dim = normalized(c.dim, rank_of(source))
    value = c.cast(source, i64) if element_of(source) is i1 else c.compute(source)
    best = c.emit(graph.Scan, value, combiner=combiner, dim=dim)
    sets = c.pointwise("eq", value, best)
    if is_float(element_of(value)):
        sets = c.pointwise("or", sets, c.pointwise("isnan", value))
    positions = c.iota(dim, value)
    marked = c.select(sets, positions, c.full(0, positions))
    return [c.finish(best), c.emit(graph.Scan, marked, combiner="max", dim=dim)]


# -- softmax


@converts("aten._softmax.default", "aten.softmax.int")
@converts("aten._log_softmax.default", "aten.log_softmax.int", log=True)
@converts("aten._safe_softmax.default", safe=True)
def softmax(c: Call, *, log: bool = False, safe: bool = False) -> Value:
    source = _input(c)
    if not is_float(c.result.element):
        decline("a softmax of integers is refused by ATen")
    value = _accumulated(c, source, c.result.element)
    if not rank_of(source):
        nothing = c.pointwise("sub", value, value)  # NaN of NaN and of infinities
        return c.finish(nothing if log else c.pointwise("exp", nothing))
    dim = normalized(c.dim, rank_of(source))
    shape = shape_of(value)
    largest = c.broadcast(c.reduce("max", value, [dim], True), shape)
    shifted = c.pointwise("sub", value, largest)
    powers = c.emit(graph.Exp, shifted, nonpositive=True)
    total = c.broadcast(c.reduce("sum", powers, [dim], True), shape)
    if log:
        return c.finish(c.pointwise("sub", shifted, c.pointwise("log", total)))
    result = c.pointwise("div", powers, total)
    if safe:
        masked = c.pointwise("eq", value, c.full(-math.inf, value))
        nothing = c.broadcast(c.reduce("all", masked, [dim], True), shape)
        result = c.select(nothing, c.full(0, result), result)
    return c.finish(result)


@converts("aten._softmax_backward_data.default", log=False)
@converts("aten._log_softmax_backward_data.default", log=True)
def softmax_backward(c: Call, *, log: bool) -> Value:
    gradient, output = (c.compute(v) for v in (c.grad_output, c.output))
    if not c.result.rank:
        decline("a softmax of one element is ATen's")
    dim = normalized(c.dim, c.result.rank)
    shape = c.result.shape
    if not log:
        product = c.pointwise("mul", gradient, output)
        total = c.broadcast(c.reduce("sum", product, [dim], True), shape)
        return c.finish(c.pointwise("sub", product, c.pointwise("mul", output, total)))
    total = c.broadcast(c.reduce("sum", gradient, [dim], True), shape)
    scaled = c.pointwise("mul", c.pointwise("exp", output), total)
    return c.finish(c.pointwise("sub", gradient, scaled))


@converts("aten.dot.default", "aten.vdot.default")
def dot(c: Call) -> Value:
    if isinstance(c.result.element, ComplexType | IntegerType):
        decline("complex and integer products are ATen's")
    other = c.one_of("tensor", "other")
    x, y = (c.compute(v) for v in (c.self_, other))
    return c.finish(c.reduce("sum", c.pointwise("mul", x, y), [0]))
