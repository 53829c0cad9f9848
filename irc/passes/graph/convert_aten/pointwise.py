"""Pointwise operators: arithmetic, comparisons, elementary functions, casts."""

from __future__ import annotations

import functools
import math
from typing import Any

from irc.dialects import graph
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.types import ComplexType, FloatType, IntegerType, TensorType, f8E4M3FN, f16, f32, i1
from irc.passes.graph.convert_aten.support import (
    Call,
    compute_element,
    converts,
    decline,
    element_of,
    float_tensor,
    is_float,
    number_element,
    rank_of,
)

# operator -> function; computed in the type of the result (floats widened).
FLOAT_UNARY = {
    "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan",
    "atanh": "atanh", "cos": "cos", "cosh": "cosh", "digamma": "digamma", "erf": "erf",
    "erfc": "erfc", "erfinv": "erfinv", "exp": "exp", "exp2": "exp2", "expm1": "expm1",
    "lgamma": "lgamma", "log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2",
    "reciprocal": "reciprocal", "rsqrt": "rsqrt", "sigmoid": "sigmoid", "sin": "sin",
    "sinh": "sinh", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
    "special_erf": "erf", "special_erfc": "erfc", "special_erfinv": "erfinv",
    "special_digamma": "digamma", "special_gammaln": "lgamma", "special_expm1": "expm1",
    "special_log1p": "log1p", "special_exp2": "exp2", "special_expit": "sigmoid",
}  # fmt: skip
ROUNDINGS = {"ceil": "ceil", "floor": "floor", "trunc": "trunc", "fix": "trunc"}
COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
BITWISE = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}
SHIFTS = {"bitwise_left_shift": "shl", "bitwise_right_shift": "shr",
          "__lshift__": "shl", "__rshift__": "shr"}  # fmt: skip
LARGEST_E4M3 = 448.0
LOGICAL = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}


def _real(value: Value) -> Value:
    if isinstance(element_of(value), ComplexType):
        decline("complex arithmetic is ATen's")
    return value


def _install() -> None:
    for name, function in FLOAT_UNARY.items():
        converts(f"aten.{name}.default", function=function)(float_unary)
    for name, function in ROUNDINGS.items():
        converts(f"aten.{name}.default", function=function)(rounding)
    for name, function in COMPARISONS.items():
        converts(f"aten.{name}.Tensor", f"aten.{name}.Scalar", function=function)(comparison)
    for name, function in (BITWISE | SHIFTS).items():
        overloads = ["Tensor", "Scalar"]
        if not name.startswith("__"):
            overloads = ["Tensor", "Scalar_Tensor"]
            overloads.append("Tensor_Scalar" if name in SHIFTS else "Scalar")
        converts(*(f"aten.{name}.{o}" for o in overloads), function=function)(bitwise)
    for name, function in LOGICAL.items():
        converts(f"aten.{name}.default", function=function)(logical)


def float_unary(c: Call, *, function: str) -> Value:
    (x,) = c.operands(_real(c.self_))
    return c.finish(c.pointwise(function, x))


def rounding(c: Call, *, function: str) -> Value:
    if not is_float(c.result.element):
        return c.self_
    return float_unary(c, function=function)


def comparison(c: Call, *, function: str) -> Value:
    element = compute_element(c.promoted(c.self_, c.other))
    return c.pointwise(function, *c.operands(c.self_, c.other, element=element))


@converts("aten.atan2.default", function="atan2")
@converts("aten.copysign.Tensor", "aten.copysign.Scalar", function="copysign")
def float_binary(c: Call, *, function: str) -> Value:
    x, y = c.operands(c.self_, c.other)
    return c.finish(c.pointwise(function, x, y))


@converts("aten.nextafter.default")
def nextafter(c: Call) -> Value:
    if c.result.element is not compute_element(c.result.element):
        decline("the neighbours of 16-bit floats are ATen's")
    return float_binary(c, function="nextafter")


def bitwise(c: Call, *, function: str) -> Value:
    if not isinstance(c.result.element, IntegerType):
        decline("shifts of floats are ATen's")
    x, y = c.operands(c.self_, c.other)
    return c.pointwise(function, x, y)


def logical(c: Call, *, function: str) -> Value:
    x, y = (truth(c, v) for v in (c.self_, c.other))
    return c.pointwise(function, *(c.broadcast(v, c.result.shape) for v in (x, y)))


