"""Writes whose order a GPU's threads decide: not where torch asks for equal bits from equal calls.

A kernel that scatters has threads that write to one place as they get there. Sums of floats differ
by their order, and of several elements that are set one stays. ATen has another algorithm where
`torch.use_deterministic_algorithms(True)` holds, or raises.
"""

from __future__ import annotations

from irc.dialects import graph
from irc.ir.core import Block, Operation
from irc.ir.rewrite.conversion import decline
from irc.ir.types import FloatType, TensorType


def decline_races(last: Operation | None, block: Block) -> None:
    """Decline what was made behind `last` where a part of it races on a GPU."""
    op = block.last
    while op is not None and op is not last:
        if isinstance(op, graph.Put | graph.Scatter) and races(op):
            decline("torch is set to deterministic algorithms, and a GPU's threads write in the "
                    "order in which they get there")  # fmt: skip
        op = op.prev


def races(op: graph.Put | graph.Scatter) -> bool:
    """Whether the order of an operation's writes shows. Places that are checked are data: two may
    be the same."""
    result = op.results[0].type
    assert isinstance(result, TensorType)
    if result.device == "cpu":
        return False
    if op.combiner == "set":
        return bool(op.check_bounds)
    return isinstance(result.element, FloatType) and op.combiner in ("sum", "prod")


__all__ = ["decline_races", "races"]
