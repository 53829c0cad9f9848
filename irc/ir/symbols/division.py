"""Constructors of function nodes: division, remainder, minimum, maximum and opaque functions.

Each returns the normal form. Comments give the rewrites, which hold for all integers.
"""

from __future__ import annotations

from math import gcd

from irc.ir.hooks import says
from irc.ir.symbols.expr import (
    FUNCTION_CLASSES,
    NAME,
    Dim,
    Expr,
    FloorQuotient,
    Function,
    Key,
    Mod,
    Sum,
    SymbolError,
    checked,
    content,
    dim_sum,
    divide_exactly,
    from_terms,
    function_node,
    order_of,
    remember,
    terms_of,
)

_FLOORDIVS: dict[Key, Dim] = {}
_MODS: dict[Key, Dim] = {}


def _split(a: Expr, divisor: int) -> tuple[dict[Expr, int], int, dict[Expr, int], int]:
    """a = divisor * (outer + q) + (inner + k): every |inner coefficient| and k below divisor."""
    outer: dict[Expr, int] = {}
    inner: dict[Expr, int] = {}
    terms, constant = terms_of(a)
    for monomial, coefficient in terms:
        quotient = abs(coefficient) // divisor
        if coefficient < 0:
            quotient = -quotient
        if quotient:
            outer[monomial] = quotient
        if coefficient != quotient * divisor:
            inner[monomial] = coefficient - quotient * divisor
    quotient, rest = divmod(constant, divisor)
    return outer, quotient, inner, rest


def floordiv(a: Dim, b: Dim) -> Dim:
    """a // b rounded toward minus infinity; ZeroDivisionError when b is the constant 0."""
    a, b = checked(a), checked(b)
    if isinstance(b, int):
        if b == 0:
            raise ZeroDivisionError(f"floordiv({a}, 0)")
        if isinstance(a, int):
            return a // b
    key = (a, b)
    quotient = _FLOORDIVS.get(key)
    if quotient is None:
        if isinstance(a, Expr) and isinstance(b, int):
            quotient = _floordiv_by_constant(a, b)
        elif a == 0:
            quotient = 0
        else:
            common = gcd(content(a), content(b))
            if common > 1:
                quotient = floordiv(divide_exactly(a, common), divide_exactly(b, common))
            else:
                quotient = function_node("floordiv", (a, b))
        remember(_FLOORDIVS, key, quotient)
    return quotient


