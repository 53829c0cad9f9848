"""`CpuFigures`: what decides how a kernel runs on a CPU.

Prices of accesses by vectors are in *instructions*: a vector's operation, however many lanes it
has. A body's cost is its operations and one for each access.
"""

from __future__ import annotations

from irc.target.figures import figure


class CpuFigures:
    """Figures of the pass `schedule` on a CPU."""

    gather: float = figure(1.5, "instructions", "an element that a vector reads by itself")
    scatter: float = figure(2.5, "instructions", "an element that a vector writes by itself")
    scalar: float = figure(1.0, "instructions", "an access of a body without vectors")
    horizontal: float = figure(12.0, "instructions", "the lanes of a vector, combined")
    stack_bytes: int = figure(
        131_072, "bytes", "what the members of a group hand on, kept on the stack; what has no "
        "room there is memory of the program's", most=131_072)
    map_block: int = figure(
        1024, "elements", "a vector axis in one point of the parallel space of a pointwise kernel",
        least=1, power=True)
    transposed_tiles: int = figure(
        16, "tiles", "transposed tiles along the vectors in one point of the parallel space",
        least=1, power=True)
    tile_row: int = figure(
        32, "bytes", "a transposed tile's row, of light bodies: of rows that begin anywhere, half "
        "cross a line of the cache, where all vectors of 64 bytes do (x.t() + y of a million f32 "
        "in rows of 1023 on a Xeon with AVX-512: 0.75 ms with 32 bytes, 1.39 with 64)",
        least=1, power=True)
    tile_blocks: tuple[int, ...] = figure(
        (512, 256, 64, 32, 16), "points",
        "the axis that transposed tiles read contiguously in one point of the parallel space, for "
        "elements of 1, 2, 4, 8 and 16 bytes: the lines that are read or written in part stay in "
        "the first cache, and memory is read a few lines at a time (16 million bf16 on a Zen 4: "
        "26 ms with 64 points, 14 with 256; f32 on the Xeon: 25 ms with 64, 36 with 128)",
        least=1, power=True)
    paired_bits: int = figure(
        256, "bits", "registers up to this size are taken two at a time where each point is on its "
        "own: there are 16, so that most constants of a body are loaded at each use, then once for "
        "both (gelu of a million bf16 with AVX2 on a Zen 4: 0.80 ms against 1.05)")
    heavy_body: int = figure(
        160, "operations", "a body of more has instructions enough in flight with few copies")
    light_body: int = figure(
        16, "operations", "a body of at most so many waits for memory in long rows: more places "
        "are read. One of a higher cost fills 16 registers with two vectors in flight (log softmax "
        "of a million bf16 with AVX2 has 1.61 of Inductor's speed with two, 1.45 with four)")
    long_row: int = figure(65_536, "elements", "such a row")


__all__ = ["CpuFigures"]
