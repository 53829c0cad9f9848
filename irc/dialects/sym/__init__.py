"""The sym dialect: where symbols are bound, read, asserted and refined.

A symbol (`s0`, `u0`) belongs to its function and has one binder; each mention of it in a type
or an attribute is dominated by that binder. See `docs/design/contracts.md`, "Symbols".
"""

from irc.dialects.sym import verify
from irc.dialects.sym.ops import (
    ERRORS,
    INTEGER,
    AssertOp,
    AssertValueOp,
    Binder,
    BindOffsetOp,
    BindOp,
    BindSizeOp,
    RefineOp,
    ValueOp,
)
from irc.dialects.sym.ranges import WHEN, ChooseOp, RangeAttr, range_entry, when_of

__all__ = [
    "verify",
    "AssertOp",
    "AssertValueOp",
    "BindOffsetOp",
    "BindOp",
    "BindSizeOp",
    "Binder",
    "ChooseOp",
    "ERRORS",
    "INTEGER",
    "RangeAttr",
    "RefineOp",
    "ValueOp",
    "WHEN",
    "range_entry",
    "when_of",
]
