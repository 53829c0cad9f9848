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


I16, I32, I64, U8 = torch.int16, torch.int32, torch.int64, torch.uint8


def twice(x):
    return torch.cat([x, x])


@pytest.mark.parametrize("f", [
    lambda v: (v, v.view(I32)),
    lambda v: (v.view(I32), v.view(torch.float32)),
    lambda v: (v[1:], v.view(I16)),
    lambda v: (v.view(I16)[2:], v.view(I32)),
    lambda v: (v.view(I32)[2:], v.view(I16)[4:6], v.view(I64)[2]),
    lambda v: (v.expand(2, -1), v.view(I32), v.view(U8)),
])  # fmt: skip
def test_a_result_is_another_one_as_another_dtype(f):
    check(lambda x: f(x + 1), torch.arange(6.0))


@pytest.mark.parametrize("f", [
    lambda x: (x[1:].view(I32), x[:2]),
    lambda x: (x.view(I16)[1:], x.view(I32)[1:]),
    lambda x: (twice(x)[:3], twice(x)[3:]),
    lambda v: (v[:2], v[1:]),
    lambda v: (v[1:], v.view(I32)[:2], v.view(I64)[1]),
    lambda v: (v.expand(2, -1)[:, :2], v.unfold(0, 2, 2)[1:], v[3]),
], ids=range(6))  # fmt: skip
def test_results_that_share_and_have_no_array_in_common(f):
    check(lambda x: f(torch.full((4,), 2.0)), torch.arange(4.0))
    check(lambda x: f(torch.where(x > 0, x, x)), torch.arange(4.0))
    check(lambda x: f(torch.cat([x, x * 2])), torch.arange(2.0))


def test_parts_of_joined_arrays_of_every_kind_of_element():
    def f(x):
        v = twice(x)
        numbers = torch.complex(v, v)
        truth, half = twice(x > 0), v.bfloat16()
        return (
            numbers[:4], numbers[1:], torch.view_as_real(numbers)[2:], truth[:2], truth[1:],
            truth.view(U8)[2:], half[:2], half[1:4], half.view(I16)[3:], half.expand(2, 6)[:, 4:],
        )  # fmt: skip

    check(f, torch.arange(3.0))


def test_columns_of_joined_arrays():
    def f(x):
        v = torch.cat([x, x * 2], 1)
        return v[:, :3], v[:, 3:], v.t()[2:4], v.sum()

    check(f, torch.arange(6.0).view(2, 3))


def test_a_sum_and_another_one_as_integers():
    def f(x):
        v = torch.stack([x.sum(), x.prod()])
        return v[0], v[1], v[1].view(I32)

    check(f, torch.arange(3.0))


def test_equal_arrays_are_apart_with_their_views_as_another_dtype():
    def f(x):
        y, z = x.clone(), x.clone()
        return y, y.view(I32), z, z.view(I32)

    check(f, torch.arange(3.0))


def test_equal_storages_are_apart():
    def f(x):
        y, z = x + 1, x + 1
        return y[:1], y[2:], z[:1], z[2:]

    check(f, torch.arange(3.0))


def test_arguments_stay_apart_from_what_folds_to_them():
    def f(x):
        v = torch.where(x > 0, x, x)
        x.add_(1)
        return v[:2], v[1:], x, x[1:]

    check(f, torch.arange(3.0))


NINE = torch.arange(9.0)


@pytest.mark.fault("V1")
@pytest.mark.parametrize("f", [
    lambda x: x[1:5].clone().view(I64) + 1,
    lambda x: (x + 1)[1:5].clone().view(I64) + 1,
    lambda x: (x + 1)[3:7].clone().view(I64),
    lambda x: x[1:5].clone().view(I16) + 1,
    lambda x: torch.view_as_complex(x[1:5].clone().view(2, 2)) * 2,
    lambda x: torch.view_as_complex((x + 1)[1:5].clone().view(2, 2)),
    lambda x: (lambda w: (w, w.view(I64)))((x + 1)[1:5].clone()),
    lambda x: (lambda w: (w.view(I64), w, w.view(I16)[1:]))((x + 1)[1:5].clone()),
    lambda x: (lambda v: (v, *(lambda w: (w, w.view(I64)))(v[1:5].clone())))(x + 1),
    lambda x: (lambda w: (w, w.view(I64)))(x[1:5].clone()),
], ids=range(10))  # fmt: skip
def test_memory_is_read_as_wider_elements_from_a_multiple_of_their_size(f):
    """A copy that eager made is gone, so that what it was a copy of is read, which may lie between
    two such elements."""
    check(f, NINE[:8])


