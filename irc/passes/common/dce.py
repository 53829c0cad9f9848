"""The pass `dce`."""

from __future__ import annotations

from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.rewriting import is_trivially_dead


@register_pass
class DeadCodeElimination(Pass):
    """Removes operations without effect whose results are unused, last first.

    Before:
        %y = arith.addi %x, %x : i32
        func.return %x : i32
    After:
        func.return %x : i32
    """

    name = "dce"
    summary = "remove operations without effect whose results are unused"
    anchor = "any"

    def run(self, op: Operation, context: PassContext) -> None:
        removed = 0
        for inner in op.walk(reverse=True):
            if inner is not op and is_trivially_dead(inner):
                inner.erase()
                removed += 1
        context.count("removed", removed)
