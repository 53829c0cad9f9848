"""On which level a function stands."""

from __future__ import annotations

from irc.ir.core import Operation


def holds_loops(function: Operation) -> bool:
    """Whether a function holds operations of the loop level: the passes from above that level
    leave it as it is, so that a pipeline may begin anywhere."""
    return any(
        op.name.startswith("loop.")
        for region in function.regions
        for block in region.blocks
        for op in block.ops
    )
