"""Reads that need no reduction come first.

A reduction ends in a barrier of all threads of a program instance, which nothing is read across:
weights that are read where they are used, behind it, come a whole latency of memory later than the
row. Read first they travel together with it, and wait in registers until they are used.
"""

from __future__ import annotations

from irc.dialects import kernel
from irc.ir.core import Block, Operation

_ENDING = kernel.ReduceOp | kernel.KernelScanOp | kernel.StoreOp | kernel.ScatterOp
_READS = kernel.LoadOp | kernel.GatherOp
_STAYING = (
    kernel.ReduceOp | kernel.KernelScanOp | kernel.StoreOp | kernel.ScatterOp | kernel.ForOp
    | kernel.IfOp | kernel.KernelYieldOp | kernel.KernelReturnOp
)  # fmt: skip


def read_early(block: Block, apart: bool = False) -> None:
    """Put the reads of a block (a kernel's, or of its loop over rows) that need no reduction before
    all else, with what their places are computed from; those that read at places that were read
    behind the others. `apart`: also where nothing but computing stands between them."""
    ops = list(block.ops)
    inside = set(ops)
    first = next((k for k, op in enumerate(ops) if isinstance(op, _ENDING)), len(ops))
    if not apart and not any(isinstance(op, _READS) for op in ops[first:]):
        return
    # How many reads, one behind the other, an operation needs.
    needed: dict[Operation, int] = {}
    for op in ops:
        makers = [value.defining_op for value in op.operands if value.defining_op in inside]
        if not isinstance(op, _STAYING) and all(maker in needed for maker in makers):
            needed[op] = max((needed[m] + isinstance(m, _READS) for m in makers), default=0)
    chosen: set[Operation] = set()
    for op in reversed(ops):
        if op in needed and (op in chosen or isinstance(op, _READS)):
            chosen.add(op)
            chosen.update(v.defining_op for v in op.operands if v.defining_op in inside)
    chosen_ops = sorted((op for op in ops if op in chosen), key=needed.__getitem__)
    rest = next((op for op in ops if op not in chosen), None)
    if rest is None or not chosen:
        return
    for op in chosen_ops:
        block.insert_before(op.detach(), rest)


__all__ = ["read_early"]
