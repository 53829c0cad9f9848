"""Pointwise operations of the graph dialect: a table of scalar functions, one op class each.

Every operand and the result have one shape (broadcasting is `graph.broadcast`) and, but for the
comparisons and tests, one element type (promotion is `graph.cast`). 16-bit and 8-bit floats are
never computed with: they are cast to f32 before and back after. Signed and unsigned integers wrap
around. bool (i1) takes part in `and or xor not`, in comparisons (false < true) and in `select`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from irc.dialects.graph.inferred import check_result, tensor_type
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Value
from irc.ir.definition import Op, attribute, of, operand, result
from irc.ir.diagnostics import UserError
from irc.ir.traits import Commutative, Pure, Trait
from irc.ir.types import DTYPE_OF_ELEMENT, IntegerType, TensorType, element_bytes, f32, f64, i1

TENSOR = of(TensorType)


def is_computable_float(element: Type) -> bool:
    """Whether graph arithmetic is defined on this floating-point type (f32 and f64)."""
    return element is f32 or element is f64


def is_number(element: Type) -> bool:
    """f32, f64 or an integer that is not bool."""
    return is_computable_float(element) or (isinstance(element, IntegerType) and element is not i1)


def is_integral(element: Type) -> bool:
    """An integer, bool included."""
    return isinstance(element, IntegerType)


def is_proper_integer(element: Type) -> bool:
    """An integer, bool excluded."""
    return isinstance(element, IntegerType) and element is not i1


def is_comparable(element: Type) -> bool:
    """f32, f64 or any integer, bool included."""
    return is_computable_float(element) or isinstance(element, IntegerType)


DOMAINS = {
    "float": is_computable_float,
    "number": is_number,
    "integral": is_integral,
    "integer": is_proper_integer,
    "comparable": is_comparable,
}


class PointwiseOp(Op, abstract=True):
    """Base of the pointwise operations. `function` is the name after "graph."; `domain` names the
    element types that it is defined on (a key of DOMAINS); `gives_bool` marks i1 results."""

    __slots__ = ()
    function = ""
    domain = "number"
    gives_bool = False

    @classmethod
    def takes(cls, element: Type) -> bool:
        """Whether the function is defined on elements of this type."""
        return DOMAINS[cls.domain](element)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        source = operands[0].type
        if not isinstance(source, TensorType):
            raise UserError(f"{cls.name} takes tensors, not {source}")
        return (source.with_element(i1) if cls.gives_bool else source,)

    def verify_op(self) -> None:
        first = self.operands[0].type
        for number, value in enumerate(self.operands):
            type_ = value.type
            if not isinstance(type_, TensorType) or not isinstance(first, TensorType):
                self.fail(f"operand {number} is {type_}, not a tensor")
            if type_.shape != first.shape or type_.element is not first.element:
                self.fail(f"operand {number} is {type_}, but operand 0 is {first}")
        source = tensor_type(self.operands[0])
        if not self.takes(source.element):
            self.fail(f"is not defined on {source.element}")
        check_result(self, source, i1 if self.gives_bool else source.element)


class _Unary(PointwiseOp, abstract=True):
    x = operand(TENSOR)
    value = result(TENSOR)


class _Binary(PointwiseOp, abstract=True):
    lhs = operand(TENSOR)
    rhs = operand(TENSOR)
    value = result(TENSOR)


PointwiseT = TypeVar("PointwiseT", bound=PointwiseOp)
POINTWISE: dict[str, type[PointwiseOp]] = {}


def _define(
    base: type[PointwiseT], name: str, domain: str, doc: str, gives_bool: bool, commutes: bool,
    **attributes: Any,
) -> type[PointwiseT]:
    traits: set[type[Trait]] = {Pure}
    if commutes:
        traits.add(Commutative)
    operands = "%x" if base is _Unary else "%x, %y"
    type_ = "tensor<4xf32>" if domain in ("float", "number", "comparable") else "tensor<4xi32>"
    target = "tensor<4xi1>" if gives_bool else type_
    sources = ", ".join([type_] * (1 if base is _Unary else 2))
    example = f"`%z = graph.{name} {operands} : ({sources}) -> {target}`"
    class_name = "".join(part.capitalize() for part in name.split("_"))
    members = {
        "__slots__": (),
        "__doc__": f"{doc}\n\n    {example}\n    ",
        "__module__": __name__,
        "name": f"graph.{name}",
        "function": name,
        "domain": domain,
        "gives_bool": gives_bool,
        "traits": frozenset(traits),
        **attributes,
    }
    cls: type[PointwiseT] = type(class_name, (base,), members)
    POINTWISE[name] = cls
    return cls


def _unary(name: str, domain: str, doc: str, **attributes: Any) -> type[_Unary]:
    return _define(_Unary, name, domain, doc, False, False, **attributes)


def _test(name: str, domain: str, doc: str) -> type[_Unary]:
    return _define(_Unary, name, domain, doc, True, False)


def _binary(name: str, domain: str, doc: str, commutes: bool = False) -> type[_Binary]:
    return _define(_Binary, name, domain, doc, False, commutes)


def _compare(name: str, doc: str, commutes: bool = False) -> type[_Binary]:
    return _define(_Binary, name, "comparable", doc, True, commutes)


Add = _binary("add", "number", "x + y.", True)
Sub = _binary("sub", "number", "x - y.")
Mul = _binary("mul", "number", "x * y.", True)
Div = _binary("div", "float", "x / y, IEEE; true division of integers casts to float first.")
FloorDiv = _binary(
    "floor_div", "number",
    "x / y rounded toward minus infinity, as torch: a float divisor of 0 gives x / y, and the\n"
    "    quotient comes from the exact remainder. An integer divisor of 0 raises.",
)  # fmt: skip
TruncDiv = _binary(
    "trunc_div", "number", "x / y rounded toward zero; an integer divisor of 0 raises."
)
Remainder = _binary(
    "remainder", "number",
    "x - y * floor(x / y), with the sign of y; an integer divisor of 0 raises, a float one\n"
    "    gives NaN.",
)  # fmt: skip
Fmod = _binary("fmod", "number", "C's fmod, with the sign of x; an integer divisor of 0 raises.")
Pow = _binary(
    "pow", "number",
    "x to the power y. Floats: C's pow. Integers wrap; a negative exponent gives 0, but 1 or -1\n"
    "    for a base of 1 or -1.",
)  # fmt: skip
Maximum = _binary(
    "maximum", "number",
    "The larger of x and y; NaN if either is. Which of two zeros isn't said: kernels of a CPU\n"
    "    give x's, so that one that a constant bounds keeps its sign.",
    True,
)  # fmt: skip
Minimum = _binary(
    "minimum", "number", "The smaller of x and y; NaN if either is. Of two zeros as `maximum`.",
    True,
)  # fmt: skip
Fmax = _binary("fmax", "float", "The larger of x and y; a NaN gives the other one.", True)
Fmin = _binary("fmin", "float", "The smaller of x and y; a NaN gives the other one.", True)
Atan2 = _binary("atan2", "float", "The angle of (y=lhs, x=rhs), C's atan2.")
Copysign = _binary("copysign", "float", "The magnitude of x with the sign bit of y.")
Nextafter = _binary("nextafter", "float", "The next representable value after x toward y.")
And = _binary("and", "integral", "Bitwise and; logical on bool.", True)
Or = _binary("or", "integral", "Bitwise or; logical on bool.", True)
Xor = _binary("xor", "integral", "Bitwise exclusive or; logical on bool.", True)
Shl = _binary("shl", "integer", "x << y; a shift that is negative or the width or more gives 0.")
Shr = _binary(
    "shr", "integer",
    "x >> y, arithmetic if signed; a shift that is negative or the width or more gives 0, or -1\n"
    "    for a negative x.",
)  # fmt: skip

Neg = _unary("neg", "number", "-x; integers wrap.")
Abs = _unary("abs", "number", "|x|; the most negative integer stays as it is.")
Sign = _unary("sign", "number", "-1, 0 or 1; 0 for NaN, as torch.sign on the CPU.")
Ceil = _unary("ceil", "float", "Rounded toward plus infinity.")
Floor = _unary("floor", "float", "Rounded toward minus infinity.")
Round = _unary("round", "float", "Rounded to the nearest integer, ties to even.")
Trunc = _unary("trunc", "float", "Rounded toward zero.")
Exp = _unary(
    "exp", "float",
    "e to the power x. `nonpositive` promises that x is at most 0 or NaN, as differences from a\n"
    "    maximum are; far above 0 the result is then any number.",
    nonpositive=attribute(A.UnitAttr),
)  # fmt: skip
Exp2 = _unary("exp2", "float", "2 to the power x.")
Expm1 = _unary("expm1", "float", "exp(x) - 1 without cancellation.")
Log = _unary("log", "float", "The natural logarithm.")
Log2 = _unary("log2", "float", "The logarithm to base 2.")
Log10 = _unary("log10", "float", "The logarithm to base 10.")
Log1p = _unary("log1p", "float", "log(1 + x) without cancellation.")
Sqrt = _unary("sqrt", "float", "The square root, correctly rounded.")
Rsqrt = _unary("rsqrt", "float", "1 / sqrt(x).")
Reciprocal = _unary("reciprocal", "float", "1 / x.")
Sin = _unary("sin", "float", "The sine.")
Cos = _unary("cos", "float", "The cosine.")
Tan = _unary("tan", "float", "The tangent.")
Asin = _unary("asin", "float", "The inverse sine.")
Acos = _unary("acos", "float", "The inverse cosine.")
Atan = _unary("atan", "float", "The inverse tangent.")
Sinh = _unary("sinh", "float", "The hyperbolic sine.")
Cosh = _unary("cosh", "float", "The hyperbolic cosine.")
Tanh = _unary("tanh", "float", "The hyperbolic tangent.")
Asinh = _unary("asinh", "float", "The inverse hyperbolic sine.")
Acosh = _unary("acosh", "float", "The inverse hyperbolic cosine.")
Atanh = _unary("atanh", "float", "The inverse hyperbolic tangent.")
Erf = _unary("erf", "float", "The error function.")
Erfc = _unary("erfc", "float", "1 - erf(x) without cancellation.")
Erfinv = _unary("erfinv", "float", "The inverse of erf.")
Sigmoid = _unary("sigmoid", "float", "1 / (1 + exp(-x)).")
Lgamma = _unary("lgamma", "float", "The logarithm of |gamma(x)|.")
Digamma = _unary("digamma", "float", "The derivative of lgamma; digamma(0) is an infinity.")
Not = _unary("not", "integral", "All bits inverted; logical on bool.")

Isnan = _test("isnan", "float", "Whether x is NaN.")
Isinf = _test("isinf", "float", "Whether x is an infinity.")
Signbit = _test("signbit", "number", "Whether the sign bit is set (-0.0: yes; unsigned: no).")

Eq = _compare("eq", "x == y; false if either is NaN.", True)
Ne = _compare("ne", "x != y; true if either is NaN.", True)
Lt = _compare("lt", "x < y; false if either is NaN.")
Le = _compare("le", "x <= y; false if either is NaN.")
Gt = _compare("gt", "x > y; false if either is NaN.")
Ge = _compare("ge", "x >= y; false if either is NaN.")


class Select(Op):
    """`on_true` where `condition` (i1) is true, else `on_false`; any element type.

    `%z = graph.select %c, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    name = "graph.select"
    traits = frozenset({Pure})
    condition = operand(TENSOR)
    on_true = operand(TENSOR)
    on_false = operand(TENSOR)
    value = result(TENSOR)

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (operands[1].type,)

    def verify_op(self) -> None:
        condition, yes, no = (tensor_type(v) for v in self.operands)
        if condition.element is not i1 or condition.shape != yes.shape:
            self.fail(f"the condition is {condition}, the values are {yes}")
        if yes.shape != no.shape or yes.element is not no.element:
            self.fail(f"the two values differ: {yes} and {no}")
        check_result(self, yes, yes.element)


class Cast(Op):
    """Converts to the element type of the result, as torch's `to`.

    Floats round to nearest even; float to integer truncates (out of range or NaN: unspecified,
    never undefined); integers wrap or extend (by their own sign); to bool: whether x is not 0
    (NaN: true); bool gives 0 and 1. Complex types are not cast here.

    `%y = graph.cast %x : (tensor<4xbf16>) -> tensor<4xf32>`
    """

    name = "graph.cast"
    traits = frozenset({Pure})
    x = operand(TENSOR)
    value = result(TENSOR)

    def verify_op(self) -> None:
        result_type = tensor_type(self.results[0])
        if result_type.element not in DTYPE_OF_ELEMENT:
            self.fail(f"{result_type.element} is not an element type of tensors")
        check_result(self, tensor_type(self.operands[0]), result_type.element)

    @classmethod
    def to(cls, source: Value, element: Type) -> Cast:
        """The cast of `source` to `element`."""
        return cls((source,), (tensor_type(source).with_element(element),))


class Bitcast(Op):
    """The same bits as elements of another type of equal width (`view(dtype)`).

    `%y = graph.bitcast %x : (tensor<4xf32>) -> tensor<4xi32>`
    """

    name = "graph.bitcast"
    traits = frozenset({Pure})
    x = operand(TENSOR)
    value = result(TENSOR)

    def verify_op(self) -> None:
        source, result_type = tensor_type(self.operands[0]), tensor_type(self.results[0])
        if element_bytes(source.element) != element_bytes(result_type.element):
            self.fail(f"{source.element} and {result_type.element} differ in width")
        check_result(self, source, result_type.element)


def scalar_attribute(value: bool | int | float, element: Type) -> Attribute:
    """The attribute that stands for `value` as one element of this type."""
    if element is i1:
        return A.BoolAttr(bool(value))
    if isinstance(element, IntegerType):
        return A.IntegerAttr(int(value), element)
    return A.FloatAttr(float(value), element)


SCALAR_ATTRIBUTES = (A.BoolAttr, A.IntegerAttr, A.FloatAttr)

__all__ = [
    "POINTWISE", "Bitcast", "Cast", "PointwiseOp", "SCALAR_ATTRIBUTES", "Select", "TENSOR",
    "is_comparable", "is_computable_float", "is_integral",
    "is_number", "is_proper_integer", "scalar_attribute",
]  # fmt: skip
