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

A rule is a pattern of `irc.ir.rewrite.driver` and belongs to `canonicalize` unless
`canonical=False`. It states what it keeps ("bits", or "real": as numbers, rounding may differ), and
`irc.validation.rules` (`irc-opt --check-rules`) runs it on random values to see whether it does.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.definition import Op, unwrap
from irc.ir.diagnostics import UserError
from irc.ir.registry import lookup_op
from irc.ir.rewrite.driver import Pattern, Rewriter, register_canonicalization
from irc.ir.traits import Commutative

Number = bool | int | float
Bindings = dict[str, Value]


class Variable:
    """Any value; the same one wherever the variable stands."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


class Constant:
    """A value whose every element is this number."""

    __slots__ = ("number",)

    def __init__(self, number: Number) -> None:
        self.number = number

    def __str__(self) -> str:
        return str(self.number).lower()

    def equals(self, found: Number | None) -> bool:
        """Whether a constant's number is this one, its kind and its sign of zero included."""
        return (
            type(found) is type(self.number)
            and found == self.number
            and math.copysign(1, found) == math.copysign(1, self.number)
        )


class Term:
    """An operation of one result on terms, variables and constants."""

    __slots__ = ("cls", "operands", "attributes")

    def __init__(
        self, cls: type[Op], operands: Sequence[Expression], attributes: Mapping[str, Any]
    ) -> None:
        self.cls = cls
        self.operands = tuple(operands)
        self.attributes = dict(attributes)

    def __str__(self) -> str:
        words = [*map(str, self.operands), *(f"{k}={v}" for k, v in self.attributes.items())]
        return f"{self.cls.name.partition('.')[2]}({', '.join(words)})"


Expression = Variable | Constant | Term


class Dialect:
    """Makes terms: `Dialect("graph").neg(x)`. The names are those of the operations."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Callable[..., Term]:
        # `and`, `or` and `not` are words of Python's: `graph.and_(x, y)`.
        cls = lookup_op(f"{self.name}.{name.removesuffix('_')}")
        if cls is None or not issubclass(cls, Op):
            raise AttributeError(f"there is no operation {self.name}.{name}")
        if len(cls.result_fields) != 1 or cls._plain_operands is None:
            raise AttributeError(f"{cls.name} has no fixed operands and one result")
        op = cls

        def term(*operands: Expression | Number, **attributes: Any) -> Term:
            if len(operands) != op._plain_operands:
                count = op._plain_operands
                raise UserError(f"{op.name} takes {count} operands, not {len(operands)}")
            unknown = attributes.keys() - op.attribute_fields
            if unknown:
                raise UserError(f"{op.name} has no attribute '{min(unknown)}'")
            return Term(op, [_expression(o) for o in operands], attributes)

        return term


def _expression(given: Any) -> Expression:
    if isinstance(given, Variable | Constant | Term):
        return given
    if isinstance(given, bool | int | float):
        return Constant(given)
    raise UserError(f"a rule is of terms, its parameters and numbers, not of {given!r}")


# How a dialect says what number a value is in every element, and makes such a value; which
# operations may give one.
_constants: dict[
    str,
    tuple[
        Callable[[Value], Number | None],
        Callable[[Builder, Number, Type], Value],
        frozenset[type[Operation]],
    ],
] = {}


def register_constants(
    dialect: str,
    read: Callable[[Value], Number | None],
    make: Callable[[Builder, Number, Type], Value],
    makers: Iterable[type[Operation]],
) -> None:
    """Say what number a value has in all its elements (None: not known, or not made by one of
    `makers`), and how it is made."""
    _constants[dialect] = read, make, frozenset(makers)


class Rule(Pattern):
    """A rule: `before` becomes `after` where `where` holds of the values."""

    __slots__ = (
        "before", "after", "where", "asked", "preserves", "variables", "dialect", "module",
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
    ) -> None:
        super().__init__(name, (before.cls,), self._function(before, module), benefit=1)
        self.module = module
        self.variables = tuple(variables)
        self.before = before
        self.after = after
        self.where = where
        self.asked = () if where is None else _asked(where, self.variables)
        self.preserves = preserves
        self.dialect = before.cls.name.partition(".")[0]

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
        bindings: Bindings = {}
        if not self._matches_op(op, self.before, bindings):
            return rw.no_match(reason)
        if not self.holds(bindings):
            return rw.no_match(f"{_condition(self.where)} does not hold")
        kind = op.results[0].type
        if isinstance(self.after, Variable) and bindings[self.after.name].type is not kind:
            return rw.no_match(f"{self.after.name} is {bindings[self.after.name].type}, not {kind}")
        rw.replace(op, self.build(self.after, rw.builder, bindings, kind))
        return True

    selects = True

    def may_match(self, makers: Sequence[type], alike: bool) -> bool:
        """Whether operands made so can be those of the left side; see `Pattern.may_match`."""
        operands = self.before.operands
        last = operands[-2:]
        if len(last) == 2 and last[0] is last[1] and not alike:
            return False
        if self._may_be(makers, operands):
            return True
        return Commutative in self.before.cls.traits and self._may_be(makers[::-1], operands)

    def _may_be(self, makers: Sequence[type], operands: Sequence[Expression]) -> bool:
        for maker, expression in zip(makers, operands):
            if isinstance(expression, Term) and maker is not expression.cls:
                return False
            if isinstance(expression, Constant) and maker not in _constants[self.dialect][2]:
                return False
        return True

    def holds(self, bindings: Mapping[str, Value]) -> bool:
        """Whether the rule's condition holds of these values."""
        where = self.where
        return where is None or where(*(bindings[name] for name in self.asked))

    def build(
        self,
        expression: Expression,
        builder: Builder,
        bindings: Mapping[str, Value],
        kind: Type | None = None,
    ) -> Value:
        """The value of an expression, of the type `kind` (None: what its operation infers)."""
        if isinstance(expression, Variable):
            return bindings[expression.name]
        if isinstance(expression, Constant):
            assert kind is not None
            return _constants[self.dialect][1](builder, expression.number, kind)
        built = [
            None if isinstance(o, Constant) else self.build(o, builder, bindings)
            for o in expression.operands
        ]
        # A constant has the type of the last operand beside it (a select's first is a condition).
        beside = next((value.type for value in reversed(built) if value is not None), kind)
        operands = [
            self.build(o, builder, bindings, beside) if value is None else value
            for o, value in zip(expression.operands, built)
        ]
        made: Value = builder.value(
            expression.cls, *operands, result_types=kind, **expression.attributes
        )
        return made

    def _matches_op(self, op: Operation, term: Term, bindings: Bindings) -> bool:
        if op.__class__ is not term.cls:
            return False
        if op.attributes or term.attributes:
            written = {name: unwrap(value) for name, value in op.attributes.items()}
            if written != term.attributes:
                return False
        operands = op._operands
        if self._match_all(operands, term.operands, bindings):
            return True
        return (
            Commutative in term.cls.traits
            and len(operands) == 2
            and self._match_all((operands[1], operands[0]), term.operands, bindings)
        )

    def _match_all(
        self, values: Sequence[Value], expressions: Sequence[Expression], bindings: Bindings
    ) -> bool:
        tried = dict(bindings)
        for value, expression in zip(values, expressions):
            if not self._matches(value, expression, tried):
                return False
        bindings.update(tried)
        return True

    def _matches(self, value: Value, expression: Expression, bindings: Bindings) -> bool:
        if isinstance(expression, Variable):
            return bindings.setdefault(expression.name, value) is value
        if isinstance(expression, Constant):
            return expression.equals(_constants[self.dialect][0](value))
        maker = value.defining_op
        return maker is not None and self._matches_op(maker, expression, bindings)


