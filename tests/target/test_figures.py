"""Figures of targets: what a record refuses, and that a text with another one decides otherwise."""

from __future__ import annotations

import functools

import attrs
import pytest

import irc
from irc.pipeline import stages
from irc.target import Target
from irc.target.cpu import INSTRUCTION_SETS, TargetFeatures
from irc.target.cpu_figures import OF_CHIPS, OF_SETS, unusual_figures
from irc.target.figures import evolve, figures_of
from irc.target.gpu import GpuFeatures
from tests.corpus.decisions import lowered
from tests.passes.loop.texts import parsed, ran
from tests.target.figure_texts import TEXTS

#: Programs on the loop level beside those of tests/corpus: arguments, body, results.
#: For each figure another value, and a program that it makes a difference to.
CPU = {
    "near_bytes": ("0", "batch_norm_in_training"),
    "scratch_bytes": ("0", "softmax_of_columns"),
    "core_bytes": ("0", "attention"),
    "division": ("1", "layer_norm"),
    "function": ("1", "chains_that_are_read_apart"),
    "access": ("8", "batch_norm_in_training"),
    "byte": ("0", "softmax_of_columns"),
    "launch": ("0", "a_loop_of_slices"),
    "copied_bytes": ("0", "updates_parts"),
    "serial": ("0", "pools"),
    "stack_bytes": ("0", "attention"),
    "gather": ("6.0", "gathers_along_a_dimension"),
    "strided": ("1", "slices_and_steps"),
    "scatter": ("1", "attention"),
    "walked": ("0", "places of maxima"),
    "aliased": ("0", "images at places of tables"),
    "scalar": ("2.0", "gathers_and_scatters"),
    "horizontal": ("1.0", "pools"),
    "map_block": ("4096", "an_optimizer_step"),
    "transposed_tiles": ("1", "sum_with_its_transpose"),
    "tile_row": ("16", "sum_with_its_transpose"),
    "tile_blocks": ("[1024, 512, 128, 64, 32]", "sum_with_its_transpose"),
    "paired_bits": ("0", "an_optimizer_step"),
    "heavy_body": ("0", "an_optimizer_step"),
    "light_body": ("0", "group_norm"),
    "long_row": ("0", "few_long_rows"),
    "tiled_products": ("1000000", "a small product"),
    "tiled_sums": ("5000", "a small product"),
    "tiled_work": ("1000000", "a small product"),
    "tiled_depth": ("256", "a deep product"),
    "sums_in_flight": ("100", "a small product"),
    "tile_times": ("[1, 100, 1]", "a small product"),
    "tile_slack": ("0.5", "a small product"),
    "most_vectors": ("1", "a small product"),
    "thread_blocks": ("8", "a product of many rows"),
    "near_columns": ("0", "a small product"),
    "few_rows": ("0", "a product of some rows"),
    "packed_element": ("100", "a small product"),
    "read_element": ("100", "a small product"),
    "uneven_points": ("0", "a small product"),
    "unrolled_terms": ("4", "a small product"),
    "heavy_rest": ("1", "a product without signs"),
    "packed_skew": ("32", "a deep and narrow product"),
    "aliasing_bytes": ("65536", "a deep and narrow product"),
    "aliasing_rows": ("64", "a deep and narrow product"),
    "unpacked_rows": ("1", "a product of what lies along it"),
    "matrix_rows": ("17", "a product of bf16"),
    "matrix_columns": ("64", "a product of deep panels"),
    "staying_rows": ("0", "a product of panels"),
    "passing_room": ("0.001", "a product of panels"),
    "cut_depth": ("64", "a product of parts"),
    "cut_room": ("0.01", "a product of parts"),
    "matrix_panels": ("2", "a deep product of bf16"),
    "matrix_room": ("0.001", "a product of deep panels"),
    "fetched_panels": ("4", "a product of its sine"),
    "ahead_terms": ("4", "a product of many rows"),
    "least_ahead_terms": ("16", "a product of many rows"),
    "pairs_time": ("3.0", "a product of bf16"),
    "unpacked_columns": ("2", "a product of what lies along it"),
}
GPU = {
    "vector_points": ("1", "softmax_of_columns"),
    "pointwise_block": ("512", "split_symbolic_axes"),
    "pointwise_bytes": ("64", "split_symbolic_axes"),
    "least_block": ("128", "an_optimizer_step"),
    "pointwise_warps": ("0", "a_loop_of_slices"),
    "transpose_blocks": ("[16, 8]", "sum_with_its_transpose"),
    "transpose_least": ("10", "a window's weights"),
    "transpose_points": ("512", "a window's weights"),
    "transpose_warp": ("128", "a window's weights"),
    "line_blocks": ("[512, 256, 128]", "lines"),
    "line_spare": ("1.25", "lines with little to spare"),
    "line_values": ("3", "lines"),
    "row_bytes": ("32", "many short rows"),
    "thread_points": ("16", "one_long_sum"),
    "ahead_rows": ("9", "long rows that are stored"),
    "ahead_stages": ("1", "long rows that are stored"),
    "spare_bytes": ("150000", "long rows that are stored"),
    "row_warps": ("4", "rows_of_rows"),
    "held_row": ("8192", "sums"),
    "persistent_points": ("65536", "few_long_rows"),
    "short_rows": ("512", "symbolic_images"),
    "short_group": ("8", "many odd rows"),
    "program_bytes": ("4096", "many short rows"),
    "started_programs": ("8192", "many short rows"),
    "sorted_points": ("32", "sorted rows"),
    "row_spread": ("2", "chains_that_are_read_apart"),
    "shared_spread": ("1", "short rows with weights"),
    "alone_spread": ("1", "short rows"),
    "spread_points": ("2", "batch_norm_in_training"),
    "early_points": ("32", "rows with weights"),
    "early_bytes": ("0", "rows with weights"),
    "walked_row": ("8192", "long rows of three"),
    "walked_tile": ("2048", "long rows of three"),
    "long_walked_tile": ("4096", "many longer rows"),
    "symbolic_walked_tile": ("1024", "symbolic_images"),
    "column_block": ("16", "few_long_columns"),
    "column_tile": ("1024", "split_symbolic_axes"),
    "column_warps": ("1536", "split_symbolic_axes"),
    "several_abreast": ("4", "columns of two arrays"),
    "wide_columns": ("128", "many columns"),
    "wide_programs": ("2000", "many columns"),
    "wide_warps": ("8", "many columns"),
    "odd_columns": ("64", "many odd columns"),
    "odd_warps": ("8", "many odd columns"),
    "held_column_points": ("0", "few_long_columns"),
    "held_column_thread": ("4", "few_long_columns"),
    "unrolled_points": ("8", "windows"),
    "unrolled_block": ("256", "windows"),
    "apart_block": ("128", "lines of windows"),
    "window_bytes": ("4", "lines of windows"),
    "kept_tile": ("1", "many scanned columns"),
    "kept_points": ("1", "scans"),
    "walked_kept_tile": ("4096", "scanned columns"),
    "walked_kept_warps": ("8", "scanned columns"),
    "online_tile": ("8192", "softmax of columns"),
    "online_abreast": ("4", "softmax of columns"),
    "column_parts": ("3", "softmax of held columns"),
    "least_part": ("128", "softmax of many short rows"),
    "short_group_points": ("64", "softmax of many short rows"),
    "norm_part": ("32", "norm of odd rows"),
    "part_warps": ("4", "softmax of many short rows"),
    "row_parts": ("2", "softmax of many short rows"),
    "scattered_block": ("512", "many scattered points"),
    "online_columns": ("32", "softmax of columns"),
    "online_points": ("4096", "softmax of short columns"),
    "online_row_tile": ("4096", "sums of powers"),
    "cached_row": ("1000000", "softmax of long rows"),
    "sector_bytes": ("16", "few_long_columns"),
    "processors": ("4096", "a product of f32"),
    "dot_flops": ("4", "a product"),
    "product_bytes": ("20000", "a product"),
    "step_latency": ("50.0", "a product of a weight"),
    "stored_bytes": ("100", "a product of a weight"),
    "most_stages": ("2", "a product of a weight"),
    "odd_stores": ("[100, 100, 100]", "a product of odd rows"),
    "lasting_stores": ("20.0", "a product with odd rows"),
    "odd_pieces": ("1000000000", "a product of odd rows"),
    "odd_latency": ("100.0", "a product of odd rows"),
    "step_start": ("1.0", "a product of a weight"),
    "held_sums": ("16", "a product and its functions"),
    "scalar_flops": ("1000000000", "a product and its functions"),
    "stored_tile": ("200000", "a product of a weight"),
    "least_stages": ("8", "a product of a weight"),
    "deep_tile": ("0", "a product of small tiles"),
    "plain_flops": ("1", "a product of f32"),
    "exact_depth": ("512", "a product of f32"),
    "exact_side": ("8192", "a product of f32"),
    "cut_sums": ("16", "a product of f32"),
    "cut_points": ("100", "a product of f32"),
    "cut_registers": ("24", "a product of f32"),
    "cut_added": ("1", "a product of f32"),
    "cut_wait": ("3.0", "a product of few rows of f32"),
    "tile_bytes": ("1000", "a product"),
    "tile_start": ("100000.0", "a product"),
    "shared_bytes": ("60000", "a product"),
    "accumulators": ("8192", "a product"),
    "factor_tile": ("1", "a product of its sine"),
    "matrix_side": ("512", "a small product"),
    "narrow_side": ("8192", "a product of few rows"),
    "swapped_rows": ("4", "a product of few rows"),
    "step_bytes": ("64", "a product"),
    "plain_step": ("32", "a small product"),
    "grouped_rows": ("4", "a product"),
    "few_programs": ("2", "a product of few rows of a weight"),
    "few_depth": ("128", "a product of few rows of a weight"),
    "few_stages": ("4", "a product of few deep rows of a weight"),
    "apart_sums": ("64", "a product of 8 bits"),
    "added_sums": ("100", "a product of 8 bits"),
    "whole_rows": ("20", "checked rows"),
    "few_points": ("0", "reads_at_checked_places"),
    "instance_points": ("1000000000", "few_long_rows"),
    "crossed_points": ("1000000000", "rows that cross memory"),
    "narrow_bytes": ("8", "narrow rows"),
    "narrow_columns": ("16", "narrow rows"),
    "few_beside": ("100000", "rows with few sums"),
    "split_fills": ("1000", "few_long_columns"),
    "split_points": ("1000000", "few_long_columns"),
    "split_rows": ("32", "few_long_columns"),
    "split_row_points": ("2048", "one_long_sum"),
    "least_parts": ("1000", "one_long_sum"),
    "part_rows": ("21", "columns of two axes"),
    "long_column": ("8193", "long columns"),
    "column_results": ("32", "long columns"),
    "column_programs": ("2048", "long columns"),
    "column_points": ("512", "long columns"),
    "several_column_points": ("256", "columns of two arrays"),
    "opening_programs": ("0", "pools"),
    "opening_bytes": ("1000000000", "long columns"),
    "joined_warps": ("1", "joins"),
}
#: Time alone; images that are gathered (tests/passes/loop/test_inline_decisions.py); what is tuned
#: with its arguments in no cache (tests/tuning/test_problem.py); what the front end asks
#: (tests/frontend/test_joined_saves.py); who multiplies (tests/analysis/test_product_ways.py,
#: test_processor_ways.py, test_shared_reads.py, tests/passes/loop/test_expand_attention.py);
#: where memory is (tests/passes/host/test_plan_memory.py), and which columns are turned
#: (tests/codegen/triton/test_kernels.py); which rows are cut (tests/passes/loop/test_cut_rows.py),
#: and which are fetched (tests/passes/kernel/test_rows_ahead.py).
ELSEWHERE = {"femtoseconds", "alone", "cached_bytes", "joined_bytes", "joined_blocks",
             "joined_least", "library_share", "library_rates", "sure", "most_parts",
             "part_depth", "library_tile", "sure_pieces", "lone_bytes", "product_rows",
             "own_products", "own_panels", "own_split", "own_split_panels", "split_threads",
             "crowded_library",
             "own_pairs", "own_pair_panels", "own_pixels", "own_pair_pixels", "sure_products",
             "own_windows", "own_pair_windows", "many_taps", "most_taps", "most_jammed",
             "written_products", "most_terms", "product_latency", "sure_jams", "jam_start",
             "fetched_rows", "met_panels", "turned_reads", "turned_points", "own_attention",
             "own_pair_attention", "own_walks",
             "attention_bytes", "attention_blocks", "causal_rows",
             "causal_parts", "cut_columns"}  # fmt: skip
