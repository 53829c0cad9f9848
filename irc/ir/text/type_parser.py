"""Reading types and symbolic expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from irc.ir import types as T
from irc.ir.attributes import Attribute, Type
from irc.ir.symbols import Dim, Expr, SymbolError, SymbolSyntaxError, parse_dim
from irc.ir.text.lexer import Lexer

SHAPE = re.compile(r"[ \t\r\n]*((?:(?:[0-9]+|\?)[ ]?x[ ]?)*)", re.A)
INTEGER_TYPE = re.compile(r"(u|s)?i([0-9]+)\Z", re.A)
SIMPLE_TYPES: dict[str, Type] = {"index": T.index, "none": T.none, **T.FLOAT_TYPES}
TYPE_WORDS = ("tensor", "vector", "complex")


class TypeParser:
    """Reads types and symbolic expressions. `dialect_attribute` gives the alias, or the attribute
    or type of a dialect, that the next token begins."""

    def __init__(self, lexer: Lexer, dialect_attribute: Callable[[str], Attribute]) -> None:
        self.lexer = lexer
        self.dialect_attribute = dialect_attribute

    # -- symbolic expressions

    def dim(self, placeholder: Callable[[str, int], str] | None = None) -> Dim:
        """A symbolic expression, up to the first token that can't continue it.

        placeholder: gives the symbol that stands for a value `%name`, with its offset in the
        text; without it, values are not allowed.
        """
        lexer = self.lexer
        first = lexer.start
        end = first
        depth = 0
        pieces: list[str] | None = None
        while True:
            kind, token = lexer.kind, lexer.token
            if kind == "mark":
                if token == "(":
                    depth += 1
                elif token == ")":
                    if depth == 0:
                        break
                    depth -= 1
                elif token == ",":
                    if depth == 0:
                        break
                elif token not in "+-*":
                    break
            elif kind == "value" and placeholder is not None:
                pieces = [] if pieces is None else pieces
                pieces.append(lexer.text[end:lexer.start])
                pieces.append(placeholder(token, lexer.start))
                end = lexer.position
            elif kind != "word" and kind != "number":
                break
            lexer.advance()
            if pieces is None:
                end = lexer.last_end
            elif kind != "value":
                pieces.append(lexer.text[end:lexer.last_end])
                end = lexer.last_end
        if end == first and not pieces:
            lexer.fail_expecting("a symbolic expression")
        text = lexer.text[first:end] if pieces is None else "".join(pieces)
        try:
            return parse_dim(text)
        except SymbolSyntaxError as error:
            lexer.fail(error.message, first + error.offset if pieces is None else first)
        except SymbolError as error:
            lexer.fail(str(error), first)

    def dims(self, placeholder: Callable[[str, int], str] | None = None) -> tuple[Any, ...]:
        """A bracketed list of symbolic expressions; `?` gives None."""
        lexer = self.lexer
        lexer.expect("[")
        sizes: list[Dim | None] = []
        if not lexer.take("]"):
            while True:
                sizes.append(None if lexer.take("?") else self.dim(placeholder))
                if not lexer.take(","):
                    break
            lexer.expect("]")
        return tuple(sizes)

    # -- types

    def type(self) -> Type:
        """A type."""
        type_ = self.optional_type()
        if type_ is None:
            self.lexer.fail_expecting("a type")
        return type_

    def optional_type(self) -> Type | None:
        """A type if one is next, else None."""
        lexer = self.lexer
        kind, token = lexer.kind, lexer.token
        if kind == "word":
            simple = SIMPLE_TYPES.get(token)
            if simple is not None:
                lexer.advance()
                return simple
            match = INTEGER_TYPE.match(token)
            if match is not None:
                return self._integer_type(match)
            if token not in TYPE_WORDS:
                return None
            lexer.enter()
            lexer.advance()
            lexer.expect("<")
            type_ = getattr(self, f"_{token}_type")()
            lexer.expect(">")
            lexer.leave()
            return type_
        if kind == "mark" and token == "(":
            return self.function_type()
        if kind == "bang":
            type_ = self.dialect_attribute(token)
            if not isinstance(type_, Type):
                lexer.fail(f"'{token}' is not a type")
            return type_
        return None

    def _integer_type(self, match: re.Match[str]) -> Type:
        lexer = self.lexer
        width = int(match[2]) if len(match[2]) < 6 else 0
        if match[1] == "s":
            lexer.fail(f"'{lexer.token}': signed integer types are written i{match[2]} here")
        if not 1 <= width <= 128:
            lexer.fail(f"integer width {match[2]} is not between 1 and 128")
        lexer.advance()
        return T.IntegerType(width, match[1] == "u")

    def function_type(self) -> T.FunctionType:
        """`(inputs) -> results`."""
        lexer = self.lexer
        lexer.enter()
        inputs = self.parenthesized_types()
        lexer.expect("->")
        results = self.result_types()
        lexer.leave()
        return T.FunctionType(inputs, results)

    def parenthesized_types(self) -> tuple[Type, ...]:
        """`(T0, T1, ...)`."""
        lexer = self.lexer
        lexer.expect("(")
        if lexer.take(")"):
            return ()
        types = self.type_list()
        lexer.expect(")")
        return types

    def type_list(self) -> tuple[Type, ...]:
        """`T0, T1, ...`: at least one."""
        types = [self.type()]
        while self.lexer.take(","):
            types.append(self.type())
        return tuple(types)

    def result_types(self) -> tuple[Type, ...]:
        """What follows an arrow: one type, or several in parentheses."""
        lexer = self.lexer
        if not lexer.at("("):
            return (self.type(),)
        types = self.parenthesized_types()
        if lexer.at("->"):
            lexer.fail("a function type as a result stands in parentheses")
        return types

    def _complex_type(self) -> Type:
        element = self.type()
        if not isinstance(element, T.FloatType):
            place = self.lexer.last_start
            self.lexer.fail(f"complex numbers of {element} are not supported", place)
        return T.ComplexType(element)

    def _static_shape(self) -> list[int | None]:
        """`4x?x` before an element type; `?` gives None."""
        lexer = self.lexer
        start = lexer.start
        match = SHAPE.match(lexer.text, start)
        assert match is not None
        sizes: list[int | None] = []
        for size in match[1].replace(" ", "").split("x")[:-1]:
            sizes.append(None if size == "?" else lexer.size(size, start))
        if sizes:
            lexer.reset(match.end())
        return sizes

    def _vector_type(self) -> Type:
        lexer = self.lexer
        start = lexer.start
        sizes = self._static_shape()
        if None in sizes:
            lexer.fail("the sizes of a vector are integers", start)
        return T.VectorType(sizes, self.type())  # type: ignore[arg-type]

    def _tensor_type(self) -> Type:
        lexer = self.lexer
        start = lexer.start
        shape: tuple[Any, ...]
        if lexer.at("["):
            shape = self.dims()
            if not (lexer.kind == "word" and lexer.token[0] == "x"):
                lexer.fail_expecting("'x' and the element type")
            lexer.reset(lexer.start + 1)
        else:
            shape = tuple(self._static_shape())
        element = self.type()
        strides = None
        device = "cpu"
        while lexer.take(","):
            if lexer.take("strides"):
                strides = self.dims()
            elif lexer.kind == "string":
                device = lexer.string()
            else:
                shape, strides, device = self._encoding(shape)
        if None in shape:
            lexer.fail("size '?' has no symbol: write tensor<[s0, 4] x f32>", start)
        if strides is not None and None in strides:
            lexer.fail("stride '?' has no symbol", start)
        return lexer.build(start, T.TensorType, shape, element, strides, device)

    def _encoding(self, sizes: tuple[Any, ...]) -> tuple[Any, Any, str]:
        """Sizes, strides and device that MLIR's encoding attribute holds."""
        lexer = self.lexer
        start, name = lexer.start, lexer.token
        if name not in ("#sym.shape", "#irc.layout"):
            lexer.fail_expecting("'strides', a device or the encoding #sym.shape or #irc.layout")
        lexer.advance()
        lexer.expect("<")
        shape = self.dims()
        strides = None
        device = "cpu"
        if name == "#irc.layout":
            lexer.expect(",")
            strides = None if lexer.take("none") else self.dims()
            if lexer.take(","):
                device = lexer.string()
        lexer.expect(">")
        known = [None if isinstance(s, Expr) else s for s in shape]
        if known != list(sizes):
            lexer.fail(f"the sizes {list(sizes)} and {known} differ", start)
        return shape, strides, device
