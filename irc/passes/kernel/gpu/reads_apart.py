"""Reads of a pointwise kernel whose elements lie apart, or where data says.

Threads of a warp that have four points each, so as to store 16 bytes at once, read elements four
points apart at the same time. Where the elements of points beside each other lie apart by
themselves, that is four times as many lines of memory for each read. On an H200 three reads nine
elements apart take 5.2 us with a point for each thread, 8.3 with four; images sampled where a grid
says 16.4 and 39.
"""

from __future__ import annotations

from collections.abc import Iterator

from irc.analysis.loop import points
from irc.analysis.positions import placeholders_of
from irc.dialects import loop
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim, coefficient, free_symbols
from irc.passes.common.bodies import extents_of
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan, accesses, offset_of
from irc.target.gpu import GpuFeatures


def reads_apart(plan: GpuPlan, gpu: GpuFeatures) -> bool:
    """Whether several reads of a pointwise kernel, and more than half, are of elements that lie
    apart along the innermost axis, or where other data says that differs along it, and is more than
    a small table."""
    if not plan.rows:
        return False
    apart = all_ = 0
    for member, offset, _, stored in accesses(plan):
        name = member.rows[-1]
        if stored:
            if coefficient(offset, name) != 1:
                return False
            continue
        step = coefficient(offset, name)
        all_ += 1
        apart += (isinstance(step, int) and step > 1) or is_looked_up(
            member, offset, name, gpu.pointwise_block
        )
    return apart > 1 and 2 * apart > all_


def is_looked_up(member: GpuMember, offset: Dim, axis: str, least: int = 0) -> bool:
    """Whether the positions that something is read at differ along an axis; with `least` only as
    what is read of at least so many elements of an array does."""
    if not list(placeholders_of(offset)):
        return False
    positions = [
        position
        for read in member.compute.reads
        if offset_of(read.indices, read.source.type) == offset  # type: ignore[arg-type]
        for position in read.positions
    ]
    extents = extents_of(member.compute)
    for op in _makers(positions):
        if isinstance(op, loop.ReadOp | loop.IndexOp) and axis in (names := _names(op)):
            if not least:
                return True
            elements = points(extents[name] for name in names if name in extents)
            if isinstance(op, loop.ReadOp) and elements >= least:
                return True
    return False


def _makers(values: list[Value]) -> Iterator[Operation]:
    """All operations that values are made by."""
    seen = set[Operation]()
    left = [value.defining_op for value in values]
    while left:
        op = left.pop()
        if op is not None and op not in seen:
            seen.add(op)
            yield op
            left += [operand.defining_op for operand in op.operands]


def _names(op: Operation) -> set[str]:
    dims = op.indices if isinstance(op, loop.ReadOp) else (op.expression,)  # type: ignore[attr-defined]
    return set().union(*map(free_symbols, dims))


__all__ = ["is_looked_up", "reads_apart"]
