"""Rules of the arith dialect. Most are what its operations' folds do, which are made from them.

Each keeps every bit (NaN for NaN, the sign of zero too): x + -0.0 is x, and x + 0.0 is not.
"""

from __future__ import annotations

import math

from irc.dialects.arith import folds
from irc.dialects.arith.ops import ConstantOp, with_element
from irc.ir import attributes as A
from irc.ir import rewrite
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.rewrite.expressions import Number, register_constants
from irc.ir.rewrite.rules import Dialect, Rule
from irc.ir.types import FloatType, i1

arith = Dialect("arith")
_NUMBERS = (A.BoolAttr, A.IntegerAttr, A.FloatAttr)


def _number(value: Value) -> Number | None:
    maker = value.defining_op
    attr = maker.attributes.get("value") if isinstance(maker, ConstantOp) else None
    number: Number | None = attr.value if isinstance(attr, _NUMBERS) else None
    return number


def _constant(builder: Builder, number: Number, type_: Type) -> Value:
    """A constant of a type, or of i1 for a truth value."""
    result_type = with_element(type_, i1) if isinstance(number, bool) else type_
    element = folds.element_of(result_type)
    fits = bool if element is i1 else float if isinstance(element, FloatType) else int
    if type(number) is not fits:
        raise UserError(f"{number} is no constant of {element}")
    attr = folds.attribute_of(number, element)
    value: Value = builder.value(ConstantOp, value=attr, result_types=result_type)
    return value


register_constants("arith", _number, _constant, (ConstantOp,))


# -- neutral and absorbing numbers


@rewrite.rule(fold=True)
def addi_zero(x):
    return arith.addi(x, 0), x


@rewrite.rule(fold=True)
def subi_zero(x):
    return arith.subi(x, 0), x


@rewrite.rule(fold=True)
def muli_one(x):
    return arith.muli(x, 1), x


@rewrite.rule(fold=True)
def muli_zero(x):
    return arith.muli(x, 0), 0


@rewrite.rule(fold=True)
def divsi_one(x):
    return arith.divsi(x, 1), x


@rewrite.rule(fold=True)
def divui_one(x):
    return arith.divui(x, 1), x


@rewrite.rule(fold=True)
def floordivsi_one(x):
    return arith.floordivsi(x, 1), x


@rewrite.rule(fold=True)
def ceildivsi_one(x):
    return arith.ceildivsi(x, 1), x


@rewrite.rule(fold=True)
def andi_zero(x):
    return arith.andi(x, 0), 0


@rewrite.rule(fold=True)
def ori_zero(x):
    return arith.ori(x, 0), x


@rewrite.rule(fold=True)
def xori_zero(x):
    return arith.xori(x, 0), x


@rewrite.rule(fold=True)
def shli_zero(x):
    return arith.shli(x, 0), x


@rewrite.rule(fold=True)
def shrsi_zero(x):
    return arith.shrsi(x, 0), x


@rewrite.rule(fold=True)
def shrui_zero(x):
    return arith.shrui(x, 0), x


@rewrite.rule(fold=True)
def addf_negative_zero(x):
    return arith.addf(x, -0.0), x


@rewrite.rule(fold=True)
def subf_zero(x):
    return arith.subf(x, 0.0), x


@rewrite.rule(fold=True)
def mulf_one(x):
    return arith.mulf(x, 1.0), x


@rewrite.rule(fold=True)
def divf_one(x):
    return arith.divf(x, 1.0), x


# -- of one value twice


@rewrite.rule(fold=True)
def subi_itself(x):
    return arith.subi(x, x), 0


@rewrite.rule(fold=True)
def xori_itself(x):
    return arith.xori(x, x), 0


@rewrite.rule(fold=True)
def andi_itself(x):
    return arith.andi(x, x), x


@rewrite.rule(fold=True)
def ori_itself(x):
    return arith.ori(x, x), x


@rewrite.rule(fold=True)
def minsi_itself(x):
    return arith.minsi(x, x), x


@rewrite.rule(fold=True)
def maxsi_itself(x):
    return arith.maxsi(x, x), x


@rewrite.rule(fold=True)
def minui_itself(x):
    return arith.minui(x, x), x


@rewrite.rule(fold=True)
def maxui_itself(x):
    return arith.maxui(x, x), x


@rewrite.rule(fold=True)
def minimumf_itself(x):
    return arith.minimumf(x, x), x


@rewrite.rule(fold=True)
def maximumf_itself(x):
    return arith.maximumf(x, x), x


@rewrite.rule(fold=True)
def minnumf_itself(x):
    return arith.minnumf(x, x), x


@rewrite.rule(fold=True)
def maxnumf_itself(x):
    return arith.maxnumf(x, x), x


for _one in [one for one in dict(globals()).values() if isinstance(one, Rule)]:
    folds.learn(_one)


# -- what other folds do


@rewrite.rule(fold=True)
def andi_all_bits(x):
    return arith.andi(x, -1), x


@rewrite.rule(fold=True)
def double_negation(x):
    return arith.negf(arith.negf(x)), x


@rewrite.rule(fold=True)
def select_true(x, y):
    return arith.select(True, x, y), x


@rewrite.rule(fold=True)
def select_false(x, y):
    return arith.select(False, x, y), y


@rewrite.rule(fold=True)
def select_of_one(c, x):
    return arith.select(c, x, x), x


def _same_type(x: Value, result: Value) -> bool:
    """The type that it had at first."""
    return x.type is result.type


@rewrite.rule(fold=True, where=_same_type)
def narrowed_again(x):
    return arith.truncf(arith.extf(x)), x


@rewrite.rule(fold=True, where=_same_type)
def integer_narrowed_again(x):
    return arith.trunci(arith.extsi(x)), x


@rewrite.rule(fold=True, where=_same_type)
def bits_and_back(x):
    return arith.bitcast(arith.bitcast(x)), x


# -- what `canonicalize` does


@rewrite.rule
def double_not(x, y):
    return arith.xori(arith.xori(x, y), y), x


def has_exact_inverse(c: float) -> bool:
    """A power of two near one, whose inverse is exact."""
    if not isinstance(c, float):
        return False
    mantissa, exponent = math.frexp(c)
    return abs(mantissa) == 0.5 and -13 < exponent < 15


def _inverse(c: float) -> float:
    return 1.0 / c


@rewrite.rule(where=has_exact_inverse)
def divide_by_power_of_two(x, c: Number):
    return arith.divf(x, c), arith.mulf(x, _inverse)