def truth(c: Call, value: Value) -> Value:
    """Whether each element is not 0, as i1."""
    return c.cast(_real(value), i1)


@converts("aten.logical_not.default")
def logical_not(c: Call) -> Value:
    return c.pointwise("not", truth(c, c.self_))


@converts("aten.bitwise_not.default")
def bitwise_not(c: Call) -> Value:
    return c.pointwise("not", c.self_)


@converts("aten.neg.default")
def neg(c: Call) -> Value:
    (x,) = c.operands(_real(c.self_))
    return c.finish(c.pointwise("neg", x))


@converts("aten.abs.default")
def absolute(c: Call) -> Value:
    if c.result.element is i1 or getattr(c.result.element, "unsigned", False):
        return c.self_
    (x,) = c.operands(_real(c.self_))
    return c.finish(c.pointwise("abs", x))


@converts("aten.sign.default", "aten.sgn.default")
def sign(c: Call) -> Value:
    if c.result.element is i1:
        return c.self_
    (x,) = c.operands(_real(c.self_))
    return c.finish(c.pointwise("sign", x))


@converts("aten.positive.default")
def positive(c: Call) -> Value:
    return c.self_


@converts("aten.round.default", "aten.round.decimals")
def rounded(c: Call) -> Value:
    if not is_float(c.result.element):
        return c.self_
    decimals = c.arguments.get("decimals", 0)
    (x,) = c.operands(_real(c.self_))
    if decimals == 0:
        return c.finish(c.pointwise("round", x))
    scale = c.full(10.0 ** abs(decimals), x)
    before, after = ("mul", "div") if decimals > 0 else ("div", "mul")
    return c.finish(c.pointwise(after, c.pointwise("round", c.pointwise(before, x, scale)), scale))


# -- arithmetic


def _scaled(c: Call, value: Value, alpha: Any) -> Value:
    if isinstance(alpha, bool):
        decline("a bool as a factor is ATen's, which takes it for bools only")
    if isinstance(alpha, int | float) and alpha == 1:
        return value
    return c.pointwise("mul", value, c.full(alpha, value))


@converts("aten.add.Tensor", "aten.add.Scalar")
def add(c: Call) -> Value:
    if c.result.element is i1:
        if c.alpha not in (1, True):
            decline("a scaled sum of bools is ATen's")
        return c.pointwise("or", *c.operands(c.self_, c.other))
    x, y = c.operands(c.self_, c.other)
    return c.finish(c.pointwise("add", x, _scaled(c, y, c.alpha)))


def _no_bool(c: Call) -> None:
    """ATen refuses to subtract bools, numbers too."""
    for value in (c.self_, c.other):
        is_tensor = isinstance(value, Value) and isinstance(value.type, TensorType)
        if (element_of(value) if is_tensor else number_element(value)) is i1:
            decline("a difference of bools is refused by ATen")


@converts("aten.sub.Tensor", "aten.sub.Scalar")
def sub(c: Call) -> Value:
    _no_bool(c)
    x, y = c.operands(c.self_, c.other)
    return c.finish(c.pointwise("sub", x, _scaled(c, y, c.alpha)))


