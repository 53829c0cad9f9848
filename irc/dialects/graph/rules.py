"""Algebra of the graph dialect's pointwise operations, as rules.

Each keeps every bit (NaN for NaN, the sign of zero too) unless it says otherwise, and is run on
random values by `irc-opt --check-rules`.
"""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects.graph import indexing  # noqa: F401 (its operations are terms)
from irc.dialects.graph.canonical import SEEN_THROUGH, full_value, widens
from irc.dialects.graph.ops import Full
from irc.dialects.graph.pointwise import scalar_attribute
from irc.ir import rewrite
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.rewrite.rules import Dialect, register_constants
from irc.ir.rewrite.terms import boolean, element_type, exact, floating, integral, signed
from irc.ir.symbols import Dim
from irc.ir.types import FloatType, IntegerType, TensorType, i1

graph = Dialect("graph")


def _constant(builder: Builder, number: bool | int | float, type_: Type) -> Value:
    """A full tensor of a type's sizes, of its element type, or of i1 for a truth value."""
    assert isinstance(type_, TensorType)
    result_type = type_.with_element(i1) if isinstance(number, bool) else type_
    element = result_type.element
    fits = bool if element is i1 else float if isinstance(element, FloatType) else int
    if type(number) is not fits:
        raise UserError(f"{number} is no constant of {result_type.element}")
    attr = scalar_attribute(number, result_type.element)
    value: Value = builder.value(Full, None, value=attr, result_types=result_type)
    return value


register_constants("graph", full_value, _constant, (Full, *SEEN_THROUGH))


# -- signs


@rewrite.rule
def double_negation(x):
    return graph.neg(graph.neg(x)), x


@rewrite.rule
def add_of_negation(x, y):
    return graph.add(x, graph.neg(y)), graph.sub(x, y)


@rewrite.rule
def sub_of_negation(x, y):
    return graph.sub(x, graph.neg(y)), graph.add(x, y)


@rewrite.rule
def product_of_negations(x, y):
    return graph.mul(graph.neg(x), graph.neg(y)), graph.mul(x, y)


@rewrite.rule
def quotient_of_negations(x, y):
    return graph.div(graph.neg(x), graph.neg(y)), graph.div(x, y)


@rewrite.rule(where=integral)
def negated_difference(x, y):
    return graph.neg(graph.sub(x, y)), graph.sub(y, x)


@rewrite.rule(where=signed)
def abs_of_negation(x):
    return graph.abs(graph.neg(x)), graph.abs(x)


@rewrite.rule
def abs_of_abs(x):
    return graph.abs(graph.abs(x)), graph.abs(x)


@rewrite.rule
def sign_of_sign(x):
    return graph.sign(graph.sign(x)), graph.sign(x)


@rewrite.rule
def cos_of_negation(x):
    return graph.cos(graph.neg(x)), graph.cos(x)


@rewrite.rule
def cosh_of_negation(x):
    return graph.cosh(graph.neg(x)), graph.cosh(x)


@rewrite.rule
def copysign_of_negation(x, y):
    return graph.copysign(graph.neg(x), y), graph.copysign(x, y)


@rewrite.rule
def copysign_of_abs(x, y):
    return graph.copysign(graph.abs(x), y), graph.copysign(x, y)


# -- neutral and absorbing numbers


@rewrite.rule
def add_negative_zero(x):
    return graph.add(x, -0.0), x


@rewrite.rule
def sub_zero(x):
    return graph.sub(x, 0.0), x


@rewrite.rule
def mul_one(x):
    return graph.mul(x, 1.0), x


@rewrite.rule
def div_one(x):
    return graph.div(x, 1.0), x


@rewrite.rule
def mul_minus_one(x):
    return graph.mul(x, -1.0), graph.neg(x)


@rewrite.rule
def div_minus_one(x):
    return graph.div(x, -1.0), graph.neg(x)


@rewrite.rule
def integer_add_zero(x):
    return graph.add(x, 0), x


@rewrite.rule
def integer_sub_zero(x):
    return graph.sub(x, 0), x


