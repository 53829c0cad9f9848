"""Results as the caller must see them: copies where they must not share, views where they must."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from tests.fuzz.harness import built, clones, observe, same  # noqa: E402
from tests.fuzz.layouts import Case, Input, Step  # noqa: E402
from tests.fuzz.test_layouts import check_layouts  # noqa: E402

REVERSE = (("dims", (0,)),)
DIAGONAL = (("dim1", 0), ("dim2", 1), ("offset", 0))


def check(function, *args):
    """Machine code gives eager's values, strides and sharing."""
    module = irc.trace(function, tuple(clones(args)))
    PassManager.parse("functionalize").run(module)
    same(observe(function, args), built(module, args), what="built")


def matrix(*shape: int) -> Input:
    strides = tuple(torch.empty(shape).stride())
    return Input(shape, strides, 0, torch.float32, 1)


def test_one_of_two_equal_arrays_shares_with_its_part():
    steps = (
        Step("reverse", (0,), REVERSE), Step("reverse", (0,), REVERSE),
        Step("diagonal", (2,), DIAGONAL),
    )  # fmt: skip
    check_layouts(Case((matrix(2, 5),), steps, ((1, (5, 1)), (3, (6,)), (2, (5, 1)))))


def test_a_part_that_is_returned_before_its_whole():
    steps = (Step("copy", (0,)), Step("permute", (1,), (("permutation", (1, 0)),)))
    slice_ = Step("slice", (2,), (("dim", 0), ("start", 1), ("stop", 3), ("step", 1)))
    case = Case((matrix(3, 4),), (*steps, slice_), ((3, (1, 4)), (1, (4, 1)), (2, (1, 4))))
    check_layouts(case)


def test_an_array_that_is_returned_three_times():
    check_layouts(Case((matrix(2, 3),), (Step("neg", (0,)),), ((1, (3, 1)),) * 3))


def test_results_that_fold_to_an_argument_share_a_copy_of_it():
    def f(x):
        same_as_x = torch.where(x > 0, x, x)
        first, second = same_as_x.unbind(1)
        return first, x, same_as_x, second

    check(f, torch.arange(6.0).view(3, 2))


def test_a_part_of_a_constant_is_a_view_of_the_whole():
    def f(x):
        v = torch.maximum(x, x)
        v.fill_(-1)
        return v, v.unbind(0)[1], v[1:]

    check(f, torch.arange(3.0))


def test_copies_of_one_array_that_cse_joins():
    steps = (Step("cast", (0,), (("dtype", torch.float32),)),) * 2
    results = tuple((k, (3, 1)) for k in (0, 1, 2, 1))
    check_layouts(Case((matrix(2, 3),), steps, results))


def test_a_result_that_another_is_a_view_of_is_not_a_calls_copy():
    steps = (
        Step("permute", (0,), (("permutation", (0, 2, 1)),)), Step("abs", (1,)),
        Step("sort", (2,), (("dim", 2),)),
    )  # fmt: skip
    results = tuple((k, (12, 3, 1)) for k in (2, 2, 3))
    check_layouts(Case((matrix(2, 3, 4),), steps, results))
