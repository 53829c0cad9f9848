"""Ranges of expressions and the facts that follow from them.

A symbol without a range is a size: at least 0. One that may be negative (an unbacked value)
needs an explicit range. A space with no points is never evaluated, so an axis with an extent
lies in [0, extent - 1] and its extent is at least 1; a divisor that is a size or a product of
sizes is at least 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Any

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
    dim_product,
    dim_sum,
    factors_of,
    from_terms,
    postorder,
    symbol,
    terms_of,
)
from irc.ir.symbols.polynomial import divide


class Range:
    """The closed interval [lo, hi]; None is unbounded. Immutable."""

    # Written out: importing dataclasses would be a fifth of irc-opt's start.
    __slots__ = ("lo", "hi")
    lo: int | None
    hi: int | None

    def __init__(self, lo: int | None = None, hi: int | None = None) -> None:
        if lo is not None and hi is not None and lo > hi:
            raise ValueError(f"empty range [{lo}, {hi}]")
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a range is immutable: {name} can't be set")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Range):
            return NotImplemented
        return self.lo == other.lo and self.hi == other.hi

    def __hash__(self) -> int:
        return hash((self.lo, self.hi))

    def __repr__(self) -> str:
        return f"Range(lo={self.lo!r}, hi={self.hi!r})"

    def __reduce__(self) -> Any:
        return Range, (self.lo, self.hi)

    def __contains__(self, value: int) -> bool:
        return (self.lo is None or self.lo <= value) and (self.hi is None or value <= self.hi)


UNBOUNDED = Range()
SIZE = Range(0, None)
_NO_RANGES: Mapping[str, Range] = {}
_NO_EXTENTS: Mapping[str, Dim] = {}
_TRUTHS = frozenset(("eq", "ne", "lt", "le", "not", "and", "or"))
_PROOF_DEPTH = 4


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _add(a: Range, b: Range) -> Range:
    return Range(_plus(a.lo, b.lo), _plus(a.hi, b.hi))


def _scale(a: Range, c: int) -> Range:
    lo = None if a.lo is None else a.lo * c
    hi = None if a.hi is None else a.hi * c
    return Range(lo, hi) if c > 0 else Range(hi, lo) if c < 0 else Range(0, 0)


def _multiply(a: Range, b: Range) -> Range:
    if a == Range(0, 0) or b == Range(0, 0):
        return Range(0, 0)
    if a.lo is not None and a.hi is not None and b.lo is not None and b.hi is not None:
        corners = (a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi)
        return Range(min(corners), max(corners))
    if a.hi is not None and a.hi <= 0:
        return _scale(_multiply(_scale(a, -1), b), -1)
    if b.hi is not None and b.hi <= 0:
        return _scale(_multiply(a, _scale(b, -1)), -1)
    if a.lo is None or a.lo < 0:
        a, b = b, a
    if a.lo is None or a.lo < 0:
        return UNBOUNDED
    # a >= 0: each end of the product takes the end of a that pushes it outward.
    if b.lo is None:
        lo = None
    else:
        lo = b.lo * a.lo if b.lo >= 0 else None if a.hi is None else b.lo * a.hi
    if b.hi is None:
        hi = None
    else:
        hi = b.hi * a.lo if b.hi < 0 else None if a.hi is None else b.hi * a.hi
    return Range(lo, hi)


def _floor_divide(a: Range, b: Range) -> Range:
    """Of any a in [a] by any b in [b], b.lo >= 1."""
    assert b.lo is not None and b.lo >= 1
    if a.lo is None:
        lo = None
    elif a.lo < 0:
        lo = a.lo // b.lo
    else:
        lo = 0 if b.hi is None else a.lo // b.hi
    if a.hi is None:
        hi = None
    elif a.hi >= 0:
        hi = a.hi // b.lo
    else:
        hi = -1 if b.hi is None else a.hi // b.hi
    return Range(lo, hi)


def _least_of(parts: list[Range]) -> Range:
    lows = [p.lo for p in parts if p.lo is not None]
    highs = [p.hi for p in parts if p.hi is not None]
    return Range(min(lows) if len(lows) == len(parts) else None, min(highs) if highs else None)


def symbolic_divisors(d: Expr) -> set[str]:
    """The symbols that stand as a divisor, or as a factor of one, anywhere in d."""
    divisors: set[str] = set()
    for node in postorder(d):
        if isinstance(node, (FloorQuotient, Mod, CeilQuotient)):
            divisors.update(_sizes_of_product(node.arguments[1]))
    return divisors


def _sizes_of_product(d: Dim) -> list[str]:
    """The symbols of a product of symbols and a number, none of anything else."""
    terms, constant = terms_of(d)
    if len(terms) != 1 or constant:
        return []
    return [f.name for f in factors_of(terms[0][0]) if isinstance(f, Symbol)]


class Facts:
    """What is known of the symbols while one expression is looked at; memoises ranges."""

    __slots__ = ("_memo", "_proving", "_symbols", "extents", "ranges")

    def __init__(
        self,
        ranges: Mapping[str, Range] = _NO_RANGES,
        extents: Mapping[str, Dim] = _NO_EXTENTS,
        divisors: set[str] | None = None,
    ) -> None:
        self.ranges = ranges
        self.extents = extents
        self._memo: dict[Dim, Range] = {}
        self._symbols: dict[str, Range] = {}
        self._proving: dict[Dim, bool] = {}
        positive = set(divisors or ())
        for extent in extents.values():
            positive.update(_sizes_of_product(extent))
        for name in positive:
            known = ranges.get(name, SIZE)
            if known.lo == 0 and known.hi != 0:
                self._symbols[name] = Range(1, known.hi)

    def of_symbol(self, name: str) -> Range:
        known = self._symbols.get(name)
        if known is None:
            known = self.ranges.get(name, SIZE)
            if name in self.extents:
                last = _plus(self.of(self.extents[name]).hi, -1)
                lo = 0 if known.lo is None else max(known.lo, 0)
                highs = [h for h in (known.hi, last) if h is not None]
                # An axis of extent 0 has no points: any range holds for it.
                known = Range(lo, max(lo, min(highs)) if highs else None)
            self._symbols[name] = known
        return known

    def of(self, d: Dim) -> Range:
        """A range that holds every value of d."""
        if not isinstance(d, Expr):
            return Range(d, d)
        if type(d) is Symbol:
            return self.of_symbol(d.name)
        known = self._memo.get(d)
        if known is None:
            if d.depth > DEEP:
                for part in postorder(d):
                    if part not in self._memo:
                        self._memo[part] = self._compute(part)
            known = self._memo[d] = self._compute(d)
        return known

    def _compute(self, d: Expr) -> Range:
        if isinstance(d, Symbol):
            return self.of_symbol(d.name)
        if isinstance(d, Sum):
            total = Range(d.constant, d.constant)
            for monomial, scale in zip(d.monomials, d.coefficients, strict=True):
                total = _add(total, _scale(self.of(monomial), scale))
            return total
        if isinstance(d, Product):
            return self._product(d)
        if isinstance(d, (FloorQuotient, Mod, CeilQuotient)):
            return self._division(d, *d.arguments)
        assert isinstance(d, Function)
        if isinstance(d, (Min, Max)):
            parts = [self.of(a) for a in d.arguments]
            if isinstance(d, Min):
                return _least_of(parts)
            return _scale(_least_of([_scale(p, -1) for p in parts]), -1)
        if d.name == "where" and len(d.arguments) == 3:
            yes, no = self.of(d.arguments[1]), self.of(d.arguments[2])
            lo = None if yes.lo is None or no.lo is None else min(yes.lo, no.lo)
            return Range(lo, None if yes.hi is None or no.hi is None else max(yes.hi, no.hi))
        return Range(0, 1) if d.name in _TRUTHS else UNBOUNDED

    def _product(self, d: Product) -> Range:
        total = Range(1, 1)
        factors = d.factors
        for factor in dict.fromkeys(factors):
            one = self.of(factor)
            power = Range(1, 1)
            for _ in range(factors.count(factor)):
                power = _multiply(power, one)
            if factors.count(factor) % 2 == 0 and (power.lo is None or power.lo < 0):
                power = Range(0, power.hi)
            total = _multiply(total, power)
        return total

    def _division(self, d: Function, a: Dim, b: Dim) -> Range:
        above, below = self.of(a), self.of(b)
        if below.lo is None or below.lo < 0 or below.hi == 0:
            return UNBOUNDED
        least = max(1, below.lo)
        below = Range(least, below.hi)
        if isinstance(d, FloorQuotient):
            return _floor_divide(above, below)
        if isinstance(d, CeilQuotient):
            return _scale(_floor_divide(_scale(above, -1), below), -1)
        top = None if below.hi is None else below.hi - 1
        if above.lo is not None and above.lo >= 0:
            if above.hi is not None and above.hi < least:
                return above
            highs = [h for h in (top, above.hi) if h is not None]
            return Range(0, min(highs) if highs else None)
        return Range(0, top)

    def nonnegative(self, d: Dim) -> bool:
        """Whether d >= 0 is proven."""
        return self._proves(d, _PROOF_DEPTH)

    def positive(self, d: Dim) -> bool:
        return self._proves(d - 1, _PROOF_DEPTH)

    def below(self, d: Dim, bound: Dim) -> bool:
        """Whether 0 <= d < bound is proven."""
        return self.nonnegative(d) and self.nonnegative(bound - d - 1)

    def _proves(self, d: Dim, depth: int) -> bool:
        lo = self.of(d).lo
        if lo is not None and lo >= 0:
            return True
        if not isinstance(d, Expr) or depth == 0:
            return False
        # A failure found with less depth left may not be remembered for more.
        if depth == _PROOF_DEPTH and d in self._proving:
            return self._proving[d]
        result = self._proves_symbolically(d, depth)
        if depth == _PROOF_DEPTH:
            self._proving[d] = result
        return result

    def _proves_symbolically(self, d: Dim, depth: int) -> bool:
        """Puts each atom that has a symbolic bound at its worse end, then compares.

        d = slope*atom + rest at every point, so where slope has one sign, d is at least its
        value with the atom at that end, whatever else depends on the atom.
        """
        for _ in range(2):
            before = d
            for atom in _atoms(d):
                upper = self._symbolic_upper(atom)
                if upper is None:
                    continue
                slope, rest = _linear_in(d, atom)
                if slope == 0:
                    continue
                if self._proves(slope, depth - 1):
                    d = rest
                elif self._proves(-slope, depth - 1):
                    d = rest + slope * upper
            if d is before or not isinstance(d, Expr):
                break
        return self._least(d) >= 0 or self._proves_without_quotients(d, depth)

    def _proves_without_quotients(self, d: Dim, depth: int) -> bool:
        """Puts quotients by numbers that make d smaller at what bounds them, the fraction: for
        c > 0, d - k*floordiv(a, c) is at least 0 where c*d - k*a is."""
        before = d
        for atom in _atoms(d):
            if not isinstance(atom, FloorQuotient):
                continue
            above, divisor = atom.arguments
            if not isinstance(divisor, int) or divisor <= 0:
                continue
            slope, rest = _linear_in(d, atom)
            if slope != 0 and self._proves(slope * -1, depth - 1):
                d = rest * divisor + slope * above
        return d is not before and self._proves(d, depth - 1)

    def _symbolic_upper(self, atom: Expr) -> Dim | None:
        """An inclusive upper bound of an atom that is also known to be at least 0."""
        if isinstance(atom, Symbol) and atom.name in self.extents:
            return self.extents[atom.name] - 1
        if isinstance(atom, Mod) and self.positive_divisor(atom.arguments[1]):
            return atom.arguments[1] - 1
        return None

    def positive_divisor(self, d: Dim) -> bool:
        """Whether d >= 1 holds where it is a divisor: a size that divides isn't 0."""
        lo = self.of(d).lo
        return (lo is not None and lo >= 0) or self.positive(d)

    def _least(self, d: Dim) -> float:
        """A lower bound of d by numeric ranges once every atom is counted from its own.

        s1*s0 - s0 with s1 >= 1 is (s1 + 1)*s0 - s0 = s1*s0 with s1 >= 0.
        """
        moved: dict[Expr, Dim] = {}
        ranges: dict[str, Range] = {}
        for number, atom in enumerate(_atoms(d)):
            known = self.of(atom)
            start = known.lo or 0
            hi = None if known.hi is None else known.hi - start
            ranges[f"a{number}"] = Range(None if known.lo is None else 0, hi)
            moved[atom] = symbol(f"a{number}") + start
        terms, constant = terms_of(d)
        parts = [dim_product([moved[f] for f in factors_of(m)]) * c for m, c in terms]
        lo = Facts(ranges).of(dim_sum([constant, *parts])).lo
        return float("-inf") if lo is None else lo


