"""Simplification under ranges and extents: the index arithmetic of reshapes vanishes here.

With every axis in [0, extent) and divisors positive (see `ranges`):

    (q*b + r) // b -> q + r // b                 (q*b + r) % b -> r % b
    r // b -> 0,  r % b -> r                     where 0 <= r < b
    (g*a + r) // (g*b) -> a // b                 where 0 <= r < g
    (g*a + r) % (g*b) -> g*(a % b) + r           where 0 <= r < g
    (x // a) // b -> x // (a*b)                  (x % (a*b)) // b -> (x // b) % a
    (x // b)*b + x % b -> x                      ((x // a) % b)*a + x % a -> x % (a*b)
    min(a, b) -> a                               where a <= b
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gcd

from irc.ir.symbols.division import ceildiv, floordiv, function, maximum, minimum, mod
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
    dim_product,
    dim_sum,
    factors_of,
    from_terms,
    postorder,
    terms_of,
)
from irc.ir.symbols.polynomial import divide
from irc.ir.symbols.ranges import _NO_EXTENTS, _NO_RANGES, Facts, Range, symbolic_divisors

_ROUNDS = 8


def simplify(
    d: Dim,
    ranges: Mapping[str, Range] = _NO_RANGES,
    extents: Mapping[str, Dim] = _NO_EXTENTS,
) -> Dim:
    """A simpler Dim equal to d wherever each symbol is in its range, each axis is in
    [0, extent), and d is defined."""
    if not isinstance(d, Expr) or d.polynomial:
        return d
    facts = Facts(ranges, extents, symbolic_divisors(d))
    for _ in range(_ROUNDS):
        before = d
        simplifier = _Simplifier(facts)
        if d.depth > DEEP:
            for part in postorder(d):
                facts.of(part)
                simplifier.visit(part)
        d = simplifier.visit(d)
        if d is before or not isinstance(d, Expr) or d.polynomial:
            break
    return d


def _common(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> list[Expr]:
    rest = list(b)
    shared = []
    for factor in a:
        if factor in rest:
            rest.remove(factor)
            shared.append(factor)
    return shared


class _Simplifier:
    """One bottom-up round over an expression."""

    __slots__ = ("facts", "memo")

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.memo: dict[Expr, Dim] = {}

    def visit(self, d: Dim) -> Dim:
        if not isinstance(d, Expr) or d.polynomial:
            return d
        simplified = self.memo.get(d)
        if simplified is None:
            simplified = self.memo[d] = self._rebuild(d)
        return simplified

    def _rebuild(self, d: Expr) -> Dim:
        if isinstance(d, Sum):
            scaled = zip(d.monomials, d.coefficients, strict=True)
            return self._recombine(dim_sum([d.constant, *[self.visit(m) * c for m, c in scaled]]))
        if isinstance(d, Product):
            return dim_product([self.visit(f) for f in d.factors])
        assert isinstance(d, Function)
        arguments = [self.visit(a) for a in d.arguments]
        if isinstance(d, FloorQuotient):
            return self.floordiv(arguments[0], arguments[1])
        if isinstance(d, Mod):
            return self.mod(arguments[0], arguments[1])
        if isinstance(d, CeilQuotient):
            return self._ceildiv(arguments[0], arguments[1])
        if isinstance(d, (Min, Max)):
            return self._extreme(arguments, isinstance(d, Max))
        return function(d.name, *arguments)

    def _split(self, a: Dim, b: Dim) -> tuple[Dim, Dim]:
        """(q, r) with a = q*b + r; q is 0 unless that made r // b simpler."""
        quotient, rest = divide(a, b)
        terms, constant = terms_of(b)
        if len(terms) + (constant != 0) == 1 or rest == 0 or self.facts.below(rest, b):
            return quotient, rest
        return 0, a

    def _constant_quotient(self, a: Dim, b: Dim) -> int | None:
        """a // b where a's range lies within one multiple of b."""
        if self.facts.below(a, b):
            return 0
        if isinstance(b, int) and b > 0:
            known = self.facts.of(a)
            if known.lo is not None and known.hi is not None and known.lo // b == known.hi // b:
                return known.lo // b
        elif self.facts.below(a + b, b):
            return -1
        return None

    def floordiv(self, a: Dim, b: Dim) -> Dim:
        plain = floordiv(a, b)
        if not isinstance(plain, Expr) or plain.polynomial or not self.facts.positive_divisor(b):
            return plain
        quotient, rest = self._split(a, b)
        if rest == 0:
            return quotient
        whole = self._constant_quotient(rest, b)
        if whole is not None:
            return quotient + whole
        coarse = self._coarsen(rest, b)
        if coarse is not None:
            _, upper, divisor, _ = coarse
            return quotient + self.floordiv(upper, divisor)
        if isinstance(rest, FloorQuotient) and self.facts.positive_divisor(rest.arguments[1]):
            return quotient + self.floordiv(rest.arguments[0], rest.arguments[1] * b)
        if isinstance(rest, Mod):
            parts, left = divide(rest.arguments[1], b)
            if left == 0 and self.facts.positive_divisor(parts):
                return quotient + self.mod(self.floordiv(rest.arguments[0], b), parts)
        return quotient + floordiv(rest, b)

    def mod(self, a: Dim, b: Dim) -> Dim:
        plain = mod(a, b)
        if not isinstance(plain, Expr) or plain.polynomial or not self.facts.positive_divisor(b):
            return plain
        _, rest = self._split(a, b)
        if rest == 0:
            return 0
        whole = self._constant_quotient(rest, b)
        if whole is not None:
            return rest - b * whole
        coarse = self._coarsen(rest, b)
        if coarse is not None:
            grain, upper, divisor, lower = coarse
            return self.mod(upper, divisor) * grain + lower
        if isinstance(rest, Mod) and divide(rest.arguments[1], b)[1] == 0:
            return self.mod(rest.arguments[0], b)
        return mod(rest, b)

    def _coarsen(self, a: Dim, b: Dim) -> tuple[Dim, Dim, Dim, Dim] | None:
        """(g, x, c, r) with a = g*x + r, b = g*c, 0 <= r < g and g other than 1."""
        divisor_terms, divisor_constant = terms_of(b)
        if len(divisor_terms) + (divisor_constant != 0) != 1:
            return None
        below, scale = divisor_terms[0] if divisor_terms else (None, divisor_constant)
        divisor = factors_of(below) if below is not None else ()
        terms, constant = terms_of(a)
        tried: dict[Dim, None] = {}
        for monomial, coefficient in terms:
            grain = dim_product(_common(factors_of(monomial), divisor)) * gcd(coefficient, scale)
            if grain != 1 and grain is not b:
                tried[grain] = None
        for grain in tried:
            upper: list[Dim] = []
            lower: dict[Expr, int] = {}
            for monomial, coefficient in terms:
                term = from_terms({monomial: coefficient})
                quotient, rest = divide(term, grain)
                if rest == 0:
                    upper.append(quotient)
                else:
                    lower[monomial] = coefficient
            whole, left = divmod(constant, grain) if isinstance(grain, int) else (0, constant)
            rest = from_terms(lower, left)
            if self.facts.below(rest, grain):
                return grain, dim_sum([whole, *upper]), divide(b, grain)[0], rest
        return None

    def _ceildiv(self, a: Dim, b: Dim) -> Dim:
        plain = ceildiv(a, b)
        if not isinstance(plain, CeilQuotient) or not self.facts.positive_divisor(b):
            return plain
        # ceildiv(a, b) = (a - 1) // b + 1 where b >= 1.
        quotient, rest = self._split(a, b)
        if rest == 0:
            return quotient
        whole = self._constant_quotient(rest - 1, b)
        return quotient + (ceildiv(rest, b) if whole is None else whole + 1)

    def _extreme(self, arguments: list[Dim], greatest: bool) -> Dim:
        kept: list[Dim] = []
        for candidate in dict.fromkeys(arguments):
            if any(self._covers(other, candidate, greatest) for other in kept):
                continue
            kept = [k for k in kept if not self._covers(candidate, k, greatest)]
            kept.append(candidate)
        return maximum(*kept) if greatest else minimum(*kept)

    def _covers(self, a: Dim, b: Dim, greatest: bool) -> bool:
        return self.facts.nonnegative(a - b if greatest else b - a)

    def _recombine(self, d: Dim) -> Dim:
        """Joins remainders with the quotients that complete them, while that helps."""
        improved = True
        while improved and isinstance(d, Sum):
            improved = False
            for candidate in self._joined(d):
                if _weight(candidate) < _weight(d):
                    d, improved = candidate, True
                    break
        return d

    def _joined(self, d: Sum) -> Iterator[Dim]:
        for monomial, scale in terms_of(d)[0]:
            for factor in factors_of(monomial):
                if not isinstance(factor, Mod):
                    continue
                x, b = factor.arguments
                outer = list(factors_of(monomial))
                outer.remove(factor)
                times = dim_product(outer) * scale
                quotient = self.floordiv(x, b)
                # (x // b)*b + x % b -> x
                yield d + times * (x - quotient * b - factor)
                # ((x // b) % c)*b + x % b -> x % (b*c)
                for other in _atoms_of(d):
                    if isinstance(other, Mod) and other.arguments[0] is quotient:
                        c = other.arguments[1]
                        if self.facts.positive_divisor(b) and self.facts.positive_divisor(c):
                            yield d + times * (self.mod(x, b * c) - other * b - factor)


def _atoms_of(d: Sum) -> list[Expr]:
    return list(dict.fromkeys(f for m in d.monomials for f in factors_of(m)))


def _weight(d: Dim) -> tuple[int, int]:
    """Terms that hold a function node, then all terms: recombining must lower it."""
    terms, constant = terms_of(d)
    return sum(not m.polynomial for m, _ in terms), len(terms) + (constant != 0)
