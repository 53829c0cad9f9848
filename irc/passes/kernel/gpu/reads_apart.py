"""Reads of a pointwise kernel whose elements lie apart, or where data says.

Threads of a warp that have several points each, so as to store 16 bytes at once, read elements so
many points apart at the same time. Where the elements of points beside each other lie apart by
themselves, that is as many times the lines of memory for each read. On an H200 three reads nine
elements apart take 5.2 us with a point for each thread, 8.3 with eight; images sampled where a grid
says 16.4 and 39.
"""

from __future__ import annotations

from irc.analysis.loop import points
from irc.dialects import loop
from irc.ir.symbols import coefficient, free_symbols
from irc.passes.common.bodies import extents_of, ops_needed
from irc.passes.kernel.gpu.plan import GpuPlan, accesses, offset_of, reads_in_memory
from irc.target.gpu import GpuFeatures


def reads_apart(plan: GpuPlan, gpu: GpuFeatures) -> bool:
    """Whether several reads of a pointwise kernel, and more than half, are of elements that lie
    apart along the innermost axis, or where other data says that differs along it, and is more than
    a small table."""
    if not plan.rows:
        return False
    stores = ((m, offset) for m, offset, _, stored in accesses(plan) if stored)
    if any(coefficient(offset, m.rows[-1]) != 1 for m, offset in stores):
        return False
    apart = []
    for member, read in reads_in_memory(plan):
        name = member.rows[-1]
        step = coefficient(offset_of(read.indices, read.source.type), name)  # type: ignore[arg-type]
        far = isinstance(step, int) and step > 1
        apart.append(far or is_looked_up(read, name, gpu.pointwise_block))
    return sum(apart) > 1 and 2 * sum(apart) > len(apart)


def is_looked_up(read: loop.ReadOp, axis: str, least: int = 0) -> bool:
    """Whether the positions that something is read at differ along an axis; with `least` only as
    what is read of at least so many elements of an array does."""
    compute = read.parent_op
    assert isinstance(compute, loop.ComputeOp)
    extents = extents_of(compute)
    for position in read.positions:
        for op in ops_needed(compute.block, position):
            if isinstance(op, loop.IndexOp) and not least and axis in free_symbols(op.expression):
                return True
            if isinstance(op, loop.ReadOp):
                names = set[str]().union(*map(free_symbols, op.indices))
                elements = points(extents[name] for name in names if name in extents)
                if axis in names and elements >= least:
                    return True
    return False


__all__ = ["is_looked_up", "reads_apart"]
