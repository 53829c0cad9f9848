"""Sums of several points of an axis in registers together: windows against float64, and what their
schedules may say."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

import irc
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassManager
from irc.pipeline import stages

SCHEDULE: dict[str, str] = {
    "collapse": "[]", "vector_axis": '"c"', "lanes": "8", "copies": "1", "tail": '"mask"',
    "spans": "5", "order": '["c", "q", "r", "s"]', "written_out": '["s"]', "jam_axis": '"q"',
    "jam_points": "4", "chunks": "[]", "partial": "[]",
}  # fmt: skip


def typed(*sizes: int) -> str:
    return f"tensor<{list(sizes)} x f32, strides {list(torch.empty(sizes).stride())}>"


def windows(
    channels: int = 20, size: tuple[int, int] = (6, 9), taps: tuple[int, int] = (3, 3),
    step: int = 1, apart: int = 1, around: int = 1, **entries: str,
) -> str:  # fmt: skip
    """Sums of windows of 2 images, channel by channel, with channels innermost."""
    p, q = ((n + 2 * around - apart * (t - 1) - 1) // step + 1
            for n, t in zip(size, taps, strict=True))  # fmt: skip
    chosen = ", ".join(f"{name} = {value}" for name, value in {**SCHEDULE, **entries}.items())
    x, w, y = typed(2, *size, channels), typed(*taps, channels), typed(2, p, q, channels)
    row, column = (f"{axis}*{step} + {tap}*{apart} - {around}" for axis, tap in ("pr", "qs"))
    return f"""
func.func @main(%x: {x}, %w: {w}) -> {y} attributes {{level = "loop"}} {{
  %y = loop.group (n: 2, p: {p}) schedule #loop.schedule<cpu, collapse = [], outer = ["n", "p"],
      vector_axis = "", scratch = 65536> {{
  %s = loop.compute par(n: 2, p: {p}, q: {q}, c: {channels}) red(r: {taps[0]}, s: {taps[1]})
      -> reduce(sum, f32) schedule #loop.schedule<cpu, {chosen}> {{
    %row = loop.index {{expression = #sym<{row}>}} : index
    %column = loop.index {{expression = #sym<{column}>}} : index
    %low = arith.constant 0 : index
    %high = arith.constant {size[0]} : index
    %wide = arith.constant {size[1]} : index
    %c0 = arith.cmpi sge, %row, %low : index
    %c1 = arith.cmpi slt, %row, %high : index
    %c2 = arith.cmpi sge, %column, %low : index
    %c3 = arith.cmpi slt, %column, %wide : index
    %c4 = arith.andi %c0, %c1 : i1
    %c5 = arith.andi %c2, %c3 : i1
    %inside = arith.andi %c4, %c5 : i1
    %zero = arith.constant 0.0 : f32
    %a = loop.read %x[n, {row}, {column}, c] (where %inside else %zero) : f32
    %b = loop.read %w[r, s, c] : f32
    %m = arith.mulf %a, %b : f32
    loop.yield %m
  }} : {y}
  loop.yield %s
  }} : {y}
  return %y : {y}
}}
"""


def kernels(text: str) -> Any:
    """The program with its kernels."""
    module = irc.parse(text)
    PassManager.parse(stages("llvm")["loop-to-kernel"]).run(module)
    return module


CASES: list[dict[str, Any]] = [
    {}, {"jam_points": "9"}, {"jam_points": "64"}, {"jam_points": "1"}, {"copies": "2"},
    {"written_out": '["r", "s"]'}, {"written_out": "[]"}, {"channels": 5}, {"channels": 33},
    {"tail": '"peel"'}, {"step": 2}, {"step": 2, "size": (7, 14)}, {"apart": 2, "around": 2},
    {"taps": (7, 7), "around": 3}, {"taps": (7, 7), "around": 3, "size": (3, 2)},
    {"taps": (2, 5), "around": 0}, {"around": 2, "size": (5, 23), "jam_points": "5"},
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


def test_values_outside_are_multiplied_as_zeros() -> None:
    module = kernels(windows(channels=8))
    PassManager.parse(stages("llvm")["kernel-to-host"]).run(module)
    x, w = torch.ones(2, 6, 9, 8), torch.ones(3, 3, 8)
    w[0, 0, 3] = float("nan")
    (result,) = irc.runtime.build(module)(x, w)
    assert result.isnan()[..., 3].all()


BESIDE = {
    "collapse": "[]", "vector_axis": '"c"', "lanes": "8", "copies": "1", "tail": '"mask"',
    "spans": "5", "order": '["c", "q"]', "beside_sums": "true",
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


@pytest.mark.parametrize("case", [{}, {"channels": 5}, {"tail": '"peel"'}, {"size": (4, 23)}],
                         ids=str)  # fmt: skip
def test_maps_beside_sums(case: dict[str, Any]) -> None:
    """What is added to sums in registers; nothing of them is in memory."""
    torch.manual_seed(0)
    map_ = {**BESIDE, **{k: v for k, v in case.items() if k == "tail"}}
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
        ({"order": '["q", "c"]'}, "n, p, q, c", "the loops around these"),
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
        ({"jam_axis": '"c"'}, "can't have their sums|only what is combined"),
        ({"order": '["q", "c", "r", "s"]'}, "only what is combined comes inside of q"),
        ({"partial": '["s"]'}, "makes one sum"),
        ({"vector_axis": '""'}, "vectors run along a par axis"),
    ],
    ids=lambda value: str(value),
)
def test_refused(entries: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidIR, match=reason):
        kernels(windows(**entries))  # type: ignore[arg-type]
