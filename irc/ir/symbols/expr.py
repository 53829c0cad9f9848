"""Interned integer expressions in normal form: the nodes and their constructors.

A `Dim` is a Python int or an `Expr`. Every Expr is immutable and interned, so two expressions
in the same normal form are the same object, and equality is identity. The normal form is an
expanded polynomial with integer coefficients over *atoms*: symbols and function nodes
(floordiv, mod, ceildiv, min, max and opaque functions).

* `Sum`: constant + coefficient * monomial + ..., monomials sorted by `Expr.order`. A scaled
  monomial such as `s0*4` is a Sum of one term.
* `Product`: a monomial of two or more atoms, sorted, repeated for a power.
* division and remainder are Python's (rounding toward minus infinity, the remainder has the
  divisor's sign).

Every rewrite done here holds for all integer values for which the expression is defined. What
needs a range (cancelling `s0` in `(i*s0 + j) // s0`) is done by `simplify`.

The intern tables live as long as the process; the memo tables of `+`, `*`, `//` and `%` are
emptied when they grow past a bound. All are plain dicts with atomic updates, safe for threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import gcd
from typing import TYPE_CHECKING, NoReturn, TypeAlias

MAX_DEPTH = 200
"""Deepest nesting of function nodes in one expression."""
MAX_TERMS = 4096
"""Most terms in one sum, and most factors in one product."""

DEEP = 16
"""A walk of an expression nested deeper than this visits its parts in `postorder` first, so
that recursion stays shallow wherever it is called from."""

_MEMO_BOUND = 1 << 16
_ORDER_BOUND = 400
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}\Z")
_DIGITS = re.compile(r"[0-9]+")
_EMPTY: frozenset[str] = frozenset()
_set = object.__setattr__
_new = object.__new__


class SymbolError(ValueError):
    """A symbolic expression that cannot be built: a bad name, too deep or too large."""


class Expr:
    """A non-constant symbolic integer.

    `order` is a string that sorts nodes the same way in every process (read it by `order_of`:
    a sum's is made on demand, and a long one is shortened by a digest); `symbols` the names of
    the free symbols; `depth` the nesting of function nodes; `polynomial` whether there are none.
    """

    __slots__ = ("_text", "depth", "order", "polynomial", "symbols")

    order: str
    symbols: frozenset[str]
    depth: int
    polynomial: bool
    _text: str | None

    def __new__(cls, *args: object, **kwargs: object) -> Expr:
        raise TypeError(f"{cls.__name__} is interned: use symbol(), function() or arithmetic")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"symbolic expressions are immutable: cannot set {name!r}")

    def __add__(self, other: Dim) -> Dim:
        if type(other) is not int and not isinstance(other, (Expr, int)):
            return NotImplemented
        key = (self, other)
        total = _ADDS.get(key)
        if total is None:
            total = remember(_ADDS, key, _add(self, other))
        return total

    __radd__ = __add__

    def __mul__(self, other: Dim) -> Dim:
        if type(other) is not int and not isinstance(other, (Expr, int)):
            return NotImplemented
        key = (self, other)
        product = _PRODUCT_MEMO.get(key)
        if product is None:
            product = _multiply(self, other) if isinstance(other, Expr) else _scale(self, other)
            remember(_PRODUCT_MEMO, key, product)
        return product

    __rmul__ = __mul__

    def __neg__(self) -> Dim:
        return self * -1

    def __pos__(self) -> Dim:
        return self

    def __sub__(self, other: Dim) -> Dim:
        if not isinstance(other, (Expr, int)):
            return NotImplemented
        return 0 if self is other else self + other * -1

    def __rsub__(self, other: int) -> Dim:
        if not isinstance(other, int):
            return NotImplemented
        return self * -1 + other

    if TYPE_CHECKING:
        # From `division`, which makes nodes of functions; `__str__` and `__reduce__` from `text`.
        def __floordiv__(self, other: Dim) -> Dim: ...
        def __rfloordiv__(self, other: int) -> Dim: ...
        def __mod__(self, other: Dim) -> Dim: ...
        def __rmod__(self, other: int) -> Dim: ...

    def remember_text(self, text: str) -> None:
        """Caches the text that `format_dim` found."""
        _set(self, "_text", text)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: object) -> Expr:
        return self


class Symbol(Expr):
    """A named unknown integer: a size, or an axis of an iteration space."""

    __slots__ = ("name",)
    name: str


class Product(Expr):
    """A product of two or more atoms, sorted by `order`."""

    __slots__ = ("factors",)
    factors: tuple[Expr, ...]


class Sum(Expr):
    """`constant + sum(coefficients[k] * monomials[k])`, no coefficient zero."""

    __slots__ = ("coefficients", "constant", "monomials")
    monomials: tuple[Expr, ...]
    coefficients: tuple[int, ...]
    constant: int


class Function(Expr):
    """A function node; of an opaque one only the name and the arguments are known."""

    __slots__ = ("arguments", "name")
    name: str
    arguments: tuple[Dim, ...]


class FloorQuotient(Function):
    """`floordiv(a, b)`; a ceiling division by a positive constant is one of these too."""

    __slots__ = ()


class Mod(Function):
    """`mod(a, b)`, with the sign of b."""

    __slots__ = ()


class CeilQuotient(Function):
    """`ceildiv(a, b)` by a divisor that is not constant."""

    __slots__ = ()


class Min(Function):
    """`min(a, b, ...)`, arguments sorted, a constant last."""

    __slots__ = ()


class Max(Function):
    """`max(a, b, ...)`, arguments sorted, a constant last."""

    __slots__ = ()


Dim: TypeAlias = int | Expr
Key: TypeAlias = tuple[Dim, Dim]

_SYMBOLS: dict[str, Symbol] = {}
_PRODUCTS: dict[tuple[Expr, ...], Product] = {}
_SUMS: dict[tuple[int, tuple[int, ...], tuple[Expr, ...]], Sum] = {}
_FUNCTIONS: dict[tuple[str, tuple[Dim, ...]], Function] = {}
_ADDS: dict[Key, Dim] = {}
_PRODUCT_MEMO: dict[Key, Dim] = {}

FUNCTION_CLASSES: dict[str, type[Function]] = {
    "floordiv": FloorQuotient,
    "mod": Mod,
    "ceildiv": CeilQuotient,
    "min": Min,
    "max": Max,
}


def remember(memo: dict[Key, Dim], key: Key, value: Dim) -> Dim:
    if len(memo) >= _MEMO_BOUND:
        memo.clear()
    memo[key] = value
    return value


def _fill(node: Expr, order: str, parts: Iterable[Dim], depth: int, polynomial: bool) -> None:
    """Sets what every node caches."""
    symbols = _EMPTY
    for part in parts:
        if isinstance(part, Expr):
            symbols = symbols | part.symbols if symbols else part.symbols
            depth = max(depth, part.depth)
            polynomial = polynomial and part.polynomial
    _set(node, "order", _shortened(order))
    _set(node, "symbols", symbols)
    _set(node, "depth", depth)
    _set(node, "polynomial", polynomial)
    _set(node, "_text", None)


def order_of(d: Dim) -> str:
    """The string by which arguments and terms are sorted; equal only for the same Dim."""
    if not isinstance(d, Expr):
        return str(d)
    if not d.order and isinstance(d, Sum):
        scaled = zip(d.monomials, d.coefficients, strict=True)
        order = "+".join([f"{m.order}*{c}" for m, c in scaled])
        _set(d, "order", _shortened(f"{order}+{d.constant}"))
    return d.order


def _shortened(order: str) -> str:
    if len(order) <= _ORDER_BOUND:
        return order
    from hashlib import blake2b  # loads OpenSSL, which few programs need here

    return order[:100] + "\x02" + blake2b(order.encode(), digest_size=20).hexdigest()


def symbol(name: str) -> Symbol:
    """The symbol of that name, an ASCII identifier of at most 256 characters."""
    node = _SYMBOLS.get(name)
    if node is None:
        if not isinstance(name, str) or not NAME.match(name):
            raise SymbolError(f"not a symbol name: {name!r}")
        node = _new(Symbol)
        # A run of digits sorts by its length first, so that s2 comes before s10.
        order = _DIGITS.sub(lambda m: f"\x01{len(m[0]):03d}{m[0]}", name)
        _fill(node, order, (), 0, True)
        _set(node, "symbols", frozenset((name,)))
        _set(node, "name", name)
        node = _SYMBOLS.setdefault(name, node)
    return node


def _product_node(factors: tuple[Expr, ...]) -> Expr:
    """The monomial of sorted atoms."""
    if len(factors) == 1:
        return factors[0]
    node = _PRODUCTS.get(factors)
    if node is None:
        if len(factors) > MAX_TERMS:
            raise SymbolError(f"a product of {len(factors)} factors (the bound is {MAX_TERMS})")
        node = _new(Product)
        _fill(node, "*".join([f.order for f in factors]), factors, 0, True)
        _set(node, "factors", factors)
        node = _PRODUCTS.setdefault(factors, node)
    return node


def _sum_node(constant: int, coefficients: tuple[int, ...], monomials: tuple[Expr, ...]) -> Sum:
    key = (constant, coefficients, monomials)
    node = _SUMS.get(key)
    if node is None:
        if len(monomials) > MAX_TERMS:
            raise SymbolError(f"a sum of {len(monomials)} terms (the bound is {MAX_TERMS})")
        node = _new(Sum)
        # Only a sum that becomes an argument needs its order: `order_of` makes it then.
        _fill(node, "", monomials, 0, True)
        _set(node, "constant", constant)
        _set(node, "coefficients", coefficients)
        _set(node, "monomials", monomials)
        node = _SUMS.setdefault(key, node)
    return node


def function_node(name: str, arguments: tuple[Dim, ...]) -> Function:
    key = (name, arguments)
    node = _FUNCTIONS.get(key)
    if node is None:
        node = _new(FUNCTION_CLASSES.get(name, Function))
        order = f"{name}({','.join([order_of(a) for a in arguments])})"
        deepest = max((a.depth for a in arguments if isinstance(a, Expr)), default=0) + 1
        if deepest > MAX_DEPTH:
            raise SymbolError(f"functions nested {deepest} deep (the bound is {MAX_DEPTH})")
        _fill(node, order, arguments, deepest, False)
        _set(node, "name", name)
        _set(node, "arguments", arguments)
        node = _FUNCTIONS.setdefault(key, node)
    return node


def terms_of(d: Dim) -> tuple[tuple[tuple[Expr, int], ...], int]:
    """`(((monomial, coefficient), ...), constant)` whose sum is d."""
    if type(d) is Sum:
        return tuple(zip(d.monomials, d.coefficients, strict=True)), d.constant
    if isinstance(d, Expr):
        return ((d, 1),), 0
    return (), d


def factors_of(monomial: Expr) -> tuple[Expr, ...]:
    """The atoms of a monomial (an atom or a Product)."""
    return monomial.factors if type(monomial) is Product else (monomial,)


def parts_of(d: Expr) -> tuple[Dim, ...]:
    """The nodes directly under d; a sum's coefficients and constant left out."""
    if isinstance(d, Sum):
        return d.monomials
    if isinstance(d, Product):
        return d.factors
    return d.arguments if isinstance(d, Function) else ()


def postorder(d: Expr) -> list[Expr]:
    """Every node of d once, each after its parts, d last."""
    seen: set[Expr] = set()
    order: list[Expr] = []
    stack: list[tuple[Expr, bool]] = [(d, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((p, False) for p in parts_of(node) if isinstance(p, Expr))
    return order


def _term_order(item: tuple[Expr, int]) -> str:
    return item[0].order


def from_terms(terms: dict[Expr, int], constant: int = 0) -> Dim:
    """The Dim of a table monomial -> coefficient (zeros allowed) plus a constant."""
    items = [item for item in terms.items() if item[1]]
    if not items:
        return constant
    if len(items) == 1:
        monomial, coefficient = items[0]
        if coefficient == 1 and constant == 0:
            return monomial
        return _sum_node(constant, (coefficient,), (monomial,))
    items.sort(key=_term_order)
    return _sum_node(constant, tuple([c for _, c in items]), tuple([m for m, _ in items]))


def _add(a: Expr, b: Dim) -> Dim:
    if not isinstance(b, Expr):
        if type(a) is not Sum:
            return _sum_node(int(b), (1,), (a,)) if b else a
        constant = a.constant + b
        if constant == 0 and a.coefficients == (1,):
            return a.monomials[0]
        return _sum_node(constant, a.coefficients, a.monomials)
    if type(a) is not Sum:
        if type(b) is Sum:
            a, b = b, a
        elif a is b:
            return _sum_node(0, (2,), (a,))
        elif a.order < b.order:
            return _sum_node(0, (1, 1), (a, b))
        else:
            return _sum_node(0, (1, 1), (b, a))
    terms = dict(zip(a.monomials, a.coefficients, strict=True))
    if type(b) is not Sum:
        terms[b] = terms.get(b, 0) + 1
        return from_terms(terms, a.constant)
    for monomial, coefficient in zip(b.monomials, b.coefficients, strict=True):
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return from_terms(terms, a.constant + b.constant)


def _scale(a: Expr, factor: int) -> Dim:
    if factor == 1:
        return a
    if factor == 0:
        return 0
    if type(a) is not Sum:
        return _sum_node(0, (int(factor),), (a,))
    constant = a.constant * factor
    coefficients = tuple([c * factor for c in a.coefficients])
    if constant == 0 and coefficients == (1,):
        return a.monomials[0]
    return _sum_node(constant, coefficients, a.monomials)


def _monomial_product(a: Expr, b: Expr) -> Expr:
    factors = factors_of(a) + factors_of(b)
    return _product_node(tuple(sorted(factors, key=order_of)))


def _multiply(a: Expr, b: Expr) -> Dim:
    if type(a) is not Sum and type(b) is not Sum:
        return _monomial_product(a, b)
    left, left_constant = terms_of(a)
    right, right_constant = terms_of(b)
    if len(left) * len(right) > MAX_TERMS * 16:
        raise SymbolError(f"a product of sums of {len(left)} and {len(right)} terms is too large")
    terms: dict[Expr, int] = {}
    for m, c in left:
        for n, d in right:
            product = _monomial_product(m, n)
            terms[product] = terms.get(product, 0) + c * d
        if right_constant:
            terms[m] = terms.get(m, 0) + c * right_constant
    if left_constant:
        for n, d in right:
            terms[n] = terms.get(n, 0) + d * left_constant
    return from_terms(terms, left_constant * right_constant)


def dim_sum(dims: Iterable[Dim]) -> Dim:
    """The sum of any number of dims; 0 of none."""
    terms: dict[Expr, int] = {}
    constant = 0
    for d in dims:
        if type(d) is Sum:
            for monomial, coefficient in zip(d.monomials, d.coefficients, strict=True):
                terms[monomial] = terms.get(monomial, 0) + coefficient
            constant += d.constant
        elif isinstance(d, Expr):
            terms[d] = terms.get(d, 0) + 1
        else:
            constant += d
    return from_terms(terms, constant) if terms else constant


def dim_product(dims: Iterable[Dim]) -> Dim:
    """The product of any number of dims (the element count of a shape); 1 of none."""
    scale = 1
    atoms: list[Expr] = []
    sums: list[Expr] = []
    for d in dims:
        if type(d) is Sum:
            if d.constant == 0 and len(d.monomials) == 1:
                scale *= d.coefficients[0]
                atoms.extend(factors_of(d.monomials[0]))
            else:
                sums.append(d)
        elif isinstance(d, Expr):
            atoms.extend(factors_of(d))
        else:
            scale *= d
    if scale == 0:
        return 0
    result: Dim = scale
    if atoms:
        result = _product_node(tuple(sorted(atoms, key=order_of))) * scale
    for d in sums:
        result = d * result
    return result


def content(d: Dim) -> int:
    """The greatest common divisor of all coefficients and the constant; 0 of 0."""
    if type(d) is Sum:
        return gcd(d.constant, *d.coefficients)
    return 1 if isinstance(d, Expr) else abs(d)


def divide_exactly(d: Dim, divisor: int) -> Dim:
    """d / divisor, for a divisor of `content(d)`."""
    terms, constant = terms_of(d)
    return from_terms({m: c // divisor for m, c in terms}, constant // divisor)


def checked(d: Dim) -> Dim:
    """d with a bool made an int; TypeError when it is no Dim."""
    if type(d) is int or isinstance(d, Expr):
        return d
    if isinstance(d, int):
        return int(d)
    raise TypeError(f"expected an int or a symbolic expression, got {type(d).__name__}")


def statically_known_equal(a: Dim, b: Dim) -> bool:
    """Whether a and b have one normal form. False means unknown, not different."""
    return a is b or (type(a) is int and type(b) is int and a == b)
