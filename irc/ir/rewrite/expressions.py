"""What rules are made of: terms of operations on variables and numbers, and how they match.

    graph = Dialect("graph")
    term = graph.add(Variable("x"), graph.neg(Variable("y")))
    match = Match()
    if match.op(op, term):
        match.bound["y"], match.inside      # the value; the operations that take part
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.definition import Op, unwrap
from irc.ir.diagnostics import UserError
from irc.ir.registry import lookup_op
from irc.ir.traits import Commutative, ConstantLike
from irc.ir.types import f32

Number = bool | int | float
#: What variables stand for: values, numbers, attributes as plain Python.
Bindings = dict[str, Any]
#: The name by which conditions ask about the replaced operation's result.
RESULT = "result"


class Variable:
    """Any value, the same one wherever the variable stands; of an attribute, its plain value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


class NumberVariable(Variable):
    """The number that a value has in all its elements."""

    __slots__ = ()


class ConstantTerm:
    """A value whose every element is this number (of f32: the number that f32 has for it)."""

    __slots__ = ("number",)

    def __init__(self, number: Number) -> None:
        self.number = number

    def __str__(self) -> str:
        return str(self.number).lower()

    def equals(self, other: Number | None, type_: Type | None = None) -> bool:
        """Whether a constant's number is this one, its kind and its sign of zero included."""
        number = self.number
        if type(other) is not type(number):
            return False
        if other == number:
            return math.copysign(1, other) == math.copysign(1, number)
        rounds = isinstance(number, float) and getattr(type_, "element", type_) is f32
        return rounds and _rounded(other) == _rounded(number)  # type: ignore[arg-type]


