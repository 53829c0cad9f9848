"""A size that is known when a program runs, and what its symbols are where it is so large.

    size = SymbolicSize.of(4 * symbol("s0"))
    size.values(100)  # {"s0": 25}
"""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs

from irc.ir.symbols import Dim, free_symbols, value_at

MOST = 1 << 16
"""Sizes that are looked at."""


@attrs.frozen
class SymbolicSize:
    """What is compared at run time, and the names of its symbols."""

    dim: Dim
    names: tuple[str, ...]

    @classmethod
    def of(cls, dim: Dim) -> SymbolicSize:
        """That of an expression with symbols."""
        return cls(dim, tuple(sorted(free_symbols(dim))))

    def values(self, size: int) -> dict[str, int]:
        """The last symbol makes it so large, or as nearly as it can; every other one is 1, or the
        least power of two with which there is something of that size: the image of a convolution
        with a stride of 32 has at least so many pixels."""
        base = self._least_power()
        step = (value_at(self.dim, base) or 1) // base
        known = dict.fromkeys(self.names, base)
        return {**known, self.names[-1]: max(size // max(step, 1), base)}

    def _least_power(self) -> int:
        """The least power of two from which on the size is over zero and grows with its symbols, up
        to what it may be at most: of images smaller than their windows it may be the product of two
        numbers below zero. 1 where there is none."""
        least, above = MOST, math.inf
        most = value_at(self.dim, MOST)
        while (here := value_at(self.dim, least)) is not None and 0 < here:
            if here >= above and here != most:
                break
            if least == 1:
                return 1
            least, above = least // 2, here
        return 1 if least == MOST else 2 * least

    def least(self, holds: Callable[[dict[str, int]], bool]) -> int | None:
        """The least size from which on something holds of the symbols' values, as it does for all
        larger ones; None where it doesn't for `MOST`."""
        low, high = 0, MOST
        if not holds(self.values(high)):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if holds(self.values(middle)):
                high = middle
            else:
                low = middle
        return high


__all__ = ["SymbolicSize"]
