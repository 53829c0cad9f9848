"""The text of attributes and types, in irc's own style and in MLIR's.

The two differ in what MLIR can't read: symbolic sizes, strides and devices of tensors stand in
the encoding attribute there, and a resource's type inside its brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.attributes import Attribute
from irc.ir.floats import bits_float, format_float
from irc.ir.hooks import says
from irc.ir.location import FileLocation, FusedLocation, NameLocation, UnknownLocation
from irc.ir.symbols import Dim, Expr, format_dim

BARE_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*\Z")
MAX_LISTED_ELEMENTS = 64
# A symbol that looks like one of these is wrapped where a type or a keyword may stand.
RESERVED_FIELD = re.compile(
    r"(?:none|true|false|index|dim|type|tensor|vector|complex|memref|tuple|array|dense|loc|unit"
    r"|affine_map|affine_set|sparse|strided"
    r"|u?i[0-9]+|b?f[0-9]+\w*)\b"
)


class TextWriter:
    """Collects text. Attributes that choose their own form write through one of these."""

    __slots__ = ("out", "generic")

    def __init__(self, generic: bool = False) -> None:
        self.out: list[str] = []
        self.generic = generic

    def text(self, text: str) -> None:
        """Write `text` as it is."""
        self.out.append(text)

    def string(self, value: str) -> None:
        """Write a quoted string."""
        self.out.append(quote(value))

    def dim(self, dim: Dim) -> None:
        """Write a symbolic expression."""
        self.out.append(format_dim(dim))

    def dims(self, dims: Iterable[Dim | None]) -> None:
        """Write a bracketed list of symbolic expressions, `?` for None."""
        self.out.append(dims_text(dims))

    def attribute(self, attr: Attribute) -> None:
        """Write an attribute or a type."""
        self.out.append(attribute_text(attr, self.generic))

    type = attribute

    def separated(
        self, items: Iterable[Any], write: Callable[[Any], None], mark: str = ", "
    ) -> None:
        """Write each item by `write`, with `mark` between."""
        between = False
        for item in items:
            if between:
                self.out.append(mark)
            write(item)
            between = True

    def entry(self, item: tuple[str, Attribute]) -> None:
        """Write `name = attribute`, or the name alone of a flag."""
        name, attr = item
        self.out.append(name_text(name))
        if attr is not A.UNIT:
            self.out.append(" = ")
            self.attribute(attr)

    def attribute_dict(self, entries: Iterable[tuple[str, Attribute]]) -> None:
        """Write `{name = attribute, flag}`."""
        self.out.append("{")
        self.separated(entries, self.entry)
        self.out.append("}")


def attribute_text(attr: Attribute, generic: bool = False) -> str:
    """The text of an attribute or type; `generic`: the form that MLIR's tools read."""
    if not generic:
        known = attr._text
        if known is None:
            known = attr._text = _write(attr, False)
        return known
    text = _generic_texts.get(attr)
    if text is None:
        text = _write(attr, True)
        if len(_generic_texts) > 1 << 16:
            _generic_texts.clear()
        _generic_texts[attr] = text
    return text


_generic_texts: dict[Attribute, str] = {}


@says(Attribute, method="__str__")
def _text(attr: Attribute) -> str:
    return attr._text or attribute_text(attr)


def _write(attr: Attribute, generic: bool) -> str:
    write = _WRITERS.get(attr.__class__)
    if write is not None:
        return write(attr, generic)
    return _dialect_text(attr, generic)


# -- pieces


def quote(value: str) -> str:
    """A string in quotes. Characters that don't print are escaped as bytes of UTF-8."""
    if value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    parts = []
    for character in value:
        if character == '"':
            parts.append('\\"')
        elif character == "\\":
            parts.append("\\\\")
        elif character.isprintable():
            parts.append(character)
        else:
            raw = character.encode("utf-8", "surrogatepass")
            parts.extend(f"\\{byte:02X}" for byte in raw)
    return f'"{"".join(parts)}"'


def name_text(name: str) -> str:
    """A name, in quotes unless it is a plain word."""
    return name if BARE_WORD.match(name) else quote(name)


def dims_text(dims: Iterable[Dim | None]) -> str:
    """A bracketed list of symbolic expressions, `?` for None."""
    return f"[{', '.join(['?' if d is None else format_dim(d) for d in dims])}]"


def dict_text(entries: Iterable[tuple[str, Attribute]], generic: bool = False) -> str:
    """`{name = attribute, flag}`, in the order given."""
    parts = []
    for name, attr in entries:
        key = name_text(name)
        parts.append(key if attr is A.UNIT else f"{key} = {attribute_text(attr, generic)}")
    return f"{{{', '.join(parts)}}}"


