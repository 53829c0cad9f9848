"""The pass `canonicalize`."""

from __future__ import annotations

from collections import Counter

from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.rewrite.driver import apply_patterns_greedily, canonicalization_patterns


@register_pass
class Canonicalize(Pass):
    """Folds constants, removes dead code and applies every canonicalization pattern.

    Before:
        %c0 = arith.constant 0 : i32
        %y = arith.addi %x, %c0 : i32
    After: every use of %y is a use of %x.
    """

    name = "canonicalize"
    summary = "fold, remove dead code and apply canonicalization patterns until nothing changes"
    anchor = "any"
    max_rewrites: int = 0

    def run(self, op: Operation, context: PassContext) -> None:
        counts: Counter[str] = Counter()
        limit = self.max_rewrites or None
        try:
            apply_patterns_greedily(
                op, canonicalization_patterns(), max_rewrites=limit, counts=counts,
                fuel=context.fuel,
            )  # fmt: skip
        finally:
            for name, times in counts.items():
                context.count(name, times)
