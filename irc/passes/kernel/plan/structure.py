"""When two computes or groups are the same but for the arrays that they read."""

from __future__ import annotations

from typing import Any

from irc.dialects.sym.ranges import WHEN
from irc.ir import attributes as A
from irc.ir.core import Operation, Value


def structural_key(op: Operation, inputs: list[Value]) -> Any:
    """Equal for two computes or groups of which the same schedule is chosen and the same kernel
    formed, but for the range of a size that they run for. inputs: the arrays that they read."""
    numbers: dict[Value, int] = {}
    parts: list[Any] = []
    for value in inputs:
        numbers[value] = len(numbers)
        parts.append(value.type)

    def visit(inner: Operation) -> None:
        for result in inner.results:
            numbers[result] = len(numbers)
        parts.append(type(inner))
        parts.append(tuple([numbers.get(o, -1) for o in inner.operands]))
        parts.append(tuple([r.type for r in inner.results]))
        entries = (item for item in inner.attributes.items() if item[0] != WHEN)
        parts.append(tuple(sorted(entries, key=A.entry_name)))
        for region in inner.regions:
            for block in region.blocks:
                current = block.first
                while current is not None:
                    visit(current)
                    current = current.next
                parts.append(None)

    visit(op)
    return tuple(parts)


__all__ = ["structural_key"]
