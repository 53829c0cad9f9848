"""Sums of several points of an axis in registers together: windows against float64, and what their
schedules may say."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

import irc
from bench.depthwise import window_program
from irc.dialects import arith, kernel
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassManager
from irc.pipeline import stages
from irc.target import Target
from irc.target.attribute import carry
from irc.target.figures import evolve


def windows(
    channels: int = 20, size: tuple[int, int] = (6, 9), taps: tuple[int, int] = (3, 3),
    step: int = 1, apart: int = 1, around: int = 1, **entries: str,
) -> str:  # fmt: skip
    """Sums of windows of 2 images."""
    few = {"lanes": "8", "jam_points": "4"}
    return window_program(channels, size, taps, step, apart, around, 2, **{**few, **entries})


def kernels(text: str) -> Any:
    """The program with its kernels."""
    module = irc.parse(text)
    PassManager.parse(stages("llvm")["loop-to-kernel"]).run(module)
    return module


AROUND = '["c", "q", "r", "s"]'
"""Vectors around the points, not inside of them."""

CASES: list[dict[str, Any]] = [
    {}, {"jam_points": "9"}, {"jam_points": "64"}, {"jam_points": "1"}, {"copies": "2"},
    {"written_out": '["r", "s"]'}, {"written_out": "[]"}, {"channels": 5}, {"channels": 33},
    {"tail": '"peel"'}, {"step": 2}, {"step": 2, "size": (7, 14)}, {"apart": 2, "around": 2},
    {"taps": (7, 7), "around": 3}, {"taps": (7, 7), "around": 3, "size": (3, 2)},
    {"taps": (2, 5), "around": 0}, {"around": 2, "size": (5, 23), "jam_points": "5"},
    {"order": AROUND}, {"order": AROUND, "channels": 33, "tail": '"peel"'}, {"jam_ahead": "0"},
    {"order": AROUND, "taps": (7, 7), "around": 3, "jam_ahead": "3", "copies": "2"},
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case: dict[str, Any]) -> None:
    torch.manual_seed(0)
    module = kernels(windows(**case))
    size, taps = case.get("size", (6, 9)), case.get("taps", (3, 3))
    channels = case.get("channels", 20)
    x, w = torch.randn(2, *size, channels), torch.randn(*taps, channels)
    exact = functional.conv2d(
        x.permute(0, 3, 1, 2).double(), w.permute(2, 0, 1)[:, None].double(), None,
        case.get("step", 1), case.get("around", 1), case.get("apart", 1), channels,
    ).permute(0, 2, 3, 1)  # fmt: skip
    PassManager.parse(stages("llvm")["kernel-to-host"]).run(module)
    (result,) = irc.runtime.build(module)(x, w)
    torch.testing.assert_close(result.double(), exact, rtol=0, atol=2e-5)


def test_what_several_points_read_is_read_once() -> None:
    """Four places of three taps: six elements of the image and three of the weight for each row of
    the window in the middle of an image, where nothing is masked along the row."""
    text = irc.print_op(kernels(windows(channels=8, size=(6, 12), around=1)))
    loads = text.count("kernel.load")
    # Three kinds of tile: at either end of a row one element is outside of it, and not read.
    assert loads == (5 + 6 + 5) + 3 * 3


@pytest.mark.parametrize(("step", "fetched"), [(1, 4), (2, 16), (3, 4 * 3 * 3)])
def test_memory_fetches_what_a_tile_is_the_first_to_read(step: int, fetched: int) -> None:
    """Of four places in a row each has a column and a row of the window that none had before; two
    of each where windows lie two apart, all where they don't overlap."""
    ops = {}
    for ahead in (0, 1):
        text = windows(channels=8, size=(24, 24), around=0, step=step, jam_ahead=str(ahead))
        ops[ahead] = [op for op in kernels(text).walk() if isinstance(op, kernel.PrefetchOp)]
    assert not ops[0]
    # Tiles of four, and one of what is left.
    places = (24 - 3) // step + 1
    assert len(ops[1]) == fetched + (fetched // 4) * (places % 4)


@pytest.mark.parametrize("channels", [8, 20])
def test_a_row_outside_of_the_image_is_read_at_an_address_inside(channels: int) -> None:
    """What is loaded under a condition that is the same for all lanes: where it doesn't hold, the
    address may be of no mapped page, and a masked load there is slow."""
    module = kernels(windows(channels=channels, size=(6, 12)))
    loads = [op for op in module.walk() if isinstance(op, kernel.LoadOp) and op.mask is not None]
    places = [op.offset.defining_op for op in loads if in_rows(op)]
    assert places and all(isinstance(place, arith.SelectOp) for place in places)


def in_rows(load: kernel.LoadOp) -> bool:
    """Whether a load is under a condition on a row of the image."""
    mask = load.mask.defining_op if load.mask is not None else None
    parts = [mask, *(operand.defining_op for operand in mask.operands)] if mask is not None else []
    return any(isinstance(part, kernel.SplatOp) for part in parts)


def test_values_outside_are_multiplied_as_zeros() -> None:
    module = kernels(windows(channels=8))
    PassManager.parse(stages("llvm")["kernel-to-host"]).run(module)
    x, w = torch.ones(2, 6, 9, 8), torch.ones(3, 3, 8)
    w[0, 0, 3] = float("nan")
    (result,) = irc.runtime.build(module)(x, w)
    assert result.isnan()[..., 3].all()


BESIDE = {
    "collapse": "[]", "vector_axis": '"c"', "lanes": "8", "copies": "1", "tail": '"mask"',
    "spans": "5", "order": '["q", "c"]', "beside_sums": "true",
}  # fmt: skip


def with_map(entries: dict[str, str], indices: str = "n, p, q, c", **case: Any) -> str:
    """Windows with a map of their sums, which has these entries of a schedule."""
    chosen = ", ".join(f"{name} = {value}" for name, value in entries.items())
    text = windows(**case)
    before, _, after = text.rpartition("  loop.yield %s\n")
    type_ = text.partition(" -> ")[2].partition(" attributes")[0]
    sizes = [int(n) for n in type_.partition("[")[2].partition("]")[0].split(", ")]
    axes = ", ".join(f"{a}: {n}" for a, n in zip("npqc", sizes, strict=True))
    return f"""{before}
  %z = loop.compute par({axes}) -> map schedule #loop.schedule<cpu, {chosen}> {{
    %a1 = loop.read %s[{indices}] : f32
    %b1 = loop.read %w[0, 0, c] : f32
    %c1 = arith.addf %a1, %b1 : f32
    loop.yield %c1
  }} : {type_}
  loop.yield %z
{after}"""


@pytest.mark.parametrize("case", [
    {}, {"channels": 5}, {"tail": '"peel"'}, {"size": (4, 23)}, {"order": AROUND},
    {"order": AROUND, "size": (4, 23)},
], ids=str)  # fmt: skip
def test_maps_beside_sums(case: dict[str, Any]) -> None:
    """What is added to sums in registers; nothing of them is in memory."""
    torch.manual_seed(0)
    map_ = {**BESIDE, **{k: v for k, v in case.items() if k == "tail"}}
    if "order" in case:
        map_["order"] = '["c", "q"]'
    module = kernels(with_map(map_, **case))
    assert "kernel.scratch" not in irc.print_op(module)
    channels, size = case.get("channels", 20), case.get("size", (6, 9))
    x, w = torch.randn(2, *size, channels), torch.randn(3, 3, channels)
    exact = functional.conv2d(
        x.permute(0, 3, 1, 2).double(), w.permute(2, 0, 1)[:, None].double(), w[0, 0].double(),
        1, 1, 1, channels,
    ).permute(0, 2, 3, 1)  # fmt: skip
    PassManager.parse(stages("llvm")["kernel-to-host"]).run(module)
    (result,) = irc.runtime.build(module)(x, w)
    torch.testing.assert_close(result.double(), exact, rtol=0, atol=2e-5)


def test_maps_that_are_not_beside_sums_have_the_same_values() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(2, 6, 9, 20), torch.randn(3, 3, 20)
    results = []
    for entries in (BESIDE, {k: v for k, v in BESIDE.items() if k != "beside_sums"}):
        module = kernels(with_map(entries))
        PassManager.parse(stages("llvm")["kernel-to-host"]).run(module)
        results += irc.runtime.build(module)(x, w)
    assert torch.equal(*results)


@pytest.mark.parametrize(
    ("entries", "indices", "reason"),
    [
        ({"order": '["c", "q"]'}, "n, p, q, c", "the loops around these"),
        ({"lanes": "16"}, "n, p, q, c", "has their vectors"),
        ({}, "n, p, 8 - q, c", "it is beside no sums"),
    ],
    ids=str,
)
def test_maps_beside_nothing(entries: dict[str, str], indices: str, reason: str) -> None:
    with pytest.raises(InvalidIR, match=reason):
        kernels(with_map({**BESIDE, **entries}, indices))


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"jam_axis": '"n"'}, "n is no loop"),
        ({"jam_axis": '"c"'}, "only vectors and what is combined come inside of c"),
        ({"jam_axis": '"c"', "order": AROUND}, "only vectors and what is combined come inside"),
        ({"partial": '["s"]'}, "makes one sum"),
        ({"vector_axis": '""'}, "vectors run along a par axis"),
    ],
    ids=lambda value: str(value),
)
def test_refused(entries: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidIR, match=reason):
        kernels(windows(**entries))  # type: ignore[arg-type]


