"""`Cost`: how much a program does of what takes time.

    before, after = Cost(far=8 << 20, launches=2), Cost(far=4 << 20, cheap=1 << 20, launches=1)
    target.time(before) - target.time(after)       # femtoseconds, whole numbers
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


__all__ = ["Cost"]
