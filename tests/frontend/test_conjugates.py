"""Results that are conjugated or negated only when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import irc


def both(x: torch.Tensor) -> Any:
    y = x * 2
    return y, y.conj()


def conjugate_first(x: torch.Tensor) -> Any:
    y = x * 2
    return y.conj(), y, y.view(2, 2)


def negated(x: torch.Tensor) -> Any:
    y = x * 2
    return y, y.conj().imag


def of_an_argument(x: torch.Tensor) -> Any:
    return x.conj(), x * 2


@pytest.mark.parametrize("function", [both, conjugate_first, negated, of_an_argument])
@pytest.mark.parametrize("dynamic", [False, True])
def test_results_beside_their_conjugates(function: Callable[..., Any], dynamic: bool) -> None:
    """They share storage in eager mode, but not the elements in it."""
    x = torch.randn(4, dtype=torch.complex64, generator=torch.Generator().manual_seed(1))
    torch._dynamo.reset()
    made = torch.compile(function, backend="irc", fullgraph=True, dynamic=dynamic)(x.clone())
    for got, expected in zip(made, function(x.clone()), strict=True):
        assert torch.equal(got.resolve_conj().resolve_neg(), expected.resolve_conj().resolve_neg())


def test_what_a_backward_pass_saves_of_eigenvalues() -> None:
    """torch's formula of their gradient saves the eigenvalues and their conjugates."""
    x = torch.randn(5, 5, generator=torch.Generator().manual_seed(2)).requires_grad_()

    def loss(x: torch.Tensor) -> torch.Tensor:
        values, vectors = torch.linalg.eig(x)
        return values.abs().sum() + vectors.abs().square().mul(torch.arange(5.0)).sum()

    (expected,) = torch.autograd.grad(loss(x), x)
    torch._dynamo.reset()
    (got,) = torch.autograd.grad(torch.compile(loss, backend="irc", dynamic=False)(x), x)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.fault("C7")
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * x.conj()).real.sum(),
        lambda x: (x * x.conj() * x.abs()).real.sum() + x.imag.square().sum(),
        lambda x: (x.conj().imag * x.real).exp().sum(),
    ],
)
def test_what_a_backward_pass_saves_of_an_argument(function: Callable[..., Any]) -> None:
    """The conjugate of an argument is not the argument, though eager mode's shares its storage."""
    x = torch.randn(3, 4, dtype=torch.complex64, generator=torch.Generator().manual_seed(3))
    x.requires_grad_()
    (expected,) = torch.autograd.grad(function(x), x)
    torch._dynamo.reset()
    (got,) = torch.autograd.grad(torch.compile(function, backend="irc", fullgraph=True)(x), x)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.fault("C7")
def test_the_conjugate_of_an_argument_is_another_tensor_in_a_built_program() -> None:
    x = torch.randn(3, dtype=torch.complex64, generator=torch.Generator().manual_seed(3))
    module = irc.trace(lambda x: x.conj(), (x,))
    irc.PassManager.parse("lower-to-cpu").run(module)
    assert torch.equal(irc.build(module)(x)[0], x.conj())
