"""Which reductions have several points in registers, how many, and what figures of a processor say
of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import irc
from irc.analysis.shared_reads import SharedReads, first_places, jam_of
from irc.analysis.window_ways import window_objection
from irc.dialects import graph, loop
from irc.ir.passes import PassManager
from irc.target import Target


def typed(*sizes: int) -> str:
    return f"tensor<{list(sizes)} x f32, strides {list(torch.empty(sizes).stride())}>"


def window(
    taps: tuple[int, int] = (3, 3), step: int = 1, apart: int = 1, q: int = 28, c: int = 64,
    combiner: str = "sum", place: str = "c",
) -> loop.ComputeOp:  # fmt: skip
    """Windows of an image, channel by channel."""
    x, w = typed(200, 200, c), typed(*taps, c)
    read = f"p*{step} + r*{apart}, q*{step} + s*{apart}"
    module = irc.parse(f"""
func.func @main(%x: {x}, %w: {w}) -> {typed(28, q, c)} attributes {{level = "loop"}} {{
  %y = loop.compute par(p: 28, q: {q}, c: {c}) red(r: {taps[0]}, s: {taps[1]})
      -> reduce({combiner}, f32) {{
    %a = loop.read %x[{read}, {place}] : f32
    %b = loop.read %w[r, s, c] : f32
    %m = arith.mulf %a, %b : f32
    loop.yield %m
  }} : {typed(28, q, c)}
  return %y : {typed(28, q, c)}
}}""")
    (compute,) = (op for op in module.walk() if isinstance(op, loop.ComputeOp))
    return compute


def jam(compute: loop.ComputeOp, figures: str = "") -> SharedReads | str:
    return jam_of(compute, Target.named(f"#irc.target<avx512{figures}>"))


@pytest.mark.parametrize(
    ("case", "axis", "points", "written_out"),
    [
        ({}, "q", 7, ("s",)),
        ({"q": 32}, "q", 8, ("s",)),
        ({"taps": (7, 7)}, "q", 7, ("s",)),
        ({"step": 2}, "q", 7, ("s",)),
        ({"taps": (3, 1)}, "p", 7, ("r",)),
        ({"q": 5}, "p", 7, ("r",)),
    ],
    ids=str,
)
def test_points_that_share_reads(
    case: dict[str, Any], axis: str, points: int, written_out: tuple[str, ...]
) -> None:
    found = jam(window(**case))
    assert isinstance(found, SharedReads)
    assert (found.axis, found.points, found.written_out) == (axis, points, written_out)
    assert found.vector == "c"


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"c": 1, "q": 2, "taps": (2, 2)}, "it is small"),
        ({"taps": (3, 9)}, "partial sums"),
        ({"taps": (70, 3)}, "partial sums"),
        ({"place": "63 - c"}, "lies side by side along no axis"),
    ],
    ids=str,
)
def test_points_that_share_nothing(case: dict[str, Any], reason: str) -> None:
    found = jam(window(**case))
    assert isinstance(found, str) and reason in found


@pytest.mark.parametrize("taps", [(3, 3), (2, 5), (1, 1)])
@pytest.mark.parametrize(("step", "apart"), [(1, 1), (2, 1), (1, 2), (3, 1), (2, 3)])
def test_what_a_tile_is_the_first_to_read(taps: tuple[int, int], step: int, apart: int) -> None:
    """Against what tiles of four and rows of windows read one after the other."""
    compute = window(taps=taps, step=step, apart=apart)
    image, weight = compute.reads
    rows, columns = ([apart * t for t in range(n)] for n in taps)
    tile = {step * q + s for q in range(4) for s in columns}
    new_columns = tile - {place - 4 * step for place in tile}
    new_rows = {*rows} - {row - step for row in rows}
    expected = sorted((r * 200 + s) * 64 for r in new_rows for s in new_columns)
    combined = {"r": taps[0], "s": taps[1]}
    assert first_places(image, "q", 4, combined) == tuple(expected)
    assert first_places(weight, "q", 4, combined) == ()


@pytest.mark.parametrize(("more", "ahead"), [(0, 0), (-1, 1)])
def test_memory_fetches_what_no_cache_of_a_cores_holds(more: int, ahead: int) -> None:
    found = jam(window(), f", core_bytes = {200 * 200 * 64 * 4 + more}")
    assert isinstance(found, SharedReads) and found.ahead == ahead


@pytest.mark.parametrize(
    "figures",
    ["most_jammed = 4", "written_products = 12", "most_terms = 2", "product_latency = 200",
     "sure_jams = 9", "jam_start = 0", "most_taps = 2", "tiled_work = 100000000"],
)  # fmt: skip
def test_another_figure_decides_otherwise(figures: str) -> None:
    assert jam(window(q=50), f", {figures}") != jam(window(q=50))


def test_other_figures_say_who_computes_one_of_bf16() -> None:
    conv = torch.nn.Conv2d(32, 32, 3, groups=32).bfloat16()
    module = irc.trace(conv, (torch.ones(1, 32, 9, 9).bfloat16(),))
    PassManager.parse("functional,convert-aten-to-graph").run(module)
    (call,) = (op for op in module.walk() if isinstance(op, graph.CallAten))
    cases = {"own_windows = [90, 90]": True, "own_pair_windows = [90, 120]": False}
    for figures, ours in cases.items():
        target = Target.named(f"#irc.target<avx512, {figures}>")
        assert (window_objection(call, target) is None) == ours


@pytest.mark.parametrize(
    ("figures", "taps", "ours"),
    [("own_windows = [90, 120]", 3, False), ("own_windows = [90, 120]", 5, True),
     ("own_windows = [90, 120], many_taps = 9", 3, True), ("most_taps = 4", 5, False),
     ("most_taps = 4", 3, True)],
)  # fmt: skip
def test_figures_say_who_computes_a_window(figures: str, taps: int, ours: bool) -> None:
    module = irc.trace(torch.nn.Conv2d(32, 32, taps, groups=32), (torch.ones(1, 32, 9, 9),))
    PassManager.parse("functional,convert-aten-to-graph").run(module)
    (call,) = (op for op in module.walk() if isinstance(op, graph.CallAten))
    objection = window_objection(call, Target.named(f"#irc.target<avx512, {figures}>"))
    assert (objection is None) == ours
