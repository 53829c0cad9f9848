"""Schedules of a gpu for kernels that read elements apart, at positions that data says, or windows
that lie side by side."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import torch

import irc
from irc.passes.kernel.gpu import schedule
from irc.passes.kernel.gpu.plan import plan_for_gpu
from irc.passes.kernel.gpu.reads_apart import reads_apart
from irc.passes.kernel.gpu.schedule import default_schedule
from irc.passes.kernel.plan.plan import flatten
from irc.target.gpu import GpuFeatures
from tests.passes.loop.texts import computes, parsed, ran

GPU = GpuFeatures.sm_90()
ALIVE: list[Any] = []


def with_figures(**figures: int) -> GpuFeatures:
    return attrs.evolve(GPU, unusual=tuple(sorted(figures.items())))


def scheduled(module: Any, gpu: GpuFeatures = GPU) -> dict[str, Any]:
    """The entries of the last compute's schedule."""
    entries = default_schedule(computes(module)[-1], gpu=gpu).entries.as_dict()
    numbers = {k: getattr(v, "value", None) for k, v in entries.items()}
    axes = entries["tile_axes"]
    return {**numbers, "tile_axes": tuple(getattr(axes, "values", ()))}


def is_apart(module: Any) -> bool:
    """What `reads_apart` says, and that the schedule has a point for each thread just then."""
    ALIVE.append(module)
    apart = reads_apart(plan_for_gpu(flatten(computes(module)[-1])), GPU)
    entries = scheduled(module)
    shape = entries["tile_axes"], entries["x_block"], entries["num_warps"]
    assert (shape == ((), 256, 8)) is apart, shape
    return apart


def agrees(module: Any, *arguments: torch.Tensor) -> None:
    """The kernel that a module's schedule makes gives what its loops do."""
    (expected,) = irc.run(module, *arguments)
    ran(module, "schedule,form-kernels", "sm_90")
    assert not computes(module), "there is a kernel"
    (result,) = irc.run(module, *arguments)
    torch.testing.assert_close(result, expected, rtol=0, atol=0)


COUNT = 20000


def sums(reads: list[str], axes: str, result: str, before: str = "") -> str:
    """A map that adds up reads."""
    body = "".join(f"%a{k} = loop.read {read} : f32\n" for k, read in enumerate(reads))
    for k in range(1, len(reads)):
        body += f"%s{k} = arith.addf %{'s' if k > 1 else 'a'}{k - 1}, %a{k} : f32\n"
    last = f"%s{len(reads) - 1}" if len(reads) > 1 else "%a0"
    return f"%y = loop.compute {axes} -> map {{ {before}\n{body}loop.yield {last} }} : {result}"


def strided(*steps: int, result: str = f"f32[{COUNT}]") -> Any:
    """A map of one axis whose reads have such steps."""
    arguments = ", ".join(f"%x{k}: f32[{step * COUNT + 8}]" for k, step in enumerate(steps))
    reads = [f"%x{k}[i0*{step} + {k}]" for k, step in enumerate(steps)]
    return parsed(arguments, sums(reads, f"par(i0: {COUNT})", result), f"%y: {result}")


STEPS = {
    (9, 9, 9): True, (9, 9): True, (9, 9, 1): True, (2, 2): True, (9, 1, 1): False, (9,): False,
    (9, 9, 1, 1): False, (9, 9, 9, 1): True, (1, 1, 1): False, (9, 9, 0): True, (9, 0, 0): False,
}  # fmt: skip


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_several_reads_apart_and_more_than_half(steps: tuple[int, ...]) -> None:
    assert is_apart(strided(*steps)) is STEPS[steps]


def test_reads_apart_of_one_array() -> None:
    reads = [f"%x[i0*9 + {k}]" for k in range(3)]
    module = parsed("%x: f32[9000]", sums(reads, "par(i0: 1000)", "f32[1000]"), "%y: f32[1000]")
    assert is_apart(module)
    agrees(module, torch.randn(9000))


def test_what_is_stored_apart_has_no_line_to_store() -> None:
    text = sums(["%x[i0*9]", "%x[i0*9 + 1]"], f"par(i0: {COUNT})", "RESULT")
    text = text.replace("RESULT", f"tensor<[{COUNT}] x f32, strides [2]>")
    module = parsed(f"%x: f32[{9 * COUNT}]", text)
    plan = plan_for_gpu(flatten(computes(module)[-1]))
    assert not reads_apart(plan, GPU)


def test_a_number_has_no_reads_apart() -> None:
    module = parsed("%x: f32[1]", sums(["%x[0]", "%x[0]"], "", "f32[]"), "%y: f32[]")
    assert not reads_apart(plan_for_gpu(flatten(computes(module)[-1])), GPU)


def test_the_points_of_tiles_are_a_figure() -> None:
    entries = scheduled(strided(9, 9, 9), with_figures(apart_block=64))
    assert (entries["x_block"], entries["num_warps"]) == (64, 2)


