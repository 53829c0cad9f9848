"""The smallest programs of what random ones found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.interp import run  # noqa: E402
from irc.ir.diagnostics import UserError  # noqa: E402
from irc.ir.passes import PassManager  # noqa: E402
from irc.pipeline import pipeline_text, stages  # noqa: E402
from tests.fuzz import custom_ops  # noqa: E402
from tests.fuzz.harness import built, clones, compiled, each_pass, observe, same  # noqa: E402


def check(function: Callable[..., object], *args: torch.Tensor) -> None:
    """Eager's outcome after every pass and in machine code."""
    expected = observe(function, args)
    module = irc.trace(function, tuple(clones(args)))
    functional = module.clone()
    first = stages()["functional"]
    each_pass(functional, first, args, expected=expected, strides=True, sharing=True)
    each_pass(functional, pipeline_text(), args, expected=expected)
    same(expected, built(module, args), what="built")


def test_a_sum_in_a_register_is_read_under_a_mask() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        y[2] = y[4:8].sum()
        return y

    check(f, torch.arange(12.0))


def test_a_constant_without_elements() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.index_fill_(0, torch.tensor([], dtype=torch.int64), 1)

    check(f, torch.arange(3.0))


def test_a_view_as_the_same_dtype_of_an_argument_with_gaps() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        v = x.view(torch.float32)
        v.fill_(-1)
        return v.view(2, 3, 2, 2)

    check(f, torch.arange(49.0).as_strided((2, 3, 4), (8, 16, 2), 1))


def test_two_results_that_are_one_intermediate() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        v = x.to(torch.float64)
        _, second = v.split([0, 2], -1)
        return second, v

    x = torch.arange(6.0).view(3, 2)
    expected = observe(f, (x,))
    same(expected, compiled(f, (x,)), what="compiled")


def test_a_custom_operator_that_gets_one_tensor_twice() -> None:
    custom_ops.register()

    def f(x: torch.Tensor) -> torch.Tensor:
        torch.ops.irc_fuzz.exchange(x, x)
        return x + 1

    check(f, torch.arange(3))


def test_a_custom_operator_that_gets_two_views_of_the_same_places() -> None:
    custom_ops.register()

    def f(x: torch.Tensor) -> torch.Tensor:
        v = x.view(-1).view(3)
        torch.ops.irc_fuzz.exchange(v, v)
        torch.ops.irc_fuzz.exchange(x[:2], x[0:2])
        return x

    check(f, torch.arange(3))
    expected = observe(f, (torch.arange(3),))
    same(expected, compiled(f, (torch.arange(3),)), what="compiled")


def test_two_views_of_an_intermediate_that_is_cheap_to_compute() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        v = torch.empty_like(x).fill_(2)
        return v.permute([]), v.view([1])

    check(f, torch.tensor(1.0))


def test_functionalized_text_has_no_write_left_over() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        part = x[0].expand(2, 3)
        part[1:] = 7
        return x

    x = torch.arange(6.0).view(2, 3)
    module = irc.trace(f, (x,))
    irc.PassManager.parse("functionalize").run(module)
    assert run(module, x.clone())[0].tolist() == f(x.clone()).tolist()


def test_zeroing_a_tensor_through_an_expanded_view() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x.expand(2, 3).zero_()
        return x

    check(f, torch.arange(3.0))


def test_as_strided_in_place_of_an_argument_that_begins_later_in_its_storage() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        v = x[0:1, None]
        v.as_strided_((1, 1), (2, 1), 7)
        v.sub_(-2)
        return x

    check(f, torch.arange(10).as_strided((2, 4), (4, 1), 2))


def test_as_strided_of_a_view_as_another_dtype() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x.mul_(2)
        bits = x.view(torch.int32)
        part = bits.as_strided((2,), (2,), 3)
        part.add_(1)
        return x, part, bits.as_strided((0,), (1,), 0)

    check(f, torch.arange(9.0).as_strided((2, 3), (3, 1), 2))


def test_as_strided_of_an_unwritten_view_as_another_dtype() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.view(torch.int32).as_strided((2, 2), (2, 1), 1) + 1

    check(f, torch.arange(9.0).as_strided((2, 3), (3, 1), 1))


