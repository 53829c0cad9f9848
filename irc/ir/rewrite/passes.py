"""Passes that are patterns: `PatternPass`.

    # relu(relu(x)) -> relu(x)
    @pattern(graph.Relu, name="graph.relu_twice", counted="dropped")
    def relu_twice(op, rw): ...

    @register_pass
    class DropRelus(PatternPass):
        name = "drop-relus"
        summary = "apply relu once"
        anchor = "func.func"
        patterns = (relu_twice,)

The driver looks at the operations at which a pattern is rooted, in the program's order (`backward`:
against it), and at what a rewrite makes, changes or leaves without a reader, until nothing applies.
It erases what died, fuses locations, spends fuel, and counts by each pattern's `counted`; why
patterns declined (`rw.decline`) becomes remarks. What patterns have to know, the pass's options or
an analysis of the whole function, is `rw.state`, which `prepare` makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar

from irc.ir.core import Operation
from irc.ir.passes import Pass
from irc.ir.passes.context import PassContext
from irc.ir.rewrite.driver import Driver, Pattern
from irc.ir.rewrite.fuel import NO_FUEL


def apply_patterns(
    root: Operation,
    patterns: Iterable[Pattern],
    context: PassContext,
    state: Any = None,
    *,
    backward: bool = False,
) -> bool:
    """Apply a pass's patterns inside `root`, and nothing else: no folds; what was unused before
    stays. Says whether anything changed."""
    counts: Counter[str] = Counter()
    patterns = tuple(patterns)
    driver = Driver(patterns, False, counts, context.fuel, context, state)
    changed = driver.run(root, None, rooted=True, backward=backward)
    for applied in patterns:
        if counts[applied.name]:
            context.count(applied.counted, counts[applied.name])
    if driver.stopped:
        context.remark(NO_FUEL)
    if driver.declined and context.explains:
        for op, reason in driver.declined.items():
            if op.parent is not None:
                context.remark(reason, op)
    return changed


class PatternPass(Pass):
    """A pass that is patterns. They see the pass, or what `prepare` gives, as `rw.state`."""

    patterns: ClassVar[tuple[Pattern, ...]] = ()
    backward: ClassVar[bool] = False

    def prepare(self, op: Operation, context: PassContext) -> Any:
        """What the patterns have to know of `op`, on which the pass runs; None: there is nothing
        for them to do."""
        return self

    def run(self, op: Operation, context: PassContext) -> None:
        state = self.prepare(op, context)
        if state is not None:
            apply_patterns(op, self.patterns, context, state, backward=self.backward)


__all__ = ["PatternPass", "apply_patterns"]