def _atoms(d: Dim) -> list[Expr]:
    return list(dict.fromkeys(f for m, _ in terms_of(d)[0] for f in factors_of(m)))


def _linear_in(d: Dim, atom: Expr) -> tuple[Dim, Dim]:
    """(slope, rest) with d = slope*atom + rest."""
    slope: list[Dim] = []
    rest: dict[Expr, int] = {}
    terms, constant = terms_of(d)
    for monomial, scale in terms:
        factors = list(factors_of(monomial))
        if atom in factors:
            factors.remove(atom)
            slope.append(dim_product(factors) * scale)
        else:
            rest[monomial] = scale
    return dim_sum(slope), from_terms(rest, constant)


def range_of(d: Dim, ranges: Mapping[str, Range] = _NO_RANGES) -> Range:
    """A range that holds every value of d; a symbol without one is a size, at least 0."""
    return Facts(ranges).of(d)


def known_nonnegative(d: Dim, ranges: Mapping[str, Range] = _NO_RANGES) -> bool:
    """Whether d >= 0 is proven."""
    return Facts(ranges).nonnegative(d)


def known_positive(d: Dim, ranges: Mapping[str, Range] = _NO_RANGES) -> bool:
    """Whether d >= 1 is proven."""
    return Facts(ranges).positive(d)


