"""What is chosen among arrays that are made for different sizes: each is made in one memory."""

from __future__ import annotations

from collections import Counter

from irc.analysis.calls import OUT_VARIANTS
from irc.dialects import func, graph, host, sym
from irc.dialects.sym.ranges import WHEN
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value


def choose_in_memory(function: func.FuncOp) -> dict[Value, Value]:
    """Give every `sym.choose` its memory and erase it: the memory by the array that is made there.

    That is what a launch makes, or a call that writes memory of the program, and no other choice
    has. Any other array is copied, for its sizes.
    """
    choices = [op for op in function.block.ops if isinstance(op, sym.ChooseOp)]
    if not choices:
        return {}
    order = {op: number for number, op in enumerate(function.block.ops)}
    times = Counter(value for op in choices for value in op.operands)
    places: dict[Value, Value] = {}
    for op in choices:
        chosen = op.chosen
        makers = [value.defining_op for value in op.operands]
        first = min((maker for maker in makers if maker is not None), key=order.__getitem__)
        memory: Value = Builder.before(first).value(host.AllocOp, result_types=chosen.type)
        memory.name_hint = chosen.name_hint
        behind = Builder.before(op)
        for value, maker in zip(op.operands, makers, strict=True):
            if times[value] == 1 and _makes_anywhere(maker):
                places[value] = memory
                continue
            assert maker is not None
            when = {WHEN: maker.attributes[WHEN]}
            behind.insert(host.HostCopyOp((value, memory), (), when, (), op.location))
        chosen.replace_all_uses_with(memory)
        op.erase()
    return places


def _makes_anywhere(op: Operation | None) -> bool:
    """Whether an operation makes its arrays in memory that it is given."""
    if isinstance(op, graph.CallAten):
        return op.callee in OUT_VARIANTS
    return isinstance(op, host.LaunchOp)


__all__ = ["choose_in_memory"]
