"""Programs that once were imported wrongly, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import irc  # noqa: F401  (registers the backend)
from tests.backends import skip_unless_checked


def test_a_constant_tensor_of_the_traced_program_is_imported() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.tensor([]), x * torch.tensor([1.0, 2.0, 3.0])])

    x = torch.randn(3)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(f, backend="irc")(x), f(x))


def compiled(f: Any, *args: Any, dynamic: bool = False) -> Any:
    """The results of `f` compiled, without what earlier compiles left."""
    torch._dynamo.reset()
    return torch.compile(f, backend="irc", fullgraph=True, dynamic=dynamic)(*args)


def test_checks_of_linear_algebra_run_in_order() -> None:
    x = torch.eye(3) * 2
    skip_unless_checked(torch.linalg.cholesky, -x)
    assert torch.equal(compiled(torch.linalg.cholesky, x), torch.linalg.cholesky(x))
    with pytest.raises(RuntimeError, match="not positive-definite"):
        compiled(torch.linalg.cholesky, -x)


def test_complex_numbers_stay_with_aten() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.fft.ihfft(x), torch.fft.rfft(x).flip(0).t().contiguous() * 2j

    x = torch.randn(4, 6)
    for dynamic in (False, True):
        for got, want in zip(compiled(f, x, dynamic=dynamic), f(x), strict=True):
            assert got.stride() == want.stride()
            torch.testing.assert_close(got, want)


def test_a_view_as_complex_numbers() -> None:
    x = torch.randn(4, 2)
    result = compiled(torch.view_as_complex, x)
    assert torch.equal(result, torch.view_as_complex(x))
    assert result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_a_result_computed_in_the_memory_of_an_argument() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.exponential_()

    x, y = torch.ones(5), torch.ones(5)
    torch.manual_seed(1)
    result = compiled(f, x)
    torch.manual_seed(1)
    assert torch.equal(result, f(y)) and torch.equal(x, y) and result is x


def test_sizes_of_zero_in_kernels() -> None:
    def f(n: int, m: int) -> torch.Tensor:
        return torch.eye(n, m)

    for n, m in ((0, 0), (0, 3), (3, 0)):
        assert torch.equal(compiled(f, n, m, dynamic=True), f(n, m))


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_sizes_scaled_by_a_float(mode: str) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(x, scale_factor=1.7, mode=mode)

    x = torch.randn(2, 3, 4, 5, requires_grad=True)
    result = compiled(f, x, dynamic=True)
    torch.testing.assert_close(result, f(x))
    gradient = torch.randn_like(result)
    torch.testing.assert_close(
        torch.autograd.grad(result, x, gradient), torch.autograd.grad(f(x), x, gradient)
    )


def test_reshapes_of_nothing() -> None:
    x = torch.zeros(2, 0, 3)
    assert torch.equal(compiled(lambda x: x.tile(2, 1, 2), x, dynamic=True), x.tile(2, 1, 2))


@pytest.mark.parametrize("begins", [(1, 3), (0, 5), (3, 3), (2, 9), (-2, -1)], ids=str)
def test_parts_between_positions_that_are_data(begins: tuple[int, int]) -> None:
    """torch 2.11 makes symbols of their own for the sizes of slices and where they begin."""
    x, positions = torch.arange(15.0).view(5, 3), torch.tensor(begins)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        got = compiled(torch.tensor_split, x, positions)
    for part, expected in zip(got, torch.tensor_split(x, positions), strict=True):
        assert torch.equal(part, expected)
        assert part.stride() == expected.stride()
