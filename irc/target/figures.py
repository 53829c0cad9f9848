"""Figures: numbers that passes decide by, as attributes of the records of a target.

    class Speeds(Figures):
        launch: Annotated[int, Figure("operations", "a kernel more")] = 1_600

A line adds one: the text of targets reads and writes it (`#irc.target<avx2, launch = 0>`), the
cache's keys hold it, docs/reference/figures.md lists it. A pass asks the record for it.

    other = evolve(target.processor, launch=0)      # fields and figures alike

A process that changes none pays for an attribute of a class and a text: what a figure is, is read
from its annotation by who asks. A record holds those that are not usual, in its field `unusual`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import attrs

Record = TypeVar("Record")

MOST, MOST_OF_POWERS = 1 << 40, 1 << 16


class Figure:
    """What a figure is: its unit, what it says, its least and its largest value; power: powers of
    two alone."""

    __slots__ = ("least", "meaning", "most", "power", "unit")

    def __init__(
        self, unit: str, meaning: str, *, least: int = 0, power: bool = False, most: int = MOST
    ) -> None:
        self.unit, self.meaning = unit, meaning
        self.least, self.power, self.most = least, power, most

    def objection(self, value: float) -> str:
        """What is wrong with a value; "" for nothing."""
        most = min(self.most, MOST_OF_POWERS) if self.power else self.most
        if not self.least <= value <= most:
            return f"not from {self.least} to {most}"
        if self.power and int(value) & (int(value) - 1):
            return "not a power of two"
        return ""


class Figures:
    """A class of figures; alone with the usual ones and those that are given. A record that derives
    from one has a field `unusual`, and calls `settle_figures`."""

    def __init__(self, **figures: Any) -> None:
        _set(self, figures.items())

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies are made of fields: attributes that are set are none of attrs' slots."""
        cls: Any = type(self)
        names = [f.name for f in attrs.fields(cls) if f.init] if attrs.has(cls) else vars(self)
        return functools.partial(cls, **{name: getattr(self, name) for name in names}), ()


@functools.cache
def figures_of(cls: type) -> Mapping[str, Figure]:
    """The figures of a class or a record by name; `getattr(cls, name)` is the usual value."""
    from typing import get_type_hints

    figures: dict[str, Figure] = {}
    plain = next(base for base in cls.__mro__ if not attrs.has(base))
    hints = get_type_hints(plain, include_extras=True)
    for base in reversed(plain.__mro__):
        for name in vars(base).get("__annotations__", ()):
            figures.pop(name, None)
            figures[name] = hints[name].__metadata__[0]
    return figures


def settle_figures(record: Any) -> None:
    """Give a record the figures that its field `unusual` says. Raises ValueError for one that has
    a value which makes no sense."""
    if record.unusual:
        object.__setattr__(record, "unusual", _set(record, record.unusual))


def _set(record: Any, named: Iterable[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
    """Set figures, and return those that are not usual."""
    cls: Any = type(record)
    unusual = {}
    for name, value in named:
        if name not in figures_of(cls):
            raise ValueError(f"{cls.__name__} has no figure '{name}'")
        usual = getattr(cls, name)
        if value != usual:
            _check(name, figures_of(cls)[name], usual, value)
            unusual[name] = value
            object.__setattr__(record, name, value)
    return tuple(sorted(unusual.items()))


def _check(name: str, what: Figure, usual: Any, value: Any) -> None:
    if isinstance(usual, tuple) and len(value) != len(usual):
        raise ValueError(f"{name} is {list(value)}, not {len(usual)} numbers")
    for number in value if isinstance(usual, tuple) else (value,):
        if objection := what.objection(number):
            raise ValueError(f"{name} is {number}, {objection}")


def evolve(record: Record, **changes: Any) -> Record:
    """A record with other values of fields and figures."""
    own: Any = record
    return attrs.evolve(own, **_fields(type(record), own.unusual, changes))


def record_of(cls: type[Record], **values: Any) -> Record:
    """A record of fields and figures."""
    return cls(**_fields(cls, (), values))


def _fields(
    cls: Any, unusual: tuple[tuple[str, Any], ...], values: dict[str, Any]
) -> dict[str, Any]:
    """The fields of a record for values of fields and figures."""
    figures = figures_of(cls)
    changed = {name: value for name, value in values.items() if name in figures}
    fields = {name: value for name, value in values.items() if name not in figures}
    return {**fields, "unusual": tuple({**dict(unusual), **changed}.items())}


__all__ = ["Figure", "Figures", "evolve", "figures_of", "record_of", "settle_figures"]
