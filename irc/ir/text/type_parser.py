"""Reading types and symbolic expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from irc.ir import types as T
from irc.ir.attributes import Attribute, Type
from irc.ir.symbols import Dim, Expr, SymbolError, SymbolSyntaxError, parse_dim
from irc.ir.text.lexer import Lexer

SHAPE = re.compile(r"[ \t\r\n]*((?:(?:[0-9]+|\?)[ ]?x[ ]?)*)", re.A)
INTEGER_TYPE = re.compile(r"(u|s)?i([0-9]+)\Z", re.A)
SIMPLE_TYPES: dict[str, Type] = {"index": T.index, "none": T.none, **T.FLOAT_TYPES}
TYPE_WORDS = ("tensor", "vector", "complex")

Built = TypeVar("Built")


class TypeParser(Lexer):
    """Reads types and symbolic expressions."""

    def dialect_attribute(self, token: str) -> Attribute:
        """The alias, or the attribute or type of a dialect, that the next token begins."""
        raise NotImplementedError

    # -- symbolic expressions

    def dim(self, placeholder: Callable[[str, int], str] | None = None) -> Dim:
        """A symbolic expression, up to the first token that can't continue it.

        placeholder: gives the symbol that stands for a value `%name`, with its offset in the
        text; without it, values are not allowed.
        """
        first = self.start
        end = first
        depth = 0
        pieces: list[str] | None = None
        while True:
            kind, token = self.kind, self.token
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
                pieces.append(self.text[end:self.start])
                pieces.append(placeholder(token, self.start))
                end = self.position
            elif kind != "word" and kind != "number":
                break
            self.advance()
            if pieces is None:
                end = self.last_end
            elif kind != "value":
                pieces.append(self.text[end:self.last_end])
                end = self.last_end
        if end == first and not pieces:
            self.fail_expecting("a symbolic expression")
        text = self.text[first:end] if pieces is None else "".join(pieces)
        try:
            return parse_dim(text)
        except SymbolSyntaxError as error:
            self.fail(error.message, first + error.offset if pieces is None else first)
        except SymbolError as error:
            self.fail(str(error), first)

    def dims(self, placeholder: Callable[[str, int], str] | None = None) -> tuple[Any, ...]:
        """A bracketed list of symbolic expressions; `?` gives None."""
        self.expect("[")
        sizes: list[Dim | None] = []
        if not self.take("]"):
            while True:
                sizes.append(None if self.take("?") else self.dim(placeholder))
                if not self.take(","):
                    break
            self.expect("]")
        return tuple(sizes)

    # -- types

    def type(self) -> Type:
        """A type."""
        type_ = self.optional_type()
        if type_ is None:
            self.fail_expecting("a type")
        return type_

    def optional_type(self) -> Type | None:
        """A type if one is next, else None."""
        kind, token = self.kind, self.token
        if kind == "word":
            simple = SIMPLE_TYPES.get(token)
            if simple is not None:
                self.advance()
                return simple
            match = INTEGER_TYPE.match(token)
            if match is not None:
                return self._integer_type(match)
            if token not in TYPE_WORDS:
                return None
            self.enter()
            self.advance()
            self.expect("<")
            type_ = getattr(self, f"_{token}_type")()
            self.expect(">")
            self.leave()
            return type_
        if kind == "mark" and token == "(":
            return self.function_type()
        if kind == "bang":
            type_ = self.dialect_attribute(token)
            if not isinstance(type_, Type):
                self.fail(f"'{token}' is not a type")
            return type_
        return None

    def _integer_type(self, match: re.Match[str]) -> Type:
        width = int(match[2]) if len(match[2]) < 6 else 0
        if match[1] == "s":
            self.fail(f"'{self.token}': signed integer types are written i{match[2]} here")
        if not 1 <= width <= 128:
            self.fail(f"integer width {match[2]} is not between 1 and 128")
        self.advance()
        return T.IntegerType(width, match[1] == "u")

    def function_type(self) -> T.FunctionType:
        """`(inputs) -> results`."""
        self.enter()
        inputs = self.parenthesized_types()
        self.expect("->")
        results = self.result_types()
        self.leave()
        return T.FunctionType(inputs, results)

    def parenthesized_types(self) -> tuple[Type, ...]:
        """`(T0, T1, ...)`."""
        self.expect("(")
        if self.take(")"):
            return ()
        types = self.type_list()
        self.expect(")")
        return types

    def type_list(self) -> tuple[Type, ...]:
        """`T0, T1, ...`: at least one."""
        types = [self.type()]
        while self.take(","):
            types.append(self.type())
        return tuple(types)

    def result_types(self) -> tuple[Type, ...]:
        """What follows an arrow: one type, or several in parentheses."""
        if not self.at("("):
            return (self.type(),)
        types = self.parenthesized_types()
        if self.at("->"):
            self.fail("a function type as a result stands in parentheses")
        return types

    def _complex_type(self) -> Type:
        element = self.type()
        if not isinstance(element, T.FloatType):
            self.fail(f"complex numbers of {element} are not supported", self._last_start)
        return T.ComplexType(element)

    @property
    def _last_start(self) -> int:
        return max(0, self.last_end - 1)

    def _static_shape(self) -> list[int | None]:
        """`4x?x` before an element type; `?` gives None."""
        start = self.start
        match = SHAPE.match(self.text, start)
        assert match is not None
        sizes: list[int | None] = []
        for size in match[1].replace(" ", "").split("x")[:-1]:
            sizes.append(None if size == "?" else self.size(size, start))
        if sizes:
            self.reset(match.end())
        return sizes

    def _vector_type(self) -> Type:
        start = self.start
        sizes = self._static_shape()
        if None in sizes:
            self.fail("the sizes of a vector are integers", start)
        return T.VectorType(sizes, self.type())  # type: ignore[arg-type]

    def _tensor_type(self) -> Type:
        start = self.start
        shape: tuple[Any, ...]
        if self.at("["):
            shape = self.dims()
            if not (self.kind == "word" and self.token[0] == "x"):
                self.fail_expecting("'x' and the element type")
            self.reset(self.start + 1)
        else:
            shape = tuple(self._static_shape())
        element = self.type()
        strides = None
        device = "cpu"
        while self.take(","):
            if self.take("strides"):
                strides = self.dims()
            elif self.kind == "string":
                device = self.string()
            else:
                shape, strides, device = self._encoding(shape)
        if None in shape:
            self.fail("size '?' has no symbol: write tensor<[s0, 4] x f32>", start)
        if strides is not None and None in strides:
            self.fail("stride '?' has no symbol", start)
        return self.build(start, T.TensorType, shape, element, strides, device)

    def _encoding(self, sizes: tuple[Any, ...]) -> tuple[Any, Any, str]:
        """Sizes, strides and device that MLIR's encoding attribute holds."""
        start, name = self.start, self.token
        if name not in ("#sym.shape", "#irc.layout"):
            self.fail_expecting("'strides', a device or the encoding #sym.shape or #irc.layout")
        self.advance()
        self.expect("<")
        shape = self.dims()
        strides = None
        device = "cpu"
        if name == "#irc.layout":
            self.expect(",")
            strides = None if self.take("none") else self.dims()
            if self.take(","):
                device = self.string()
        self.expect(">")
        known = [None if isinstance(s, Expr) else s for s in shape]
        if known != list(sizes):
            self.fail(f"the sizes {list(sizes)} and {known} differ", start)
        return shape, strides, device

    def build(self, start: int, make: Callable[..., Built], *parameters: Any) -> Built:
        """`make(*parameters)`, with what is wrong with them as an error at `start`."""
        try:
            return make(*parameters)
        except (ValueError, TypeError, AttributeError) as error:
            self.fail(str(error), start)
