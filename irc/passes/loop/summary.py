"""What maps do with all that is inlined into them, for `inline-computes`."""

from __future__ import annotations

import attrs

from irc.dialects import loop
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim, substitute

Counts = tuple[int, int, int]
"""Work, operations and reads."""


@attrs.define
class Summary:
    """What one evaluation of a map does, with everything that is inlined into it, on a GPU once
    where that is read at one place several times.

    work: the sum of its operations' classes (`irc.analysis.cost`); ops: operations; sources: arrays
    read, with their bytes; indirect: whether an index comes from a read; masked: whether one of its
    own reads has a mask; reads: number of `loop.read`; own: work, operations and reads but for
    those of the maps that are inlined, which stand in `inlined` by map and place.
    """

    work: int = 0
    ops: int = 0
    reads: int = 0
    indirect: bool = False
    masked: bool = False
    sources: dict[Value, int] = attrs.field(factory=dict)
    own: Counts = (0, 0, 0)
    inlined: dict[tuple[Operation, tuple[Dim, ...]], Counts] = attrs.field(factory=dict)

    def inline(self, read: loop.ReadOp, part: Summary, apart: bool) -> None:
        """Add what a read of an inlined map does; `apart`: whatever else reads that there."""
        self.indirect |= part.indirect
        self.sources.update(part.sources)
        if apart:
            self.add((part.work, part.ops, part.reads))
            return
        maker = read.source.defining_op
        assert isinstance(maker, loop.ComputeOp)
        places = {a.name: d for a, d in zip(maker.axis_list, read.indices, strict=True)}
        for (inlined, indices), counts in part.inlined.items():
            self.inlined[inlined, tuple([substitute(d, places) for d in indices])] = counts
        self.inlined[maker, tuple(read.indices)] = part.own

    def add(self, counts: Counts) -> None:
        """Add operations."""
        self.work, self.ops, self.reads = (
            self.work + counts[0], self.ops + counts[1], self.reads + counts[2]
        )  # fmt: skip

    def settle(self) -> None:
        """Add up what it does."""
        self.own = self.work, self.ops, self.reads
        for counts in self.inlined.values():
            self.add(counts)

    @property
    def is_view(self) -> bool:
        """Whether it only reads, at one place that is known."""
        if self.work or self.reads > 1:
            return False
        return not self.indirect and not self.masked


__all__ = ["Summary"]
