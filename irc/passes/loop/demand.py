"""Which values of a body matter only where a condition holds, and the selects that this spares."""

from __future__ import annotations

from irc.dialects import arith, loop
from irc.ir.core import Block, Value

Conditions = frozenset[Value]
_ALWAYS: Conditions = frozenset()
# A vector division by a zero lane kills the process, whether the lane is used or not.
_TRAPS = frozenset(
    "arith.divsi arith.divui arith.floordivsi arith.ceildivsi arith.remsi arith.remui".split()
)


def demands(block: Block) -> dict[Value, Conditions]:
    """For each value made in the block and used: conditions that all hold where it matters."""
    found: dict[Value, Conditions] = {}

    def demand(value: Value, conditions: Conditions) -> None:
        known = found.get(value)
        found[value] = conditions if known is None else known & conditions

    for op in block.reversed_ops:
        operands = op._operands
        if isinstance(op, loop.ReadOp | loop.IndexOp | loop.YieldOp) or op.name in _TRAPS:
            for value in operands:
                demand(value, _ALWAYS)
            continue
        here = found.get(op.results[0], _ALWAYS)
        if isinstance(op, arith.SelectOp):
            condition, yes, no = operands
            demand(condition, here)
            demand(yes, here | {condition})
            demand(no, here)
            continue
        for value in operands:
            demand(value, here)
    return found


def drop_selects(block: Block) -> int:
    """Replace selects by what they choose where that is all that matters; how many went.

    A chain of masked maps put into a `pad` selects after each of its operations; the last select
    is enough.
    """
    selects = [op for op in block.ops if isinstance(op, arith.SelectOp)]
    if len(selects) < 2:
        return 0
    found, dropped = demands(block), 0
    for op in selects:
        condition, yes, _ = op._operands
        if condition in found.get(op.results[0], _ALWAYS):
            op.results[0].replace_all_uses_with(yes)
            op.erase()
            dropped += 1
    return dropped
