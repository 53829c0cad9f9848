"""What each pointwise function of the graph level is on scalars: torch's meaning, in arith, math.

`POINTWISE[function](body, element, *operands, **attributes)` appends operations to a body and gives
the value. `element` is the operands' element type on the graph level, which says what is unsigned;
scalars are signless. The attributes are those that the graph's operation declares. Floats are f32
or f64: 16-bit floats are cast before and after by the graph.
"""

from __future__ import annotations

from collections.abc import Callable

from irc.ir.attributes import Attribute, Type
from irc.ir.core import Value
from irc.ir.types import FloatType, IntegerType, f32, f64, i1, i32, i64
from irc.passes.common.bodies import Body

Scalar = Callable[..., Value]
POINTWISE: dict[str, Scalar] = {}


def is_unsigned(element: Type) -> bool:
    """Whether comparisons and divisions of this element type are unsigned (bool too)."""
    return isinstance(element, IntegerType) and (element.unsigned or element is i1)


def _split(function: str, on_float: Scalar | None, on_integer: Scalar | None) -> None:
    def emit(body: Body, element: Type, *operands: Value, **attributes: Attribute) -> Value:
        chosen = on_float if isinstance(element, FloatType) else on_integer
        assert chosen is not None, f"graph.{function} is not defined on {element}"
        return chosen(body, element, *operands, **attributes)

    POINTWISE[function] = emit


def _op(name: str) -> Scalar:
    return lambda body, element, *operands, **attributes: body.op(name, *operands, **attributes)


def _signed(signed: str, unsigned: str) -> Scalar:
    def emit(body: Body, element: Type, *operands: Value) -> Value:
        return body.op(unsigned if is_unsigned(element) else signed, *operands)

    return emit


# -- division


def _nonzero(body: Body, divisor: Value) -> Value:
    """The divisor with 1 for 0: torch raises there, by an assertion on the whole tensor."""
    zero = body.zero(divisor.type)
    is_zero = body.compare("eq", divisor, zero)
    return body.op("arith.select", is_zero, body.constant(1, divisor.type), divisor,
                   type=divisor.type)  # fmt: skip


def _integer_division(signed: str, unsigned: str) -> Scalar:
    emit_division = _signed(signed, unsigned)

    def emit(body: Body, element: Type, a: Value, b: Value) -> Value:
        return emit_division(body, element, a, _nonzero(body, b))

    return emit


def _integer_remainder(body: Body, element: Type, a: Value, b: Value) -> Value:
    b = _nonzero(body, b)
    if is_unsigned(element):
        return body.op("arith.remui", a, b)
    rest = body.op("arith.remsi", a, b)
    zero = body.zero(a.type)
    differs = body.op("arith.xori", body.compare("slt", rest, zero), body.compare("slt", b, zero))
    adjust = body.op("arith.andi", differs, body.compare("ne", rest, zero))
    return body.select(adjust, body.op("arith.addi", rest, b), rest)


def _compare_floats(body: Body, predicate: str, a: Value, b: Value) -> Value:
    return body.op("arith.cmpf", a, b, type=i1, predicate=predicate)


def _float_adjusts(body: Body, rest: Value, b: Value) -> Value:
    """Whether a fmod remainder has the wrong sign for a floored quotient."""
    zero = body.zero(b.type)
    differs = body.op(
        "arith.xori",
        _compare_floats(body, "olt", b, zero),
        _compare_floats(body, "olt", rest, zero),
    )
    return body.op("arith.andi", differs, _compare_floats(body, "une", rest, zero))


def _float_remainder(body: Body, element: Type, a: Value, b: Value) -> Value:
    rest = body.op("arith.remf", a, b)
    return body.select(_float_adjusts(body, rest, b), body.op("arith.addf", rest, b), rest)


def _float_floor_division(body: Body, element: Type, a: Value, b: Value) -> Value:
    # As Python's float //: from the exact remainder, so that 1.0 // 0.1 is 9.
    zero, one = body.zero(a.type), body.constant(1, a.type)
    true_quotient = body.op("arith.divf", a, b)
    rest = body.op("arith.remf", a, b)
    whole = body.op("arith.divf", body.op("arith.subf", a, rest), b)
    whole = body.select(_float_adjusts(body, rest, b), body.op("arith.subf", whole, one), whole)
    floor = body.op("math.floor", whole)
    over = _compare_floats(
        body, "ogt", body.op("arith.subf", whole, floor), body.constant(0.5, a.type)
    )
    floor = body.select(over, body.op("arith.addf", floor, one), floor)
    signed_zero = body.op("math.copysign", zero, true_quotient)
    floor = body.select(_compare_floats(body, "une", whole, zero), floor, signed_zero)
    return body.select(_compare_floats(body, "oeq", b, zero), true_quotient, floor)


