"""`Speeds`: what a processor takes for what kernels do (`irc.target.costs`).

The unit of all figures is an *operation*: a cheap one (an addition) at one point of a vectorized
loop. They say what is faster, not how long a program takes: see docs/cost-model.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from irc.target.figures import Figure, Figures

if TYPE_CHECKING:
    from irc.target.costs import Cost


class Speeds(Figures):
    """The figures of a processor: facts, and where tuning puts what it measures."""

    near_bytes: Annotated[int, Figure(
        "bytes", "an array up to this size stays in the first-level cache, with what else a kernel "
        "reads")] = 16_384
    scratch_bytes: Annotated[int, Figure(
        "bytes", "what a kernel keeps for itself stays in that cache up to here")] = 32_768
    core_bytes: Annotated[int, Figure(
        "bytes", "what a core works on stays in its second-level cache up to here")] = 1 << 20
    cached_bytes: Annotated[int, Figure(
        "bytes", "a program that reads so much at most finds it in the last cache when called "
        "again; of a larger one tuning times weights as they come from memory")] = 24 << 20
    division: Annotated[int, Figure("operations", "a quotient or a square root")] = 4
    function: Annotated[int, Figure("operations", "an elementary function")] = 16
    access: Annotated[int, Figure("operations", "an element from the first-level cache")] = 2
    alone: Annotated[int, Figure(
        "operations", "an element that is read by itself, from anywhere")] = 12
    byte: Annotated[int, Figure("operations", "a byte from behind that cache")] = 2
    launch: Annotated[int, Figure("operations", "a kernel more")] = 1_600
    vector_points: Annotated[int, Figure(
        "points", "of the shared axes that a vector of them, or a GPU's tile, has", least=1)] = 8
    copied_bytes: Annotated[int, Figure(
        "bytes", "written anew in the time of a further launch that writes a slice: 0.2 us, where "
        "an array of 16 KiB takes 1.2 us")] = 2_048
    serial: Annotated[int, Figure(
        "operations", "work that one thread does alone, as starting others costs as much")] = 32_768
    tiled_products: Annotated[int, Figure(
        "products", "of numbers, the least of a contraction whose kernel multiplies tiles: the "
        "least that a GPU multiplies is 16x16 by 16x16")] = 4096
    tiled_sums: Annotated[int, Figure(
        "sums", "the least of such a contraction: of fewer, `split-reductions` makes parts")] = 256
    factor_tile: Annotated[int, Figure(
        "rows or columns", "of a block that is packed on a CPU, or of a tile on a GPU: a factor is "
        "evaluated once for each of the other side", least=1)] = 256
    femtoseconds: Annotated[int, Figure(
        "fs", "the time of an operation; no decision depends on it", least=1)] = 12_500

    def operations(self, cost: Cost, parallel: int) -> int:
        """What takes as long as a cost: `parallel` points keep the processor busy; work on fewer
        leaves a part of it idle for the while, unless it is so little that one thread does it."""
        work = (
            cost.cheap + self.division * cost.divisions + self.function * cost.functions
            + self.access * cost.near + self.alone * cost.alone + self.byte * cost.far
        )  # fmt: skip
        if 0 < cost.parallel < parallel and work > self.serial:
            work = work * parallel // cost.parallel
        return work + self.launch * cost.launches


__all__ = ["Speeds"]
