"""exp, log and what is made of them: powers, sigmoid, hyperbolic functions and their inverses.

Powers that round to zero, as those of masked scores, are made zero rather than rounded to it: where
a result is below the normal numbers, Intel's processors run microcode for some 150 cycles, also
where it is rounded to zero (256 x 1024 f32, half of them -inf, softmax on a Xeon: 1217 us rounded,
277 made zero).
"""

from __future__ import annotations

import math

from irc.codegen.math import coefficients as tables
from irc.codegen.math.code import Code, Lane
from irc.codegen.math.registry import define, define_libm, float_format, table

LOG2_E = 1.4426950408889634
LOG2_E_LOW = {"f32": 1.9259629911266175e-08, "f64": 2.0355273740931033e-17}
LOG10_E = 0.4342944819032518
LOG10_E_LOW = {"f32": -1.0103050052231683e-08, "f64": 1.098319650216765e-17}
LOG10_2_HIGH = {"f32": float.fromhex("0x1.344p-2"), "f64": float.fromhex("0x1.34413509f0000p-2")}
LOG10_2_LOW = {"f32": 4.605038981195214e-06, "f64": 1.7336659603752853e-12}


def _power_of_two(rounded: Lane) -> Lane:
    """2^n, for n in the exponents of normal numbers, from `rounded` = n + bias + magic."""
    form = float_format(rounded)
    return rounded.code.from_bits(rounded.code.bits(rounded) << form.mantissa_bits, form.element)


def _has_scaling(code: Code, element: str) -> bool:
    """Whether one instruction of AVX-512 scales these lanes by powers of two."""
    return code.features.has_avx512 and code.lanes * (32 if element == "f32" else 64) == 512


def _scaled(value: Lane, count: Lane, keep: Lane | None = None) -> Lane:
    """value * 2^count rounded once, also to a denormal or infinity; where `_has_scaling`. Zero
    where not `keep`."""
    code = value.code
    suffix, mask = "ps" if value.element == "f32" else "pd", f"i{code.lanes}"
    kept, other = "-1", value.ref
    if keep is not None:
        bits = code.record(f"bitcast {code.type('i1')} {keep.ref} to {mask}", f"={mask}")
        kept, other = bits.ref, "zeroinitializer"
    name = f"llvm.x86.avx512.mask.scalef.{suffix}.512"
    vector, element = code.type(value.element), value.element
    code.declarations[name] = (element, (element, element, element, f"={mask}", "=i32"))
    operands = f"{vector} {value.ref}, {vector} {count.ref}, {vector} {other}"
    return code.record(f"call {vector} @{name}({operands}, {mask} {kept}, i32 4)", element)


def _power_offset(x: Lane) -> int:
    """What `_power` wants added to the magic number that rounds its exponent."""
    return 0 if _has_scaling(x.code, x.element) else 2 * float_format(x).bias


def _power(residue: Lane, rounded: Lane, count: Lane, keep: Lane | None = None) -> Lane:
    """(1 + residue) * 2^n rounded once, also to a denormal or infinity, for `count` = n and
    `rounded` = n + magic + `_power_offset`. Zero where not `keep`."""
    form, code = float_format(residue), residue.code
    if _has_scaling(code, form.element):
        return _scaled(residue + 1.0, count, keep)
    # Half of n + 2 bias is a biased exponent, and so is the rest. The product with the first
    # power is exact but for the sum's rounding; only the second one may leave the normal range.
    bits = code.bits(rounded)
    exponents = ((1 << form.exponent_bits) - 1) << form.mantissa_bits
    half = (bits << (form.mantissa_bits - 1)) & exponents
    rest = (bits << form.mantissa_bits) - half
    first = code.from_bits(half, form.element)
    second = code.from_bits(rest, form.element)
    if keep is not None:
        second = code.select(keep, second, 0.0)
    return code.fma(residue, first, first) * second


def _reduce(x: Lane, offset: int = 0) -> tuple[Lane, Lane, Lane]:
    """(n + magic + offset, n, r) with x = n ln 2 + r and |r| at most ln 2 / 2."""
    form, code = float_format(x), x.code
    magic = form.magic + offset
    rounded = code.fma(x, LOG2_E, magic)
    count = rounded - magic
    r = code.fma(count, -form.log2_high, x)
    return rounded, count, code.fma(count, -form.log2_low, r)


