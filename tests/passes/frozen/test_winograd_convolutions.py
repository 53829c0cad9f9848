"""Frozen 3x3 convolutions in Winograd's form: values on odd sizes, and why others are not."""

from __future__ import annotations

import copy
import math
from typing import Any

import attrs
import pytest
import torch
from torch import nn

import irc
from irc.dialects import graph
from irc.dialects.graph import winograd
from irc.frontend.backend import recording
from irc.ir.passes import PassManager
from irc.ir.types import bf16, f32
from irc.options.options import from_mapping
from irc.passes.frozen import winograd_convolutions
from irc.passes.frozen.winograd_convolutions import WinogradConvolutions
from irc.pipeline import pipeline_text, stages
from irc.target import Target
from irc.target.cpu import TargetFeatures
from tests.passes.frozen.frozen_convolutions import (
    OPTIONS,
    Residual,
    check,
    check_sizes,
    compiled,
    counted,
    relative_error,
    threads,
    told_of,
)

pytestmark = pytest.mark.usefixtures("forget_programs")


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every convolution that can be is rewritten, whatever it gains."""
    monkeypatch.setattr(WinogradConvolutions, "refusal", lambda self, *_: None)


@pytest.fixture
def largest(always: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tiles of the most results."""
    monkeypatch.setattr(
        winograd_convolutions, "work", lambda shape, *_: (1.0, 1 / shape.results)
    )


