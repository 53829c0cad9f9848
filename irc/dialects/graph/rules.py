"""Algebra of the graph dialect's pointwise operations, as rules.

Each keeps every bit (NaN for NaN, the sign of zero too) unless it says otherwise, and is run on
random values by `irc-opt --check-rules`.
"""

from __future__ import annotations

from irc.dialects.graph.canonical import SEEN_THROUGH, full_value
from irc.dialects.graph.ops import Full
from irc.dialects.graph.pointwise import scalar_attribute
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.rewrite.rules import Dialect, register_constants, rule
from irc.ir.rewrite.terms import boolean, exact, floating, integral, signed
from irc.ir.types import FloatType, TensorType, i1

graph = Dialect("graph")


def _constant(builder: Builder, number: bool | int | float, type_: Type) -> Value:
    """A full tensor of a type's sizes, of its element type, or of i1 for a truth value."""
    assert isinstance(type_, TensorType)
    kind = type_.with_element(i1) if isinstance(number, bool) else type_
    fits = bool if kind.element is i1 else float if isinstance(kind.element, FloatType) else int
    if type(number) is not fits:
        raise UserError(f"{number} is no constant of {kind.element}")
    attr = scalar_attribute(number, kind.element)
    value: Value = builder.value(Full, None, value=attr, result_types=kind)
    return value


register_constants("graph", full_value, _constant, (Full, *SEEN_THROUGH))


# -- signs


@rule
def double_negation(x):
    return graph.neg(graph.neg(x)), x


@rule
def add_of_negation(x, y):
    return graph.add(x, graph.neg(y)), graph.sub(x, y)


@rule
def sub_of_negation(x, y):
    return graph.sub(x, graph.neg(y)), graph.add(x, y)


@rule
def product_of_negations(x, y):
    return graph.mul(graph.neg(x), graph.neg(y)), graph.mul(x, y)


@rule
def quotient_of_negations(x, y):
    return graph.div(graph.neg(x), graph.neg(y)), graph.div(x, y)


@rule(where=integral)
def negated_difference(x, y):
    return graph.neg(graph.sub(x, y)), graph.sub(y, x)


@rule(where=signed)
def abs_of_negation(x):
    return graph.abs(graph.neg(x)), graph.abs(x)


@rule
def abs_of_abs(x):
    return graph.abs(graph.abs(x)), graph.abs(x)


@rule
def sign_of_sign(x):
    return graph.sign(graph.sign(x)), graph.sign(x)


@rule
def cos_of_negation(x):
    return graph.cos(graph.neg(x)), graph.cos(x)


@rule
def cosh_of_negation(x):
    return graph.cosh(graph.neg(x)), graph.cosh(x)


@rule
def copysign_of_negation(x, y):
    return graph.copysign(graph.neg(x), y), graph.copysign(x, y)


@rule
def copysign_of_abs(x, y):
    return graph.copysign(graph.abs(x), y), graph.copysign(x, y)


# -- neutral and absorbing numbers


@rule
def add_negative_zero(x):
    return graph.add(x, -0.0), x


@rule
def sub_zero(x):
    return graph.sub(x, 0.0), x


@rule
def mul_one(x):
    return graph.mul(x, 1.0), x


@rule
def div_one(x):
    return graph.div(x, 1.0), x


@rule
def mul_minus_one(x):
    return graph.mul(x, -1.0), graph.neg(x)


@rule
def div_minus_one(x):
    return graph.div(x, -1.0), graph.neg(x)


@rule
def integer_add_zero(x):
    return graph.add(x, 0), x


@rule
def integer_sub_zero(x):
    return graph.sub(x, 0), x


@rule
def integer_mul_one(x):
    return graph.mul(x, 1), x


@rule
def integer_mul_zero(x):
    return graph.mul(x, 0), 0


@rule(where=integral)
def integer_sub_itself(x):
    return graph.sub(x, x), 0


@rule
def shl_zero(x):
    return graph.shl(x, 0), x


@rule
def shr_zero(x):
    return graph.shr(x, 0), x


@rule
def pow_one(x):
    return graph.pow(x, 1.0), x


@rule
def integer_pow_one(x):
    return graph.pow(x, 1), x


@rule
def maximum_of_least(x):
    return graph.maximum(x, float("-inf")), x


@rule
def minimum_of_greatest(x):
    return graph.minimum(x, float("inf")), x


# -- doing it twice


@rule
def maximum_of_itself(x):
    return graph.maximum(x, x), x


@rule
def minimum_of_itself(x):
    return graph.minimum(x, x), x


