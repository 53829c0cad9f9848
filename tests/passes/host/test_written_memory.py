"""In whose memory results are computed, program by program: values, arguments and views stay
eager's, in the interpreter and in machine code, and nothing is copied that need not be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import irc  # noqa: E402
from irc.dialects import host  # noqa: E402
from irc.pipeline import lower  # noqa: E402
from tests.fuzz import custom_ops  # noqa: E402
from tests.fuzz.harness import clones, observe, same  # noqa: E402

custom_ops.register()
ops = torch.ops.irc_fuzz
X = torch.arange(12.0).reshape(3, 4)
SQUARE = torch.arange(9.0).reshape(3, 3)
ROWS, OTHERS = torch.tensor([0, 2, 0]), torch.tensor([1, 1, 0])
Counts = tuple[int, int, int, int]
Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...], Counts, Callable[..., Any]]
CASES: dict[str, Case] = {}


def case(
    *arguments: torch.Tensor, in_place: int = 0, updates: int = 0, allocations: int = 0,
    copies: int = 0, meaning: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
    """Note a program: its arguments, results in the memory of what dies, arguments that are
    updated without a copy, allocations and copies. `meaning`: what tells the values, where those of
    eager mode are undefined."""

    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        counts = (in_place, updates, allocations, copies)
        CASES[function.__name__] = function, arguments, counts, meaning or function
        return function

    return note


@case(X, updates=1)
def updates_with_a_new_value(x):
    x.copy_(x.sin() * 2)


@case(X, X + 1, updates=1, allocations=1)
def updates_and_returns_another_use(x, y):
    x.copy_(y.exp())
    return y + x


@case(X, X + 1, X + 2, updates=1, copies=1)
def updates_two_arguments_with_one_value(x, y, z):
    x.copy_(z.exp())
    y.copy_(z.exp())


@case(X, X + 1, updates=2)
def exchanges_two_arguments_negated(x, y):
    old = x.neg()
    x.copy_(y.neg())
    y.copy_(old)


@case(X, X + 1, copies=4)
def swaps_two_arguments(x, y):
    old = x.clone()
    x.copy_(y)
    y.copy_(old)


@case(X, allocations=3, copies=1)
def reads_old_elements_later(x):
    old = x.clone()
    x.add_(1)
    return (old.t() @ x).sum()


@case(X, updates=1, allocations=1)
def subtracts_sums_of_rows(x):
    sums = x.sum(1, keepdim=True)
    x.sub_(sums)
    return sums


@case(SQUARE, allocations=1, copies=1)
def reads_at_other_places_than_it_writes(x):
    x.copy_(x.t() + 1)


@case(X, allocations=1, copies=1)
def returns_a_view_of_what_it_updates(x):
    x.mul_(2)
    return x[1:]


@case(X, allocations=1)
def reads_bits(x):
    return (x + 1).view(torch.int32) + 1


@case(X, allocations=1)
def writes_bits(x):
    y = x + 1
    y.view(torch.int32).add_(1)
    return y * 1


@case(X, in_place=1, allocations=2)
def a_call_writes_what_is_new(x):
    y = x + 1
    ops.bump(y, 1)
    return y * 2


@case(X, in_place=1, allocations=3)
def a_call_writes_what_was_copied(x):
    y = x + 1
    old = y.clone()
    ops.bump(y, 1)
    return y + old.sum()


@case(X, in_place=1, updates=1)
def a_call_writes_an_argument(x):
    ops.bump(x, 2)


@case(X, in_place=1, updates=1, allocations=1)
def a_call_writes_an_argument_that_is_read_later(x):
    ops.bump(x, 2)
    return x + 1


@case(X, in_place=1, allocations=2, copies=1)
def a_call_writes_a_row(x):
    y = x + 1
    ops.bump(y[1], 2)
    return y + 1


@case(X, X + 1, in_place=2, allocations=3)
def a_call_writes_two_values(x, y):
    a, b = x + 1, y * 2
    ops.exchange(a, b)
    return a - b


@case(X, X + 1, in_place=2, updates=2)
def a_call_writes_two_arguments(x, y):
    ops.exchange(x, y)


@case(X, in_place=1, allocations=1)
def a_call_writes_one_value_twice(x):
    a = x + 1
    ops.exchange(a, a)
    return a * 1


@case(X, X + 1, in_place=2, updates=1, allocations=2)
def a_call_writes_a_list(x, y):
    a = x + 1
    ops.each([a, y], 3)
    return a + y


def product_of_the_old_value(x, y):
    y.copy_(x @ y)


# MKL reads what it has written by then, on some processors.
@case(torch.ones(3, 3), torch.ones(3, 3) * 2, allocations=1, copies=1,
      meaning=product_of_the_old_value)  # fmt: skip
def a_product_is_given_the_memory_of_its_operand(x, y):
    torch.mm(x, y, out=y)


@case(X, in_place=2, allocations=2)
def products_and_what_is_done_to_them(x):
    return ((x @ x.t()).relu() @ x).sin()


@case(X, in_place=1, allocations=2)
def scatters_into_what_is_new(x):
    return torch.zeros(3, 4).index_add(0, ROWS, x) + 0


@case(X, allocations=2, copies=1)
def scatters_a_value_into_an_argument(x):
    x.index_add_(0, ROWS, x * 2)


@case(X, X + 1, updates=1, allocations=2)
def scatters_twice_into_an_argument(x, y):
    x.index_add_(0, ROWS, y)
    x.index_add_(0, OTHERS, y)


@case(X, X + 1, allocations=4)
def returns_what_it_scatters_into_again(x, y):
    first = x.index_add(0, ROWS, y)
    return first, first.index_add(0, OTHERS, y)


@case(X, updates=1)
def updates_a_part(x):
    x[1:].add_(1)


@pytest.mark.parametrize("name", CASES)
def test_where_results_are_computed(name: str) -> None:
    function, arguments, counts, meaning = CASES[name]

    def listed(run: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: torch.Tensor) -> Any:
            found = run(*values)
            return () if found is None else found

        return call

    expected = observe(listed(meaning), arguments)
    module = irc.trace(function, tuple(clones(arguments)))
    statistics = lower(module).statistics
    interpreted = observe(listed(lambda *v: irc.run(module, *v)), arguments)
    same(expected, interpreted, what="interpreted", exact=False, strides=False)
    same(expected, observe(listed(irc.build(module)), arguments), what="built", exact=False)
    names = ("in-place", "updates without a copy", "allocations")
    found = [statistics.get(("bufferize", n), 0) for n in names]
    copies = sum(isinstance(op, host.HostCopyOp) for op in module.walk())
    assert (*found, copies) == counts
