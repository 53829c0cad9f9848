"""Symbolic floats as tensors of rank 0: arithmetic on numbers that are known at run time only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irc.dialects import graph, sym
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.symbols import SymbolError, from_sympy
from irc.ir.types import TensorType, f64

SCALAR_F64 = TensorType((), f64, ())

# sympy's function (torch's own ones included) -> pointwise operation of one operand.
_UNARY = {
    "ToFloat": None, "Identity": None, "Abs": "abs", "exp": "exp", "log": "log",
    "floor": "floor", "ceiling": "ceil",
    "OpaqueUnaryFn_sqrt": "sqrt", "OpaqueUnaryFn_cos": "cos", "OpaqueUnaryFn_cosh": "cosh",
    "OpaqueUnaryFn_sin": "sin", "OpaqueUnaryFn_sinh": "sinh", "OpaqueUnaryFn_tan": "tan",
    "OpaqueUnaryFn_tanh": "tanh", "OpaqueUnaryFn_asin": "asin", "OpaqueUnaryFn_acos": "acos",
    "OpaqueUnaryFn_atan": "atan", "OpaqueUnaryFn_exp": "exp", "OpaqueUnaryFn_log": "log",
    "OpaqueUnaryFn_log2": "log2", "OpaqueUnaryFn_asinh": "asinh",
}  # fmt: skip
_BINARY = {"FloatTrueDiv": "div", "IntTrueDiv": "div", "FloatPow": "pow", "Pow": "pow",
           "PowByNatural": "pow"}  # fmt: skip
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
    kind = type(expression).__name__
    parts = [float_tensor(builder, a, known) for a in expression.args]
    if kind in _UNARY:
        name = _UNARY[kind]
        return parts[0] if name is None else builder.value(graph.POINTWISE[name], parts[0])
    if kind in _BINARY:
        return builder.value(graph.POINTWISE[_BINARY[kind]], *parts)
    if kind in _FOLDED:
        total = parts[0]
        for part in parts[1:]:
            total = builder.value(graph.POINTWISE[_FOLDED[kind]], total, part)
        return total
    raise UserError(f"the symbolic number {expression} is not supported ({kind})")


def integer_tensor(builder: Builder, expression: Any) -> Value:
    """A rank-0 f64 tensor with the value of an integer sympy expression."""
    try:
        dim = from_sympy(expression)
    except SymbolError as error:
        raise UserError(str(error)) from None
    scalar = builder.value(sym.ValueOp, dim=dim)
    whole = builder.value(graph.FromScalar, scalar)
    return builder.insert(graph.Cast.to(whole, f64)).results[0]
