"""8-bit floats on a CPU: conversions exactly as torch's, and everything that only moves them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

DTYPES = [
    torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
]  # fmt: skip
ALL_BITS = torch.arange(256, dtype=torch.uint8)


Function = Callable[..., torch.Tensor]


def compiled(function: Function, dynamic: bool = False) -> Function:
    torch._dynamo.reset()
    return torch.compile(function, backend="irc", fullgraph=True, dynamic=dynamic)


def same_bits(a: torch.Tensor, b: torch.Tensor) -> None:
    assert a.dtype == b.dtype and a.stride() == b.stride()
    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    assert torch.equal(a.view(integers), b.view(integers))


def edges(dtype: torch.dtype) -> torch.Tensor:
    """Each finite number of the type, what lies halfway to the next and a little off that."""
    numbers = ALL_BITS.view(dtype).double()
    numbers = numbers[numbers.isfinite()].unique()
    last = numbers[-1:] * 2 - numbers[-2:-1]
    numbers = torch.cat([-last, numbers, last])
    halves = (numbers[1:] + numbers[:-1]) / 2
    near = [halves * f for f in (1 - 1e-6, 1.0, 1 + 1e-6)]
    extreme = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 3e38, -3e38, 1e-40])
    return torch.cat([numbers, *near, extreme.double()]).float()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_number_is_widened(dtype: torch.dtype) -> None:
    source = ALL_BITS.view(dtype)
    for wide in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        got, exact = compiled(lambda x, t=wide: x.to(t))(source), source.to(wide)
        assert torch.equal(got.isnan(), exact.isnan())
        same_bits(got.nan_to_num(7), exact.nan_to_num(7))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numbers_are_rounded_to_even(dtype: torch.dtype) -> None:
    numbers = edges(dtype)
    same_bits(compiled(lambda x: x.to(dtype))(numbers), numbers.to(dtype))
    half = numbers.bfloat16()
    same_bits(compiled(lambda x: x.to(dtype))(half), half.to(dtype))
    wide = numbers.double() * (1 + 1e-12)
    same_bits(compiled(lambda x: x.to(dtype))(wide), wide.to(dtype))


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_round_trip_rounds(dynamic: bool) -> None:
    x = torch.linspace(-9, 9, 37)
    f = lambda x: x.to(torch.float8_e4m3fn).float() * 2  # noqa: E731
    same_bits(compiled(f, dynamic)(x), f(x))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", [
    lambda x: x.t().contiguous(),
    lambda x: torch.cat([x, x[1:]]),
    lambda x: x.view(torch.uint8) + 1,
    lambda x: x[1:, ::2].clone(),
    lambda x: torch.where(x.float() > 1, x, x.t().contiguous().t()),
    lambda x: torch.zeros_like(x),
    lambda x: torch.full((3, 5), 2.3, dtype=x.dtype),
    lambda x: x.float().amax(1, keepdim=True).to(x.dtype),
], ids=range(8))  # fmt: skip
def test_elements_are_moved(function: Function, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = (torch.randn(5, 19) * 8).to(dtype)
    expected = function(x)
    same_bits(compiled(function)(x), expected)
