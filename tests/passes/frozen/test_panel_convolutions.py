"""Frozen 1x1 convolutions in kernels of our own: values on odd sizes, and why others are not."""

from __future__ import annotations

import copy
from typing import Any

import attrs
import pytest
import torch
from torch import nn

import irc
from irc.dialects import graph
from irc.frontend.backend import recording
from irc.ir.passes import PassManager
from irc.options.options import from_mapping
from irc.passes.frozen.panel_convolutions import PanelConvolutions
from irc.pipeline import pipeline_text, stages
from irc.target import Target
from irc.target.cpu import TargetFeatures
from irc.target.figures import evolve
from tests.passes.frozen.frozen_convolutions import (
    OPTIONS,
    Residual,
    check,
    check_sizes,
    compiled,
    relative_error,
    threads,
    told_of,
)

pytestmark = pytest.mark.usefixtures("forget_programs")


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every convolution that can be is rewritten."""
    monkeypatch.setattr(PanelConvolutions, "refusal", lambda self, *_: None)


# batch, channels, channels out, height, width, stride
SHAPES = [
    (2, 64, 96, 30, 21, 1),  # several blocks, and rows left
    (1, 7, 70, 13, 11, (2, 3)),  # every second row, every third column
    (3, 1024, 33, 5, 3, 1),  # rows that share sets of the cache
    (1, 3, 5, 1, 1, 1),  # one pixel
    (4, 160, 64, 8, 8, 1),  # whole tiles alone
    (1, 2100, 20, 3, 3, 1),  # sums in parts of the depth
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(shape: Any, always: None) -> None:
    torch.manual_seed(0)
    batch, channels, out, high, wide, stride = shape
    model = nn.Sequential(nn.Conv2d(channels, out, 1, stride=stride, bias=batch != 2)).eval()
    x = torch.randn(batch, channels, high, wide)
    if batch == 3:
        x = x.contiguous(memory_format=torch.channels_last)
    result = check(model, x, graph.DotGeneral, 1, 1e-6)
    assert result.stride() == model(x).stride()


# channels, channels out, window, stride
PATCHES = [(3, 96, 4, 4), (48, 33, 2, 2), (5, 40, (3, 2), (4, 2)), (6, 20, (1, 3), (2, 3))]


@pytest.mark.parametrize("patch", PATCHES, ids=str)
@pytest.mark.parametrize("last", [False, True], ids=["rows", "channels-last"])
def test_patches_that_lie_beside_each_other(patch: Any, last: bool, always: None) -> None:
    torch.manual_seed(4)
    channels, out, window, stride = patch
    model = nn.Sequential(nn.Conv2d(channels, out, window, stride), nn.ReLU()).eval()
    x = torch.randn(2, channels, 21, 14)
    if last:
        x = x.contiguous(memory_format=torch.channels_last)
    check(model, x, graph.DotGeneral, 1, 1e-6)


@pytest.mark.parametrize("last", [
    nn.ReLU(), nn.LeakyReLU(0.2), nn.Hardtanh(-0.25, 0.5), nn.Hardswish(), nn.SiLU(),
    nn.Identity(),
])  # fmt: skip
def test_what_follows_a_convolution(last: nn.Module, always: None) -> None:
    torch.manual_seed(1)
    first, second = nn.Conv2d(24, 40, 1, bias=False), nn.Conv2d(40, 24, 1)
    model = Residual(first, second, last, sums_last=True).eval()
    x = torch.randn(2, 24, 9, 11)
    check(model, x, graph.DotGeneral, 2, 1e-6)


def test_threads_have_workspaces_of_their_own(always: None) -> None:
    model = nn.Sequential(nn.Conv2d(32, 1024, 1, stride=2)).eval()
    x = torch.randn(5, 32, 60, 61)
    with threads(4):
        check(model, x, graph.DotGeneral, 1, 4e-6, calls=5)


def test_all_sizes_through_one_program(always: None) -> None:
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(8, 24, 1), nn.ReLU(), nn.Conv2d(24, 5, 1, stride=2)).eval()
    check_sizes(model, [(2, 8, 9, 14), (5, 8, 4, 5), (3, 8, 31, 7)], 1e-6)


def test_nan_stays_where_it_is(always: None) -> None:
    model = nn.Sequential(nn.Conv2d(4, 6, 1), nn.ReLU()).eval()
    x = torch.randn(1, 4, 5, 7)
    x[0, 2, 3, 4] = float("nan")
    with torch.no_grad():
        result, expected = compiled(model)(x), model(x)
    torch.testing.assert_close(result, expected, equal_nan=True)
    assert result[0, :, 3, 4].isnan().all() and result.isnan().sum() == 6


def test_the_option_turns_it_off() -> None:
    frozen = from_mapping({"freezing": True})
    assert "panel-convolutions" in pipeline_text("llvm", frozen)
    assert "panel-convolutions" not in pipeline_text("triton", frozen)
    for name in ("panel_convolutions", "layout_optimization", "freezing"):
        assert "panel-convolutions" not in pipeline_text("llvm", frozen.replace(**{name: False}))


REFUSED = [
    (nn.Conv2d(64, 64, 3), "its 3x3 windows overlap, with a stride of [1, 1]"),
    (nn.Conv2d(64, 64, 2, stride=(2, 1)), "its 2x2 windows overlap, with a stride of [2, 1]"),
    (nn.Conv2d(64, 64, 2, stride=2, dilation=2), "its 2x2 windows overlap, with a stride"),
    (nn.Conv2d(64, 64, 1, groups=2), "its padding is [0, 0], and it has 2 groups"),
    (nn.Conv2d(64, 64, 1, padding=1), "its padding is [1, 1], and it has 1 groups"),
    (nn.ConvTranspose2d(64, 64, 1), "it is transposed"),
    (nn.Conv2d(64, 64, 1).double(), "it is of f64 on cpu, not of f32 or bf16 on cpu"),
    (nn.Conv2d(64, 64, (2, 1), stride=(2, 1)).bfloat16(), "terms of its 2x1 windows lie apart"),
    (nn.Conv2d(64, 16, 1), "64 elements to 16 channels for 264 places are few"),
    (nn.Sequential(nn.Conv2d(64, 64, 1), nn.SiLU()),
     "a function of its result is left to the library"),
]  # fmt: skip


@pytest.mark.parametrize(("figure", "taken"), [(102, True), (100, False)])
def test_bf16_is_ours_where_the_figures_say_so(figure: int, taken: bool) -> None:
    """Those of products with frozen weights in panels; with what is computed behind them."""
    torch.manual_seed(5)
    first, second = nn.Conv2d(64, 96, 1, bias=False), nn.Conv2d(96, 64, 1)
    model = Residual(first, second, nn.ReLU(), sums_last=False).eval().bfloat16()
    x = torch.randn(2, 64, 12, 11).bfloat16()
    features = evolve(TargetFeatures.host(), own_pair_panels=(figure,) * 3)
    sets = tuple(name for name in features.sets if not name.startswith("amx"))
    target = Target(attrs.evolve(features, sets=sets), library=("f32", "bf16"))
    if not (taken or torch.ops.mkldnn._is_mkldnn_bf16_supported()):
        pytest.skip("oneDNN computes no bf16 here")
    irc.metrics.reset()
    program = torch.compile(model, backend="irc", options={**OPTIONS, "target": str(target)})
    exact = copy.deepcopy(model).double()(x.double())
    with torch.no_grad():
        assert relative_error(program(x), exact) < 6e-3
    assert (irc.metrics.aten_calls == 0) == taken


@pytest.mark.parametrize(("model", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_why_not(model: nn.Module, why: str) -> None:
    dtype = next(model.parameters()).dtype
    x = torch.randn(2, 64, 12, 11, dtype=dtype)
    told, module = told_of(nn.Sequential(model), x, "fold-constants", winograd=False)
    assert f"is not computed by a kernel of ours: {why}" in told
    assert not any(isinstance(op, graph.DotGeneral) for op in module.walk())


class Blocks(nn.Module):
    """Two residual blocks, the first of which reduces the image."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.first = nn.Conv2d(24, 40, 1, stride=2), nn.Conv2d(24, 40, 1, stride=2)
        self.second, self.last = nn.Conv2d(40, 32, 1), nn.Conv2d(32, 40, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.down(x) + self.first(x))
        return torch.relu(self.last(torch.relu(self.second(y))) + y)


def test_what_follows_is_computed_along_with_the_sums(always: None) -> None:
    """Each relu stands in the kernel of a convolution, and none is computed twice."""
    torch.manual_seed(3)
    model, x = Blocks().eval(), torch.randn(2, 24, 18, 22)
    with torch.no_grad(), recording() as made:
        compiled(model)(x)
    module = made[0].imported.module
    for text in stages("llvm", from_mapping(OPTIONS)).values():
        PassManager.parse(text.partition(",schedule")[0]).run(module)
        if any(op.name == "loop.compute" for op in module.walk()) and "group-computes" in text:
            break
    function = module.lookup("main")
    outer = [op.name for op in function.block.ops if op.name.startswith("loop.")]
    relus = [op for op in module.walk() if op.name == "arith.maximumf"]
    assert sorted(outer) == ["loop.compute", *["loop.group"] * 3] and len(relus) == 3


def test_a_result_that_two_read_is_stored_once(always: None) -> None:
    check(Blocks().eval(), torch.randn(2, 24, 18, 22), graph.DotGeneral, 4, 1e-6)
