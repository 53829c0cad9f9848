"""The pass `plan-memory`."""

from __future__ import annotations

from bisect import bisect_left, insort

import attrs

from irc.analysis.host_memory import Life, lifetimes
from irc.dialects import host
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, Expr, provable_le


@register_pass
class PlanMemory(Pass):
    """Places allocations that don't escape in one arena; those whose lives don't overlap share
    bytes.

    An allocation lives from where it stands to the last use of it or of any view of it. Static
    sizes are placed largest first, each at the tightest free place; symbolic ones take turns in
    slots of equal or provably sufficient size behind them.

    Before:
        %t = host.alloc : tensor<[4] x f32, strides [1]>
    After:
        %t = host.alloc {offset = #sym<0>} : tensor<[4] x f32, strides [1]>
    """

    name = "plan-memory"
    summary = "place temporary arrays in one arena"

    def run(self, op: Operation, context: PassContext) -> None:
        for function in op.regions[0].blocks[0].ops:
            if isinstance(function, host.FuncOp):
                lives = lifetimes(function)
                fixed = place_static([a for a in lives if isinstance(a.size, int)])
                place_symbolic([a for a in lives if isinstance(a.size, Expr)], fixed)
                context.count("placed", len(lives))


def place_static(lives: list[Life]) -> int:
    """Place the allocations of known size; gives the bytes that they take together."""
    placed = _Placed(max((life.end for life in lives), default=0))
    top = 0
    for life in sorted(lives, key=lambda a: (-a.size, a.start)):
        size = life.size
        assert isinstance(size, int)
        offset = _tightest_gap(placed.busy(life), size)
        life.place(offset)
        placed.add(life, offset, size)
        top = max(top, offset + size)
    return top


class _Placed:
    """The bytes that placed allocations take up, by the steps at which they are in use.

    Two lives meet where one begins within the other. Those that begin within a life are found in
    the order of their beginnings; those that are in use where it begins in a segment tree, a node
    of which has the allocations that are in use at all of its steps, but not at its parent's.
    """

    def __init__(self, last: int) -> None:
        self._leaves = 1 << last.bit_length()
        self._nodes: dict[int, list[tuple[int, int]]] = {}
        self._starts: list[tuple[int, int, int]] = []

    def add(self, life: Life, offset: int, size: int) -> None:
        """Note that the allocation has the bytes from `offset` on."""
        taken = (offset, offset + size)
        insort(self._starts, (life.start, *taken))
        low, high = life.start + self._leaves, life.end + 1 + self._leaves
        while low < high:
            if low & 1:
                self._nodes.setdefault(low, []).append(taken)
                low += 1
            if high & 1:
                high -= 1
                self._nodes.setdefault(high, []).append(taken)
            low, high = low >> 1, high >> 1

    def busy(self, life: Life) -> list[tuple[int, int]]:
        """The bytes of the allocations that are in use while `life` lasts, in order."""
        begin = bisect_left(self._starts, (life.start + 1,))
        end = bisect_left(self._starts, (life.end + 1,))
        found = [(low, high) for _, low, high in self._starts[begin:end]]
        node = life.start + self._leaves
        while node:
            found += self._nodes.get(node, ())
            node >>= 1
        return sorted(found)


def _tightest_gap(busy: list[tuple[int, int]], size: int) -> int:
    """The start of the smallest gap between busy ranges that holds `size`; else their end."""
    best: tuple[int, int] | None = None
    at = 0
    for start, end in busy:
        gap = start - at
        if gap >= size and (best is None or gap < best[0]):
            best = (gap, at)
        at = max(at, end)
    return at if best is None else best[1]


def place_symbolic(lives: list[Life], start: int) -> None:
    """Place the allocations of symbolic size in slots from byte `start` on."""
    slots: list[_Slot] = []
    end: Dim = start
    for life in sorted(lives, key=lambda a: a.start):
        free = [slot for slot in slots if slot.until < life.start]
        slot = next((s for s in free if s.size is life.size), None)
        if slot is None:
            slot = next((s for s in free if provable_le(life.size, s.size)), None)
        if slot is None:
            slot = _Slot(end, life.size)
            slots.append(slot)
            end = end + life.size
        slot.until = max(slot.until, life.end)
        life.place(slot.offset)


@attrs.define
class _Slot:
    """A place for one allocation of symbolic size after the other. until: where it is free."""

    offset: Dim
    size: Dim
    until: int = -1
