"""erf, erfc, erfinv, lgamma and digamma."""

from __future__ import annotations

import math

from irc.codegen.math import coefficients as tables
from irc.codegen.math.basic import round_by
from irc.codegen.math.code import Code, Lane
from irc.codegen.math.exponential import exp_of, log_of
from irc.codegen.math.registry import define, define_libm, float_format, table
from irc.codegen.math.trigonometric import sin_series

#: The step of erf's pieces, their centers and coefficients, by their number; see `fit.py`.
ERF_PIECES = {
    16: (0.25, tables.ERF_16_CENTERS_F32, tables.ERF_16_PIECES_F32),
    8: (0.52, tables.ERF_8_CENTERS_F32, tables.ERF_8_PIECES_F32),
}


def _erfc_positive(a: Lane) -> Lane:
    """erfc of a >= 0, as exp(-a^2) / (1 + 2a) times a polynomial of (a - 4) / (a + 4)."""
    code = a.code
    a = code.at_most(a, table(10.1, 27.3, a))
    # The quotient t is mended by its residual (a - 4) - t (a + 4): near t = -1 its rounding
    # would show in the result.
    inverse = 1.0 / (a + 4.0)
    t = (a - 4.0) * inverse
    residual = code.fma(t, -a, code.fma(t + 1.0, -4.0, a))
    t = code.fma(inverse, residual, t)
    poly = code.polynomial(t, table(tables.ERFC_F32, tables.ERFC_WIDE_F64, a))
    square = a * a
    lost = code.fma(a, a, -square)
    # exp(-(s + e)) = exp(-s) (1 - e); the factor goes in before the one that may be a denormal.
    factor = poly / code.fma(a, 2.0, 1.0)
    return exp_of(-square) * code.fma(-lost, factor, factor)


@define("erfc")
def _erfc(code: Code, x: Lane) -> Lane:
    value = _erfc_positive(code.absolute(x))
    return code.select(code.compare("olt", x, 0.0), 2.0 - value, value)


def _erf_by_table(x: Lane) -> Lane:
    """erf of f32 lanes: one polynomial for each step of |x| up to 4."""
    code, magic = x.code, float_format(x).magic
    entries = code.lookup_entries
    step, centers, pieces = ERF_PIECES[entries]
    a = code.at_most(code.absolute(x), step * (entries - 0.5) - 2.0**-22)
    # The sum's low bits number the center that a is nearest to.
    exact = math.frexp(step)[0] == 0.5
    index = code.bits(a + magic * step if exact else code.fma(a, 1 / step, magic))
    u = a - code.lookup(index, centers)
    first, *higher = [code.lookup(index, column) for column in pieces]
    value = higher.pop()
    while higher:
        value = code.fma(value, u, higher.pop())
    # In the first piece erf(u) - u, which is small, is what the polynomial gives.
    start = code.select(a <= step / 2, a, first)
    return code.copysign(code.fma(value, u, start), x)


@define("erf")
def _erf(code: Code, x: Lane) -> Lane:
    if x.element == "f32" and code.lookup_entries:
        return _erf_by_table(x)
    a = code.absolute(x)
    near = code.at_most(a, 1.0)
    inner = code.polynomial(near * near, table(tables.ERF_F32, tables.ERF_F64, x))
    if x.element == "f32":
        # Near 1 only the absolute error of erfc counts: a polynomial without exp is enough.
        outer = 1.0 - code.polynomial(code.at_most(a, 3.95) - 2.5, tables.ERF_TAIL_F32)
    else:
        outer = 1.0 - _erfc_positive(a)
    value = code.select(a > 1.0, outer, code.fma(near, inner, near))
    return code.copysign(value, x)


