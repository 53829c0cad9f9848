"""Reading `dense<...> : type`: elements listed, one for all, or bytes in hexadecimal; and
`array<type: ...>`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.attributes import Attribute, Type
from irc.ir.floats import float_bits

if TYPE_CHECKING:
    from irc.ir.text.attribute_parser import AttributeParser

# A number as read: its token, whether a minus stood before it, and where; a pair is complex.
Literal = tuple[str, bool, int]


def parse_dense(parser: AttributeParser) -> A.DenseAttr:
    """`dense<...> : tensor<...>`, the word `dense` being next."""
    lexer = parser.lexer
    start = lexer.start
    lexer.advance()
    lexer.expect("<")
    literals: list[Literal | tuple[Literal, Literal]] = []
    blob: bytes | None = None
    shape: list[int] | None = None
    if lexer.kind == "string":
        blob = _blob(parser)
    elif not lexer.at(">"):
        shape = _elements(parser, literals)
    lexer.expect(">")
    lexer.expect(":")
    type_ = parser.types.type()
    if not isinstance(type_, T.TensorType | T.VectorType):
        lexer.fail(f"dense elements of the type {type_}", start)
    if any(not isinstance(size, int) for size in type_.shape):
        lexer.fail(f"dense elements need static sizes, not {type_}", start)
    expected = list(type_.shape)
    count = math.prod(expected)
    if blob is not None:
        size = T.element_bytes(type_.element)
        if len(blob) not in (size, size * count):
            lexer.fail(f"{len(blob)} bytes for {count} elements of {size} bytes", start)
        return A.DenseAttr(type_, blob)
    if shape is None:
        if count:
            lexer.fail(f"no elements given for {type_}", start)
        return A.DenseAttr(type_, b"")
    if shape and shape != expected:
        lexer.fail(f"elements of shape {shape} for {type_}", start)
    return A.DenseAttr(type_, b"".join([_encode(parser, v, type_.element) for v in literals]))


def parse_array(parser: AttributeParser) -> Attribute:
    """`array<i64: 1, 2>`, the word `array` being next."""
    lexer = parser.lexer
    lexer.advance()
    lexer.expect("<")
    start = lexer.start
    element = parser.types.optional_type()
    if not isinstance(element, T.IntegerType | T.FloatType):
        lexer.fail("array<...> holds integers or floats", start)
    values: list[Any] = []
    if lexer.take(":"):
        read = lexer.integer if element is T.i64 else lambda: _array_element(parser, element)
        values.append(read())
        while lexer.take(","):
            values.append(read())
    lexer.expect(">")
    if element is T.i64:
        return A.DenseIntsAttr(values)
    return A.DenseArrayAttr(element, tuple(values))


def _array_element(parser: AttributeParser, element: T.IntegerType | T.FloatType) -> Attribute:
    lexer = parser.lexer
    token, negative, start = _literal(parser)
    if isinstance(element, T.FloatType):
        if token in ("true", "false"):
            lexer.fail(f"{token} is no element of {element}", start)
        return A.FloatAttr(parser.float_value(token, negative, element, start), element)
    if token in ("true", "false") and element is T.i1:
        return A.BoolAttr(token == "true")
    if "." in token or not token[0].isdigit():
        lexer.fail(f"{token} is no element of {element}", start)
    number = -lexer.to_int(token) if negative else lexer.to_int(token)
    element_attr = lexer.build(start, A.IntegerAttr, number, element)
    return A.BoolAttr(bool(element_attr.value)) if element is T.i1 else element_attr


def _blob(parser: AttributeParser) -> bytes:
    lexer = parser.lexer
    start = lexer.start
    text = lexer.string()
    if not text.startswith("0x"):
        lexer.fail('bytes are written "0x..."', start)
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        lexer.fail("these are not hexadecimal bytes", start)


def _elements(
    parser: AttributeParser, into: list[Literal | tuple[Literal, Literal]]
) -> list[int]:
    """Reads one element or nested lists of them into `into`; gives the shape."""
    lexer = parser.lexer
    if lexer.take("("):
        real = _literal(parser)
        lexer.expect(",")
        into.append((real, _literal(parser)))
        lexer.expect(")")
        return []
    if not lexer.at("["):
        into.append(_literal(parser))
        return []
    start = lexer.start
    lexer.enter()
    lexer.advance()
    count = 0
    inner: list[int] | None = None
    while not lexer.at("]"):
        shape = _elements(parser, into)
        if inner is not None and shape != inner:
            lexer.fail("the rows of these elements differ in length", start)
        inner = shape
        count += 1
        if not lexer.take(","):
            break
    lexer.expect("]")
    lexer.leave()
    return [count, *(inner or [])]


def _literal(parser: AttributeParser) -> Literal:
    lexer = parser.lexer
    start = lexer.start
    negative = lexer.take("-")
    token = lexer.token
    if lexer.kind != "number" and (negative or token not in ("true", "false")):
        lexer.fail_expecting("a number")
    lexer.advance()
    return token, negative, start


def _encode(
    parser: AttributeParser, literal: Literal | tuple[Literal, Literal], element: Type
) -> bytes:
    lexer = parser.lexer
    if isinstance(element, T.ComplexType):
        if len(literal) != 2:
            lexer.fail("an element is a pair (real, imaginary)", literal[2])
        return b"".join([_encode(parser, part, element.element) for part in literal])
    if len(literal) == 2:
        lexer.fail(f"a pair is no element of {element}", literal[0][2])
    token, negative, start = literal
    size = T.element_bytes(element)
    if isinstance(element, T.FloatType):
        if token in ("true", "false"):
            lexer.fail(f"{token} is no element of {element}", start)
        value = parser.float_value(token, negative, element, start)
        return float_bits(value, element.name).to_bytes(size, "little")
    if token in ("true", "false"):
        number = int(token == "true")
    elif "." in token:
        lexer.fail(f"{token} is no element of {element}", start)
    else:
        number = -lexer.to_int(token) if negative else lexer.to_int(token)
    width = 1 if element is T.i1 else size * 8
    lowest = 0 if getattr(element, "unsigned", False) else -(1 << (width - 1))
    if not lowest <= number < (1 << width):
        lexer.fail(f"{number} does not fit {element}", start)
    if element is T.i1:
        number &= 1
    return (number & ((1 << (size * 8)) - 1)).to_bytes(size, "little")
