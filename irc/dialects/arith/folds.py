"""Constant folding and identities of the arith dialect, on plain Python numbers.

Integers are kept as signed values of their width (i1: 0 and 1); floats are rounded to their type
after each operation, so that a fold gives the bits that the operation would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from irc.dialects.arith import ops
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Operation, Value
from irc.ir.floats import round_to_format
from irc.ir.hooks import folds
from irc.ir.rewrite.expressions import ConstantTerm
from irc.ir.traits import Commutative
from irc.ir.types import FloatType, IndexType, VectorType, bf16, f16, f32, f64, i1

if TYPE_CHECKING:
    from irc.ir.rewrite.rules import Rule

Number = int | float


def element_of(type_: Type) -> Type:
    """The element of a vector; a scalar type itself."""
    return type_.element if isinstance(type_, VectorType) else type_


def width_of(type_: Type) -> int:
    """The bits of an integer type (index: 64)."""
    element = element_of(type_)
    return 64 if isinstance(element, IndexType) else element.width  # type: ignore[attr-defined]


def wrap_integer(value: int, width: int) -> int:
    """`value` as a signed integer of `width` bits (one bit: 0 or 1)."""
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


def unsigned(value: int, width: int) -> int:
    """The same bits without a sign."""
    return value & ((1 << width) - 1)


def round_float(value: float, type_: Type) -> float:
    """`value` rounded to nearest even in a float type. Other types than f16, bf16, f32 and f64
    have no fold and raise ValueError."""
    if type_ not in (f16, bf16, f32, f64):
        raise ValueError(f"no rounding to {type_}")
    return value if value != value else round_to_format(value, str(type_))


def number_of(attr: Attribute | None) -> Number | None:
    """The number of a scalar constant attribute, or None."""
    if isinstance(attr, A.FloatAttr):
        return attr.value
    if isinstance(attr, A.IntegerAttr):
        number = attr.value
        # Unsigned types as signed ones; small numbers are the same in each.
        return number if number < 128 else wrap_integer(number, width_of(attr.type))
    if isinstance(attr, A.BoolAttr):
        return int(attr.value)
    return None


def attribute_of(value: Number, type_: Type) -> Attribute:
    """The constant attribute of a value of (the element of) `type_`."""
    element = element_of(type_)
    if element is i1:
        return A.BoolAttr(bool(int(value) & 1))
    if isinstance(element, FloatType):
        return A.FloatAttr(float(value), element)
    return A.IntegerAttr(wrap_integer(int(value), width_of(element)), element)


def _divide(a: int, b: int, mode: str) -> int | None:
    if b == 0:
        return None
    if mode == "floor":
        return a // b
    if mode == "ceil":
        return -(-a // b)
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int | None:
    quotient = _divide(a, b, "trunc")
    return None if quotient is None else a - b * quotient


def _nan_min(a: float, b: float, pick: Callable[[float, float], float]) -> float:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if a == b == 0.0 and math.copysign(1, a) != math.copysign(1, b):
        raise ValueError("which zero is unspecified")
    return pick(a, b)


def _num_min(a: float, b: float, pick: Callable[[float, float], float]) -> float:
    if math.isnan(a):
        return b
    return a if math.isnan(b) else _nan_min(a, b, pick)


def _float_divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _fmod(a: float, b: float) -> float:
    if math.isinf(a) or b == 0:
        return math.nan
    return math.fmod(a, b)


# (a, b, width) -> the result before wrapping, None: no fold
INTEGER: dict[str, Callable[[int, int, int], int | None]] = {
    "addi": lambda a, b, w: a + b,
    "subi": lambda a, b, w: a - b,
    "muli": lambda a, b, w: a * b,
    "divsi": lambda a, b, w: _divide(a, b, "trunc"),
    "floordivsi": lambda a, b, w: _divide(a, b, "floor"),
    "ceildivsi": lambda a, b, w: _divide(a, b, "ceil"),
    "remsi": lambda a, b, w: _remainder(a, b),
    "divui": lambda a, b, w: unsigned(a, w) // unsigned(b, w) if b else None,
    "remui": lambda a, b, w: unsigned(a, w) % unsigned(b, w) if b else None,
    "andi": lambda a, b, w: a & b,
    "ori": lambda a, b, w: a | b,
    "xori": lambda a, b, w: a ^ b,
    "shli": lambda a, b, w: a << b if 0 <= b < w else 0,
    "shrsi": lambda a, b, w: a >> (b if 0 <= b < w else w - 1),
    "shrui": lambda a, b, w: unsigned(a, w) >> b if 0 <= b < w else 0,
    "minsi": lambda a, b, w: min(a, b),
    "maxsi": lambda a, b, w: max(a, b),
    "minui": lambda a, b, w: min(unsigned(a, w), unsigned(b, w)),
    "maxui": lambda a, b, w: max(unsigned(a, w), unsigned(b, w)),
}
FLOAT: dict[str, Callable[[float, float], float]] = {
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
    "mulf": lambda a, b: a * b,
    "divf": _float_divide,
    "remf": _fmod,
    "minimumf": lambda a, b: _nan_min(a, b, min),
    "maximumf": lambda a, b: _nan_min(a, b, max),
    "minnumf": lambda a, b: _num_min(a, b, min),
    "maxnumf": lambda a, b: _num_min(a, b, max),
}
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

def function_of(op: Operation) -> Callable[[int, int, int], int | None] | None:
    """What an operation on two integers computes; None for another operation."""
    return INTEGER.get(op.name[6:]) if isinstance(op, ops.IntegerBinary) else None


# What the rules of `irc.dialects.arith.rules` say, by name, filled from them by `learn`: where the
# right operand is this constant, the result is the left one; or that constant; where both are one
# value, it is that value; or this number.
RIGHT_IDENTITY: dict[str, Number] = {}
ABSORBING: dict[str, Number] = {}
IDEMPOTENT: set[str] = set()
OF_ITSELF: dict[str, Number] = {}


def learn(rule: Rule) -> None:
    """Fold as a rule says: `op(x, c) -> x or c`, `op(x, x) -> x or c`."""
    name, (left, right) = rule.before.cls.name[6:], rule.before.operands
    stays = rule.after is left
    if left is right and stays:
        IDEMPOTENT.add(name)
    elif left is right and isinstance(rule.after, ConstantTerm):
        OF_ITSELF[name] = rule.after.number
    elif isinstance(right, ConstantTerm) and stays:
        RIGHT_IDENTITY[name] = right.number
    elif isinstance(right, ConstantTerm) and isinstance(rule.after, ConstantTerm):
        assert rule.after.number == right.number
        ABSORBING[name] = right.number
    else:
        raise AssertionError(f"no fold is made of {rule.equation}")


def _same_number(value: Number, other: Number) -> bool:
    return value == other and math.copysign(1.0, value) == math.copysign(1.0, other)


@folds(ops.IntegerBinary, ops.FloatBinary)
def fold_binary(op: Operation, constants: Sequence[Attribute | None]) -> Attribute | Value | None:
    """Fold a two-operand arith operation."""
    first, second = constants
    lhs, rhs = op.operands
    if second is None and Commutative in op.traits:
        first, second, lhs, rhs = second, first, rhs, lhs
    b = None if second is None else number_of(second)
    if b is None:
        return _fold_alike(op, lhs) if lhs is rhs else None
    name, type_ = op.name[6:], op.results[0].type
    a = number_of(first)
    if a is not None:
        return _fold_numbers(name, a, b, type_)
    neutral = RIGHT_IDENTITY.get(name)
    if neutral is not None and _same_number(b, neutral):
        return lhs
    if ABSORBING.get(name) == b:
        return attribute_of(b, type_)
    if name == "andi" and unsigned(int(b) + 1, width_of(type_)) == 0:  # all bits
        return lhs
    return None


def _fold_alike(op: Operation, value: Value) -> Attribute | Value | None:
    """What an operation makes of one value twice."""
    name = op.name[6:]
    if name in IDEMPOTENT:
        return value
    number = OF_ITSELF.get(name)
    return None if number is None else attribute_of(number, op.results[0].type)


def _fold_numbers(name: str, a: Number, b: Number, type_: Type) -> Attribute | None:
    element = element_of(type_)
    if name in INTEGER:
        width = width_of(element)
        outcome = INTEGER[name](int(a), int(b), width)
        return None if outcome is None else attribute_of(wrap_integer(outcome, width), type_)
    if element is not f32 and element is not f64:
        return None  # a 16-bit result could be rounded twice
    try:
        return attribute_of(round_float(FLOAT[name](float(a), float(b)), element), type_)
    except (ValueError, OverflowError):
        return None


@folds(ops.NegFOp)
def fold_negation(op: Operation, constants: Sequence[Attribute | None]) -> Attribute | Value | None:
    """Fold arith.negf."""
    value = number_of(constants[0])
    if value is not None:
        return attribute_of(-value, op.results[0].type)
    maker = op.operands[0].defining_op
    return maker.operands[0] if isinstance(maker, ops.NegFOp) else None


@folds(ops.Compare)
def fold_compare(op: Any, constants: Sequence[Attribute | None]) -> Attribute | None:
    """Fold arith.cmpi and arith.cmpf."""
    a, b = (number_of(c) for c in constants)
    predicate: str = op.predicate
    same = op.operands[0] is op.operands[1]
    if isinstance(op, ops.CmpIOp):
        if same:
            return A.BoolAttr(predicate in ("eq", "sle", "sge", "ule", "uge"))
        if a is None or b is None:
            return None
        if predicate in ("eq", "ne"):
            return A.BoolAttr(COMPARE[predicate](a, b))
        width = width_of(op.operands[0].type)
        if predicate[0] == "u":
            a, b = unsigned(int(a), width), unsigned(int(b), width)
        elif width == 1:
            a, b = -a, -b
        return A.BoolAttr(COMPARE[predicate[1:]](a, b))
    if predicate in ("true", "false"):
        return A.BoolAttr(predicate == "true")
    if a is None or b is None:
        return None
    unordered = math.isnan(a) or math.isnan(b)
    if predicate in ("ord", "uno"):
        return A.BoolAttr(unordered == (predicate == "uno"))
    if unordered:
        return A.BoolAttr(predicate[0] == "u")
    return A.BoolAttr(COMPARE[predicate[1:]](a, b))


@folds(ops.SelectOp)
def fold_select(op: Any, constants: Sequence[Attribute | None]) -> Value | None:
    """select(true, x, y) -> x; select(c, x, x) -> x."""
    condition, if_true, if_false = op.operands
    if if_true is if_false:
        return if_true
    chosen = number_of(constants[0])
    if chosen is None:
        return None
    return if_true if chosen else if_false


@folds(ops.ScalarCast)
def fold_cast(op: Operation, constants: Sequence[Attribute | None]) -> Attribute | Value | None:
    """Fold a conversion of a constant, and a conversion back: truncf(extf(x)) -> x."""
    name = op.name[6:]
    source = op.operands[0]
    target = op.results[0].type
    if source.type is target:
        return source
    maker = source.defining_op
    if maker is not None and _UNDONE_BY.get(op.__class__) is maker.__class__:
        inner = maker.operands[0]
        if inner.type is target:
            return inner
    value = number_of(constants[0])
    mode = getattr(op.attributes.get("roundingmode"), "value", ops.ROUNDING[0])
    if value is None or mode not in ops.ROUNDING:
        return None
    return _convert(name, value, source.type, target)


_UNDONE_BY: dict[type[Operation], type[Operation]] = {
    ops.TruncFOp: ops.ExtFOp,
    ops.TruncIOp: ops.ExtSIOp,
    ops.BitcastOp: ops.BitcastOp,
}


def _convert(name: str, value: Number, source: Type, target: Type) -> Attribute | None:
    element = element_of(target)
    if name in ("extf", "truncf"):
        try:
            return attribute_of(round_float(float(value), element), target)
        except ValueError:
            return None
    if name in ("extui", "index_castui", "uitofp"):
        value = unsigned(int(value), width_of(source))
    elif name in ("extsi", "index_cast", "sitofp") and element_of(source) is i1:
        value = -int(value)
    if name in ("sitofp", "uitofp"):
        try:
            return attribute_of(_integer_to_float(int(value), element), target)
        except ValueError:
            return None
    if name in ("fptosi", "fptoui"):
        limit = 1 << (width_of(element) - (1 if name == "fptosi" else 0))
        low = -limit - 1 if name == "fptosi" else -1
        if not (math.isfinite(value) and low < math.trunc(value) < limit):
            return None
        return attribute_of(int(value), target)
    if name == "bitcast":
        return None
    return attribute_of(int(value), target)


def _integer_to_float(value: int, element: Type) -> float:
    if element is f64 or abs(value) < 1 << 53:
        return round_float(float(value), element)
    # Through f64 an integer could be rounded twice; leave these to the program.
    raise ValueError("rounds twice")
