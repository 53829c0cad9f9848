"""Reading attributes and locations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.attributes import Attribute, Type
from irc.ir.floats import FORMATS, bits_float
from irc.ir.location import UNKNOWN, FileLocation, FusedLocation, Location, NameLocation
from irc.ir.registry import lookup_attribute
from irc.ir.symbols import Expr, parse_dim
from irc.ir.text.attribute_text import name_text, parameter_text
from irc.ir.text.dense_text import parse_array, parse_dense
from irc.ir.text.lexer import MAX_DEPTH
from irc.ir.text.type_parser import TypeParser

MAX_EXPANDED = 1 << 26
"""Most characters that the aliases of a text may stand for, each use counted."""


class OpaqueAttr(Attribute):
    """An attribute of a dialect that irc does not know, kept as text."""

    __slots__ = ()
    fields = ("text",)
    text: str

    def print_text(self) -> str:
        """The whole text."""
        return self.parameters[0]


class OpaqueType(Type):
    """A type of a dialect that irc does not know, kept as text."""

    __slots__ = ()
    fields = ("text",)
    text: str

    def print_text(self) -> str:
        """The whole text."""
        return self.parameters[0]


# What a parameter is, by the annotation of its field; any other may be anything.
_PARAMETER_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "str": (str,),
    "float": (float, int),
    "Dim": (int, Expr),
    "Type": (Type,),
    "TensorType": (T.TensorType,),
}


def wrong_parameter(cls: type[Attribute], parameters: Sequence[Any]) -> str | None:
    """What is wrong with the parameters of an attribute, by the annotations of its fields."""
    declared: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        declared.update(base.__dict__.get("__annotations__", {}))
    for name, parameter in zip(cls.fields, parameters):
        kinds = _PARAMETER_KINDS.get(str(declared.get(name)))
        if kinds is not None and (not isinstance(parameter, kinds) or parameter is True
                                  or parameter is False):  # fmt: skip
            return f"{name} is {parameter_text(parameter)}, not {declared[name]}"
    return None


class AttributeParser(TypeParser):
    """Reads attributes and types. `parse_parameters` classmethods of dialect attributes get one:
    they read what stands between `<` and `>` and return the attribute."""

    def __init__(
        self,
        text: str,
        filename: str = "<text>",
        *,
        allow_unregistered: bool = False,
        resources: Mapping[str, object] | None = None,
    ) -> None:
        self.allow_unregistered = allow_unregistered
        self.resources = {} if resources is None else resources
        self.used_resources: dict[str, object] = {}
        self.aliases: dict[str, Attribute] = {}
        self.extents: dict[Attribute, tuple[int, int]] = {}
        self.spent = 0
        super().__init__(text, filename)

    # -- attributes

    def attribute(self) -> Attribute:
        """An attribute. A type stands for a TypeAttr."""
        kind, token = self.kind, self.token
        if kind == "string":
            return A.StringAttr(self.string())
        if kind == "number" or token == "-" and kind == "mark":
            return self.number()
        if kind == "hash":
            return self._hash_attribute()
        if kind == "at":
            return self._symbol()
        if kind == "mark" and token in "[{":
            self.enter()
            attr = self._array() if token == "[" else A.DictAttr(self.attribute_dict())
            self.leave()
            return attr
        if kind == "word":
            special = _WORDS.get(token)
            if special is not None:
                return special(self)
        type_ = self.optional_type()
        if type_ is None:
            self.fail_expecting("an attribute")
        return A.TypeAttr(type_)

    def _array(self) -> A.ArrayAttr:
        self.expect("[")
        elements: list[Attribute] = []
        if not self.take("]"):
            elements.append(self.attribute())
            while self.take(","):
                elements.append(self.attribute())
            self.expect("]")
        return A.ArrayAttr(elements)

    def attribute_dict(self) -> dict[str, Attribute]:
        """`{name = attribute, flag}`; the names in the order of the text."""
        self.expect("{")
        entries: dict[str, Attribute] = {}
        if self.take("}"):
            return entries
        while True:
            start = self.start
            if self.kind == "string":
                name = self.string()
            else:
                name = self.word("an attribute name")
            if name in entries:
                self.fail(f"the attribute '{name}' is given twice", start)
            entries[name] = self.attribute() if self.take("=") else A.UNIT
            if not self.take(","):
                break
        self.expect("}")
        return entries

    def optional_attribute_dict(self, keyword: str = "") -> dict[str, Attribute]:
        """`{...}` (after `keyword`, if one is given) if it is next, else nothing."""
        if keyword:
            return self.attribute_dict() if self.take(keyword) else {}
        return self.attribute_dict() if self.at("{") else {}

    def number(self) -> Attribute:
        """`4`, `4 : i32`, `0.5 : f32`, `0x7FC00000 : f32`; i64 and f64 where no type is given."""
        start = self.start
        negative = self.take("-")
        if self.kind != "number":
            self.fail_expecting("a number")
        token = self.token
        self.advance()
        decimal = "." in token
        type_: Type = T.f64 if decimal else T.i64
        if self.take(":"):
            type_ = self.type()
        if isinstance(type_, T.FloatType):
            return A.FloatAttr(self.float_value(token, negative, type_, start), type_)
        if decimal or not isinstance(type_, T.IntegerType | T.IndexType):
            self.fail(f"{token} is no value of type {type_}", start)
        value = -self.to_int(token) if negative else self.to_int(token)
        width = type_.width if isinstance(type_, T.IntegerType) else 64
        if not -(1 << (width - 1)) <= value < (1 << width):
            self.fail(f"{value} does not fit {type_}", start)
        if type_ is T.i1:  # MLIR's `1 : i1` and `true` are one attribute
            return A.BoolAttr(value != 0)
        return A.IntegerAttr(value, type_)

    def float_value(self, token: str, negative: bool, type_: T.FloatType, start: int) -> float:
        """The value of a number token as a float of `type_`; hexadecimal gives its bits."""
        if token.startswith("0x"):
            bits = int(token, 16) if len(token) < 40 else 1 << 64
            if negative or bits >> (1 + sum(FORMATS[type_.name][:2])):
                self.fail(f"{token} is not the bits of a {type_}", start)
            return bits_float(bits, type_.name)
        value = float(token)
        return -value if negative else value

    def _hash_attribute(self) -> Attribute:
        token, start = self.token, self.start
        if token == "#sym":
            self.advance()
            self.expect("<")
            dim = self.dim()
            self.expect(">")
            return A.DimAttr(dim)
        if token.startswith("#sym.") and self.text[self.position : self.position + 1] != "<":
            # MLIR's tools write #sym<s0> in this way.
            self.advance()
            return self.build(start, lambda: A.DimAttr(parse_dim(token[5:])))
        if token == "#sym.dims":
            self.advance()
            self.expect("<")
            dims = self.dims()
            self.expect(">")
            return A.DimsAttr(dims)
        if token == "#irc.resource":
            return self._resource(start)
        if token.startswith("#sym."):
            self.fail(f"unknown attribute '{token}'")
        return self.dialect_attribute(token)

    def _resource(self, start: int) -> Attribute:
        self.advance()
        self.expect("<")
        key = self.string()
        type_ = None
        if self.take(","):
            type_ = self.type()
        self.expect(">")
        if type_ is None:
            self.expect(":")
            type_ = self.type()
        if key not in self.resources:
            self.fail(
                f"the constant {key[:16]} is kept beside the text and was not given",
                start,
                getattr(
                    self.resources,
                    "advice",
                    "give the resources of the module that this text was printed from",
                ),
            )
        self.used_resources[key] = self.resources[key]
        return A.ResourceAttr(key, type_)

    def dialect_attribute(self, token: str) -> Attribute:
        """An alias, or a dialect's attribute or type."""
        start = self.start
        if "." not in token:
            named = self.aliases.get(token)
            if named is None:
                self.fail(f"the alias '{token}' is not defined")
            self.advance()
            self.spend(named, start)
            return named
        cls = lookup_attribute(token[1:])
        if cls is None or issubclass(cls, Type) != (token[0] == "!"):
            return self._opaque(token)
        self.enter()
        self.advance()
        read = getattr(cls, "parse_parameters", None)
        is_open = self.take("<")
        if is_open and read is not None:
            attr = self.build(start, read, self)
            self.expect(">")
        else:
            parameters = []
            if is_open and not self.at(">"):
                parameters.append(self.parameter())
                while self.take(","):
                    parameters.append(self.parameter())
            if is_open:
                self.expect(">")
            if len(parameters) != len(cls.fields):
                self.fail(
                    f"{token} has {len(cls.fields)} parameters ({', '.join(cls.fields)}), "
                    f"{len(parameters)} given",
                    start,
                )
            wrong = wrong_parameter(cls, parameters)
            if wrong is not None:
                self.fail(f"{token}: {wrong}", start)
            attr = self.build(start, cls, *parameters)
        self.leave()
        return attr

    def spend(self, attr: Attribute, start: int) -> None:
        """Count the text that an alias stands for, which is bounded for all of them together: a
        few lines may stand for more than any machine can write."""
        size, depth = self.extent(attr)
        self.spent += size
        if self.spent > MAX_EXPANDED:
            self.fail(f"the aliases up to here stand for more than {MAX_EXPANDED:,} characters",
                      start)  # fmt: skip
        if depth + self.depth > MAX_DEPTH:
            self.fail(f"the alias nests deeper than {MAX_DEPTH}", start)

    def extent(self, attr: Any) -> tuple[int, int]:
        """About how many characters an attribute has where no alias is used, and its nesting."""
        if isinstance(attr, str | bytes):
            return len(attr) + 2, 0
        parts = attr if isinstance(attr, tuple | list) else getattr(attr, "parameters", None)
        if parts is None:
            return 8, 0
        known = self.extents.get(attr) if isinstance(attr, Attribute) else None
        if known is None:
            inner = [self.extent(part) for part in parts]
            own = isinstance(attr, Attribute)
            known = sum(s for s, _ in inner) + 4, max((d for _, d in inner), default=0) + own
            if own:
                self.extents[attr] = known
        return known

    def flag(self, keyword: str) -> Attribute:
        """`keyword<...>`, as MLIR's arith writes its flags, as the attribute that it stands for."""
        start, cls = self.start, lookup_attribute(f"arith.{keyword}")
        self.expect(keyword)
        self.expect("<")
        attr = self.build(start, cls.parse_parameters, self)  # type: ignore[union-attr]
        self.expect(">")
        return attr

    def _opaque(self, token: str) -> Attribute:
        """An attribute or type of an unknown dialect, as text."""
        if not self.allow_unregistered:
            what = "type" if token[0] == "!" else "attribute"
            self.fail(f"unknown {what} '{token}'")
        text = self.bracketed_text()
        return OpaqueType(text) if token[0] == "!" else OpaqueAttr(text)

    def bracketed_text(self) -> str:
        """The next token and what stands in brackets behind it, with a blank where there are
        blanks or comments. A `>` that closes nothing is a comparison."""
        parts, closing = [self.token], list[str]()
        self.advance()
        if self.at("<"):
            while True:
                if self.kind == "mark" and self.token in _CLOSED_BY:
                    closing.append(_CLOSED_BY[self.token])
                elif self.at(closing[-1]):
                    closing.pop()
                elif self.kind in ("end", "bad") or self.kind == "mark" and self.token in ")]}":
                    self.fail_expecting(f"'{closing[-1]}'")
                parts.append(f" {self.token}" if self.start > self.last_end else self.token)
                self.advance()
                if not closing:
                    break
        return "".join(parts)

    def _as_text(self) -> Attribute:
        """An attribute of MLIR's that irc has no use for, kept as text."""
        text = self.bracketed_text()
        if text.startswith("sparse"):
            self.expect(":")
            text = f"{text} : {self.type()}"
        return OpaqueAttr(text)

    def _symbol(self) -> Attribute:
        """`@name`; `@outer::@name` is kept as text."""
        name = self.symbol_name()
        if not self.at(":"):
            return A.SymbolRefAttr(name)
        parts = [name]
        while self.take(":"):
            self.expect(":")
            parts.append(self.symbol_name())
        return OpaqueAttr("::".join([f"@{name_text(part)}" for part in parts]))

    def parameter(self) -> Any:
        """One parameter of a dialect attribute, as the printer writes it."""
        kind, token = self.kind, self.token
        if kind == "string":
            return self.string()
        if kind == "mark" and token == "[":
            self.enter()
            self.advance()
            items = []
            if not self.at("]"):
                items.append(self.parameter())
                while self.take(","):
                    items.append(self.parameter())
            self.expect("]")
            self.leave()
            return tuple(items)
        if kind == "word":
            if token in _PARAMETER_WORDS:
                self.advance()
                return _PARAMETER_WORDS[token]
            if token in ("dim", "type", "attr"):
                return self._wrapped_parameter(token)
            type_ = self.optional_type()
            if type_ is not None:
                return type_
            if token in _WORDS:
                return self.attribute()
            return self.dim()
        if kind == "bang":
            return self.type()
        if kind in ("hash", "at") or token == "{":
            return self.attribute()
        if kind == "number" and ("." in token or token.startswith("0x")):
            self.advance()
            return self.float_value(token, False, T.f64, self._last_start)
        start = self.start
        if kind == "mark" and token == "-":
            self.advance()
            if self.kind == "number" and "." in self.token:
                value = float(self.token)
                self.advance()
                return -value
            self.reset(start)
        return self.dim()

    def _wrapped_parameter(self, wrapper: str) -> Any:
        self.enter()
        self.advance()
        self.expect("(")
        value: Any
        if wrapper == "dim":
            value = self.dim()
        else:
            value = self.type() if wrapper == "type" else self.attribute()
        self.expect(")")
        self.leave()
        return value

    # -- locations

    def location(self) -> Location:
        """`loc(...)`."""
        self.expect("loc")
        self.expect("(")
        location = self.location_body()
        self.expect(")")
        return location

    def location_body(self) -> Location:
        """What stands between the parentheses of `loc(...)`."""
        if self.kind == "hash":
            named = self.aliases.get(self.token)
            if not isinstance(named, Location):
                self.fail(f"the location '{self.token}' is not defined")
            self.spend(named, self.start)
            self.advance()
            return named
        if self.take("unknown"):
            return UNKNOWN
        self.enter()
        if self.at("loc"):
            location = self.location()
        else:
            location = self._fused() if self.at("fused") else self._file_or_name()
        self.leave()
        return location

    def _fused(self) -> Location:
        self.advance()
        note = ""
        if self.take("<"):
            note = self.string()
            self.expect(">")
        self.expect("[")
        children = []
        if not self.at("]"):
            children.append(self.location_body())
            while self.take(","):
                children.append(self.location_body())
        self.expect("]")
        return FusedLocation(note, tuple(children))

    def _file_or_name(self) -> Location:
        name = self.string()
        if self.take(":"):
            line = self.integer()
            self.expect(":")
            return FileLocation(name, line, self.integer())
        if self.take("("):
            child = self.location_body()
            self.expect(")")
            return NameLocation(name, child)
        return NameLocation(name, UNKNOWN)


def _constant_word(value: Any) -> Callable[[AttributeParser], Attribute]:
    def read(parser: AttributeParser) -> Attribute:
        parser.advance()
        return value

    return read


_WORDS: dict[str, Callable[[AttributeParser], Attribute]] = {
    "true": _constant_word(A.TRUE),
    "false": _constant_word(A.FALSE),
    "unit": _constant_word(A.UNIT),
    "dense": parse_dense,
    "array": parse_array,
    "loc": AttributeParser.location,
    **dict.fromkeys(("affine_map", "affine_set", "sparse", "strided"), AttributeParser._as_text),
}
_CLOSED_BY = {"<": ">", "(": ")", "[": "]", "{": "}"}
_PARAMETER_WORDS: dict[str, Any] = {"none": None, "true": True, "false": False}