def _residue(r: Lane) -> Lane:
    """exp(r) - 1 of a reduced r."""
    poly = r.code.polynomial(r, table(tables.EXP_F32, tables.EXP_F64, r))
    return r.code.fma(r * r, poly, r)


def _clamped(x: Lane, low: float, high: float) -> Lane:
    return x.code.at_least(x.code.at_most(x, high), low)


def _exp_between(x: Lane, keep: Lane | None = None) -> Lane:
    """exp(x) of an x between the format's `exp_low` and `exp_high`; zero where not `keep`."""
    if x.element == "f32" and _has_scaling(x.code, "f32"):
        return _exp_by_table(x, keep)
    rounded, count, r = _reduce(x, _power_offset(x))
    return _power(_residue(r), rounded, count, keep)


def _above(x: Lane, low: float) -> tuple[Lane, Lane]:
    """(x, whether it is a power's exponent): what lies below `low` may be any number where one
    instruction scales, and is `low` elsewhere."""
    keep = x.code.compare("uge", x, low)
    return x if _has_scaling(x.code, x.element) else x.code.at_least(x, low), keep


def _exp_by_table(x: Lane, keep: Lane | None = None) -> Lane:
    """exp of f32 lanes as 2^n 2^(i/16) exp(r): a shuffle does the work of three powers of r."""
    form, code = float_format(x), x.code
    # In sixteenths; the low four bits of the sum are i, and scaling by 2^count takes its floor.
    magic = form.magic / len(tables.EXP_POWERS_F32)
    sum_ = code.fma(x, LOG2_E, magic)
    count = sum_ - magic
    r = code.fma(count, -form.log2_high, x)
    r = code.fma(count, -form.log2_low, r)
    slope = code.fma(code.polynomial(r, tables.EXP_SIXTEENTH_F32), r, 1.0)
    index = code.bits(sum_)
    power = code.lookup(index, tables.EXP_POWERS_F32)
    grown = code.fma(slope, r, code.lookup(index, tables.EXP_POWERS_REST_F32))
    return _scaled(code.fma(power, grown, power), count, keep)


def exp_of(x: Lane) -> Lane:
    """exp(x) for any x."""
    form = float_format(x)
    return _exp_between(*_above(x.code.at_most(x, form.exp_high), form.exp_low))


@define("exp")
def _exp(code: Code, x: Lane) -> Lane:
    return exp_of(x)


@define("exp2")
def _exp2(code: Code, x: Lane) -> Lane:
    form = float_format(x)
    low, high = table((-151.0, 129.0), (-1076.0, 1025.0), x)
    x, keep = _above(code.at_most(x, high), low)
    magic = form.magic + _power_offset(x)
    rounded = x + magic
    count = rounded - magic
    return _power(_residue((x - count) * math.log(2.0)), rounded, count, keep)


def _expm1_parts(x: Lane, quarter: bool = False) -> Lane:
    """exp(x) - 1, or a quarter of it, of an x whose exponent stays in the normal range."""
    rounded, _, r = _reduce(x, float_format(x).bias - (2 if quarter else 0))
    q = _residue(r)
    scale = _power_of_two(rounded)
    return x.code.fma(q, scale, scale - (0.25 if quarter else 1.0))


@define("expm1")
def _expm1(code: Code, x: Lane) -> Lane:
    form = float_format(x)
    # A quarter, because 2^n overflows before exp(x) - 1 does.
    part = _expm1_parts(_clamped(x, -40.0, form.exp_high), quarter=True)
    # Below that the quarter would be rounded to a denormal; x itself is the nearest there.
    tiny = code.absolute(x) < form.smallest_normal * 16.0
    return code.copysign(code.select(tiny, x, part * 4.0), x)


def _lifted_exp(x: Lane) -> tuple[Lane, float]:
    """(exp(x) 2^up, 2^up), the first of them normal, for x from `exp_low` to 64."""
    up = table(26, 60, x)
    rounded, _, r = _reduce(x, float_format(x).bias + up)
    scale = _power_of_two(rounded)
    return x.code.fma(_residue(r), scale, scale), 2.0**up


@define("exp_nonpositive")
def _exp_nonpositive(code: Code, x: Lane) -> Lane:
    """exp(x) for x up to 64."""
    x, keep = _above(x, float_format(x).exp_low)
    if _has_scaling(code, x.element):
        return _exp_between(x, keep)
    power, unit = _lifted_exp(x)
    return power * code.select(keep, code.value(x.element, 1.0 / unit), 0.0)


