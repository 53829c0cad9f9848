"""The text of a Dim: `s0*4 + 1`, `floordiv(s0, 2)`, `min(a, b)`, and its parser.

    sum     := ['-'] product (('+' | '-') product)*
    product := factor ('*' factor)*
    factor  := integer | '-' factor | word | word '(' [sum (',' sum)*] ')' | '(' sum ')'

Printing is deterministic and `parse_dim(format_dim(d))` is d. Input is bounded in length, depth
and size of integers; nothing in it is ever evaluated as Python.
"""

from __future__ import annotations

import re

from irc.ir.symbols.expr import (
    MAX_DEPTH,
    Dim,
    Expr,
    FloorDiv,
    Function,
    Product,
    Sum,
    Symbol,
    SymbolError,
    dim_product,
    dim_sum,
    function,
    symbol,
)

MAX_LENGTH = 1 << 16
"""Most characters in one expression."""
MAX_DIGITS = 100
"""Most digits in one integer."""

_TOKEN = re.compile(r"[ \t\r\n]*(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|([-+*(),])|(\Z)|(.))", re.S)


class SymbolSyntaxError(SymbolError):
    """Text that is no symbolic expression; `offset` counts characters from its start."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} (at offset {offset})")
        self.message = message
        self.offset = offset


def format_dim(d: Dim) -> str:
    """The canonical text of d."""
    if not isinstance(d, Expr):
        return str(d)
    if d._text is not None:
        return d._text
    if isinstance(d, Symbol):
        return d.name
    if isinstance(d, Product):
        return "*".join([str(f) for f in d.factors])
    if isinstance(d, Sum):
        return _format_sum(d)
    assert isinstance(d, Function)
    if isinstance(d, FloorDiv):
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
    parser = _Parser(text)
    try:
        result = parser.sum(0)
    except SymbolSyntaxError:
        raise
    except (SymbolError, ZeroDivisionError) as error:
        raise SymbolSyntaxError(str(error), parser.start) from error
    if parser.kind != "end":
        raise parser.error("expected an operator or the end")
    return result


class _Parser:
    """Recursive descent over one token of look-ahead."""

    __slots__ = ("kind", "position", "start", "text", "value")

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
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
        found = "the end" if self.kind == "end" else repr(self.value[:40])
        return SymbolSyntaxError(f"{message}, found {found}", self.start)

    def take(self, mark: str) -> bool:
        if self.kind != "mark" or self.value != mark:
            return False
        self.advance()
        return True

    def expect(self, mark: str) -> None:
        if not self.take(mark):
            raise self.error(f"expected '{mark}'")

    def sum(self, depth: int) -> Dim:
        # A level of text is a level of function nodes or a needless parenthesis.
        if depth > MAX_DEPTH:
            raise self.error(f"expression nested deeper than {MAX_DEPTH}")
        first = self.product(depth)
        if self.kind != "mark" or self.value not in "+-":
            return first
        terms = [first]
        while self.kind == "mark" and self.value in "+-":
            negative = self.value == "-"
            self.advance()
            term = self.product(depth)
            terms.append(-term if negative else term)
        return dim_sum(terms)

    def product(self, depth: int) -> Dim:
        first = self.factor(depth)
        if self.kind != "mark" or self.value != "*":
            return first
        factors = [first]
        while self.take("*"):
            factors.append(self.factor(depth))
        return dim_product(factors)

    def factor(self, depth: int) -> Dim:
        negative = False
        while self.take("-"):
            negative = not negative
        value = self.primary(depth)
        return -value if negative else value

    def primary(self, depth: int) -> Dim:
        if self.kind == "integer":
            if len(self.value) > MAX_DIGITS:
                raise SymbolSyntaxError(f"integer of more than {MAX_DIGITS} digits", self.start)
            value = int(self.value)
            self.advance()
            return value
        if self.kind == "word":
            name, start = self.value, self.start
            self.advance()
            try:
                if self.take("("):
                    return function(name, *self.arguments(depth + 1))
                return symbol(name)
            except SymbolSyntaxError:
                raise
            except (SymbolError, ZeroDivisionError, TypeError) as error:
                raise SymbolSyntaxError(str(error), start) from error
        if self.take("("):
            value = self.sum(depth + 1)
            self.expect(")")
            return value
        raise self.error("expected an integer, a name or '('")

    def arguments(self, depth: int) -> list[Dim]:
        if self.take(")"):
            return []
        arguments = [self.sum(depth)]
        while self.take(","):
            arguments.append(self.sum(depth))
        self.expect(")")
        return arguments
