"""Complex numbers that only the program sees become pairs of reals; others stay ATen's."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.ir.passes import PassManager

X, Y = (torch.arange(24.0).reshape(4, 6).add(k).cos() for k in (0, 7))


def rotary(x, angle):
    """As models of the Llama kind embed positions."""
    turns = torch.polar(torch.ones_like(angle), angle)
    z = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(z * turns[:, None]).flatten(2).type_as(x)


def arithmetic(x, y):
    z, w = torch.complex(x, y), torch.view_as_complex(torch.stack([y, x], -1))
    moved = (z * w.conj() + z - 2 * w)[:, 1:].transpose(0, 1)
    joined = torch.cat([moved, -moved], 0).reshape(-1)
    scaled = torch.view_as_real(joined * x.sum(1).repeat(10))
    return joined.real, joined.imag, scaled, (z + x).real, (1 - z).imag


def casts(x, y):
    z = (x.to(torch.complex64) * torch.complex(x, y)).to(torch.complex128)
    return z.real, torch.view_as_real(z + y)


def numbers(x, y):
    z = torch.complex(x, y)
    return torch.view_as_real(z * 1j), ((2 - 1j) * z + (1 + 3j)).real, (z - 2j).imag


def calls(function, *args, dynamic=False):
    module = irc.trace(function, args, dynamic=dynamic)
    PassManager.parse("decompose-aten,convert-aten-to-graph,canonicalize,cse").run(module)
    irc.verify(module)
    return module, [op.callee for op in module.walk() if op.name == "graph.call_aten"]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("function", "args"),
    [(rotary, (torch.randn(5, 3, 8), torch.randn(5, 4))), (arithmetic, (X, Y)), (casts, (X, Y)),
     (numbers, (X, Y))],
)
def test_pairs(function, args, dynamic):
    module, left = calls(function, *args, dynamic=dynamic and function is not arithmetic)
    assert left == []
    expected = torch.utils._pytree.tree_leaves(function(*args))
    made = irc.compile(function, args)(*args)
    for values in (irc.run(module, *args), torch.utils._pytree.tree_leaves(made)):
        for mine, theirs in zip(values, expected, strict=True):
            torch.testing.assert_close(mine, theirs)
            assert mine.dtype == theirs.dtype


def test_gradients():
    x, angle = torch.randn(5, 3, 8), torch.randn(5, 4)
    grads = []
    for call in (rotary, torch.compile(rotary, backend="irc")):
        leaf = x.clone().requires_grad_()
        call(leaf, angle).cos().sum().backward()
        grads.append(leaf.grad)
    torch.testing.assert_close(*grads)


STAY = {
    "a result": (lambda x, y: torch.complex(x, y) * 2, (X, Y)),
    "an argument": (lambda z: (z * z).real, (torch.complex(X, Y),)),
    "a Fourier transform": (lambda x, y: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(y)),
                            (X, Y)),
    "reals among them": (lambda x, y: torch.cat([torch.complex(x, y), x]).imag * 2, (X, Y)),
    "what has no pairs": (lambda x, y: (torch.complex(x, y) * 2).abs(), (X, Y)),
}  # fmt: skip


@pytest.mark.parametrize("name", STAY)
def test_what_stays_complex(name):
    function, args = STAY[name]
    _, left = calls(function, *args)
    assert left
    torch.testing.assert_close(irc.compile(function, args)(*args), function(*args))


def test_gradients_of_products_with_complex_numbers():
    """The backward has the conjugate of the number alone."""
    torch._dynamo.reset()
    x = torch.randn(7, 2, requires_grad=True)

    def turned(x):
        return torch.view_as_real(torch.view_as_complex(x) * (1j - 3))

    (expected,) = torch.autograd.grad(turned(x).square().sum(), x)
    (actual,) = torch.autograd.grad(torch.compile(turned, backend="irc")(x).square().sum(), x)
    torch.testing.assert_close(actual, expected)
