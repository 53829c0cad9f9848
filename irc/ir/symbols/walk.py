"""Reading expressions: free symbols, substitution, evaluation, folding, affine parts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from irc.ir.symbols.division import function
from irc.ir.symbols.expr import (
    DEEP,
    CeilQuotient,
    Dim,
    Expr,
    FloorQuotient,
    Function,
    Max,
    Min,
    Mod,
    Product,
    Sum,
    Symbol,
    SymbolError,
    dim_product,
    dim_sum,
    factors_of,
    from_terms,
    postorder,
    terms_of,
)

T = TypeVar("T")
_COEFFICIENTS: dict[tuple[Expr, str], Dim | None] = {}
_MEMO_BOUND = 1 << 16
_NO_SYMBOLS: frozenset[str] = frozenset()

SHALLOW = 3
"""Deepest expression that is evaluated without noting the value of each part. Sizes behind many
layers share their parts, and as trees would be exponentially large."""

MAX_POWER_BITS = 4096
"""Widest integer that evaluating a power or a shift may make."""


def free_symbols(d: Dim) -> frozenset[str]:
    """The names of the symbols in d."""
    return d.symbols if isinstance(d, Expr) else _NO_SYMBOLS


def is_index_expression(d: Dim) -> bool:
    """Whether d has only sums, products, quotients, remainders, minima and maxima: what kernels
    compute of sizes and indices. Other functions are the host's."""
    if not isinstance(d, Expr):
        return True
    parts = (e for e in postorder(d) if isinstance(e, Function))
    return all(isinstance(e, FloorQuotient | CeilQuotient | Mod | Min | Max) for e in parts)


def substitute(d: Dim, mapping: Mapping[str, Dim]) -> Dim:
    """d with every symbol in mapping replaced at once; the values are not visited again."""
    if not isinstance(d, Expr) or d.symbols.isdisjoint(mapping):
        return d
    memo: dict[Expr, Dim] = {}
    if d.depth > DEEP:
        for part in postorder(d):
            _substitute(part, mapping, memo)
    return _substitute(d, mapping, memo)


def _substitute(d: Expr, mapping: Mapping[str, Dim], memo: dict[Expr, Dim]) -> Dim:
    if type(d) is Symbol:
        return mapping.get(d.name, d)
    substituted = memo.get(d)
    if substituted is not None:
        return substituted
    if d.symbols.isdisjoint(mapping):
        return d
    if type(d) is Sum:
        parts: list[Dim] = [d.constant]
        for monomial, coefficient in zip(d.monomials, d.coefficients, strict=True):
            value = _substitute(monomial, mapping, memo)
            parts.append(value if coefficient == 1 else value * coefficient)
        result = dim_sum(parts)
    elif type(d) is Product:
        result = dim_product([_substitute(f, mapping, memo) for f in d.factors])
    else:
        assert isinstance(d, Function)
        result = function(
            d.name,
            *[_substitute(a, mapping, memo) if isinstance(a, Expr) else a for a in d.arguments],
        )
    memo[d] = result
    return result


def replace(d: Dim, mapping: Mapping[Expr, Dim]) -> Dim:
    """d with every symbol and function in mapping replaced, outermost first; the values are not
    visited again."""
    if not isinstance(d, Expr):
        return d
    memo: dict[Expr, Dim] = {}
    if d.depth > DEEP:
        for part in postorder(d):
            _replace(part, mapping, memo)
    return _replace(d, mapping, memo)


def _replace(d: Dim, mapping: Mapping[Expr, Dim], memo: dict[Expr, Dim]) -> Dim:
    if not isinstance(d, Expr):
        return d
    replaced = mapping.get(d)
    if replaced is None:
        replaced = memo.get(d)
    if replaced is not None:
        return replaced
    result: Dim = d
    if isinstance(d, Sum):
        terms, constant = terms_of(d)
        result = dim_sum([constant, *[_replace(m, mapping, memo) * c for m, c in terms]])
    elif isinstance(d, Product):
        result = dim_product([_replace(f, mapping, memo) for f in d.factors])
    elif isinstance(d, Function):
        result = function(d.name, *[_replace(a, mapping, memo) for a in d.arguments])
    memo[d] = result
    return result