@rewrite.rule
def integer_mul_one(x):
    return graph.mul(x, 1), x


@rewrite.rule
def integer_mul_zero(x):
    return graph.mul(x, 0), 0


@rewrite.rule(where=integral)
def integer_sub_itself(x):
    return graph.sub(x, x), 0


@rewrite.rule
def shl_zero(x):
    return graph.shl(x, 0), x


@rewrite.rule
def shr_zero(x):
    return graph.shr(x, 0), x


@rewrite.rule
def pow_one(x):
    return graph.pow(x, 1.0), x


@rewrite.rule
def integer_pow_one(x):
    return graph.pow(x, 1), x


@rewrite.rule
def maximum_of_least(x):
    return graph.maximum(x, float("-inf")), x


@rewrite.rule
def minimum_of_greatest(x):
    return graph.minimum(x, float("inf")), x


# -- doing it twice


@rewrite.rule
def maximum_of_itself(x):
    return graph.maximum(x, x), x


@rewrite.rule
def minimum_of_itself(x):
    return graph.minimum(x, x), x


@rewrite.rule
def fmax_of_itself(x):
    return graph.fmax(x, x), x


@rewrite.rule
def fmin_of_itself(x):
    return graph.fmin(x, x), x


@rewrite.rule
def floor_of_floor(x):
    return graph.floor(graph.floor(x)), graph.floor(x)


@rewrite.rule
def ceil_of_ceil(x):
    return graph.ceil(graph.ceil(x)), graph.ceil(x)


@rewrite.rule
def trunc_of_trunc(x):
    return graph.trunc(graph.trunc(x)), graph.trunc(x)


@rewrite.rule
def round_of_round(x):
    return graph.round(graph.round(x)), graph.round(x)


@rewrite.rule(where=integral)
def maximum_of_maximum(x, y):
    return graph.maximum(graph.maximum(x, y), y), graph.maximum(x, y)


@rewrite.rule(where=integral)
def minimum_of_minimum(x, y):
    return graph.minimum(graph.minimum(x, y), y), graph.minimum(x, y)


# -- truth values and bits


@rewrite.rule
def double_inversion(x):
    return graph.not_(graph.not_(x)), x


@rewrite.rule
def and_itself(x):
    return graph.and_(x, x), x


@rewrite.rule
def or_itself(x):
    return graph.or_(x, x), x


@rewrite.rule(where=integral)
def xor_itself(x):
    return graph.xor(x, x), 0


@rewrite.rule(where=boolean)
def boolean_xor_itself(x):
    return graph.xor(x, x), False


@rewrite.rule
def and_true(x):
    return graph.and_(x, True), x


@rewrite.rule
def and_false(x):
    return graph.and_(x, False), False


@rewrite.rule
def or_true(x):
    return graph.or_(x, True), True


@rewrite.rule
def or_false(x):
    return graph.or_(x, False), x


@rewrite.rule
def xor_true(x):
    return graph.xor(x, True), graph.not_(x)


@rewrite.rule
def xor_false(x):
    return graph.xor(x, False), x


@rewrite.rule
def and_zero(x):
    return graph.and_(x, 0), 0


@rewrite.rule
def or_zero(x):
    return graph.or_(x, 0), x


@rewrite.rule
def xor_zero(x):
    return graph.xor(x, 0), x


# -- comparisons


@rewrite.rule
def equals_true(x):
    return graph.eq(x, True), x


@rewrite.rule
def equals_false(x):
    return graph.eq(x, False), graph.not_(x)


@rewrite.rule
def differs_from_true(x):
    return graph.ne(x, True), graph.not_(x)


@rewrite.rule
def differs_from_false(x):
    return graph.ne(x, False), x


@rewrite.rule
def not_equal(x, y):
    return graph.not_(graph.eq(x, y)), graph.ne(x, y)


@rewrite.rule
def not_different(x, y):
    return graph.not_(graph.ne(x, y)), graph.eq(x, y)


@rewrite.rule(where=exact)
def not_less(x, y):
    return graph.not_(graph.lt(x, y)), graph.ge(x, y)


