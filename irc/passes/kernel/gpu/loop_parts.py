"""The tiles of a loop over rows: those that a row's ends cut, those inside, how many a turn takes.

Of a row of 30,523 elements by tiles of 4096 the first and the last one may have lanes outside: they
stand before and behind the loop, whose lanes are then all inside (`peeled`). A loop of several
tiles in a turn (`abreast`) reads all of their points before it combines any; tiles that are left
over are a turn behind it. Where a turn takes all of a row there is no loop, and the tiles are
parts of a row in registers.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from irc.ir.symbols import Dim, ceildiv


@attrs.frozen
class LoopPart:
    """Tiles of a loop: the first, how many, whether all of their lanes are inside of rows, and how
    many of them a turn takes."""

    first: int
    count: Dim
    within: bool = False
    abreast: int = 1

    def whole(self, block: int) -> int:
        """Rows of a multiple of so many points have all lanes of these tiles inside."""
        if self.within:
            return 1
        return block if isinstance(self.count, int) else block * self.abreast

    def split(self, abreast: int) -> Iterator[LoopPart]:
        """The same with at most so many tiles in a turn, and the turn that is left, in order."""
        assert isinstance(self.count, int)
        abreast = min(abreast, self.count)
        if not abreast:
            return
        whole = self.count // abreast * abreast
        if whole:
            yield attrs.evolve(self, count=whole, abreast=abreast)
        if self.count > whole:
            left = self.count - whole
            yield attrs.evolve(self, first=self.first + whole, count=left, abreast=left)


def loop_parts(reach: Dim, block: int, abreast: int) -> list[LoopPart]:
    """The tiles of `block` lanes that reach so far, `abreast` of them in a turn, in order."""
    if isinstance(reach, int):
        return list(LoopPart(0, ceildiv(reach, block)).split(abreast))
    # Where tiles are left over, masks are false in all lanes of the last turn's others.
    return [LoopPart(0, ceildiv(reach, block * abreast) * abreast, abreast=abreast)]


def peeled_parts(points: int, reach: int, block: int, abreast: int) -> list[LoopPart]:
    """The same of rows of so many points, which may begin behind the first lane where tiles reach
    further: the tiles that they cut are parts of their own."""
    count, head = -(-reach // block), int(reach > points)
    inside = points // block
    if inside <= head:
        return loop_parts(reach, block, abreast)
    middle = LoopPart(head, inside - head, within=True).split(abreast)
    last = [LoopPart(tile, 1) for tile in range(inside, count)]
    return [LoopPart(0, 1)] * head + [*middle, *last]


__all__ = ["LoopPart", "loop_parts", "peeled_parts"]