@converts("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(c: Call) -> Value:
    _no_bool(c)
    x, y = c.operands(c.self_, c.other)
    return c.finish(c.pointwise("sub", y, _scaled(c, x, c.alpha)))


@converts("aten.mul.Tensor", "aten.mul.Scalar")
def mul(c: Call) -> Value:
    function = "and" if c.result.element is i1 else "mul"
    return c.finish(c.pointwise(function, *c.operands(c.self_, c.other)))


@converts("aten.div.Tensor", "aten.div.Scalar", "aten.true_divide.Tensor")
def div(c: Call) -> Value:
    return c.finish(c.pointwise("div", *c.operands(c.self_, c.other)))


@converts("aten.div.Tensor_mode", "aten.div.Scalar_mode", "aten.floor_divide.default",
          "aten.floor_divide.Scalar")  # fmt: skip
def rounding_div(c: Call) -> Value:
    mode = c.arguments.get("rounding_mode", "floor")
    function = {None: "div", "floor": "floor_div", "trunc": "trunc_div"}.get(mode)
    if function is None:
        decline(f"there is no rounding mode '{mode}'")
    if c.result.element is i1:
        decline("division of bools is ATen's")
    return c.finish(c.pointwise(function, *c.operands(c.self_, c.other)))


@converts("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(c: Call) -> Value:
    if c.result.element is i1:
        decline("remainders of bools are ATen's")
    return c.finish(c.pointwise("remainder", *c.operands(c.self_, c.other)))


@converts("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(c: Call) -> Value:
    if c.result.element is i1:
        decline("remainders of bools are ATen's")
    return c.finish(c.pointwise("fmod", *c.operands(c.self_, c.other)))


@converts("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar")
def power(c: Call) -> Value:
    base, exponent = c.self_, c.exponent
    if _is_truth(base) and _is_truth(exponent):  # though torch's shape function says integers
        decline("powers of bools are ATen's")
    if isinstance(exponent, int | float):
        special = _constant_power(c, base, exponent)
        if special is not None:
            return special
    return c.finish(c.pointwise("pow", *c.operands(base, exponent)))


def _is_truth(value: Any) -> bool:
    return element_of(value) is i1 if isinstance(value, Value) else isinstance(value, bool)


def _constant_power(c: Call, base: Value, exponent: float) -> Value | None:
    """x**2 -> x*x and the like, as ATen does: also roots, which are not C's pow of -inf and
    -0.0; those of f16 on a CPU are."""
    if not is_float(c.result.element):
        if exponent < 0:
            decline("ATen raises for negative integer powers")
        if exponent == 0:
            return c.full(1, c.result)
    (x,) = c.operands(base)
    if exponent == 1:
        return c.finish(x)
    if exponent in (2, 3):
        square = c.pointwise("mul", x, x)
        return c.finish(square if exponent == 2 else c.pointwise("mul", square, x))
    if abs(exponent) == 0.5 and not (c.result.element is f16 and c.result.device == "cpu"):
        return c.finish(c.pointwise("sqrt" if exponent > 0 else "rsqrt", x))
    if exponent == -1:
        return c.finish(c.pointwise("reciprocal", x))
    return None


@converts("aten.square.default")
def square(c: Call) -> Value:
    (x,) = c.operands(_real(c.self_))
    return c.finish(c.pointwise("mul", x, x))


@converts("aten.maximum.default", largest=True)
@converts("aten.minimum.default", largest=False)
@converts("aten.fmax.default", largest=True, passes_nan=False)
@converts("aten.fmin.default", largest=False, passes_nan=False)
def extreme(c: Call, *, largest: bool, passes_nan: bool = True) -> Value:
    x, y = c.operands(c.self_, c.other)
    return c.finish(_extreme(c, x, y, largest, passes_nan))


def _extreme(c: Call, x: Value, y: Value, largest: bool, passes_nan: bool = True) -> Value:
    if element_of(x) is i1:
        return c.pointwise("or" if largest else "and", x, y)
    if passes_nan or not is_float(element_of(x)):
        return c.pointwise("maximum" if largest else "minimum", x, y)
    return c.pointwise("fmax" if largest else "fmin", x, y)


@converts("aten.clamp.default", "aten.clamp.Tensor", "aten.clip.default", "aten.clamp_min.default",
          "aten.clamp_max.default", "aten.clamp_min.Tensor",
          "aten.clamp_max.Tensor")  # fmt: skip
def clamp(c: Call) -> Value:
    low, high = c.arguments.get("min"), c.arguments.get("max")
    (x,) = c.operands(_real(c.self_))
    if isinstance(low, float) and math.isnan(low) or isinstance(high, float) and math.isnan(high):
        return c.full(math.nan, c.result)
    for bound, largest in ((low, True), (high, False)):
        if bound is None:
            continue
        if isinstance(bound, float) and not is_float(element_of(x)):
            decline("clamping integers to floats that don't fit is ATen's")
        x = _extreme(c, x, c.operands(bound)[0], largest)
    return c.finish(x)


@converts("aten.relu.default")
def relu(c: Call) -> Value:
    if c.result.element is i1:
        decline("bools are refused by ATen")
    (x,) = c.operands(_real(c.self_))
    return c.finish(c.pointwise("maximum", x, c.full(0, x)))


@converts("aten.addcmul.default", function="mul")
@converts("aten.addcdiv.default", function="div")
def addc(c: Call, *, function: str) -> Value:
    x, y, z = c.operands(c.self_, c.tensor1, c.tensor2)
    if c.result.element is i1 or (function == "div" and not is_float(c.result.element)):
        decline("not a sum of floats or integers")
    scaled = _scaled(c, y, c.value)
    return c.finish(c.pointwise("add", x, c.pointwise(function, scaled, z)))


@converts("aten.lerp.Tensor", "aten.lerp.Scalar")
def lerp(c: Call) -> Value:
    float_tensor(c, c.self_)
    start, end, weight = c.operands(c.self_, c.end, c.weight)
    difference = c.pointwise("sub", end, start)
    near = c.pointwise("lt", c.pointwise("abs", weight), c.full(0.5, weight))
    rest = c.pointwise("sub", c.full(1.0, weight), weight)
    first = c.pointwise("add", start, c.pointwise("mul", weight, difference))
    last = c.pointwise("sub", end, c.pointwise("mul", difference, rest))
    return c.finish(c.select(near, first, last))


@converts("aten.xlogy.Tensor", "aten.xlogy.Scalar_Other", "aten.xlogy.Scalar_Self")
def xlogy(c: Call) -> Value:
    x, y = c.operands(c.self_, c.other)
    product = c.pointwise("mul", x, c.pointwise("log", y))
    zero = c.pointwise("eq", x, c.full(0, x))
    result = c.select(zero, c.full(0, x), product)
    return c.finish(c.select(c.pointwise("isnan", y), y, result))


@converts("aten.hypot.default")
def hypot(c: Call) -> Value:
    x, y = (c.pointwise("abs", v) for v in c.operands(c.self_, c.other))
    large, small = c.pointwise("maximum", x, y), c.pointwise("minimum", x, y)
    ratio = c.pointwise("div", small, large)
    one = c.full(1.0, x)
    length = c.pointwise("add", one, c.pointwise("mul", ratio, ratio))
    result = c.pointwise("mul", large, c.pointwise("sqrt", length))
    flat = c.pointwise("or", c.pointwise("eq", large, c.full(0, x)), c.pointwise("isinf", large))
    infinite = c.pointwise("or", c.pointwise("isinf", x), c.pointwise("isinf", y))
    result = c.select(flat, large, result)
    return c.finish(c.select(infinite, c.full(math.inf, x), result))


@converts("aten.logit.default")
def logit(c: Call) -> Value:
    (x,) = c.operands(c.self_)
    if c.eps is not None:
        x = c.pointwise("maximum", x, c.full(c.eps, x))
        x = c.pointwise("minimum", x, c.full(1 - c.eps, x))
    odds = c.pointwise("div", x, c.pointwise("sub", c.full(1.0, x), x))
    return c.finish(c.pointwise("log", odds))


# -- tests


@converts("aten.isnan.default")
def isnan(c: Call) -> Value:
    return _float_test(c, "isnan")


@converts("aten.isinf.default")
def isinf(c: Call) -> Value:
    return _float_test(c, "isinf")


def _float_test(c: Call, function: str) -> Value:
    if not is_float(element_of(_real(c.self_))):
        return c.full(False, c.result)
    return c.pointwise(function, c.compute(c.self_))


@converts("aten.isfinite.default")
def isfinite(c: Call) -> Value:
    if not is_float(element_of(_real(c.self_))):
        return c.full(True, c.result)
    x = c.compute(c.self_)
    return c.pointwise("lt", c.pointwise("abs", x), c.full(math.inf, x))


@converts("aten.isposinf.default", infinity=math.inf)
@converts("aten.isneginf.default", infinity=-math.inf)
def is_signed_infinity(c: Call, *, infinity: float) -> Value:
    if not is_float(element_of(c.self_)):
        return c.full(False, c.result)
    x = c.compute(c.self_)
    return c.pointwise("eq", x, c.full(infinity, x))


@converts("aten.signbit.default")
def signbit(c: Call) -> Value:
    if element_of(c.self_) is i1:
        return c.full(False, c.result)
    return c.pointwise("signbit", c.compute(c.self_))


@converts("aten.isreal.default")
def isreal(c: Call) -> Value:
    _real(c.self_)
    return c.full(True, c.result)


# -- choice, casts, copies


@converts("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf",
          "aten.where.Scalar")  # fmt: skip
def where(c: Call) -> Value:
    condition = c.broadcast(truth(c, c.condition), c.result.shape)
    return c.select(condition, *(_exact(c, v) for v in (c.self_, c.other)))


def _exact(c: Call, value: Any) -> Value:
    """An operand in the result's own dtype (nothing is computed with it)."""
    return c.operand(value, c.result.shape, c.result.element)


@converts("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(c: Call) -> Value:
    mask = c.broadcast(truth(c, c.mask), c.result.shape)
    value = c.value
    if isinstance(value, Value) and isinstance(value.type, TensorType) and rank_of(value):
        decline("the value is not a single element")
    return c.select(mask, _exact(c, value), _exact(c, c.self_))


@converts("aten._to_copy.default", "aten.to.dtype", "aten.to.dtype_layout", "aten.to.device",
          "aten.to.other", "aten.type_as.default",
          "aten.extern.prims.convert_element_type.default")  # fmt: skip
def to_copy(c: Call) -> Value:
    source = c.one_of("self", "a")
    _real(source)
    if source.type.device != c.result.device:
        decline("copies between devices are ATen's")
    if isinstance(c.result.element, ComplexType):
        decline("complex casts are ATen's")
    return round_cast(c, source, c.result.element)


@functools.cache
def saturates_e4m3() -> bool:
    """Whether torch's casts to float8_e4m3fn give the largest number for a larger one: from 2.13
    on (pull request 178817), NaN before. Asked of torch, whose cast it is."""
    import torch

    return not bool(torch.tensor(1e4).to(torch.float8_e4m3fn).float().isnan())


def round_cast(c: Call, value: Value, element: Type) -> Value:
    """A cast, in two steps where narrow floats meet integers (torch goes through f32)."""
    source = element_of(value)
    if element is f8E4M3FN and source is not element and saturates_e4m3():
        wide = c.cast(value, f32)
        low, high = (c.full(bound, wide) for bound in (-LARGEST_E4M3, LARGEST_E4M3))
        return c.cast(c.pointwise("minimum", c.pointwise("maximum", wide, low), high), element)
    narrow = (source, element)
    for first, second in (narrow, narrow[::-1]):
        small = isinstance(first, FloatType) and compute_element(first) is not first
        if small and isinstance(second, IntegerType) and second is not i1:
            return c.cast(c.cast(value, compute_element(first)), element)
    return c.cast(value, element)


@converts("aten.clone.default", "aten.contiguous.default", "aten.alias.default",
          "aten.detach.default", "aten.lift_fresh_copy.default", "aten.lift_fresh.default",
          "aten.alias_copy.default", "aten.detach_copy.default", "aten.lift.default",
          "aten.resolve_conj.default", "aten.resolve_neg.default",
          "aten.extern.prims.clone.default")  # fmt: skip
def identity(c: Call) -> Value:
    source = c.one_of("self", "a")
    return _real(source)


@converts("aten.copy.default")
def copy(c: Call) -> Value:
    if c.src.type.device != c.result.device:
        decline("copies between devices are ATen's")
    _real(c.src)
    return c.broadcast(round_cast(c, c.src, c.result.element), c.result.shape)


@converts("aten.view.dtype")
def view_dtype(c: Call) -> Value:
    source, target = element_of(_real(c.self_)), c.result.element
    if 0 in c.result.shape and i1 not in (source, target):
        return c.full(0, c.result)
    if c.result.shape != c.self_.type.shape or i1 in (source, target):
        decline("the elements differ in width")
    if source is target:
        return c.self_
    return c.emit_typed(graph.Bitcast, c.self_, c.result)


@converts("aten._local_scalar_dense.default", "aten.item.default")
def item(c: Call) -> Value:
    return c.emit(graph.Item, _real(c.self_))


@converts("aten.scalar_tensor.default")
def scalar_tensor(c: Call) -> Value:
    return c.full(c.s, c.result)


@converts("aten.real.default")
def real(c: Call) -> Value:
    return _real(c.self_)


@converts("aten.heaviside.default")
def heaviside(c: Call) -> Value:
    if element_of(_real(c.self_)) is not element_of(_real(c.values)):
        decline("values of another dtype are refused by ATen")
    x, values = c.operands(c.self_, c.values)
    if element_of(x) is i1:
        decline("bools are ATen's")
    zero, one = c.full(0, x), c.full(1, x)
    step = c.select(c.pointwise("lt", x, zero), zero, one)
    if is_float(element_of(x)):
        step = c.select(c.pointwise("isnan", x), zero, step)
    return c.finish(c.select(c.pointwise("eq", x, zero), values, step))


_install()
