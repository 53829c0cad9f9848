"""What products of rows with a stream of columns need, so that a GPU's kernels have tiles of them
(`irc.passes.kernel.gpu.streamed`)."""

from __future__ import annotations

LONGEST = 256
"""The most terms of a score, and columns of a sum over the stream: a tile has all of them."""
FEWEST = 16
"""The fewest rows, and columns of the stream, that fill a tile."""

__all__ = ["FEWEST", "LONGEST"]
