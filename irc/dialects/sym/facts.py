"""What a function knows of its symbols: ranges, divisibility, equalities and relations.

The binders give ranges (`minimum`, `maximum`) and hints, `sym.assert` gives relations. Ranges are
propagated through the relations until nothing changes: from `s0 + s1 <= 10` and `s1 >= 2` follows
`s0 <= 8`. Facts hold for what their assertion dominates; as assertions stand as soon as their
symbols exist, that is nearly everything that mentions the symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import gcd

import attrs

from irc.dialects.sym import ops as sym
from irc.ir.core import Operation
from irc.ir.location import file_positions
from irc.ir.symbols import (
    NEGATED,
    SIGNS,
    Dim,
    Expr,
    FloorQuotient,
    Function,
    Max,
    Min,
    Mod,
    Range,
    Symbol,
    affine_parts,
    format_dim,
    free_symbols,
    range_of,
    terms_of,
)

MAX_ROUNDS = 8
#: Functions whose values are 0 and 1 only.
TRUTHS = frozenset({*SIGNS, "and", "or", "not"})
MAX_DEPTH = 4


@attrs.frozen
class Relation:
    """`lhs relation rhs` (eq, ne, lt, le), stated by the assertion `op`."""

    relation: str
    lhs: Dim
    rhs: Dim
    op: Operation

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that it mentions."""
        return free_symbols(self.lhs) | free_symbols(self.rhs)

    def __str__(self) -> str:
        return f"{format_dim(self.lhs)} {SIGNS[self.relation]} {format_dim(self.rhs)}"


@attrs.define
class SymbolFacts:
    """What is known of one symbol. `divisor` divides each of its values (1: nothing known);
    `equal` is an expression of other symbols that it equals."""

    name: str
    binder: Operation
    range: Range
    hint: int | None = None
    divisor: int = 1
    equal: Dim | None = None

    @property
    def kind(self) -> str:
        """Where it comes from: "size" or "stride" of an argument, "argument", or "data"."""
        source = self.binder.operands[0]
        if source.defining_op is not None:
            return "data"
        if isinstance(self.binder, sym.BindSizeOp):
            return "stride" if self.binder.stride else "size"
        return "argument"


@attrs.define
class FunctionFacts:
    """The facts of a function: its symbols by name in the order of their binders, the relations
    stated, and those of them that cannot hold together with the others."""

    symbols: dict[str, SymbolFacts] = attrs.field(factory=dict)
    relations: list[Relation] = attrs.field(factory=list)
    contradictions: list[Relation] = attrs.field(factory=list)

    @property
    def ranges(self) -> dict[str, Range]:
        """The range of each symbol, for `irc.ir.symbols`' functions."""
        return {name: known.range for name, known in self.symbols.items()}


def facts_of(function: Operation) -> FunctionFacts:
    """Collect and propagate the facts of a function on any level."""
    return facts_stated_by(function.walk())


def hints_of(function: Operation) -> dict[str, int]:
    """What the symbols that a function binds were while the program was traced, where that is
    known."""
    bound = (op for op in function.regions[0].blocks[0].ops if isinstance(op, sym.Binder))
    return {op.symbol: op.hint for op in bound if op.hint is not None}


def facts_stated_by(ops: Iterable[Operation]) -> FunctionFacts:
    """The facts that the binders and assertions among `ops` state, propagated."""
    facts = FunctionFacts()
    for op in ops:
        if isinstance(op, sym.Binder):
            low = 0 if op.minimum is None and isinstance(op, sym.BindSizeOp) else op.minimum
            known = SymbolFacts(op.symbol, op, Range(low, op.maximum), op.hint)
            facts.symbols.setdefault(op.symbol, known)
        elif isinstance(op, sym.AssertOp):
            facts.relations += _plain(Relation(op.relation, op.lhs, op.rhs, op))
    _propagate(facts)
    return facts