@define("sigmoid")
def _sigmoid(code: Code, x: Lane) -> Lane:
    # Above the limit the result is 1 to rounding; below it the power keeps its digits.
    x, keep = _above(code.at_most(x, table(20.0, 40.0, x)), float_format(x).exp_low)
    if _has_scaling(code, x.element):
        power = _exp_between(x, keep)
        return code.quotient(power, power + 1.0)
    power, unit = _lifted_exp(x)
    power = code.select(keep, power, 0.0)
    return power / (power + unit)


@define("tanh")
def _tanh(code: Code, x: Lane) -> Lane:
    a = code.at_most(code.absolute(x), table(9.1, 20.0, x))
    e = _expm1_parts(a + a)
    return code.copysign(e / (e + 2.0), x)


@define("sinh")
def _sinh(code: Code, x: Lane) -> Lane:
    a = code.absolute(x)
    half = _expm1_parts(code.at_most(a, table(89.5, 710.5, x)), quarter=True) * 2.0
    # em / (em + 1) is 1 to rounding far below the bound, which keeps infinity out of it.
    bounded = code.at_most(half, 2.0**60)
    value = half + bounded / code.fma(bounded, 2.0, 1.0)
    tiny = a < table(2.0**-13, 2.0**-28, x)
    return code.copysign(code.select(tiny, a, value), x)


@define("cosh")
def _cosh(code: Code, x: Lane) -> Lane:
    form = float_format(x)
    a = code.at_most(code.absolute(x), form.exp_high + 1.0)
    rounded, _, r = _reduce(a, form.bias - 2)
    half = (_residue(r) + 1.0) * _power_of_two(rounded) * 2.0
    return half + 0.25 / half


def _log_series(f: Lane) -> Lane:
    """log(1 + f) - f for 1 + f between sqrt(1/2) and sqrt(2)."""
    code = f.code
    if f.element == "f32":
        return f * f * code.polynomial(f, tables.LOG_F32)
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    ratio = z * code.polynomial(z, tables.LOG_RATIO_F64)
    return code.fma(s, half_square + ratio, -half_square)


def _exponent_field(x: Lane) -> tuple[Lane, Lane]:
    """(n, n << mantissa bits) for positive normal x = 2^n m, m from sqrt(1/2) to sqrt(2)."""
    form, code = float_format(x), x.code
    root = _root_half_bits(form.element)
    field = code.bits(x) - root
    shifted = field & -(1 << form.mantissa_bits)
    if form.element == "f32":
        return code.cast("sitofp", field >> 23, "f32"), shifted
    # AVX2 neither shifts nor converts signed 64-bit integers: build n + bias + 2^52 as bits.
    biased = code.logical_shift_right(field + (1023 << 52), 52) | (1075 << 52)
    return code.from_bits(biased, "f64") - (2.0**52 + 1023.0), shifted


def _root_half_bits(element: str) -> int:
    return 0x3F3504F3 if element == "f32" else 0x3FE6A09E667F3BCD


def _log_split(x: Lane) -> tuple[Lane, Lane]:
    """(n, f) with x = 2^n (1 + f), for positive finite x, denormals included."""
    form, code = float_format(x), x.code
    shift = form.mantissa_bits + 2
    small = x < form.smallest_normal
    normal = code.select(small, x * 2.0**shift, x)
    n, shifted = _exponent_field(normal)
    m = code.from_bits(code.bits(normal) - shifted, form.element)
    return n - code.select(small, code.value(form.element, float(shift)), 0.0), m - 1.0


def _log_limits(result: Lane, x: Lane) -> Lane:
    """`result` where 0 < x < inf; -inf of 0, NaN below, x itself of infinity and NaN."""
    code = x.code
    result = code.select(code.compare("olt", x, math.inf), result, x)
    zero = code.select(
        code.equal(x, 0.0), code.value(x.element, -math.inf), code.value(x.element, math.nan)
    )
    return code.select(x > 0.0, result, zero)


def log_sum(n: Lane, f: Lane) -> Lane:
    """n ln 2 + log(1 + f)."""
    form, code = float_format(f), f.code
    small = code.fma(n, form.log2_low, _log_series(f)) + f
    return code.fma(n, form.log2_high, small)


def log_of(x: Lane) -> Lane:
    """log(x) for any x."""
    return _log_limits(log_sum(*_log_split(x)), x)


@define("log")
def _log(code: Code, x: Lane) -> Lane:
    return log_of(x)


