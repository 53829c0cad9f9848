"""The flow dialect: control flow as calls of functions, on every level.

An operation names functions of its module and is called like an operator of ATen: what it reads
are its operands, its results are fresh arrays, which share memory with nothing. The functions are
lowered like any other, so the operations are the same from the aten level to the host program.
Symbols belong to one function: each of these binds its own, from its arguments.
"""

from irc.dialects.flow import verify
from irc.dialects.flow.ops import (
    CondOp,
    FlowOp,
    ScanOp,
    WhileOp,
    tensors_of,
)

__all__ = [
    "verify",
    "CondOp",
    "FlowOp",
    "ScanOp",
    "WhileOp",
    "tensors_of",
]
