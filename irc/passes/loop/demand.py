"""Which values of a body matter only where a condition holds, and the selects and masks that this
spares."""

from __future__ import annotations

from collections.abc import Mapping

from irc.analysis.loop import array_bytes
from irc.dialects import arith, loop
from irc.ir.core import Block, Value
from irc.ir.symbols import Dim, provable_le
from irc.ir.traits import Traps
from irc.passes.common.bodies import Body

Conditions = frozenset[Value]
_ALWAYS: Conditions = frozenset()


def demands(block: Block) -> dict[Value, Conditions]:
    """For each value made in the block and used: conditions that all hold where it matters."""
    conditions_of: dict[Value, Conditions] = {}

    def demand(value: Value, conditions: Conditions) -> None:
        known = conditions_of.get(value)
        conditions_of[value] = conditions if known is None else known & conditions

    for op in block.reversed_ops:
        operands = op.operands
        # A vector division by a zero lane kills the process, whether the lane is used or not.
        if isinstance(op, loop.ReadOp | loop.IndexOp | loop.YieldOp) or Traps in op.traits:
            for value in operands:
                demand(value, _ALWAYS)
            continue
        here = conditions_of.get(op.results[0], _ALWAYS)
        if isinstance(op, arith.SelectOp):
            condition, yes, no = operands
            demand(condition, here)
            demand(yes, here | {condition})
            demand(no, here)
            continue
        for value in operands:
            demand(value, here)
    return conditions_of


def drop_selects(block: Block) -> int:
    """Replace selects by what they choose where that is all that matters; how many went.

    A chain of masked maps put into a `pad` selects after each of its operations; the last select
    is enough.
    """
    selects = [op for op in block.ops if isinstance(op, arith.SelectOp)]
    if len(selects) < 2:
        return 0
    demanded, dropped = demands(block), 0
    for op in selects:
        condition, yes, _ = op.operands
        if condition in demanded.get(op.results[0], _ALWAYS):
            op.results[0].replace_all_uses_with(yes)
            op.erase()
            dropped += 1
    return dropped


def drop_masks(block: Block, extents: Mapping[str, Dim], near_bytes: int) -> int:
    """Read arrays of up to `near_bytes` everywhere where what a mask gives instead doesn't matter;
    how many went.

    A map that is put into a `pad` reads only where the pad does. What it reads by column alone, a
    scale for each channel, is then the same in all rows, and needs no mask where it is in bounds.
    """
    masked = [
        op for op in block.ops
        if isinstance(op, loop.ReadOp) and op.mask is not None
        and array_bytes(op.source.type) <= near_bytes and is_inside(op, extents)
    ]  # fmt: skip
    if not masked:
        return 0
    demanded, dropped = demands(block), 0
    for op in masked:
        assert op.mask is not None
        if op.mask in demanded.get(op.results[0], _ALWAYS):
            body = Body(block, op)
            body.location = op.location
            op.results[0].replace_all_uses_with(body.read(op.source, op.indices))
            op.erase()
            dropped += 1
    return dropped


def is_inside(read: loop.ReadOp, extents: Mapping[str, Dim]) -> bool:
    """Whether a read is known to be in bounds at every point of the axes."""
    if read.positions:
        return False
    sizes = read.source.type.shape  # type: ignore[attr-defined]
    return all(
        provable_le(0, dim, {}, extents) and provable_le(dim + 1, size, {}, extents)
        for dim, size in zip(read.indices, sizes, strict=True)
    )