def test_as_strided_of_a_view_as_elements_of_another_size() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x.mul_(2)
        part = x.view(torch.int32).as_strided((2, 2), (4, 1), 6)
        part.zero_()
        return x, part

    check(f, torch.arange(9, dtype=torch.int64).as_strided((6,), (1,), 2))


def test_an_empty_view_that_lies_before_its_source() -> None:
    custom_ops.register()

    def f(x: torch.Tensor) -> torch.Tensor:
        torch.ops.irc_fuzz.each([x, x.as_strided((0,), (2,), 0)], 2)
        return x

    x = torch.arange(4.0).as_strided((2,), (1,), 2)
    module = irc.trace(f, tuple(clones((x,))))
    irc.PassManager.parse("functionalize").run(module)
    same(observe(f, (x,)), observe(lambda *a: irc.run(module, *a), (x,)), what="functionalized")


def test_results_that_share_an_intermediate_by_as_strided() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        v = x.flatten().clone()
        v[0:1] = 7
        return v.as_strided((2,), (2,), 1), v

    check(f, torch.arange(6.0).view(2, 3))


def test_a_part_of_an_expanded_argument_whose_storage_another_shares() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.expand(2, -1)[0:1] = -2
        x.expand(3, -1).unbind(0)[1].neg_()
        return y + x.sum()

    memory = torch.arange(7.0)
    check(f, memory[:4], memory[3:6])


def test_a_view_in_place_beyond_an_arguments_elements() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        part = x.narrow(0, 0, 0)
        part.as_strided_((2, 1), (1, 2), 4)
        return part

    x = torch.arange(7).as_strided((4,), (1,))
    expected = observe(f, (x,))
    module = irc.trace(f, (x,))
    same(expected, observe(lambda *a: irc.run(module, *a), (x,)), what="traced")


def test_a_part_that_a_custom_operator_wrote_shares_with_the_whole() -> None:
    custom_ops.register()

    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        whole = x.clone()
        part = whole.select(-2, 1)
        torch.ops.irc_fuzz.exchange(part, part)
        return part, whole

    x = torch.arange(24.0).view(4, 2, 3).transpose(0, 1)
    same(observe(f, (x,)), compiled(f, (x,)), what="compiled")


