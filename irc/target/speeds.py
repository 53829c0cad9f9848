"""`Speeds`: what a processor takes for what kernels do; `Cost`: how much of it a program does.

    before, after = Cost(far=8 << 20, launches=2), Cost(far=4 << 20, cheap=1 << 20, launches=1)
    target.time(before) - target.time(after)       # femtoseconds, whole numbers

The unit of all figures is an *operation*: a cheap one (an addition) at one point of a vectorized
loop. They say what is faster, not how long a program takes: see docs/cost-model.md.
"""

from __future__ import annotations

import attrs


@attrs.frozen(slots=True)
class Cost:
    """What kernels do, as plain numbers.

    cheap, divisions, functions: scalar operations by class, at all points together; near: elements
    read from the first-level cache, one written counts twice; alone: elements that are read or
    written one by one, as a vector's lie apart; far: bytes read from or written to memory behind
    that cache; launches: kernels; parallel: points of the space that threads share (0: as
    many as one likes).
    """

    cheap: int = 0
    divisions: int = 0
    functions: int = 0
    near: int = 0
    alone: int = 0
    far: int = 0
    launches: int = 0
    parallel: int = 0

    def __add__(self, other: Cost) -> Cost:
        """Both, one after the other; the smaller space tells how many points run in parallel."""
        return Cost(
            self.cheap + other.cheap, self.divisions + other.divisions,
            self.functions + other.functions, self.near + other.near,
            self.alone + other.alone, self.far + other.far, self.launches + other.launches,
            min(self.parallel, other.parallel) or self.parallel or other.parallel,
        )  # fmt: skip

    def joined(self, other: Cost, parallel: int) -> Cost:
        """Both in one kernel, of so many parallel points."""
        return Cost(
            self.cheap + other.cheap, self.divisions + other.divisions,
            self.functions + other.functions, self.near + other.near,
            self.alone + other.alone, self.far + other.far, 1, parallel,
        )  # fmt: skip


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


__all__ = ["Cost", "Speeds"]
