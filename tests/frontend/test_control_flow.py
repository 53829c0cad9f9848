"""torch's control flow: values, gradients and strides, with fixed sizes and with symbols."""

from __future__ import annotations

import pytest
import torch
from torch._higher_order_ops.map import map as mapped
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import irc
from tests.backends import needs_backend
from tests.frontend.test_higher_order import compared, leaves

pytestmark = needs_backend
both = pytest.mark.parametrize("dynamic", [False, True])


@both
def test_cond(dynamic):
    torch.manual_seed(0)

    def model(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() * 2, (x,))

    calls = [[torch.rand(7, 3)], [-torch.rand(7, 3)], [-torch.rand(5, 3)]]
    text = compared(model, *calls[: 3 if dynamic else 2], dynamic=dynamic)
    assert "flow.cond" in text


@both
def test_gradients_of_a_cond_reach_parameters_of_the_closure(dynamic):
    torch.manual_seed(0)
    weight = torch.randn(3, 3, requires_grad=True)

    def model(x, weight):
        chosen = x.sum() > 0
        return torch.cond(chosen, lambda x: (x @ weight).sin(), lambda x: (x @ weight).cos(), (x,))

    for sign in (1, -1):
        x = (sign * torch.rand(7, 3)).requires_grad_()
        text = compared(model, [x, weight], dynamic=dynamic)
        assert text.count("flow.cond") == 2


def test_cond_on_a_size():
    torch.manual_seed(0)

    def model(x):
        first, second = torch.cond(
            x.shape[0] > 4, lambda x: (x + 1, x.sum(0)), lambda x: (x - 1, x.mean(0)), (x,)
        )
        return first * 2, second

    compared(model, [torch.randn(7, 3)], [torch.randn(3, 3)], dynamic=True)


def test_cond_with_operands_in_any_strides():
    torch.manual_seed(0)

    def model(x, z):
        operands = (x.t(), z.t()[1:])
        return torch.cond(x.sum() > 0, lambda y, z: y + z, lambda y, z: y * z, operands).exp()

    compared(model, *[[sign * torch.rand(5, 4), torch.randn(5, 5)] for sign in (1, -1)])


def test_a_branch_that_gives_an_operand_back():
    torch.manual_seed(0)

    def model(x):
        y = torch.cond(x.sum() > 0, lambda x: x.clone(), lambda x: x.neg(), (x,))
        x.add_(1)
        return y

    compared(model, [torch.rand(5)], [-torch.rand(5)])


def test_nested_conds():
    torch.manual_seed(0)

    def inner(x):
        return torch.cond(x.max() > 1, lambda x: x.exp(), lambda x: x.sin(), (x,))

    def model(x):
        return torch.cond(x.sum() > 0, inner, lambda x: inner(x + 3), (x,))

    compared(model, *[[torch.rand(5) + shift] for shift in (1.0, 0.0, -2.0, -5.0)])


@both
def test_while_loop(dynamic):
    def model(i, x):
        return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.1 + i), (i, x))

    torch.manual_seed(0)
    calls = [[torch.tensor(i), torch.randn(n)] for i, n in ((0, 5), (3, 5), (9, 5), (1, 6))]
    compared(model, *calls[: 4 if dynamic else 3], dynamic=dynamic)


def test_a_loop_that_never_runs_gives_copies():
    def model(i, x):
        i, y = while_loop(lambda i, x: i < 0, lambda i, x: (i + 1, x * 2), (i, x))
        x.add_(1)
        return y

    compared(model, [torch.tensor(0), torch.randn(5)])


def test_a_loop_over_integers():
    def model(x):
        return while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x + i), (0, x))[1]

    compared(model, [torch.randn(5)])


def test_a_cond_in_a_loop_with_a_parameter():
    torch.manual_seed(0)

    def model(i, x, weight):
        def body(i, x):
            return i + 1, torch.cond(x.sum() > 0, lambda x: x @ weight, lambda x: x.cos(), (x,))

        return while_loop(lambda i, x: i < 4, body, (i, x))

    compared(model, [torch.tensor(0), torch.randn(3, 4), torch.randn(4, 4)])


@both
def test_scan(dynamic):
    torch.manual_seed(0)

    def model(start, xs):
        return scan(lambda c, x: (c * 0.5 + x, c + x), start, xs, dim=0)

    calls = [[torch.randn(4), torch.randn(n, 4)] for n in (6, 7)]
    compared(model, *calls[: 2 if dynamic else 1], dynamic=dynamic)


def test_gradients_of_a_scan_with_several_carries():
    torch.manual_seed(0)
    weight = torch.randn(4, 4, requires_grad=True)

    def model(first, second, xs, weight):
        def step(carry, x):
            a, b = carry
            return [(a @ weight).tanh() + x, b * 0.5 + a], [a + b, x.sum()]

        carries, elements = scan(step, [first, second], xs, dim=0)
        return (*carries, *elements)

    compared(model, [*leaves((4,), (4,), (6, 4)), weight])


@both
def test_gradients_of_a_scan_that_need_its_results(dynamic):
    torch.manual_seed(0)

    def model(start, xs):
        return scan(lambda c, x: ((c * x).tanh(), (c + x).sigmoid()), start, xs, dim=0)

    compared(model, leaves((4,), (6, 4)), dynamic=dynamic)


@both
def test_map(dynamic):
    torch.manual_seed(0)

    def model(xs, y):
        return mapped(lambda x, y: x.sin() + y, xs, y)

    compared(model, leaves((6, 4), (4,)), dynamic=dynamic)


def test_random_numbers_in_a_branch_are_drawn_once():
    def model(x):
        return torch.cond(x.sum() > 0, lambda x: x + torch.rand(3), lambda x: x.clone(), (x,))

    torch._dynamo.reset()
    compiled = torch.compile(model, backend="irc", fullgraph=True)
    first, second = compiled(torch.ones(3)), compiled(torch.ones(3))
    assert not torch.equal(first, second)
    assert torch.equal(compiled(-torch.ones(3)), -torch.ones(3))


def test_traced_with_the_semantics_checked():
    def model(x):
        return torch.cond(x.sum() > 0, lambda x: x.t() + 1, lambda x: x.t().cos(), (x,))

    torch.manual_seed(0)
    x = torch.rand(4, 3)
    compiled = irc.compile(model, (x,), options={"check_semantics": "each"})
    for given in (x, -x):
        torch.testing.assert_close(compiled(given), model(given))


def test_a_cached_program_has_its_functions():
    torch.manual_seed(0)

    def model(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.exp(), (x,))

    for _ in range(2):
        compared(model, [torch.rand(7)], [-torch.rand(7)])


def test_gradients_of_a_while_loop():
    torch.manual_seed(0)

    def model(i, x):
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x.sin() * 1.5), (i, x))

    compared(model, [torch.tensor(0), *leaves((5,))])
