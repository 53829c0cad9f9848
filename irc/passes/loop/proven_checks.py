"""Assertions whose condition is known to hold at every point."""

from __future__ import annotations

from irc.dialects import graph, loop, sym
from irc.ir.core import Block
from irc.passes.loop.positions import is_true


def drop_proven_checks(block: Block) -> int:
    """Remove the assertions whose condition is found to hold at every point; how many went."""
    dropped = 0
    for op in block.ops:
        if not isinstance(op, sym.AssertValueOp):
            continue
        item = op.operands[0].defining_op
        if not isinstance(item, graph.Item):
            continue
        flag = item.operands[0]
        check = flag.defining_op
        if not isinstance(check, loop.ComputeOp) or len(check.results) != 1:
            continue
        (output,) = check.output_list
        if output.combiner == "all" and is_true(check.yield_op.values[0]):
            for unused in (op, item, check):
                if not any(r.has_uses for r in unused.results):
                    unused.erase()
            dropped += 1
    return dropped


__all__ = ["drop_proven_checks"]
