"""Which rows the tiles of a block have: whole tiles, and what is left behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from irc.ir.core import Value
from irc.passes.kernel.cpu.contraction.runs import Stretch
from irc.passes.kernel.cpu.contraction.tiling import Tiling
from irc.passes.kernel.cpu.emit import Emitter, Scalar

Body = Callable[[Scalar, Scalar, int], None]
"""Writes a tile: its first row, its rows, and the most that these may be."""

EXACT_ROWS = 6
"""Of a tile up to which there is code for each number of rows that may be left behind whole ones: a
row of a weight is read once for all of them."""


class RowTiles:
    """Writes the loops over tiles of rows."""

    def __init__(self, emitter: Emitter, tiling: Tiling) -> None:
        self.emitter, self.tiling, self.schedule = emitter, tiling, tiling.schedule

    def over(self, rows: Stretch, body: Body) -> None:
        """Run `body` for each tile."""
        emitter, step, extent = self.emitter, self.schedule.tile_rows, self.tiling.rows.extent
        rest = extent % step
        middle = end_of_whole(emitter, rows, step, rest == 0)
        if not isinstance(rest, int) and self.schedule.products == "depth":
            middle = self._before_last(rows, middle)

        def whole(row: Scalar, _: Sequence[Value]) -> list[Value]:
            body(row, step, step)
            return []

        emitter.for_loop(rows.lower, middle, step, (), whole)
        if rest == 0 or middle == rows.upper:
            return
        if isinstance(rest, int):
            if_less(emitter, middle, rows.upper, partial(body, middle, rest, rest))
        elif self.schedule.in_matrices:
            self._some_rows(middle, rows.upper, body)
        else:
            self._rest_of_rows(middle, rows.upper, body)

    def _before_last(self, rows: Stretch, middle: Scalar) -> Scalar:
        """Where the last whole tile begins, if it and what is left behind it are two tiles of less:
        sums along the depth read as much for a row alone as for three."""
        emitter, step = self.emitter, self.schedule.tile_rows
        left = emitter.minus(rows.upper, middle)
        some = emitter.both(emitter.compare("sgt", left, 0), emitter.compare("slt", left, step - 1))
        some = emitter.both(some, emitter.compare("sgt", middle, rows.lower))
        return emitter.minus(middle, emitter.either(some, step, 0))

    def _some_rows(self, begin: Scalar, upper: Scalar, body: Body) -> None:
        """Rows of which nobody knows how many are left, in registers of whole tiles: of these as
        many as they fill, the last of which is told how many rows it has."""
        emitter, height = self.emitter, self.tiling.dot.tile[0]
        left = emitter.minus(upper, begin)
        for most in range(height, self.schedule.tile_rows + height - 1, height):
            some = emitter.compare("sgt", left, most - height)
            fit = emitter.both(some, emitter.compare("sle", left, most))
            emitter.when(fit, partial(body, begin, left, most))

    def _rest_of_rows(self, begin: Scalar, upper: Scalar, body: Body) -> None:
        """Rows of which nobody knows how many are left, fewer than two tiles: one tile or two, as
        equal as may be, of each number of rows (`EXACT_ROWS`); of large tiles those of halves of
        halves, down to a row. No product is one too many."""
        emitter, step = self.emitter, self.schedule.tile_rows
        if step > EXACT_ROWS:
            for power in reversed(range((step - 1).bit_length())):
                each, row = 1 << power, begin
                begin = end_of_whole(emitter, Stretch(row, upper), each, each == 1)
                if_less(emitter, row, begin, partial(body, row, each, each))
            return
        left = emitter.minus(upper, begin)
        several = emitter.compare("sge", left, step)
        half = emitter.quotient(emitter.plus(left, 1), 2, True)
        first = emitter.either(several, half, left)

        def tile(number: Scalar, _: Sequence[Value]) -> list[Value]:
            later = emitter.compare("sgt", number, 0)
            row = emitter.plus(begin, emitter.either(later, first, 0))
            count = emitter.either(later, emitter.minus(left, first), first)
            for size in range(1, step):
                emitter.when(emitter.compare("eq", count, size), partial(body, row, size, size))
            return []

        emitter.for_loop(0, emitter.either(several, 2, 1), 1, (), tile)


def end_of_whole(emitter: Emitter, block: Stretch, step: int, even: bool) -> Scalar:
    """The end of a block's whole tiles. even: there are no others."""
    if even:
        return block.upper
    count = emitter.quotient(emitter.minus(block.upper, block.lower), step, True)
    return emitter.plus(block.lower, emitter.times(count, step))


def if_less(emitter: Emitter, a: Scalar, b: Scalar, body: Callable[[], None]) -> None:
    """Run `body` where a is less than b."""
    if isinstance(a, int) and isinstance(b, int):
        if a < b:
            body()
        return
    emitter.when(emitter.compare("slt", a, b), body)


__all__ = ["EXACT_ROWS", "RowTiles", "end_of_whole", "if_less"]
