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
    start = parser.start
    parser.advance()
    parser.expect("<")
    literals: list[Literal | tuple[Literal, Literal]] = []
    blob: bytes | None = None
    shape: list[int] | None = None
    if parser.kind == "string":
        blob = _blob(parser)
    elif not parser.at(">"):
        shape = _elements(parser, literals)
    parser.expect(">")
    parser.expect(":")
    type_ = parser.type()
    if not isinstance(type_, T.TensorType | T.VectorType):
        parser.fail(f"dense elements of the type {type_}", start)
    if any(not isinstance(size, int) for size in type_.shape):
        parser.fail(f"dense elements need static sizes, not {type_}", start)
    expected = list(type_.shape)
    count = math.prod(expected)
    if blob is not None:
        size = T.element_bytes(type_.element)
        if len(blob) not in (size, size * count):
            parser.fail(f"{len(blob)} bytes for {count} elements of {size} bytes", start)
        return A.DenseAttr(type_, blob)
    if shape is None:
        if count:
            parser.fail(f"no elements given for {type_}", start)
        return A.DenseAttr(type_, b"")
    if shape and shape != expected:
        parser.fail(f"elements of shape {shape} for {type_}", start)
    return A.DenseAttr(type_, b"".join([_encode(parser, v, type_.element) for v in literals]))


def parse_array(parser: AttributeParser) -> Attribute:
    """`array<i64: 1, 2>`, the word `array` being next."""
    parser.advance()
    parser.expect("<")
    start = parser.start
    element = parser.optional_type()
    if not isinstance(element, T.IntegerType | T.FloatType):
        parser.fail("array<...> holds integers or floats", start)
    values: list[Any] = []
    if parser.take(":"):
        read = parser.integer if element is T.i64 else lambda: _array_element(parser, element)
        values.append(read())
        while parser.take(","):
            values.append(read())
    parser.expect(">")
    if element is T.i64:
        return A.DenseIntsAttr(values)
    return A.DenseArrayAttr(element, tuple(values))


def _array_element(parser: AttributeParser, element: T.IntegerType | T.FloatType) -> Attribute:
    token, negative, start = _literal(parser)
    if isinstance(element, T.FloatType):
        if token in ("true", "false"):
            parser.fail(f"{token} is no element of {element}", start)
        return A.FloatAttr(parser.float_value(token, negative, element, start), element)
    if token in ("true", "false") and element is T.i1:
        return A.BoolAttr(token == "true")
    if "." in token or not token[0].isdigit():
        parser.fail(f"{token} is no element of {element}", start)
    number = -parser.to_int(token) if negative else parser.to_int(token)
    element_attr = parser.build(start, A.IntegerAttr, number, element)
    return A.BoolAttr(bool(element_attr.value)) if element is T.i1 else element_attr


def _blob(parser: AttributeParser) -> bytes:
    start = parser.start
    text = parser.string()
    if not text.startswith("0x"):
        parser.fail('bytes are written "0x..."', start)
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        parser.fail("these are not hexadecimal bytes", start)


def _elements(
    parser: AttributeParser, into: list[Literal | tuple[Literal, Literal]]
) -> list[int]:
    """Reads one element or nested lists of them into `into`; gives the shape."""
    if parser.take("("):
        real = _literal(parser)
        parser.expect(",")
        into.append((real, _literal(parser)))
        parser.expect(")")
        return []
    if not parser.at("["):
        into.append(_literal(parser))
        return []
    start = parser.start
    parser.enter()
    parser.advance()
    count = 0
    inner: list[int] | None = None
    while not parser.at("]"):
        shape = _elements(parser, into)
        if inner is not None and shape != inner:
            parser.fail("the rows of these elements differ in length", start)
        inner = shape
        count += 1
        if not parser.take(","):
            break
    parser.expect("]")
    parser.leave()
    return [count, *(inner or [])]


def _literal(parser: AttributeParser) -> Literal:
    start = parser.start
    negative = parser.take("-")
    token = parser.token
    if parser.kind != "number" and (negative or token not in ("true", "false")):
        parser.fail_expecting("a number")
    parser.advance()
    return token, negative, start


def _encode(
    parser: AttributeParser, literal: Literal | tuple[Literal, Literal], element: Type
) -> bytes:
    if isinstance(element, T.ComplexType):
        if len(literal) != 2:
            parser.fail("an element is a pair (real, imaginary)", literal[2])
        return b"".join([_encode(parser, part, element.element) for part in literal])
    if len(literal) == 2:
        parser.fail(f"a pair is no element of {element}", literal[0][2])
    token, negative, start = literal
    size = T.element_bytes(element)
    if isinstance(element, T.FloatType):
        if token in ("true", "false"):
            parser.fail(f"{token} is no element of {element}", start)
        value = parser.float_value(token, negative, element, start)
        return float_bits(value, element.name).to_bytes(size, "little")
    if token in ("true", "false"):
        number = int(token == "true")
    elif "." in token:
        parser.fail(f"{token} is no element of {element}", start)
    else:
        number = -parser.to_int(token) if negative else parser.to_int(token)
    width = 1 if element is T.i1 else size * 8
    lowest = 0 if getattr(element, "unsigned", False) else -(1 << (width - 1))
    if not lowest <= number < (1 << width):
        parser.fail(f"{number} does not fit {element}", start)
    if element is T.i1:
        number &= 1
    return (number & ((1 << (size * 8)) - 1)).to_bytes(size, "little")
