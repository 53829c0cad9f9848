"""`GpuFigures`: what decides how a kernel runs on a GPU."""

from __future__ import annotations

from irc.target.figures import figure


class GpuFigures:
    """Figures of passes on a GPU."""

    launch: int = figure(16_000_000, "operations", "a kernel more: 2.5 us")
    serial: int = figure(0, "operations", "a program instance is serial work anyway")
    femtoseconds: int = figure(
        150, "fs", "the time of an operation: a byte takes what it does at 3.3 TB/s", least=1)

    # -- schedule: pointwise kernels
    pointwise_block: int = figure(
        1024, "points", "the most of a one-dimensional pointwise tile", least=1, power=True)
    pointwise_bytes: int = figure(
        32, "bytes", "of an array that a thread of a pointwise tile has", least=1, power=True)
    least_block: int = figure(
        256, "points", "the least of such a tile: what has less than half of `parallel` tiles has "
        "smaller ones", least=1, power=True)
    pointwise_warps: int = figure(
        16, "times", "`parallel`: the warps of a whole kernel up to which each has fewer points")
    transpose_blocks: tuple[int, ...] = figure(
        (64, 32), "points", "edges of square tiles; the largest that both axes fill is taken",
        least=8, power=True)
    line_blocks: tuple[int, ...] = figure(
        (1024, 512, 256), "points", "of a tile along one line of a pointwise kernel", least=1,
        power=True)
    line_spare: float = figure(
        1.13, "times", "the most points of all tiles for one of the line", least=1)
    line_values: int = figure(2, "values", "the least that are the same along such a line")

    # -- schedule: rows
    row_bytes: int = figure(64, "bytes", "of a row that a thread has", least=1, power=True)
    thread_points: int = figure(
        32, "points", "the most that a thread has of a row in registers", least=1, power=True)
    row_warps: int = figure(
        8, "warps", "the most of a row, as long as a thread then has at most `thread_points`",
        least=1, power=True)
    held_row: int = figure(
        16384, "points", "longer rows of one array are held with twice the points in a thread "
        "where they are of f32, and walked over where of 16 bits")
    ahead_rows: int = figure(
        0, "rows", "the least of each processor where rows longer than `held_row` that are held "
        "are read ahead; 0: they never are")
    ahead_stages: int = figure(
        3, "rows", "the most that are under way in a program instance then", least=1)
    spare_bytes: int = figure(
        4096, "bytes", "of shared memory for all else: what threads hand on in reductions")
    persistent_points: int = figure(
        32768, "points", "the most in registers: those of a row for each array that is read along "
        "it")
    short_rows: int = figure(
        1024, "points", "of a tile of several short rows; twice as many where nothing is stored "
        "along them", least=1, power=True)
    sorted_points: int = figure(
        128, "points", "the least of a tile that is sorted, by one warp", least=1, power=True)
    row_spread: int = figure(
        4, "times", "`parallel`: the warps of a whole kernel up to which each has fewer points, of "
        "rows that are tiles each")
    shared_spread: int = figure(
        2, "times", "the same of tiles of several rows, which then are of fewer, where they share "
        "what is read (weights)")
    alone_spread: int = figure(8, "times", "and where they don't")
    spread_points: int = figure(
        4, "points", "the least that a thread of a row is left with", least=1, power=True)
    early_points: int = figure(
        16, "points", "the most of a thread for which all that is read comes first: more would "
        "take the registers of what is computed (log_softmax's gradient of 30,523 f32 with 32: 105 "
        "us, 135 with early reads)")
    walked_row: int = figure(16384, "points", "the longest row that `walked_tile` is for")
    walked_tile: int = figure(
        4096, "points", "of a tile that walks over a row", least=1, power=True)
    long_walked_tile: int = figure(
        8192, "points", "of one that walks over a longer row", least=1, power=True)
    symbolic_walked_tile: int = figure(
        2048, "points", "of one whose row's length is a symbol", least=1, power=True)

    # -- schedule: columns
    column_block: int = figure(
        32, "rows", "of a tile whose memory is contiguous across rows: one full line of f32",
        least=1, power=True)
    column_tile: int = figure(2048, "points", "of such a tile", least=1, power=True)
    column_warps: int = figure(
        3072, "warps", "of all program instances of a strided reduction together")
    wide_columns: int = figure(
        64, "rows", "of a tile of a long strided reduction, where that leaves `wide_programs`",
        least=1, power=True)
    wide_programs: int = figure(1024, "program instances", "the least of such a reduction")
    wide_warps: int = figure(
        16384, "warps", "of these together: 37 us rather than 74 for 8192x8192 bf16 of an H200")
    odd_columns: int = figure(
        128, "rows", "of a tile where steps along the reduction are no multiple of 16 bytes, "
        "so that a thread moves elements one by one: 240 us rather than 757 for 8192x30523 f32",
        least=1, power=True)
    odd_warps: int = figure(16, "warps", "of such a tile", least=1, power=True)
    held_column_points: int = figure(
        16384, "points", "of a tile that holds a strided reduction of few rows as a whole")
    held_column_thread: int = figure(
        8, "points", "of a thread of such a tile, as long as 4 warps are enough; else twice as "
        "many", least=1, power=True)
    unrolled_points: int = figure(
        16, "points", "that are combined one after the other for each of many rows: windows of a "
        "pooling")
    unrolled_block: int = figure(512, "rows", "of a tile that does so", least=128, power=True)
    kept_tile: int = figure(
        16384, "points", "of a tile of columns in registers that are stored, too", least=1,
        power=True)
    kept_points: int = figure(64, "points", "of a thread of such a tile", least=1, power=True)
    walked_kept_tile: int = figure(
        8192, "points", "of a tile that is walked over such columns; a thread has 8 of 16-bit "
        "elements, and 16 of larger ones", least=1, power=True)
    walked_kept_warps: int = figure(32, "warps", "the most of such a tile", least=1, power=True)
    sector_bytes: int = figure(
        32, "bytes", "of neighbouring columns that memory is moved by", least=1, power=True)

    # -- schedule: contractions
    processors: int = figure(132, "processors", "that have tiles of a contraction each", least=1)
    dot_flops: int = figure(
        6_000_000, "operations", "of products of 16 bits that a processor does in a us: 802 TFLOP "
        "a second are cuBLAS's most on an H200", least=1)
    plain_flops: int = figure(
        300_000, "operations", "of products of f32 as it is that a processor does in a us", least=1)
    tile_bytes: int = figure(
        70_000, "bytes", "of factors that a processor gets from the second-level cache in a us: "
        "tiles of 128x128 are bound by that (2048x3072x768 bf16 of an H200 takes 20 us)", least=1)
    tile_start: float = figure(
        1.0, "us", "what a tile takes beside its products: its first reads, and its stores")
    shared_bytes: int = figure(
        232_448, "bytes", "of memory that a processor's program instances share", least=1)
    accumulators: int = figure(
        49_152, "elements", "of sums that a processor has registers for, with what else these "
        "hold", least=1)

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