# -- powers and signs


def _integer_power(body: Body, element: Type, a: Value, b: Value) -> Value:
    # Squaring over the exponent's bits: as many steps as bits, without a loop.
    assert isinstance(element, IntegerType)
    one, zero = body.constant(1, a.type), body.zero(a.type)
    steps = element.width if element.unsigned else element.width - 1
    total, square = one, a
    for bit in range(steps):
        shifted = body.op("arith.shrui", b, body.constant(bit, b.type)) if bit else b
        is_set = body.compare("ne", body.op("arith.andi", shifted, one), zero)
        total = body.select(is_set, body.op("arith.muli", total, square), total)
        if bit + 1 < steps:
            square = body.op("arith.muli", square, square)
    if element.unsigned:
        return total
    # A negative exponent: 1 stays, -1 alternates, everything else is below 1.
    minus_one = body.constant(-1, a.type)
    odd = body.compare("ne", body.op("arith.andi", b, one), zero)
    alternating = body.select(odd, minus_one, one)
    below = body.select(body.compare("eq", a, minus_one), alternating, zero)
    below = body.select(body.compare("eq", a, one), one, below)
    return body.select(body.compare("slt", b, zero), below, total)


def _float_sign(body: Body, element: Type, x: Value) -> Value:
    zero = body.zero(x.type)
    negative = body.select(_compare_floats(body, "olt", x, zero), body.constant(-1, x.type), zero)
    return body.select(_compare_floats(body, "ogt", x, zero), body.constant(1, x.type), negative)


def _integer_sign(body: Body, element: Type, x: Value) -> Value:
    zero, one = body.zero(x.type), body.constant(1, x.type)
    if is_unsigned(element):
        return body.select(body.compare("ne", x, zero), one, zero)
    negative = body.select(body.compare("slt", x, zero), body.constant(-1, x.type), zero)
    return body.select(body.compare("sgt", x, zero), one, negative)


def _float_signbit(body: Body, element: Type, x: Value) -> Value:
    bits = body.op("arith.bitcast", x, type=i32 if element is f32 else i64)
    return body.compare("slt", bits, body.zero(bits.type))


def _integer_signbit(body: Body, element: Type, x: Value) -> Value:
    if is_unsigned(element):
        return body.constant(0, i1)
    return body.compare("slt", x, body.zero(x.type))


def _integer_not(body: Body, element: Type, x: Value) -> Value:
    return body.op("arith.xori", x, body.constant(1 if element is i1 else -1, x.type))


def _negate_integer(body: Body, element: Type, x: Value) -> Value:
    return body.op("arith.subi", body.zero(x.type), x)


def _absolute_integer(body: Body, element: Type, x: Value) -> Value:
    return x if is_unsigned(element) else body.op("math.absi", x)


def _reciprocal(body: Body, element: Type, x: Value) -> Value:
    return body.op("arith.divf", body.constant(1, x.type), x)


def _trunc_quotient(body: Body, element: Type, a: Value, b: Value) -> Value:
    return body.op("math.trunc", body.op("arith.divf", a, b))


def _test(name: str) -> Scalar:
    return lambda body, element, x: body.op(name, x, type=i1)


def _comparison(on_float: str, signed: str, unsigned: str) -> tuple[Scalar, Scalar]:
    def integers(body: Body, element: Type, a: Value, b: Value) -> Value:
        return body.compare(unsigned if is_unsigned(element) else signed, a, b)

    return lambda body, element, a, b: _compare_floats(body, on_float, a, b), integers


