"""Results that once were less accurate than eager mode's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

import irc  # noqa: F401  (registers the backend)


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.double() - b).pow(2).mean().sqrt())


def test_means_of_values_far_from_zero_round_little() -> None:
    def f(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, None, None, weight, None, True, 0.1, 1e-3)

    torch._dynamo.reset()
    compiled = torch.compile(f, backend="irc")
    mine = eager = 0.0
    for seed in range(8):
        torch.manual_seed(seed)
        x, weight = torch.randn(2, 16, 33, 33) * 0.3 + 0.7, torch.rand(16) + 0.5
        exact = f(x.double(), weight.double())
        mine += distance(compiled(x, weight), exact)
        eager += distance(f(x, weight), exact)
    assert mine < 1.35 * eager


def test_running_means_of_many_values_round_little() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (x.shape[-1],))

    torch._dynamo.reset()
    torch.manual_seed(0)
    x = torch.randn(8, 100_001) * 0.3 + 0.7
    exact = f(x.double())
    mine = distance(torch.compile(f, backend="irc")(x), exact)
    assert mine < 2 * distance(f(x), exact)


@pytest.mark.parametrize("difference", [
    lambda a, b: a - b,
    lambda a, b: a + -b,
    lambda a, b: -a + b,
    lambda a, b: torch.sub(a, b, alpha=-1) - 2 * a,
], ids=("difference", "sum", "negated", "doubled"))  # fmt: skip
def test_equal_products_differ_by_zero(difference: Callable[..., torch.Tensor]) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    x, y = torch.randn(101), torch.randn(101)
    compiled = torch.compile(lambda a, b, c, d: difference(a * b, c * d), backend="irc")
    assert torch.equal(compiled(x, y, y.clone(), x.clone()), torch.zeros(101))


def test_gradient_of_layer_norm_over_one_element_is_zero() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    x, seed = torch.randn(33, 1, requires_grad=True), torch.randn(33, 1)
    compiled = torch.compile(lambda x, weight: F.layer_norm(x, (1,), weight), backend="irc")
    (got,) = torch.autograd.grad(compiled(x, torch.randn(1)), x, seed)
    assert torch.equal(got, torch.zeros(33, 1))


@pytest.mark.parametrize("reduce", [lambda y: y.amax(0), lambda y: y.amin((0, 1))])
def test_extremes_are_found_again_among_values_computed_anew(
    reduce: Callable[..., torch.Tensor],
) -> None:
    """Their gradient divides by how many there are: of bf16 ones that weren't rounded, none."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(64, 48, generator=generator).bfloat16().requires_grad_()

    def function(x: torch.Tensor) -> torch.Tensor:
        return reduce(F.gelu(x))

    (expected,) = torch.autograd.grad(function(x).float().sum(), x)
    torch._dynamo.reset()
    made = torch.compile(function, backend="irc", fullgraph=True)
    (got,) = torch.autograd.grad(made(x).float().sum(), x)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize(("rows", "columns"), [(100_000, 8), (70_001, 33)])
def test_variances_of_columns_of_many_rows_round_little(rows: int, columns: int) -> None:
    """Chunks of rows have moments of their own; joining them lost a digit with every 30,000."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    x = torch.rand(rows, columns)
    exact = x.double().var(0)
    mine = torch.compile(lambda x: x.var(0), backend="irc")(x).double()
    assert ((mine - exact) / exact).abs().max() < 4e-7