@pytest.mark.parametrize("terms", [1, 3])
def test_sums_of_one_term_have_no_loop_to_share(terms: int) -> None:
    """Outer products of sizes that nobody knows: large ones, and more than maps by their kind."""
    x, w, y = (f"tensor<[{a}, {b}] x f32, strides [{b}, 1]>"
               for a, b in (("s0", terms), (terms, "s1"), ("s0", "s1")))  # fmt: skip
    text = f"""func.func @main(%x: {x}, %w: {w}) -> {y} attributes {{level = "loop"}} {{
  %n = sym.bind_size %x {{dim = 0 : i64, symbol = "s0"}} : ({x}) -> index
  %m = sym.bind_size %w {{dim = 1 : i64, symbol = "s1"}} : ({w}) -> index
  %y = loop.group () {{
    %s = loop.compute par(i: s0, j: s1) red(k: {terms}) -> reduce(sum, f32) {{
      %a = loop.read %x[i, k] : f32
      %b = loop.read %w[k, j] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield %p
    }} : {y}
    loop.yield %s : {y}
  }} : {y}
  func.return %y : {y}
}}"""
    module = irc.parse(text)
    target = Target.host()
    target = evolve(target, threads=1, processor=evolve(target.processor, tiled_work=1))
    carry(module, target)
    PassManager.parse(stages("llvm")["loop-to-kernel"]).run(module)
    PassManager.parse(stages("llvm")["kernel-to-host"]).run(module)
    program = irc.runtime.build(module)
    for rows, columns in ((1, 1), (24, 40), (9, 129)):
        left, right = torch.randn(rows, terms), torch.randn(terms, columns)
        torch.testing.assert_close(program(left, right)[0], left @ right)