@rewrite.rule(where=exact)
def not_greater(x, y):
    return graph.not_(graph.gt(x, y)), graph.le(x, y)


@rewrite.rule(where=exact)
def equals_itself(x):
    return graph.eq(x, x), True


@rewrite.rule(where=exact)
def differs_from_itself(x):
    return graph.ne(x, x), False


@rewrite.rule(where=floating)
def nan_differs_from_itself(x):
    return graph.ne(x, x), graph.isnan(x)


@rewrite.rule
def less_than_itself(x):
    return graph.lt(x, x), False


@rewrite.rule
def greater_than_itself(x):
    return graph.gt(x, x), False


@rewrite.rule
def isnan_of_negation(x):
    return graph.isnan(graph.neg(x)), graph.isnan(x)


@rewrite.rule
def isnan_of_abs(x):
    return graph.isnan(graph.abs(x)), graph.isnan(x)


@rewrite.rule
def isinf_of_negation(x):
    return graph.isinf(graph.neg(x)), graph.isinf(x)


@rewrite.rule
def isinf_of_abs(x):
    return graph.isinf(graph.abs(x)), graph.isinf(x)


# -- choices


@rewrite.rule
def select_of_one(c, x):
    return graph.select(c, x, x), x


@rewrite.rule
def select_true(x, y):
    return graph.select(True, x, y), x


@rewrite.rule
def select_false(x, y):
    return graph.select(False, x, y), y


@rewrite.rule
def select_of_negation(c, x, y):
    return graph.select(graph.not_(c), x, y), graph.select(c, y, x)


@rewrite.rule
def select_of_itself(c):
    return graph.select(c, True, False), c


@rewrite.rule
def select_of_inverse(c):
    return graph.select(c, False, True), graph.not_(c)


@rewrite.rule
def select_same_condition(c, x, y, z):
    return graph.select(c, graph.select(c, x, y), z), graph.select(c, x, z)


@rewrite.rule
def select_same_condition_else(c, x, y, z):
    return graph.select(c, x, graph.select(c, y, z)), graph.select(c, x, z)


# -- casts


def _same_type(x: Value, result: Value) -> bool:
    """The type that it has already."""
    return x.type is result.type


def _loses_nothing(x: Value, y: Value, result: Value) -> bool:
    """What the first cast keeps every value of, and the second rounds as one cast does."""
    first, middle, target = (element_type(value) for value in (x, y, result))
    if not widens(first, middle):
        return False
    if isinstance(middle, FloatType) and isinstance(target, IntegerType) and target is not i1:
        return False  # a float to an integer out of range is unspecified
    if isinstance(first, IntegerType) and isinstance(target, FloatType):
        # Integer to 16-bit float: through f32 or f64 it could round differently.
        return middle is target or widens(first, target)
    return True


@rewrite.rule(where=_same_type)
def cast_to_itself(x):
    return graph.cast(x), x


@rewrite.rule(where=_loses_nothing)
def cast_of_cast(x, y):
    return graph.cast(graph.cast(x).called(y)), graph.cast(x)


# -- all of it


def _nothing(low: Sequence[Dim], high: Sequence[Dim]) -> bool:
    """Nothing."""
    return not any(low) and not any(high)


def _from_the_start(start: Dim) -> bool:
    """From the first element on."""
    return start == 0


@rewrite.rule(where=_same_type)
def concat_of_one(x, d):
    return graph.concat(x, dim=d), x


@rewrite.rule(where=_nothing)
def pad_by_nothing(x, low, high, v):
    return graph.pad(x, low=low, high=high, value=v), x


def _adds_no_floats(x: Value, c: str, result: Value) -> bool:
    """Of its own type, and no sum of floats: 0.0 and -0.0 are 0.0."""
    return x.type is result.type and not (c == "sum" and floating(x))


@rewrite.rule(where=_adds_no_floats)
def reduce_of_no_dimensions(x, c, keepdim):
    return graph.reduce(x, combiner=c, dims=(), keepdim=keepdim), x


@rewrite.rule(where=_from_the_start)
def whole_slice(x, d, start):
    return graph.slice(x, dim=d, start=start, step=1), x
