"""Steps of training whose programs autograd calls itself, and those that AOTAutograd surrounds."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import torch
from torch import nn
from torch._dynamo import compiled_autograd

from irc.boundary import torch_abi
from irc.frontend import training_calls

pytestmark = pytest.mark.skipif(not torch_abi.available(), reason="no native host functions")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    compiled_autograd.reset()
    torch._dynamo.reset()


def is_own(result: torch.Tensor) -> bool:
    """Whether a result was made without AOTAutograd's wrappers."""
    return result.grad_fn._forward_cls.__module__ == training_calls.__name__


def pair(*layers: nn.Module) -> tuple[nn.Module, nn.Module]:
    """A model, and a copy of it that irc compiles."""
    eager = nn.Sequential(*layers)
    return eager, torch.compile(copy.deepcopy(eager), backend="irc")


def same_gradients(compiled: nn.Module, eager: nn.Module) -> None:
    for p, q in zip(compiled.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad)
        assert p.grad.stride() == q.grad.stride()


def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    model.zero_grad()
    result = model(x)
    result.square().mean().backward()
    return result


def warm(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The result of a step that AOTAutograd has no part in."""
    for _ in range(3):
        result = step(model, x)
    assert is_own(result)
    return result


def test_the_second_step_is_autograds_own():
    eager, compiled = pair(nn.Linear(5, 7), nn.GELU(), nn.LayerNorm(7), nn.Linear(7, 3))
    for number in range(4):
        x = torch.randn(6, 5)
        found, expected = step(compiled, x), step(eager, x)
        assert is_own(found) == (number > 0)
        torch.testing.assert_close(found, expected)
        same_gradients(compiled, eager)


def test_gradients_add_up():
    eager, compiled = pair(nn.Linear(5, 3))
    for _ in range(4):
        x = torch.randn(6, 5)
        for each in (eager, compiled):
            each(x).exp().sum().backward()
    assert is_own(compiled(x))
    same_gradients(compiled, eager)


def test_arrays_that_the_graph_writes():
    eager, compiled = pair(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    x = torch.randn(2, 3, 6, 6)
    for _ in range(3):
        versions = [b._version for b in compiled.buffers()]
        found = step(compiled, x)
        torch.testing.assert_close(found, step(eager, x))
        now = [b._version for b in compiled.buffers()]
        assert all(a < b for a, b in zip(versions, now, strict=True))
    assert is_own(found)
    same_gradients(compiled, eager)
    for a, b in zip(compiled.buffers(), eager.buffers(), strict=True):
        torch.testing.assert_close(a, b)


def several(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x @ w
    return y.exp(), y.argmax(1), y.sin(), w.detach() * 2


def test_results_of_which_some_have_gradients():
    compiled = torch.compile(several, backend="irc")
    x, w = torch.randn(4, 5), torch.randn(5, 3, requires_grad=True)
    for used in ((0, 2), (2,), (0,), (2, 0)):
        found, expected = compiled(x, w), several(x, w)
        assert [r.requires_grad for r in found] == [True, False, True, False]
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b)
        a, b = (torch.autograd.grad(sum(r[i].sum() for i in used), w) for r in (found, expected))
        torch.testing.assert_close(a, b)
    assert is_own(found[0])


def test_gradients_in_other_layouts():
    eager, compiled = pair(nn.Linear(5, 4), nn.Tanh())
    x = torch.randn(6, 5)
    warm(compiled, x)
    for given in (torch.randn(1, 1).expand(6, 4), torch.randn(4, 6).t(), torch.randn(6, 8)[:, ::2]):
        for each in (eager, compiled):
            each.zero_grad()
            each(x).backward(given)
        same_gradients(compiled, eager)


def test_a_gradient_of_a_gradient_is_refused():
    _, compiled = pair(nn.Linear(5, 4), nn.Tanh())
    x = torch.randn(6, 5, requires_grad=True)
    warm(compiled, x)
    result = compiled(x)
    assert is_own(result)
    (first,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        first.sum().backward()


def test_a_graph_that_is_kept():
    eager, compiled = pair(nn.Linear(5, 4), nn.Tanh())
    x = torch.randn(6, 5)
    warm(compiled, x)
    for each in (eager, compiled):
        each.zero_grad()
        loss = each(x).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()
    same_gradients(compiled, eager)


def test_what_is_saved_must_not_change():
    _, compiled = pair(nn.Linear(5, 4), nn.Linear(4, 4))
    x = torch.randn(6, 5)
    warm(compiled, x)
    result = compiled(x)
    with torch.no_grad():
        list(compiled.parameters())[2].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_hooks_of_saved_tensors():
    eager, compiled = pair(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 4))
    x = torch.randn(6, 5)
    warm(compiled, x)
    packed: list[torch.Tensor] = []

    def pack(t: torch.Tensor) -> int:
        packed.append(t)
        return len(packed) - 1

    with torch.autograd.graph.saved_tensors_hooks(pack, packed.__getitem__):
        result = compiled(x)
    assert is_own(result) and packed
    compiled.zero_grad()
    result.square().mean().backward()
    step(eager, x)
    same_gradients(compiled, eager)


def test_hooks_of_gradients():
    eager, compiled = pair(nn.Linear(5, 4), nn.Tanh())
    seen = []
    for each in (eager, compiled):
        weight = next(each.parameters())
        weight.register_hook(lambda g: g * 3)
        weight.register_post_accumulate_grad_hook(lambda p: seen.append(p))
    x = torch.randn(6, 5)
    warm(compiled, x)
    step(eager, x)
    same_gradients(compiled, eager)
    assert len(seen) == 4


def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).sin()


def test_arguments_that_are_views_keep_no_graph_alive():
    """A saved view knows its base, which may come to depend on what it was saved for."""
    compiled = torch.compile(product, backend="irc")
    w = torch.randn(5, 3, requires_grad=True)
    for _ in range(3):
        leaf = torch.randn(5, 4, requires_grad=True)
        base = leaf * 1
        result = compiled(base.t(), w)
        result.square().sum().backward()
        expected = torch.autograd.grad(product(leaf.t(), w).square().sum(), leaf)[0]
        torch.testing.assert_close(leaf.grad, expected)
    base = leaf * 1
    result = compiled(base.t(), w)
    assert is_own(result)
    base.add_(result.sum())
    node = weakref.ref(result.grad_fn)
    del base, result
    gc.collect()
    assert node() is None


def test_without_gradients():
    eager, compiled = pair(nn.Linear(5, 4), nn.Tanh())
    x = torch.randn(6, 5)
    warm(compiled, x)
    with torch.no_grad():
        result = compiled(x)
    assert not result.requires_grad
    torch.testing.assert_close(result, eager(x))
    assert is_own(compiled(x))


def test_as_part_of_compiled_autograd():
    eager, compiled = pair(nn.Linear(5, 4), nn.LayerNorm(4), nn.Linear(4, 3))
    x = torch.randn(6, 5)
    warm(compiled, x)
    for _ in range(2):
        compiled.zero_grad()
        result = compiled(x)
        assert is_own(result)
        with compiled_autograd._enable(torch.compile(backend="irc", fullgraph=True)):
            result.square().mean().backward()
        step(eager, x)
        same_gradients(compiled, eager)


def test_under_autocast():
    eager, compiled = pair(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 8))
    x = torch.randn(6, 16)
    for _ in range(3):
        for each in (eager, compiled):
            each.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                result = each(x)
            assert result.dtype is torch.bfloat16
            result.float().square().mean().backward()
    assert is_own(result)
    for p, q in zip(compiled.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("dynamic", [False, True])
def test_sizes_that_change(dynamic):
    eager = nn.Sequential(nn.Linear(5, 4), nn.Tanh())
    compiled = torch.compile(copy.deepcopy(eager), backend="irc", dynamic=dynamic)
    for rows in (3, 3, 6, 6, 2, 3, 6):
        x = torch.randn(rows, 5)
        torch.testing.assert_close(step(compiled, x), step(eager, x))
        same_gradients(compiled, eager)


def mutated(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    x.add_(w)
    return x.exp()


def viewed(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return w[1:], (x * w).sum()


@pytest.mark.parametrize("function", [mutated, viewed])
def test_what_needs_the_wrappers(function):
    compiled = torch.compile(function, backend="irc")
    for _ in range(3):
        x, w = torch.randn(4, 3), torch.randn(4, 3, requires_grad=True)
        y = x.clone()
        found, expected = compiled(x, w), function(y, w)
        found = found if isinstance(found, torch.Tensor) else found[1]
        expected = expected if isinstance(expected, torch.Tensor) else expected[1]
        assert not is_own(found)
        gradients = [torch.autograd.grad(r.sum(), w)[0] for r in (found, expected)]
        torch.testing.assert_close(*gradients)
        torch.testing.assert_close(x, y)