for _name, _float, _integer in (
    ("add", _op("arith.addf"), _op("arith.addi")),
    ("sub", _op("arith.subf"), _op("arith.subi")),
    ("mul", _op("arith.mulf"), _op("arith.muli")),
    ("div", _op("arith.divf"), None),
    ("floor_div", _float_floor_division, _integer_division("arith.floordivsi", "arith.divui")),
    ("trunc_div", _trunc_quotient, _integer_division("arith.divsi", "arith.divui")),
    ("remainder", _float_remainder, _integer_remainder),
    ("fmod", _op("arith.remf"), _integer_division("arith.remsi", "arith.remui")),
    ("pow", _op("math.powf"), _integer_power),
    ("maximum", _op("arith.maximumf"), _signed("arith.maxsi", "arith.maxui")),
    ("minimum", _op("arith.minimumf"), _signed("arith.minsi", "arith.minui")),
    ("fmax", _op("arith.maxnumf"), None),
    ("fmin", _op("arith.minnumf"), None),
    ("and", None, _op("arith.andi")),
    ("or", None, _op("arith.ori")),
    ("xor", None, _op("arith.xori")),
    ("shl", None, _op("arith.shli")),
    ("shr", None, _signed("arith.shrsi", "arith.shrui")),
    ("neg", _op("arith.negf"), _negate_integer),
    ("abs", _op("math.absf"), _absolute_integer),
    ("sign", _float_sign, _integer_sign),
    ("round", _op("math.roundeven"), None),
    ("reciprocal", _reciprocal, None),
    ("not", None, _integer_not),
    ("isnan", _test("math.isnan"), None),
    ("isinf", _test("math.isinf"), None),
    ("signbit", _float_signbit, _integer_signbit),
    ("eq", *_comparison("oeq", "eq", "eq")),
    ("ne", *_comparison("une", "ne", "ne")),
    ("lt", *_comparison("olt", "slt", "ult")),
    ("le", *_comparison("ole", "sle", "ule")),
    ("gt", *_comparison("ogt", "sgt", "ugt")),
    ("ge", *_comparison("oge", "sge", "uge")),
):
    _split(_name, _float, _integer)
for _name in (
    "ceil floor trunc exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh erf erfc erfinv sigmoid lgamma digamma atan2 copysign "
    "nextafter"
).split():
    _split(_name, _op(f"math.{_name}"), None)

# Functions that raise in torch where an integer divisor is 0.
RAISES_ON_ZERO = frozenset(("floor_div", "trunc_div", "remainder", "fmod"))


# -- casts


def cast(body: Body, value: Value, source: Type, target: Type) -> Value:
    """`value` of element type `source` converted to `target` as torch's `to`."""
    if source is target:
        return value
    if isinstance(source, FloatType):
        if isinstance(target, FloatType):
            return _float_to_float(body, value, source, target)
        return _float_to_integer(body, value, target)
    assert isinstance(source, IntegerType), f"no scalar cast of {source}"
    if isinstance(target, FloatType):
        # Narrow floats are rounded from f32, as torch's conversions do.
        wide = target if target.width >= 32 else f32
        name = "arith.uitofp" if is_unsigned(source) else "arith.sitofp"
        return _float_to_float(body, body.op(name, value, type=wide), wide, target)
    assert isinstance(target, IntegerType), f"no scalar cast to {target}"
    return _integer_to_integer(body, value, source, target)


def _float_to_float(body: Body, value: Value, source: FloatType, target: FloatType) -> Value:
    if source is target:
        return value
    if source.width < 32 and target.width < 32:
        value, source = body.op("arith.extf", value, type=f32), f32
    if source is f64 and target.width < 32:
        value, source = body.op("arith.truncf", value, type=f32), f32
    name = "arith.extf" if target.width > source.width else "arith.truncf"
    return body.op(name, value, type=target)


def _float_to_integer(body: Body, value: Value, target: Type) -> Value:
    assert isinstance(target, IntegerType) and isinstance(value.type, FloatType)
    if value.type.width < 32:
        value = body.op("arith.extf", value, type=f32)
    if target is i1:
        return _compare_floats(body, "une", value, body.zero(value.type))
    if target.width == 64:
        name = "arith.fptoui" if target.unsigned else "arith.fptosi"
        return body.op(name, value, type=i64)
    # Narrow integers keep the low bits of a wider conversion, as torch's vector code does.
    wide = i64 if target.unsigned and target.width == 32 else i32
    converted = body.op("arith.fptosi", value, type=wide)
    if target.width == wide.width:
        return converted
    return body.op("arith.trunci", converted, type=IntegerType(target.width))


def _integer_to_integer(
    body: Body, value: Value, source: IntegerType, target: IntegerType
) -> Value:
    if target is i1:
        return body.compare("ne", value, body.zero(value.type))
    if source.width == target.width:
        return value
    signless = IntegerType(target.width)
    if source.width > target.width:
        return body.op("arith.trunci", value, type=signless)
    return body.op("arith.extui" if is_unsigned(source) else "arith.extsi", value, type=signless)
