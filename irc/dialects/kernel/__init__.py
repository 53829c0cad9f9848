"""The kernel dialect: what one program instance does, on vectors (tiles) and pointers.

`arith` and `math` compute on scalars and `vector<...>` values here. One dialect serves both
targets: `target = "cpu"` kernels use rank-1 vectors of a few registers and get a range of the
outermost iteration space as their last two arguments; `target = "gpu"` kernels use tiles with
power-of-two sizes and read `kernel.program_id`.
"""

from irc.dialects.kernel import text, verify
from irc.dialects.kernel.ops import (
    INDEX,
    POINTER,
    VECTOR,
    DotOp,
    DotRowsOp,
    ExpandOp,
    ExtractOp,
    ForOp,
    GatherOp,
    IfOp,
    InsertOp,
    IotaOp,
    KernelFuncOp,
    KernelReturnOp,
    KernelScanOp,
    KernelYieldOp,
    LoadOp,
    LoadTileOp,
    PointerType,
    PrefetchOp,
    ProgramIdOp,
    ReduceOp,
    ScatterOp,
    ScratchOp,
    SplatOp,
    StoreOp,
    TransposeOp,
)

__all__ = [
    "DotOp",
    "DotRowsOp",
    "ExpandOp",
    "ExtractOp",
    "ForOp",
    "GatherOp",
    "INDEX",
    "IfOp",
    "InsertOp",
    "IotaOp",
    "KernelFuncOp",
    "KernelReturnOp",
    "KernelScanOp",
    "KernelYieldOp",
    "LoadOp",
    "LoadTileOp",
    "POINTER",
    "PointerType",
    "PrefetchOp",
    "ProgramIdOp",
    "ReduceOp",
    "ScatterOp",
    "ScratchOp",
    "SplatOp",
    "StoreOp",
    "TransposeOp",
    "VECTOR",
    "text",
    "verify",
]