@pytest.mark.parametrize("f", [
    lambda x: x.t().diagonal()[..., 0].unsqueeze(-1).view(I16) + 1,
    lambda x: (x * 2).t().diagonal()[..., 0].unsqueeze(-1).view(I16) + 1,
    lambda x: x[..., 0][..., 0].reshape(-1).view(I16) + 1,
    lambda x: (x * 2)[..., 0][..., 0].reshape(-1).view(I16),
])  # fmt: skip
def test_memory_is_read_as_other_elements_with_eagers_strides_along_sizes_of_one(f):
    check(f, torch.arange(40.0).as_strided((3, 4), (6, 1), 1))


@pytest.mark.fault("V1")
@pytest.mark.parametrize("f", [
    lambda x: x.clone().view(I64) + 1,
    lambda x: x.clone()[2:].view(I64),
    lambda x: torch.view_as_complex((x * 1).view(-1, 2)),
])  # fmt: skip
def test_a_copy_of_an_argument_is_read_as_wider_elements_wherever_a_call_has_it(f):
    compiled, own = torch.compile(f, backend="irc"), irc.compile(f, (NINE[:8],))
    for x in (NINE[:8], NINE[1:]):
        assert torch.equal(compiled(x), f(x)) and torch.equal(own(x), f(x))


def test_an_argument_is_read_as_narrower_elements_without_a_copy():
    module = irc.trace(lambda x: x.clone().view(I16) + 1, (NINE,))
    context = PassManager.parse("functional,convert-aten-to-graph,assign-layouts,"
                                "insert-layout-copies").run(module)  # fmt: skip
    assert not context.statistics["insert-layout-copies", "copies"]


def test_an_argument_is_read_as_wider_elements_where_it_begins():
    check(lambda x: x.clone().view(I64) + 1, NINE[1:])
    check(lambda x: (x.clone().view(I64), x), NINE[1:])
    check(lambda x: (x.view(I64), x[2:].view(I64) + 1), torch.arange(10.0)[2:])
    text = irc.trace(lambda x: x[2:].view(I64) + 1, (torch.arange(10.0)[2:],))
    context = PassManager.parse("functional,convert-aten-to-graph,assign-layouts,"
                                "insert-layout-copies").run(text)  # fmt: skip
    assert not context.statistics["insert-layout-copies", "copies"]


HALVES = """
func.func @main(%x: tensor<[4] x f32, strides [1]>) -> (tensor<[2] x f32, strides [1]> {irc.offset = #sym<0>, irc.strides = #sym.dims<[1]>}, tensor<[3] x f32, strides [1]> {irc.offset = #sym<1>, irc.shares = 0 : i64, irc.strides = #sym.dims<[1]>}) attributes {level = "layout"} {
  %a = graph.full {value = 2.0 : f32} : tensor<[2] x f32, strides [1]>
  %b = graph.full {value = 2.0 : f32} : tensor<[3] x f32, strides [1]>
  func.return %a, %b : tensor<[2] x f32, strides [1]>, tensor<[3] x f32, strides [1]>
}
"""  # noqa: E501


def test_what_is_saved_for_the_backward_stays_apart():
    counts = []
    for text in HALVES, HALVES.replace("irc.offset =", "irc.saved, irc.offset ="):
        module = irc.parse(text)
        context = PassManager.parse("insert-layout-copies", verify="each").run(module)
        counts.append(context.statistics["insert-layout-copies", "storages made of results"])
    assert counts == [1, 0]
