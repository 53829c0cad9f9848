"""The pass `plan-memory`."""

from __future__ import annotations

import attrs

from irc.dialects import host
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, Expr, dim_product, dim_sum, floordiv, maximum, provable_le
from irc.ir.types import TensorType, element_bytes
from irc.passes.host.bufferize import Aliases

ALIGNMENT = 64


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


@attrs.define(eq=False)
class Life:
    """An allocation with its size in bytes and the steps between which it is in use."""

    op: host.AllocOp
    size: Dim
    start: int
    end: int

    def meets(self, other: Life) -> bool:
        """Whether both are in use at some step."""
        return self.start <= other.end and other.start <= self.end

    def place(self, offset: Dim) -> None:
        """Give the allocation its place."""
        self.op.attributes["offset"] = A.DimAttr(offset)


def lifetimes(function: host.FuncOp) -> list[Life]:
    """The allocations of a host program that don't escape, in order."""
    aliases = Aliases()
    lives: dict[Value, Life] = {}
    for step, op in enumerate(function.block.ops):
        aliases.add(op)
        for value in op._operands:
            for root in aliases.of(value):
                life = lives.get(root)
                if life is not None:
                    life.end = step
        if isinstance(op, host.AllocOp) and not op.escapes:
            size = aligned(memory_bytes(op.memory.type))
            lives[op.memory] = Life(op, size, step, step)
    return list(lives.values())


def memory_bytes(type_: TensorType) -> Dim:
    """The bytes from the first element of a tensor to the end of its last."""
    width = element_bytes(type_.element)
    assert type_.strides is not None
    if is_dense(type_):
        return dim_product(type_.shape) * width
    spans = [(size - 1) * step for size, step in zip(type_.shape, type_.strides, strict=True)]
    reach = dim_sum([1, *spans])
    return (max(reach, 0) if isinstance(reach, int) else maximum(reach, 0)) * width


def is_dense(type_: TensorType) -> bool:
    """Whether elements fill memory without gaps, in some order of the dimensions."""
    left = [
        (size, step)
        for size, step in zip(type_.shape, type_.strides or (), strict=True)
        if size != 1
    ]
    running: Dim = 1
    while left:
        following = next((pair for pair in left if pair[1] == running), None)
        if following is None:
            return False
        left.remove(following)
        running = running * following[0]
    return True


def aligned(size: Dim) -> Dim:
    """The size rounded up to the alignment; something even for nothing."""
    if isinstance(size, int):
        return max(-(-size // ALIGNMENT), 1) * ALIGNMENT
    return floordiv(size + (ALIGNMENT - 1), ALIGNMENT) * ALIGNMENT


def place_static(lives: list[Life]) -> int:
    """Place the allocations of known size; gives the bytes that they take together."""
    placed: list[tuple[int, int, Life]] = []
    top = 0
    for life in sorted(lives, key=lambda a: (-a.size, a.start)):  # type: ignore[operator]
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
