"""Floats of every width as bits: rounding a Python float to a type, and its shortest text.

A format is (exponent bits, mantissa bits, bias, kind). kind "ieee" has infinities; "finite" (the
FN formats) has none and one NaN pattern per sign; "unsigned zero" (FNUZ) has its only NaN where
the negative zero would be.
"""

from __future__ import annotations

import math
import struct
from functools import cache

FORMATS: dict[str, tuple[int, int, int, str]] = {
    "f16": (5, 10, 15, "ieee"),
    "bf16": (8, 7, 127, "ieee"),
    "f32": (8, 23, 127, "ieee"),
    "f64": (11, 52, 1023, "ieee"),
    "f8E5M2": (5, 2, 15, "ieee"),
    "f8E4M3FN": (4, 3, 7, "finite"),
    "f8E4M3FNUZ": (4, 3, 8, "unsigned zero"),
    "f8E5M2FNUZ": (5, 2, 16, "unsigned zero"),
}
_DIGITS = {"f16": 5, "bf16": 4, "f32": 9}
_DOUBLE_MANTISSA = 52
_MANTISSA_MASK = (1 << _DOUBLE_MANTISSA) - 1


def double_bits(value: float) -> int:
    """The 64 bits of a Python float."""
    return int.from_bytes(struct.pack("<d", value), "little")


def float_bits(value: float, name: str) -> int:
    """The bits of `value` rounded to nearest even in the format `name`.

    What is too large becomes infinity, or NaN where there is none. A NaN keeps its sign and the
    upper bits of its payload.
    """
    if name == "f64":
        return double_bits(value)
    if name == "f32" and value == value:
        try:
            return int.from_bytes(struct.pack("<f", value), "little")
        except OverflowError:
            return 0x7F800000 if value > 0 else 0xFF800000
    exponent_bits, mantissa_bits, bias, specials = FORMATS[name]
    bits = double_bits(value)
    sign = (bits >> 63) << (exponent_bits + mantissa_bits)
    top = (1 << exponent_bits) - 1
    if value != value:
        return _nan_bits(bits, sign, exponent_bits, mantissa_bits, specials)
    if not value:
        return 0 if specials == "unsigned zero" else sign
    largest, overflow = _limits(name)
    magnitude = largest + 1 if math.isinf(value) else _round_magnitude(value, mantissa_bits, bias)
    if magnitude > largest:
        return overflow if specials == "unsigned zero" else sign | overflow
    if specials == "unsigned zero" and magnitude == 0:
        return 0
    assert magnitude >> mantissa_bits <= top
    return sign | magnitude


@cache
def _limits(name: str) -> tuple[int, int]:
    """The magnitude bits of the largest finite number, and of what lies beyond it."""
    exponent_bits, mantissa_bits, _, specials = FORMATS[name]
    all_ones = (1 << (exponent_bits + mantissa_bits)) - 1
    if specials == "ieee":
        infinity = ((1 << exponent_bits) - 1) << mantissa_bits
        return infinity - 1, infinity
    if specials == "finite":
        return all_ones - 1, all_ones
    return all_ones, 1 << (exponent_bits + mantissa_bits)


def _round_magnitude(value: float, mantissa_bits: int, bias: int) -> int:
    """Exponent and mantissa bits of |value|, rounded to even, exponent unbounded."""
    fraction, exponent = math.frexp(abs(value))  # fraction in [0.5, 1)
    scale = max(exponent - 1, 1 - bias)  # the exponent of the leading bit, or of subnormals
    # Exact: a power of two times a double, at most 53 bits wide after scaling down.
    scaled = math.ldexp(fraction, exponent - scale + mantissa_bits)
    whole = round(scaled)  # Python rounds halves to even
    return whole + ((scale + bias - 1) << mantissa_bits)


def _nan_bits(bits: int, sign: int, exponent_bits: int, mantissa_bits: int, specials: str) -> int:
    if specials == "unsigned zero":
        return 1 << (exponent_bits + mantissa_bits)
    top = ((1 << exponent_bits) - 1) << mantissa_bits
    if specials == "finite":
        return sign | top | ((1 << mantissa_bits) - 1)
    payload = (bits & _MANTISSA_MASK) >> (_DOUBLE_MANTISSA - mantissa_bits)
    return sign | top | (payload or 1)


def bits_float(bits: int, name: str) -> float:
    """The value of a bit pattern of the format `name`; a NaN keeps sign and payload."""
    if name == "f64":
        return struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    exponent_bits, mantissa_bits, bias, specials = FORMATS[name]
    sign = bits >> (exponent_bits + mantissa_bits)
    exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    magnitude = (exponent << mantissa_bits) | mantissa
    if specials == "unsigned zero" and sign and not magnitude:
        return math.nan
    largest, overflow = _limits(name)
    if magnitude > largest:
        if specials == "ieee" and magnitude == overflow:
            return -math.inf if sign else math.inf
        payload = mantissa << (_DOUBLE_MANTISSA - mantissa_bits)
        pattern = (sign << 63) | (0x7FF << _DOUBLE_MANTISSA) | payload
        return bits_float(pattern, "f64")
    if exponent == 0:
        result = math.ldexp(mantissa, 1 - bias - mantissa_bits)
    else:
        result = math.ldexp(mantissa | (1 << mantissa_bits), exponent - bias - mantissa_bits)
    return -result if sign else result


def round_to_format(value: float, name: str) -> float:
    """`value` rounded to the format `name`."""
    if name == "f64":
        return value
    if name == "f32" and value == value:
        try:
            return struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)
    return bits_float(float_bits(value, name), name)


def format_float(value: float, name: str) -> str:
    """The shortest decimal that reads back as `value` (already rounded to the format); bits in
    hexadecimal for infinities and NaN."""
    if value != value or value in (math.inf, -math.inf):
        width = (1 + sum(FORMATS[name][:2])) // 4
        return f"0x{float_bits(value, name):0{width}X}"
    text = repr(value)
    if name != "f64" and len(text) > 6:
        for precision in range(1, _DIGITS.get(name, 4)):
            shorter = f"{value:.{precision}g}"
            if round_to_format(float(shorter), name) == value:
                text = shorter
                break
        else:
            text = f"{value:.{_DIGITS.get(name, 4)}g}"
    mantissa, mark, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return mantissa + mark + exponent
