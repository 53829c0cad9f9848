"""Rows of which the next ones are read while one is computed.

A row of 32,768 points in registers takes all of a processor. Program instances that hold one row
each then take turns: nothing is read while they compute. So as many program instances as there are
processors may walk over the rows, and what they read goes to shared memory ahead of them. Softmax
of 2048x30523 bf16 on an H200: 73 us with two rows ahead and 16 warps, 85 without, 78 with 32 warps
(a copy of as many bytes 62); with one row ahead 101, and of 1024x30523 f32, where shared memory has
room for no more, 85 rather than 73. So it is done where two fit.
"""

from __future__ import annotations

from typing import Any

from irc.ir.symbols import Dim, coefficient, free_symbols, known_divisor, symbol
from irc.ir.types import element_bytes
from irc.passes.kernel.gpu.odd_rows import GROUP_BYTES
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan, offset_of
from irc.target.gpu import GpuFeatures


def stages_ahead(plan: GpuPlan, gpu: GpuFeatures, block: int, group: int) -> int:
    """How many rows may be under way in each program instance, one of them being computed: at most
    `ahead_stages`, and as many as shared memory holds of tiles of `block` points, which begin at
    groups of `group` elements. 1: none can be read ahead."""
    held: dict[object, int] = {}
    for member in plan.members:
        for read in member.compute.reads:
            if plan.origin(read.source) is not None:
                continue
            array: Any = read.source.type
            place = _place(member, offset_of(read.indices, array))
            size = element_bytes(array.element)
            if place is None:
                continue
            if group * size < GROUP_BYTES and not place[-1] * size % GROUP_BYTES == 0:
                return 1
            held[read.source, place] = block * size
    room = gpu.shared_bytes - gpu.spare_bytes
    return min(gpu.ahead_stages, 1 + room // sum(held.values())) if held else 1


def _place(member: GpuMember, offset: Dim) -> tuple[Any, ...] | None:
    """How an offset moves from row to row and along them, and what divides all but the own axis;
    None where it doesn't move along both."""
    used, own = free_symbols(offset), [axis.name for axis in member.own]
    if not used & set(own) or not used & set(member.row_names):
        return None
    steps = [coefficient(offset, name) for name in (*member.row_names, *own)]
    last = next((name for name in own if coefficient(offset, name) == 1), None)
    return (*steps, 1 if last is None else known_divisor(offset - symbol(last)))


__all__ = ["stages_ahead"]
