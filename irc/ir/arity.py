"""How many operands, results and regions an operation may have, by its definition."""

from __future__ import annotations

from collections.abc import Sequence

from irc.ir.core import Operation
from irc.ir.definition import Field, Op

NO_LIMIT = 1 << 60


class Arity:
    """The bounds of one operation class, computed once."""

    __slots__ = ("operands", "results", "regions")

    def __init__(self, cls: type[Op]) -> None:
        self.operands = _bounds(cls.operand_fields)
        self.results = _bounds(cls.result_fields)
        self.regions = _bounds(cls.region_fields)


_arities: dict[type[Operation], Arity] = {}


def arity_of(cls: type[Op]) -> Arity:
    """The bounds of an operation class."""
    arity = _arities.get(cls)
    if arity is None:
        arity = _arities[cls] = Arity(cls)
    return arity


def _bounds(fields: Sequence[Field]) -> tuple[int, int]:
    low = sum(1 for f in fields if f.kind == "one")
    if any(f.kind == "variadic" for f in fields):
        return low, NO_LIMIT
    return low, low + sum(1 for f in fields if f.kind == "optional")


def arity_error(cls: type[Op], operands: int, results: int, regions: int) -> str | None:
    """What is wrong with these numbers of operands, results and regions; None if nothing."""
    arity = arity_of(cls)
    for what, count, (low, high), fields in (
        ("operand", operands, arity.operands, cls.operand_fields),
        ("result", results, arity.results, cls.result_fields),
        ("region", regions, arity.regions, cls.region_fields),
    ):
        if not low <= count <= high:
            return f"has {_count(count, what)}, not {_expected(low, high, what, fields)}"
    return None


def _count(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"


def _expected(low: int, high: int, what: str, fields: Sequence[Field]) -> str:
    marks = {"one": "", "optional": "?", "variadic": "..."}
    names = ", ".join(f.name + marks[f.kind] for f in fields)
    if high == NO_LIMIT:
        number = f"{low} or more"
    else:
        number = str(low) if low == high else f"{low} to {high}"
    return f"{number} ({names})" if names else number