# batch, channels, channels out, height, width, padding
SHAPES = [
    (3, 20, 40, 7, 9, (1, 1)),
    (1, 5, 3, 3, 3, (0, 0)),  # one result
    (2, 33, 65, 1, 1, (1, 1)),  # a pixel
    (1, 3, 17, 1, 6, (1, 0)),
    (2, 64, 64, 30, 15, (2, 0)),  # several blocks of tiles
    (3, 7, 40, 5, 13, (0, 2)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(shape: Any, always: None) -> None:
    torch.manual_seed(0)
    batch, channels, out, high, wide, padding = shape
    channels_last = batch == 3
    convolution = nn.Conv2d(channels, out, 3, padding=padding, bias=batch != 2)
    model = nn.Sequential(convolution).eval()
    x = torch.randn(batch, channels, high, wide)
    if channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    result = check(model, x, graph.WinogradConv, 1, 4e-6)
    assert result.stride() == model(x).stride()


# taps, stride, padding
FORMS = [
    (3, 1, (1, 1)), ((1, 3), 1, (0, 1)), ((3, 1), 1, (1, 0)), (2, 1, 0), (4, 1, (1, 2)), (5, 1, 2),
    (3, 2, 1), (3, 2, 0), (3, (1, 2), 1), (3, (2, 1), (0, 2)), (5, 2, 2), (6, 2, 2), (7, 2, 3),
    (5, 3, 1), ((5, 3), (1, 2), 1),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("size", [(17, 13), (8, 9), (7, 24)], ids=str)
def test_values_of_other_taps_and_strides(form: Any, size: Any, largest: None) -> None:
    """Sizes behind the last tile, or the last element that a stride reaches."""
    torch.manual_seed(5)
    taps, stride, padding = form
    model = nn.Sequential(nn.Conv2d(20, 40, taps, stride=stride, padding=padding)).eval()
    check(model, torch.randn(2, 20, *size), graph.WinogradConv, 1, 4e-6)


@pytest.mark.parametrize("tile", [2, 3, 4])
@pytest.mark.parametrize("stride", [1, 2])
def test_values_of_each_tile(
    tile: int, stride: int, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line of three taps, down and right."""
    def work(shape: winograd.WinogradShape, *_: object) -> tuple[float, float]:
        return 1.0, 1.0 + abs(shape.down.tile - tile) + abs(shape.right.tile - tile)

    monkeypatch.setattr(winograd_convolutions, "work", work)
    model = nn.Sequential(nn.Conv2d(9, 11, 3, stride=stride, padding=1), nn.ReLU()).eval()
    x = torch.randn(2, 9, 21, 18)
    assert f"tiles of {tile}x{tile})" in remarks_on(copy.deepcopy(model), x)[0]
    check(model, x, graph.WinogradConv, 1, 4e-6)


def test_strides_of_all_sizes_through_one_program(largest: None) -> None:
    torch.manual_seed(2)
    model = nn.Sequential(
        nn.Conv2d(8, 24, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(24, 5, 5, stride=(1, 2))
    ).eval()
    check_sizes(model, [(2, 8, 19, 24), (5, 8, 12, 15), (3, 8, 31, 16)], 4e-6)


@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
def test_bf16_is_computed_in_f32(shape: Any, always: None) -> None:
    """With a bias, what is added and an activation: rounded once, so no further from f64 than what
    eager mode makes of the same elements, which rounds each."""
    torch.manual_seed(0)
    batch, channels, _, high, wide, padding = shape
    first = nn.Conv2d(channels, channels, 3, padding=padding)
    second = nn.Conv2d(channels, channels, 3, padding=tuple(2 - p for p in padding))
    model = Residual(first, second, nn.ReLU(), sums_last=False).eval().bfloat16()
    x = torch.randn(batch, channels, high, wide).bfloat16()
    exact = copy.deepcopy(model).double()(x.double())
    with torch.no_grad(), recording() as made:
        error = relative_error(compiled(model)(x), exact)
        assert error <= 1.1 * relative_error(model(x), exact) + 1e-3
    assert counted(made, graph.WinogradConv) == 2
    module, texts = made[0].imported.module, stages("llvm", from_mapping(OPTIONS))
    PassManager.parse(f"{texts['aten-to-graph']},{texts['graph-to-layout']}").run(module)
    assert not any(isinstance(op, graph.Maximum | graph.Add) for op in module.walk())
    torch.testing.assert_close(irc.run(module, x)[0].double(), exact, rtol=3e-2, atol=3e-2)


def test_how_fast_a_library_multiplies_narrow_elements_counts() -> None:
    """Vectors that add up pairs twice as fast; registers of whole tiles never pay."""
    record = TargetFeatures.avx512()
    pairs = Target(attrs.evolve(record, sets=(*record.sets, "avx512bf16")))
    tiles = Target(attrs.evolve(record, sets=(*record.sets, "amx-bf16", "amx-tile")))
    speeds = [winograd_convolutions.narrow_speed(e, t) for e, t in (
        (f32, pairs), (bf16, pairs), (bf16, tiles), (bf16, Target(record)))]  # fmt: skip
    assert speeds == [1, 2, math.inf, math.inf]
    shape = winograd.WinogradShape(
        batch=4, height=28, width=28, channels=128, channels_out=128, padding=(1, 1), bits=512,
        panel=32, down=winograd.TileLine(3, 1, 4), right=winograd.TileLine(3, 1, 4),
    )  # fmt: skip
    works = [winograd_convolutions.work(shape, target, bf16) for target in (pairs, tiles)]
    assert works[0][0] > 1.1 * works[0][1] and works[1][0] < works[1][1]
    options = WinogradConvolutions()
    assert options.refusal(shape, pairs, bf16) is None
    assert options.refusal(shape, tiles, bf16) is not None


@pytest.mark.parametrize("last", [
    nn.ReLU(), nn.LeakyReLU(0.2), nn.Hardtanh(-0.25, 0.5), nn.GELU(),
])  # fmt: skip
def test_what_follows_a_convolution(last: nn.Module, always: None) -> None:
    torch.manual_seed(1)
    first, second = (nn.Conv2d(24, 24, 3, padding=1, bias=bias) for bias in (False, True))
    model = Residual(first, second, last, sums_last=False).eval()
    x = torch.randn(2, 24, 9, 10)
    check(model, x, graph.WinogradConv, 2, 4e-6)


def test_threads_have_workspaces_of_their_own(always: None) -> None:
    model = nn.Sequential(nn.Conv2d(32, 40, 3, padding=1)).eval()
    x = torch.randn(5, 32, 60, 61)
    with threads(4):
        check(model, x, graph.WinogradConv, 1, 4e-6, calls=5)


def test_all_sizes_through_one_program(always: None) -> None:
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(8, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 5, 3)).eval()
    check_sizes(model, [(2, 8, 9, 14), (5, 8, 4, 4), (3, 8, 31, 7)], 4e-6)


def test_nan_and_infinity_stay_in_the_tiles_that_read_them(largest: None) -> None:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.ReLU()).eval()
    for value in (float("nan"), float("inf")):
        x = torch.randn(1, 4, 12, 12)
        x[0, 2, 5, 6] = value
        with torch.no_grad():
            result, expected = compiled(model)(x), model(x)
        assert not result[:, :, 4:7, 5:8].isfinite().any()
        reached = ~result.isfinite()
        # The tile of 4x4 with the element, whose 6x6 elements reach into no other tile's middle.
        reached[:, :, 4:8, 4:8] = False
        assert not reached.any()
        outside = torch.ones_like(reached)
        outside[:, :, 4:8, 4:8] = False
        torch.testing.assert_close(result[outside], expected[outside], rtol=1e-4, atol=1e-5)


def test_the_option_turns_it_off() -> None:
    frozen = from_mapping({"freezing": True})
    assert "winograd-convolutions" in pipeline_text("llvm", frozen)
    assert "winograd-convolutions" not in pipeline_text("triton", frozen)
    without = pipeline_text("llvm", frozen.replace(winograd=False))
    assert "panel-convolutions" in without
    for name in ("winograd", "layout_optimization", "freezing"):
        assert "winograd-convolutions" not in pipeline_text("llvm", frozen.replace(**{name: False}))


# -- why not

FEW = "no tile of it takes fewer products: its weights are "
REFUSED = [
    (nn.Conv2d(8, 8, 3, stride=3), f"{FEW}3x3, its stride [3, 3]"),
    (nn.Conv2d(8, 8, 3, dilation=2), "its dilation is [2, 2]"),
    (nn.Conv2d(8, 8, 3, groups=2), "it has 2 groups"),
    (nn.Conv2d(8, 8, 1), f"{FEW}1x1, its stride [1, 1]"),
    (nn.Conv2d(8, 8, 2, stride=4), f"{FEW}2x2, its stride [4, 4]"),
    (nn.Conv2d(8, 8, 11), f"{FEW}11x11, its stride [1, 1]"),
    (nn.ConvTranspose2d(8, 8, 3), "it is transposed"),
    (nn.Conv2d(8, 8, 3).double(), "it is of f64 on cpu, not of f32 or bf16 on cpu"),
    (nn.Conv2d(8, 8, 3), "times less work (8 channels to 8, "),
]  # fmt: skip


def remarks_on(model: nn.Module, x: torch.Tensor) -> tuple[str, Any]:
    """What the pass tells of a frozen model's convolution, and the module behind it."""
    told, module = told_of(model, x, "panel-convolutions")
    return "\n".join(line for line in told.splitlines() if "winograd" in line), module


@pytest.mark.parametrize(("model", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_why_not(model: nn.Module, why: str) -> None:
    dtype = next(model.parameters()).dtype
    told, module = remarks_on(model, torch.randn(1, 8, 12, 11, dtype=dtype))
    assert why in told and "is not computed as Winograd does: " in told
    assert not any(op.name == "graph.winograd_conv" for op in module.walk())


def test_why() -> None:
    told, module = remarks_on(nn.Conv2d(64, 64, 3, padding=1), torch.randn(4, 64, 28, 28))
    assert "is computed as Winograd does: about " in told
    assert "times less work (64 channels to 64, 196 tiles of 4x4)" in told
    assert any(op.name == "graph.winograd_conv" for op in module.walk())


def test_weights_that_are_arguments_stay() -> None:
    class Given(nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return torch.conv2d(x, w)

    with torch.no_grad(), recording() as made:
        compiled(Given())(torch.randn(4, 64, 28, 28), torch.randn(64, 64, 3, 3))
    assert counted(made, graph.WinogradConv) == 0


def test_threads_without_blocks_of_their_own_count() -> None:
    """One block of tiles keeps one thread busy: with many threads the direct way is better."""
    shape = winograd.WinogradShape(
        batch=1, height=28, width=28, channels=128, channels_out=128, padding=(1, 1), bits=512,
        panel=32, down=winograd.TileLine(3, 1, 4), right=winograd.TileLine(3, 1, 4),
    )  # fmt: skip
    direct, ours = winograd_convolutions.work(shape, Target.named("avx512"))
    assert direct > 2 * ours
    many = Target.named("#irc.target<avx512, threads = 64>")
    direct, ours = winograd_convolutions.work(shape, many)
    assert direct < ours


# -- the algorithm and its kernel


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("taps", range(1, 10))
def test_the_matrices_compute_a_convolution(taps: int, stride: int) -> None:
    torch.manual_seed(4)
    for line in winograd.lines_of(taps, stride):
        signal = torch.randn(line.reads, dtype=torch.float64)
        weights = torch.randn(taps, dtype=torch.float64)
        b, g, a = (
            torch.tensor([[float(v) for v in row] for row in rows()], dtype=torch.float64)
            for rows in (line.image_matrix, line.weight_matrix, line.result_matrix)
        )
        assert b.shape == (line.products, line.reads) and a.shape == (line.tile, line.products)
        expected = (signal.unfold(0, taps, stride) * weights).sum(1)
        torch.testing.assert_close(a @ ((g @ weights) * (b @ signal)), expected)


def test_which_lines_there_are() -> None:
    """By the taps and the stride, the results of their tiles; 4 of 3 taps take 6 products, with a
    stride of 2 they take 9."""
    def tiles(taps: int, stride: int) -> list[int]:
        return [line.tile for line in winograd.lines_of(taps, stride)]

    assert tiles(3, 1) == [1, 2, 3, 4] and tiles(5, 1) == [1, 2] and tiles(7, 1) == [1]
    assert tiles(3, 2) == [1, 2, 3, 4] and tiles(7, 2) == [1, 2] and tiles(2, 3) == []
    assert winograd.TileLine(3, 1, 4).products == 6 and winograd.TileLine(3, 2, 4).products == 9


@pytest.mark.parametrize("line", [(10**9, 10**9, 1), (3, 1, 10**9), (10**12, 1, 1), (2, 3, 1)])
def test_numbers_that_no_line_has(line: tuple[int, int, int]) -> None:
    """Told at once, whatever a text says."""
    assert not winograd.TileLine(*line).known
