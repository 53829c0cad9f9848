"""The table of elementary functions: name to how it is emitted.

A definition records into a `Code` and returns its result, or a pair (result, rare): lanes in which
`rare` is true are computed by libm's function instead, behind a branch that is rarely taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from irc.codegen.math.code import FLOATS, Lane

Result = Lane | tuple[Lane, Lane]


@attrs.frozen
class Definition:
    """How one function is emitted for some element types.

    `libm` is the name of the C function for f64 that has the same meaning (f32's ends in `f`).
    With `emit` None every lane is computed by it: correct, and slow.
    """

    name: str
    arity: int
    elements: frozenset[str]
    emit: Callable[..., Result] | None
    libm: str | None = None
    exact: bool = False  # rounded once, so that more digits inside would change nothing


DEFINITIONS: dict[tuple[str, str], Definition] = {}


def define(
    name: str,
    arity: int = 1,
    elements: tuple[str, ...] = ("f32", "f64"),
    libm: str | None = None,
    exact: bool = False,
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Register `(code, *lanes) -> Result` as the function `name` on `elements`."""

    def register(emit: Callable[..., Result]) -> Callable[..., Result]:
        _add(Definition(name, arity, frozenset(elements), emit, libm, exact))
        return emit

    return register


def define_libm(name: str, libm: str, arity: int = 1, elements: tuple[str, ...] = ("f64",)) -> None:
    """Register `name` on `elements` as libm's function `libm`, lane by lane."""
    _add(Definition(name, arity, frozenset(elements), None, libm))


def _add(definition: Definition) -> None:
    for element in definition.elements:
        key = (definition.name, element)
        if key in DEFINITIONS:
            raise ValueError(f"{definition.name} of {element} is defined twice")
        DEFINITIONS[key] = definition


@attrs.frozen
class FloatFormat:
    """The numbers that algorithms need to know about f32 or f64."""

    element: str
    integer: str
    mantissa_bits: int
    exponent_bits: int
    bias: int
    magic: float  # adding it rounds to an integer, which then sits in the low bits
    largest: float
    smallest_normal: float
    log2_high: float  # ln 2 with trailing zeros, so that its products with exponents are exact
    log2_low: float
    exp_high: float  # exp overflows above it
    exp_low: float  # and rounds to zero below


F32 = FloatFormat(
    element="f32",
    integer="i32",
    mantissa_bits=23,
    exponent_bits=8,
    bias=127,
    magic=float(3 << 22),
    largest=float.fromhex("0x1.fffffep127"),
    smallest_normal=2.0**-126,
    log2_high=float.fromhex("0x1.62e4p-1"),
    log2_low=float.fromhex("0x1.7f7d1cf79abcap-20"),
    exp_high=89.0,
    exp_low=-104.0,
)
F64 = FloatFormat(
    element="f64",
    integer="i64",
    mantissa_bits=52,
    exponent_bits=11,
    bias=1023,
    magic=float(3 << 51),
    largest=float.fromhex("0x1.fffffffffffffp1023"),
    smallest_normal=2.0**-1022,
    log2_high=float.fromhex("0x1.62e42fee00000p-1"),
    log2_low=float.fromhex("0x1.a39ef35793c76p-33"),
    exp_high=709.8,
    exp_low=-745.2,
)
FORMATS: dict[str, FloatFormat] = {"f32": F32, "f64": F64}


def table(f32: Any, f64: Any, value: Lane) -> Any:
    """The choice for the element type of `value`."""
    return f32 if value.element == "f32" else f64


def float_format(value: Lane) -> FloatFormat:
    """The format of a float lane.  Raises TypeError for anything but f32 and f64."""
    if value.element not in FORMATS:
        shown = "a 16-bit float: widen it first" if value.element in FLOATS else value.element
        raise TypeError(f"elementary functions take f32 and f64, not {shown}")
    return FORMATS[value.element]