def _plain(relation: Relation) -> Iterator[Relation]:
    """Relations between numbers: a truth that is compared with 0 or 1 is taken apart."""
    truth, value = relation.lhs, relation.rhs
    if isinstance(truth, int):
        truth, value = value, truth
    # A quotient, say, that is not 1 may be any other number.
    is_truth = isinstance(truth, Function) and truth.name in TRUTHS
    if not is_truth or relation.relation not in ("eq", "ne") or value not in (0, 1):
        yield relation
        return
    assert isinstance(truth, Function)
    yield from _truth(truth, (value == 1) == (relation.relation == "eq"), relation)


def _truth(condition: Dim, holds: bool, origin: Relation) -> Iterator[Relation]:
    name = condition.name if isinstance(condition, Function) else ""
    parts = condition.arguments if isinstance(condition, Function) else ()
    if name in SIGNS:
        relation, turned = (name, False) if holds else NEGATED[name]
        lhs, rhs = (parts[1], parts[0]) if turned else parts
        yield Relation(relation, lhs, rhs, origin.op)
    elif name == "not":
        yield from _truth(parts[0], not holds, origin)
    elif name == ("and" if holds else "or"):
        for part in parts:
            yield from _truth(part, holds, origin)
    else:
        yield Relation("eq", condition, int(holds), origin.op)


# -- propagation


def _propagate(facts: FunctionFacts) -> None:
    for _ in range(MAX_ROUNDS):
        before = {name: (s.range, s.divisor, s.equal) for name, s in facts.symbols.items()}
        for relation in facts.relations:
            try:
                _apply(facts, relation)
            except ValueError:  # an empty range
                if relation not in facts.contradictions:
                    facts.contradictions.append(relation)
        if before == {name: (s.range, s.divisor, s.equal) for name, s in facts.symbols.items()}:
            return


def _apply(facts: FunctionFacts, relation: Relation) -> None:
    lhs, rhs = relation.lhs, relation.rhs
    if relation.relation == "ne":
        _exclude(facts, lhs, rhs)
        _exclude(facts, rhs, lhs)
        return
    gap = rhs - lhs - (1 if relation.relation == "lt" else 0)
    _nonnegative(facts, gap)
    if relation.relation == "eq":
        _nonnegative(facts, lhs - rhs)
        _equate(facts, lhs - rhs)
        for multiple, zero in ((lhs, rhs), (rhs, lhs)):
            if zero == 0 and isinstance(multiple, Mod):
                _divides(facts, *multiple.arguments)


def _nonnegative(facts: FunctionFacts, gap: Dim, depth: int = MAX_DEPTH) -> None:
    """Tighten the range of each symbol that stands in `gap`, which is at least 0; `depth` says
    how deep inside of quotients, minima and maxima."""
    if isinstance(gap, int):
        if gap < 0:
            raise ValueError("never true")
        return
    for name in gap.symbols & facts.symbols.keys():
        parts = affine_parts(gap, (name,))
        scale = None if parts is None else parts[0][name]
        if parts is None or not isinstance(scale, int) or scale == 0:
            continue
        bound = _bound(scale, parts[1], facts)
        if bound is not None:
            _narrow(facts.symbols[name], bound, above=scale > 0)
    if not gap.polynomial and depth:
        _nonnegative_parts(facts, gap, depth - 1)


