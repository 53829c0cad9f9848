"""The pass `dce`."""

from __future__ import annotations

from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.rewrite.driver import is_trivially_dead
from irc.ir.rewrite.fuel import Fuel


@register_pass
class DeadCodeElimination(Pass):
    """Removes operations without effect whose results are unused, last first.

    Before:
        %y = arith.addi %x, %x : i32
        return %x : i32
    After:
        return %x : i32
    """

    name = "dce"
    summary = "remove operations without effect whose results are unused"
    anchor = "any"

    def run(self, op: Operation, context: PassContext) -> None:
        context.count("removed", sweep(op, context.fuel))


def sweep(op: Operation, fuel: Fuel | None) -> int:
    """Remove what is dead inside `op`, last first, so that one pass over it is enough."""
    removed = 0
    for region in reversed(op.regions):
        for block in reversed(region.blocks):
            inner = block.last
            while inner is not None:
                before = inner.prev
                if inner.regions:
                    removed += sweep(inner, fuel)
                results = inner.results
                if results and not results[0].has_uses and is_trivially_dead(inner):
                    if fuel is None or fuel.spend("dce", inner):
                        inner.erase()
                        removed += 1
                inner = before
    return removed
