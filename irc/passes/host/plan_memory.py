"""The pass `plan-memory`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

import attrs

from irc.dialects import host
from irc.dialects.host.memory import Life, lifetimes
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, Expr, provable_le, value_at
from irc.target.record import lone_bytes


@register_pass
class PlanMemory(Pass):
    """Places allocations that don't escape in one arena; those whose lives don't overlap share
    bytes.

    An allocation lives from where it stands to the last use of it or of any view of it. Static
    sizes are placed largest first, each at the tightest free place; symbolic ones take turns in
    slots of equal or provably sufficient size behind them.

    On a GPU large arrays that no other takes turns with stay memory of their own, from torch's
    allocator (`lone_bytes` of the target): the arena lives as long as the call, from before a
    backward has read what was saved to when it has made all gradients.

    Before:
        %t = host.alloc : tensor<[4] x f32, strides [1]>
    After:
        %t = host.alloc {offset = #sym<0>} : tensor<[4] x f32, strides [1]>
    """

    name = "plan-memory"
    summary = "place temporary arrays in one arena"

    def run(self, op: Operation, context: PassContext) -> None:
        least = lone_bytes(context)
        for function in op.regions[0].blocks[0].ops:
            if isinstance(function, host.HostFuncOp):
                lives = lifetimes(function)
                alone = lone(lives, least) if least else set()
                context.count("alone", len(alone))
                lives = [life for life in lives if life.op not in alone]
                fixed = place_static([a for a in lives if isinstance(a.size, int)])
                place_symbolic([a for a in lives if isinstance(a.size, Expr)], fixed)
                context.count("placed", len(lives))


def lone(lives: list[Life], least: int) -> set[host.AllocOp]:
    """The allocations of at least so many bytes whose place in the arena no other of at least half
    their size would have before or after them."""
    fixed = [(life.size, life) for life in lives if isinstance(life.size, int)]
    return {
        life.op for size, life in fixed
        if size >= least and all(life.meets(other) for more, other in fixed if 2 * more >= size)
    }  # fmt: skip


def place_static(lives: list[Life]) -> int:
    """Place the allocations of known size; gives the bytes that they take together."""
    placed = _PlacedBuffer(max((life.end for life in lives), default=0))
    top = 0
    for life in sorted(lives, key=lambda a: (-a.size, a.start)):
        size = life.size
        assert isinstance(size, int)
        offset = _tightest_gap(placed.busy(life), size)
        life.place(offset)
        placed.add(life, offset, size)
        top = max(top, offset + size)
    return top


class _PlacedBuffer:
    """The bytes that placed allocations take up, by the steps at which they are in use.

    Two lives meet where one begins within the other. Both are asked of binary trees over the
    steps: a node of the one has the bytes in use at all of its steps, but not at its parent's, a
    node of the other those of all that begin at its steps. Bytes that adjoin are one range, so
    that a node has few.
    """

    def __init__(self, last: int) -> None:
        self._leaves = 1 << last.bit_length()
        self._lasting: dict[int, _Ranges] = defaultdict(_Ranges)
        self._begun: dict[int, _Ranges] = defaultdict(_Ranges)

    def add(self, life: Life, offset: int, size: int) -> None:
        """Note that the allocation has the bytes from `offset` on."""
        node, end = life.start + self._leaves, offset + size
        while node:
            self._begun[node].add(offset, end)
            node >>= 1
        for node in self._between(life.start, life.end):
            self._lasting[node].add(offset, end)

    def busy(self, life: Life) -> list[tuple[int, int]]:
        """The bytes of the allocations that are in use while `life` lasts, in order."""
        spans: list[tuple[int, int]] = []
        node, lasting, begun = life.start + self._leaves, self._lasting, self._begun
        while node:
            if node in lasting:
                spans += lasting[node].all()
            node >>= 1
        for node in self._between(life.start + 1, life.end):
            if node in begun:
                spans += begun[node].all()
        return sorted(spans)

    def _between(self, first: int, last: int) -> Iterator[int]:
        """The fewest nodes that have the steps from `first` to `last` and no others."""
        low, high = first + self._leaves, last + 1 + self._leaves
        while low < high:
            if low & 1:
                yield low
                low += 1
            if high & 1:
                high -= 1
                yield high
            low, high = low >> 1, high >> 1


class _Ranges:
    """Ranges of bytes, in order, of which no two overlap or adjoin."""

    def __init__(self) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []

    def add(self, low: int, high: int) -> None:
        """Add the bytes from `low` to before `high`."""
        begin, end = bisect_left(self._highs, low), bisect_right(self._lows, high)
        if begin < end:
            low, high = min(low, self._lows[begin]), max(high, self._highs[end - 1])
        self._lows[begin:end], self._highs[begin:end] = [low], [high]

    def all(self) -> Iterator[tuple[int, int]]:
        """The ranges: where each begins and ends."""
        return zip(self._lows, self._highs, strict=True)


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
    room = _Room()
    end: Dim = start
    for life in sorted(lives, key=lambda a: a.start):
        free = [slot for slot in slots if slot.until < life.start]
        slot = next((s for s in free if s.size is life.size), None)
        if slot is None:
            slot = next((s for s in free if room.holds(s.size, life.size)), None)
        if slot is None:
            slot = _Slot(end, life.size)
            slots.append(slot)
            end = end + life.size
        slot.until = max(slot.until, life.end)
        life.place(slot.offset)


SAMPLES = (1, 7, 1000)
"""Numbers that symbols may be: where a size is larger than another with one of them, no proof that
it is not has to be looked for."""


class _Room:
    """Which symbolic sizes are surely no larger than others, found out once for each pair: models
    have many arrays and few sizes."""

    def __init__(self) -> None:
        self._known: dict[tuple[Dim, Dim], bool] = {}
        self._samples: dict[Dim, list[int | None]] = {}

    def holds(self, room: Dim, size: Dim) -> bool:
        """Whether `size` is at most `room`, whatever its symbols are."""
        known = self._known.get((room, size))
        if known is None:
            pairs = zip(self._sampled(size), self._sampled(room), strict=True)
            larger = any(a is not None and b is not None and a > b for a, b in pairs)
            known = self._known[room, size] = not larger and provable_le(size, room)
        return known

    def _sampled(self, size: Dim) -> list[int | None]:
        if size not in self._samples:
            self._samples[size] = [value_at(size, number) for number in SAMPLES]
        return self._samples[size]


@attrs.define
class _Slot:
    """A place for one allocation of symbolic size after the other. until: where it is free."""

    offset: Dim
    size: Dim
    until: int = -1