def fold(d: Dim, leaf: Callable[[int | str], T], node: Callable[..., T]) -> T:
    """d computed bottom-up, each shared part once.

    `leaf` takes an int or a symbol's name; `node(name, *operands)` takes "add" and "mul" with
    two operands, "floordiv", "mod", "ceildiv" with two, "min", "max" with two, and an opaque
    function's name with its own number.
    """
    memo: dict[Dim, T] = {}
    if isinstance(d, Expr) and d.depth > DEEP:
        for part in postorder(d):
            _fold(part, leaf, node, memo)
    return _fold(d, leaf, node, memo)


def _fold(d: Dim, leaf: Callable[[int | str], T], node: Callable[..., T], memo: dict[Dim, T]) -> T:
    if d in memo:
        return memo[d]
    if isinstance(d, Sum):
        parts = []
        for monomial, coefficient in zip(d.monomials, d.coefficients, strict=True):
            value = _fold(monomial, leaf, node, memo)
            parts.append(value if coefficient == 1 else node("mul", value, leaf(coefficient)))
        if d.constant:
            parts.append(leaf(d.constant))
        result = _chain("add", parts, node)
    elif isinstance(d, Product):
        result = _chain("mul", [_fold(f, leaf, node, memo) for f in d.factors], node)
    elif isinstance(d, Function):
        operands = [_fold(a, leaf, node, memo) for a in d.arguments]
        if d.name in ("min", "max"):
            result = _chain(d.name, operands, node)
        else:
            result = node(d.name, *operands)
    else:
        assert isinstance(d, (Symbol, int))
        result = leaf(d.name if isinstance(d, Symbol) else d)
    memo[d] = result
    return result


def _chain(name: str, operands: list[T], node: Callable[..., T]) -> T:
    result = operands[0]
    for operand in operands[1:]:
        result = node(name, result, operand)
    return result


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise SymbolError(f"pow({base}, {exponent}): a negative exponent is no integer")
    if abs(base) > 1 and exponent * base.bit_length() > MAX_POWER_BITS:
        raise SymbolError(f"pow({base}, {exponent}) is wider than {MAX_POWER_BITS} bits")
    return base**exponent


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": operator.add,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "ceildiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
    "pow": _power,
    "lshift": lambda a, b: a * _power(2, b),
    "rshift": operator.rshift,
    "bit_and": operator.and_,
    "bit_or": operator.or_,
    "bit_xor": operator.xor,
    "where": lambda c, a, b: a if c else b,
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "not": lambda a: int(not a),
    "and": lambda *a: int(all(a)),
    "or": lambda *a: int(any(a)),
    # Float values live only between functions, never in a sum or a product.
    "to_float": float,
    "int_true_div": operator.truediv,
    "float_true_div": operator.truediv,
    "float_add": lambda *a: sum(a[1:], a[0]),
    "float_mul": lambda *a: math.prod(a[1:], start=a[0]),
    "float_pow": lambda a, b: float(a) ** b,
    "float_min": min,
    "float_max": max,
    "trunc_to_int": math.trunc,
    "trunc_to_float": lambda a: float(math.trunc(a)),
    "floor_to_int": math.floor,
    "ceil_to_int": math.ceil,
    "round_to_int": round,
    "round_decimal": round,
    "sqrt": math.sqrt,
    "log2": math.log2,
}
"""What `evaluate` does for each name that `fold` reports; opaque names not here have no value."""


