"""`Speeds`: what a processor takes for what kernels do (`irc.target.costs`).

The unit of all figures is an *operation*: a cheap one (an addition) at one point of a vectorized
loop. They say what is faster, not how long a program takes: see docs/cost-model.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from irc.target.costs import Cost


@attrs.frozen(cache_hash=True, kw_only=True)
class Speeds:
    """The figures of a processor: facts, and where tuning puts what it measures.

    near_bytes: an array up to this size stays in the first-level cache, with what else a kernel
    reads. scratch_bytes: what a kernel keeps for itself stays in that cache up to here.
    core_bytes: what a core works on stays in its second-level cache up to here. All others are in
    operations. division, function: a quotient or square root, an elementary function. access: an
    element from the first-level cache; alone: one that is read by itself, from anywhere. byte: a
    byte from behind that cache. launch: a kernel more. serial: work that one thread does alone, as
    starting others costs as much. femtoseconds: of an operation; no decision depends on it.
    """

    near_bytes: int = 16_384
    scratch_bytes: int = 32_768
    core_bytes: int = 1 << 20
    division: int = 4
    function: int = 16
    access: int = 2
    alone: int = 12
    byte: int = 2
    launch: int = 1_600
    serial: int = 32_768
    femtoseconds: int = 12_500

    def check(self) -> None:
        """Raise ValueError for figures that no processor has."""
        for field in attrs.fields(Speeds):
            value = getattr(self, field.name)
            least = int(field.name == "femtoseconds")
            if not least <= value <= 1 << 40:
                raise ValueError(f"{field.name} is {value}, not from {least} to {1 << 40}")

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
