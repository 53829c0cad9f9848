"""The func dialect: functions, calls and returns, on every level above the host program."""

from irc.dialects.func import text, verify
from irc.dialects.func.ops import (
    LEVELS,
    CallOp,
    FuncOp,
    ReturnOp,
)

__all__ = [
    "text",
    "verify",
    "CallOp",
    "FuncOp",
    "LEVELS",
    "ReturnOp",
]
