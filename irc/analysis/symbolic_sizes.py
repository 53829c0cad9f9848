"""A size that is known when a program runs, and what its symbols are where it is so large.

    size = SymbolicSize.of(4 * symbol("s0"))
    size.values(100)  # {"s0": 25}
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from irc.ir.symbols import Dim, free_symbols, substitute

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

    def values(self, size: int) -> dict[str, Dim]:
        """The last symbol makes it so large, or as nearly as it can, and every other one is 1."""
        ones: dict[str, Dim] = dict.fromkeys(self.names, 1)
        step = substitute(self.dim, ones)
        assert isinstance(step, int)
        return {**ones, self.names[-1]: max(size // max(step, 1), 1)}

    def least(self, holds: Callable[[dict[str, Dim]], bool]) -> int | None:
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
