"""torch's symbolic integers as irc's: expressions, ranges, hints and relations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from irc.ir.symbols import Dim, SymbolError, from_sympy

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

# sympy's relation -> (sym.assert relation, operands swapped)
RELATIONS = {
    "Equality": ("eq", False),
    "Eq": ("eq", False),
    "Unequality": ("ne", False),
    "Ne": ("ne", False),
    "StrictLessThan": ("lt", False),
    "LessThan": ("le", False),
    "StrictGreaterThan": ("lt", True),
    "GreaterThan": ("le", True),
}
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def expression(value: Any) -> Any:
    """The sympy expression of a SymInt, SymFloat or SymBool, with torch's replacements applied;
    other values as they are."""
    return value.node.expr if isinstance(value, SYMBOLIC) else value


def raw_expression(value: Any) -> Any:
    """As `expression`, but as it was made: equalities learned later are not applied."""
    return value.node._expr if isinstance(value, SYMBOLIC) else value


def dim_of(value: Any) -> Dim:
    """The Dim of an int, a SymInt or an integer sympy expression. Raises SymbolError."""
    return int(value) if isinstance(value, int) else from_sympy(expression(value))


def raw_dim_of(value: Any) -> Dim:
    """As `dim_of`, from the expression as it was made."""
    return int(value) if isinstance(value, int) else from_sympy(raw_expression(value))


def shape_env_of(metas: Iterable[Any]) -> Any:
    """The ShapeEnv of the first symbolic or fake value, or None."""
    for value in metas:
        if isinstance(value, SYMBOLIC):
            return value.node.shape_env
        if isinstance(value, torch.Tensor):
            mode = getattr(value, "fake_mode", None)
            if mode is not None and mode.shape_env is not None:
                return mode.shape_env
    return None


def bounds(shape_env: Any, symbol: Any) -> tuple[int | None, int | None]:
    """The inclusive range of a sympy symbol; None where it is unbounded (or beyond int64)."""
    interval = shape_env.var_to_range.get(symbol) if shape_env is not None else None
    if interval is None:
        return None, None
    return _bound(interval.lower), _bound(interval.upper)


def _bound(value: Any) -> int | None:
    if not getattr(value, "is_Integer", False):
        return None
    number = int(value)
    return number if INT64_MIN < number < INT64_MAX - 1 else None


def hint(shape_env: Any, symbol: Any) -> int | None:
    """The size that a sympy symbol had when it was traced; None for an unbacked one."""
    if shape_env is None:
        return None
    value = _hints(shape_env).get(symbol)
    return int(value) if getattr(value, "is_Integer", False) else None


def _hints(shape_env: Any) -> Any:
    """The value of each sympy symbol when it was traced."""
    table = "backed_var_to_val" if hasattr(shape_env, "backed_var_to_val") else "var_to_val"
    return getattr(shape_env, table)


def is_ragged(value: Any) -> bool:
    """Whether a SymInt stands for the size of a ragged dimension of a jagged tensor, which is
    equal to itself alone (torch: a nested or singleton int)."""
    if not isinstance(value, torch.SymInt):
        return False
    if value.node.is_nested_int():
        return True
    expression = value.node.expr
    known = _hints(value.node.shape_env).get(expression) if expression.is_Symbol else None
    return type(known).__name__ == "SingletonInt"


def unbacked_bindings(shape_env: Any, node: Any) -> dict[Any, Any]:
    """sympy symbol -> key path into the node's value, for the unbacked symbols made there."""
    bindings = node.meta.get("unbacked_bindings")
    if not bindings or shape_env is None:
        return {}
    from torch.fx.experimental.symbolic_shapes import resolve_unbacked_bindings

    return resolve_unbacked_bindings(shape_env, bindings) or {}


def is_equality(condition: Any) -> bool:
    """Whether a sympy condition says that two numbers are equal, perhaps among more."""
    class_name = type(condition).__name__
    if class_name == "And":
        return any(map(is_equality, condition.args))
    return class_name in RELATIONS and RELATIONS[class_name][0] == "eq"


def relations_of(condition: Any) -> list[tuple[str, Dim, Dim]]:
    """A sympy condition as facts that must all hold: (relation, lhs, rhs). Raises SymbolError."""
    class_name = type(condition).__name__
    if class_name == "And":
        return [fact for part in condition.args for fact in relations_of(part)]
    if class_name in ("BooleanTrue", "bool") and bool(condition):
        return []
    if class_name in RELATIONS:
        name, swapped = RELATIONS[class_name]
        try:
            left, right = (from_sympy(a) for a in condition.args)
        except SymbolError:
            return [("eq", from_sympy(condition), 1)]
        return [(name, right, left) if swapped else (name, left, right)]
    return [("eq", from_sympy(condition), 1)]
