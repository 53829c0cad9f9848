"""Rows and columns of a point of the parallel space, of a contraction in tiles."""

from __future__ import annotations

import attrs

from irc.passes.kernel.cpu.schedule import CpuSchedule
from irc.target import Target


@attrs.frozen
class Points:
    """How products of so many rows, columns and terms are divided, of which there are `outer`.
    factor_bytes: of an element of a factor while it is multiplied."""

    target: Target
    rows: int
    columns: int
    depth: int
    outer: int
    factor_bytes: int

    def divided(self, own: CpuSchedule) -> tuple[int, int]:
        """Rows and columns of a point: for one thread all rows, and as many columns as stay in the
        caches; for several, those that the last thread is through with soonest. 0: all."""
        features, threads = self.target.features, self.target.threads
        panel, sizes = own.tile_vectors * own.lanes, (self.rows, self.columns)
        least = self.together(own) or self.columns
        enough = features.thread_blocks * threads
        parts = (1, 1)
        if threads > 1 and self.outer < enough:
            most = [max(-(-size // unit), 1) for size, unit in zip(sizes, (own.tile_rows, panel),
                                                                   strict=True)]  # fmt: skip
            every = [(a, b) for a in range(1, min(most[0], enough) + 1)
                     for b in range(1, min(most[1], enough // a + 1) + 1)]  # fmt: skip
            parts = min(every, key=lambda some: self._time(own, some))
        rows = -(-self.rows // (parts[0] * own.tile_rows)) * own.tile_rows
        columns = -(-self.columns // parts[1])
        columns = -(-columns // (-(-columns // max(least, 1)) * panel)) * panel if columns else 0
        return (rows if rows < self.rows else 0), (columns if columns < self.columns else 0)

    def _time(self, own: CpuSchedule, parts: tuple[int, int]) -> float:
        """What the last thread takes with so many parts of the rows and of the columns."""
        features, threads = self.target.features, self.target.threads
        units = own.tile_rows, own.tile_vectors * own.lanes
        rows, columns = (
            -(-size // (part * unit)) * unit
            for size, part, unit in zip((self.rows, self.columns), parts, units, strict=True)
        )
        count = self.outer * -(-self.rows // rows) * -(-self.columns // columns)
        packed = rows * own.pack_left + columns * own.pack_right
        passing = features.packed_element * packed + features.read_element * (rows + columns)
        point = rows * columns + passing
        return max(-(-count // threads), count / threads + features.uneven_points) * point

    def together(self, own: CpuSchedule) -> int:
        """As many columns as stay in the caches until they are used, where they are packed together
        or pass by rows; 0: all."""
        features, room = self.target.features, self.target.processor.core_bytes
        depth, panel = max(self.depth, 1), own.tile_vectors * own.lanes
        matrix = own.products == "matrix"
        if matrix and own.inner == "columns":
            count = int(features.passing_room * room / (self.factor_bytes * depth * panel))
            count = max(count, 1)
            return 0 if count * panel >= self.columns else count * panel
        if not own.pack_right or (own.pack_left and not matrix) or own.pack_ahead:
            return 0
        size = 4 if matrix else self.factor_bytes
        count = max(2 * room // (size * depth * panel), 1)
        if matrix:
            count = min(count, features.matrix_panels)
        elif not own.block_depth:
            count = min(count, features.fetched_panels)
        return 0 if 2 * count * panel >= self.columns else count * panel


__all__ = ["Points"]
