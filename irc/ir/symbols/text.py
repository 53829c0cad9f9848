"""The text of a Dim: `s0*4 + 1`, `floordiv(s0, 2)`, `min(a, b)`, and its parser.

    sum     := ['-'] product (('+' | '-') product)*
    product := factor ('*' factor)*
    factor  := integer | '-' factor | word | word '(' [sum (',' sum)*] ')' | '(' sum ')'

Printing is deterministic and `parse_dim(format_dim(d))` is d. Input is bounded in length, depth
and size of integers; nothing in it is ever evaluated as Python.
"""

from __future__ import annotations

import re

from irc.ir.hooks import says
from irc.ir.symbols.division import function
from irc.ir.symbols.expr import (
    DEEP,
    MAX_DEPTH,
    Dim,
    Expr,
    FloorQuotient,
    Function,
    Product,
    Sum,
    Symbol,
    SymbolError,
    dim_product,
    dim_sum,
    postorder,
    symbol,
)

MAX_LENGTH = 1 << 16
"""Most characters in one expression."""
MAX_DIGITS = 100
"""Most digits in one integer."""
LARGEST = (1 << 63) - 1
"""Largest integer in a text: what sizes, strides and places in memory are counted in."""

_TOKEN = re.compile(r"[ \t\r\n]*(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|([-+*(),])|(\Z)|(.))", re.S)


class SymbolSyntaxError(SymbolError):
    """Text that is no symbolic expression; `offset` counts characters from its start."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} (at offset {offset})")
        self.message = message
        self.offset = offset


@says(Expr, method="__str__")
def _text(d: Expr) -> str:
    text = d._text
    if text is None:
        text = format_dim(d)
        d.remember_text(text)
    return text


@says(Expr, method="__reduce__")
def _reduced(d: Expr) -> tuple[object, tuple[str]]:
    return parse_dim, (str(d),)


def format_dim(d: Dim) -> str:
    """The canonical text of d."""
    if not isinstance(d, Expr):
        return str(d)
    if d._text is not None:
        return d._text
    if d.depth > DEEP:
        for part in postorder(d):
            part.remember_text(_format(part))
    return _format(d)


def _format(d: Expr) -> str:
    if isinstance(d, Symbol):
        return d.name
    if isinstance(d, Product):
        return "*".join([str(f) for f in d.factors])
    if isinstance(d, Sum):
        return _format_sum(d)
    assert isinstance(d, Function)
    if isinstance(d, FloorQuotient):
        numerator, divisor = d.arguments
        # ceildiv(x, c) is held as floordiv(x + c-1, c); no other numerator ends in c-1.
        if type(divisor) is int and type(numerator) is Sum and numerator.constant == divisor - 1:
            return f"ceildiv({numerator - (divisor - 1)}, {divisor})"
    return f"{d.name}({', '.join([str(a) for a in d.arguments])})"


def _format_sum(d: Sum) -> str:
    parts: list[str] = []
    for monomial, coefficient in zip(d.monomials, d.coefficients, strict=True):
        sign = "-" if coefficient < 0 else "+"
        size = abs(coefficient)
        text = str(monomial) if size == 1 else f"{monomial}*{size}"
        if parts:
            parts.append(f" {sign} {text}")
        else:
            parts.append(f"-{text}" if sign == "-" else text)
    if d.constant:
        parts.append(f" {'-' if d.constant < 0 else '+'} {abs(d.constant)}")
    return "".join(parts)


def parse_dim(text: str) -> Dim:
    """The Dim that text denotes; SymbolSyntaxError when it denotes none or is out of bounds."""
    if len(text) > MAX_LENGTH:
        raise SymbolSyntaxError(f"expression longer than {MAX_LENGTH} characters", MAX_LENGTH)
    parser = _DimParser(text)
    try:
        return parser.parse()
    except SymbolSyntaxError:
        raise
    except (SymbolError, ZeroDivisionError, TypeError, RecursionError) as error:
        raise SymbolSyntaxError(str(error), parser.blame) from error


class _Group:
    """What is read so far of one parenthesis, of one call's argument, or of the whole."""

    __slots__ = ("arguments", "factors", "name", "negative", "start", "subtract", "terms")

    def __init__(self, name: str | None, start: int) -> None:
        self.name = name
        self.start = start
        self.arguments: list[Dim] = []
        self.restart()

    def restart(self) -> None:
        self.terms: list[Dim] = []
        self.factors: list[Dim] = []
        self.negative = False
        self.subtract = False

    def add_factor(self, value: Dim) -> None:
        self.factors.append(-value if self.negative else value)
        self.negative = False

    def end_term(self, subtract_next: bool) -> None:
        factors = self.factors
        term = factors[0] if len(factors) == 1 else dim_product(factors)
        self.terms.append(-term if self.subtract else term)
        self.factors = []
        self.subtract = subtract_next

    def value(self) -> Dim:
        self.end_term(False)
        return self.terms[0] if len(self.terms) == 1 else dim_sum(self.terms)


