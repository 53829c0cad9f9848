"""The meaning of `graph.dot_general`, by torch's `einsum`."""

from __future__ import annotations

import torch

from irc.dialects import graph
from irc.interp.core import Frame, interprets
from irc.interp.graph_packed import placed
from irc.ir.types import TensorType


@interprets(graph.DotGeneral)
def dot_general(frame: Frame, op: graph.DotGeneral) -> torch.Tensor:
    assert isinstance(op.right.type, TensorType)
    dtype = frame.dtype(op.accumulator)
    # The products of integers narrower than 64 bits are cut to their type in the end.
    wide = dtype if dtype.is_floating_point else torch.int64
    left, right = (frame[side].to(dtype).to(wide) for side in (op.left, op.right))
    # Dimension d of `left` is axis d; of `right` the one of `left` that it goes along with.
    axes = {
        **dict(zip(op.right_batch, op.left_batch, strict=True)),
        **dict(zip(op.right_depth, op.left_depth, strict=True)),
    }
    theirs = [axes.get(d, left.dim() + d) for d in range(right.dim())]
    kept = [*op.left_batch, *op.rows, *(left.dim() + d for d in op.columns)]
    sums = torch.einsum(left, list(range(left.dim())), right, theirs, kept)
    return placed(frame, sums.to(dtype), op)