@rule
def fmax_of_itself(x):
    return graph.fmax(x, x), x


@rule
def fmin_of_itself(x):
    return graph.fmin(x, x), x


@rule
def floor_of_floor(x):
    return graph.floor(graph.floor(x)), graph.floor(x)


@rule
def ceil_of_ceil(x):
    return graph.ceil(graph.ceil(x)), graph.ceil(x)


@rule
def trunc_of_trunc(x):
    return graph.trunc(graph.trunc(x)), graph.trunc(x)


@rule
def round_of_round(x):
    return graph.round(graph.round(x)), graph.round(x)


@rule(where=integral)
def maximum_of_maximum(x, y):
    return graph.maximum(graph.maximum(x, y), y), graph.maximum(x, y)


@rule(where=integral)
def minimum_of_minimum(x, y):
    return graph.minimum(graph.minimum(x, y), y), graph.minimum(x, y)


# -- truth values and bits


@rule
def double_inversion(x):
    return graph.not_(graph.not_(x)), x


@rule
def and_itself(x):
    return graph.and_(x, x), x


@rule
def or_itself(x):
    return graph.or_(x, x), x


@rule(where=integral)
def xor_itself(x):
    return graph.xor(x, x), 0


@rule(where=boolean)
def boolean_xor_itself(x):
    return graph.xor(x, x), False


@rule
def and_true(x):
    return graph.and_(x, True), x


@rule
def and_false(x):
    return graph.and_(x, False), False


@rule
def or_true(x):
    return graph.or_(x, True), True


@rule
def or_false(x):
    return graph.or_(x, False), x


@rule
def xor_true(x):
    return graph.xor(x, True), graph.not_(x)


@rule
def xor_false(x):
    return graph.xor(x, False), x


@rule
def and_zero(x):
    return graph.and_(x, 0), 0


@rule
def or_zero(x):
    return graph.or_(x, 0), x


@rule
def xor_zero(x):
    return graph.xor(x, 0), x


# -- comparisons


@rule
def equals_true(x):
    return graph.eq(x, True), x


@rule
def equals_false(x):
    return graph.eq(x, False), graph.not_(x)


@rule
def differs_from_true(x):
    return graph.ne(x, True), graph.not_(x)


@rule
def differs_from_false(x):
    return graph.ne(x, False), x


@rule
def not_equal(x, y):
    return graph.not_(graph.eq(x, y)), graph.ne(x, y)


@rule
def not_different(x, y):
    return graph.not_(graph.ne(x, y)), graph.eq(x, y)


@rule(where=exact)
def not_less(x, y):
    return graph.not_(graph.lt(x, y)), graph.ge(x, y)


@rule(where=exact)
def not_greater(x, y):
    return graph.not_(graph.gt(x, y)), graph.le(x, y)


@rule(where=exact)
def equals_itself(x):
    return graph.eq(x, x), True


@rule(where=exact)
def differs_from_itself(x):
    return graph.ne(x, x), False


@rule(where=floating)
def nan_differs_from_itself(x):
    return graph.ne(x, x), graph.isnan(x)


@rule
def less_than_itself(x):
    return graph.lt(x, x), False


@rule
def greater_than_itself(x):
    return graph.gt(x, x), False


@rule
def isnan_of_negation(x):
    return graph.isnan(graph.neg(x)), graph.isnan(x)


@rule
def isnan_of_abs(x):
    return graph.isnan(graph.abs(x)), graph.isnan(x)


@rule
def isinf_of_negation(x):
    return graph.isinf(graph.neg(x)), graph.isinf(x)


@rule
def isinf_of_abs(x):
    return graph.isinf(graph.abs(x)), graph.isinf(x)


# -- choices


@rule
def select_of_one(c, x):
    return graph.select(c, x, x), x


@rule
def select_true(x, y):
    return graph.select(True, x, y), x


@rule
def select_false(x, y):
    return graph.select(False, x, y), y


@rule
def select_of_negation(c, x, y):
    return graph.select(graph.not_(c), x, y), graph.select(c, y, x)


@rule
def select_of_itself(c):
    return graph.select(c, True, False), c


@rule
def select_of_inverse(c):
    return graph.select(c, False, True), graph.not_(c)


@rule
def select_same_condition(c, x, y, z):
    return graph.select(c, graph.select(c, x, y), z), graph.select(c, x, z)


@rule
def select_same_condition_else(c, x, y, z):
    return graph.select(c, x, graph.select(c, y, z)), graph.select(c, x, z)