def evaluate(d: Dim, env: Mapping[str, int]) -> int:
    """d's value where env gives every free symbol; KeyError names a missing one.

    ZeroDivisionError where a divisor is 0; SymbolError for an opaque function without a value.
    """
    if not isinstance(d, Expr):
        return d
    if type(d) is Symbol:
        return env[d.name]
    if d.depth > SHALLOW:
        return evaluate_with(d, env, OPERATIONS)
    if type(d) is Sum:
        total = d.constant
        for monomial, coefficient in zip(d.monomials, d.coefficients, strict=True):
            total += coefficient * evaluate(monomial, env)
        return total
    if type(d) is Product:
        total = 1
        for factor in d.factors:
            total *= evaluate(factor, env)
        return total
    assert isinstance(d, Function)
    values = [evaluate(a, env) for a in d.arguments]
    operation = OPERATIONS.get(d.name)
    if operation is None:
        raise SymbolError(f"the opaque function {d.name} has no known value")
    return operation(*values)


def value_at(d: Dim, env: Mapping[str, int] | int) -> int | None:
    """d's value where env gives every symbol, or is what all are; None where it has none: a divisor
    is 0, or an opaque function has no value."""
    if not isinstance(d, Expr):
        return d
    try:
        if isinstance(env, int):
            env = dict.fromkeys(free_symbols(d), env)
        return int(evaluate(d, env))
    except (SymbolError, ZeroDivisionError):
        return None


def evaluate_with(
    d: Dim, env: Mapping[str, T], operations: Mapping[str, Callable[..., T]]
) -> T | int:
    """d over another kind of value (tensors, emitted code): env gives the symbols, operations
    the functions by `fold`'s names. Integer constants reach the operations as Python ints."""

    def node(name: str, *operands: T | int) -> T | int:
        operation = operations.get(name)
        if operation is None:
            raise SymbolError(f"no operation given for {name}")
        return operation(*operands)

    return fold(d, lambda x: env[x] if isinstance(x, str) else x, node)


def coefficient(d: Dim, name: str) -> Dim | None:
    """The coefficient of symbol name where d is affine in it (an axis's stride): 0 when it is
    absent, None when d is not affine in it."""
    if not isinstance(d, Expr) or name not in d.symbols:
        return 0
    if type(d) is Symbol:
        return 1
    key = (d, name)
    known = _COEFFICIENTS.get(key, d)
    if known is not d:
        # d is never its own coefficient: it holds the symbol, its coefficient doesn't.
        return known
    if len(_COEFFICIENTS) >= _MEMO_BOUND:
        _COEFFICIENTS.clear()
    result = _COEFFICIENTS[key] = _coefficient(d, name)
    return result


def _coefficient(d: Expr, name: str) -> Dim | None:
    terms: list[Dim] = []
    for monomial, scale in terms_of(d)[0]:
        if name not in monomial.symbols:
            continue
        rest = _without(monomial, name)
        if rest is None:
            return None
        terms.append(rest * scale)
    return dim_sum(terms)


def _without(monomial: Expr, name: str) -> Dim | None:
    """monomial / name, None when name is elsewhere in it than as one factor."""
    rest: list[Dim] = []
    seen = False
    for factor in factors_of(monomial):
        if name not in factor.symbols:
            rest.append(factor)
        elif type(factor) is Symbol and not seen:
            seen = True
        else:
            return None
    return dim_product(rest)


def affine_parts(d: Dim, names: Iterable[str]) -> tuple[dict[str, Dim], Dim] | None:
    """`({name: coefficient}, rest)` with d = sum(coefficient * name) + rest and no name in any
    coefficient or in rest; None when d is not affine in the names together."""
    chosen = frozenset(names)
    parts: dict[str, list[Dim]] = {name: [] for name in sorted(chosen)}
    terms, constant = terms_of(d)
    rest: dict[Expr, int] = {}
    for monomial, scale in terms:
        used = monomial.symbols & chosen
        if not used:
            rest[monomial] = scale
            continue
        if len(used) > 1:
            return None
        (name,) = used
        stride = 1 if type(monomial) is Symbol else _without(monomial, name)
        if stride is None:
            return None
        parts[name].append(stride * scale)
    return {name: dim_sum(terms) for name, terms in parts.items()}, from_terms(rest, constant)
