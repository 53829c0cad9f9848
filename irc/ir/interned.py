"""The base of attributes and types: immutable, interned, compared by identity.

Two attributes built from equal parameters are the same object, so `is` (and the inherited
`==` and `hash`) decide equality in constant time. Subclasses declare `fields` and read their
parameters by those names:

    class VectorType(Type):
        mnemonic = "vector"
        fields = ("shape", "element")

Their text (`str(attribute)`) comes from `irc.ir.text.attribute_text`.
"""

from __future__ import annotations

import re
import struct
from typing import Any, ClassVar

from irc.ir.hooks import HasText


class Attribute(HasText):
    """Base of every attribute. Construction interns: equal parameters give one object."""

    __slots__ = ("parameters", "_text")
    mnemonic: ClassVar[str] = ""
    fields: ClassVar[tuple[str, ...]] = ()
    dialect: ClassVar[str] = "builtin"
    _table: ClassVar[dict[Any, Any]] = {}

    parameters: tuple[Any, ...]
    _text: str | None

    # Whether parameters may be floats or truth values, which Python finds equal to integers
    # (and 0.0 to -0.0): these are kept apart by class and bits. Classes that say by annotations
    # that no field is one need no key besides the parameters.
    _by_bits: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._table = {}
        notes: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            notes.update(base.__dict__.get("__annotations__", {}))
        cls._by_bits = any(_may_be_a_float(notes.get(name)) for name in cls.fields)
        for index, name in enumerate(cls.__dict__.get("fields", ())):
            setattr(cls, name, property(_parameter_getter(index)))

    def __new__(cls, *parameters: Any) -> Any:
        if cls._by_bits:
            return cls._intern(_by_bits(parameters), parameters)
        interned = cls._table.get(parameters)
        if interned is not None:
            return interned
        parameters = _plain(parameters)
        return cls._intern(parameters, parameters)

    @classmethod
    def _intern(cls, key: Any, parameters: tuple[Any, ...]) -> Any:
        interned = cls._table.get(key)
        if interned is None:
            self = object.__new__(cls)
            self.parameters = parameters
            self._text = None
            self.validate()
            # setdefault is atomic under the interpreter lock: two threads agree on one object.
            interned = cls._table.setdefault(key, self)
        return interned

    def validate(self) -> None:
        """Raise ValueError when the parameters make no sense together."""

    def __copy__(self) -> Attribute:
        return self

    def __deepcopy__(self, memo: Any) -> Attribute:
        return self

    def __reduce__(self) -> Any:
        return type(self), self.parameters

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.parameters))})"


def _may_be_a_float(note: Any) -> bool:
    """Whether a field with this annotation (as text) may hold a float or a truth value."""
    words = re.findall(r"\w+", note) if isinstance(note, str) else ["Any"]
    return not words or not {"float", "bool", "complex", "object", "Any"}.isdisjoint(words)


def _by_bits(parameter: Any) -> Any:
    """A key that tells parameters apart by class, floats by their bits."""
    if isinstance(parameter, tuple):
        return tuple([_by_bits(p) for p in parameter])
    if isinstance(parameter, float):
        return float, struct.pack("<d", parameter)
    return parameter.__class__, parameter


_NOT_PLAIN = (bool, float, tuple)


def _plain(parameters: tuple[Any, ...]) -> tuple[Any, ...]:
    """Parameters of a class without floats and truth values: True is 1."""
    plain: list[Any] = []
    for p in parameters:
        if isinstance(p, _NOT_PLAIN):
            if isinstance(p, float):
                raise ValueError(f"a float among parameters that are none: {parameters}")
            p = _plain(p) if isinstance(p, tuple) else int(p)
        plain.append(p)
    return tuple(plain)


def _parameter_getter(index: int) -> Any:
    def get(self: Attribute) -> Any:
        return self.parameters[index]

    return get


class Type(Attribute):
    """Base of every type. A type is an attribute that a value may have."""

    __slots__ = ()
