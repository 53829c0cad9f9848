"""Comparing two programs: equal up to the names of values, or where they first differ."""

from __future__ import annotations

from irc.ir.attributes import Type
from irc.ir.core import Block, Operation, Region, Value


def structurally_equal(a: Operation, b: Operation, *, locations: bool = False) -> bool:
    """Whether two operations, with all inside them, are equal up to names (and locations)."""
    return first_difference(a, b, locations=locations) is None


def first_difference(a: Operation, b: Operation, *, locations: bool = False) -> str | None:
    """Where and how `b` first differs from `a`, None if nowhere. Operands defined outside of
    `a` and `b` must be the same values."""
    return _Comparison(locations).ops(a, b, a.name)


class _Comparison:
    def __init__(self, locations: bool) -> None:
        self.locations = locations
        self.values: dict[Value, Value] = {}
        self.blocks: dict[Block, Block] = {}
        self.late: list[tuple[Value, Value, str]] = []

    def ops(self, a: Operation, b: Operation, path: str) -> str | None:
        difference = self.compare(a, b, path)
        if difference is None:
            for left, right, where in self.late:
                if self.values.get(left, left) is not right:
                    return f"{where}: different values"
        return difference

    def compare(self, a: Operation, b: Operation, path: str) -> str | None:
        if a.name != b.name:
            return f"{path}: {a.name} and {b.name}"
        for what, left, right in (
            ("operand types", [v.type for v in a._operands], [v.type for v in b._operands]),
            ("result types", list(a.result_types), list(b.result_types)),
        ):
            if left != right:
                return f"{path}: {what} {_list(left)} and {_list(right)}"
        if a.attributes != b.attributes:
            for key in sorted({*a.attributes, *b.attributes}):
                first, second = a.attributes.get(key), b.attributes.get(key)
                if first is not second:
                    return f"{path}: attribute '{key}' is {first} and {second}"
        if self.locations and a.location is not b.location:
            return f"{path}: locations {a.location} and {b.location}"
        for number, (x, y) in enumerate(zip(a._operands, b._operands)):
            self.late.append((x, y, f"{path}: operand {number}"))
        if [self.blocks.get(s) for s in a.successors] != list(b.successors):
            return f"{path}: different successors"
        self.values.update(zip(a.results, b.results))
        if len(a.regions) != len(b.regions):
            return f"{path}: {len(a.regions)} and {len(b.regions)} regions"
        for number, (left_region, right_region) in enumerate(zip(a.regions, b.regions)):
            difference = self.regions(left_region, right_region, f"{path} region {number}")
            if difference is not None:
                return difference
        return None

    def regions(self, a: Region, b: Region, path: str) -> str | None:
        if len(a.blocks) != len(b.blocks):
            return f"{path}: {len(a.blocks)} and {len(b.blocks)} blocks"
        for left, right in zip(a.blocks, b.blocks):
            self.blocks[left] = right
            types = [x.type for x in left.arguments], [x.type for x in right.arguments]
            if types[0] != types[1]:
                return f"{path}: block arguments {_list(types[0])} and {_list(types[1])}"
            self.values.update(zip(left.arguments, right.arguments))
        for left, right in zip(a.blocks, b.blocks):
            x, y = left.first, right.first
            number = 0
            while x is not None and y is not None:
                difference = self.compare(x, y, f"{path} op {number}")
                if difference is not None:
                    return difference
                x, y, number = x.next, y.next, number + 1
            if x is not None or y is not None:
                more = x if x is not None else y
                assert more is not None
                side = "first" if x is not None else "second"
                return f"{path} op {number}: {more.name} only in the {side}"
        return None


def _list(types: list[Type]) -> str:
    return f"({', '.join(map(str, types))})"