def _join(attrs: Iterable[Attribute], generic: bool) -> str:
    return ", ".join([attribute_text(a, generic) for a in attrs])


# -- builtin attributes


def _integer(attr: A.IntegerAttr, generic: bool) -> str:
    value, type_ = attr.parameters
    return f"{value} : {attribute_text(type_, generic)}"


def _float(attr: A.FloatAttr, generic: bool) -> str:
    value, type_ = attr.parameters
    return f"{format_float(value, type_.name)} : {type_.name}"


def _dense(attr: A.DenseAttr, generic: bool) -> str:
    type_, data = attr.parameters
    element = type_.element
    size = T.element_bytes(element)
    count = len(data) // size
    # MLIR packs the bits of i1 in its hexadecimal form, so these are always listed.
    if count <= MAX_LISTED_ELEMENTS or (generic and element is T.i1):
        shape = list(type_.shape)
        values = [_element(data[k : k + size], element) for k in range(0, len(data), size)]
        total = 1
        for extent in shape:
            total = total * extent
        if count == 1 and total != 0:
            body = values[0]
        elif count == 0:
            body = ""
        else:
            body = _nested(values, shape)
    else:
        body = f'"0x{data.hex().upper()}"'
    return f"dense<{body}> : {attribute_text(type_, generic)}"


def _nested(values: list[str], shape: list[int]) -> str:
    if len(shape) <= 1:
        return f"[{', '.join(values)}]"
    step = len(values) // shape[0]
    rows = [_nested(values[k : k + step], shape[1:]) for k in range(0, len(values), step)]
    return f"[{', '.join(rows)}]"


def _element(raw: bytes, element: A.Type) -> str:
    if isinstance(element, T.ComplexType):
        half = len(raw) // 2
        return f"({_element(raw[:half], element.element)}, {_element(raw[half:], element.element)})"
    bits = int.from_bytes(raw, "little")
    if isinstance(element, T.FloatType):
        return format_float(bits_float(bits, element.name), element.name)
    if element is T.i1:
        return "true" if bits else "false"
    if isinstance(element, T.IntegerType) and element.unsigned:
        return str(bits)
    return str(int.from_bytes(raw, "little", signed=True))


def _resource(attr: A.ResourceAttr, generic: bool) -> str:
    key, type_ = attr.parameters
    if generic:
        return f"#irc.resource<{quote(key)}, {attribute_text(type_, True)}>"
    return f"#irc.resource<{quote(key)}> : {attribute_text(type_)}"


def _ints(attr: A.DenseIntsAttr, generic: bool) -> str:
    values = attr.parameters[0]
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def _array(attr: A.DenseArrayAttr, generic: bool) -> str:
    element, values = attr.parameters
    listed = ", ".join([attribute_text(value).partition(" : ")[0] for value in values])
    return f"array<{element}: {listed}>" if values else f"array<{element}>"


def _symbol_reference(attr: A.SymbolRefAttr, generic: bool) -> str:
    return "@" + name_text(attr.parameters[0])


# -- builtin types


def _function_type(attr: T.FunctionType, generic: bool) -> str:
    inputs, results = attr.parameters
    return f"({_join(inputs, generic)}) -> {results_text(results, generic)}"


def results_text(results: Iterable[A.Type], generic: bool = False) -> str:
    """Result types after an arrow: one as it is, several (or a function type) in parentheses."""
    listed = tuple(results)
    text = _join(listed, generic)
    if len(listed) == 1 and not isinstance(listed[0], T.FunctionType):
        return text
    return f"({text})"


def _vector(attr: T.VectorType, generic: bool) -> str:
    shape, element = attr.parameters
    sizes = "".join([f"{size}x" for size in shape])
    return f"vector<{sizes}{attribute_text(element, generic)}>"


def _tensor(attr: T.TensorType, generic: bool) -> str:
    shape, element, strides, device = attr.parameters
    inner = attribute_text(element, generic)
    plain = strides is None and device == "cpu"
    if generic:
        sizes = "".join(["?x" if isinstance(s, Expr) else f"{s}x" for s in shape])
        if plain and attr.is_static:
            return f"tensor<{sizes}{inner}>"
        if plain:
            return f"tensor<{sizes}{inner}, #sym.shape<{dims_text(shape)}>>"
        parts = [dims_text(shape), "none" if strides is None else dims_text(strides)]
        if device != "cpu":
            parts.append(quote(device))
        return f"tensor<{sizes}{inner}, #irc.layout<{', '.join(parts)}>>"
    if plain and attr.is_static:
        return f"tensor<{''.join([f'{s}x' for s in shape])}{inner}>"
    text = f"tensor<{dims_text(shape)} x {inner}"
    if strides is not None:
        text += f", strides {dims_text(strides)}"
    if device != "cpu":
        text += f", {quote(device)}"
    return text + ">"


