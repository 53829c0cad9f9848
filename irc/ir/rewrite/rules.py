"""Rewrite rules that need no code: what stands there, and what stands there instead.

    from irc.ir.rewrite.terms import floating, graph, rule

    @rule(where=floating)
    def double_negation(x):
        return graph.neg(graph.neg(x)), x

The function is called once. Its parameters are values of any kind, `graph.neg(...)` is a term, and
a number is a constant of that value in every element: an int of an integer type, a float of a float
type (0.0 and -0.0 are two), True and False of i1. Operands of a commutative operation match in
either order, attributes only as they are written. A value that stands twice is one value. What
stands instead is built in front of the operation; unused operations go away with the driver.

    # divf(x, c) -> mulf(x, 1 / c)
    @rule(where=power_of_two)                       # a function of `c`
    def divide_by_power_of_two(x, c: Number):
        return arith.divf(x, c), arith.mulf(x, inverse)

    # cast(cast(x)) -> cast(x)
    @rule(where=loses_nothing)                      # a function of `x`, `y` and `result`
    def cast_of_cast(x, y):
        return graph.cast(graph.cast(x).called(y)), graph.cast(x)

A parameter annotated `Number` is the number that a constant is; one that stands as an attribute
(`dims=d`) is its plain value; `term.called(y)` gives a value inside a name. Conditions, and
functions that stand for numbers and attributes of what is built, ask about them by name, and about
`result`, the value that is replaced.

A rule is a pattern of `irc.ir.rewrite.driver` and belongs to `canonicalize` unless
`canonical=False`. With `fold=True` it says what the operation's own `fold` does, which is made
from it (`irc.dialects.arith.folds`). It states what it keeps ("bits", or "real": as numbers,
rounding may differ), and `irc.validation.rules` (`irc-opt --check-rules`) runs it on random values
to see whether it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import UserError
from irc.ir.rewrite.driver import Rewriter
from irc.ir.rewrite.expressions import (
    RESULT,
    Computed,
    ConstantTerm,
    Dialect,
    Expression,
    Match,
    Number,
    NumberVariable,
    Term,
    Variable,
    expression,
    make_constant,
    may_match,
    names_in,
    parameters_of,
    register_constants,
)
from irc.ir.rewrite.patterns import Pattern, register_canonicalization

#: The flag of what shares its operand's memory: it says nothing where that operand takes its place.
VIEW = "view"


class Rule(Pattern):
    """A rule: `before` becomes `after` where `where` holds of the values."""

    __slots__ = (
        "before", "after", "where", "asked", "preserves", "variables", "dialect", "module", "folds",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        variables: Sequence[str],
        before: Term,
        after: Expression,
        where: Callable[..., bool] | None,
        preserves: str,
        module: str,
        folds: bool = False,
    ) -> None:
        super().__init__(name, (before.cls,), self._function(before, module), benefit=1)
        self.module = module
        self.variables = tuple(variables)
        self.before = before
        self.after = after
        self.where = where
        self.asked = () if where is None else _asked(where, self.variables)
        self.preserves = preserves
        self.dialect = before.dialect
        self.folds = folds

    @property
    def equation(self) -> str:
        """`before -> after`, as a person writes it."""
        return f"{self.before} -> {self.after}"

    def _function(self, before: Term, module: str) -> Callable[[Any, Rewriter], Any]:
        """What the driver calls, once `may_match` holds."""
        reason = f"it is no {before}"

        def rewrite(op: Operation, rw: Rewriter) -> Any:
            return self.rewrite(op, rw, reason)

        rewrite.__module__ = module  # whose it is decides what may be cached
        return rewrite

    def rewrite(self, op: Operation, rw: Rewriter, reason: str) -> Any:
        """Apply the rule to `op`; `rw.no_match` with the reason where it doesn't apply."""
        match, stays = Match(), isinstance(self.after, Variable)
        if not match.op(op, self.before, VIEW if stays else ""):
            return rw.no_match(reason)
        bound = match.bound
        bound[RESULT] = op.results[0]
        if not self.holds(bound):
            return rw.no_match(f"{_condition(self.where)} does not hold")
        type_ = op.results[0].type
        if stays:
            value = bound[str(self.after)]
            if isinstance(value, Value) and value.type is not type_:
                return rw.no_match(f"{self.after} is {value.type}, not {type_}")
        rw.replace(op, self.build(self.after, rw.builder, bound, type_))
        return True

    selects = True

    def may_match(self, makers: Sequence[type], alike: bool) -> bool:
        """Whether operands made so can be those of the left side; see `Pattern.may_match`."""
        return may_match(self.before, makers, alike)

    def holds(self, bindings: Mapping[str, Any]) -> bool:
        """Whether the rule's condition holds of these values."""
        where = self.where
        return where is None or where(*(bindings[name] for name in self.asked))

    def build(
        self,
        expression: Expression,
        builder: Builder,
        bindings: Mapping[str, Any],
        type_: Type | None = None,
    ) -> Value:
        """The value of an expression, of the type `type_` (None: what its operation infers)."""
        if not isinstance(expression, Term):
            number = number_of(expression, bindings)
            if isinstance(number, Value):
                return number
            assert type_ is not None
            return make_constant(self.dialect, builder, number, type_)
        operands = [
            None if isinstance(number_of(o, bindings), bool | int | float)
            else self.build(o, builder, bindings)
            for o in expression.operands
        ]  # fmt: skip
        # A constant has the type of the last operand beside it (a select's first is a condition).
        beside = next((value.type for value in reversed(operands) if value is not None), type_)
        values = [
            self.build(o, builder, bindings, beside) if value is None else value
            for o, value in zip(expression.operands, operands)
        ]
        attributes = attributes_of(expression, bindings)
        group = [values] if expression.cls.plain_operands is None else values
        value: Value = builder.value(expression.cls, *group, result_types=type_, **attributes)
        return value