#: Those that another one switches on.
SWITCHED = dict.fromkeys(
    ("packed_element", "read_element", "uneven_points"), "avx2, threads = 3")
SWITCHED["thread_blocks"] = "avx2, threads = 13"
SWITCHED |= dict.fromkeys(
    ("matrix_rows", "matrix_panels", "matrix_columns", "matrix_room", "cut_depth", "cut_room",
     "staying_rows", "passing_room"),
    "avx512, sets = [{}]".format(", ".join(
        f'"{name}"' for name in (*TargetFeatures.avx512().sets, "amx-bf16", "amx-tile"))))
SWITCHED["pairs_time"] = SWITCHED["matrix_rows"].replace(
    ', "amx-bf16", "amx-tile"', ', "avx512bf16"')
SWITCHED["early_points"] = "sm_90, early_bytes = 0"
#: tests/frontend/test_streamed_on_cpu.py, tests/passes/loop/test_expand_streams.py
ELSEWHERE |= {"walk_rows", "walk_columns", "own_parts", "tiled_walk_rows", "tiled_walk_columns"}
ELSEWHERE |= {"library_plain", "library_side"}  # test_product_ways.py
#: tests/passes/kernel/test_streamed.py
ELSEWHERE |= {"stream_rows", "stream_columns", "stream_warps", "stream_stages",
              "stream_programs", "short_stream", "stream_part", "library_stream",
              "streamed_scores"}  # fmt: skip
