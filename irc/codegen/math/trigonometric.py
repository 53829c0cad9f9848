"""sin, cos, tan and the inverse functions."""

from __future__ import annotations

import math

from irc.codegen.math import coefficients as tables
from irc.codegen.math.code import Code, Lane
from irc.codegen.math.registry import define, float_format, table

# pi in three parts, each as exact as the type allows; half of each is pi/2's.
PI_PARTS = {
    "f32": (3.1415927410125732, -8.742277657347586e-08, -3.4302490200117637e-15),
    "f64": (3.141592653589793, 1.2246467991473532e-16, -2.9947698097183397e-33),
}
# Beyond these the three parts lose digits, and libm reduces the argument.
REDUCIBLE = {"f32": 65536.0, "f64": 2.0**27}


def _too_large(x: Lane) -> Lane:
    """Finite or not: libm also makes the NaN of infinity."""
    return x.code.compare("ogt", x.code.absolute(x), REDUCIBLE[x.element])


def _less_multiple(x: Lane, count: Lane, share: float) -> Lane:
    """x - count * share * pi."""
    r = x
    for part in PI_PARTS[x.element]:
        r = x.code.fma(count, -part * share, r)
    return r


def sin_series(r: Lane) -> Lane:
    square = r * r
    poly = r.code.polynomial(square, table(tables.SIN_F32, tables.SIN_F64, r))
    return r.code.fma(r * square, poly, r)


def _flip_sign(value: Lane, rounded: Lane) -> Lane:
    """-value where the integer in the low bits of `rounded` is odd."""
    form, code = float_format(value), value.code
    sign = code.bits(rounded) << (form.mantissa_bits + form.bias.bit_length() + 1)
    return code.from_bits(code.bits(value) ^ sign, form.element)


@define("sin", libm="sin")
def _sin(code: Code, x: Lane) -> tuple[Lane, Lane]:
    form = float_format(x)
    rounded = code.fma(x, 1 / math.pi, form.magic)
    r = _less_multiple(x, rounded - form.magic, 1.0)
    value = _flip_sign(sin_series(r), rounded)
    return code.select(code.equal(x, 0.0), x, value), _too_large(x)


@define("cos", libm="cos")
def _cos(code: Code, x: Lane) -> tuple[Lane, Lane]:
    """cos(x) = sin(pi/2 - |x| + n pi), up to sign, with n + 1/2 the multiple nearest."""
    form = float_format(x)
    a = code.absolute(x)
    rounded = code.fma(a, 1 / math.pi, -0.5) + form.magic
    count = rounded - form.magic + 0.5
    r = _less_multiple(a, count, 1.0)
    return -_flip_sign(sin_series(r), rounded), _too_large(x)


@define("tan", libm="tan")
def _tan(code: Code, x: Lane) -> tuple[Lane, Lane]:
    form = float_format(x)
    rounded = code.fma(x, 2 / math.pi, form.magic)
    r = _less_multiple(x, rounded - form.magic, 0.5)
    square = r * r
    sine = sin_series(r)
    poly = code.polynomial(square, table(tables.COS_F32, tables.COS_F64, x))
    cosine = code.fma(square * square, poly, code.fma(square, -0.5, 1.0))
    odd = code.equal(code.bits(rounded) & 1, 1)
    value = code.select(odd, -cosine, sine) / code.select(odd, sine, cosine)
    return code.select(code.equal(x, 0.0), x, value), _too_large(x)


def _atan_series(t: Lane) -> Lane:
    """atan(t) of t from 0 to 1."""
    square = t * t
    poly = t.code.polynomial(square, table(tables.ATAN_F32, tables.ATAN_F64, t))
    return t.code.fma(t * square, poly, t)


@define("atan")
def _atan(code: Code, x: Lane) -> Lane:
    a = code.absolute(x)
    large = a > 1.0
    t = code.select(large, 1.0 / a, a)
    y = _atan_series(t)
    high, low, _ = PI_PARTS[x.element]
    y = code.select(large, high / 2 - (y - low / 2), y)
    return code.copysign(y, x)


@define("atan2", arity=2)
def _atan2(code: Code, y: Lane, x: Lane) -> Lane:
    top, bottom = code.absolute(y), code.absolute(x)
    steep = code.compare("ogt", top, bottom)
    large, small = code.select(steep, top, bottom), code.select(steep, bottom, top)
    # Equal magnitudes, infinities and zeros among them, have the quotient 1 or 0.
    equal = code.equal(top, bottom)
    both_zero = code.equal(large, 0.0)
    quotient = code.select(equal, 1.0, small / large)
    quotient = code.select(both_zero, 0.0, quotient)
    high, low, _ = PI_PARTS[x.element]
    angle = _atan_series(quotient)
    angle = code.select(steep, high / 2 - (angle - low / 2), angle)
    negative = code.compare("slt", code.bits(x), 0)
    angle = code.select(negative, high - (angle - low), angle)
    angle = code.copysign(angle, y)
    return code.select(code.compare("uno", x, y), x + y, angle)


def _asin_parts(x: Lane) -> tuple[Lane, Lane, Lane]:
    """(|x|, whether |x| is above 1/2, asin of |x| or of sqrt((1 - |x|) / 2))."""
    code = x.code
    a = code.absolute(x)
    large = a > 0.5
    square = code.select(large, code.fma(a, -0.5, 0.5), a * a)
    root = code.select(large, code.sqrt(square), a)
    poly = code.polynomial(square, table(tables.ASIN_F32, tables.ASIN_F64, x))
    return a, large, code.fma(root * square, poly, root)


@define("asin")
def _asin(code: Code, x: Lane) -> Lane:
    _, large, part = _asin_parts(x)
    high, low, _ = PI_PARTS[x.element]
    value = code.select(large, high / 2 - (part + part - low / 2), part)
    return code.copysign(value, x)


@define("acos")
def _acos(code: Code, x: Lane) -> Lane:
    _, large, part = _asin_parts(x)
    high, low, _ = PI_PARTS[x.element]
    double = part + part
    outer = code.select(x > 0.0, double, high - (double - low))
    inner = high / 2 - (code.copysign(part, x) - low / 2)
    return code.select(large, outer, inner)
