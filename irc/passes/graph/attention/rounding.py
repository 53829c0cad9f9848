"""What becomes of numbers that a dtype has to hold: exactly, or between which they lie.

    held(2051, "float16")                # 2052.0
    held_between((0, 2051), "float16")   # (0.0, 2052.0)
"""

from __future__ import annotations

import math
from fractions import Fraction

import attrs

#: Between what the elements of a tensor lie: integers of integers, exactly.
Interval = tuple[float, float]


@attrs.frozen
class _Floats:
    """A float type. bits: of a mantissa, with the leading one; least: the exponent of its smallest
    number; largest: its largest number."""

    bits: int
    least: int
    largest: float

    def around(self, number: float) -> tuple[Fraction, Fraction]:
        """The nearest numbers of this type that are at most and at least a finite number, as if
        none were too large."""
        exact = Fraction(number)
        if not exact:
            return exact, exact
        exponent = math.frexp(float(number))[1] - self.bits
        step = Fraction(2) ** max(exponent, self.least)
        return math.floor(exact / step) * step, math.ceil(exact / step) * step


def _floats(bits: int, most: int, least: int) -> _Floats:
    return _Floats(bits, least, math.ldexp(2 - math.ldexp(1, 1 - bits), most))


FLOATS = {
    "float16": _floats(11, 15, -24), "bfloat16": _floats(8, 127, -133),
    "float32": _floats(24, 127, -149), "float64": _floats(53, 1023, -1074),
}  # fmt: skip
INTEGERS = {
    **{f"int{n}": (-(1 << n - 1), (1 << n - 1) - 1) for n in (8, 16, 32, 64)},
    **{f"uint{n}": (0, (1 << n) - 1) for n in (8, 16, 32, 64)},
}


def held(number: float, dtype: str) -> float | None:
    """A number as a dtype holds it: rounded to the nearest, ties to even; None where torch doesn't
    say what it becomes."""
    if dtype == "bool":
        return float(number != 0)
    if dtype in INTEGERS:
        low, high = INTEGERS[dtype]
        inside = math.isfinite(number) and low <= math.trunc(number) <= high
        return math.trunc(number) if inside else None
    floats = FLOATS.get(dtype)
    if floats is None:
        return None
    if not math.isfinite(number):
        return number
    below, above = floats.around(number)
    middle, exact = (below + above) / 2, Fraction(number)
    nearest = below if exact < middle else above
    if exact == middle and below != above:  # what is even is a multiple of twice their distance
        nearest = below if below / (above - below) % 2 == 0 else above
    return math.copysign(math.inf, nearest) if abs(nearest) > floats.largest else float(nearest)


def held_between(ends: Interval, dtype: str) -> Interval | None:
    """Between what numbers lie that are between `ends` and have become a dtype's, however often and
    in whatever way they are rounded in between; None where one may be none of them."""
    low, high = ends
    if dtype == "bool":
        return (1.0, 1.0) if low > 0 or high < 0 else (0.0, float(any(ends)))
    if dtype in INTEGERS:
        low, high = math.trunc(low), math.trunc(high)
        least, most = INTEGERS[dtype]
        return (low, high) if least <= low and high <= most else None
    floats = FLOATS.get(dtype)
    if floats is None:
        return None
    below, above = floats.around(low)[0], floats.around(high)[1]
    inside = -floats.largest <= below and above <= floats.largest
    return (float(below), float(above)) if inside else None


__all__ = ["FLOATS", "INTEGERS", "Interval", "held", "held_between"]