@define("erfinv", elements=("f32",))
def _erfinv(code: Code, x: Lane) -> Lane:
    w = -log_of((1.0 - x) * (x + 1.0))
    central = code.polynomial(code.at_most(w, 5.0) - 2.5, tables.ERFINV_CENTRAL_F32)
    tail = code.polynomial(code.sqrt(w) - 3.0, tables.ERFINV_TAIL_F32)
    value = code.select(w > 5.0, tail, central) * x
    edge = code.equal(code.absolute(x), 1.0)
    limit = code.copysign(code.value(x.element, math.inf), x)
    return code.select(edge, limit, value)


STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
DIGAMMA_ASYMPTOTIC = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_SHIFT = 8


def _log_gamma_positive(a: Lane) -> Lane:
    """log(gamma(a)) in f64 for a > 0: Stirling's series, a shifted up by 8 where it is small."""
    code = a.code
    small = a < 8.0
    product = code.select(small, a, 1.0)
    for step in range(1, _SHIFT):
        product = product * code.select(small, a + float(step), 1.0)
    z = code.select(small, a + float(_SHIFT), a)
    inverse = 1.0 / z
    series = inverse * code.polynomial(inverse * inverse, STIRLING)
    value = (z - 0.5) * log_of(z) - z + (0.5 * math.log(2 * math.pi) + series)
    return value - log_of(product)


def _sin_pi(x: Lane) -> tuple[Lane, Lane]:
    """(x less the nearest integer, |sin(pi x)|)."""
    code = x.code
    rest = x - round_by("llvm.rint", x)
    return rest, code.absolute(sin_series(rest * math.pi))


@define("lgamma", elements=("f32",), exact=True)
def _lgamma(code: Code, x: Lane) -> Lane:
    """In f64, whose digits near the zeros at 1 and 2 suffice for f32."""
    wide = code.cast("fpext", x, "f64")
    a = code.absolute(wide)
    value = _log_gamma_positive(a)
    _, sine = _sin_pi(wide)
    reflected = math.log(math.pi) - log_of(sine * a) - value
    value = code.select(code.compare("olt", wide, 0.0), reflected, value)
    # A pole at zero and each negative integer; every f32 of 2^23 and more is an integer.
    pole = code.equal(round_by("llvm.floor", wide), wide) & code.compare("ole", wide, 0.0)
    value = code.select(pole | code.equal(a, math.inf), math.inf, value)
    value = code.select(code.equal(wide, 1.0) | code.equal(wide, 2.0), 0.0, value)
    return code.cast("fptrunc", value, "f32")


def _digamma_wide(wide: Lane) -> Lane:
    """digamma in f64."""
    code = wide.code
    negative = code.compare("olt", wide, 0.0)
    a = code.select(negative, 1.0 - wide, wide)
    small = a < 8.0
    shift = code.value("f64", 0.0)
    for step in range(_SHIFT):
        shift = shift + 1.0 / (a + float(step))
    z = code.select(small, a + float(_SHIFT), a)
    inverse = 1.0 / z
    square = inverse * inverse
    value = log_of(z) - 0.5 * inverse - square * code.polynomial(square, DIGAMMA_ASYMPTOTIC)
    value = value - code.select(small, shift, 0.0)
    rest = wide - round_by("llvm.rint", wide)
    sine = sin_series(rest * math.pi)
    cosine = sin_series((0.5 - code.absolute(rest)) * math.pi)
    value = code.select(negative, value - math.pi * cosine / sine, value)
    whole = code.equal(round_by("llvm.floor", wide), wide)
    value = code.select(whole & negative, math.nan, value)
    infinite = code.copysign(code.value("f64", math.inf), -wide)
    return code.select(code.equal(wide, 0.0), infinite, value)


@define("digamma", elements=("f32",), exact=True)
def _digamma(code: Code, x: Lane) -> Lane:
    return code.cast("fptrunc", _digamma_wide(code.cast("fpext", x, "f64")), "f32")


@define("digamma", elements=("f64",))
def _digamma_double(code: Code, x: Lane) -> Lane:
    return _digamma_wide(x)


define_libm("lgamma", "lgamma")
define_libm("tgamma", "tgamma", elements=("f32", "f64"))