def _rounded(number: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return number


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters."""
    code = getattr(function, "__code__", None)
    if code is not None:
        return tuple(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    import inspect  # slow, and only for what is no plain function

    return tuple(inspect.signature(function).parameters)


class Computed:
    """A number or an attribute that a function computes of others, by its parameters' names."""

    __slots__ = ("function", "asked")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.asked = parameters_of(function)

    def __str__(self) -> str:
        return f"{self.function.__name__.strip('_')}({', '.join(self.asked)})"

    def of(self, bound: Mapping[str, Any]) -> Any:
        """The value for these bindings."""
        return self.function(*(bound[name] for name in self.asked))


class Term:
    """An operation of one result on terms, variables and numbers. Attributes are plain values,
    variables, or computed."""

    __slots__ = ("cls", "operands", "attributes", "name", "dialect", "commutes")

    def __init__(
        self,
        cls: type[Op],
        operands: Sequence[Expression],
        attributes: Mapping[str, Any],
        name: str = "",
    ) -> None:
        self.cls = cls
        self.operands = tuple(operands)
        self.attributes = dict(attributes)
        self.name = name
        self.dialect = cls.name.partition(".")[0]
        self.commutes = Commutative in cls.traits and len(self.operands) == 2

    def called(self, variable: Variable) -> Term:
        """The same term, whose value a condition may ask about by a parameter's name."""
        return Term(self.cls, self.operands, self.attributes, variable.name)

    def __str__(self) -> str:
        words = [*map(str, self.operands), *(f"{k}={v}" for k, v in self.attributes.items())]
        text = f"{self.cls.name.partition('.')[2]}({', '.join(words)})"
        return f"{self.name}: {text}" if self.name else text


Expression = Variable | ConstantTerm | Computed | Term


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
        if len(cls.result_fields) != 1 or not _takes_terms(cls):
            raise AttributeError(f"{cls.name} has no one result, or several groups of operands")
        op = cls

        def term(*operands: Expression | Number, **attributes: Any) -> Term:
            if op.plain_operands is not None and len(operands) != op.plain_operands:
                count = op.plain_operands
                raise UserError(f"{op.name} takes {count} operands, not {len(operands)}")
            unknown = attributes.keys() - op.attribute_fields
            if unknown:
                raise UserError(f"{op.name} has no attribute '{min(unknown)}'")
            for name, value in attributes.items():
                if isinstance(value, FunctionType):
                    attributes[name] = Computed(value)
            return Term(op, [expression(o) for o in operands], attributes)

        return term


def _takes_terms(cls: type[Op]) -> bool:
    """Whether terms give all operands: a fixed number, or one group of any number."""
    return cls.plain_operands is not None or len(cls.operand_fields) == 1


def expression(written: Any) -> Expression:
    """A term, a variable, a number, or a function that computes one. Raises UserError."""
    if isinstance(written, Variable | ConstantTerm | Computed | Term):
        return written
    if isinstance(written, bool | int | float):
        return ConstantTerm(written)
    if isinstance(written, FunctionType):
        return Computed(written)
    raise UserError(f"a rule is of terms, its parameters and numbers, not of {written!r}")


def names_in(term: Any) -> Iterator[str]:
    """The variables of an expression or an attribute, by name."""
    if isinstance(term, Variable):
        yield term.name
    elif isinstance(term, Computed):
        yield from term.asked
    elif isinstance(term, Term):
        if term.name:
            yield term.name
        for part in (*term.operands, *term.attributes.values()):
            yield from names_in(part)


# -- numbers that values are

_Read = Callable[[Value], Number | None]
_Make = Callable[[Builder, Number, Type], Value]
# How a dialect says what number a value is in every element, and makes such a value; which
# operations may give one.
_constants: dict[str, tuple[_Read, _Make, frozenset[type[Operation]]]] = {}


def register_constants(
    dialect: str, read: _Read, make: _Make, makers: Iterable[type[Operation]]
) -> None:
    """Say what number a value has in all its elements (None: not known, or not made by one of
    `makers`), and how it is made."""
    _constants[dialect] = read, make, frozenset(makers)


def make_constant(dialect: str, builder: Builder, number: Number, type_: Type) -> Value:
    """A value of a type (or of i1, for a truth value) that is a number in every element."""
    return _constants[dialect][1](builder, number, type_)


def may_match(term: Term, makers: Sequence[type], alike: bool) -> bool:
    """Whether operands made so can be those of a term; see `Pattern.may_match`."""
    operands = term.operands
    last = operands[-2:]
    if len(makers) != len(operands):
        return False
    if len(last) == 2 and last[0] is last[1] and isinstance(last[0], Variable) and not alike:
        return isinstance(last[0], NumberVariable)
    if _may_be(term.dialect, makers, operands):
        return True
    return Commutative in term.cls.traits and _may_be(term.dialect, makers[::-1], operands)


def _may_be(dialect: str, makers: Sequence[type], operands: Sequence[Expression]) -> bool:
    for maker, part in zip(makers, operands, strict=True):
        if isinstance(part, Term) and maker is not part.cls:
            return False
        if isinstance(part, ConstantTerm | NumberVariable) and maker not in _constants[dialect][2]:
            return False
    return True


# -- matching


class Match:
    """One attempt: what variables stand for, and the operations that take part."""

    __slots__ = ("bound", "inside")

    def __init__(self) -> None:
        self.bound: Bindings = {}
        self.inside: dict[Operation, None] = {}

    def op(self, op: Operation, term: Term, ignored: str = "") -> bool:
        """Whether an operation is what a term says; `ignored`: an attribute that doesn't matter."""
        if op.__class__ is not term.cls:
            return False
        if (op.attributes or term.attributes) and not self._attributes(op, term, ignored):
            return False
        operands = op._operands
        if len(operands) != len(term.operands):
            return False
        if term.commutes:
            kept = dict(self.bound), dict(self.inside)
            if not self._all(term, operands):
                self.bound, self.inside = kept
                if not self._all(term, (operands[1], operands[0])):
                    return False
        elif not self._all(term, operands):
            return False
        self.inside[op] = None
        if term.name:
            self.bound[term.name] = op.results[0]
        return True

    def value(self, value: Value, term: Expression, dialect: str) -> bool:
        """Whether a value is what an expression says."""
        cls = term.__class__
        if cls is Variable:
            bound = self.bound.setdefault(term.name, value)  # type: ignore[union-attr]
            return bound is value or _is_equal_constant(bound, value)
        if cls is Term:
            maker = value.defining_op
            return maker is not None and self.op(maker, term)  # type: ignore[arg-type]
        if cls is ConstantTerm:
            return term.equals(_constants[dialect][0](value), value.type)  # type: ignore[union-attr]
        if not isinstance(term, NumberVariable):
            return False
        number = _constants[dialect][0](value)
        if number is None:
            return False
        return ConstantTerm(self.bound.setdefault(term.name, number)).equals(number)

    def _all(self, term: Term, values: Sequence[Value]) -> bool:
        for value, expected in zip(values, term.operands):
            if not self.value(value, expected, term.dialect):
                return False
        return True

    def _attributes(self, op: Operation, term: Term, ignored: str) -> bool:
        """Whether the attributes are those written; a variable takes what the operation has."""
        written = {name: unwrap(value) for name, value in op.attributes.items() if name != ignored}
        for name, expected in term.attributes.items():
            if isinstance(expected, Variable):
                value = getattr(op, name)
                if self.bound.setdefault(expected.name, value) != value:
                    return False
                written.pop(name, None)
            elif isinstance(expected, Computed) or written.pop(name, _ABSENT) != expected:
                return False
        return not written


_ABSENT = object()


def _is_equal_constant(a: Value, b: Value) -> bool:
    """Whether two operations make one constant."""
    first, second = a.defining_op, b.defining_op
    if first is None or second is None or first.operands or a.type is not b.type:
        return False
    same = first.__class__ is second.__class__ and ConstantLike in first.traits
    return same and first.attributes == second.attributes


__all__ = [
    "RESULT", "Bindings", "Computed", "ConstantTerm", "Dialect", "Expression", "Match", "Number",
    "NumberVariable", "Term", "Variable", "expression", "make_constant", "may_match", "names_in",
    "parameters_of", "register_constants",
]  # fmt: skip
