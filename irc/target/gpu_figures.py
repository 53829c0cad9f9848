"""`GpuFigures`: what decides how a kernel runs on a GPU."""

from __future__ import annotations

from typing import Annotated

from irc.target.figures import Figure
from irc.target.speeds import Speeds


class GpuFigures(Speeds):
    """Figures of passes on a GPU."""

    launch: Annotated[int, Figure("operations", "a kernel more: 2.5 us")] = 16_000_000
    serial: Annotated[int, Figure("operations", "a program instance is serial work anyway")] = 0
    factor_tile: Annotated[int, Figure(
        "rows or columns", "of a block that is packed on a CPU, or of a tile on a GPU: a factor is "
        "evaluated once for each of the other side", least=1)] = 128
    femtoseconds: Annotated[int, Figure(
        "fs", "the time of an operation: a byte takes what it does at 3.3 TB/s", least=1)] = 150

    # -- schedule: pointwise kernels
    pointwise_block: Annotated[int, Figure(
        "points", "the most of a one-dimensional pointwise tile", least=1, power=True)] = 1024
    pointwise_bytes: Annotated[int, Figure(
        "bytes", "of an array that a thread of a pointwise tile has", least=1, power=True)] = 32
    least_block: Annotated[int, Figure(
        "points", "the least of such a tile: what has less than half of `parallel` tiles has "
        "smaller ones", least=1, power=True)] = 256
    scattered_block: Annotated[int, Figure(
        "points", "of a tile of many that are combined with what memory has, by 2 warps (an "
        "embedding's gradient of 4096x768 f32 with its zeros: 33.9 us of an H200, 34.8 with 1024)",
        least=1, power=True)] = 256
    pointwise_warps: Annotated[int, Figure(
        "times", "`parallel`: the warps of a whole kernel up to which each has fewer points")] = 16
    transpose_blocks: Annotated[tuple[int, ...], Figure(
        "points", "edges of square tiles that are written along another axis than they are read "
        "along; the largest that both axes fill is taken", least=8, power=True)] = (64, 32)
    transpose_least: Annotated[int, Figure(
        "points", "the least of an axis that such a tile has an edge along", least=2)] = 4
    transpose_points: Annotated[int, Figure(
        "points", "of such a tile of which one axis is shorter than edges of squares",
        least=1, power=True)] = 1024
    transpose_warp: Annotated[int, Figure(
        "points", "of such a tile for each warp", least=32, power=True)] = 512
    line_blocks: Annotated[tuple[int, ...], Figure(
        "points", "of a tile along one line of a pointwise kernel",
        least=1, power=True)] = (1024, 512, 256)
    line_spare: Annotated[float, Figure(
        "times", "the most points of all tiles for one of the line", least=1)] = 1.13
    line_values: Annotated[int, Figure(
        "values", "the least that are the same along such a line")] = 2

    # -- schedule: rows
    row_bytes: Annotated[int, Figure(
        "bytes", "of a row that a thread has", least=1, power=True)] = 64
    thread_points: Annotated[int, Figure(
        "points", "the most that a thread has of a row in registers", least=1, power=True)] = 32
    row_warps: Annotated[int, Figure(
        "warps", "the most of a row, as long as a thread then has at most `thread_points`",
        least=1, power=True)] = 8
    held_row: Annotated[int, Figure(
        "points", "longer rows of one array are held with twice the points in a thread where they "
        "are of f32, and walked over where of 16 bits")] = 16384
    ahead_rows: Annotated[int, Figure(
        "rows", "the least of each processor where rows longer than `held_row` that are held are "
        "read ahead; 0: they never are")] = 8
    ahead_stages: Annotated[int, Figure(
        "rows", "that are under way in a program instance then: where shared memory holds fewer "
        "they aren't (bf16 2048x30523 of an H200: softmax 73 us with 3, 101 with 2, 85 without)",
        least=1)] = 3
    spare_bytes: Annotated[int, Figure(
        "bytes", "of shared memory for all else: what threads hand on in reductions")] = 4096
    persistent_points: Annotated[int, Figure(
        "points", "the most in registers: those of a row for each array that is read along it"
        )] = 32768
    short_rows: Annotated[int, Figure(
        "points", "of a tile of several short rows; twice as many where nothing is stored along "
        "them", least=1, power=True)] = 1024
    short_group: Annotated[int, Figure(
        "elements", "that tiles of several rows of 16-bit elements begin at multiples of, where "
        "rows begin anywhere and are held whole, or have few points (softmax of 65536x99 7.0 us of "
        "an H200 with 4, 7.8 with 8; of 32768x131 4.9 and 5.6)", least=1, power=True)] = 4
    short_group_points: Annotated[int, Figure(
        "points", "of fewer parts of rows begin so, of more at what a thread moves at once "
        "(softmax of 32768x197 6.8 us of an H200 by 4 elements, 6.6 by 8)")] = 160
    row_parts: Annotated[int, Figure(
        "parts", "the most that a softmax's short rows of 16 bits are held by, but for what they "
        "begin behind the first one's first lane (8192x1001: 6.9 us of an H200, held whole 7.1; "
        "4096x2047: 7.0 and 9.5; 8192x768: 5.2 and 6.1)", least=1)] = 8
    program_bytes: Annotated[int, Figure(
        "bytes", "the least that a program instance reads and writes of rows of 16-bit elements, "
        "as one starts in 0.6 ns: 8192 that do nothing take 5.9 us of an H200, 4096 3.4 (softmax "
        "of 131072x64 6.4 us, 6.9 with half as many; of 32768x192 5.7 and 6.8)")] = 8192
    started_programs: Annotated[int, Figure(
        "program instances", "that are left at least where each has more for that", least=1)] = 2048
    norm_part: Annotated[int, Figure(
        "points", "the most of a part of a norm's rows that begin anywhere, where 16 parts hold "
        "one (layer_norm of bf16 8192x765: 6.8 us of an H200, by 128 points 7.2, held whole 8.0; "
        "8192x1001: 8.3, 9.4 and 10.0)", least=2, power=True)] = 64
    part_warps: Annotated[int, Figure(
        "warps", "of a tile of such parts at least, of which a thread has 4 points each (8192x768: "
        "5.2 us of an H200 by 2 rows and 2 warps, 6.8 by one each)", least=1, power=True, most=8
        )] = 2
    sorted_points: Annotated[int, Figure(
        "points", "the least of a tile that is sorted, by one warp", least=1, power=True)] = 128
    row_spread: Annotated[int, Figure(
        "times", "`parallel`: the warps of a whole kernel up to which each has fewer points, of "
        "rows that are tiles each")] = 4
    shared_spread: Annotated[int, Figure(
        "times", "the same of tiles of several rows, which then are of fewer, where they share "
        "what is read (weights)")] = 2
    alone_spread: Annotated[int, Figure("times", "and where they don't")] = 8
    spread_points: Annotated[int, Figure(
        "points", "the least that a thread of a row is left with", least=1, power=True)] = 4
    early_points: Annotated[int, Figure(
        "points", "the most of a thread for which all that is read comes first: more would take "
        "the registers of what is computed (log_softmax's gradient of 30,523 f32 with 32: 105 us, "
        "135 with early reads)")] = 16
    early_bytes: Annotated[int, Figure(
        "bytes", "the most of a thread, of all rows that are read, for which that comes first "
        "where a tile has at most `row_warps` (a norm of 4096x768 bf16 that is added to: 5.1 us of "
        "an H200, 5.8 without)")] = 256
    walked_row: Annotated[int, Figure(
        "points", "the longest row that `walked_tile` is for")] = 16384
    walked_tile: Annotated[int, Figure(
        "points", "of a tile that walks over a row", least=1, power=True)] = 4096
    long_walked_tile: Annotated[int, Figure(
        "points", "of one that walks over a longer row", least=1, power=True)] = 8192
    symbolic_walked_tile: Annotated[int, Figure(
        "points", "of one whose row's length is a symbol", least=1, power=True)] = 2048

    online_row_tile: Annotated[int, Figure(
        "points", "of a tile that walks over a row once, for its maximum with the sum of powers, "
        "with `online_abreast` in a turn: cross entropy of bf16 2048x30523 takes 39.5 us of an "
        "H200, 40.2 by one of 2048, 48.7 by one of 4096 (f32 1024x30523: 35.0, 35.0 and 38.6)",
        least=1, power=True)] = 1024
    cached_row: Annotated[int, Figure(
        "bytes", "of a row that is stored, too: a longer one is walked over twice so, a shorter "
        "one three times, as it stays in the cache (softmax of f32 512x65536 82 us of an H200, "
        "with three walks 108; of bf16 2048x30528 69 and 63)")] = 131_072

    # -- schedule: columns
    column_block: Annotated[int, Figure(
        "rows", "of a tile whose memory is contiguous across rows: one full line of f32",
        least=1, power=True)] = 32
    column_tile: Annotated[int, Figure("points", "of such a tile", least=1, power=True)] = 2048
    column_warps: Annotated[int, Figure(
        "warps", "of all program instances of a strided reduction together, half of them of 16-bit "
        "elements (f32 1024x16384: 18.0 us of an H200 with 8 for each of 512, 21.0 with 4, 18.6 "
        "with 16; the weights of a norm of bf16 8192x768 6.3 with 2 each, 7.9 with 4)")] = 4096
    several_abreast: Annotated[int, Figure(
        "tiles", "of a long strided reduction of several arrays of 32 bits in a turn, each of as "
        "many points less (weights of a norm of 16384x1024: 34.7 us of an H200 with 8, 38.3 with "
        "4, 43.9 with one; 8192x3072 52.3 and 57.7 with one)", least=1, power=True, most=16)] = 8
    wide_columns: Annotated[int, Figure(
        "rows", "of a tile of a long strided reduction of 16-bit elements, where that leaves "
        "`wide_programs`, a line of memory; half of f32 (8192x8192 66.6 us of an H200, 67.7 with "
        "two lines)", least=1, power=True)] = 64
    wide_programs: Annotated[int, Figure(
        "program instances", "the least of such a reduction")] = 1024
    wide_warps: Annotated[int, Figure(
        "warps", "of a tile of such a reduction, whose threads have 32 bytes each (bf16 8192x3072: "
        "13.1 us of an H200, 14.6 with 2, 16.6 with 4; 4096x4096 7.5 and 9.4; 8192x8192 36 us, 74 "
        "as other columns)", least=1, power=True, most=16)] = 1
    odd_columns: Annotated[int, Figure(
        "rows", "of a tile where steps along the reduction are no multiple of 16 bytes, so that a "
        "thread moves elements one by one: 240 us rather than 757 for 8192x30523 f32",
        least=1, power=True)] = 128
    odd_warps: Annotated[int, Figure("warps", "of such a tile", least=1, power=True)] = 16
    held_column_points: Annotated[int, Figure(
        "points", "of a tile that holds a strided reduction of few rows as a whole")] = 16384
    held_column_thread: Annotated[int, Figure(
        "points", "of a thread of such a tile, as long as 4 warps are enough; else eight times as "
        "many (weights of a norm of f32 8192x768: 16.2 us of an H200, 18.0 with 8)",
        least=1, power=True)] = 2
    unrolled_points: Annotated[int, Figure(
        "points", "that are combined one after the other for each of many rows: windows of a "
        "pooling")] = 16
    unrolled_block: Annotated[int, Figure(
        "rows", "of a tile that does so", least=128, power=True)] = 512
    apart_block: Annotated[int, Figure(
        "points", "of a tile whose reads lie apart, one for each thread (windows of a pooling with "
        "two steps: 3.7 us of an H200, 4.1 with 512 and two, 6.2 with four)",
        least=32, power=True)] = 256
    window_bytes: Annotated[int, Figure(
        "bytes", "that windows begin apart at most, for that")] = 16
    kept_tile: Annotated[int, Figure(
        "points", "of a tile of columns in registers that are stored, too",
        least=1, power=True)] = 16384
    kept_points: Annotated[int, Figure(
        "points", "of a thread of such a tile; few columns have a quarter (softmax of f32 "
        "768x8192: 15.3 us of an H200 with 128, 17.6 with 64)", least=1, power=True)] = 128
    walked_kept_tile: Annotated[int, Figure(
        "points", "of a tile that is walked over such columns; a thread has 8 of 16-bit elements, "
        "and 16 of larger ones", least=1, power=True)] = 8192
    walked_kept_warps: Annotated[int, Figure(
        "warps", "the most of such a tile", least=1, power=True)] = 32
    online_tile: Annotated[int, Figure(
        "points", "of 16 bits of a tile that is walked over such columns twice, for their maxima "
        "with sums of powers and for what is stored; half as many of f32",
        least=1, power=True)] = 4096
    online_abreast: Annotated[int, Figure(
        "tiles", "of those that walk over rows or columns so in a turn (softmax of 4096x8192 of an "
        "H200: bf16 50.3 us with 8, 55.4 with 4, 54.8 with one of 16384 points; f32 99.2, held "
        "104)", least=1, power=True, most=16)] = 8
    online_points: Annotated[int, Figure(
        "points", "longer columns of 16-bit elements are walked over so rather than held, up to "
        "twice as long by half a tile of half the columns (bf16 1024x8192: 10.7 us of an H200, "
        "held 11.9; 1500x8192: 16.3, by whole tiles 17.8; 768x8192 8.9, held 7.9)")] = 768
    turned_points: Annotated[int, Figure(
        "points", "the same where rows are read along and stored across; those of more than half "
        "of it, held, have twice the warps (softmax of bf16 1024x8192: 8.4 us of an H200, 8.6 with "
        "half as many; 512x16384 7.7 and 7.3)")] = 1024
    column_parts: Annotated[int, Figure(
        "parts", "the most that columns of 16-bit elements are held by (softmax of 768x8192: 7.9 "
        "us of an H200, held whole 8.7; turned 6.4 and 10.5, with 3 parts 6.6; 1024x8192 turned "
        "8.4 with 4, 10.1 with 8)", least=1)] = 6
    least_part: Annotated[int, Figure(
        "points", "the least of such a part; half of them of a part of rows", least=2, power=True
        )] = 64
    online_columns: Annotated[int, Figure(
        "columns", "of such a tile, where that leaves nearly each processor one",
        least=1, power=True)] = 64
    sector_bytes: Annotated[int, Figure(
        "bytes", "of neighbouring columns that memory is moved by", least=1, power=True)] = 32

    # -- schedule: contractions
    processors: Annotated[int, Figure(
        "processors", "that have tiles of a contraction each", least=1)] = 132
    dot_flops: Annotated[int, Figure(
        "operations", "of products of 16 bits that a processor does in a us, without what it waits "
        "for (fitted, as what follows, to 560 kernels of an H200, bench.gpu_products)", least=1
        )] = 6_840_000
    plain_flops: Annotated[int, Figure(
        "operations", "of products of f32 as it is that a processor does in a us",
        least=1)] = 300_000
    tile_bytes: Annotated[int, Figure(
        "bytes", "of factors that a processor gets from the second-level cache in a us", least=1
        )] = 92_000
    product_bytes: Annotated[int, Figure(
        "bytes", "of factors that a processor writes to and reads from its own memory in a us: "
        "tiles of 128x128 are bound by that", least=1)] = 200_000
    apart_sums: Annotated[int, Figure(
        "sums", "of a thread at most, and as many that they are added to after each step "
        "(products of 8-bit floats, 4096^3: 64x128 of 4 warps takes 133 us of an H200, 64x160 149, "
        "128x192 of 8 154, 128x256 of 8 and 128x128 of 4 213 and 205)", least=1)] = 128
    added_sums: Annotated[int, Figure(
        "sums", "that a processor adds to others in a us, while it multiplies none (4096^3, tiles "
        "of 128x128 145 us, 128x160 169, 64x192 178; of 64x128, of which it has two, 136)", least=1
        )] = 107_000
    exact_depth: Annotated[int, Figure(
        "terms", "from which on f32 that is to have all of its bits is cut into three bf16, whose "
        "six largest products are added up (`precision`): of fewer its error isn't sure to be less "
        "than that of sums of f32")] = 256
    exact_side: Annotated[int, Figure(
        "points", "the least rows and columns of that (8x11008x4096: 52 us of an H200, 315 as a "
        "reduction)", least=2)] = 8
    cut_sums: Annotated[int, Figure(
        "sums", "of a thread at most then, which holds three numbers for each: with 64 it has to "
        "put some into memory", least=1)] = 32
    cut_points: Annotated[int, Figure(
        "points", "of factors that a processor cuts so in a us, while it multiplies none (steps of "
        "64x64x64, 64x64x32, 64x32x64 and 64x32x32 take it 1.00, 0.57, 0.62 and 0.36 us: 4096^3 "
        "and 2048x3072x768)", least=1)] = 20_300
    cut_registers: Annotated[int, Figure(
        "elements", "that stand for each sum then, with the parts of factors", least=1)] = 5
    cut_added: Annotated[int, Figure(
        "sums", "of such a step that a processor adds to others in a us, with what rounding leaves "
        "out, while it multiplies none", least=1)] = 30_000
    cut_wait: Annotated[float, Figure(
        "us", "that such a step takes longer where a processor has no other tile meanwhile "
        "(512x768x3072 and 64x4096x4096: 1.44, 0.91 and 0.95 us)")] = 0.4
    tile_start: Annotated[float, Figure(
        "us", "that a tile waits for its first factors")] = 1.2
    step_latency: Annotated[float, Figure(
        "us", "from where a step's factors are asked for until they are multiplied")] = 0.8
    step_start: Annotated[float, Figure("us", "of a step beside all that")] = 0.015
    held_sums: Annotated[int, Figure(
        "sums", "of a thread at most where something is done to them, which takes registers, too",
        least=1)] = 128
    scalar_flops: Annotated[int, Figure(
        "operations", "of what is done to sums that a processor does in a us", least=1)] = 115_000
    stored_tile: Annotated[int, Figure(
        "bytes", "of shared memory that sums go through to be stored while factors are read")
        ] = 65_536
    few_programs: Annotated[int, Figure(
        "program instances", "of a processor that last where few rows of few steps are multiplied, "
        "with the fewest steps in flight (8x50304x768: 20.3 us of an H200, 22.6 by as many as "
        "tiles with eight)", least=1)] = 3
    few_depth: Annotated[int, Figure(
        "terms", "up to which they do (8x28672x4096: 62.4 us, 57.6 by as many as tiles with eight; "
        "8x18944x3584: 37.9 and 36.0)")] = 2048
    few_stages: Annotated[int, Figure(
        "steps", "in flight of such tiles else, of which a processor then has one", least=2)] = 8
    least_stages: Annotated[int, Figure(
        "steps", "in flight at least: with two, nothing is read while the last one is multiplied",
        least=1)] = 3
    deep_tile: Annotated[int, Figure(
        "points", "rows and columns of tiles whose steps may be twice as deep")] = 128
    stored_bytes: Annotated[int, Figure(
        "bytes", "of sums that a processor stores in a us", least=1)] = 54_000
    odd_stores: Annotated[tuple[int, ...], Figure(
        "bytes", "of sums that a processor stores in a us where rows begin at multiples of 2, 4 "
        "and 8 bytes (8192x768 by 768 columns of which 30528, 30523, 30522 and 30524, tiles of "
        "128x256: 645, 1144, 688 and 679 us of an H200)", least=1)] = (6_500, 22_000, 32_000)
    lasting_stores: Annotated[float, Figure(
        "of a store's time", "that is left where the next tile's factors are read meanwhile (587, "
        "675, 680 and 608 us of these)")] = 0.35
    odd_pieces: Annotated[int, Figure(
        "pieces", "of factors' rows that aren't aligned that a processor gets in a us (512x30522 "
        "by 30522x768: 6100 of 4 bytes, 8192 rows of it in f16 4600)", least=1)] = 4_500
    odd_latency: Annotated[float, Figure(
        "us", "of a step whose factors come in pieces of 2 bytes, which go through registers, so "
        "that none is in flight meanwhile (4096x50257 by 50257x768, tiles of 128x256, 64x128 and "
        "128x64: 2.6, 2.7 and 2.5)", least=0)] = 2.1
    most_parts: Annotated[int, Figure(
        "parts", "of the depth at most that are summed up apart", least=1)] = 16
    part_depth: Annotated[int, Figure("terms", "the least of such a part", least=1)] = 512
    most_stages: Annotated[int, Figure("steps", "in flight at most", least=1)] = 16
    shared_bytes: Annotated[int, Figure(
        "bytes", "of memory that a processor's program instances share", least=1)] = 232_448
    accumulators: Annotated[int, Figure(
        "elements", "of sums that a processor has registers for, with what else these hold",
        least=1)] = 49_152

    matrix_side: Annotated[int, Figure(
        "points", "rows, columns and depth from which on floats are multiplied as matrices where a "
        "schedule doesn't say", least=1)] = 16
    narrow_side: Annotated[int, Figure(
        "points", "of 16 bits two rows are enough for so many columns, and the other way round"
        )] = 64
    swapped_rows: Annotated[int, Figure(
        "rows", "up to which the columns are the first dimension of tiles: it has at least 64 "
        "lanes where four warps share it")] = 32
    step_bytes: Annotated[int, Figure(
        "bytes", "of the depth in a step: what a line of memory has", least=16, power=True)] = 128
    plain_step: Annotated[int, Figure(
        "points", "of the depth in a step, for f32 as it is", least=1, power=True)] = 16
    grouped_rows: Annotated[int, Figure(
        "rows", "of tiles that go over the columns together", least=1)] = 8

    # -- products that are streamed. Each of four figures has nine numbers: for up to 64, 128 and
    # 256 terms and columns, of one product of scores, of several, and of several sums
    stream_rows: Annotated[tuple[int, ...], Figure(
        "rows", "of a tile of streamed products: for up to 64, 128 and 256 terms and columns, of "
        "one product of scores (an H200, bf16: of 64 terms 177 us with 64 rows, 184 with 128; of "
        "128 terms 559 with 128 rows, 681 with 64), of several, as a gradient of queries has "
        "them, and of several sums, as those of keys and values are", least=16, power=True)] = (
            64, 128, 64, 64, 64, 64, 64, 64, 64)
    stream_columns: Annotated[tuple[int, ...], Figure(
        "columns", "of the stream in a step of such tiles (keys' and values' gradients, 64 "
        "causal terms: 193 us with 128 and two steps in flight, 226 with 64 and three)",
        least=16, power=True)] = (64, 64, 32, 64, 64, 32, 128, 64, 32)
    stream_warps: Annotated[tuple[int, ...], Figure(
        "warps", "of such tiles", least=1, power=True)] = (4, 4, 4, 4, 4, 8, 4, 4, 8)
    stream_stages: Annotated[tuple[int, ...], Figure(
        "steps", "of the stream in flight, as far as a processor's memory has room", least=1)] = (
            3, 2, 3, 3, 2, 2, 2, 2, 2)
    stream_programs: Annotated[int, Figure(
        "tiles", "of rows, and of parts of their streams: there are parts where there are not half "
        "as many tiles of rows", least=1)] = 256
    short_stream: Annotated[int, Figure(
        "columns", "of a stream that few tiles may walk over (assumed)")] = 512
    library_stream: Annotated[int, Figure(
        "keys", "that program instances of the library's attention, which are few, may walk over "
        "(4x16 heads of 16 queries, 8192 keys: 76 us of an H200, with a mask 131; irc 43)")] = 2048
    stream_part: Annotated[int, Figure(
        "columns", "that a part of a stream has, at least", least=1)] = 256
    streamed_scores: Annotated[int, Figure(
        "points", "of scores: fewer that no softmax is of stay in memory")] = 1 << 20

    # -- who multiplies
    library_share: Annotated[float, Figure(
        "times", "that the library takes of what irc's best tiles take by the model, of rows that "
        "are aligned (8192x30528x768: 541 of 587 us of an H200)")] = 0.92
    library_tile: Annotated[tuple[int, ...], Figure(
        "rows, columns", "of the library's tiles where rows aren't aligned (16 rows take as long "
        "as 128)", least=1)] = (128, 64)
    library_rates: Annotated[tuple[int, ...], Figure(
        "operations", "in a us that a processor does of these on 16 bits where rows begin at "
        "multiples of 2, 4 and 8 bytes (768 deep, 8192 rows by 30523, 30522 and 30524 columns: "
        "4078, 1578 and 1578 us of an H200; 16 by 50257: 102; 4096 by 1001 and 1002: 70 and 30; "
        "8192x30528: 541)", least=1)] = (735_000, 1_840_000, 1_840_000)
    library_plain: Annotated[int, Figure(
        "operations", "in a us that a processor of the library does of f32 as it is, of at least "
        "`library_side` rows and columns (4096^3: 2790 us of an H200; 2048x3072x768: 229, "
        "512x768x3072: 65, 64x4096x4096: 64, 16x4096x4096: 49)", least=1)] = 372_000
    library_side: Annotated[int, Figure(
        "points", "rows or columns that take the library as long as fewer, of f32", least=1)] = 64
    sure: Annotated[float, Figure(
        "times", "as fast as the library's ways irc's kernel has to be by the model, which is 6 % "
        "off, to be taken without measuring", least=1)] = 1.1

    sure_pieces: Annotated[float, Figure(
        "times", "the same where rows of factors aren't aligned, of which the model is 30 % off",
        least=1)] = 1.3

    # -- attach-checks
    whole_rows: Annotated[int, Figure(
        "rows", "the least that a kernel is shared by, with a check of indices for each")] = 32
    few_points: Annotated[int, Figure(
        "points", "a kernel of at most so many may have fewer")] = 32_768

    # -- spread-rows
    instance_points: Annotated[int, Figure(
        "points", "of long rows that a program instance moves in a microsecond: an H200's takes "
        "19.4 us to read a row of 128256 twice and store it (layer_norm of f32), 10.4 for one of "
        "65536, which it holds", least=1)] = 16_000
    crossed_points: Annotated[int, Figure(
        "points", "the same where they are stored along another axis than they are read along "
        "(group_norm of f16 2x1280x16x16 by 32 with channels innermost: 17.6 us)", least=1)] = 2_000
    few_beside: Annotated[int, Figure(
        "times", "fewer points than a row has what is reduced beside it has at least, which each "
        "part of the row computes anew", least=1)] = 64
    narrow_bytes: Annotated[int, Figure(
        "bytes", "of points of a row that lie side by side, of which fewer are reduced one by one "
        "with those of the rows beside them", least=1)] = 64
    narrow_columns: Annotated[int, Figure(
        "columns", "of a program instance then", least=1)] = 64

    # -- split-reductions
    split_fills: Annotated[int, Figure(
        "parts", "wanted for each program instance that keeps a GPU busy", least=1)] = 4
    split_points: Annotated[int, Figure(
        "points", "the least of each of these parts of a reduction that is split, on an average; "
        "of fewer, parts are wanted where they save more than a launch")] = 128
    split_rows: Annotated[int, Figure(
        "points", "the least work of a part for each result, where rows are strided", least=1)] = 64
    split_row_points: Annotated[int, Figure(
        "points", "and where they are contiguous", least=1)] = 4096
    least_parts: Annotated[int, Figure("parts", "of fewer a reduction stays whole", least=1)] = 4
    part_rows: Annotated[int, Figure(
        "points", "the least of a part that has rows of results", least=1)] = 16
    long_column: Annotated[int, Figure(
        "points", "strided reductions of so many: for each tile of `column_results`, parts for "
        "`column_programs` program instances, each with at least `column_points` (8192x8192 bf16 "
        "takes 37 us in 32 parts, 40 in 16, 43 in 8: `bench.gpu_kernels`)")] = 2048
    column_results: Annotated[int, Figure("results", "of a tile of such a reduction", least=1)] = 64
    column_programs: Annotated[int, Figure("program instances", "of all parts of all tiles")] = 4096
    column_points: Annotated[int, Figure("points", "the least of such a part", least=1)] = 256
    several_column_points: Annotated[int, Figure(
        "points", "the least of a part where several arrays of 32 bits are read (weights of a norm "
        "of 8192x768: 14.3 us of an H200 with 128, 18.0 with 256, 16.0 with 64)",
        least=1)] = 128

    # -- what a forward saves
    joined_bytes: Annotated[int, Figure(
        "bytes", "of a tensor that is saved as a part of one with others: each tensor of its own "
        "takes 3 us of a step, and what is joined goes when all of it has been read")] = 4 << 20
    joined_blocks: Annotated[int, Figure(
        "arrays", "the most that what is saved is joined into, by when it is read last: so much of "
        "it is kept too long (BERT-base's step of 4x128 saves 262 MiB)", least=1)] = 8
    joined_least: Annotated[int, Figure(
        "bytes", "of each of these arrays, where there are several", least=1)] = 2 << 20

    # -- plan-memory
    lone_bytes: Annotated[int, Figure(
        "bytes", "of an array that has memory of its own while it is used, if no other takes turns "
        "with it: the allocator takes 2 us for it, and the others' arena lives as long as the call",
        least=1)] = 16 << 20

    # -- overlap-launches
    opening_programs: Annotated[int, Figure(
        "program instances", "the most that let the next launch begin however short they are")
        ] = 512
    opening_bytes: Annotated[int, Figure(
        "bytes", "the least of arrays for each of more, as each takes 1.4 ns then rather than 0.7: "
        "zeros of 94 MB and sums into them take 40.3 us of an H200 where 22,892 program instances "
        "do, 32.6 where none does; 25 MB by 4096 8.0 where they do, 8.6 where they don't")] = 6144

    # -- join-launches
    joined_warps: Annotated[int, Figure(
        "times", "by how much more warps than its own a kernel may run that is joined with another",
        least=1)] = 4


__all__ = ["GpuFigures"]
