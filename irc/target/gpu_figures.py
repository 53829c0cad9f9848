"""`GpuFigures`: what decides how a kernel runs on a GPU."""

from __future__ import annotations

import attrs

from irc.target.figures import figure
from irc.target.speeds import Speeds


@attrs.frozen(cache_hash=True, kw_only=True)
class GpuFigures(Speeds):
    """Figures of passes on a GPU."""

    launch: int = figure(16_000_000, "operations", "a kernel more: 2.5 us")
    serial: int = figure(0, "operations", "a program instance is serial work anyway")
    femtoseconds: int = figure(
        150, "fs", "the time of an operation: a byte takes what it does at 3.3 TB/s", least=1)

    # -- attach-checks
    whole_rows: int = figure(
        32, "rows", "the least that a kernel is shared by, with a check of indices for each")
    few_points: int = figure(32_768, "points", "a kernel of at most so many may have fewer")

    # -- split-reductions
    split_fills: int = figure(
        4, "parts", "wanted for each program instance that keeps a GPU busy", least=1)
    split_points: int = figure(
        128, "points", "the least of each of these parts of a reduction that is split, on an "
        "average; of fewer, parts are wanted where they save more than a launch")
    split_rows: int = figure(
        64, "points", "the least work of a part for each result, where rows are strided", least=1)
    split_row_points: int = figure(
        4096, "points", "and where they are contiguous", least=1)
    least_parts: int = figure(4, "parts", "of fewer a reduction stays whole", least=1)
    part_rows: int = figure(16, "points", "the least of a part that has rows of results", least=1)
    long_column: int = figure(
        2048, "points", "strided reductions of so many: for each tile of `column_results`, parts "
        "for `column_programs` program instances, each with at least `column_points` (8192x8192 "
        "bf16 takes 37 us in 32 parts, 40 in 16, 43 in 8: `bench.gpu_kernels`)")
    column_results: int = figure(64, "results", "of a tile of such a reduction", least=1)
    column_programs: int = figure(4096, "program instances", "of all parts of all tiles")
    column_points: int = figure(256, "points", "the least of such a part", least=1)

    # -- join-launches
    joined_warps: int = figure(
        4, "times", "by how much more warps than its own a kernel may run that is joined with "
        "another", least=1)


__all__ = ["GpuFigures"]
