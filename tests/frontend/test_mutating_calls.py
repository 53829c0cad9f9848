"""Custom operators that write views, of which the bases begin anywhere and were written before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.fuzz import custom_ops

Program = Callable[..., tuple[Tensor, ...]]


def exchange(x: Tensor, y: Tensor) -> None:
    torch.ops.irc_fuzz.exchange(x, y)


def view_before_a_write(a: Tensor) -> tuple[Tensor, ...]:
    column = a.select(2, 0)
    column[0, 1:] = 3
    exchange(column, column)
    return (column.sum(),)


def view_after_a_write(a: Tensor) -> tuple[Tensor, ...]:
    a.select(2, 0)[0, 1:] = 3
    column = a.select(2, 1)
    exchange(column, column)
    return (column.sum(),)


def whole_write_between(a: Tensor) -> tuple[Tensor, ...]:
    column = a.select(2, 1)
    a.add_(1)
    torch.ops.irc_fuzz.bump(column, 3)
    return (column.clone(),)


PROGRAMS = (view_before_a_write, view_after_a_write, whole_write_between)
LAYOUTS = {
    "rows": ((2, 2, 3), (6, 3, 1)),
    "gaps": ((2, 2, 3), (20, 7, 2)),
    "columns": ((2, 2, 3), (1, 2, 4)),
}


def check(program: Program, *arguments: Callable[[], Tensor]) -> None:
    """Results and whole storages are as in eager mode."""
    custom_ops.register()
    torch._dynamo.reset()
    outcomes = []
    for call in (program, torch.compile(program, backend="irc")):
        values = [make() for make in arguments]
        results = call(*values)
        outcomes.append([*results, *(_storage(value) for value in values)])
    for eager, compiled in zip(*outcomes, strict=True):
        assert torch.equal(eager, compiled), (eager, compiled)


def _storage(value: Tensor) -> Tensor:
    """A tensor's storage as a vector."""
    length = value.untyped_storage().nbytes() // value.element_size()
    return value.as_strided((length,), (1,), 0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_views_of_an_argument(program: Program, layout: str) -> None:
    size, stride = LAYOUTS[layout]
    check(program, lambda: torch.arange(47).as_strided(size, stride, 5))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_views_of_a_new_tensor(program: Program) -> None:
    check(lambda a: program(a + 1), lambda: torch.arange(47).as_strided((2, 2, 3), (20, 7, 2), 5))


def test_a_filled_argument_of_gaps() -> None:
    def program(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        a.fill_(torch.tensor(4))
        first = a.squeeze(0)
        exchange(a, b)
        first[-1] = -2
        return (b.clone(),)

    gaps = lambda: torch.arange(27).as_strided((3, 3, 1), (2, 6, 18), 7)  # noqa: E731
    check(program, gaps, lambda: torch.tensor(3))


def test_a_view_as_another_dtype() -> None:
    def program(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        halves = a.view(torch.int16)
        exchange(b, halves)
        return (halves + 1,)

    gaps = lambda: torch.arange(363, dtype=torch.int32).as_strided((2, 4), (300, 1), 8)  # noqa: E731
    check(program, gaps, lambda: torch.arange(12.0, dtype=torch.float64))