def test_a_custom_operator_that_gets_an_empty_view_beside_another() -> None:
    custom_ops.register()

    def f(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        torch.ops.irc_fuzz.exchange(x, x.as_strided((0,), (2,), 0))
        return x

    x = torch.arange(40.0).as_strided((2, 3), (8, 2))
    module = irc.trace(f, tuple(clones((x,))))
    irc.PassManager.parse("functionalize").run(module)
    same(observe(f, (x,)), observe(lambda *a: irc.run(module, *a), (x,)), what="functionalized")


def test_a_custom_operator_never_writes_what_is_lost() -> None:
    custom_ops.register()

    def f(x: torch.Tensor) -> torch.Tensor:
        torch.ops.irc_fuzz.each([x, x.as_strided((2,), (2,), 0)], 2)
        return x

    module = irc.trace(f, (torch.arange(40.0).as_strided((2, 3), (8, 2)),))
    with pytest.raises(UserError, match="no value holds all of it"):
        irc.PassManager.parse("functionalize").run(module)


def test_a_write_of_nothing_as_another_dtype() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        _, part = x.tensor_split((0,), -1)
        part.view(torch.int32)[0, ...] = 2
        return x, part

    check(f, torch.empty(1, 0, 0, dtype=torch.float64))


def test_an_expanded_intermediate_and_its_view_as_another_dtype() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        v = (x + 1).expand([2, -1])
        return v, v.view(torch.int32)

    check(f, torch.arange(3.0))


def test_an_argument_that_is_copied_to_itself() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> None:
        x.copy_(x)
        y[1:] = y[1:]
        y[0] = y[0]

    check(lambda x, y: (f(x, y), x)[1], torch.tensor(True), torch.arange(6.0).view(2, 3))


def test_a_custom_operator_that_writes_what_was_copied_to_a_later_place_of_a_storage() -> None:
    custom_ops.register()

    def f(x: torch.Tensor) -> torch.Tensor:
        v = x.squeeze()
        v[...] = 0
        w = v.flatten(0, 0)
        torch.ops.irc_fuzz.exchange(w, w)
        again = w[..., None]
        torch.ops.irc_fuzz.exchange(again, again)
        return x

    for x in torch.arange(5.0)[3], torch.tensor([True, False, True])[2], torch.ones(2, 3)[1]:
        check(f, x)
        torch._dynamo.reset()
        # The verifier tells of a view that leaves its memory, which may hold anything there.
        options = {"verify": "each"}
        run = torch.compile(f, backend="irc", dynamic=False, options=options)
        with torch.no_grad():
            same(observe(f, (x,)), observe(run, (x,)), what="compiled")


def test_a_copy_of_a_dense_tensor_begins_at_the_start_of_its_storage() -> None:
    """A view of an argument that is copied as a whole counted from where the argument begins."""
    custom_ops.register()

    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        v, w = x.movedim(0, -1), torch.zeros([])
        x.copy_(torch.full((3,), -2.0))
        v.copy_(v)
        torch.ops.irc_fuzz.exchange(v[None], w)
        return w, v

    x = torch.arange(13.0)[7:10]
    same(observe(f, (x,)), compiled(f, (x,)), what="compiled")


def test_places_before_what_was_written_are_shown() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        v = x[1:]
        v.mul_(2)
        return v.as_strided((2,), (1,), 1) + 1

    x = torch.arange(8.0).view(4, 2)
    same(observe(f, (x,)), compiled(f, (x,)), what="compiled")
    same(observe(f, (x[1:],)), compiled(f, (x[1:],)), what="compiled")


def test_as_strided_of_what_was_copied_to_an_argument_that_begins_later() -> None:
    """What is copied keeps the argument's place in its storage; places were counted from 0."""

    def overwritten(x: torch.Tensor) -> torch.Tensor:
        v = x.as_strided((2, 1), (1, 2), 3)
        x.copy_(x.squeeze())
        return v.zero_()

    def shown(x: torch.Tensor) -> torch.Tensor:
        x.copy_(2.5)
        x.as_strided((1,), (2,), 3)[None] = 3
        return x

    def scattered(x: torch.Tensor) -> torch.Tensor:
        x[1:].mul_(2)
        x.as_strided((2,), (2,), 2).add_(1)
        return x

    for function in overwritten, shown, scattered:
        x = torch.arange(5.0)[2:]
        module = irc.trace(function, tuple(clones([x])))
        PassManager.parse("functionalize", verify="each").run(module)
        same(observe(function, (x,)), observe(lambda a, m=module: irc.run(m, a), (x,)))


def test_a_written_window_that_leaves_the_arguments_is_refused() -> None:
    """The place of a part of overlapping elements was less than 0: an internal error."""

    def f(x: torch.Tensor) -> torch.Tensor:
        v, w = x.as_strided((2, 3), (1, 1), 1).split(2, -1)
        w.mul_(2)
        return v.clone()

    module = irc.trace(f, (torch.arange(8.0)[4:7].view(1, 3),))
    with pytest.raises(UserError, match="outside of its elements"):
        PassManager.parse("functionalize").run(module)


def test_as_strided_of_a_view_as_another_dtype_has_its_dtype() -> None:
    def wider(x: torch.Tensor) -> torch.Tensor:
        return x.view(torch.int64).as_strided((2,), (1,), 1)

    def narrower(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        v = x.view(torch.int16).as_strided((1, 2), (3, 2), 1)
        x.sub_(-2)
        return v, torch.as_strided_scatter(x.view(torch.int16), v[0] + 1, (2,), (2,), 3)

    same(observe(wider, (torch.arange(7.0)[2:6],)), compiled(wider, (torch.arange(7.0)[2:6],)))
    for x in torch.arange(5.0)[::2], torch.arange(5.0)[1:]:
        if x.is_contiguous():
            same(observe(narrower, (x,)), compiled(narrower, (x,)))


def test_a_custom_operator_writes_a_view_of_an_argument_that_begins_later() -> None:
    """The wrapper copies the whole storage, of which a view had no more than its elements."""
    custom_ops.register()

    def number(x: torch.Tensor) -> torch.Tensor:
        v = x.view(torch.float64)
        torch.ops.irc_fuzz.bump(v, 2)
        torch.ops.irc_fuzz.each([x, x], 2)
        return v.view([])

    def halves(x: torch.Tensor) -> torch.Tensor:
        v, w = x.view(torch.int16), torch.zeros([2])
        x.mul_(2)
        torch.ops.irc_fuzz.exchange(w, v)
        return w

    def nothing(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        v, w = x.tensor_split((0,), 0)
        v.copy_(-2)
        torch.ops.irc_fuzz.bump(w, 1)
        return v, w

    for function, x in (
        (number, torch.arange(8)[7]), (halves, torch.arange(4.0)[1:3]),
        (nothing, torch.arange(8.0)[7:]),
    ):  # fmt: skip
        same(observe(function, (x,)), compiled(function, (x,)), exact=False)


@pytest.mark.parametrize("begin", [0, 1, 5])
def test_a_result_that_is_one_of_several_views_of_a_written_argument(begin: int) -> None:
    """With symbolic sizes it was taken at the beginning of the argument's storage."""

    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x.copy_(3)
        return x.chunk(2, 0)[0], x.split(1, 1)[-1], x.unbind(0)[1]

    run = torch.compile(f, backend="irc", dynamic=True)
    for shape in (4, 6), (2, 3):
        x = torch.arange(100.0)[begin : begin + 24].as_strided(shape, (shape[1], 1), begin)
        with torch.no_grad():
            same(observe(f, (x,)), observe(run, (x,)))


def test_a_view_of_a_written_argument_whose_sizes_became_numbers() -> None:
    """Slicing fixed the size; the result was taken at the beginning of the argument's storage."""

    def f(x: torch.Tensor) -> torch.Tensor:
        v = x.unsqueeze(-1)
        x[::2] = 1
        v.diagonal().fill_(3)
        return v.view(v.shape[0], -1)

    run = torch.compile(f, backend="irc", dynamic=True)
    for begin in 0, 8:
        x = torch.arange(12.0)[begin : begin + 2]
        with torch.no_grad():
            same(observe(f, (x,)), observe(run, (x,)))


def test_results_of_symbolic_sizes_share_as_eagers() -> None:
    def half(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        v = torch.full((x.numel(),), 2.0)
        return v[: v.shape[0] // 2], v, v[1:]

    def apart(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        v = torch.full((x.numel(),), 2.0)
        return v[: v.shape[0] // 2], v[v.shape[0] // 2 :]

    def rolled(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        v = x.roll(1, 0)
        w = v.unsqueeze(-1)
        v[0] = 2
        return v, w

    for function in half, apart, rolled:
        torch._dynamo.reset()
        run = torch.compile(function, backend="irc", dynamic=True)
        for size in (7, 4, 9):
            x = torch.arange(float(size))
            with torch.no_grad():
                same(observe(function, (x,)), observe(run, (x,)))


def test_results_of_which_none_is_known_to_end_last_share_as_eagers() -> None:
    def diagonal(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        v = torch.full_like(x, 2.0)
        return v[v.shape[0] // 2 :], v.diagonal()

    def diagonals(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        v = torch.full_like(x, 2.0)
        return v.diagonal(1), v.diagonal(-1), v.t()[1:]

    for function in diagonal, diagonals:
        torch._dynamo.reset()
        run = torch.compile(function, backend="irc", dynamic=True)
        for rows, columns in ((16, 16), (3, 7), (8, 4), (2, 2)):
            x = torch.rand(columns, rows).t()
            with torch.no_grad():
                same(observe(function, (x,)), observe(run, (x,)))


@pytest.mark.parametrize("first", [(), (1, 1)], ids=["number", "place"])
def test_a_result_is_a_view_of_the_argument_that_it_was_taken_of(first: tuple[int, ...]) -> None:
    """Not of another one of its storage, whose elements need not hold it."""

    def f(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x.add_(3)
        y.mul_(2)
        return y[:2].view(2, 1), y[1:], x.view(1)

    memory = torch.arange(11.0)
    check(f, memory.as_strided(first, (1,) * len(first), 3), memory[4:7])
    check(f, memory.as_strided(first, (1,) * len(first), 5), memory[4:7])
