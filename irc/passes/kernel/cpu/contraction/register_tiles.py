"""Tiles of sums in a target's registers: which take least time."""

from __future__ import annotations

from collections.abc import Iterable

from irc.target import Target

MOST_ROWS = 64
"""Of a tile."""
EVEN = 5040
"""A multiple of all numbers up to 10, of 12, 14, 15 and 16: tiles of as many rows or columns leave
nothing at the ends."""


def vector_registers(target: Target) -> int:
    """How many registers for vectors there are."""
    features = target.features
    return 32 if features.has_avx512 or not features.is_x86 else 16


def panel_vectors(target: Target, lanes: int) -> int:
    """The vectors of a tile of large products, so of a panel of which nobody knows how many rows
    it will meet."""
    every = range(1, target.features.most_vectors + 1)
    lines = range(1, MOST_ROWS + 1)
    return best_tile(target, lanes, EVEN, EVEN * lanes, lines, every)[1]


def best_tile(
    target: Target, lanes: int, rows: int, columns: int, rows_of: Iterable[int],
    vectors_of: Iterable[int], beside: int = 0,
) -> tuple[int, int]:  # fmt: skip
    """Rows and vectors of the tiles, of those allowed, that cover so many rows and columns soonest
    without more sums than there are registers for. Of those that are about as soon, the ones that
    leave the least other tiles at the ends: each of them is code of its own. beside: rows of sums
    for something else."""
    features = target.features
    registers = vector_registers(target)
    each_sum, each_row, each_vector = features.tile_times

    def time(r: int, v: int) -> int:
        if not r or not v:
            return 0
        return each_sum * max(r * v, features.sums_in_flight) + each_row * r + each_vector * v

    def total(tile: tuple[int, int]) -> int:
        (r, v), panel = tile, tile[1] * lanes
        lines = [(rows // r, r), (1, rows % r)]
        panels = [(columns // panel, v), (1, -(-(columns % panel) // lanes))]
        return sum(m * n * time(r, v) for m, r in lines for n, v in panels)

    def kinds(tile: tuple[int, int]) -> int:
        return (1 + (rows % tile[0] > 0)) * (1 + (columns % (tile[1] * lanes) > 0))

    every = [(r, v) for v in vectors_of for r in rows_of]
    fitting = [(r, v) for r, v in every if (r + 1 + beside) * v < registers]
    times = {tile: total(tile) for tile in fitting or every}
    enough = (1 + features.tile_slack) * min(times.values())
    near = [tile for tile, time_ in times.items() if time_ <= enough]
    return min(near, key=lambda tile: (kinds(tile), times[tile]))


__all__ = ["MOST_ROWS", "best_tile", "panel_vectors", "vector_registers"]
