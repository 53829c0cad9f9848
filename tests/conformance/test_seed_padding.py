"""Rows on padding that need no pass: views, attention, and operands with strides of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch._dynamo
from torch import nn

from tests.backends import BACKEND, needs_backend
from tests.conformance.seed_support import assert_equal, options

pytestmark = needs_backend
seed = pytest.mark.seed


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Neither compiled code nor random numbers go from test to test."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


class Attention(nn.Module):
    """Attention written out with views and permutations."""

    def __init__(self, batch: int, length: int, heads: int, width: int) -> None:
        super().__init__()
        self.batch, self.length, self.heads, self.width = batch, length, heads, width
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(self.batch, self.length, self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (self.split(f(x)) for f in (self.query, self.key, self.value))
        scores = torch.matmul(query, key.permute(0, 1, 3, 2))
        weights = (scores * (self.heads / self.width) ** 0.5).softmax(dim=-1)
        mixed = torch.matmul(weights, value)
        return mixed.permute(0, 2, 1, 3).view(self.batch, self.length, self.width)


@seed("PAD-06")
def test_attention_written_out() -> None:
    model = Attention(batch=1, length=4, heads=1, width=16)
    x = torch.randn(1, 4, 16)
    compiled = torch.compile(model, backend=BACKEND, options=options(pattern_matcher=False))
    actual, expected = compiled(x), model(x)
    assert_equal(actual, expected, tolerance=1e-3)
    wanted = torch.autograd.grad(expected.square().sum(), list(model.parameters()))
    mine = torch.autograd.grad(actual.square().sum(), list(model.parameters()))
    assert_equal(mine, wanted, tolerance=1e-3)


@seed("PAD-07")
def test_a_view_stays_a_view() -> None:
    x = torch.randn(3, 9)
    y = torch.compile(lambda x: x.view(3, 3, 3), backend=BACKEND, fullgraph=True)(x)
    assert_equal(y, x.view(3, 3, 3))
    assert y.data_ptr() == x.data_ptr()
    y.zero_()
    assert not x.any()


def convolve(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.convolution(x, weight, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)


def check_padded_rows(channels: int, out: int, height: int, width: int, stride: int) -> None:
    dense = torch.randn(1, channels, height, width)
    plane = stride * height
    padded = torch.empty_strided(dense.shape, (plane * channels, plane, stride, 1)).copy_(dense)
    weight = torch.randn(out, channels, 3, 3)
    compiled = torch.compile(convolve, backend=BACKEND, fullgraph=True)
    expected = convolve(dense, weight)
    torch.testing.assert_close(compiled(padded, weight), expected, atol=1e-3, rtol=1e-3)


@seed("PAD-08")
def test_a_convolution_of_padded_rows() -> None:
    check_padded_rows(channels=8, out=6, height=20, width=31, stride=32)


@seed("PAD-08")
@pytest.mark.slow
def test_a_convolution_of_padded_rows_at_full_size() -> None:
    check_padded_rows(channels=128, out=64, height=640, width=959, stride=960)


@seed("PAD-13")
@pytest.mark.parametrize(
    ("inner", "stride"),
    [
        (768, 768),
        (762, 768),
        pytest.param(30528, 30528, marks=pytest.mark.slow),
        pytest.param(30522, 30528, marks=pytest.mark.slow),
    ],
)
def test_a_product_into_the_users_tensor(inner: int, stride: int) -> None:
    x = torch.empty_strided((64, inner), (stride, 1), dtype=torch.float16).normal_()
    weight = torch.randn(inner, 768, dtype=torch.float16)
    out = torch.randn(64, 768, dtype=torch.float16)

    def multiply(x, weight, out):
        torch.mm(x, weight, out=out)
        return out

    result = torch.compile(multiply, backend=BACKEND)(x, weight, out)
    assert result.data_ptr() == out.data_ptr()
    assert_equal(result, torch.mm(x, weight))
