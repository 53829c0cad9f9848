"""Programs that once lost a value, or stopped, between the graph and the kernels."""

from __future__ import annotations

import pytest
import torch

import irc


def same(function, *arguments: torch.Tensor, dynamic: bool = False) -> list[torch.Tensor]:
    expected = function(*arguments)
    got = irc.compile(function, arguments, dynamic=dynamic)(*arguments)
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    got = [got] if isinstance(got, torch.Tensor) else list(got)
    for want, have in zip(expected, got, strict=True):
        torch.testing.assert_close(have, want, equal_nan=True)
        assert have.stride() == want.stride()
    return got


def test_a_view_of_a_column_begins_where_its_strides_say():
    # The column [5, 1] is read with strides [1, 1]; in memory its rows are 5 apart.
    x = torch.arange(25.0).view(5, 5)
    same(lambda x: (x + 1)[:, 1:2][1:] @ torch.ones(1, 1), x)
    same(lambda x: torch.mm((x + 1)[:, 2:3][3:].t(), (x + 2)[:2]), x)


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_array_stored_beside_a_split_sum_is_stored(dynamic):
    torch.manual_seed(0)
    x, y = torch.randn(64, 40, 40), torch.randn(64, 1, 40)

    def f(x, y):
        difference = x - y
        return difference, torch.linalg.vector_norm(difference)

    same(f, x, y, dynamic=dynamic)


def test_the_same_value_twice_is_two_results():
    x = torch.tensor(2.0)
    low, high = same(lambda x: tuple(torch.aminmax(x)), x)
    assert low.data_ptr() != high.data_ptr() != x.data_ptr()


def test_two_diagonals_put_into_copies_of_one_matrix():
    """The first copied the diagonal alone, before it wrote it."""
    def f(x, y):
        zeros, k = x.new_zeros(4, 4), torch.arange(4)
        return [zeros.index_put((k, k), values) for values in (x, y)]

    same(f, torch.randn(4), torch.randn(4))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_a_scan_of_logarithms_of_sums(dim):
    torch.manual_seed(0)
    x = torch.randn(5, 7, 33) * 30
    x[1, 2, 3], x[2, :, 4], x[3, 1:3] = float("inf"), -float("inf"), -float("inf")
    same(lambda x: torch.logcumsumexp(x, dim), x)


@pytest.mark.parametrize("shape", [(1, 3, 0), (0,), (3, 0, 2)])
def test_scans_of_nothing_in_a_row(shape):
    """What one scan leaves the next had scratch memory of no bytes."""
    def f(x):
        y = x.cumsum(0).cumsum(0)
        return y, (-y).cumsum(0)

    same(f, torch.zeros(shape))


def test_maps_over_nothing():
    x = torch.zeros(0, 5, 5)
    same(lambda x: torch.linalg.det(x.cos()) + x.sum((1, 2)).exp(), x)


def test_an_empty_index_of_another_rank():
    same(lambda x, i: torch.gather(x, 0, i), torch.randn(5), torch.zeros(2, 0, dtype=torch.int64))


def test_results_that_nothing_uses_may_be_of_other_sizes():
    # torch's shape function is wrong about the bags' sizes, which eager leaves empty here.
    torch.manual_seed(0)
    table, index = torch.randn(10, 5), torch.randint(0, 10, (5, 5))
    same(lambda table, index: torch.nn.functional.embedding_bag(index, table), table, index)


def test_planes_of_a_channels_last_image_are_not_gathered():
    # Sharing the planes of pad and pool made each one gather every 64th element.
    from irc import pipeline

    def f(x):
        return torch.nn.functional.max_pool2d(torch.relu(x * 2 + 1), 3, 2, 1)

    x = torch.randn(2, 64, 56, 56).to(memory_format=torch.channels_last)
    module = irc.trace(f, (x,))
    pipeline.lower(module)
    assert not [op for op in module.walk() if op.name == "kernel.gather"]
    same(f, x)


@pytest.mark.parametrize("shape", [(17, 1001), (3, 70_001), (1200, 5)], ids=str)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("stored", ["nothing", "sum", "view"])
def test_a_softmax_takes_its_maximum_from_the_numbers_that_it_takes_it_from(shape, dim, stored):
    """Rounded to bf16, elements of 1e6 differ by thousands from those that weren't."""

    def f(x, y):
        total = x + y
        kept = {"nothing": (), "sum": (total,), "view": (total.view(-1)[7:],)}[stored]
        return torch.softmax(total, dim), torch.log_softmax(total, dim), *kept

    torch.manual_seed(0)
    x, y = (torch.randn(shape).mul(1e6).bfloat16() for _ in range(2))
    softmax, log_softmax, *_ = irc.compile(f, (x, y))(x, y)
    ones = torch.ones(softmax.sum(dim).shape)
    torch.testing.assert_close(softmax.float().sum(dim), ones, atol=1e-2, rtol=0)
    assert (log_softmax <= 0).all()
    if stored != "nothing":
        same(f, x, y)