SWITCHED["plain_flops"] = "sm_90, exact_depth = 1000"
CASES = [*((SWITCHED.get(f, "avx2"), f, *case) for f, case in CPU.items()),
         *((SWITCHED.get(f, "sm_90"), f, *case) for f, case in GPU.items())]  # fmt: skip


@functools.cache
def decided(target: str, name: str) -> str:
    """A program down to kernels."""
    if name in TEXTS:
        module = parsed(*TEXTS[name])
        ran(module, ",".join(stages(target)[s] for s in ("fuse-loops", "loop-to-kernel")), target)
    else:
        module, _ = lowered(name, "loop-to-kernel", target, values=False)
    del module.attributes["irc.target"]
    return irc.print_op(module)


@pytest.mark.parametrize(("target", "figure", "value", "program"), CASES)
def test_a_text_with_another_figure_decides_otherwise(
    target: str, figure: str, value: str, program: str
) -> None:
    other = decided(f"#irc.target<{target}, {figure} = {value}>", program)
    assert other != decided(f"#irc.target<{target}>", program)


def test_every_figure_decides_something() -> None:
    cpu, gpu = ({*figures_of(cls)} for cls in (TargetFeatures, GpuFeatures))
    assert cpu | gpu == {*CPU, *GPU, *ELSEWHERE} and cpu >= {*CPU} and gpu >= {*GPU}


