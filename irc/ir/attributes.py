"""The builtin attributes: numbers, strings, lists, references, constant elements.

The base of all attributes and types is in `irc.ir.interned`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from irc.ir.floats import round_to_format
from irc.ir.interned import Attribute, Type
from irc.ir.symbols import Dim
from irc.ir.types import f64, i64


class UnitAttr(Attribute):
    """Present or absent: `unit`."""

    __slots__ = ()
    mnemonic = "unit"


class BoolAttr(Attribute):
    """`true` or `false`."""

    __slots__ = ()
    fields = ("value",)
    value: bool

    def __new__(cls, value: bool) -> BoolAttr:
        return TRUE if value else FALSE


def _make_bool(value: bool) -> BoolAttr:
    return BoolAttr._intern((value,), (value,))


TRUE = _make_bool(True)
FALSE = _make_bool(False)


class IntegerAttr(Attribute):
    """An integer with its type: `4 : i64`, `4 : index`. It is kept as the type reads its bits, so
    `255 : i8` is `-1 : i8` (an i1 is 0 or 1). ValueError for a number that has no such bits."""

    __slots__ = ()
    fields = ("value", "type")
    value: int
    type: Type

    def __new__(cls, value: int, type: Type | None = None) -> IntegerAttr:
        if type is None:
            type = i64
        if value.__class__ is not int:
            value = int(value)
        key = (value, type)
        interned = cls._table.get(key)
        if interned is None:
            interned = cls._intern(key, (_of_width(value, type), type))
        return interned

    @classmethod
    def _intern(cls, key: Any, parameters: tuple[Any, ...]) -> Any:
        interned = super()._intern(parameters, parameters)
        # The other number with these bits leads to the same object.
        return interned if key == parameters else cls._table.setdefault(key, interned)


def _of_width(value: int, type_: Type) -> int:
    """`value` as the integers of a type (index: 64 bits) are read."""
    width: int = getattr(type_, "width", 64)
    if not -(1 << (width - 1)) <= value < 1 << width:
        raise ValueError(f"{value} does not fit {type_}")
    if width == 1 or getattr(type_, "unsigned", False):
        return value & ((1 << width) - 1)
    return value - (1 << width) if value >> (width - 1) > 0 else value


class FloatAttr(Attribute):
    """A float with its type, to which it is rounded. It is kept by its bits: `-0.0`, infinities
    and NaN stay apart."""

    __slots__ = ()
    fields = ("value", "type")
    value: float
    type: Type

    def __new__(cls, value: float, type: Type | None = None) -> FloatAttr:
        if type is None:
            type = f64
        element: Any = type
        value = round_to_format(float(value), element.name)
        key = (struct.pack("<d", value), type)
        interned = cls._table.get(key)
        return interned if interned is not None else cls._intern(key, (value, type))


class StringAttr(Attribute):
    """A string: `"text"`."""

    __slots__ = ()
    fields = ("value",)
    value: str


class SymbolRefAttr(Attribute):
    """A reference to a symbol operation (a function): `@name`."""

    __slots__ = ()
    fields = ("name",)
    name: str


class TypeAttr(Attribute):
    """A type used as an attribute."""

    __slots__ = ()
    fields = ("type",)
    type: Type


class DimAttr(Attribute):
    """A symbolic integer expression used as an attribute: `#sym<s0*4 + 1>`."""

    __slots__ = ()
    mnemonic = "sym"
    fields = ("dim",)
    dim: Dim


class DimsAttr(Attribute):
    """A list of symbolic integer expressions: `#sym.dims<[s0, 4]>`. None means unknown."""

    __slots__ = ()
    mnemonic = "sym.dims"
    fields = ("dims",)
    dims: tuple[Dim | None, ...]

    def __new__(cls, dims: Iterable[Dim | None]) -> DimsAttr:
        key = (tuple(dims),)
        interned = cls._table.get(key)
        return interned if interned is not None else cls._intern(key, key)

    def __iter__(self) -> Iterator[Dim | None]:
        return iter(self.parameters[0])

    def __len__(self) -> int:
        return len(self.parameters[0])


class ArrayAttr(Attribute):
    """A list of attributes: `[1 : i64, "two"]`."""

    __slots__ = ()
    fields = ("elements",)
    elements: tuple[Attribute, ...]

    def __new__(cls, elements: Iterable[Attribute]) -> ArrayAttr:
        key = (tuple(elements),)
        interned = cls._table.get(key)
        return interned if interned is not None else cls._intern(key, key)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.parameters[0])

    def __len__(self) -> int:
        return len(self.parameters[0])

    def __getitem__(self, index: int) -> Attribute:
        return self.parameters[0][index]


class DenseIntsAttr(Attribute):
    """A list of 64-bit integers: `array<i64: 1, 2>`. For permutations, axes and the like."""

    __slots__ = ()
    fields = ("values",)
    values: tuple[int, ...]

    def __new__(cls, values: Iterable[int]) -> DenseIntsAttr:
        key = (tuple(int(v) for v in values),)
        interned = cls._table.get(key)
        return interned if interned is not None else cls._intern(key, key)

    def __iter__(self) -> Iterator[int]:
        return iter(self.parameters[0])

    def __len__(self) -> int:
        return len(self.parameters[0])

    def __getitem__(self, index: int) -> int:
        return self.parameters[0][index]


class DenseArrayAttr(Attribute):
    """A list of numbers of one type other than i64: `array<i8: 1, 2>`, `array<f32: 0.5>`. irc's
    own operations have none."""

    __slots__ = ()
    fields = ("element", "values")
    element: Type
    values: tuple[Attribute, ...]


class DictAttr(Attribute):
    """A dictionary of attributes with sorted names: `{a = 1 : i64, b}`."""

    __slots__ = ()
    fields = ("items",)
    items: tuple[tuple[str, Attribute], ...]

    def __new__(
        cls, entries: Mapping[str, Attribute] | Iterable[tuple[str, Attribute]]
    ) -> DictAttr:
        pairs = entries.items() if isinstance(entries, Mapping) else entries
        key = (tuple(sorted(pairs, key=entry_name)),)
        interned = cls._table.get(key)
        return interned if interned is not None else cls._intern(key, key)

    def get(self, name: str, default: Any = None) -> Any:
        """The entry called `name`, or `default`."""
        for key, value in self.parameters[0]:
            if key == name:
                return value
        return default

    def as_dict(self) -> dict[str, Attribute]:
        """A fresh dictionary of the entries."""
        return dict(self.parameters[0])


def entry_name(pair: tuple[str, Attribute]) -> str:
    """Sort key of a dictionary entry: its name."""
    return pair[0]


class DenseAttr(Attribute):
    """Constant elements of a tensor or vector type, as little-endian bytes in row-major order.

    `data` is the raw bytes: one element (a splat) or all of them. bool takes one byte an element.
    """

    __slots__ = ()
    fields = ("type", "data")
    type: Type
    data: bytes


class ResourceAttr(Attribute):
    """A large constant kept beside the text, named by the sha256 of its bytes.

    `#irc.resource<"sha256-hex"> : type`. The bytes live in the module's resource table.
    """

    __slots__ = ()
    mnemonic = "resource"
    fields = ("key", "type")
    key: str
    type: Type


UNIT = UnitAttr()

__all__ = [
    "ArrayAttr", "Attribute", "BoolAttr", "DenseArrayAttr", "DenseAttr", "DenseIntsAttr",
    "DictAttr", "DimAttr", "DimsAttr", "FALSE", "FloatAttr", "IntegerAttr", "ResourceAttr",
    "StringAttr", "SymbolRefAttr", "TRUE", "Type", "TypeAttr", "UNIT", "UnitAttr", "entry_name",
]  # fmt: skip
