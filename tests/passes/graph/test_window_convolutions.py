"""Convolutions channel by channel as sums over windows: values against float64, what is computed
along with them, and where they are left to the library."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

import irc
from irc.dialects import graph, loop
from irc.frontend.backend import recording
from irc.ir.core import Operation
from irc.ir.passes import PassContext, PassManager
from irc.ir.types import f32
from irc.options.options import from_mapping
from irc.pipeline import stages
from irc.target import Target
from irc.target.cpu import TargetFeatures
from irc.target.figures import evolve
from tests.machines import WIDEST

AVX512 = Target.named("avx512")
FAST = "own_windows = [200, 200], own_pair_windows = [200, 200]"
"""Whatever processor: irc is faster."""


@pytest.fixture(autouse=True)
def forget_programs() -> None:
    torch._dynamo.reset()


def depthwise(channels: int, taps: Any, **more: Any) -> nn.Conv2d:
    more.setdefault("padding", tuple(t // 2 for t in taps))
    return nn.Conv2d(channels, channels * more.pop("times", 1), taps, groups=channels, **more)


class Between(nn.Module):
    """A convolution between two of pixels, so that channels are innermost, with what follows."""

    def __init__(self, conv: nn.Conv2d, after: nn.Module, before: nn.Module) -> None:
        super().__init__()
        self.first = nn.Conv2d(5, conv.in_channels, 1)
        self.before, self.conv, self.after = before, conv, after
        self.last = nn.Conv2d(conv.out_channels, 6, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.last(self.after(self.conv(self.before(self.first(x)))))
        return y.sum((2, 3))


class NormOfChannels(nn.Module):
    """A layer norm over channels, as ConvNext has it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


CASES: dict[str, tuple[nn.Conv2d, nn.Module, tuple[int, int]]] = {
    "3x3": (depthwise(32, (3, 3)), nn.ReLU6(), (9, 13)),
    "odd channels": (depthwise(45, (3, 3)), nn.Hardswish(), (6, 11)),
    "7x7": (depthwise(32, (7, 7)), NormOfChannels(32), (14, 15)),
    "7x7 on a small image": (depthwise(48, (7, 7)), nn.Identity(), (6, 5)),
    "stride": (depthwise(48, (3, 3), stride=2), nn.BatchNorm2d(48), (13, 22)),
    "strides": (depthwise(48, (3, 5), stride=(1, 2)), nn.GELU(), (8, 19)),
    "dilation": (depthwise(32, (3, 3), dilation=2, padding=2), nn.ReLU(), (10, 18)),
    "no padding": (depthwise(32, (2, 5), padding=0), nn.ReLU(), (8, 21)),
    "wide padding": (depthwise(48, (3, 3), padding=4), nn.ReLU(), (4, 9)),
    "no bias": (depthwise(32, (5, 5), bias=False), nn.SiLU(), (9, 8)),
    "one row": (depthwise(32, (1, 7)), nn.Identity(), (4, 25)),
    "one column": (depthwise(32, (7, 1)), nn.ReLU(), (12, 8)),
}  # fmt: skip


def model_of(case: str) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    conv, after, size = copy.deepcopy(CASES[case])
    if isinstance(after, nn.BatchNorm2d) and after.running_mean is not None:
        after.running_mean.normal_()
    before = nn.ReLU6() if case == "3x3" else nn.Identity()
    return Between(conv, after, before).eval(), torch.randn(2, 5, *size)


def lowered(made: list[Any], frozen: bool, until: str) -> list[Operation]:
    """The operations of the recorded programs where a pass of "loop-to-kernel" is next."""
    options, found = from_mapping({"freezing": frozen}), list[Operation]()
    for one in made:
        module = one.imported.module
        for name, text in stages(AVX512, options).items():
            text = text.split(until)[0].rstrip(",") if name == "loop-to-kernel" else text
            if name != "functional":
                PassManager.parse(text).run(module, PassContext(target=AVX512, options=options))
            if name == "loop-to-kernel":
                break
        found += list(module.walk())
    return found


def having(key: str, ops: list[Operation]) -> list[loop.ComputeOp]:
    """The computes whose schedule has a key."""
    return [op for op in ops if isinstance(op, loop.ComputeOp) and op.schedule is not None
            and key in op.schedule.entries.as_dict()]  # fmt: skip


@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "plain"])
@pytest.mark.parametrize("case", list(CASES))
def test_values(case: str, frozen: bool) -> None:
    model, x = model_of(case)
    exact = copy.deepcopy(model).double()(x.double())
    options = {"freezing": frozen, "fx_graph_cache": False}
    with torch.no_grad(), recording() as made:
        result = torch.compile(model, backend="irc", options=options)(x)
    torch.testing.assert_close(result.double(), exact, rtol=1e-5, atol=1e-5)
    ops = lowered(made, frozen, "form-kernels")
    assert not any(isinstance(op, graph.PackedConv) and op.groups > 1 for op in ops)
    (reduction,) = having("jam_axis", ops)
    assert sum(a.kind == "red" for a in reduction.axis_list) in (1, 2)


