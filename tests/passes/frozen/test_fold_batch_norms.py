"""The pass fold-batch-norms: chains of scales and shifts, types, and what must not be folded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from irc.dialects import graph
from tests.passes.frozen.freezing_support import (
    calls,
    check,
    frozen_program,
    norm_with_statistics,
    of_class,
)

PASSES = "fold-batch-norms,fold-constants"
ARITHMETIC = (graph.Add, graph.Sub, graph.Mul, graph.Div)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


class After(nn.Module):
    """A product, and a function of its result and of vectors of its channels."""

    def __init__(self, product: nn.Module, function: Callable[..., Any], *sizes: int) -> None:
        super().__init__()
        self.product, self.function = product, function
        self.vectors = nn.ParameterList(torch.rand(n) + 0.5 for n in sizes)

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(self.product(x), *self.vectors)


def folded(model: nn.Module, x: torch.Tensor, tolerance: float = 1e-5) -> int:
    """How many chains were folded; values are compared with eager's."""
    module, context = check(model.eval(), x, passes=PASSES, tolerance=tolerance)
    count: int = context.statistics["fold-batch-norms", "folded"]
    if count:
        assert not of_class(module, *ARITHMETIC)
    return count


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_a_norm_after_a_convolution(dims: int, transposed: bool, bias: bool) -> None:
    convolution = getattr(nn, f"Conv{'Transpose' if transposed else ''}{dims}d")(4, 6, 3, bias=bias)
    norm = norm_with_statistics(getattr(nn, f"BatchNorm{dims}d")(6))
    assert folded(nn.Sequential(convolution, norm), torch.rand(2, 4, *[7] * dims)) == 1


def test_a_norm_after_a_grouped_convolution() -> None:
    norm = norm_with_statistics(nn.BatchNorm2d(6))
    model = nn.Sequential(nn.Conv2d(4, 6, 3, groups=2), norm)
    assert folded(model, torch.rand(2, 4, 7, 7)) == 1
    model = nn.Sequential(nn.ConvTranspose2d(4, 6, 3, groups=2), norm)
    assert folded(model, torch.rand(2, 4, 7, 7)) == 0


@pytest.mark.parametrize("bias", [False, True])
def test_a_norm_after_a_linear(bias: bool) -> None:
    norm = norm_with_statistics(nn.BatchNorm1d(6))
    assert folded(nn.Sequential(nn.Linear(4, 6, bias=bias), norm), torch.rand(9, 4)) == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_the_new_weight_has_the_type_of_the_old_one(dtype: torch.dtype) -> None:
    norm = norm_with_statistics(nn.BatchNorm2d(6))
    model = nn.Sequential(nn.Conv2d(4, 6, 3), norm).to(dtype)
    tolerance = 1e-8 if dtype is torch.float64 else 3e-2
    assert folded(model, torch.rand(2, 4, 7, 7).to(dtype), tolerance) == 1


def test_a_norm_of_f32_after_a_convolution_of_bf16() -> None:
    norm = norm_with_statistics(nn.BatchNorm2d(6))
    model = nn.Sequential(nn.Conv2d(4, 6, 3).to(torch.bfloat16), norm)
    assert folded(model, torch.rand(2, 4, 7, 7).to(torch.bfloat16), 3e-2) == 1


def test_every_kind_of_step() -> None:
    def chain(y: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a, b = a.view(6, 1, 1), b.view(1, 6, 1, 1)
        return (3.0 - (((y - a) * b) / a + 2.0)) / b

    assert folded(After(nn.Conv2d(4, 6, 3), chain, 6, 6), torch.rand(2, 4, 7, 7)) == 1


def test_views_between_are_kept() -> None:
    def scale(y: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return (y.view(2, 3, 5, 6).permute(0, 3, 1, 2) * g.view(6, 1, 1)).flatten(2)

    model = After(nn.Linear(4, 6), scale, 6)
    assert folded(model, torch.rand(2, 3, 5, 4)) == 1


def test_views_that_mix_channels_are_not_followed() -> None:
    def scale(y: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return y.view(2, 3, 2, 5, 5) * g.view(3, 1, 1, 1)

    assert folded(After(nn.Conv2d(4, 6, 3), scale, 3), torch.rand(2, 4, 7, 7)) == 0


def test_a_constant_along_another_dimension_stays() -> None:
    assert folded(After(nn.Conv2d(4, 5, 3), torch.mul, 5), torch.rand(2, 4, 7, 7)) == 0


def test_other_uses_keep_the_product() -> None:
    model = After(nn.Conv2d(4, 6, 3), lambda y, g: (y, y * g.view(6, 1, 1)), 6)
    module, context = check(model, torch.rand(2, 4, 7, 7), passes=PASSES)
    assert len(calls(module)) == 1
    assert "it has other uses" in context.remarks[-1].message


def test_a_result_of_a_wider_type_keeps_it() -> None:
    model = After(nn.Conv2d(4, 6, 3).to(torch.bfloat16), lambda y, g: y * g.view(6, 1, 1), 6)
    x = torch.rand(2, 4, 7, 7).to(torch.bfloat16)
    module, context = check(model, x, passes=PASSES)
    assert not context.statistics["fold-batch-norms", "folded"]
    assert module.lookup("main").type.results[0].element.name == "f32"  # type: ignore[union-attr]


def test_a_sum_alone_is_folded_into_a_convolution_only() -> None:
    add = lambda y, b: y + b.view(6, *[1] * (y.dim() - 2))  # noqa: E731
    assert folded(After(nn.Conv2d(4, 6, 3, bias=False), add, 6), torch.rand(2, 4, 7, 7)) == 1
    assert folded(After(nn.Linear(4, 6), add, 6), torch.rand(9, 4)) == 0


def test_weights_that_are_no_constants_stay() -> None:
    class Given(nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return nn.functional.conv2d(x, w) * 2

    module, context = frozen_program(
        Given(), torch.rand(1, 2, 5, 5), torch.rand(3, 2, 3, 3), passes=PASSES
    )
    assert not context.statistics["fold-batch-norms", "folded"]


def test_statistics_of_the_batch_are_not_folded() -> None:
    model = nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6, track_running_stats=False))
    assert folded(model, torch.rand(2, 4, 7, 7)) == 0


def test_symbolic_sizes() -> None:
    model = nn.Sequential(nn.Conv2d(4, 6, 3), norm_with_statistics(nn.BatchNorm2d(6))).eval()
    module, context = frozen_program(model, torch.rand(2, 4, 7, 7), passes=PASSES, dynamic=True)
    assert context.statistics["fold-batch-norms", "folded"] == 1
    from irc.interp.core import run

    for shape in ((2, 4, 7, 7), (3, 4, 9, 8)):
        x = torch.rand(shape)
        torch.testing.assert_close(run(module, x)[0], model(x).detach(), atol=1e-5, rtol=1e-5)
