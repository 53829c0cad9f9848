"""What is known of a function's symbols where kernels are formed."""

from __future__ import annotations

from irc.dialects import func, sym
from irc.ir.symbols import Range


def symbol_ranges(function: func.FuncOp) -> dict[str, Range]:
    """What the binders of a function say of its symbols."""
    ranges: dict[str, Range] = {}
    for op in function.block.ops:
        if isinstance(op, sym.Binder):
            size = isinstance(op, sym.BindSizeOp)
            least = op.minimum if op.minimum is not None else (0 if size else None)
            ranges[op.symbol] = Range(least, op.maximum)
    return ranges