@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "plain"])
@pytest.mark.parametrize("case", list(CASES))
def test_values_of_bf16(case: str, frozen: bool) -> None:
    """Sums are f32: a result is the exact one but for its own rounding. Infinities and NaN stay
    in the windows that hold them."""
    conv, _, size = copy.deepcopy(CASES[case])
    torch.manual_seed(0)
    x = torch.randn(2, conv.in_channels, *size).to(torch.bfloat16)
    x[0, 1, 2, 3], x[1, 2, -1, -1] = float("inf"), float("nan")
    x = x.to(memory_format=torch.channels_last)
    conv = conv.to(torch.bfloat16).eval()
    exact = copy.deepcopy(conv).double()(x.double())
    features = evolve(TargetFeatures.host(), own_pair_windows=(999, 999))
    target = str(Target(features, library=("bf16", "f32")))
    options = {"freezing": frozen, "fx_graph_cache": False, "target": target}
    irc.metrics.reset()
    with torch.no_grad(), recording() as made:
        result = torch.compile(conv, backend="irc", options=options)(x)
    assert irc.metrics.snapshot()["aten_calls"] == 0
    torch.testing.assert_close(result.double(), exact, rtol=2**-8, atol=1e-5, equal_nan=True)
    assert result.is_contiguous(memory_format=torch.channels_last)
    (reduction,) = having("jam_axis", lowered(made, frozen, "form-kernels"))
    assert reduction.results[0].type.element is f32  # type: ignore[attr-defined]


def test_a_weight_of_bf16_is_widened_once() -> None:
    """As it is laid out, not as it is multiplied."""
    conv = depthwise(32, (3, 3)).to(torch.bfloat16)
    with torch.no_grad(), recording() as made:
        torch.compile(conv, backend="irc", options={"fx_graph_cache": False})(
            torch.ones(2, 32, 9, 13, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
        )
    (reduction,) = having("jam_axis", lowered(made, False, "form-kernels"))
    elements = sorted(str(r.results[0].type) for r in reduction.reads)
    assert elements == ["bf16", "f32"]


def test_maps_are_computed_beside_the_sums() -> None:
    """A hardswish: nothing is handed on in memory."""
    model, x = model_of("odd channels")
    with torch.no_grad(), recording() as made:
        torch.compile(model, backend="irc", options={"fx_graph_cache": False})(x)
    assert len(having("beside_sums", lowered(made, False, "form-kernels"))) == 1


@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "plain"])
def test_sizes_that_are_symbols(frozen: bool) -> None:
    model, _ = model_of("7x7")
    exact = copy.deepcopy(model).double()
    options = {"freezing": frozen, "fx_graph_cache": False}
    run = torch.compile(model, backend="irc", dynamic=True, options=options)
    with torch.no_grad(), recording() as made:
        for size in ((2, 14, 15), (3, 9, 31), (5, 8, 8), (2, 2, 5)):
            x = torch.randn(size[0], 5, *size[1:])
            torch.testing.assert_close(run(x).double(), exact(x.double()), rtol=1e-5, atol=1e-5)
    assert len(made) == 1


def test_what_is_outside_is_multiplied_as_zeros() -> None:
    model, x = model_of("3x3")
    model.conv.weight.data[3, 0, 0, 0] = float("nan")  # type: ignore[union-attr]
    with torch.no_grad():
        result = torch.compile(model.conv, backend="irc")(  # type: ignore[arg-type]
            torch.ones(1, 32, 4, 6).to(memory_format=torch.channels_last)
        )
    assert result[0, 3].isnan().all() and not result[0, 4].isnan().any()


CHANNELS_LAST = torch.ones(2, 32, 9, 9).to(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("conv", "x", "reason"),
    [
        (depthwise(32, (3, 3)), CHANNELS_LAST, None),
        (depthwise(32, (3, 3)), CHANNELS_LAST.contiguous(), "channels are not innermost"),
        (depthwise(32, (3, 3)), CHANNELS_LAST.double(), "it is of f64"),
        (depthwise(32, (3, 3)), CHANNELS_LAST.bfloat16(), None),
        (depthwise(32, (3, 3)), CHANNELS_LAST.half(), "it is of f16"),
        (depthwise(20, (3, 3)), CHANNELS_LAST[:, :20], "leave 38% of their vectors empty"),
        (depthwise(32, (3, 9)), CHANNELS_LAST, "a row of its window has 9 elements"),
        (depthwise(32, (3, 3), times=3), CHANNELS_LAST, "several results of a channel"),
        (nn.Conv2d(32, 32, 3, groups=16), CHANNELS_LAST, "2 channels in each of 16 groups"),
    ],
    ids=str,
)
def test_what_is_left_to_the_library(conv: nn.Conv2d, x: torch.Tensor, reason: str | None) -> None:
    module = irc.trace(copy.deepcopy(conv).to(x.dtype), (x,))
    module.attributes["irc.target"] = irc.parse(
        "builtin.module attributes {irc.target = #irc.target<avx512>} {}"
    ).attributes["irc.target"]
    texts = stages(AVX512)
    PassManager.parse(f"{texts['functional']},{texts['aten-to-graph']}").run(module)
    calls = [op for op in module.walk() if isinstance(op, graph.CallAten)]
    assert len(calls) == (reason is not None)