def _asked(where: Callable[..., bool], variables: Sequence[str]) -> tuple[str, ...]:
    """The variables that a condition asks about: those of its parameters' names, or the first."""
    names = tuple(inspect.signature(where).parameters)
    return names if set(names) <= set(variables) else tuple(variables[: len(names)])


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
) -> Any:
    """Make a function that gives (before, after) a rule; see the module's text.

    where: a test on values, by the names of the rule's parameters (or on the first ones).
    preserves: "bits", or "real" where rounding may differ. canonical: `canonicalize` applies it.
    Raises UserError for what can't be a rule.
    """

    def decorate(function: Callable[..., tuple[Any, Any]]) -> Rule:
        variables = list(inspect.signature(function).parameters)
        before, after = map(_expression, function(*(Variable(name) for name in variables)))
        if not isinstance(before, Term):
            raise UserError(f"rule '{function.__name__}': what is replaced is an operation")
        bound, used = set(_variables(before)), set(_variables(after))
        for name in variables:
            if name not in bound:
                raise UserError(f"rule '{function.__name__}': '{name}' is not in what is replaced")
        assert used <= bound
        if preserves not in ("bits", "real"):
            raise UserError(f"rule '{function.__name__}' preserves bits or real, not {preserves!r}")
        dialect = before.cls.name.partition(".")[0]
        name = f"{dialect}.{function.__name__}"
        made = Rule(name, variables, before, after, where, preserves, function.__module__)
        _rules[name] = made
        if canonical:
            register_canonicalization(made)
        return made

    return decorate if function is None else decorate(function)


def _variables(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Variable):
        yield expression.name
    elif isinstance(expression, Term):
        for operand in expression.operands:
            yield from _variables(operand)


def all_rules() -> dict[str, Rule]:
    """Every rule of the dialects and passes loaded so far, by name."""
    return dict(sorted(_rules.items()))


__all__ = [
    "Constant", "Dialect", "Expression", "Rule", "Term", "Variable", "all_rules",
    "register_constants", "rule",
]  # fmt: skip