def _bound(scale: int, rest: Dim, facts: FunctionFacts) -> int | None:
    """The least (`scale` > 0) or greatest x for which scale * x + rest may be at least 0."""
    highest = range_of(rest, facts.ranges).hi
    if highest is None:
        return None
    return -(highest // scale) if scale > 0 else highest // -scale  # scale * x >= -highest


def _nonnegative_parts(facts: FunctionFacts, gap: Expr, depth: int) -> None:
    """What follows for the arguments of quotients, minima and maxima in `gap`, at least 0."""
    terms, _ = terms_of(gap)
    for part, scale in terms:
        if not isinstance(part, FloorQuotient | Min | Max):
            continue
        bound = _bound(scale, gap - part * scale, facts)
        if bound is None:
            continue
        if isinstance(part, FloorQuotient):
            above, below = part.arguments
            if not isinstance(below, int) or below < 1:
                continue
            # x // c >= bound is x >= c*bound; x // c <= bound is x <= c*bound + c - 1.
            limit = below * bound + (0 if scale > 0 else below - 1)
            arguments: tuple[Dim, ...] = (above,)
        elif isinstance(part, Min if scale > 0 else Max):
            limit, arguments = bound, part.arguments
        else:
            continue
        for argument in arguments:
            _nonnegative(facts, argument - limit if scale > 0 else limit - argument, depth)


def _narrow(known: SymbolFacts, bound: int, above: bool) -> None:
    """Intersect a symbol's range with what is at least (`above`) or at most `bound`."""
    low, high = known.range.lo, known.range.hi
    step = known.divisor
    if above:
        bound = -(-bound // step) * step
        low = bound if low is None else max(low, bound)
    else:
        bound = bound // step * step
        high = bound if high is None else min(high, bound)
    known.range = Range(low, high)


def _exclude(facts: FunctionFacts, name: Dim, value: Dim) -> None:
    if not isinstance(name, Symbol) or not isinstance(value, int):
        return
    known = facts.symbols.get(name.name)
    if known is not None and known.range.lo == value:
        _narrow(known, value + 1, above=True)
    if known is not None and known.range.hi == value:
        _narrow(known, value - 1, above=False)


def _equate(facts: FunctionFacts, difference: Dim) -> None:
    """From difference == 0: the last bound symbol with the factor 1 or -1 equals the rest."""
    if isinstance(difference, int):
        return
    for name in reversed(facts.symbols):
        known = facts.symbols[name]
        if name not in difference.symbols or known.equal is not None:
            continue
        parts = affine_parts(difference, (name,))
        if parts is not None and parts[0][name] in (1, -1):
            rest = parts[1]
            known.equal = rest if parts[0][name] == -1 else -rest
            return


def _divides(facts: FunctionFacts, multiple: Dim, divisor: Dim) -> None:
    if isinstance(multiple, Symbol) and isinstance(divisor, int) and divisor > 1:
        known = facts.symbols.get(multiple.name)
        if known is not None and known.divisor % divisor:
            known.divisor = known.divisor * divisor // gcd(known.divisor, divisor)
            if known.range.lo is not None:
                _narrow(known, known.range.lo, above=True)
            if known.range.hi is not None:
                _narrow(known, known.range.hi, above=False)


# -- text


def format_facts(function: Operation) -> str:
    """The facts of a function as text, a line each."""
    facts = facts_of(function)
    name = getattr(function, "sym_name", "?")
    lines = [f"facts of @{name}:"]
    lines += [f"  {_symbol_line(known)}" for known in facts.symbols.values()]
    for relation in facts.relations:
        never = "  (contradicts the facts above)" if relation in facts.contradictions else ""
        lines.append(f"  {relation}{_place(relation.op)}{never}")
    if len(lines) == 1:
        lines.append("  none")
    return "\n".join(lines)


def _symbol_line(known: SymbolFacts) -> str:
    low = "-inf" if known.range.lo is None else str(known.range.lo)
    high = "inf" if known.range.hi is None else str(known.range.hi)
    parts = [f"{known.name} in [{low}, {high}]"]
    if known.divisor > 1:
        parts.append(f"a multiple of {known.divisor}")
    if known.equal is not None:
        parts.append(f"equal to {format_dim(known.equal)}")
    if known.hint is not None:
        parts.append(f"hint {known.hint}")
    return ", ".join(parts) + f"  ({_origin(known)})"


def _origin(known: SymbolFacts) -> str:
    source = known.binder.operands[0]
    shown = f"%{source.name_hint}" if source.name_hint else "a value"
    if isinstance(known.binder, sym.BindSizeOp):
        what = "stride" if known.binder.stride else "size"
        text = f"{what} {known.binder.dim} of {shown}"
    else:
        text = shown
    return text if source.defining_op is None else f"data: {text}"


def _place(op: Operation) -> str:
    places = file_positions(op.location)
    return f"  ({places[0].filename}:{places[0].line})" if places else ""


def dims_of(function: Operation) -> Iterator[Expr]:
    """Every symbolic size that a type in the function mentions."""
    for op in function.walk():
        values = [*op.results, *(a for r in op.regions for b in r.blocks for a in b.arguments)]
        for value in values:
            for size in getattr(value.type, "shape", ()):
                if isinstance(size, Expr):
                    yield size
