"""Symbolic floats as tensors of rank 0: arithmetic on numbers that are known at run time only.

So are the conditions on them; integers made of them are read back and bound to symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irc.dialects import aten, graph, sym
from irc.frontend.importing.symbols import RELATIONS
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.symbols import SymbolError, from_sympy
from irc.ir.types import ELEMENT_OF_DTYPE, TensorType, f64, i1, i64

_DTYPE_OF_NUMBER = {bool: "bool", float: "float64", complex: "complex128"}
SCALAR_F64 = TensorType((), f64, ())

# sympy's function (torch's own ones included) -> pointwise operation of one operand.
_UNARY = {
    "ToFloat": None, "Identity": None, "Abs": "abs", "exp": "exp", "log": "log",
    "floor": "floor", "ceiling": "ceil", "TruncToInt": "trunc", "FloorToInt": "floor",
    "CeilToInt": "ceil", "RoundToInt": "round",
    "OpaqueUnaryFn_sqrt": "sqrt", "OpaqueUnaryFn_cos": "cos", "OpaqueUnaryFn_cosh": "cosh",
    "OpaqueUnaryFn_sin": "sin", "OpaqueUnaryFn_sinh": "sinh", "OpaqueUnaryFn_tan": "tan",
    "OpaqueUnaryFn_tanh": "tanh", "OpaqueUnaryFn_asin": "asin", "OpaqueUnaryFn_acos": "acos",
    "OpaqueUnaryFn_atan": "atan", "OpaqueUnaryFn_exp": "exp", "OpaqueUnaryFn_log": "log",
    "OpaqueUnaryFn_log2": "log2", "OpaqueUnaryFn_asinh": "asinh",
}  # fmt: skip
_BINARY = {"FloatTrueDiv": "div", "IntTrueDiv": "div", "FloatPow": "pow", "Pow": "pow",
           "PowByNatural": "pow"}  # fmt: skip
# To an integer -> the rounding of a float before the cast.
TO_INTEGER = {"TruncToInt": "trunc", "FloorToInt": "floor", "CeilToInt": "ceil",
              "RoundToInt": "round", "floor": "floor", "ceiling": "ceil"}  # fmt: skip
_CONNECTIVES = {"And": "and", "Or": "or"}
_FOLDED = {"Add": "add", "Mul": "mul", "Max": "maximum", "Min": "minimum"}


def float_tensor(builder: Builder, expression: Any, known: Mapping[str, Value]) -> Value:
    """A rank-0 f64 tensor with the value of a sympy expression.

    `known` gives the tensors of float symbols; integer parts become `sym.value`. Raises UserError
    for a function without a meaning here.
    """
    if isinstance(expression, int | float) or getattr(expression, "is_number", False):
        return builder.value(graph.Full, None, value=float(expression), result_types=SCALAR_F64)
    if expression.is_Symbol and expression.name in known:
        return known[expression.name]
    if not any(s.name in known for s in expression.free_symbols) and expression.is_integer:
        return integer_tensor(builder, expression)
    class_name = type(expression).__name__
    parts = [float_tensor(builder, a, known) for a in expression.args]
    if class_name in _UNARY:
        name = _UNARY[class_name]
        return parts[0] if name is None else builder.value(graph.POINTWISE[name], parts[0])
    if class_name in _BINARY:
        return builder.value(graph.POINTWISE[_BINARY[class_name]], *parts)
    if class_name in _FOLDED:
        total = parts[0]
        for part in parts[1:]:
            total = builder.value(graph.POINTWISE[_FOLDED[class_name]], total, part)
        return total
    raise UserError(f"the symbolic number {expression} is not supported ({class_name})")


def integer_tensor(builder: Builder, expression: Any) -> Value:
    """A rank-0 f64 tensor with the value of an integer sympy expression."""
    try:
        dim = from_sympy(expression)
    except SymbolError as error:
        raise UserError(str(error)) from None
    scalar = builder.value(sym.ValueOp, dim=dim)
    whole = builder.value(graph.FromScalar, scalar)
    return builder.insert(graph.Cast.to(whole, f64)).results[0]


def as_tensor(builder: Builder, source: Any) -> Value:
    """A number that is copied into a tensor (Python number, expression, scalar value), as the
    tensor of rank 0 that torch makes of it: a copy casts it, without the checks that a fill makes.
    A tensor is itself."""
    if isinstance(source, Value):
        if isinstance(source.type, TensorType):
            return source
        name = "float64" if source.type is f64 else "int64"
    else:
        name = _DTYPE_OF_NUMBER.get(type(source), "int64")
    op = aten.make_aten(
        "aten.scalar_tensor.default", (source,), {"dtype": aten.DtypeAttr(name)},
        lambda v: v if isinstance(v, Value) else None,
        (TensorType((), ELEMENT_OF_DTYPE[name], ()),), builder.location,
    )  # fmt: skip
    return builder.insert(op).results[0]


def truncated(builder: Builder, expression: Any, known: Mapping[str, Value]) -> Value:
    """The scalar (index) of a sympy expression that is a rounding in TO_INTEGER of a float."""
    rounding = graph.POINTWISE[TO_INTEGER[type(expression).__name__]]
    rounded = builder.value(rounding, float_tensor(builder, expression.args[0], known))
    return builder.value(graph.Item, builder.insert(graph.Cast.to(rounded, i64)).results[0])


def condition_tensor(builder: Builder, condition: Any, known: Mapping[str, Value]) -> Value:
    """A rank-0 i1 tensor with the truth of a sympy condition on float symbols.

    As `float_tensor`; raises UserError for a condition without a meaning here.
    """
    class_name = type(condition).__name__
    if class_name in ("BooleanTrue", "BooleanFalse", "bool"):
        truth = TensorType((), i1, ())
        return builder.value(graph.Full, None, value=bool(condition), result_types=truth)
    if class_name in RELATIONS:
        name, swapped = RELATIONS[class_name]
        left, right = (float_tensor(builder, a, known) for a in condition.args)
        if swapped:
            left, right = right, left
        return builder.value(graph.POINTWISE[name], left, right)
    if class_name not in _CONNECTIVES and class_name != "Not":
        raise UserError(f"the symbolic condition {condition} is not supported ({class_name})")
    parts = [condition_tensor(builder, a, known) for a in condition.args]
    if class_name == "Not":
        return builder.value(graph.POINTWISE["not"], parts[0])
    total = parts[0]
    for part in parts[1:]:
        total = builder.value(graph.POINTWISE[_CONNECTIVES[class_name]], total, part)
    return total