def _floordiv_by_constant(a: Expr, divisor: int) -> Dim:
    if divisor == 1:
        return a
    if divisor < 0:
        return floordiv(a * -1, -divisor)
    outer, quotient, inner, rest = _split(a, divisor)
    whole = from_terms(outer, quotient)
    if not inner:
        return whole
    common = gcd(divisor, *inner.values())
    if common > 1:
        # (g*x + k) // (g*d) -> (x + k//g) // d
        inner = {m: c // common for m, c in inner.items()}
        rest //= common
        divisor //= common
    return whole + _floordiv_atom(inner, rest, divisor)


def _floordiv_atom(inner: dict[Expr, int], rest: int, divisor: int) -> Dim:
    if len(inner) == 1:
        ((monomial, coefficient),) = inner.items()
        if coefficient == 1 and isinstance(monomial, (FloorQuotient, Mod)):
            x, by = monomial.arguments
            if type(by) is int and by > 0:
                if type(monomial) is FloorQuotient:
                    # (x//a + k) // b -> (x + a*k) // (a*b)
                    return floordiv(x + by * rest, by * divisor)
                if rest == 0 and by % divisor == 0:
                    # (x % (b*c)) // b -> (x//b) % c
                    return mod(floordiv(x, divisor), by // divisor)
    return function_node("floordiv", (from_terms(inner, rest), divisor))


def mod(a: Dim, b: Dim) -> Dim:
    """a % b with b's sign; ZeroDivisionError when b is the constant 0."""
    a, b = checked(a), checked(b)
    if isinstance(b, int):
        if b == 0:
            raise ZeroDivisionError(f"mod({a}, 0)")
        if isinstance(a, int):
            return a % b
    key = (a, b)
    remainder = _MODS.get(key)
    if remainder is None:
        if isinstance(a, Expr) and isinstance(b, int):
            remainder = _mod_by_constant(a, b)
        elif a == 0:
            remainder = 0
        else:
            common = gcd(content(a), content(b))
            if common > 1:
                # (g*a) % (g*b) -> g * (a % b)
                remainder = common * mod(divide_exactly(a, common), divide_exactly(b, common))
            else:
                remainder = function_node("mod", (a, b))
        remember(_MODS, key, remainder)
    return remainder


def _mod_by_constant(a: Expr, divisor: int) -> Dim:
    if divisor < 0:
        return -mod(a * -1, -divisor)
    _, _, inner, rest = _split(a, divisor)
    unwrapped = False
    plain: dict[Expr, int] = {}
    extra: list[Dim] = []
    for monomial, coefficient in inner.items():
        if type(monomial) is Mod:
            x, by = monomial.arguments
            if coefficient * content(by) % divisor == 0:
                # (x % (b*c) + y) % b -> (x + y) % b
                unwrapped = True
                extra.append(x * coefficient)
                continue
        plain[monomial] = coefficient
    if unwrapped:
        return mod(dim_sum([from_terms(plain, rest), *extra]), divisor)
    if not inner:
        return rest
    common = gcd(divisor, *inner.values())
    if common > 1:
        # (g*x + k) % (g*d) -> g * ((x + k//g) % d) + k % g
        reduced = from_terms({m: c // common for m, c in inner.items()}, rest // common)
        return mod(reduced, divisor // common) * common + rest % common
    return function_node("mod", (from_terms(inner, rest), divisor))


def ceildiv(a: Dim, b: Dim) -> Dim:
    """a / b rounded toward plus infinity; ZeroDivisionError when b is the constant 0.

    By a constant it is a floordiv, so `ceildiv(s0, 4)` is `(s0 + 3) // 4`.
    """
    a, b = checked(a), checked(b)
    if type(b) is int:
        return floordiv(a + (b - 1), b) if b > 0 else floordiv(-a + (-b - 1), -b)
    if a == 0:
        return 0
    common = gcd(content(a), content(b))
    if common > 1:
        return ceildiv(divide_exactly(a, common), divide_exactly(b, common))
    return function_node("ceildiv", (a, b))


def _extreme(name: str, dims: tuple[Dim, ...]) -> Dim:
    if not dims:
        raise TypeError(f"{name} of no arguments")
    pick = min if name == "min" else max
    flat: list[Dim] = []
    for d in dims:
        d = checked(d)
        if isinstance(d, Function) and d.name == name:
            flat.extend(d.arguments)
        else:
            flat.append(d)
    # Of arguments that differ by a constant one decides: min(x, x + 3) -> x.
    best: dict[Dim, int] = {}
    for d in flat:
        constant = d.constant if type(d) is Sum else 0 if isinstance(d, Expr) else d
        base = d - constant
        best[base] = pick(best[base], constant) if base in best else constant
    chosen = [base + constant for base, constant in best.items()]
    if len(chosen) == 1:
        return chosen[0]
    chosen.sort(key=lambda d: (type(d) is int, order_of(d)))
    return function_node(name, tuple(chosen))


def minimum(*dims: Dim) -> Dim:
    """The least of one or more dims."""
    return _extreme("min", dims)


def maximum(*dims: Dim) -> Dim:
    """The greatest of one or more dims."""
    return _extreme("max", dims)


def function(name: str, *arguments: Dim) -> Dim:
    """`name(arguments...)`: the normalised node for floordiv, mod, ceildiv, min and max, else
    an opaque function of which nothing is assumed."""
    if name in FUNCTION_CLASSES:
        if name in ("min", "max"):
            return _extreme(name, arguments)
        if len(arguments) != 2:
            raise SymbolError(f"{name} takes 2 arguments, not {len(arguments)}")
        return {"floordiv": floordiv, "mod": mod, "ceildiv": ceildiv}[name](*arguments)
    if not isinstance(name, str) or not NAME.match(name):
        raise SymbolError(f"not a function name: {name!r}")
    return function_node(name, tuple([checked(a) for a in arguments]))


# -- the operators of expressions


@says(Expr, method="__floordiv__")
def _floordiv_operator(self: Expr, other: Dim) -> Dim:
    return floordiv(self, other) if isinstance(other, (Expr, int)) else NotImplemented


@says(Expr, method="__rfloordiv__")
def _reverse_floordiv_operator(self: Expr, other: int) -> Dim:
    return floordiv(other, self) if isinstance(other, int) else NotImplemented


@says(Expr, method="__mod__")
def _mod_operator(self: Expr, other: Dim) -> Dim:
    return mod(self, other) if isinstance(other, (Expr, int)) else NotImplemented


@says(Expr, method="__rmod__")
def _reverse_mod_operator(self: Expr, other: int) -> Dim:
    return mod(other, self) if isinstance(other, int) else NotImplemented
