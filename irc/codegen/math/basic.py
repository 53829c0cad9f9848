"""Functions that are one instruction or a few: rounding, sign, extremes, tests, remainders."""

from __future__ import annotations

import math

from irc.codegen.math.code import BITS, Code, Lane
from irc.codegen.math.registry import define, float_format


def _intrinsic(name: str, stem: str) -> None:
    @define(name, exact=True)
    def emit(code: Code, x: Lane) -> Lane:
        return code.call(stem, x.element, x)


_intrinsic("abs", "llvm.fabs")
_intrinsic("sqrt", "llvm.sqrt")


def _rounding(name: str, stem: str) -> None:
    @define(name, exact=True)
    def emit(code: Code, x: Lane) -> Lane:
        return round_by(stem, x)


def round_by(stem: str, x: Lane) -> Lane:
    """A rounding intrinsic; without an instruction for it, arithmetic and no call."""
    code, features = x.code, x.code.features
    if not features.is_x86 or features.has_avx2:
        return code.call(stem, x.element, x)
    form = float_format(x)
    a = code.absolute(x)
    limit = 2.0**form.mantissa_bits
    nearest = (a + limit) - limit
    if stem == "llvm.trunc":
        nearest = code.select(nearest > a, nearest - 1.0, nearest)
    signed = code.copysign(nearest, x)
    if stem == "llvm.floor":
        signed = code.select(signed > x, signed - 1.0, signed)
    if stem == "llvm.ceil":
        signed = code.copysign(code.select(signed < x, signed + 1.0, signed), x)
    return code.select(a < limit, signed, x)


# torch.round is half to even, as the machine's nearest is.
for _name, _stem in (
    ("floor", "llvm.floor"),
    ("ceil", "llvm.ceil"),
    ("trunc", "llvm.trunc"),
    ("round", "llvm.rint"),
):
    _rounding(_name, _stem)


def divided_by_inverse(code: Code, x: Lane, divisor: Lane, inverse: Lane) -> tuple[Lane, Lane]:
    """(x / divisor, the lanes where that is no number), for `inverse` = 1 / divisor rounded.

    Markstein's correction (IBM Journal of Research and Development 34, 1990): the rest of the
    rounded product is exact, and its quotient added rounds as the division does, but for a divisor
    whose digits are all ones and for a denormal quotient, which may be off by its last place.
    Infinite and zero operands, and divisors without a finite inverse, give NaN.
    """
    near = x * inverse
    quotient = code.fma(code.fma(-near, divisor, x), inverse, near)
    # Nothing added to a negative zero is a positive one.
    sign = code.bits(near) & (-1 << (BITS[x.element] - 1))
    quotient = code.from_bits(code.bits(quotient) | sign, x.element)
    return quotient, code.is_nan(quotient)


@define("rsqrt")
def _rsqrt(code: Code, x: Lane) -> Lane:
    return 1.0 / code.sqrt(x)


@define("reciprocal", exact=True)
def _reciprocal(code: Code, x: Lane) -> Lane:
    return 1.0 / x


@define("copysign", arity=2, exact=True)
def _copysign(code: Code, x: Lane, y: Lane) -> Lane:
    return code.copysign(x, y)


@define("neg", exact=True)
def _neg(code: Code, x: Lane) -> Lane:
    return -x


@define("maximum", arity=2, exact=True)
def _maximum(code: Code, x: Lane, y: Lane) -> Lane:
    """A NaN of either side propagates. x where they are equal, so that it keeps its zero's sign,
    and one instruction of x86 where y is a number: its vmaxps a, b is a > b ? a : b."""
    return code.select(code.is_nan(y), y, code.select(code.compare("ogt", y, x), y, x))


@define("minimum", arity=2, exact=True)
def _minimum(code: Code, x: Lane, y: Lane) -> Lane:
    return code.select(code.is_nan(y), y, code.select(code.compare("olt", y, x), y, x))


@define("fmax", arity=2, exact=True)
def _fmax(code: Code, x: Lane, y: Lane) -> Lane:
    """The number when one side is NaN."""
    return code.select(code.is_nan(y), x, code.select(code.compare("ogt", x, y), x, y))


@define("fmin", arity=2, exact=True)
def _fmin(code: Code, x: Lane, y: Lane) -> Lane:
    return code.select(code.is_nan(y), x, code.select(code.compare("olt", x, y), x, y))


@define("isnan", exact=True)
def _isnan(code: Code, x: Lane) -> Lane:
    return code.is_nan(x)


@define("isinf", exact=True)
def _isinf(code: Code, x: Lane) -> Lane:
    return code.equal(code.absolute(x), math.inf)


@define("isfinite", exact=True)
def _isfinite(code: Code, x: Lane) -> Lane:
    return code.compare("olt", code.absolute(x), math.inf)


@define("signbit", exact=True)
def _signbit(code: Code, x: Lane) -> Lane:
    return code.compare("slt", code.bits(x), 0)


@define("sign", exact=True)
def _sign(code: Code, x: Lane) -> Lane:
    """0 of a zero and of NaN, as torch.sign."""
    above = code.select(x > 0.0, code.value(x.element, 1.0), 0.0)
    return code.select(x < 0.0, -1.0, above)


def _fmod_parts(x: Lane, y: Lane) -> tuple[Lane, Lane]:
    """fmod for quotients that fit the mantissa, and the lanes where they may not."""
    form, code = float_format(x), x.code
    a, b = code.absolute(x), code.absolute(y)
    quotient = a / b
    whole = round_by("llvm.trunc", quotient)
    # Exact: the remainder has no more digits than b; the quotient is off by one at most.
    rest = code.fma(-whole, b, a)
    rest = code.select(rest < 0.0, rest + b, rest)
    rest = code.select(rest >= b, rest - b, rest)
    limit = 2.0 ** (form.mantissa_bits - 1)
    easy = code.compare("olt", quotient, limit) & code.compare("olt", b, math.inf)
    easy = easy & code.compare("ogt", b, form.smallest_normal * 2.0**form.mantissa_bits)
    return code.copysign(rest, x), ~easy


@define("fmod", arity=2, libm="fmod", exact=True)
def _fmod(code: Code, x: Lane, y: Lane) -> tuple[Lane, Lane]:
    return _fmod_parts(x, y)


@define("remainder_of_fmod", arity=2, exact=True)
def _remainder_of_fmod(code: Code, mod: Lane, y: Lane) -> Lane:
    """torch.remainder from fmod's result: the sign becomes the divisor's."""
    differs = code.compare("slt", code.bits(mod) ^ code.bits(y), 0)
    fix = code.compare("une", mod, 0.0) & differs
    return code.select(fix, mod + y, mod)


@define("floor_divide_of_fmod", arity=3, exact=True)
def _floor_divide_of_fmod(code: Code, x: Lane, y: Lane, mod: Lane) -> Lane:
    """torch's floor division from fmod(x, y): a quotient corrected to a whole number."""
    quotient = (x - mod) / y
    differs = code.compare("slt", code.bits(mod) ^ code.bits(y), 0)
    fix = code.compare("une", mod, 0.0) & differs
    quotient = code.select(fix, quotient - 1.0, quotient)
    down = round_by("llvm.floor", quotient)
    down = code.select(quotient - down > 0.5, down + 1.0, down)
    zero = code.copysign(code.value(x.element, 0.0), x / y)
    result = code.select(code.compare("une", quotient, 0.0), down, zero)
    return code.select(code.equal(y, 0.0), x / y, result)
