"""The math dialect: elementary functions on scalars and vectors.

Accuracy: within a few units in the last place of float64's value (see the tests of
`irc/codegen/llvm`); NaN propagates, infinities and signed zeros follow C's math library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irc.dialects.arith import BOOLEAN, FLOAT, INTEGER, ROUNDING, FastMathAttr, with_element
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Value
from irc.ir.definition import Op, attribute, operand, result
from irc.ir.text.syntax import Syntax
from irc.ir.traits import Elementary, Jumps, Pure, SameOperandsAndResultType, Slow
from irc.ir.types import i1, i64

_FAST = {"fastmath": "fastmath"}
_FLOATS = Syntax("operand", flags=_FAST)


class MathUnary(Op, abstract=True):
    syntax = _FLOATS
    traits = frozenset({Elementary, Pure, SameOperandsAndResultType})
    source = operand(FLOAT)
    fastmath = attribute(FastMathAttr, optional=True)
    output = result(FLOAT)


class MathBinary(Op, abstract=True):
    syntax = _FLOATS
    traits = frozenset({Elementary, Pure, SameOperandsAndResultType})
    lhs = operand(FLOAT)
    rhs = operand(FLOAT)
    fastmath = attribute(FastMathAttr, optional=True)
    output = result(FLOAT)


class MathTest(Op, abstract=True):
    syntax = _FLOATS
    traits = frozenset({Pure})
    source = operand(FLOAT)
    fastmath = attribute(FastMathAttr, optional=True)
    outcome = result(BOOLEAN)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (with_element(operands[0].type, i1),)


def _define(base: type[Op], class_name: str, name: str, doc: str, **attributes: Any) -> type[Op]:
    """One function; its documentation ends in an example."""
    example = {
        MathUnary: f"`%z = math.{name} %x : f32`",
        MathBinary: f"`%z = math.{name} %x, %y : f32`",
        MathTest: f"`%z = math.{name} %x : f32`",
    }[base]
    members = {
        "__doc__": f"{doc}\n\n    {example}\n    ",
        "__module__": __name__,
        "__qualname__": class_name,
        "__slots__": (),
        "name": f"math.{name}",
        **attributes,
    }
    return type(class_name, (base,), members)


# What costs as much as an addition.
_PLAIN = frozenset({Pure, SameOperandsAndResultType})
_STEP, _ROOT = _PLAIN | {Jumps}, _PLAIN | {Slow}

ExpOp = _define(
    MathUnary, "ExpOp", "exp",
    "e to the power of x. `nonpositive` promises that x is at most 0, but for rounding, or NaN;\n"
    "    the result is right up to 64 then, and any number above. `rough` (gpu): an error of |x|\n"
    "    units in the last place is small enough.",
    nonpositive=attribute(A.UnitAttr),
    rough=attribute(A.UnitAttr),
)  # fmt: skip
Exp2Op = _define(
    MathUnary, "Exp2Op", "exp2",
    "2 to the power of x. `rough` (gpu): by the machine's instruction, to which denormals are 0.",
    rough=attribute(A.UnitAttr),
)  # fmt: skip
ExpM1Op = _define(MathUnary, "ExpM1Op", "expm1", "exp(x) - 1 without cancellation.")
LogOp = _define(MathUnary, "LogOp", "log", "The natural logarithm.")
Log2Op = _define(MathUnary, "Log2Op", "log2", "The logarithm to base 2.")
Log10Op = _define(MathUnary, "Log10Op", "log10", "The logarithm to base 10.")
Log1pOp = _define(MathUnary, "Log1pOp", "log1p", "log(1 + x) without cancellation.")
SqrtOp = _define(MathUnary, "SqrtOp", "sqrt", "The square root, correctly rounded.", traits=_ROOT)
RsqrtOp = _define(MathUnary, "RsqrtOp", "rsqrt", "1 / sqrt(x).", traits=_ROOT)
SinOp = _define(MathUnary, "SinOp", "sin", "The sine of radians.")
CosOp = _define(MathUnary, "CosOp", "cos", "The cosine of radians.")
TanOp = _define(MathUnary, "TanOp", "tan", "The tangent of radians.")
AsinOp = _define(MathUnary, "AsinOp", "asin", "The inverse sine.")
AcosOp = _define(MathUnary, "AcosOp", "acos", "The inverse cosine.")
AtanOp = _define(MathUnary, "AtanOp", "atan", "The inverse tangent.")
SinhOp = _define(MathUnary, "SinhOp", "sinh", "The hyperbolic sine.")
CoshOp = _define(MathUnary, "CoshOp", "cosh", "The hyperbolic cosine.")
TanhOp = _define(MathUnary, "TanhOp", "tanh", "The hyperbolic tangent.")
AsinhOp = _define(MathUnary, "AsinhOp", "asinh", "The inverse hyperbolic sine.")
AcoshOp = _define(MathUnary, "AcoshOp", "acosh", "The inverse hyperbolic cosine.")
AtanhOp = _define(MathUnary, "AtanhOp", "atanh", "The inverse hyperbolic tangent.")
ErfOp = _define(MathUnary, "ErfOp", "erf", "The error function.")
ErfcOp = _define(MathUnary, "ErfcOp", "erfc", "1 - erf(x) without cancellation.")
ErfInvOp = _define(MathUnary, "ErfInvOp", "erfinv", "The inverse of erf.")
SigmoidOp = _define(MathUnary, "SigmoidOp", "sigmoid", "1 / (1 + exp(-x)).")
FloorOp = _define(MathUnary, "FloorOp", "floor", "Rounds down.", traits=_STEP)
CeilOp = _define(MathUnary, "CeilOp", "ceil", "Rounds up.", traits=_STEP)
TruncOp = _define(MathUnary, "TruncOp", "trunc", "Rounds to zero.", traits=_STEP)
RoundEvenOp = _define(MathUnary, "RoundEvenOp", "roundeven", "Rounds to nearest, ties to even.",
                       traits=_STEP)  # fmt: skip
AbsFOp = _define(MathUnary, "AbsFOp", "absf", "Clears the sign bit.", traits=_PLAIN)
LGammaOp = _define(MathUnary, "LGammaOp", "lgamma", "The logarithm of |gamma(x)|.")
DigammaOp = _define(MathUnary, "DigammaOp", "digamma", "The derivative of lgamma.")
Atan2Op = _define(MathBinary, "Atan2Op", "atan2", "The angle of the point (y, x), C's atan2.")
PowFOp = _define(MathBinary, "PowFOp", "powf", "x to the power of y, C's pow.")
CopySignOp = _define(MathBinary, "CopySignOp", "copysign", "x with the sign of y.", traits=_PLAIN)
NextAfterOp = _define(
    MathBinary, "NextAfterOp", "nextafter", "The float after x towards y.",
    traits=MathBinary.traits | {Jumps},
)  # fmt: skip
IsNaNOp = _define(MathTest, "IsNaNOp", "isnan", "Whether x is NaN.")
IsInfOp = _define(MathTest, "IsInfOp", "isinf", "Whether x is an infinity.")


class AbsIOp(Op):
    """The absolute value of a signed integer; the smallest one stays as it is.

    `%z = math.absi %x : i32`
    """

    name = "math.absi"
    traits = frozenset({Pure, SameOperandsAndResultType})
    source = operand(INTEGER)
    output = result(INTEGER)


class PhiloxOp(Op):
    """Random number `number` (32 bits, from 0 on) of the sequence `sequence` of the generator that
    `seed` makes: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1,
    2, 3; SC 2011), with the places that cuRAND gives its seed, subsequences and offsets.

    `%bits = math.philox %seed, %sequence, %number : i64`
    """

    name = "math.philox"
    traits = frozenset({Elementary, Pure, SameOperandsAndResultType})
    seed = operand(INTEGER)
    sequence = operand(INTEGER)
    number = operand(INTEGER)
    bits = result(INTEGER)

    def verify_op(self) -> None:
        element = self.bits.type
        element = getattr(element, "element", element)
        if element is not i64:
            self.fail(f"takes i64, not {element}")


class FmaOp(Op):
    """a * b + c, rounded once.

    `%z = math.fma %a, %b, %c : f32`
    """

    name = "math.fma"
    syntax = Syntax("operand", mode="roundingmode", flags=_FAST)
    traits = frozenset({Pure, SameOperandsAndResultType})
    a = operand(FLOAT)
    b = operand(FLOAT)
    c = operand(FLOAT)
    roundingmode = attribute(A.StringAttr, optional=True, words=ROUNDING)
    fastmath = attribute(FastMathAttr, optional=True)
    output = result(FLOAT)
