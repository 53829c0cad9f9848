"""`CpuFigures`: what decides how a kernel runs on a CPU.

Prices of accesses by vectors are in *instructions*: a vector's operation, however many lanes it
has. A body's cost is its operations and one for each access.
"""

from __future__ import annotations

from typing import Annotated

from irc.target.figures import Figure
from irc.target.speeds import Speeds


class CpuFigures(Speeds):
    """Figures of the pass `schedule` on a CPU."""

    gather: Annotated[float, Figure(
        "instructions", "an element that a vector reads by itself")] = 1.5
    scatter: Annotated[float, Figure(
        "instructions", "an element that a vector writes by itself")] = 2.5
    scalar: Annotated[float, Figure("instructions", "an access of a body without vectors")] = 1.0
    horizontal: Annotated[float, Figure("instructions", "the lanes of a vector, combined")] = 12.0
    stack_bytes: Annotated[int, Figure(
        "bytes", "what the members of a group hand on, kept on the stack; what has no room there "
        "is memory of the program's", most=131_072)] = 131_072
    map_block: Annotated[int, Figure(
        "elements", "a vector axis in one point of the parallel space of a pointwise kernel",
        least=1, power=True)] = 1024
    transposed_tiles: Annotated[int, Figure(
        "tiles", "transposed tiles along the vectors in one point of the parallel space",
        least=1, power=True)] = 16
    tile_row: Annotated[int, Figure(
        "bytes", "a transposed tile's row, of light bodies: of rows that begin anywhere, half "
        "cross a line of the cache, where all vectors of 64 bytes do (x.t() + y of a million f32 "
        "in rows of 1023 on a Xeon with AVX-512: 0.75 ms with 32 bytes, 1.39 with 64)",
        least=1, power=True)] = 32
    tile_blocks: Annotated[tuple[int, ...], Figure(
        "points", "the axis that transposed tiles read contiguously in one point of the parallel "
        "space, for elements of 1, 2, 4, 8 and 16 bytes: the lines that are read or written in "
        "part stay in the first cache, and memory is read a few lines at a time (16 million bf16 "
        "on a Zen 4: 26 ms with 64 points, 14 with 256; f32 on the Xeon: 25 ms with 64, 36 with "
        "128)", least=1, power=True)] = (512, 256, 64, 32, 16)
    paired_bits: Annotated[int, Figure(
        "bits", "registers up to this size are taken two at a time where each point is on its own: "
        "there are 16, so that most constants of a body are loaded at each use, then once for both "
        "(gelu of a million bf16 with AVX2 on a Zen 4: 0.80 ms against 1.05)")] = 256
    heavy_body: Annotated[int, Figure(
        "operations", "a body of more has instructions enough in flight with few copies")] = 160
    light_body: Annotated[int, Figure(
        "operations", "a body of at most so many waits for memory in long rows: more places are "
        "read. One of a higher cost fills 16 registers with two vectors in flight (log softmax of "
        "a million bf16 with AVX2 has 1.61 of Inductor's speed with two, 1.45 with four)")] = 16
    long_row: Annotated[int, Figure("elements", "such a row")] = 65_536


__all__ = ["CpuFigures"]
