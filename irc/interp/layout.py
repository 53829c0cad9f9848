"""The meaning of the layout dialect."""

from __future__ import annotations

import torch

from irc.dialects import layout
from irc.interp.core import Frame, interprets
from irc.interp.loop import place


@interprets(layout.ViewOp)
def view(frame: Frame, op: layout.ViewOp) -> torch.Tensor:
    source = frame[op.source]
    offset = source.storage_offset() + frame.dim(op.offset)
    type_ = op.view.type
    return source.as_strided(frame.dims(type_.shape), frame.dims(type_.strides), offset)


@interprets(layout.CopyOp)
def copy(frame: Frame, op: layout.CopyOp) -> torch.Tensor:
    return place(frame, frame[op.source], op.copy.type)


@interprets(layout.JoinOp)
def join(frame: Frame, op: layout.JoinOp) -> torch.Tensor:
    pieces = [frame[piece] for piece in op.pieces]
    rank = op.array.type.rank
    whole = torch.cat([p if p.ndim == rank else p.unsqueeze(op.dim) for p in pieces], op.dim)
    return place(frame, whole, op.array.type)