@pytest.mark.parametrize(
    ("text", "message"),
    [("launch = -1", "launch is -1, not from 0 to"), ("map_block = 0", "block is 0, not from 1"),
     ("map_block = 1000", "map_block is 1000, not a power of two"),
     ("map_block = 2.0", "'map_block' is an integer"), ("gather = true", "'gather' is a number"),
     ("gather = -0.5", "gather is -0.5, not from 0"), ("gather = 2", ""),
     ("tile_blocks = [8, 8]", "tile_blocks is [8, 8], not 5 numbers"),
     ("tile_blocks = [8, 8, 8, 8, 9]", "tile_blocks is 9, not a power of two"),
     ("stack_bytes = 131073", "stack_bytes is 131073, not from 0 to 131072"),
     ("tile_blocks = 8", "'tile_blocks' is a list of integers")],
)  # fmt: skip
def test_what_no_processor_has(text: str, message: str) -> None:
    if not message:
        assert Target.named(f"#irc.target<avx2, {text}>").features.gather == 2.0
        return
    with pytest.raises(irc.UserError) as caught:
        Target.named(f"#irc.target<avx2, {text}>")
    assert message in str(caught.value)


def test_a_figure_is_of_one_record() -> None:
    """A text names fields of the processor and of the target alike."""
    for name in ("avx2", "sm_90"):
        target = Target.named(name)
        own, common = (
            {*figures_of(cls), *(f.name for f in attrs.fields(cls))} - {"unusual"}
            for cls in (type(target.processor), Target)
        )
        assert not own & common


def test_the_figures_of_a_processor_by_its_name_or_by_what_it_has() -> None:
    amx = ("amx-bf16", "amx-tile", "avx512f")
    rows = unusual_figures("emeraldrapids", amx)
    assert rows["own_split"][-1] > 100
    # A name that LLVM takes for what it is not, or that nobody has measured.
    assert unusual_figures("rocketlake", amx) == unusual_figures("graniterapids", amx) == rows
    assert unusual_figures("znver4", amx) == OF_CHIPS["znver4"]
    assert not unusual_figures("rocketlake", ("avx512f",))
    for row in (*OF_CHIPS.values(), *OF_SETS.values()):
        assert evolve(TargetFeatures.avx512(), **row) is not None
    assert set(OF_SETS) <= set(INSTRUCTION_SETS["x86_64"])
