"""The gradient of a log_softmax computes it again, from the scores and two numbers of each row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from irc.frontend.backend import Compiled, recording
from irc.frontend.fx.recomputed_softmaxes import spell_log_softmaxes

ROWS, CLASSES = 6, 37


def stepped(
    loss: Callable[..., torch.Tensor], scores: torch.Tensor, *rest: Any, **options: Any
) -> tuple[list[torch.Tensor], list[Compiled]]:
    """The loss and the gradient of the scores, and the programs."""
    torch._dynamo.reset()
    given = scores.clone().requires_grad_()
    with recording() as made:
        result = torch.compile(loss, backend="irc", **options)(given, *rest)
        (gradient,) = torch.autograd.grad(result.sum(), given)
    return [result.detach(), gradient], made


def stored(made: list[Compiled]) -> list[int]:
    """Elements of the arrays that the forward makes for the backward, the largest first."""
    (forward,) = [program for program in made if program.stage == "forward"]
    fresh = [r for r in forward.executable.info.results[1:] if r.alias_of is None]
    return sorted((math.prod(r.sizes) for r in fresh), reverse=True)


LOSSES: dict[str, Callable[..., torch.Tensor]] = {
    "mean": F.cross_entropy,
    "each": lambda x, t: F.cross_entropy(x, t, reduction="none"),
    "smooth": lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
    "weighted": lambda x, t: F.cross_entropy(x, t, torch.arange(1.0, CLASSES + 1).to(x.dtype)),
    "ignored": lambda x, t: F.cross_entropy(x, t, ignore_index=3),
    "wide": lambda x, t: F.cross_entropy(x.float(), t),
    "columns": lambda x, t: F.cross_entropy(x.view(2, CLASSES, -1), t.view(2, -1)),
    "kept narrow": lambda x, t: F.nll_loss(F.log_softmax(x, 1), t),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", LOSSES)
def test_the_forward_stores_no_array_of_all_classes(name, dtype):
    torch.manual_seed(0)
    scores, labels = 3 * torch.randn(ROWS, CLASSES).to(dtype), torch.arange(ROWS) * 5 % CLASSES
    labels[1] = 3
    got, made = stepped(LOSSES[name], scores, labels)
    assert stored(made)[0] <= ROWS
    exact = scores.double().requires_grad_()
    expected = LOSSES["mean" if name == "wide" else name](exact, labels)
    (gradient,) = torch.autograd.grad(expected.sum(), exact)
    error = 2e-6 if dtype is torch.float32 else 2e-2
    torch.testing.assert_close(got[0].double(), expected.detach(), rtol=error, atol=error)
    torch.testing.assert_close(got[1].double(), gradient, rtol=error, atol=error)


def test_symbolic_sizes():
    scores, labels = torch.randn(5, 11), torch.arange(5)
    got, made = stepped(F.cross_entropy, scores, labels, dynamic=True)
    (forward,) = [program for program in made if program.stage == "forward"]
    fresh = [r.sizes for r in forward.executable.info.results[1:] if r.alias_of is None]
    assert not any(len([d for d in sizes if d != 1]) == 2 for sizes in fresh)
    given = scores.clone().requires_grad_()
    expected = F.cross_entropy(given, labels)
    torch.testing.assert_close(got, [expected, *torch.autograd.grad(expected, given)])


def test_infinities_and_nan_are_as_in_eager_mode():
    scores = torch.randn(5, 9)
    scores[0, 2], scores[1], scores[2, 5], scores[3, 0] = -math.inf, -math.inf, math.inf, math.nan
    labels = torch.tensor([2, 0, 5, 1, 3])

    def each(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(x, t, reduction="none")

    got, _ = stepped(each, scores, labels)
    given = scores.clone().requires_grad_()
    expected = each(given, labels)
    (gradient,) = torch.autograd.grad(expected.sum(), given)
    torch.testing.assert_close(got, [expected.detach(), gradient], equal_nan=True)


def returned(x: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(x, -1)


def test_what_the_caller_gets_is_saved_as_it_is():
    scores = torch.randn(4, 8)
    got, made = stepped(returned, scores)
    (forward,) = [program for program in made if program.stage == "forward"]
    assert len(forward.executable.info.results) == 2
    given = scores.clone().requires_grad_()
    expected = returned(given)
    torch.testing.assert_close(got, [expected, *torch.autograd.grad(expected.sum(), given)])


def joint(x: torch.Tensor, y: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A graph with a gradient that torch has not taken apart, and one log_softmax without any."""
    result = torch.ops.aten._log_softmax(x, 1, False)
    other = torch.ops.aten._log_softmax(y, 1, False)
    gradient = torch.ops.aten._log_softmax_backward_data(g, result.detach(), 1, x.dtype)
    return result.sum(1), other.sum(1), gradient + torch.zeros_like(result)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_gradients_are_written_out(dtype, mode):
    torch.manual_seed(1)
    args = [torch.randn(3, 5).to(dtype) for _ in range(3)]
    module = make_fx(joint, tracing_mode=mode)(*args)
    assert spell_log_softmaxes(module) == 1
    module.graph.lint()
    module.graph.eliminate_dead_code()
    targets = [n.target for n in module.graph.nodes]
    assert targets.count(torch.ops.aten._log_softmax.default) == 1
    assert torch.ops.aten._log_softmax_backward_data.default not in targets
    assert all("val" in n.meta for n in module.graph.nodes if n.op == "call_function")
    for got, expected in zip(module(*args), joint(*args), strict=True):
        assert got.dtype is dtype
        torch.testing.assert_close(got, expected)


def test_a_number_stays():
    def function(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        result = torch.ops.aten._log_softmax(x, 0, False)
        return torch.ops.aten._log_softmax_backward_data(g, result, 0, x.dtype)

    module = make_fx(function, tracing_mode="fake")(torch.tensor(1.0), torch.tensor(2.0))
    assert spell_log_softmaxes(module) == 0
