"""`Speeds`: what a processor takes for what kernels do (`irc.target.costs`).

The unit of all figures is an *operation*: a cheap one (an addition) at one point of a vectorized
loop. They say what is faster, not how long a program takes: see docs/cost-model.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from irc.target.figures import check_figures, figure

if TYPE_CHECKING:
    from irc.target.costs import Cost


@attrs.frozen(cache_hash=True, kw_only=True)
class Speeds:
    """The figures of a processor: facts, and where tuning puts what it measures."""

    near_bytes: int = figure(
        16_384, "bytes", "an array up to this size stays in the first-level cache, with what "
        "else a kernel reads")
    scratch_bytes: int = figure(
        32_768, "bytes", "what a kernel keeps for itself stays in that cache up to here")
    core_bytes: int = figure(
        1 << 20, "bytes", "what a core works on stays in its second-level cache up to here")
    division: int = figure(4, "operations", "a quotient or a square root")
    function: int = figure(16, "operations", "an elementary function")
    access: int = figure(2, "operations", "an element from the first-level cache")
    alone: int = figure(12, "operations", "an element that is read by itself, from anywhere")
    byte: int = figure(2, "operations", "a byte from behind that cache")
    launch: int = figure(1_600, "operations", "a kernel more")
    vector_points: int = figure(
        8, "points", "of the shared axes that a vector of them, or a GPU's tile, has", least=1)
    copied_bytes: int = figure(
        2_048, "bytes", "written anew in the time of a further launch that writes a slice: 0.2 us, "
        "where an array of 16 KiB takes 1.2 us")
    serial: int = figure(
        32_768, "operations", "work that one thread does alone, as starting others costs as much")
    femtoseconds: int = figure(
        12_500, "fs", "the time of an operation; no decision depends on it", least=1)

    def check(self) -> None:
        """Raise ValueError for figures that no processor has."""
        check_figures(self)

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
