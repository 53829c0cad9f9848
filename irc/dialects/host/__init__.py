"""The host dialect: the program that allocates, launches kernels and calls ATen.

Values are tensors with memory (handles), integers (`index`) and pointers. Order matters: every
operation here happens where it stands.
"""

from irc.dialects.host import text, verify
from irc.dialects.host.ops import (
    TENSOR,
    AllocOp,
    CallAtenOp,
    ConstantOp,
    CopyOp,
    FuncOp,
    ItemOp,
    LaunchOp,
    PackOp,
    ReturnOp,
    ViewOp,
)

__all__ = [
    "text",
    "verify",
    "AllocOp",
    "CallAtenOp",
    "ConstantOp",
    "CopyOp",
    "FuncOp",
    "ItemOp",
    "LaunchOp",
    "PackOp",
    "ReturnOp",
    "TENSOR",
    "ViewOp",
]
