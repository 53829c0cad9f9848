"""Figures: numbers that passes decide by, as fields of the records of a target.

    class CpuFigures:
        heavy_body: int = figure(160, "operations", "a body of more has instructions enough ...")

    @attrs.frozen
    @having(CpuFigures)
    class TargetFeatures(CpuFigures, Speeds):

A line adds one: the text of targets reads and writes it (`#irc.target<avx2, launch = 0>`), the
cache's keys hold it, docs/reference/figures.md lists it. A pass asks the record for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs

MOST, MOST_OF_POWERS = 1 << 40, 1 << 16


@attrs.frozen
class Figure:
    """What a figure is: its unit, what it says, its least and its largest value; power: powers of
    two alone."""

    unit: str
    meaning: str
    least: int = 0
    power: bool = False
    most: int = MOST

    def objection(self, value: float) -> str:
        """What is wrong with a value; "" for nothing."""
        most = min(self.most, MOST_OF_POWERS) if self.power else self.most
        if not self.least <= value <= most:
            return f"not from {self.least} to {most}"
        if self.power and int(value) & (int(value) - 1):
            return "not a power of two"
        return ""


def having(*groups: type) -> Callable[[type], type]:
    """Gives a class, before it becomes a record, the figures of classes that it inherits: as fields
    of its own they are made once."""

    def give(cls: type) -> type:
        for group in groups:
            for name, type_ in group.__annotations__.items():
                cls.__annotations__[name] = type_
                setattr(cls, name, group.__dict__[name])
        return cls

    return give


def figure(
    usual: Any, unit: str, meaning: str, *, least: int = 0, power: bool = False, most: int = MOST
) -> Any:
    """A field of a record: a number, or as many numbers as `usual` has."""
    what = Figure(unit, meaning, least, power, most)
    return attrs.field(default=usual, kw_only=True, metadata={"figure": what})


@functools.cache
def figures_of(cls: Any) -> tuple[tuple[attrs.Attribute[Any], Figure], ...]:
    """The fields of a record that are figures."""
    named = ((field, field.metadata.get("figure")) for field in attrs.fields(cls))
    return tuple((field, figure) for field, figure in named if figure is not None)


def check_figures(record: Any) -> None:
    """Raise ValueError for a figure that has a value which makes no sense."""
    cls: Any = type(record)
    for field, what in figures_of(cls):
        value, usual = getattr(record, field.name), field.default
        if value == usual:
            continue
        if isinstance(usual, tuple) and len(value) != len(usual):
            raise ValueError(f"{field.name} is {list(value)}, not {len(usual)} numbers")
        for number in value if isinstance(usual, tuple) else (value,):
            if objection := what.objection(number):
                raise ValueError(f"{field.name} is {number}, {objection}")


__all__ = ["Figure", "check_figures", "figure", "figures_of", "having"]
