"""Loop programs as gpu kernels: equal in irc's interpreter, in Triton's, and compiled for sm_90."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from case_registry import integer, random
from kernel_cases import CASES, TOLERANCE
from loop_programs import (
    layer_norm,
    layer_norm_backward,
    lone_reduce,
    pointwise,
    softmax,
    summed_powers_of,
    transpose_add,
)
from moving_cases import columns_of_parts, turned, weighted_columns
from programs import Case, Program, close, reduce, scan, tensor
from reduction_cases import columns_first
from row_cases import divided

from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.core import Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import symbol
from irc.passes.kernel.gpu.form import form_gpu_kernel
from irc.passes.kernel.gpu.schedule import changed, default_schedule


@pytest.fixture(scope="session")
def triton_results() -> dict[str, list[torch.Tensor]]:
    """Every case in Triton's interpreter, in one process."""
    jobs = {name: make().job() for name, make in CASES.items()}
    outputs = runtime.run_interpreted(list(jobs.values()))
    return dict(zip(jobs, outputs, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_kernel_has_the_programs_values(name: str) -> None:
    made = CASES[name]()
    for actual, expected in zip(made.interpreted(), made.expected, strict=True):
        close(actual, expected, TOLERANCE[name])


@pytest.mark.parametrize("name", CASES)
def test_triton_has_the_programs_values(
    name: str, triton_results: dict[str, list[torch.Tensor]]
) -> None:
    made = CASES[name]()
    outputs = triton_results[name][-len(made.expected) :]
    for actual, expected in zip(outputs, made.expected, strict=True):
        close(actual, expected, TOLERANCE[name])


FAST = ("gelu", "softmax_symbolic", "scatter_prod_f32")


@pytest.mark.parametrize(
    "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in CASES]
)
def test_kernel_compiles_for_sm_90(name: str) -> None:
    compiled = CASES[name]().compiled()
    assert ".target sm_90" in compiled["ptx"]
    assert compiled["cubin"][:4] == b"\x7fELF"
    assert compiled["local_memory_bytes"] == 0


def test_contiguous_pointwise_reads_without_division() -> None:
    text = str(CASES["gelu"]().kernel)
    assert "divsi" not in text and "remsi" not in text


@pytest.mark.parametrize(
    ("pitch", "points", "loads"), [(1008, 1003, 2), (1008, 1000, 1), (1003, 1003, 1)]
)
def test_rows_that_end_inside_a_group_are_read_in_two(pitch: int, points: int, loads: int) -> None:
    """Where memory promises groups of 8 elements that the bound splits, and only there."""
    func = form_gpu_kernel(softmax(511, points, T.bf16, (pitch, 1), (pitch, 1)).op, None, "k")
    assert emit_kernel(func).count("tl.load(") == loads
    assert emit_kernel(func).count("tl.store(") == loads
    if loads == 2:
        ptx = runtime.compile_for(
            emit_kernel(func), "k", runtime.signature_of(func), **runtime.launch_options(func)
        )["ptx"]
        assert "ld.global.v4.b32" in ptx and "st.global.v4.b32" in ptx


@pytest.mark.parametrize(("name", "backwards"), [("backwards", 1), ("of_moments", 0)])
def test_a_second_loop_begins_where_the_first_one_ends(name: str, backwards: int) -> None:
    """Unless a turn's number matters there."""
    func = CASES[f"second_loop_{name}"]().kernel
    loops = [op for op in func.walk() if op.name == "kernel.for"]
    turned = [op for op in loops if next(iter(op.block.ops)).name == "arith.subi"]
    assert len(loops) == 2 and turned == loops[1:] * backwards


@pytest.mark.parametrize(
    ("shape", "group"), [((16, 1003), 8), ((16, 1000), 1), ((15, 1003), 1), ((2000, 55), 4)]
)
def test_long_odd_rows_that_are_stored_are_covered_by_groups(
    shape: tuple[int, int], group: int
) -> None:
    """In arrays of whole groups; several short rows of a tile by smaller ones."""
    entries = default_schedule(softmax(*shape, T.bf16).op).entries.as_dict()
    assert entries["row_group"] == integer(group)
    program = lone_reduce(shape, [1], [reduce("max")], [tensor(shape[0])], T.bf16)
    assert default_schedule(program.op).entries.as_dict()["row_group"] == integer(1)


@pytest.mark.parametrize(
    ("shape", "tile"),
    [((4096, 8192), (64, 64, 16)), ((4096, 4096), (32, 128, 16)), ((4096, 64), (16, 256, 16)),
     ((1500, 8192), (32, 64, 8)), ((1024, 8192), (32, 64, 8)), ((768, 8192), None)],
)  # fmt: skip
def test_long_columns_are_walked_over_twice(
    shape: tuple[int, int], tile: tuple[int, int, int] | None
) -> None:
    """By tiles whose columns leave nearly each processor one, of short ones two, eight in a
    turn."""
    points, columns = shape
    program = softmax(columns, points, T.bf16, (1, columns), (1, columns))
    entries = default_schedule(program.op).entries.as_dict()
    found = tuple(entries[k].value for k in ("x_block", "r_block", "num_warps"))
    assert (found if entries["online"].value else None) == tile
    assert tile is None or entries["abreast"].value == 8


@pytest.mark.parametrize(
    ("shape", "turned", "tile"),
    [((768, 8192), False, (32, 128, 8, 8)), ((768, 8192), True, (32, 128, 16, 8)),
     ((768, 2048), True, (16, 128, 8, 8)), ((512, 8192), True, (32, 128, 8, 4)),
     ((1024, 8192), True, (32, 256, 16, 4)), ((512, 8192), False, None),
     ((200, 8192), False, None), ((64, 8192), True, None)],
)  # fmt: skip
def test_columns_are_held_by_parts(
    shape: tuple[int, int], turned: bool, tile: tuple[int, int, int, int] | None
) -> None:
    """Where parts leave fewer lanes outside, and where rows are turned; without any loop."""
    points, columns = shape
    read = (points, 1) if turned else (1, columns)
    program = softmax(columns, points, T.bf16, read, (1, columns))
    entries = default_schedule(program.op).entries.as_dict()
    found = tuple(entries[k].value for k in ("x_block", "r_block", "num_warps", "abreast"))
    assert (None if entries["persistent"].value else found) == tile
    source = emit_kernel(form_gpu_kernel(program.op, None, "k"))
    parts = 1 if tile is None else -(-points // tile[1])
    assert " in range(" not in source and source.count("tl.load(") == parts


@pytest.mark.parametrize(
    ("shape", "tile"),
    [((32768, 197), (8, 32, 2, 8)), ((32768, 131), (8, 32, 2, 4)), ((16384, 333), (4, 64, 2, 8)),
     ((8192, 1001), (2, 128, 2, 8)), ((4096, 2047), (1, 256, 2, 8)), ((8192, 768), (2, 128, 2, 1)),
     ((65536, 96), (16, 32, 4, 1)), ((8192, 1024), None), ((1024, 768), None),
     ((16384, 252), None), ((2048, 4001), None)],
)  # fmt: skip
def test_short_rows_are_held_by_parts(
    shape: tuple[int, int], tile: tuple[int, int, int, int] | None
) -> None:
    """Of which the first and the last ask which lanes are inside, where there are many rows, of no
    power of two."""
    program = softmax(*shape, T.bf16)
    entries = default_schedule(program.op).entries.as_dict()
    found = tuple(entries[k].value for k in ("x_block", "r_block", "num_warps", "row_group"))
    assert (found if entries["abreast"].value > 1 else None) == tile
    source = emit_kernel(form_gpu_kernel(program.op, None, "k"))
    masked = source.count("tl.load(") - source.count("other=0)")
    assert " in range(" not in source and (tile is None or masked > 1)


@pytest.mark.parametrize(
    ("shape", "element", "tile"),
    [((8192, 765), T.bf16, (4, 64, 2, 8, 16)), ((8192, 1001), T.bf16, (4, 64, 2, 8, 16)),
     ((32768, 197), T.bf16, (8, 32, 2, 8, 8)), ((4096, 2047), T.bf16, (1, 256, 2, 8, 16)),
     ((8192, 768), T.bf16, (2, 128, 2, 1, 8)), ((8192, 1000), T.bf16, None),
     ((8192, 1024), T.bf16, None), ((8192, 765), T.f32, None), ((64, 765), T.bf16, None)],
)  # fmt: skip
def test_norms_of_short_rows_are_held_by_parts(
    shape: tuple[int, int], element: T.Type, tile: tuple[int, ...] | None
) -> None:
    """Those of 16 bits, of which little would be outside of parts that isn't of whole rows."""
    program = layer_norm(*shape, element)
    entries = default_schedule(program.op).entries.as_dict()
    keys = ("x_block", "r_block", "num_warps", "row_group", "abreast")
    found = tuple(entries[k].value for k in keys)
    assert (found if found[-1] > 1 else None) == tile
    source = emit_kernel(form_gpu_kernel(program.op, None, "k"))
    assert " in range(" not in source and source.count("tl.reduce(") == 2


@pytest.mark.parametrize(("points", "parts"), [(768, 8), (765, 1)])
def test_gradients_of_norms_are_held_by_parts_of_whole_groups(points: int, parts: int) -> None:
    """With two arrays, parts of rows that begin anywhere ask as much as whole ones."""
    program = layer_norm_backward(8192, points, T.bf16)
    assert default_schedule(program.op).entries.get("abreast").value == parts


def test_maxima_of_parts_are_of_two_lanes_at_once() -> None:
    """Of 16 bits, as they were read: by the machine's instruction on two."""
    func = form_gpu_kernel(softmax(8192, 768, T.bf16).op, None, "k")
    source = emit_kernel(func)
    assert source.count(" = irc_maximum_packed_bf16(") == 5
    ptx = runtime.compile_for(source, "k", runtime.signature_of(func),
                              **runtime.launch_options(func))["ptx"]  # fmt: skip
    assert ptx.count("max.NaN.bf16x2") >= 10


def test_program_instances_that_walk_over_rows_add_what_they_share_to_pointers() -> None:
    """Lanes are then a few constants beside that, in loops over tiles they aren't."""
    source = emit_kernel(form_gpu_kernel(softmax(2048, 30523, T.bf16).op, None, "k"))
    assert re.search(r"tl\.load\(p0 \+ v\d+ \+ v\d+", source)
    walked = softmax(8192, 4096, T.bf16, (1, 8192), (1, 8192))
    source = emit_kernel(form_gpu_kernel(walked.op, None, "k"))
    assert not re.search(r"tl\.load\(p0 \+ v\d+ \+ v\d+", source)


@pytest.mark.parametrize(("abreast", "masked"), [(1, False), (4, True)])
def test_turns_of_several_tiles_end_inside(abreast: int, masked: bool) -> None:
    """Rows of a number of whole tiles that isn't known may be no whole turns."""
    program = softmax(9, symbol("s1") * 32)
    schedule = changed(default_schedule(program.op), r_block=A.IntegerAttr(32),
                       abreast=A.IntegerAttr(abreast))  # fmt: skip
    source = emit_kernel(form_gpu_kernel(program.op, schedule, "k"))
    assert source.count("tl.load") == 3 * abreast
    assert source.count("mask=") == 4 * abreast * masked


@pytest.mark.parametrize(("points", "online"), [(30523, True), (8192, False)])
def test_long_rows_that_are_only_combined_are_walked_over_once(points: int, online: bool) -> None:
    """By groups that memory has, in a loop that asks for no lane whether it is inside."""
    program = summed_powers_of(64, points, T.bf16)
    entries = default_schedule(program.op).entries.as_dict()
    assert entries["online"].value is online and entries["peeled"].value is online
    func = form_gpu_kernel(program.op, None, "k")
    source = emit_kernel(func)
    assert source.count(" in range(") == online
    if online:
        (walk,) = [op for op in func.walk() if op.name == "kernel.for"]
        assert "arith.cmpi" not in {op.name for op in walk.block.ops}
        ptx = runtime.compile_for(source, "k", runtime.signature_of(func),
                                  **runtime.launch_options(func))["ptx"]  # fmt: skip
        assert "ld.global.v2.b32" in ptx and "ld.global.b16" not in ptx  # 4 elements a thread


@pytest.mark.parametrize(
    ("shape", "element", "tile"),
    [((64, 32768), T.bf16, (8192, 32)), ((64, 30523), T.bf16, (32768, 32)),
     ((64, 30523), T.f32, (32768, 16)), ((64, 16384), T.bf16, (16384, 16))],
)  # fmt: skip
def test_long_rows_are_held_or_walked_over(
    shape: tuple[int, int], element: T.Type, tile: tuple[int, int]
) -> None:
    entries = default_schedule(softmax(*shape, element).op).entries.as_dict()
    assert tuple(int(entries[k].value) for k in ("r_block", "num_warps")) == tile


def test_long_columns_have_wide_tiles() -> None:
    """Wider ones with more warps where steps are no multiple of what a thread moves."""
    found = []
    for columns in (65536, 65537):
        program = lone_reduce([4096, columns], [0], [reduce("sum")], [tensor(columns)])
        entries = default_schedule(program.op).entries.as_dict()
        found.append([int(entries[k].value) for k in ("x_block", "r_block", "num_warps")])
    assert found == [[32, 8, 1], [128, 64, 16]]


@pytest.mark.parametrize(
    ("parts", "columns", "element", "tile"),
    [(32, 768, T.f32, (32, 8, 4)), (32, 768, T.bf16, (32, 64, 2)),
     (32, 3072, T.bf16, (32, 64, 2)), (32, 161, T.f32, (32, 64, 16)),
     (1024, 16, T.f32, (32, 64, 8))],
)  # fmt: skip
def test_what_each_row_has_is_no_row_of_its_own(
    parts: int, columns: int, element: T.Type, tile: tuple[int, int, int]
) -> None:
    """Numbers for the rows that are summed up are few beside the columns, and the same for all of
    a tile of columns, if these fill half of one."""
    entries = default_schedule(weighted_columns(parts, 256, columns, element).op).entries.as_dict()
    assert tuple(entries[k].value for k in ("x_block", "r_block", "num_warps")) == tile
    assert entries["tile_axes"].values == (() if columns == 16 else (1,))


def test_sums_of_16_bits_take_tiles_of_columns_with_half_the_warps() -> None:
    found = []
    for element in (T.f32, T.bf16):
        program = columns_of_parts(32, 256, 768, element=element)
        entries = default_schedule(program.op).entries.as_dict()
        found.append((entries["num_warps"].value, entries["tile_axes"].values))
    assert found == [(4, ()), (2, (1,))]


def test_sums_are_combined_at_the_places_themselves() -> None:
    """A sum's hardware atomic has a mask; compare-and-swap needs a place that exists."""
    assert "tl.where" not in CASES["scatter_sum_f32"]().source
    assert "tl.where" in CASES["scatter_prod_f32"]().source


def test_transposed_reads_get_square_tiles() -> None:
    schedule = default_schedule(transpose_add(64, 64).op)
    assert schedule.entries.get("tile_axes").values == (0, 1)


@pytest.mark.parametrize(
    "shape, back, axes, collapse, edges",
    [
        ([512, 512, 3, 3], False, (3, 1), (2, 3), (16, 64)),
        ([64, 64, 3, 3], False, (3, 1), (2, 3), (16, 32)),
        ([512, 512, 3, 3], True, (1, 3), (2, 3), (64, 16)),
        ([768, 384, 2, 2], False, (3, 1), (2, 3), (4, 256)),
        ([64, 64, 56, 56], False, (3, 1), (2, 3), (64, 64)),
        ([4, 64, 14, 14], False, (3, 1), (2, 3), (32, 32)),
        ([64, 3, 224, 224], False, None, (), ()),
    ],
)
def test_edges_of_transposed_tiles_span_axes_that_lie_in_each_other(
    shape: list[int], back: bool, axes: Any, collapse: Any, edges: Any
) -> None:
    n, c, h, w = shape
    plain, last = [c * h * w, h * w, w, 1], [c * h * w, 1, w * c, c]
    program = turned(shape, *((last, plain) if back else (plain, last)))
    entries = default_schedule(program.op).entries.as_dict()
    if axes is None:
        assert "collapse" not in entries
        return
    assert (entries["tile_axes"].values, entries["collapse"].values) == (axes, collapse)
    assert (entries["y_block"].value, entries["x_block"].value) == edges


def test_an_edge_spans_no_axes_that_lie_apart() -> None:
    """Rows of an image with one more column between them are no run."""
    n, c, h, w = 2, 64, 20, 30
    program = turned([n, c, h, w], [c * h * 31, h * 31, 31, 1], [c * h * w, 1, w * c, c])
    entries = default_schedule(program.op).entries.as_dict()
    assert (entries["tile_axes"].values, entries["collapse"].values) == ((3, 1), ())


@pytest.mark.parametrize("collapse", [[1, 3], [4, 3], [2, 1, 1, 3]])
def test_edges_that_are_no_two_of_different_axes(collapse: list[int]) -> None:
    program = turned([5, 70, 3, 3], [630, 9, 3, 1], [630, 1, 210, 70])
    schedule = changed(default_schedule(program.op), collapse=A.DenseIntsAttr(collapse))
    with pytest.raises(InvalidIR, match="not two of different axes among 4"):
        form_gpu_kernel(program.op, schedule)


@pytest.mark.parametrize(
    "parts, columns, axes",
    [(16, 30523, (1,)), (16, 30528, ()), (1, 30523, ()), (16, 30524, ()), (16, 33, ()),
     (symbol("s0"), 30523, (1,)), (16, symbol("s0"), ())],
)  # fmt: skip
def test_tiles_of_columns_split_nothing_that_a_thread_moves(
    parts: Any, columns: Any, axes: tuple[int, ...]
) -> None:
    entries = default_schedule(columns_of_parts(parts, 512, columns).op).entries.as_dict()
    assert entries["tile_axes"].values == axes and ("order" in entries) == (not axes)


def test_the_few_columns_above_an_edge_are_read_one_by_one_in_a_loop() -> None:
    """What waits for another read would not be read ahead of the loop's turns."""
    made = Case(columns_of_parts(3, 300, 1019, 1024), [_padded(random(3, 300, 1019), 1024)],
                r_block=integer(32))  # fmt: skip
    (loop_,) = [op for op in made.kernel.walk() if op.name == "kernel.for"]
    reads = [op for op in loop_.walk() if op.name == "kernel.gather"]
    assert len(reads) == 1 + 1019 % 4 and all(op.other is None for op in reads)
    whole, *few = [op.results[0].type.shape for op in reads]
    assert len(whole) == 2 and {len(shape) for shape in few} == {1}
    close(made.interpreted()[0], made.expected[0], 1e-5)


def _padded(x: torch.Tensor, columns: int) -> torch.Tensor:
    room = torch.full((*x.shape[:-1], columns), math.nan)
    room[..., : x.shape[-1]] = x
    return room[..., : x.shape[-1]]


def test_index_bits_follow_the_sizes() -> None:
    assert form_gpu_kernel(pointwise(64, 64).op).index_bits == 32
    assert form_gpu_kernel(pointwise(1 << 16, 1 << 16).op).index_bits == 64
    assert form_gpu_kernel(pointwise(symbol("s0"), 8).op).index_bits == 64


def test_persistent_tile_too_small_is_refused() -> None:
    op = softmax(4, 100).op
    schedule = changed(default_schedule(op), r_block=integer(32), persistent=A.TRUE)
    with pytest.raises(InvalidIR, match="can't hold 100 points"):
        form_gpu_kernel(op, schedule)


@pytest.mark.parametrize("name", ["softmax", "scatter_max_f32", "transpose_add_symbolic"])
def test_passes_form_launches_with_the_same_values(name: str) -> None:
    from irc.interp.core import run
    from irc.ir.passes import PassManager

    CASES[name].cache_clear()
    made = CASES[name]()
    PassManager.parse("schedule{target=gpu},form-kernels").run(made.program.module)
    CASES[name].cache_clear()
    text = str(made.program.module)
    assert "host.launch" in text and "loop.compute" not in text
    for actual, expected in zip(run(made.program.module, *made.args), made.expected, strict=True):
        close(actual, expected, TOLERANCE[name])


def test_a_row_is_divided_exactly_before_a_step() -> None:
    """49 times the inverse of 49 is less than 1, whose floor is 0."""
    schedule = {"x_block": integer(32), "y_block": integer(32),
                "collapse": A.DenseIntsAttr(()), "tile_axes": A.DenseIntsAttr([0, 1])}  # fmt: skip
    bottoms = torch.arange(1.0, 65.0)
    tops = (bottoms[:, None] * torch.arange(1.0, 33.0)).contiguous()
    steps = Case(divided(64, 32, True), [tops, bottoms], **schedule)
    smooth = Case(divided(64, 32, False), [tops, bottoms], **schedule)
    assert not torch.equal(smooth.interpreted()[0], smooth.expected[0])
    assert torch.equal(steps.interpreted()[0], steps.expected[0])
    assert steps.source.count("div_rn") == smooth.source.count("div_rn") == 1


def test_what_leaves_a_loop_of_no_turns_is_not_read() -> None:
    """Reads at the same place in each turn move out of the loop; there may be no such place."""
    size = symbol("s0")
    program = Program(tensor(size, 40), tensor(size))

    def fill(body: Any, axes: Any) -> list[Value]:
        row = body.read(program.args[0], [0, axes[0]])
        first, own = body.read(program.args[1], [0]), body.read(program.args[1], axes[1:])
        return [body.op("arith.addf", body.op("arith.mulf", row, first), own)]

    op = program.compute([40, size], [reduce("sum")], [tensor(40)], fill, red=[1])
    func = form_gpu_kernel(program.finish(op).op, None, "k")
    arguments = [random(0, 40), random(0), torch.ones(40)]
    job = runtime.Job.of(func, emit_kernel(func), arguments, {"s0": 0})
    ((*_, found),) = runtime.run_interpreted([job])
    assert torch.equal(found, torch.zeros(40))


@pytest.mark.parametrize("target", ["triton", "llvm"])
def test_a_scan_read_elsewhere_is_grouped_on_a_cpu_only(target: str) -> None:
    from irc.ir.passes import PassContext, PassManager

    program = Program(tensor(64, 40))
    x = program.args[0]
    sums = program.compute(
        [64, 40], [scan("sum", T.f32)], [tensor(64, 40)], lambda b, i: [b.read(x, i)], red=[1],
        kind="scan",
    ).results[0]  # fmt: skip
    turned = program.compute(
        [64, 40], [loop.MAP], [tensor(64, 40)],
        lambda b, i: [b.op("math.absf", b.read(sums, [i[0], i[1] * -1 + 39]))],
    )  # fmt: skip
    module = program.finish(turned).module
    PassManager.parse("group-computes").run(module, PassContext(target=target))
    groups = [op for op in module.walk() if isinstance(op, loop.GroupOp)]
    assert len(groups) == (target == "llvm")
    if target == "triton":
        PassManager.parse("schedule{target=gpu},form-kernels").run(module)


def test_strided_sums_take_tiles_of_columns() -> None:
    """Also beside a vector along the sum; the fewer program instances, the more warps."""
    program = Program(tensor(8192, 768), tensor(8192))

    def fill(body: Any, axes: Any) -> list[Value]:
        return [body.op("arith.mulf", body.read(program.args[0], axes),
                        body.read(program.args[1], axes[:1]))]  # fmt: skip

    op = program.compute([8192, 768], [reduce("sum")], [tensor(768)], fill, red=[0])
    entries = default_schedule(program.finish(op).op).entries.as_dict()
    assert [entries[k].value for k in ("x_block", "r_block", "num_warps")] == [32, 64, 16]


@pytest.mark.parametrize(
    ("points", "element", "tile"),
    [
        (64, T.f32, [16, 64, 2]),
        (1024, T.f32, [1, 1024, 2]),
        (1024, T.bf16, [2, 1024, 2]),
        (32768, T.bf16, [1, 8192, 32]),
        (32768, T.f32, [1, 32768, 16]),
        (65536, T.f32, [1, 8192, 32]),
        (symbol("s0"), T.f32, [1, 2048, 16]),
    ],
)
def test_a_thread_has_64_bytes_of_a_row(points: Any, element: Any, tile: list[int]) -> None:
    """Two rows of 2 KiB each, as a program of one would end before the next one begins."""
    entries = default_schedule(softmax(1 << 17, points, element).op).entries.as_dict()
    assert [entries[k].value for k in ("x_block", "r_block", "num_warps")] == tile
    assert entries["persistent"].value == (tile[1] == points)


@pytest.mark.parametrize(
    ("points", "element", "tile"),
    [
        (512, T.f32, [8, 512, 4]),
        (2048, T.f32, [8, 2048, 4]),
        (4096, T.f32, [64, 32, 16]),
        (4096, T.bf16, [64, 64, 16]),
    ],
)
def test_columns_that_are_stored_too(points: int, element: Any, tile: list[int]) -> None:
    """In registers where a row of the tile then still fills 32 bytes, else walked over."""
    rows = 8192
    across = [1, rows]
    program = softmax(rows, points, element, across, across)
    entries = default_schedule(program.op).entries.as_dict()
    assert [entries[k].value for k in ("x_block", "r_block", "num_warps")] == tile
    assert entries["persistent"].value == (tile[1] == points)


def test_program_instances_follow_memory() -> None:
    entries = default_schedule(columns_first(33, 50, 3).op).entries.as_dict()
    assert list(entries["order"].values) == [0, 2, 1]
    for op in (pointwise(33, 50).op, pointwise(1, 50).op):
        assert default_schedule(op).entries.get("order").values == (0, 1)


@pytest.mark.parametrize(("target", "count"), [("llvm", 1), ("triton", 0)])
def test_a_reduction_in_a_gpu_group_has_a_program_instance_for_each_result(
    target: str, count: int
) -> None:
    """What reads a sum turned would share one of its two axes; the other would be a loop."""
    from irc.ir.passes import PassContext, PassManager

    program = Program(tensor(64, 40, 24))
    x = program.args[0]
    total = program.compute(
        [64, 40, 24], [reduce("sum")], [tensor(64, 40)], lambda b, i: [b.read(x, i)], red=[2]
    ).results[0]
    turned = program.compute(
        [64, 40], [loop.MAP], [tensor(64, 40)],
        lambda b, i: [b.op("math.absf", b.read(total, [i[0], i[1] * -1 + 39]))],
    )  # fmt: skip
    module = program.finish(turned).module
    PassManager.parse("group-computes").run(module, PassContext(target=target))
    assert len([op for op in module.walk() if isinstance(op, loop.GroupOp)]) == count


@pytest.mark.parametrize(("columns", "told"), [(32768, True), (30523, False), (4096, False)])
def test_walked_rows_tell_the_cache_what_is_read_again(columns: int, told: bool) -> None:
    """Long rows of 16 bits that begin at whole groups: loops keep, but the last one."""
    source = emit_kernel(form_gpu_kernel(softmax(4, columns, T.bf16).op, name="k"))
    _, *loops = source.split("    for ")
    assert len(loops) == (3 if told else 0)
    assert ["evict_last" in text for text in loops] == [True, True, False][: len(loops)]
    assert ["evict_first" in text for text in loops] == [False, False, True][: len(loops)]
