"""Whether two sizes are equal wherever the facts stated so far hold.

Facts are equalities (`sym.assert`; a symbol that is bound to a value or a size that another
expression gives), ranges and divisors. An equality that is linear in a symbol or a function with
the factor 1 or -1 rewrites it, everywhere; the others are combined linearly; what is left is
compared by ranges. What can't be proven is not known: nothing is tried out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from irc.dialects.sym import ops as sym
from irc.dialects.sym.facts import Relation, facts_stated_by
from irc.ir.core import Operation
from irc.ir.symbols import (
    Dim,
    Expr,
    Function,
    Mod,
    Range,
    Symbol,
    SymbolError,
    floordiv,
    known_nonnegative,
    replace,
    simplify,
    symbol,
    terms_of,
)
from irc.ir.symbols.expr import postorder
from irc.ir.types import TensorType
from irc.ir.verifier import Stated

MAX_ROUNDS = 16


class Known:
    """The equalities that follow from operations that state facts, which come one by one."""

    def __init__(self, ops: Iterable[Operation] = ()) -> None:
        self.ops: list[Operation] = []
        self._stated: set[tuple[Dim, Dim]] = set()
        # Facts only join: what was proven stays so.
        self._proven: set[tuple[Dim, Dim]] = set()
        self._closure: _Closure | None = None
        for op in ops:
            self.add(op)

    def add(self, op: Operation) -> None:
        """Take note of what `op` states, if anything."""
        if isinstance(op, sym.Binder | sym.AssertOp):
            self.ops.append(op)
            self._closure = None
            if isinstance(op, sym.AssertOp) and op.relation == "eq":
                self._stated |= {(op.lhs, op.rhs), (op.rhs, op.lhs)}

    def equal(self, a: Dim, b: Dim) -> bool:
        """Whether a == b is proven."""
        if a == b or (a, b) in self._stated or (a, b) in self._proven:
            return True
        if not isinstance(a, Expr) and not isinstance(b, Expr):
            return False
        if self._closure is None:
            self._closure = _Closure(self.ops)
        if not self._closure.is_zero(a, b):
            return False
        self._proven.add((a, b))
        return True

    def refuses_refinement(self, source: TensorType, refined: TensorType) -> str | None:
        """Why `source` is not known to be `refined`, a type of the same rank; None if it is.

        The stride of a dimension with at most one element may be any.
        """
        for dim, (have, want) in enumerate(zip(source.shape, refined.shape, strict=True)):
            if not self.equal(have, want):
                return f"no fact says that size {dim}, {have}, is {want}"
        if source.strides is None or refined.strides is None:
            return None
        places = zip(refined.shape, source.strides, refined.strides, strict=True)
        for dim, (size, have, want) in enumerate(places):
            if have != want and size not in (0, 1) and not self.equal(have, want):
                return f"no fact says that stride {dim}, {have}, is {want}"
        return None


def known_of(stated: Stated) -> Known:
    """What is known where a verifier stands; remembered in `stated` for the next operation."""
    known = stated.memo
    if known is None:
        known = stated.memo = Known()
    for op in stated.ops[len(known.ops) :]:
        known.add(op)
    return known


def _equalities(ops: Sequence[Operation], relations: Iterable[Relation]) -> Iterator[Dim]:
    """Differences that are 0."""
    for op in ops:
        if isinstance(op, sym.BindOp):
            maker = op.source.defining_op
            if isinstance(maker, sym.ValueOp):
                yield symbol(op.symbol) - maker.dim
        elif isinstance(op, sym.BindSizeOp):
            type_ = op.source.type
            dims = type_.strides if op.stride else type_.shape
            if dims is not None:
                yield symbol(op.symbol) - dims[op.dim]
    for relation in relations:
        if relation.relation == "eq":
            yield relation.lhs - relation.rhs
            for multiple, zero in ((relation.lhs, relation.rhs), (relation.rhs, relation.lhs)):
                if zero == 0 and isinstance(multiple, Mod):
                    x, divisor = multiple.arguments
                    yield x - floordiv(x, divisor) * divisor


class _Closure:
    """Facts in the form in which they are used: rewriting rules, other differences, ranges."""

    def __init__(self, ops: Sequence[Operation]) -> None:
        facts = facts_stated_by(ops)
        self.ranges: dict[str, Range] = facts.ranges
        self.order = {name: number for number, name in enumerate(facts.symbols)}
        self.rules: dict[Expr, Dim] = {}
        self.rest: list[Dim] = []
        for difference in _equalities(ops, facts.relations):
            try:
                self.learn(self.normal(difference))
            except SymbolError:  # too large an expression: one fact less
                continue

    def learn(self, difference: Dim) -> None:
        """Make a rule of difference == 0 where it is linear in an atom, the most complex one."""
        if not isinstance(difference, Expr):
            return
        atoms = [
            (m, c) for m, c in terms_of(difference)[0]
            if c in (1, -1) and isinstance(m, Symbol | Function)
        ]  # fmt: skip
        for atom, scale in sorted(atoms, key=lambda entry: self.rank(entry[0]), reverse=True):
            value = (difference - atom * scale) * -scale
            if not isinstance(value, Expr) or atom not in postorder(value):
                self.rules[atom] = value
                return
        self.rest.append(difference)

    def rank(self, atom: Expr) -> tuple[int, int, str]:
        """Functions before symbols, symbols bound late before those bound early."""
        bound = self.order.get(atom.name, -1) if isinstance(atom, Symbol) else 0
        return atom.depth, bound, str(atom)

    def normal(self, d: Dim) -> Dim:
        """d rewritten by the rules and simplified by the ranges."""
        for _ in range(MAX_ROUNDS):
            before = d
            d = simplify(replace(d, self.rules), self.ranges)
            if d == before:
                break
        return d

    def is_zero(self, a: Dim, b: Dim) -> bool:
        """Whether a - b is 0."""
        try:
            difference = self.normal(a - b)
        except SymbolError:  # too large an expression
            return False
        if not isinstance(difference, Expr):
            return difference == 0
        if self.rest and _depends_linearly(difference, [self.normal(d) for d in self.rest]):
            return True
        return known_nonnegative(difference, self.ranges) and known_nonnegative(
            difference * -1, self.ranges
        )


def _depends_linearly(target: Dim, zeros: Sequence[Dim]) -> bool:
    """Whether `target` is a sum of multiples of expressions that are 0."""
    rows = [_coefficients(d) for d in zeros]
    row = _coefficients(target)
    while rows:
        pivot_row = rows.pop()
        if not pivot_row:
            continue
        pivot = next(iter(pivot_row))
        for other in (row, *rows):
            scale = other.get(pivot, Fraction(0)) / pivot_row[pivot]
            for key, value in pivot_row.items() if scale else ():
                left = other.get(key, Fraction(0)) - scale * value
                if left:
                    other[key] = left
                else:
                    other.pop(key, None)
    return not row


def _coefficients(d: Dim) -> dict[Dim, Fraction]:
    terms, constant = terms_of(d)
    coefficients: dict[Dim, Fraction] = {m: Fraction(c) for m, c in terms}
    if constant:
        coefficients[1] = Fraction(constant)
    return coefficients


__all__ = ["Known", "known_of"]
