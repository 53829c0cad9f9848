"""Where among an operation's operands a value stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irc.ir.core import Operation, Value

#: Of an operation with more operands it is noted where each value is: a return or a join has
#: thousands, which are replaced one after the other.
LONG = 64

# The operation whose operands were looked up last, and the places of each value among them, all by
# identity: neither is kept alive, and what is found is compared with what stands there.
_looked_up: tuple[int, dict[int, list[int]]] = (0, {})


def places_of(user: Operation, value: Value, count: int) -> Sequence[int]:
    """The places among a user's operands that hold `value`, of which there are `count`."""
    global _looked_up
    operands = user._operands
    if len(operands) <= LONG:
        first = operands.index(value)
        if count == 1:
            return (first,)
        return [place for place in range(first, len(operands)) if operands[place] is value]
    whose, table = _looked_up
    if whose == id(user):
        known = table.get(id(value), ())
        if len(known) == count and all(
            place < len(operands) and operands[place] is value for place in known
        ):
            return known
    table = {}
    for place, operand in enumerate(operands):
        table.setdefault(id(operand), []).append(place)
    _looked_up = id(user), table
    return table[id(value)]


def note_replaced(old: Value, new: Value) -> None:
    """Where one value was among the operands that were looked up last, there is another one."""
    table = _looked_up[1]
    places = table.pop(id(old), None)
    if places is not None:
        known = table.get(id(new))
        table[id(new)] = places if known is None else known + places


__all__ = ["LONG", "note_replaced", "places_of"]