def _log_times(f: Lane, factor: float, factor_low: float) -> Lane:
    """log(1 + f) times a constant given in two parts."""
    code = f.code
    return code.fma(f, factor, code.fma(f, factor_low, _log_series(f) * factor))


@define("log2")
def _log2(code: Code, x: Lane) -> Lane:
    n, f = _log_split(x)
    return _log_limits(n + _log_times(f, LOG2_E, LOG2_E_LOW[x.element]), x)


@define("log10")
def _log10(code: Code, x: Lane) -> Lane:
    n, f = _log_split(x)
    y = _log_times(f, LOG10_E, LOG10_E_LOW[x.element])
    low = code.fma(n, LOG10_2_LOW[x.element], y)
    return _log_limits(code.fma(n, LOG10_2_HIGH[x.element], low), x)


def log1p_of(x: Lane) -> Lane:
    """log(1 + x), without its limits, for -1 < x < inf."""
    form, code = float_format(x), x.code
    n, shifted = _exponent_field(x + 1.0)
    # 2^-n is a denormal at the top of the range: reach it through four times itself.
    inverse = code.from_bits(
        code.value(form.integer, (form.bias + 2) << form.mantissa_bits) - shifted, form.element
    )
    inverse = inverse * 0.25
    return log_sum(n, code.fma(inverse, x, inverse - 1.0))


@define("log1p")
def _log1p(code: Code, x: Lane) -> Lane:
    return code.copysign(_log_limits(log1p_of(x), x + 1.0), x)


def _wide_sum(a: Lane, extra: Lane) -> Lane:
    """log1p(extra), or log(2a) where a is so large that extra would overflow."""
    code = a.code
    large = a > 2.0**50
    value = log1p_of(code.select(large, a, extra))
    value = value + code.select(large, code.value(a.element, math.log(2.0)), 0.0)
    return code.select(code.compare("olt", a, math.inf), value, a)


@define("asinh")
def _asinh(code: Code, x: Lane) -> Lane:
    a = code.absolute(x)
    square = a * a
    return code.copysign(_wide_sum(a, a + square / (code.sqrt(square + 1.0) + 1.0)), x)


@define("acosh")
def _acosh(code: Code, x: Lane) -> Lane:
    t = x - 1.0
    value = _wide_sum(x, t + code.sqrt(code.fma(t, t, t + t)))
    return code.select(code.compare("ult", x, 1.0), math.nan, value)


@define("atanh")
def _atanh(code: Code, x: Lane) -> Lane:
    a = code.absolute(x)
    value = _log_limits(log1p_of((a + a) / (1.0 - a)), (a + a) / (1.0 - a) + 1.0)
    return code.copysign(value * 0.5, x)


@define("pow", arity=2, elements=("f32",), exact=True)
def _pow(code: Code, x: Lane, y: Lane) -> Lane:
    """In f64, whose exponent takes every f32 result before the one rounding at the end."""
    a, exponent = code.absolute(x), code.cast("fpext", y, "f64")
    wide = code.cast("fpext", a, "f64")
    field, shifted = _exponent_field(wide)
    f = code.from_bits(code.bits(wide) - shifted, "f64") - 1.0
    s = f / (f + 2.0)
    square = s * s
    log2 = code.fma(s * code.polynomial(square, tables.POW_LOG_F64), LOG2_E, field)
    log2 = code.select(code.compare("olt", wide, math.inf), log2, wide)
    log2 = code.select(code.equal(wide, 0.0), -math.inf, log2)
    product = _clamped(exponent * log2, -200.0, 200.0)
    rounded, _, r = _reduce(product * math.log(2.0), float_format(product).bias)
    power = code.fma(r * r, code.polynomial(r, tables.POW_EXP_F64), r + 1.0)
    value = code.cast("fptrunc", power * _power_of_two(rounded), "f32")
    one = code.equal(a, 1.0) | code.equal(y, 0.0)
    value = code.select(one, 1.0, value)
    whole = code.equal(code.call("llvm.trunc", "f32", y), y)
    half = y * 0.5
    odd = whole & code.compare("one", code.call("llvm.trunc", "f32", half), half)
    value = code.select(odd, code.copysign(value, x), value)
    undefined = (x < 0.0) & code.compare("ogt", x, -math.inf) & ~whole
    undefined = undefined & code.compare("one", y, 0.0) | (code.is_nan(y) & (x < 0.0))
    return code.select(undefined, math.nan, value)


define_libm("pow", "pow", arity=2)
define_libm("cbrt", "cbrt", elements=("f32", "f64"))
