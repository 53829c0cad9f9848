"""Patterns: what they are, which of them `canonicalize` applies, and which may match an operation.

    # addi(x, 0) -> x
    @canonicalization(AddI, name="arith.add_zero")
    def add_zero(op, rw):
        if not is_zero(op.rhs):
            return rw.no_match("the right operand is not zero")
        rw.replace(op, [op.lhs])
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from irc.ir.core import Operation
from irc.ir.definition import Op
from irc.ir.diagnostics import UserError
from irc.ir.traits import Commutative, ConstantLike

if TYPE_CHECKING:
    from irc.ir.rewrite.driver import Rewriter

Rewrite = Callable[[Any, "Rewriter"], Any]


class Pattern:
    """A rewrite rooted at operations of `op_classes`, with a stable dotted name.

    Higher `benefit` is tried first. `counted` is the statistic of a pass that counts how often it
    was applied ("": its name).
    """

    __slots__ = ("name", "op_classes", "function", "benefit", "counted")

    #: Whether `may_match` declines anything.
    selects = False

    def __init__(
        self,
        name: str,
        op_classes: tuple[type[Operation], ...],
        function: Rewrite,
        benefit: int,
        counted: str = "",
    ) -> None:
        self.name = name
        self.op_classes = op_classes
        self.function = function
        self.benefit = benefit
        self.counted = counted or name

    def may_match(self, makers: Sequence[type], alike: bool) -> bool:
        """Whether an operation could match whose operands are made by operations of these classes
        (`Block`: an argument). alike: whether the last two operands are one value."""
        return True

    def __repr__(self) -> str:
        return f"<pattern {self.name}>"


def pattern(
    *op_classes: type[Operation], name: str | None = None, benefit: int = 1, counted: str = ""
) -> Callable[[Rewrite], Pattern]:
    """Make a function `(op, rw)` a pattern for operations of these classes.

    The function changes the IR only through `rw` and returns True or None when it did, or
    `rw.no_match(why)` when it did not (`rw.decline(why)` where a user would ask why not).
    """
    if not op_classes:
        raise UserError("a pattern needs the operation class that it is rooted at")

    def decorate(function: Rewrite) -> Pattern:
        return Pattern(name or function.__name__, op_classes, function, benefit, counted)

    return decorate


_canonical: dict[Pattern, None] = {}


def canonicalization(
    *op_classes: type[Operation], name: str | None = None, benefit: int = 1
) -> Callable[[Rewrite], Pattern]:
    """`pattern(...)`, and register it for the pass `canonicalize`."""

    def decorate(function: Rewrite) -> Pattern:
        return register_canonicalization(pattern(*op_classes, name=name, benefit=benefit)(function))

    return decorate


def register_canonicalization(rule: Pattern) -> Pattern:
    """Have the pass `canonicalize` apply a pattern."""
    _canonical[rule] = None
    return rule


def canonicalization_patterns() -> list[Pattern]:
    """Every canonicalization registered by the dialects loaded so far."""
    return list(_canonical)


# -- which patterns may match


class PatternPlan:
    """What the driver does with the operations of one class."""

    __slots__ = ("commutative", "fold", "patterns", "by_makers")

    def __init__(self, cls: type[Operation], patterns: list[Pattern], fold: bool) -> None:
        traits = cls.traits
        self.commutative = fold and Commutative in traits
        folds = issubclass(cls, Op) and cls.fold is not Op.fold and ConstantLike not in traits
        self.fold = fold and folds
        self.patterns = patterns
        # Where many patterns are rooted at a class, those that may match by who makes the operands.
        selects = any(p.selects for p in self.patterns)
        self.by_makers: dict[Any, list[Pattern]] | None = {} if selects else None

    def candidates(self, op: Operation) -> list[Pattern]:
        """The patterns that may match an operation."""
        known = self.by_makers
        assert known is not None
        operands = op._operands
        if len(operands) == 2:
            first, second = operands
            key: Any = first.owner.__class__, second.owner.__class__, first is second  # type: ignore[attr-defined]
        else:
            alike = len(operands) > 1 and operands[-1] is operands[-2]
            key = (*[v.owner.__class__ for v in operands], alike)  # type: ignore[attr-defined]
        chosen = known.get(key)
        if chosen is None:
            *makers, alike = key
            chosen = known[key] = [p for p in self.patterns if p.may_match(makers, alike)]
        return chosen


class PatternSet:
    """Patterns by the operations at which they are rooted. One is kept for each set in use, since
    a program has many functions, and a process many programs."""

    __slots__ = ("rooted", "fold", "plans")

    def __init__(self, patterns: Iterable[Pattern], fold: bool) -> None:
        #: Patterns by the class that they name, each with its number in the order of trying.
        self.rooted: dict[type[Operation], list[tuple[int, Pattern]]] = {}
        for entry in enumerate(sorted(patterns, key=lambda p: -p.benefit)):
            for cls in entry[1].op_classes:
                self.rooted.setdefault(cls, []).append(entry)
        self.fold = fold
        self.plans: dict[type[Operation], PatternPlan] = {}

    def plan(self, cls: type[Operation]) -> PatternPlan:
        """What is done with the operations of a class."""
        plan = self.plans.get(cls)
        if plan is None:
            entries: dict[int, Pattern] = {}
            for base in cls.__mro__:
                if base in self.rooted:
                    entries.update(self.rooted[base])
            patterns = [entries[number] for number in sorted(entries)]
            plan = self.plans[cls] = PatternPlan(cls, patterns, self.fold)
        return plan


@functools.lru_cache(maxsize=64)
def pattern_set(patterns: tuple[Pattern, ...], fold: bool) -> PatternSet:
    return PatternSet(patterns, fold)


__all__ = [
    "Pattern", "PatternPlan", "PatternSet", "Rewrite", "canonicalization",
    "canonicalization_patterns",
    "pattern", "pattern_set", "register_canonicalization",
]  # fmt: skip
