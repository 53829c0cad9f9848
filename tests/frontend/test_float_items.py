"""Numbers read from tensors of floats and bools: conditions on them, integers made of them."""

from __future__ import annotations

import math

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


@pytest.fixture(autouse=True)
def captured():
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        yield


def compiled(fn):
    return torch.compile(fn, backend="irc", fullgraph=True)


@pytest.mark.parametrize("number", [3.25, 2.5, -1.75, math.inf])
def test_conditions_are_bools(number) -> None:
    def fn(x):
        a = x.item()
        return a > 2.5, a <= 2.5, a == math.inf, a != -1.75

    result = compiled(fn)(torch.tensor([number], dtype=torch.float64))
    assert result == fn(torch.tensor([number]))
    assert all(type(r) is bool for r in result)


def test_conditions_on_integers_are_bools() -> None:
    def fn(x):
        (a,) = x.tolist()
        return a > 3, a == 3

    run = compiled(fn)
    for number in (3, 4):
        result = run(torch.tensor([number]))
        assert result == (number > 3, number == 3)
        assert type(result[0]) is bool


def test_roundings_are_integers() -> None:
    def fn(x):
        a = x.item()
        return int(a * 2) + 7, math.floor(a), math.ceil(a), x * int(a)

    run = compiled(fn)
    for number in (3.25, -1.75):
        x = torch.tensor([number])
        torch.testing.assert_close(run(x), fn(x))


def test_a_rounded_float_is_a_size() -> None:
    def fn(x):
        size = int(x.item() * 2)
        torch._check(size >= 0)
        return torch.ones(size) * 2

    run = compiled(fn)
    for number in (3.25, 2.75):
        torch.testing.assert_close(run(torch.tensor([number])), fn(torch.tensor([number])))


def test_a_condition_on_a_float_is_checked() -> None:
    def fn(x):
        a = x.item()
        torch._check(a > 2.5)
        return x * a

    run = compiled(fn)
    torch.testing.assert_close(run(torch.tensor([3.0])), torch.tensor([9.0]))
    with pytest.raises(RuntimeError, match="zuf0"):
        run(torch.tensor([2.0]))
