"""Operators that only check: the program raises what they would."""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import graph, sym
from irc.ir.core import Value
from irc.passes.graph.convert_aten.pointwise import truth
from irc.passes.graph.convert_aten.support import Call, converts, decline, shape_of

NO_MESSAGE = "Expected Tensor with single nonzero value, but got zero"


@converts("aten._assert_async.default", "aten._assert_async.msg")
def assert_async(c: Call) -> Sequence[Value]:
    """One element, which must not be zero. On a GPU ATen checks it without waiting for it."""
    source = c.self_
    if source.type.device != "cpu":
        decline("a GPU checks it while the program goes on")
    if any(size != 1 for size in shape_of(source)):
        decline("ATen says why more than one element can't be checked")
    message = c.arguments.get("assert_msg", NO_MESSAGE) or "Assertion is failed"
    holds = c.emit(graph.Item, truth(c, source))
    c.builder.create(sym.AssertValueOp, holds, message=message)
    return []
