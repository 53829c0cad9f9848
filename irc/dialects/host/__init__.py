"""The host dialect: the program that allocates, launches kernels and calls ATen.

Values are tensors with memory (handles), integers (`index`) and pointers. Order matters: every
operation here happens where it stands.
"""

from irc.dialects.host import text, verify
from irc.dialects.host.ops import (
    TENSOR,
    AllocOp,
    CallAtenOp,
    FlagOp,
    HostConstantOp,
    HostCopyOp,
    HostFuncOp,
    HostReturnOp,
    HostViewOp,
    ItemOp,
    LaunchOp,
    PackOp,
)

__all__ = [
    "AllocOp",
    "CallAtenOp",
    "FlagOp",
    "HostConstantOp",
    "HostCopyOp",
    "HostFuncOp",
    "HostReturnOp",
    "HostViewOp",
    "ItemOp",
    "LaunchOp",
    "PackOp",
    "TENSOR",
    "text",
    "verify",
]
