"""The pass merge-linears: which linears are computed at once, with which values."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from irc.dialects import graph
from tests.passes.frozen.freezing_support import calls, check, of_class

PASSES = "merge-linears,fold-constants"


class Several(nn.Module):
    """Linears of these widths on one input."""

    def __init__(self, *widths: int, bias: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linears = nn.ModuleList(nn.Linear(6, n, bias=bias) for n in widths)

    def forward(self, x: torch.Tensor) -> Any:
        return tuple(linear(x) for linear in self.linears)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(5, 6), (2, 3, 6)])
def test_equal_linears_are_merged(bias: bool, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    model = Several(4, 4, 4, bias=bias).to(dtype)
    module, context = check(model, torch.rand(shape).to(dtype), passes=PASSES)
    (call,) = calls(module)
    assert call.callee == f"aten.{'addmm' if bias else 'mm'}.default"
    assert call.results[0].type.shape[-1] == 12
    assert len(of_class(module, graph.Slice)) == 3
    assert context.statistics["merge-linears", "merged"] == 3


def test_linears_of_other_sizes_stay() -> None:
    module, _ = check(Several(4, 3, 4, 5), torch.rand(5, 6), passes=PASSES)
    assert len(calls(module)) == 3


def test_at_most_so_many_at_a_time() -> None:
    module, _ = check(Several(*[4] * 5), torch.rand(5, 6), passes="merge-linears{limit=2}")
    assert sorted(c.results[0].type.shape[1] for c in calls(module)) == [4, 8, 8]


def test_linears_with_and_without_bias_are_not_mixed() -> None:
    model = Several(4, 4, 4)
    model.linears[1].bias = None
    module, _ = check(model, torch.rand(5, 6), passes=PASSES)
    assert len(calls(module)) == 2


def test_linears_on_other_inputs_stay() -> None:
    class Chain(Several):
        def forward(self, x: torch.Tensor) -> Any:
            first, second = self.linears
            return second(first(x)), first(x + 1)

    module, _ = check(Chain(6, 6), torch.rand(5, 6), passes=PASSES)
    assert len(calls(module)) == 3


def test_a_bias_that_varies_by_row_is_not_merged() -> None:
    class Rows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.ParameterList(torch.rand(6, 4) for _ in range(2))
            self.b = nn.Parameter(torch.rand(5, 4))

        def forward(self, x: torch.Tensor) -> Any:
            return tuple(torch.addmm(self.b, x, w) for w in self.w)

    module, _ = check(Rows(), torch.rand(5, 6), passes=PASSES)
    assert len(calls(module)) == 2


def test_scaled_products_stay() -> None:
    class Scaled(Several):
        def forward(self, x: torch.Tensor) -> Any:
            return tuple(
                torch.addmm(m.bias, x, m.weight.t(), beta=2.0, alpha=0.5) for m in self.linears
            )

    module, _ = check(Scaled(4, 4), torch.rand(5, 6), passes=PASSES)
    assert len(calls(module)) == 2


def test_casts_of_weights_move_before_the_merged_product() -> None:
    class Cast(Several):
        def forward(self, x: torch.Tensor) -> Any:
            first, second = self.linears
            early = x @ first.weight.to(torch.bfloat16).t()
            return early, (x @ (second.weight * 2).to(torch.bfloat16).t()).relu()

    module, _ = check(Cast(4, 4), torch.rand(5, 6).to(torch.bfloat16), passes=PASSES,
                      tolerance=2e-2)  # fmt: skip
    assert len(calls(module)) == 1