class _DimParser:
    """One token of look-ahead and an explicit stack of groups: no recursion on input."""

    __slots__ = ("blame", "group", "kind", "position", "stack", "start", "text", "value")

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.blame = 0
        self.group = _Group(None, 0)
        self.stack: list[_Group] = []
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.position)
        assert match is not None and match.lastindex is not None
        self.start = match.start(match.lastindex)
        self.position = match.end()
        self.value = match[match.lastindex]
        self.kind = ("integer", "word", "mark", "end", "other")[match.lastindex - 1]
        if self.kind == "other":
            raise self.error("unexpected character")

    def error(self, message: str) -> SymbolSyntaxError:
        token = "the end" if self.kind == "end" else repr(self.value[:40])
        return SymbolSyntaxError(f"{message}, found {token}", self.start)

    def take(self, mark: str) -> bool:
        if self.kind != "mark" or self.value != mark:
            return False
        self.advance()
        return True

    def open(self, name: str | None, start: int) -> None:
        # A level of text is a level of function nodes or a needless parenthesis.
        if len(self.stack) >= MAX_DEPTH:
            raise SymbolSyntaxError(f"expression nested deeper than {MAX_DEPTH}", start)
        self.stack.append(self.group)
        self.group = _Group(name, start)

    def close(self, arguments: list[Dim]) -> Dim:
        name, self.blame = self.group.name, self.group.start
        self.group = self.stack.pop()
        return arguments[0] if name is None else function(name, *arguments)

    def parse(self) -> Dim:
        while True:
            self.blame = self.start
            value = self.operand()
            if value is not None and self.after(value):
                return self.group.value()

    def operand(self) -> Dim | None:
        """The next operand, None when it opens a group whose operands come first."""
        while self.take("-"):
            self.group.negative = not self.group.negative
        start, text = self.start, self.value
        self.blame = start
        if self.kind == "integer":
            if len(text) > MAX_DIGITS:
                raise SymbolSyntaxError(f"integer of more than {MAX_DIGITS} digits", start)
            if int(text) > LARGEST:
                raise SymbolSyntaxError(f"{text[:30]} does not fit 64 bits", start)
            self.advance()
            return int(text)
        if self.kind == "word":
            self.advance()
            if not self.take("("):
                return symbol(text)
            self.open(text, start)
            return self.close([]) if self.take(")") else None
        if self.take("("):
            self.open(None, start)
            return None
        raise self.error("expected an integer, a name or '('")

    def after(self, value: Dim) -> bool:
        """Places an operand, closes what it ends; whether the whole text is read."""
        while True:
            group = self.group
            group.add_factor(value)
            if self.take("*"):
                return False
            if self.kind == "mark" and self.value in "+-":
                group.end_term(self.value == "-")
                self.advance()
                return False
            if not self.stack:
                if self.kind != "end":
                    raise self.error("expected an operator or the end")
                return True
            if group.name is not None and self.take(","):
                group.arguments.append(group.value())
                group.restart()
                return False
            if not self.take(")"):
                raise self.error("expected ')'")
            value = self.close([*group.arguments, group.value()])
