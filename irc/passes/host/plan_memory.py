"""The pass `plan-memory`."""

from __future__ import annotations

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
    placed: list[tuple[int, int, Life]] = []
    top = 0
    for life in sorted(lives, key=lambda a: (-a.size, a.start)):
        size = life.size
        assert isinstance(size, int)
        busy = sorted((at, at + n) for at, n, other in placed if other.meets(life))
        offset = _tightest_gap(busy, size)
        life.place(offset)
        placed.append((offset, size, life))
        top = max(top, offset + size)
    return top


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
    slots: list[tuple[Dim, Dim, list[Life]]] = []
    end: Dim = start
    for life in lives:
        free = [s for s in slots if not any(other.meets(life) for other in s[2])]
        slot = next((s for s in free if s[1] is life.size), None)
        if slot is None:
            slot = next((s for s in free if provable_le(life.size, s[1])), None)
        if slot is None:
            slot = (end, life.size, [])
            slots.append(slot)
            end = end + life.size
        slot[2].append(life)
        life.place(slot[0])
