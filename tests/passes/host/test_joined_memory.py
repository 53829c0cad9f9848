"""Arrays that are put together of pieces: made in place where they can be, with eager's values."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch

import irc
from irc.dialects import host
from irc.ir.passes import PassContext, PassManager
from irc.pipeline import pipeline_text
from irc.target import Target


def host_program(function, arguments):
    module = irc.trace(function, arguments)
    manager = PassManager.parse(f"functional,{pipeline_text()}", verify="each")
    manager.run(module, PassContext(target=Target.named("avx2")))
    return Counter(type(op) for op in module.lookup("main").block.ops)


def agree(function, *arguments):
    """The values and strides of a compiled call, and those of the graph, are eager's."""
    inputs = [a.clone() for a in arguments]
    expected = function(*inputs)
    own = [a.clone() for a in arguments]
    got = irc.compile(function, arguments)(*own)
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(own, inputs, rtol=0, atol=0, equal_nan=True)
    for one, other in zip(torch.utils._pytree.tree_leaves(got),
                          torch.utils._pytree.tree_leaves(expected), strict=True):  # fmt: skip
        assert one.stride() == other.stride()


def running_sums(steps, dim=1):
    def f(x):
        out, total = torch.zeros_like(x), torch.zeros_like(x.select(dim, 0))
        for step in range(steps):
            total = total + x.select(dim, step)
            out.select(dim, step).copy_(total)
        return out

    return f


@pytest.mark.parametrize("dim", [0, 1])
def test_slices_in_a_row_are_one_array_that_few_launches_fill(dim):
    shape = [33, 33, 8]
    x = torch.randn(shape)
    found = host_program(running_sums(33, dim), (x,))
    assert found[host.AllocOp] == 1 and found[host.LaunchOp] <= 2
    assert found[host.HostCopyOp] == 0
    agree(running_sums(33, dim), x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int32, torch.bool, torch.float64])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_stacks_of_every_dtype(dtype, dim):
    def f(x, y):
        parts = [(x + k) if dtype is not torch.bool else x ^ (k % 3 == 0) for k in range(20)]
        return torch.stack([*parts, y], dim), torch.cat([*parts, y], min(dim, 1))

    x, y = torch.randn(2, 37, 11).to(dtype)
    agree(f, x, y)


@pytest.mark.parametrize("seed", range(6))
def test_writes_in_any_order_over_one_another(seed):
    draw = random.Random(seed)
    places = [(draw.randrange(40), draw.randint(0, 6)) for _ in range(30)]

    def f(x, base):
        out = base.clone()
        for number, (start, size) in enumerate(places):
            out[:, start : start + size] = x[:, start : start + size] * (number + 1)
            if number % 7 == seed:
                x = x + out.sum()
        return out

    agree(f, torch.randint(-3, 4, (9, 40)).double(), torch.randint(-3, 4, (9, 40)).double())


def wide(x):
    """Thirty pieces of a hundred elements each."""
    return [x * (k + 1) for k in range(30)]


def test_pieces_that_are_wanted_elsewhere_too():
    def returned(x):
        parts = wide(x)
        return torch.cat(parts), parts[3], parts[7].t()

    def twice(x):
        parts = wide(x)
        return torch.cat(parts), torch.cat([*parts, parts[2]], 1)

    def repeated(x):
        parts = wide(x)
        return torch.cat([*parts, parts[5], parts[5]])

    def read(x):
        parts = wide(x)
        return torch.cat(parts), parts[3].sum(0), torch.mm(parts[4], parts[5].t())

    def arguments(x, y):
        return torch.cat([*wide(x), y, y[:3], x])

    def updated(x, y):
        parts = wide(x)
        y.copy_(parts[9])
        return torch.cat(parts)

    def nested(x):
        inner = torch.cat(wide(x)).relu()
        return torch.cat([inner, *wide(x.abs())]), inner

    x, y = torch.randint(-4, 5, (10, 10)).float(), torch.randint(-4, 5, (10, 10)).float()
    for function in (returned, twice, repeated, read, nested):
        agree(function, x)
    for function in (arguments, updated):
        agree(function, x, y)


def test_the_array_is_read_and_written_again():
    def f(x):
        whole = torch.cat(wide(x))
        whole[5:9] = whole[1:5] * 2
        return whole.sum(1), whole.relu_()

    agree(f, torch.randint(-4, 5, (10, 10)).float())


def test_pieces_of_nothing_and_of_one_row():
    def f(x):
        parts = [x[:k] * 2.0 for k in range(16)]
        return torch.cat([*parts, *parts[::-1]])

    agree(f, torch.randn(16, 40))
    agree(lambda x: torch.cat([p * 3 for p in x.split(1, 1)] * 2, 1), torch.randn(200, 17))


def test_values_that_are_nan_or_infinite():
    x = torch.tensor([float("nan"), float("inf"), -0.0, 0.0] * 50)
    agree(lambda x: torch.stack([x * (k - 10) for k in range(20)], 1), x)


def test_gradients_through_slices_that_are_written():
    x = torch.randn(5, 24, 16, dtype=torch.float64, requires_grad=True)
    f = running_sums(24)
    (expected,) = torch.autograd.grad(f(x).square().sum(), x)
    (got,) = torch.autograd.grad(torch.compile(f, backend="irc")(x).square().sum(), x)
    torch.testing.assert_close(got, expected)


def test_a_size_that_is_not_known_beside_the_joined_one():
    f = running_sums(30)
    compiled = torch.compile(f, backend="irc", dynamic=True)
    for rows in (3, 70, 5):
        x = torch.randn(rows, 30, 8)
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_static(x, 1)
        torch._dynamo.mark_static(x, 2)
        torch.testing.assert_close(compiled(x), f(x), rtol=0, atol=0)


def test_sizes_that_are_not_known_keep_the_choice_of_a_piece():
    def f(*parts):
        return torch.cat([p * 2 for p in parts], 1)

    compiled = torch.compile(f, backend="irc", dynamic=True)
    for rows in (3, 70):
        parts = [torch.randn(rows, 4 + k % 3) for k in range(20)]
        torch.testing.assert_close(compiled(*parts), f(*parts), rtol=0, atol=0)