def looked_up(rows: int, columns: int, places: str, corners: int, maker: str = "") -> Any:
    """A map of rows x columns that reads so many elements of %x, where %p says at [places]."""
    sizes = ", ".join(str({"i0": rows, "i1": columns}[name]) for name in places.split(", "))
    position = maker or f"%k = loop.read %p[{places}] : i64\n"
    position += "%r = arith.index_cast %k : i64 to index\n"
    reads = [f"%x[{corner}, %r]" for corner in range(corners)]
    axes, result = f"par(i0: {rows}, i1: {columns})", f"f32[{rows}, {columns}]"
    arguments = f"%x: f32[4, 500], %p: i64[{sizes}]"
    return parsed(arguments, sums(reads, axes, result, position), f"%y: {result}")


INDEX = """%n = loop.index {expression = #sym<i1*3 + i0>} : index
  %m = arith.index_cast %n : index to i64
  %most = arith.constant 499 : i64
  %k = arith.minsi %m, %most : i64
"""
PLACES = {
    "a grid": ((50, 40, "i0, i1", 4), True),
    "a grid of two": ((50, 40, "i0, i1", 2), True),
    "a grid of one": ((50, 40, "i0, i1", 1), False),
    "a small table": ((1100, 3, "i1", 4), False),
    "the largest small table": ((20, 1023, "i1", 4), False),
    "a table": ((20, 1024, "i1", 4), True),
    "a small grid": ((3, 300, "i0, i1", 4), False),
    "a position of each row": ((1100, 10, "i0", 4), False),
    "indices": ((50, 40, "i0, i1", 4, INDEX), False),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_reads_where_data_says(name: str) -> None:
    arguments, apart = PLACES[name]
    module = looked_up(*arguments)
    assert is_apart(module) is apart
    x = torch.randn(4, 500)
    shape = module.body.block.first.block.arguments[1].type.shape
    agrees(module, x, torch.randint(500, tuple(shape)))


def test_a_cross_product_is_no_lookup() -> None:
    """torch.linalg.cross reads components where small tables say."""
    body = ""
    for number in range(2):
        body += f"""%k{number} = loop.read %p{number}[i1] : i64
          %r{number} = arith.index_cast %k{number} : i64 to index\n"""
    reads = ["%a[i0, %r0]", "%b[i0, %r1]", "%a[i0, %r1]", "%b[i0, %r0]"]
    vectors, table = f"f32[{COUNT}, 3]", "i64[3]"
    arguments = f"%a: {vectors}, %b: {vectors}, %p0: {table}, %p1: {table}"
    text = sums(reads, f"par(i0: {COUNT}, i1: 3)", vectors, body)
    assert not is_apart(parsed(arguments, text, f"%y: {vectors}"))


CHANNELS, ROWS, COLUMNS = 16, 10, 24


def padded(column: str, last: bool = True, written_last: bool = False) -> Any:
    """An image with its channels innermost (`last`) that is read at a row of its own and at a
    column, %c, and written with its columns innermost, or its channels (`written_last`)."""

    def image(rows: int, columns: int, channels_last: bool) -> str:
        plane = rows * columns
        strides = f"1, {columns * CHANNELS}, {CHANNELS}" if channels_last else (
            f"{plane}, {columns}, 1")  # fmt: skip
        sizes = f"2, {CHANNELS}, {rows}, {columns}"
        return f"tensor<[{sizes}] x f32, strides [{CHANNELS * plane}, {strides}]>"

    result = image(ROWS, COLUMNS, written_last)
    return irc.parse(f"""func.func @main(%x: {image(12, 26, last)}, %p: tensor<[{COLUMNS}] x i64,
      strides [1]>, %q: tensor<[{ROWS}] x i64, strides [1]>) -> {result}
      attributes {{level = "loop"}} {{
      %y = loop.compute par(i0: 2, i1: {CHANNELS}, i2: {ROWS}, i3: {COLUMNS}) -> map {{
        %j = loop.read %q[i2] : i64
        %r = arith.index_cast %j : i64 to index
        {column}
        %a = loop.read %x[i0, i1, %r, %c] : f32
        loop.yield %a }} : {result}
      return %y : {result} }}""")


def at(axis: str) -> str:
    table = {"i3": "%p", "i2": "%q"}[axis]
    return f"""%k = loop.read {table}[{axis}] : i64
      %c = arith.index_cast %k : i64 to index"""


# Reflected at the left edge: |i3 - 1|.
REFLECTED = """%n = loop.index {expression = #sym<i3 - 1>} : index
  %m = arith.index_cast %n : index to i64
  %o = math.absi %m : i64
  %c = arith.index_cast %o : i64 to index"""
IMAGES = {
    "columns where a table says": (padded(at("i3")), (1, 3)),
    "columns that are computed": (padded(REFLECTED), (1, 3)),
    "the same column for all": (padded(at("i2")), ()),
    "columns innermost where read": (padded(at("i3"), last=False), ()),
    "channels innermost where written": (padded(at("i3"), written_last=True), ()),
}


@pytest.mark.parametrize("name", IMAGES)
def test_padded_images_whose_channels_are_innermost_have_tiles_of_two_axes(name: str) -> None:
    module, axes = IMAGES[name]
    entries = scheduled(module)
    assert (entries["tile_axes"] if len(entries["tile_axes"]) == 2 else ()) == axes
    x = torch.randn(2, CHANNELS, 12, 26)
    strides = module.body.block.first.block.arguments[0].type.strides
    x = torch.empty_strided(x.shape, strides).copy_(x)
    agrees(module, x, torch.arange(COLUMNS).flip(0) + 1, torch.arange(ROWS) + 2)


MANY = 2 * 512 * 256


def windows(rows: int = MANY, step: int = 2, points: int = 3, element: str = "f32",
            more: str = "", place: str = "") -> Any:  # fmt: skip
    """The maxima of lines of windows that begin `step` elements apart, or at `place`."""
    body = f"%a = loop.read %x[{place or f'i0*{step}'} + i1] : {element}\n"
    value = "%a"
    if more:
        body += f"%w = loop.read {more} : {element}\n%m = arith.mulf %a, %w : {element}\n"
        value = "%m"
    text = f"""%y = loop.compute par(i0: {rows}) red(i1: {points}) -> reduce(max, {element}) {{
      {body} loop.yield {value} }} : {element}[{rows}]"""
    size = rows * step + points
    arguments = f"%x: {element}[{size}], %t: {element}[{points}], %u: {element}[{rows}]"
    return parsed(arguments, text, f"%y: {element}[{rows}]")


WINDOWS = {
    "of two steps": (windows(), True),
    "of one step": (windows(step=1), True),
    "16 bytes apart": (windows(step=4), True),
    "20 bytes apart": (windows(step=5), False),
    "of f64 16 bytes apart": (windows(element="f64"), True),
    "of f64 24 bytes apart": (windows(element="f64", step=3), False),
    "of bf16 16 bytes apart": (windows(element="bf16", step=8), True),
    "of bf16 18 bytes apart": (windows(element="bf16", step=9), False),
    "of few rows": (windows(rows=MANY - 1), False),
    "of 16 points": (windows(points=16), True),
    "of 17 points": (windows(points=17), False),
    "beside a weight of each point": (windows(more="%t[i1]"), True),
    "beside a weight of each row": (windows(more="%u[i0]"), True),
    "backwards": (windows(more="%x[i0*-2 + i1 + 524288]"), False),
    "short plain rows": (windows(step=16, points=16), False),
    "all the same": (windows(step=0), False),
    "of two rows each": (windows(place="floordiv(i0, 2)"), True),
    "of rows of a table": (windows(place="mod(i0, 7)*100"), False),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_lines_of_windows_have_a_thread_each(name: str) -> None:
    module, unrolled = WINDOWS[name]
    entries = scheduled(module)
    assert entries["unrolled"] is unrolled
    if unrolled:
        assert [entries[k] for k in ("x_block", "r_block", "num_warps")] == [256, 1, 8]


def test_the_bytes_between_windows_are_a_figure() -> None:
    module = windows(step=3)
    for bytes_, unrolled in ((12, True), (11, False)):
        gpu = with_figures(window_bytes=bytes_, apart_block=128)
        entries = scheduled(module, gpu)
        assert entries["unrolled"] is unrolled
        assert not unrolled or (entries["x_block"], entries["num_warps"]) == (128, 4)


def test_windows_across_rows_keep_four_rows_a_thread() -> None:
    text = f"%y = loop.compute red(i0: 9) par(i1: {MANY}) -> reduce(max, f32) {{"
    text += f" %a = loop.read %x[i0, i1] : f32 loop.yield %a }} : f32[{MANY}]"
    entries = scheduled(parsed(f"%x: f32[9, {MANY}]", text, f"%y: f32[{MANY}]"))
    assert entries["unrolled"] is True
    assert [entries[k] for k in ("x_block", "r_block", "num_warps")] == [512, 1, 4]


POOL = """%y = loop.compute par(i0: COUNT, i1: 16, i2: 16) red(i3: 3, i4: 3) -> reduce(max, f32) {
  %a = loop.read %x[i0, i1*2 + i3, i2*2 + i4] : f32
  loop.yield %a } : f32[COUNT, 16, 16]"""


def pooled(images: int) -> Any:
    """A pooling of 3x3 with two steps."""
    sizes = f"f32[{images}, 33, 33]", f"%y: f32[{images}, 16, 16]"
    return parsed(f"%x: {sizes[0]}", POOL.replace("COUNT", str(images)), sizes[1])


def test_windows_of_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = scheduled(pooled(1028))
    assert (entries["unrolled"], entries["x_block"], entries["num_warps"]) == (True, 256, 8)
    # Few images are too few rows for that, but have the same values.
    monkeypatch.setattr(schedule, "_is_unrolled", lambda plan, gpu: True)
    few = pooled(3)
    assert scheduled(few)["unrolled"] is True
    agrees(few, torch.randn(3, 33, 33))
