"""Arguments with their conjugate or negative bit set."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import irc
from tests.backends import needs_backend

pytestmark = [needs_backend, pytest.mark.fault("C7")]


def numbers(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(4)
    return torch.randn(*shape, dtype=torch.complex64, generator=generator)


GIVEN: dict[str, Callable[[], torch.Tensor]] = {
    "conjugate": lambda: numbers(3, 4).conj(),
    "offset and strides": lambda: numbers(5, 9)[1:4, 2::2].conj(),
    "expanded": lambda: numbers(3, 1).conj().expand(3, 4),
    "empty": lambda: numbers(0, 4).conj(),
    "negative": lambda: numbers(3, 4).conj().imag,
    "negative of a part": lambda: numbers(4, 8)[1:, ::2].conj().imag,
    "both": lambda: torch._neg_view(numbers(3, 4).conj()),
}


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("kind", ["torch.compile", "irc.compile"])
def test_arguments_are_read_as_they_are_seen(name, kind):
    def function(x):
        return x * x + 1, x.sum(0), x.mT @ x

    x = GIVEN[name]()
    torch._dynamo.reset()
    if kind == "irc.compile":
        run = irc.compile(function, (x,))
    else:
        run = torch.compile(function, backend="irc", fullgraph=True)
    torch.testing.assert_close(run(x), function(x), rtol=1e-5, atol=1e-5)
    plain = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype)
    if name != "expanded":
        plain.copy_(x.resolve_conj().resolve_neg())
        torch.testing.assert_close(run(plain), function(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in GIVEN if n != "expanded"])
def test_writes_go_to_the_argument(name):
    def function(x):
        x.mul_(3)
        return x + 1

    mine, eager = GIVEN[name](), GIVEN[name]()
    torch._dynamo.reset()
    made = torch.compile(function, backend="irc", fullgraph=True)(mine)
    torch.testing.assert_close(made, function(eager))
    torch.testing.assert_close(mine, eager)
    assert mine.is_conj() == eager.is_conj() and mine.is_neg() == eager.is_neg()


def test_gradients():
    def function(x):
        return (x * x.conj() * x.abs()).real.sum() + x.imag.square().sum()

    def gradient(call):
        x = numbers(3, 4).requires_grad_()
        call(x.conj()).backward()
        return x.grad

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="irc", fullgraph=True)
    torch.testing.assert_close(gradient(compiled), gradient(function), rtol=1e-5, atol=1e-5)


def test_results_share_the_argument_memory():
    def function(x):
        return x[1:], x.t()

    module = irc.trace(function, (numbers(3, 4),))
    irc.PassManager.parse("lower-to-cpu").run(module)
    x = numbers(3, 4)
    part, turned = irc.build(module)(x.conj())
    torch.testing.assert_close(part, x.conj()[1:])
    part.zero_()
    assert not x[1:].any() and x[0].any()
    torch.testing.assert_close(turned, x.conj().t())