def number_of(term: Expression, bindings: Mapping[str, Any]) -> Any:
    """The number that an operand is, or the value that a variable stands for; None for a term."""
    if isinstance(term, ConstantTerm):
        return term.number
    if isinstance(term, Computed):
        return term.of(bindings)
    return bindings[term.name] if isinstance(term, Variable) else None


def attributes_of(term: Term, bindings: Mapping[str, Any]) -> dict[str, Any]:
    """A term's attributes as plain values; those without one are left out."""
    attributes = {}
    for name, written in term.attributes.items():
        if isinstance(written, Variable):
            written = bindings[written.name]
        elif isinstance(written, Computed):
            written = written.of(bindings)
        if written is not None:
            attributes[name] = written
    return attributes


def _asked(where: Callable[..., bool], variables: Sequence[str]) -> tuple[str, ...]:
    """The variables that a condition asks about: those of its parameters' names, or the first."""
    names = parameters_of(where)
    return names if set(names) <= {*variables, RESULT} else tuple(variables[: len(names)])


def _condition(where: Callable[..., bool] | None) -> str:
    name = getattr(where, "__name__", "")
    return "its condition" if name in ("", "<lambda>") else f"'{name.replace('_', ' ')}'"


_rules: dict[str, Rule] = {}


def rule(
    function: Callable[..., tuple[Any, Any]] | None = None,
    *,
    where: Callable[..., bool] | None = None,
    preserves: str = "bits",
    canonical: bool = True,
    fold: bool = False,
) -> Any:
    """Make a function that gives (before, after) a rule; see the module's text.

    where: a test on values, by the names of the rule's parameters (or on the first ones).
    preserves: "bits", or "real" where rounding may differ. canonical: `canonicalize` applies it.
    fold: the operation's fold does it. Raises UserError for what can't be a rule.
    """

    def decorate(function: Callable[..., tuple[Any, Any]]) -> Rule:
        parameters = parameters_of(function)
        notes = function.__annotations__
        variables = [_variable(name, notes.get(name)) for name in parameters]
        before, after = map(expression, function(*variables))
        if not isinstance(before, Term):
            raise UserError(f"rule '{function.__name__}': what is replaced is an operation")
        bound, used = {*names_in(before), RESULT}, set(names_in(after))
        for name in parameters:
            if name not in bound:
                raise UserError(f"rule '{function.__name__}': '{name}' is not in what is replaced")
        if not used <= bound:
            wrong = min(used - bound)
            raise UserError(f"rule '{function.__name__}': '{wrong}' is no parameter of it")
        if preserves not in ("bits", "real"):
            raise UserError(f"rule '{function.__name__}' preserves bits or real, not {preserves!r}")
        name, module = f"{before.dialect}.{function.__name__}", function.__module__
        rule_ = Rule(name, list(parameters), before, after, where, preserves, module, fold)
        _rules[name] = rule_
        if canonical and not fold:
            register_canonicalization(rule_)
        return rule_

    return decorate if function is None else decorate(function)


def _variable(name: str, note: Any) -> Variable:
    numbered = note is Number or isinstance(note, str) and note.rpartition(".")[2] == "Number"
    return NumberVariable(name) if numbered else Variable(name)


def all_rules() -> dict[str, Rule]:
    """Every rule of the dialects and passes loaded so far, by name."""
    return dict(sorted(_rules.items()))


__all__ = [
    "ConstantTerm", "Dialect", "Expression", "Number", "Rule", "Term", "Variable", "all_rules",
    "attributes_of", "number_of", "register_constants", "rule",
]  # fmt: skip
