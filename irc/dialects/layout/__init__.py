"""The layout dialect: what only exists once strides are decided.

On the layout level every tensor type carries strides; the operations of the graph level go on
being used on such types. A view shares its operand's memory; everything else makes a fresh array.
"""

from irc.dialects.layout import verify
from irc.dialects.layout.ops import (
    TENSOR,
    CopyOp,
    JoinOp,
    ViewOp,
)

__all__ = [
    "verify",
    "CopyOp",
    "JoinOp",
    "TENSOR",
    "ViewOp",
]
