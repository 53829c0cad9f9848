"""Which line of the model made a node of a graph."""

from __future__ import annotations

import os
import re

import torch
from torch import fx

from irc.ir.location import UNKNOWN, FileLocation, Location

_TORCH = os.path.dirname(torch.__file__) + os.sep
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')


def is_torchs(filename: str) -> bool:
    """Whether a source file is torch's own."""
    return filename.startswith(_TORCH)


def location_of(node: fx.Node) -> Location:
    """The line of the model that made a node: the innermost one that is not torch's own."""
    trace = node.stack_trace
    if not trace:
        return UNKNOWN
    frames = _FRAME.findall(trace)
    if not frames:
        return UNKNOWN
    own = [f for f in frames if not is_torchs(f[0])]
    filename, line = (own or frames)[-1]
    return FileLocation(filename, int(line), 0)
