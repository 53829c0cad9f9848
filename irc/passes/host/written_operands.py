"""Calls that write operands, in a host program: which memory they write.

A `graph.call_aten` with `written` gets copies of those operands. Here the copy is spared where
the operand's memory is the program's own, or that of an argument which gets the result, and
nothing reads its old elements afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import graph
from irc.ir.core import Operation, Value


def result_of(call: graph.CallAten, number: int) -> Value:
    """The result that is operand `number` after the call."""
    written = tuple(call.written or ())
    return call.results[len(call.results) - len(written) + written.index(number)]


def operand_of(call: Operation | None, result: Value) -> Value | None:
    """The operand whose new content `result` is; None if it is another result."""
    if not isinstance(call, graph.CallAten) or not call.written:
        return None
    for number in call.written:
        if result_of(call, number) is result:
            return call.operands[number]
    return None


def is_last_reader(
    call: graph.CallAten, memory: Value, roots: Sequence[frozenset[Value]], last: int, at: int
) -> bool:
    """Whether the call, at place `at`, is the last to use `memory` and does so by one operand.
    `roots`: which memory each operand may be in; `last`: where `memory` is used last."""
    return last <= at and sum(memory in r for r in roots) == 1