def test_figures_say_who_computes_them() -> None:
    module = irc.trace(depthwise(32, (3, 3)), (CHANNELS_LAST,))
    slow = "#irc.target<avx512, own_windows = [90, 120]>"
    empty = irc.parse(f"builtin.module attributes {{irc.target = {slow}}} {{}}")
    module.attributes["irc.target"] = empty.attributes["irc.target"]
    PassManager.parse("functional,convert-aten-to-graph,window-convolutions").run(module)
    assert any(isinstance(op, graph.CallAten) for op in module.walk())


def test_a_weight_that_is_read_often_is_laid_out_first() -> None:
    """By a map of its own, unless the figure says that it is not read often enough."""
    computes = []
    for reads in (16, 1_000_000):
        module = irc.trace(depthwise(32, (3, 3)), (CHANNELS_LAST,))
        told = f"#irc.target<avx512, turned_reads = {reads}>"
        empty = irc.parse(f"builtin.module attributes {{irc.target = {told}}} {{}}")
        module.attributes["irc.target"] = empty.attributes["irc.target"]
        for name in ("functional", "aten-to-graph", "graph-to-layout", "layout-to-loop"):
            PassManager.parse(stages(AVX512)[name]).run(module)
        PassManager.parse("inline-computes").run(module)
        computes.append(sum(isinstance(op, loop.ComputeOp) for op in module.walk()))
    assert computes[0] == computes[1] + 1


LINES: dict[str, dict[str, Any]] = {
    "causal": {"taps": 4, "padding": 3}, "no padding": {"taps": 3}, "one tap": {"taps": 1},
    "dilation": {"taps": 3, "padding": 4, "dilation": 4}, "no bias": {"taps": 5, "bias": False},
    "stride": {"taps": 4, "padding": 1, "stride": 2}, "few channels": {"channels": 3, "taps": 4},
    "short": {"taps": 4, "padding": 3, "places": 2}, "wide": {"taps": 7, "padding": 3},
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", list(LINES))
def test_lines(case: str, dtype: torch.dtype) -> None:
    """Convolutions with one dimension, as they lie: values, and no call of the library."""
    torch.manual_seed(0)
    more = dict(LINES[case])
    channels, places, taps = more.pop("channels", 20), more.pop("places", 37), more.pop("taps")
    model = nn.Sequential(
        nn.Conv1d(channels, channels, taps, groups=channels, **more), nn.SiLU()
    ).to(dtype)  # fmt: skip
    x = torch.randn(2, channels, places).to(dtype)
    exact = copy.deepcopy(model).double()(x.double())
    options = {"target": f"#irc.target<{WIDEST}, {FAST}>"}
    with torch.no_grad(), recording() as made:
        result = torch.compile(model, backend="irc", options=options)(x)
    bound = 1e-5 if dtype is torch.float32 else 2e-2
    torch.testing.assert_close(result.double(), exact, rtol=bound, atol=bound)
    assert result.is_contiguous()
    calls = [op for one in made for op in lowered([one], False, "schedule")
             if isinstance(op, graph.CallAten)]  # fmt: skip
    assert not calls


def test_lines_whose_channels_are_innermost() -> None:
    """As of images."""
    torch.manual_seed(0)
    conv = nn.Conv1d(32, 32, 4, padding=3, groups=32).eval()
    x = torch.randn(2, 40, 32)
    exact = copy.deepcopy(conv).double()(x.double().transpose(1, 2))[..., :40]
    options = {"target": f"#irc.target<{WIDEST}, {FAST}>"}
    with torch.no_grad(), recording() as made:
        run = torch.compile(lambda t: conv(t.transpose(1, 2))[..., :40], backend="irc",
                            options=options)  # fmt: skip
        torch.testing.assert_close(run(x).double(), exact, rtol=1e-5, atol=1e-5)
    ops = lowered(made, False, "schedule")
    assert not any(isinstance(op, graph.CallAten) for op in ops)
