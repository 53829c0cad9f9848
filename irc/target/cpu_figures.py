"""`CpuFigures`: what decides how a kernel runs on a CPU.

Prices of accesses by vectors are in *instructions*: a vector's operation, however many lanes it
has. A body's cost is its operations and one for each access.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from irc.target.figures import Figure
from irc.target.speeds import Speeds


class CpuFigures(Speeds):
    """Figures of the pass `schedule` on a CPU."""

    gather: Annotated[float, Figure(
        "instructions", "an element that a vector reads by itself")] = 1.5
    strided: Annotated[int, Figure(
        "elements", "that a vector's lie apart at most where they are chosen from whole vectors",
        least=1, most=64)] = 8
    scatter: Annotated[float, Figure(
        "instructions", "an element that a vector writes by itself")] = 2.5
    aliased: Annotated[float, Figure(
        "instructions", "an element more whose line falls on one set of the first-level cache with "
        "those of the other lanes, so that it comes from behind it (of bilinear upsampling to "
        "2x64x64x64 a Zen 3 computes a point along channels in 12 ns, along rows in 3)")] = 5.0
    walked: Annotated[float, Figure(
        "instructions", "an element more that a vector of what is added up reads by itself, where "
        "each lane could be walked alone (the gradient of maxima of 256 lines of 1000 on a Zen 4: "
        "290 us with vectors over lines, 163 without)")] = 10.0
    scalar: Annotated[float, Figure("instructions", "an access of a body without vectors")] = 1.0
    horizontal: Annotated[float, Figure("instructions", "the lanes of a vector, combined")] = 12.0
    stack_bytes: Annotated[int, Figure(
        "bytes", "what the members of a group hand on, kept on the stack; what has no room there "
        "is memory of the program's", most=131_072)] = 131_072
    map_block: Annotated[int, Figure(
        "elements", "a vector axis in one point of the parallel space of a pointwise kernel",
        least=1, power=True)] = 1024
    transposed_tiles: Annotated[int, Figure(
        "tiles", "transposed tiles along the vectors in one point of the parallel space",
        least=1, power=True)] = 16
    tile_row: Annotated[int, Figure(
        "bytes", "a transposed tile's row, of light bodies: of rows that begin anywhere, half "
        "cross a line of the cache, where all vectors of 64 bytes do (x.t() + y of a million f32 "
        "in rows of 1023 on a Xeon with AVX-512: 0.75 ms with 32 bytes, 1.39 with 64)",
        least=1, power=True)] = 32
    tile_blocks: Annotated[tuple[int, ...], Figure(
        "points", "the axis that transposed tiles read contiguously in one point of the parallel "
        "space, for elements of 1, 2, 4, 8 and 16 bytes: the lines that are read or written in "
        "part stay in the first cache, and memory is read a few lines at a time (16 million bf16 "
        "on a Zen 4: 26 ms with 64 points, 14 with 256; f32 on the Xeon: 25 ms with 64, 36 with "
        "128)", least=1, power=True)] = (512, 256, 64, 32, 16)
    paired_bits: Annotated[int, Figure(
        "bits", "registers up to this size are taken two at a time where each point is on its own: "
        "there are 16, so that most constants of a body are loaded at each use, then once for both "
        "(gelu of a million bf16 with AVX2 on a Zen 4: 0.80 ms against 1.05)")] = 256
    heavy_body: Annotated[int, Figure(
        "operations", "a body of more has instructions enough in flight with few copies")] = 160
    light_body: Annotated[int, Figure(
        "operations", "a body of at most so many waits for memory in long rows: more places are "
        "read. One of a higher cost fills 16 registers with two vectors in flight (log softmax of "
        "a million bf16 with AVX2 has 1.61 of Inductor's speed with two, 1.45 with four)")] = 16
    long_row: Annotated[int, Figure("elements", "such a row")] = 65_536

    # -- contractions whose sums are computed in tiles of registers
    tiled_work: Annotated[int, Figure(
        "multiplications", "of fewer a contraction stays a reduction like others, whose points "
        "come one after the other")] = 32_768
    tiled_depth: Annotated[int, Figure(
        "terms", "of sums that are added before any is put aside, a multiple of all vectors (256 x "
        "4096 x 4096 with weights in panels on a Xeon, of packed oneDNN's rate: 1.07 with 1024, "
        "0.96 with 512 or 1376, 0.91 with 2048)", least=256, power=True)] = 1024
    sums_in_flight: Annotated[int, Figure(
        "vectors", "of sums that keep the multipliers busy")] = 8
    tile_times: Annotated[tuple[int, ...], Figure(
        "", "what a tile takes for a term: for each vector of sums, each row and each vector. The "
        "share of the last two is what 8 x 3 and 9 x 3 vectors gained over 14 x 2 and 6 x 4 (512 x "
        "768 x 3072 with weights in panels on a Xeon with AVX-512, of packed oneDNN's rate: 1.05, "
        "1.10, 1.04 and 0.99)")] = (12, 4, 13)
    tile_slack: Annotated[float, Figure(
        "of the least time", "that a tile may take more which leaves fewer kinds of tiles at the "
        "ends: each of them is code of its own")] = 0.04
    most_vectors: Annotated[int, Figure(
        "vectors", "the most of a tile's row", least=1, most=16)] = 4
    thread_blocks: Annotated[int, Figure(
        "points", "of the parallel space for each thread", least=1)] = 4
    uneven_points: Annotated[float, Figure(
        "of a point's time", "that threads wait for the last one: each takes its points one by "
        "one, then those that another has not begun (two threads of a shared Xeon, 512 x 768 x "
        "3072 of f32: 12.7 ms in two points, 11.9 in eight)")] = 0.4
    near_columns: Annotated[float, Figure(
        "of the second-level cache", "the most that all columns of a factor take for tiles to go "
        "over them before the next rows, so that rows and results pass once (12544 x 64 x 256 with "
        "weights in panels, a residual and relu on a Xeon: 4.1 ms against 5.5; 12544 x 256 x 64: "
        "3.2 against 4.2; 784 x 256 x 1024, half of the cache, was slower)")] = 0.3
    few_rows: Annotated[int, Figure(
        "points", "of an axis of rows, below which tiles go over other axes of rows together with "
        "it")] = 128
    packed_element: Annotated[int, Figure(
        "multiplications", "of vectors in the time of packing an element")] = 12
    read_element: Annotated[int, Figure(
        "multiplications", "of vectors in the time in which a block of tiles gets an element of "
        "either factor from behind the second-level cache: a core of a Zen 4 has 54 billion "
        "products a second and reads 5 to 20 billion elements")] = 4
    unrolled_terms: Annotated[int, Figure(
        "terms", "of sums that the innermost loop adds at a time; where vectors run along the "
        "depth, vectors of them", least=1, most=64)] = 2
    heavy_rest: Annotated[int, Figure(
        "operations", "of what follows the sums, from which on it is done row by row from the "
        "stack")] = 12
    packed_skew: Annotated[int, Figure(
        "elements", "by which packed rows are set apart, for other sets of the cache",
        least=1, most=4096)] = 16
    aliasing_bytes: Annotated[int, Figure(
        "bytes", "by which rows lie apart that fall on one set of the first-level cache",
        least=64, power=True)] = 4096
    aliasing_rows: Annotated[int, Figure(
        "rows", "of a tile that may fall on one set, as many as it has lines; of more, rows are "
        "packed (weights in panels, 8 rows that fall on one set, as they lie, of the rate of "
        "packed ones: on a Xeon 0.97 to 1.03 for 256 x 3072 x 768, 0.94 to 1.00 for 256 x 4096 x "
        "4096; on a Zen 4 1.02 to 1.03 and 1.00)", least=1)] = 4

    # -- terms that are multiplied in groups
    pairs_time: Annotated[float, Figure(
        "of a vector's multiplication", "what multiplies and adds up pairs of 16 bits in each lane "
        "takes (Zen 4, registers of 512 bits: 3.65 G/s of vdpbf16ps and 3.63 of fused "
        "multiplications; the limits that `bench.products --element bf16` prints)")] = 1.0

    # -- who multiplies: irc's kernels or the library (`irc.analysis.processor_ways`)
    product_rows: Annotated[tuple[int, ...], Figure(
        "rows", "or columns, the fewer of both, from which on a product has few, some and many: "
        "what follows has a number for each. Of fewer the library computes it")] = (1, 16, 128)
    own_products: Annotated[tuple[int, ...], Figure(
        "% of ATen's speed", "that kernels of irc's multiply f32 with, of few, some and many rows "
        "(`python -m bench.products`)")] = (120, 110, 90)
    own_panels: Annotated[tuple[int, ...], Figure(
        "% of packed oneDNN's speed", "that they do with frozen weights in panels")] = (
        130, 130, 105)  # fmt: skip
    own_pairs: Annotated[tuple[int, ...], Figure(
        "% of ATen's speed", "that they multiply bf16 with")] = (110, 90, 90)
    own_pair_panels: Annotated[tuple[int, ...], Figure(
        "% of packed oneDNN's speed", "that they do with frozen weights in panels")] = (
        120, 120, 90)  # fmt: skip
    own_split: Annotated[tuple[int, ...], Figure(
        "% of ATen's speed", "that they multiply f32 with which is cut into three parts of bf16, "
        "where registers hold whole tiles of these")] = (1, 1, 1)
    own_split_panels: Annotated[tuple[int, ...], Figure(
        "% of packed oneDNN's speed", "that they do with parts of frozen weights in panels"
        )] = (1, 1, 1)
    split_threads: Annotated[int, Figure(
        "threads", "up to which f32 is cut like that: two cores of a Granite Rapids are 1.4 times "
        "as fast like that as in vectors; on a shared host, where a core's registers of whole "
        "tiles take up to 4.8 times as long for a while and the slowest thread decides, two and "
        "four threads are about as fast, eight and sixteen slower "
        "(bench/results/xeon_products.txt)", least=0)] = 4
    crowded_library: Annotated[int, Figure(
        "% of its speed", "beside irc's kernels, that the library's products and convolutions keep "
        "with more threads than `split_threads`: its threads wait for the slowest of them, irc's "
        "take what others have not begun (bench/results/xeon_crowd.txt)", least=1, most=100)] = 100
    own_attention: Annotated[int, Figure(
        "% of ATen's speed", "that attention of irc's own has in f32 (a Zen 4: "
        "bench/results/zen4_attention.txt)")] = 90
    own_pair_attention: Annotated[int, Figure("% of ATen's speed", "that it has in bf16")] = 90
    own_walks: Annotated[tuple[int, ...], Figure(
        "% of ATen's speed", "that blocks of rows have which walk over the keys, in f32 and in 16 "
        "bits (`python -m bench.own_attention --walks`)")] = (90, 90)
    attention_blocks: Annotated[tuple[int, ...], Figure(
        "blocks", "of a head's rows, at most, that irc's own has, whose rows see all keys, and "
        "whose rows see those up to their own (speed against ATen's, 4 heads of 1000 rows and 1111 "
        "keys in f32: a Zen 4 1.05 in seven blocks, a Zen 3 0.95; in bf16 1.45, on a Xeon 0.95; 12 "
        "heads of 1024 rows, causal: on a Zen 4 1.36, in bf16 2.06, on a Zen 3 1.18, on a Xeon "
        "1.10, in bf16 1.12)",
        least=1)] = (64, 1)
    causal_rows: Annotated[tuple[int, ...], Figure(
        "rows", "of attention that sees keys up to a row's own, in f32 and in bf16, for which the "
        "keys behind them are left out together: each such group lays out keys and values again "
        "(1x12x256x64 on a Xeon, speed against ATen's by 256, 128 and 64 rows: f32 1.09, 1.36 and "
        "1.04, bf16 1.01, 1.20 and 1.34)", least=16)] = (128, 128)
    causal_parts: Annotated[int, Figure(
        "groups", "of such rows at most, each of which is code of its own", least=1)] = 4
    attention_bytes: Annotated[int, Figure(
        "bytes", "of the scores of all its points, most that attention of irc's own may have; "
        "threads use those of the points that they begin with")] = 1 << 28
    own_parts: Annotated[int, Figure(
        "parts", "of memory of a kernel's own, if the target has no more threads: each thread has "
        "one, and no more threads than there are parts take its points", least=1)] = 16
    walk_rows: Annotated[int, Figure(
        "rows", "of a block of streamed products, which walks over the stream", least=8)] = 64
    walk_columns: Annotated[int, Figure("columns", "of a step of such a walk", least=16)] = 256
    tiled_walk_rows: Annotated[int, Figure(
        "rows", "of such a block where registers of whole tiles multiply (a Xeon: "
        "bench/results/cpu_streamed_attention.txt)", least=16)] = 128
    tiled_walk_columns: Annotated[int, Figure("columns", "of a step there", least=32)] = 512
    own_pixels: Annotated[tuple[int, ...], Figure(
        "% of ATen's speed", "that kernels of irc's have in convolutions of single pixels, of f32, "
        "with weights that aren't frozen, of few, some and many places or channels (`python -m "
        "bench.pixels`)")] = (100, 100, 100)
    own_pair_pixels: Annotated[tuple[int, ...], Figure(
        "% of ATen's speed", "that they have in those of bf16")] = (100, 100, 100)
    sure_products: Annotated[float, Figure(
        "times", "as fast as the library irc's kernel has to be, by these figures, to be taken"
        )] = 1.01

    # -- reductions several points of which have their sums in registers
    # (`irc.analysis.shared_reads`)
    most_jammed: Annotated[int, Figure(
        "points", "that have their sums in registers together (depthwise convolutions on a Zen 4: "
        "14 were no faster than 8, and slower where images are large)", least=2, most=64)] = 8
    written_products: Annotated[int, Figure(
        "products", "of a tile of points that have code of their own", least=2)] = 128
    most_terms: Annotated[int, Figure(
        "terms", "of the outermost loop of such a sum; longer sums are of partial sums",
        most=64)] = 64
    product_latency: Annotated[int, Figure(
        "products", "of vectors in the time until a sum can be added to again")] = 4
    jam_start: Annotated[int, Figure(
        "products", "of vectors in the time in which a tile of such points begins and ends")] = 4
    turned_reads: Annotated[int, Figure(
        "times", "that elements are read by vectors along which they lie apart, from which on they "
        "are laid out before: gathering one takes a vector's load (the weights of a depthwise "
        "convolution, which the places of an image read)")] = 16
    sure_jams: Annotated[float, Figure(
        "times", "as fast as point by point that has to be, by the model")] = 1.2

    # -- convolutions channel by channel (`irc.analysis.window_ways`)
    own_windows: Annotated[tuple[int, ...], Figure(
        "% of oneDNN's speed", "that irc's reductions over windows of few and of many elements "
        "have, channel by channel (`python -m bench.depthwise`)")] = (105, 115)
    own_pair_windows: Annotated[tuple[int, ...], Figure(
        "% of oneDNN's speed", "that they have in those of bf16 (`--element bf16`)")] = (105, 115)
    many_taps: Annotated[int, Figure("elements", "of a window, from which on it has many")] = 25
    most_taps: Annotated[int, Figure(
        "elements", "of a row of a window that is one sum: of more, sums are of partial sums")] = 7

    # -- products of factors that are not packed
    unpacked_rows: Annotated[int, Figure(
        "rows", "up to which factors are multiplied along the depth, as they lie, rather than "
        "packed (of ATen's rate with the weights of linear layers on a Xeon with AVX-512: 16 rows "
        "1.3 to 1.7 against 0.5 to 0.9 packed, 48 rows 1.0 to 1.2 against 0.7 to 1.0)")] = 64
    unpacked_columns: Annotated[int, Figure(
        "columns", "whose sums are computed together then: that many vectors stay in registers "
        "beside those of the rows", least=1, most=16)] = 4
    fetched_panels: Annotated[int, Figure(
        "panels", "that are packed together, while the next ones are fetched (256 x 768 x 3072 on "
        "a Xeon with AVX-512: 164 GFLOP/s with 2, 161 with 4, 154 with 8, 147 with all and none "
        "fetched; ATen 146)", least=1)] = 2
    fetched_rows: Annotated[int, Figure(
        "tiles", "of rows that lie as they are, before whose sums memory is fetched that these are "
        "in: what reads them jumps from row to row, so that the processor's own order finds few "
        "(a Zen 4: bench/results/zen4_rows_ahead.txt)", least=0, most=64)] = 2
    met_panels: Annotated[int, Figure(
        "panels", "that a tile's rows meet, up to which they are fetched: with more each row is "
        "read more often than it comes from memory, and what fetches it takes 1 to 2 % (a Zen 4: "
        "bench/results/zen4_rows_ahead.txt)", least=0)] = 3
    ahead_terms: Annotated[int, Figure(
        "terms", "of sums in whose time a vector of the next panel is packed, where tiles pack it; "
        "fewer where rows have few tiles (256 x 3072 x 768 with the weights of linear layers on a "
        "Zen 4, of the rate with panels packed first: 1.04 with 8, 1.06 with 4, 1.02 with 2; 788 x "
        "768 x 3072: 1.03, 1.02, 1.02 and, with 16, 1.00)", least=1, power=True)] = 8
    least_ahead_terms: Annotated[int, Figure(
        "terms", "the fewest in whose time tiles pack: with less, what is packed takes longer than "
        "before (65 to 100 x 3072 x 768 and 65 x 4096 x 1024 on a Zen 4, of the time with panels "
        "packed first: 0.81 to 0.89 with 4, 1.10 to 1.15 with 2)", least=1, power=True)] = 4
    matrix_panels: Annotated[int, Figure(
        "panels", "that are packed together for registers that hold whole tiles (788 x 768 x 3072 "
        "of bf16 on a Xeon: 935 GFLOP/s with 4, 902 with 2, 875 with all)", least=1)] = 4
    matrix_columns: Annotated[int, Figure(
        "columns", "of a factor in panels in one point of the parallel space, from which on rows "
        "are packed for them, too (a Xeon, of packed oneDNN's rate, packed and as they lie, "
        "weights that come from memory: 256 rows of 768 x 768 1.21 and 1.31, 768 x 1536 1.07 and "
        "1.09, 512 of 1024 x 1024 1.00 and 1.05, 256 of 768 x 3072 0.94 and 0.87)")] = 2048
    matrix_rows: Annotated[int, Figure(
        "rows", "from which on a factor is packed for registers that hold whole tiles")] = 8
    matrix_room: Annotated[float, Figure(
        "of the second-level cache", "that a block of rows has which registers of whole tiles "
        "multiply as they are, beside the panels that pass (of bf16 in panels on a Xeon, of the "
        "time with all of it: 1024 x 1024 x 1024 0.90, 1024 x 2048 x 2048 0.85, 788 x 3072 x 768 "
        "0.91, 512 x 4096 x 4096 0.95; a quarter 512 x 4096 x 4096 1.1)", most=4)] = 0.5
    staying_rows: Annotated[int, Figure(
        "bytes", "of the rows of a tile, up to which they stay where panels pass by (bf16 by AMX "
        "on a Granite Rapids, of the rate of rows that pass: 48 KiB, 788 x 768 x 768, 1.19; 64, "
        "512 x 1024 x 1024, 1.12; 80, 256 x 1280 x 1280, 0.99; 192, 256 x 3072 x 768, 0.94)"
        )] = 1 << 16
    passing_room: Annotated[float, Figure(
        "of the second-level cache", "that the panels have which pass by rows, before the next "
        "ones do (788 x 768 x 3072 of bf16 there, GFLOP/s: 1140 with 0.38, 1072 with 0.56, 917 "
        "with 0.75; 1019 where rows pass)", most=4)] = 0.3
    cut_depth: Annotated[int, Figure(
        "terms", "of sums of factors cut into parts that are added before any is put aside",
        least=32, most=1 << 16)] = 1024
    cut_columns: Annotated[int, Figure(
        "columns", "of all products of some rows from which on these are cut into parts apart from "
        "the products: parts are 12 bytes of a number to be written and read, about 1 ns of a "
        "core, in which it multiplies a number with 150 others")] = 512
    cut_room: Annotated[float, Figure(
        "of the second-level cache", "that a block of rows cut into parts has, which meets one "
        "panel after the other", most=4)] = 0.6

#: 1.37 G/s of vdpbf16ps in registers of 512 bits, and 5.55 of fused multiplications. Products:
#: bench/results/xeon_products.txt, those of bf16 by AMX.
_AMX = {
    "core_bytes": 2 << 20,
    "pairs_time": 4.0, "own_products": (190, 140, 95), "own_panels": (130, 140, 104),
    "own_pairs": (120, 112, 112), "own_pair_panels": (150, 136, 120),
    "own_split": (1, 60, 140), "own_split_panels": (1, 100, 160), "crowded_library": 72,
    # bench/results/xeon_pixels.txt
    "own_pixels": (150, 110, 100), "own_pair_pixels": (400, 120, 110),
    # bench/results/xeon_attention.txt
    "own_attention": 123, "own_pair_attention": 130,
    "causal_rows": (128, 64), "attention_blocks": (1, 64),
}  # fmt: skip

#: Its vectors of 512 bits go through 256 bits of multipliers, and a scalar in each lane takes as
#: long as a multiplication: of frozen 1x1 convolutions of ResNet-50 (`bench.convolutions`), 6 x
#: 4 and 4 x 4 vectors took 0.97, 8 x 3 took 0.98, 9 x 3 took 0.99, 8 x 2 and 14 x 2 took 1.03.
#: Products: bench/results/zen4_products.txt, zen4_products_bf16.txt.
_ZEN4 = {
    "tile_times": (12, 12, 6), "aliasing_rows": 8, "strided": 16, "own_products": (160, 160, 118),
    "own_panels": (130, 110, 103), "own_pairs": (200, 150, 105),
    "own_pair_panels": (150, 120, 104),
    # bench/results/zen4_pixels.txt
    "own_pixels": (130, 120, 115), "own_pair_pixels": (350, 120, 107),
    # bench/results/zen4_attention.txt
    "own_attention": 116, "own_pair_attention": 200, "attention_blocks": (64, 64),
    # bench/results/convolutions.txt
    "own_pair_windows": (103, 92),
}

#: What is not usual on a processor, by LLVM's name for it.
OF_CHIPS: Mapping[str, Mapping[str, Any]] = {
    "znver4": _ZEN4,
    # Blocks of rows of 1 MiB, twice its second-level cache, are multiplied as fast as smaller ones
    # or faster. Products and attention: bench/results/zen3_products.txt.
    # Two terms at a time have 0.95 to 0.96 of the rate of four where the core's other thread is at
    # work, and the same where it isn't.
    "znver3": {
        "unrolled_terms": 4,
        "own_products": (130, 115, 106), "own_panels": (150, 150, 110),
        # bench/results/zen3_pixels.txt
        "own_pixels": (130, 118, 115),
        "own_attention": 112, "attention_blocks": (1, 64), "own_walks": (115, 110),
    },
    # Not measured: only that ATen reaches 0.41 of the limit there, less than on a Zen 4.
    "znver5": {
        name: _ZEN4[name]
        for name in ("own_products", "own_panels", "own_pairs", "own_pair_panels", "own_pixels",
                     "own_pair_pixels", "own_attention", "own_pair_attention")
    },
    "emeraldrapids": _AMX,
    "sapphirerapids": _AMX,
}  # fmt: skip
#: Whose figures a processor has that has no row there, by an instruction set: under a hypervisor
#: LLVM may take it for one that has not even that set (a Granite Rapids for a Rocket Lake).
OF_SETS: Mapping[str, Mapping[str, Any]] = {"amx-bf16": _AMX}


def unusual_figures(chip: str, sets: Iterable[str]) -> Mapping[str, Any]:
    """What is not usual on a processor of LLVM's name `chip` with these instruction sets; nothing
    of one that is not known."""
    if chip in OF_CHIPS:
        return OF_CHIPS[chip]
    return next((OF_SETS[name] for name in sets if name in OF_SETS), {})


__all__ = ["OF_CHIPS", "OF_SETS", "CpuFigures", "unusual_figures"]