def provable_le(
    a: Dim,
    b: Dim,
    ranges: Mapping[str, Range] = _NO_RANGES,
    extents: Mapping[str, Dim] = _NO_EXTENTS,
) -> bool:
    """Whether a <= b is proven; extents are the exclusive bounds of axes."""
    gap = b - a
    return Facts(ranges, extents).nonnegative(gap) or _are_blocks_apart(gap, ranges, extents)


def _are_blocks_apart(gap: Dim, ranges: Mapping[str, Range], extents: Mapping[str, Dim]) -> bool:
    """Whether a sum is at least 0 as one of its quotients is at least 1 more than another: y // c -
    x // c, where y - x is at least c, as of the number of blocks and that of one with a place."""
    if not isinstance(gap, Sum):
        return False
    terms = zip(gap.monomials, gap.coefficients, strict=True)
    quotients = [(term, times) for term, times in terms if isinstance(term, FloorQuotient)]
    for one, times in quotients:
        for other, less in quotients:
            (y, c), (x, d) = one.arguments, other.arguments
            if (times, less) != (1, -1) or c != d or not isinstance(c, int) or c <= 0:
                continue
            if provable_le(x + c, y, ranges, extents):
                return provable_le(0, gap - one + other + 1, ranges, extents)
    return False


def known_divisor(d: Dim) -> int:
    """An integer that divides every value of d; 0 for d = 0."""
    if not isinstance(d, Expr):
        return abs(d)
    if isinstance(d, Sum):
        scaled = zip(d.monomials, d.coefficients, strict=True)
        return gcd(d.constant, *[known_divisor(m) * c for m, c in scaled])
    if isinstance(d, Product):
        result = 1
        for factor in d.factors:
            result *= known_divisor(factor)
        return result
    if isinstance(d, (Mod, Min, Max)):
        return gcd(*[known_divisor(a) for a in d.arguments])
    return 1


def known_divisible(d: Dim, k: Dim) -> bool:
    """Whether d is a multiple of k for all values; k may be an expression. False for k = 0."""
    if isinstance(k, int):
        return k != 0 and known_divisor(d) % k == 0
    return divide(d, k)[1] == 0