# -- locations


def location_text(location: Attribute) -> str:
    """What stands between the parentheses of `loc(...)`."""
    if isinstance(location, FileLocation):
        return f"{quote(location.filename)}:{location.line}:{location.column}"
    if isinstance(location, NameLocation):
        return f"{quote(location.name)}({location_text(location.child)})"
    if isinstance(location, FusedLocation):
        note = f"<{quote(location.note)}>" if location.note else ""
        return f"fused{note}[{', '.join(map(location_text, location.children))}]"
    return "unknown"


def _location(attr: Attribute, generic: bool) -> str:
    return f"loc({location_text(attr)})"


# -- dialect attributes and types


def _dialect_text(attr: Attribute, generic: bool) -> str:
    opaque = getattr(attr, "print_text", None)
    if opaque is not None:
        return opaque()
    sigil = "!" if isinstance(attr, A.Type) else "#"
    head = f"{sigil}{attr.dialect}.{attr.mnemonic}"
    writer = TextWriter(generic)
    choose = getattr(attr, "print_parameters", None)
    if choose is not None:
        choose(writer)
    else:
        writer.separated(attr.parameters, lambda p: writer.text(parameter_text(p, generic)))
    body = "".join(writer.out)
    return f"{head}<{body}>" if body else head


def parameter_text(parameter: Any, generic: bool = False) -> str:
    """One parameter of a dialect attribute that has no form of its own."""
    if parameter is None:
        return "none"
    if parameter is True or parameter is False:
        return "true" if parameter else "false"
    if isinstance(parameter, str):
        return quote(parameter)
    if isinstance(parameter, float):
        return format_float(parameter, "f64")
    if isinstance(parameter, int | Expr):
        text = format_dim(parameter)
        return f"dim({text})" if RESERVED_FIELD.match(text) else text
    if isinstance(parameter, tuple | list):
        return f"[{', '.join([parameter_text(p, generic) for p in parameter])}]"
    if isinstance(parameter, T.NoneType | T.FunctionType):
        return f"type({attribute_text(parameter, generic)})"
    if isinstance(parameter, A.Type):
        return attribute_text(parameter, generic)
    if isinstance(parameter, A.BoolAttr | A.IntegerAttr | A.FloatAttr | A.StringAttr | A.TypeAttr
                  | A.ArrayAttr):  # fmt: skip
        return f"attr({attribute_text(parameter, generic)})"
    if isinstance(parameter, Attribute):
        return attribute_text(parameter, generic)
    raise ValueError(f"{parameter!r} has no text; give its class print_parameters")


_WRITERS: dict[type, Callable[[Any, bool], str]] = {
    A.UnitAttr: lambda a, g: "unit",
    A.BoolAttr: lambda a, g: "true" if a.parameters[0] else "false",
    A.IntegerAttr: _integer,
    A.FloatAttr: _float,
    A.StringAttr: lambda a, g: quote(a.parameters[0]),
    A.SymbolRefAttr: _symbol_reference,
    A.TypeAttr: lambda a, g: attribute_text(a.parameters[0], g),
    A.DimAttr: lambda a, g: f"#sym<{format_dim(a.parameters[0])}>",
    A.DimsAttr: lambda a, g: f"#sym.dims<{dims_text(a.parameters[0])}>",
    A.ArrayAttr: lambda a, g: f"[{_join(a.parameters[0], g)}]",
    A.DenseArrayAttr: _array,
    A.DenseIntsAttr: _ints,
    A.DictAttr: lambda a, g: dict_text(a.parameters[0], g),
    A.DenseAttr: _dense,
    A.ResourceAttr: _resource,
    T.IntegerType: lambda t, g: f"{'ui' if t.parameters[1] else 'i'}{t.parameters[0]}",
    T.FloatType: lambda t, g: t.parameters[0],
    T.ComplexType: lambda t, g: f"complex<{attribute_text(t.parameters[0], g)}>",
    T.IndexType: lambda t, g: "index",
    T.NoneType: lambda t, g: "none",
    T.FunctionType: _function_type,
    T.VectorType: _vector,
    T.TensorType: _tensor,
    UnknownLocation: _location,
    FileLocation: _location,
    NameLocation: _location,
    FusedLocation: _location,
}
