"""Reading attributes and locations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.attributes import Attribute, Type
from irc.ir.floats import FORMATS, bits_float
from irc.ir.location import UNKNOWN, FileLocation, FusedLocation, Location, NameLocation
from irc.ir.registry import lookup_attribute
from irc.ir.symbols import Expr, parse_dim
from irc.ir.text.attribute_text import name_text, parameter_text
from irc.ir.text.dense_text import parse_array, parse_dense
from irc.ir.text.lexer import MAX_DEPTH, Lexer
from irc.ir.text.type_parser import TypeParser

if TYPE_CHECKING:
    from irc.ir.text.parser import Parser

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


class AttributeParser:
    """Reads attributes and locations; knows the aliases, what they stand for, and the constants
    that are kept beside the text. `parse_parameters` of dialects' attributes get `face`."""

    def __init__(
        self,
        lexer: Lexer,
        face: Parser,
        allow_unregistered: bool,
        resources: Mapping[str, object] | None,
    ) -> None:
        self.lexer = lexer
        self.face = face
        self.types = TypeParser(lexer, self.dialect_attribute)
        self.allow_unregistered = allow_unregistered
        self.resources = {} if resources is None else resources
        self.used_resources: dict[str, object] = {}
        self.aliases: dict[str, Attribute] = {}
        self.extents: dict[Attribute, tuple[int, int]] = {}
        self.spent = 0

    # -- attributes

    def attribute(self) -> Attribute:
        """An attribute. A type stands for a TypeAttr."""
        lexer = self.lexer
        kind, token = lexer.kind, lexer.token
        if kind == "string":
            return A.StringAttr(lexer.string())
        if kind == "number" or token == "-" and kind == "mark":
            return self.number()
        if kind == "hash":
            return self._hash_attribute()
        if kind == "at":
            return self._symbol()
        if kind == "mark" and token in "[{":
            lexer.enter()
            attr = self._array() if token == "[" else A.DictAttr(self.attribute_dict())
            lexer.leave()
            return attr
        if kind == "word":
            special = _WORDS.get(token)
            if special is not None:
                return special(self)
        type_ = self.types.optional_type()
        if type_ is None:
            lexer.fail_expecting("an attribute")
        return A.TypeAttr(type_)

    def _array(self) -> A.ArrayAttr:
        lexer = self.lexer
        lexer.expect("[")
        elements: list[Attribute] = []
        if not lexer.take("]"):
            elements.append(self.attribute())
            while lexer.take(","):
                elements.append(self.attribute())
            lexer.expect("]")
        return A.ArrayAttr(elements)

    def attribute_dict(self) -> dict[str, Attribute]:
        """`{name = attribute, flag}`; the names in the order of the text."""
        lexer = self.lexer
        lexer.expect("{")
        entries: dict[str, Attribute] = {}
        if lexer.take("}"):
            return entries
        while True:
            start = lexer.start
            if lexer.kind == "string":
                name = lexer.string()
            else:
                name = lexer.word("an attribute name")
            if name in entries:
                lexer.fail(f"the attribute '{name}' is given twice", start)
            entries[name] = self.attribute() if lexer.take("=") else A.UNIT
            if not lexer.take(","):
                break
        lexer.expect("}")
        return entries

    def optional_attribute_dict(self, keyword: str = "") -> dict[str, Attribute]:
        """`{...}` (after `keyword`, if one is given) if it is next, else nothing."""
        lexer = self.lexer
        if keyword:
            return self.attribute_dict() if lexer.take(keyword) else {}
        return self.attribute_dict() if lexer.at("{") else {}

    def number(self) -> Attribute:
        """`4`, `4 : i32`, `0.5 : f32`, `0x7FC00000 : f32`; i64 and f64 where no type is given."""
        lexer = self.lexer
        start = lexer.start
        negative = lexer.take("-")
        if lexer.kind != "number":
            lexer.fail_expecting("a number")
        token = lexer.token
        lexer.advance()
        decimal = "." in token
        type_: Type = T.f64 if decimal else T.i64
        if lexer.take(":"):
            type_ = self.types.type()
        if isinstance(type_, T.FloatType):
            return A.FloatAttr(self.float_value(token, negative, type_, start), type_)
        if decimal or not isinstance(type_, T.IntegerType | T.IndexType):
            lexer.fail(f"{token} is no value of type {type_}", start)
        value = -lexer.to_int(token) if negative else lexer.to_int(token)
        width = type_.width if isinstance(type_, T.IntegerType) else 64
        if not -(1 << (width - 1)) <= value < (1 << width):
            lexer.fail(f"{value} does not fit {type_}", start)
        if type_ is T.i1:  # MLIR's `1 : i1` and `true` are one attribute
            return A.BoolAttr(value != 0)
        return A.IntegerAttr(value, type_)

    def float_value(self, token: str, negative: bool, type_: T.FloatType, start: int) -> float:
        """The value of a number token as a float of `type_`; hexadecimal gives its bits."""
        if token.startswith("0x"):
            bits = int(token, 16) if len(token) < 40 else 1 << 64
            if negative or bits >> (1 + sum(FORMATS[type_.name][:2])):
                self.lexer.fail(f"{token} is not the bits of a {type_}", start)
            return bits_float(bits, type_.name)
        value = float(token)
        return -value if negative else value

    def _hash_attribute(self) -> Attribute:
        lexer, types = self.lexer, self.types
        token, start = lexer.token, lexer.start
        if token == "#sym":
            lexer.advance()
            lexer.expect("<")
            dim = types.dim()
            lexer.expect(">")
            return A.DimAttr(dim)
        if token.startswith("#sym.") and lexer.text[lexer.position : lexer.position + 1] != "<":
            # MLIR's tools write #sym<s0> in this way.
            lexer.advance()
            return lexer.build(start, lambda: A.DimAttr(parse_dim(token[5:])))
        if token == "#sym.dims":
            lexer.advance()
            lexer.expect("<")
            dims = types.dims()
            lexer.expect(">")
            return A.DimsAttr(dims)
        if token == "#irc.resource":
            return self._resource(start)
        return self.dialect_attribute(token)

    def _resource(self, start: int) -> Attribute:
        lexer, types = self.lexer, self.types
        lexer.advance()
        lexer.expect("<")
        key = lexer.string()
        type_ = None
        if lexer.take(","):
            type_ = types.type()
        lexer.expect(">")
        if type_ is None:
            lexer.expect(":")
            type_ = types.type()
        if key not in self.resources:
            lexer.fail(
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
        lexer = self.lexer
        start = lexer.start
        if "." not in token:
            named = self.aliases.get(token)
            if named is None:
                lexer.fail(f"the alias '{token}' is not defined")
            lexer.advance()
            self.spend(named, start)
            return named
        cls = lookup_attribute(token[1:])
        if cls is None or issubclass(cls, Type) != (token[0] == "!"):
            return self._opaque(token)
        lexer.enter()
        lexer.advance()
        read = getattr(cls, "parse_parameters", None)
        is_open = lexer.take("<")
        if is_open and read is not None:
            attr = lexer.build(start, read, self.face)
            lexer.expect(">")
        else:
            parameters = []
            if is_open and not lexer.at(">"):
                parameters.append(self.parameter())
                while lexer.take(","):
                    parameters.append(self.parameter())
            if is_open:
                lexer.expect(">")
            if len(parameters) != len(cls.fields):
                lexer.fail(
                    f"{token} has {len(cls.fields)} parameters ({', '.join(cls.fields)}), "
                    f"{len(parameters)} given",
                    start,
                )
            wrong = wrong_parameter(cls, parameters)
            if wrong is not None:
                lexer.fail(f"{token}: {wrong}", start)
            attr = lexer.build(start, cls, *parameters)
        lexer.leave()
        return attr

    def spend(self, attr: Attribute, start: int) -> None:
        """Count the text that an alias stands for, which is bounded for all of them together: a
        few lines may stand for more than any machine can write."""
        lexer = self.lexer
        size, depth = self.extent(attr)
        self.spent += size
        if self.spent > MAX_EXPANDED:
            lexer.fail(f"the aliases up to here stand for more than {MAX_EXPANDED:,} characters",
                       start)  # fmt: skip
        if depth + lexer.depth > MAX_DEPTH:
            lexer.fail(f"the alias nests deeper than {MAX_DEPTH}", start)

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
        lexer = self.lexer
        start, cls = lexer.start, lookup_attribute(f"arith.{keyword}")
        lexer.expect(keyword)
        lexer.expect("<")
        attr = lexer.build(start, cls.parse_parameters, self.face)  # type: ignore[union-attr]
        lexer.expect(">")
        return attr

    def _opaque(self, token: str) -> Attribute:
        """An attribute or type of an unknown dialect, as text."""
        if not self.allow_unregistered:
            what = "type" if token[0] == "!" else "attribute"
            self.lexer.fail(f"unknown {what} '{token}'")
        text = self.bracketed_text()
        return OpaqueType(text) if token[0] == "!" else OpaqueAttr(text)

    def bracketed_text(self) -> str:
        """The next token and what stands in brackets behind it, with a blank where there are
        blanks or comments. A `>` that closes nothing is a comparison."""
        lexer = self.lexer
        parts, closing = [lexer.token], list[str]()
        lexer.advance()
        if lexer.at("<"):
            while True:
                if lexer.kind == "mark" and lexer.token in _CLOSED_BY:
                    closing.append(_CLOSED_BY[lexer.token])
                elif lexer.at(closing[-1]):
                    closing.pop()
                elif lexer.kind in ("end", "bad") or lexer.kind == "mark" and lexer.token in ")]}":
                    lexer.fail_expecting(f"'{closing[-1]}'")
                parts.append(f" {lexer.token}" if lexer.start > lexer.last_end else lexer.token)
                lexer.advance()
                if not closing:
                    break
        return "".join(parts)

    def _as_text(self) -> Attribute:
        """An attribute of MLIR's that irc has no use for, kept as text."""
        text = self.bracketed_text()
        if text.startswith("sparse"):
            self.lexer.expect(":")
            text = f"{text} : {self.types.type()}"
        return OpaqueAttr(text)

    def _symbol(self) -> Attribute:
        """`@name`; `@outer::@name` is kept as text."""
        lexer = self.lexer
        name = lexer.symbol_name()
        if not lexer.at(":"):
            return A.SymbolRefAttr(name)
        parts = [name]
        while lexer.take(":"):
            lexer.expect(":")
            parts.append(lexer.symbol_name())
        return OpaqueAttr("::".join([f"@{name_text(part)}" for part in parts]))

    def parameter(self) -> Any:
        """One parameter of a dialect attribute, as the printer writes it."""
        lexer, types = self.lexer, self.types
        kind, token = lexer.kind, lexer.token
        if kind == "string":
            return lexer.string()
        if kind == "mark" and token == "[":
            lexer.enter()
            lexer.advance()
            items = []
            if not lexer.at("]"):
                items.append(self.parameter())
                while lexer.take(","):
                    items.append(self.parameter())
            lexer.expect("]")
            lexer.leave()
            return tuple(items)
        if kind == "word":
            if token in _PARAMETER_WORDS:
                lexer.advance()
                return _PARAMETER_WORDS[token]
            if token in ("dim", "type", "attr"):
                return self._wrapped_parameter(token)
            type_ = types.optional_type()
            if type_ is not None:
                return type_
            if token in _WORDS:
                return self.attribute()
            return types.dim()
        if kind == "bang":
            return types.type()
        if kind in ("hash", "at") or token == "{":
            return self.attribute()
        if kind == "number" and ("." in token or token.startswith("0x")):
            lexer.advance()
            return self.float_value(token, False, T.f64, lexer.last_start)
        start = lexer.start
        if kind == "mark" and token == "-":
            lexer.advance()
            if lexer.kind == "number" and "." in lexer.token:
                value = float(lexer.token)
                lexer.advance()
                return -value
            lexer.reset(start)
        return types.dim()

    def _wrapped_parameter(self, wrapper: str) -> Any:
        lexer, types = self.lexer, self.types
        lexer.enter()
        lexer.advance()
        lexer.expect("(")
        value: Any
        if wrapper == "dim":
            value = types.dim()
        else:
            value = types.type() if wrapper == "type" else self.attribute()
        lexer.expect(")")
        lexer.leave()
        return value

    # -- locations

    def location(self) -> Location:
        """`loc(...)`."""
        lexer = self.lexer
        lexer.expect("loc")
        lexer.expect("(")
        location = self.location_body()
        lexer.expect(")")
        return location

    def location_body(self) -> Location:
        """What stands between the parentheses of `loc(...)`."""
        lexer = self.lexer
        if lexer.kind == "hash":
            named = self.aliases.get(lexer.token)
            if not isinstance(named, Location):
                lexer.fail(f"the location '{lexer.token}' is not defined")
            self.spend(named, lexer.start)
            lexer.advance()
            return named
        if lexer.take("unknown"):
            return UNKNOWN
        lexer.enter()
        if lexer.at("loc"):
            location = self.location()
        else:
            location = self._fused() if lexer.at("fused") else self._file_or_name()
        lexer.leave()
        return location

    def _fused(self) -> Location:
        lexer = self.lexer
        lexer.advance()
        note = ""
        if lexer.take("<"):
            note = lexer.string()
            lexer.expect(">")
        lexer.expect("[")
        children = []
        if not lexer.at("]"):
            children.append(self.location_body())
            while lexer.take(","):
                children.append(self.location_body())
        lexer.expect("]")
        return FusedLocation(note, tuple(children))

    def _file_or_name(self) -> Location:
        lexer = self.lexer
        name = lexer.string()
        if lexer.take(":"):
            line = lexer.integer()
            lexer.expect(":")
            return FileLocation(name, line, lexer.integer())
        if lexer.take("("):
            child = self.location_body()
            lexer.expect(")")
            return NameLocation(name, child)
        return NameLocation(name, UNKNOWN)


def _constant_word(value: Any) -> Callable[[AttributeParser], Attribute]:
    def read(parser: AttributeParser) -> Attribute:
        parser.lexer.advance()
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
