"""Which line of the model made a node of a graph."""

from __future__ import annotations

import os
import re

import torch
from torch import fx

from irc.ir.location import UNKNOWN, FileLocation, Location

_TORCH = os.path.dirname(torch.__file__) + os.sep
_BEGIN = 'File "'
_FRAME = re.compile(_BEGIN + r'([^"\n]+)", line (\d+)')


def is_torchs(filename: str) -> bool:
    """Whether a source file is torch's own."""
    return filename.startswith(_TORCH)


def location_of(node: fx.Node) -> Location:
    """The line of the model that made a node: the innermost one that is not torch's own."""
    return location_in(node.stack_trace)


def location_in(trace: str | None) -> Location:
    """The same of a traceback as torch keeps it."""
    if not trace:
        return UNKNOWN
    innermost, end = None, len(trace)
    while (start := trace.rfind(_BEGIN, 0, end)) >= 0:
        end, frame = start, _FRAME.match(trace, start)
        if frame is not None:
            if not is_torchs(frame[1]):
                return FileLocation(frame[1], int(frame[2]), 0)
            innermost = innermost or FileLocation(frame[1], int(frame[2]), 0)
    return innermost or UNKNOWN
