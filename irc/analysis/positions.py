"""Positions that are data: where a `loop.read` takes an index from what was read before."""

from __future__ import annotations

from irc.dialects import arith, loop
from irc.ir.core import Value
from irc.ir.symbols import Dim, free_symbols, symbol
from irc.ir.types import TensorType, index


def placeholder_number(name: str) -> int | None:
    """The number of the placeholder called `name`; None for any other symbol."""
    return int(name[1:]) if name[0] == "_" and name[1:].isdigit() else None


def placeholders_of(*dims: Dim) -> list[int]:
    """The numbers of the placeholders in index expressions, ascending."""
    names = {name for d in dims for name in free_symbols(d)}
    return sorted(n for n in map(placeholder_number, names) if n is not None)


def data_dims(read: loop.ReadOp) -> list[tuple[int, Dim]]:
    """The dimensions that a read indexes with data, and their sizes."""
    if not read.positions:
        return []
    type_ = read.source.type
    assert isinstance(type_, TensorType)
    return [(k, type_.shape[k]) for k, d in enumerate(read.indices) if placeholders_of(d)]


def stays_inside(read: loop.ReadOp) -> bool:
    """Whether a read is in bounds by itself, wherever its data says: each position that is data is
    0 where it is out of bounds, and there is such an element."""
    dims = data_dims(read)
    return bool(dims or not read.positions) and all(
        isinstance(size, int) and size > 0 and is_clamped(read, dim, size) for dim, size in dims
    )


def position_along(read: loop.ReadOp, dim: int) -> Value | None:
    """The value that is a read's whole index along `dim`."""
    expression = tuple(read.indices)[dim]
    numbers = placeholders_of(expression)
    if len(numbers) != 1 or expression != symbol(loop.placeholder(numbers[0])):
        return None
    position: Value = read.positions[numbers[0]]
    return position if position.type is index else None


def is_clamped(read: loop.ReadOp, dim: int, size: Dim) -> bool:
    """Whether a position is 0 wherever it is outside of [0, size), as `attach-checks` makes it."""
    position = position_along(read, dim)
    maker = None if position is None else position.defining_op
    if not isinstance(maker, arith.SelectOp):
        return False
    condition, chosen, other = maker.operands
    both = condition.defining_op
    if not isinstance(both, arith.AndIOp) or _constant(other) != 0:
        return False
    bounds = [_compared(operand) for operand in both.operands]
    return bounds == [("sge", chosen, 0), ("slt", chosen, size)]


def _compared(value: Value) -> tuple[str, Value, int | None] | None:
    """The predicate, the value and the number that it is compared with; None: something else."""
    maker = value.defining_op
    if not isinstance(maker, arith.CmpIOp):
        return None
    left, right = maker.operands
    return maker.attributes["predicate"].value, left, _constant(right)  # type: ignore[attr-defined]


def _constant(value: Value) -> int | None:
    maker = value.defining_op
    if not isinstance(maker, arith.ConstantOp):
        return None
    return int(maker.attributes["value"].value)  # type: ignore[attr-defined]


__all__ = ["data_dims", "is_clamped", "placeholder_number", "placeholders_of", "position_along",
           "stays_inside"]  # fmt: skip
