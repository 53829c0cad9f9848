"""Python numbers that are copied or assigned into tensors, and those that do not fit."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

import irc  # noqa: F401  (registers the backend)

pytestmark = pytest.mark.filterwarnings("ignore:Casting complex values")

NUMBERS = (7, 300, -1, 0.5, 1e300, True, math.nan, 1 + 2j)
TENSORS = {
    "float32": torch.zeros(3),
    "int64": torch.zeros(2, 2, dtype=torch.int64),
    "uint8": torch.zeros(3, dtype=torch.uint8),
    "bool": torch.zeros(3, dtype=torch.bool),
    "complex64": torch.zeros(3, dtype=torch.complex64),
    "float16": torch.zeros(3, dtype=torch.float16),
    "transposed": torch.zeros(2, 3).t(),
    "rank 0": torch.zeros(()),
    "empty": torch.zeros(0, 3),
}


def outcome(function, *arguments):
    """The result and the arguments after a call, or the class of the exception."""
    copies = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
    try:
        return [function(*copies), *copies]
    except Exception as error:
        return error


def assert_as_eager(function, *arguments):
    torch._dynamo.reset()
    mine = outcome(torch.compile(function, backend="irc"), *arguments)
    eager = outcome(function, *arguments)
    if isinstance(eager, Exception):
        assert isinstance(mine, type(eager)), f"{mine!r}, eager {eager!r}"
        return
    assert not isinstance(mine, Exception), mine
    torch.testing.assert_close(mine, eager, rtol=0, atol=0, equal_nan=True)


@pytest.mark.fault("C4")
@pytest.mark.parametrize("name", TENSORS)
def test_copies_of_numbers(name):
    """Each into a part of its own of one argument, and into copies of it."""

    def f(x):
        made = [x.clone().copy_(number) for number in NUMBERS]
        x.copy_(0.5)
        return [*made, x + 1]

    assert_as_eager(f, TENSORS[name])


@pytest.mark.fault("C4")
@pytest.mark.parametrize("name", TENSORS)
def test_numbers_that_fit_are_assigned(name):
    x = TENSORS[name]
    numbers = [n for n in (7, 0.5, True, math.inf) if x.is_floating_point() or n in (7, True)]

    def f(x):
        made = []
        for number in numbers:
            a, b, c = x.clone(), x.clone(), x.clone()
            a[...] = number
            b.fill_(number)
            made += [a, b, x.masked_fill(x == 0, number), torch.where(x == 0, x, number)]
            if x.dim() and x.numel():
                c[torch.tensor([0, 1])] = number
                d = x.clone()
                d[d == 0] = number
                zeros = torch.zeros(x.shape, dtype=torch.long)
                made += [c, d, x.index_fill(0, zeros[0].flatten()[:1], number)]
                made += [x.scatter(0, zeros, number)]
        x[...] = 1
        return made

    assert_as_eager(f, x)


@pytest.mark.fault("C4")
def test_copies_between_dtypes_and_of_broadcast_tensors():
    def f(x, half, row, flag):
        x.copy_(row)
        half.copy_(x)
        flag.copy_(half)
        return x.clone().copy_(flag), half.clone().t().copy_(row[:1])

    assert_as_eager(
        f, torch.zeros(3, 4), torch.zeros(3, 4).half(), torch.randn(4).double(),
        torch.zeros(3, 4, dtype=torch.bool),
    )  # fmt: skip


@pytest.mark.fault("C4")
def test_symbolic_numbers_are_copied():
    def f(x, count, scale):
        return x.clone().copy_(count * 2), x.clone().copy_(scale + 0.5), x.clone().copy_(x.size(0))

    torch._dynamo.reset()
    compiled = torch.compile(f, backend="irc", dynamic=True)
    for size, count, scale in ((3, 4, 1.5), (5, 7, 2.25), (6, -2, -0.125)):
        x = torch.zeros(size)
        torch.testing.assert_close(compiled(x, count, scale), f(x, count, scale))


TOO_LARGE = {
    "fill": lambda x, v: x.clone().fill_(v),
    "full": lambda x, v: torch.full((2,), v, dtype=x.dtype),
    "masked_fill": lambda x, v: x.masked_fill(x == 0, v),
    "where": lambda x, v: torch.where(x == 0, x, v),
    "clamp": lambda x, v: x.clamp(max=v),
    "clamp_min": lambda x, v: x.clamp_min(v),
    "index_fill": lambda x, v: x.index_fill(0, torch.tensor([0]), v),
    "scatter": lambda x, v: x.scatter(0, torch.zeros(2, dtype=torch.long), v),
    "add": lambda x, v: x + v,
    "mul": lambda x, v: x * v,
    "rsub": lambda x, v: v - x,
    "alpha": lambda x, v: torch.add(x, x, alpha=v),
    "addcmul": lambda x, v: torch.addcmul(x, x, x, value=v),
    "remainder": lambda x, v: x % v,
    "less": lambda x, v: x < v,
    "threshold": lambda x, v: F.threshold(x, v, v),
    "hardtanh": lambda x, v: F.hardtanh(x, -v, v),
    "leaky_relu": lambda x, v: F.leaky_relu(x, v),
    "pad": lambda x, v: F.pad(x, (1, 1), value=v),
    "lerp": lambda x, v: torch.lerp(x, x, v),
    "xlog1py": torch.special.xlog1py,
}


LARGE = ((torch.float32, 1e300), (torch.int32, 2**31), (torch.uint8, 300))


def raises(name, dtype, number):
    return isinstance(outcome(TOO_LARGE[name], torch.ones(2, dtype=dtype), number), Exception)


@pytest.mark.fault("C8")
@pytest.mark.parametrize(
    "name, dtype, number",
    [(name, *large) for name in TOO_LARGE for large in LARGE if raises(name, *large)],
    ids=str,
)
def test_numbers_that_an_element_cant_hold(name, dtype, number):
    """They raise where eager raises."""
    assert_as_eager(lambda x: TOO_LARGE[name](x, number), torch.ones(2, dtype=dtype))


@pytest.mark.fault("C8")
@pytest.mark.parametrize("dtype, number", LARGE, ids=str)
def test_numbers_that_wrap_around_or_are_infinite(dtype, number):
    """Where eager's do."""
    names = [name for name in TOO_LARGE if not raises(name, dtype, number)]
    assert len(names) > 3
    assert_as_eager(
        lambda x: [TOO_LARGE[name](x, number) for name in names], torch.ones(2, dtype=dtype)
    )


@pytest.mark.fault("C8")
def test_negative_numbers_are_unsigned_ones_up_to_the_largest():
    def f(x):
        filled = [x.clone().fill_(-1), x.clone().fill_(-255), torch.full((2,), -7, dtype=x.dtype)]
        return [*filled, x.masked_fill(x == 1, -1), x.clamp(min=-1), x + -1, x * -255]

    assert_as_eager(f, torch.ones(2, dtype=torch.uint8))
    assert_as_eager(lambda x: x.clone().fill_(-256), torch.ones(2, dtype=torch.uint8))
