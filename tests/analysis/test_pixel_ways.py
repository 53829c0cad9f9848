"""Who computes convolutions of single pixels whose weights aren't frozen, by a CPU's figures; and
that the default pipeline does what they say, with eager mode's values."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import irc
from irc.analysis.pixel_ways import pixel_speed
from irc.dialects import graph
from irc.ir.passes import PassContext, PassManager
from irc.options.options import from_mapping
from irc.pipeline import stages
from irc.target import Target
from irc.target.cpu import TargetFeatures
from irc.target.figures import evolve
from tests.analysis.test_processor_ways import call_of
from tests.passes.frozen.freezing_support import known_program

FIGURES = """product_rows = [4, 16, 128], own_pixels = [200, 150, 90],
             own_pair_pixels = [120, 110, 100]"""


def target(kind: str = "avx2") -> Target:
    """A CPU whose kernels have such shares of the library's speed."""
    return Target.named(f"#irc.target<{kind}, {FIGURES}>")


def images(count: int, channels: int, size: int, out: int, taps: int = 1, **rest: Any) -> Any:
    """A convolution's image and weight."""
    return torch.empty(count, channels, size, size, **rest), torch.empty(
        out, channels, taps, taps, **rest
    )


@pytest.mark.parametrize(
    ("count", "size", "out", "plain", "pairs"),
    [(1, 1, 300, 0, 0), (1, 2, 300, 200, 120), (1, 4, 300, 150, 110), (8, 4, 300, 90, 100),
     (8, 4, 16, 150, 110), (8, 4, 4, 200, 120), (8, 4, 3, 0, 0)],
)  # fmt: skip
def test_the_fewer_of_places_and_channels_decide(
    count: int, size: int, out: int, plain: int, pairs: int
) -> None:
    for dtype, speed in ((torch.float32, plain), (torch.bfloat16, pairs), (torch.float64, 0)):
        call = call_of(functional.conv2d, *images(count, 20, size, out, dtype=dtype))
        assert pixel_speed(call, target()) == speed


@pytest.mark.parametrize(
    "options",
    [{"padding": 1}, {"taps": 3}, {"groups": 2}, {"dilation": 2, "taps": 2, "stride": 2},
     {"taps": 2, "stride": 2}],
)  # fmt: skip
def test_other_convolutions_have_no_figure(options: dict[str, Any]) -> None:
    taps, groups = options.pop("taps", 1), options.get("groups", 1)
    x, _ = images(2, 20, 6, 30)
    weight = torch.empty(30, 20 // groups, taps, taps)
    call = call_of(lambda x, w: functional.conv2d(x, w, **options), x, weight)
    assert pixel_speed(call, target()) == 0
    call = call_of(functional.conv_transpose2d, *images(2, 20, 6, 20))
    assert pixel_speed(call, target()) == 0


def test_of_symbols_the_least_gain_counts() -> None:
    x, weight = images(8, 20, 6, 300)
    call = call_of(lambda x: functional.conv2d(x, weight), x, dynamic=True)
    assert pixel_speed(call, target()) == 90
    call = call_of(functional.conv2d, x, weight)
    assert pixel_speed(call, target()) == 90


def chosen(model: nn.Module, x: torch.Tensor, record: Target, **options: Any) -> list[str]:
    """What computes the convolutions of a model: names of operations."""
    told = from_mapping(options)
    module, text = known_program(model, x), stages(record, told)
    context = PassContext(target=record, options=told)
    passes = ["functional", "freeze"] if told.freezing else ["functional"]
    for name in (*passes, text["aten-to-graph"]):
        PassManager.parse(name, verify="each").run(module, context)
    kinds = (graph.CallAten, graph.DotGeneral, graph.PackedConv)
    return [type(op).__name__ for op in module.walk() if isinstance(op, kinds)]


@pytest.mark.parametrize("format_", [torch.contiguous_format, torch.channels_last])
def test_the_pipeline_does_as_the_figures_say(format_: torch.memory_format) -> None:
    model = nn.Conv2d(20, 32, 1).eval()
    x = torch.randn(2, 20, 4, 4).contiguous(memory_format=format_)
    assert chosen(model, x, target()) == ["DotGeneral"]
    slow = Target(evolve(target().features, own_pixels=(200, 101, 90)))
    assert chosen(model, x, slow) == ["DotGeneral"]
    slow = Target(evolve(target().features, own_pixels=(200, 100, 200)))
    assert chosen(model, x, slow) == ["CallAten"]
    assert chosen(model, x, target(), max_autotune_conv_backends="ATEN") == ["CallAten"]


def test_frozen_weights_are_packed_as_before() -> None:
    """What panel-convolutions leaves to the library isn't taken from it as an unfrozen one."""
    model, x = nn.Conv2d(20, 32, 1).eval(), torch.randn(2, 20, 4, 4)
    record = Target.named(f"#irc.target<avx2, panel_channels = 99, {FIGURES}>")
    assert "DotGeneral" not in chosen(model, x, record, freezing=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("format_", [torch.contiguous_format, torch.channels_last])
def test_values(dtype: torch.dtype, dynamic: bool, format_: torch.memory_format) -> None:
    """Strides, odd channels, what is no number, what follows, gradients, images of one pixel."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(19, 37, 1, bias=False), nn.BatchNorm2d(37), nn.ReLU(), nn.Conv2d(37, 16, 1, 2),
        nn.Sigmoid(),
    ).to(dtype).eval()  # fmt: skip
    wide = copy.deepcopy(model).double()
    features = TargetFeatures.host()
    every = evolve(features, own_pixels=(999,) * 3, own_pair_pixels=(999,) * 3, own_split=(1,) * 3)
    irc.metrics.reset()
    torch._dynamo.reset()
    program = torch.compile(model, backend="irc", dynamic=dynamic,
                            options={"target": str(Target(every))})  # fmt: skip
    bound = 1e-5 if dtype is torch.float32 else 2e-2
    for count, size in ((3, 9), (2, 4), (1, 5), (2, 1)) if dynamic else ((3, 9),):
        x = torch.randn(count, 19, size, size).to(dtype).contiguous(memory_format=format_)
        x[0, 0, 0, 0] = float("nan")
        with torch.no_grad():
            made, eager = program(x), model(x)
        assert made.stride() == eager.stride()
        torch.testing.assert_close(made.double(), wide(x.double()), rtol=bound, atol=bound,
                                   equal_nan=True)  # fmt: skip
    assert irc.metrics.aten_calls == 0
    if dynamic:
        return
    x = torch.randn(2, 19, 8, 8).to(dtype).contiguous(memory_format=format_).requires_grad_()
    program(x).float().square().sum().backward()
    exact = x.detach().double().requires_grad_()
    wide(exact).square().sum().backward()
    assert x.grad is not None and exact.grad is not None
    torch.testing.assert_close(x.grad.double(), exact.grad, rtol=10 * bound, atol=10 * bound)


def test_features_are_kept() -> None:
    """A record's figures come back from its text."""
    record = target("avx512")
    assert Target.named(str(record)) == record
    assert record.features.own_pixels == (200, 150, 90)
