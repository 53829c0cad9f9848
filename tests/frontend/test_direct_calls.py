"""When Dynamo's code calls the native program itself, and when AOTAutograd's wrapper stays."""

import pytest
import torch

from irc.boundary import torch_abi
from irc.frontend import backend, direct_calls

pytestmark = pytest.mark.skipif(not torch_abi.available(), reason="no native host functions")


@pytest.fixture
def seen(monkeypatch):
    """What `direct_call` gave for each compiled graph."""
    given = []
    original = direct_calls.direct_call

    def note(*arguments):
        given.append(original(*arguments) is not None)
        return original(*arguments)

    monkeypatch.setattr(backend.direct_calls, "direct_call", note)
    return given


def run(function, *arguments, **options):
    torch._dynamo.reset()
    return torch.compile(function, backend="irc", **options)(*arguments)


def ones():
    return torch.ones(3, 4)


def several(x, y):
    return x + y, (x * y).sum(), 2


def test_plain_inference_is_direct(seen):
    x, y = ones(), torch.randn(3, 4)
    with torch.no_grad():
        assert torch.equal(run(torch.relu, y), torch.relu(y))
        total, product, two = run(several, x, y)
    assert torch.equal(total, x + y) and two == 2
    torch.testing.assert_close(product, (x * y).sum())
    linear = torch.nn.Linear(4, 4)
    with torch.no_grad():
        assert torch.equal(run(linear, x), linear(x))
    assert seen == [True, True, True]


def test_inference_with_grad_mode_on(seen):
    result = run(lambda x: x.exp(), ones())
    assert not result.requires_grad and result.grad_fn is None and seen == [True]
    assert torch.is_grad_enabled()


def test_results_of_dynamic_sizes_keep_the_wrapper(seen):
    call = torch.compile(lambda x: x.exp() + x.shape[0], backend="irc", dynamic=True)
    for rows in (3, 5, 7):
        x = torch.randn(rows, 4)
        assert torch.equal(call(x), torch.exp(x) + rows)
    assert seen == [False]


def mutates(x):
    x.add_(1)
    return x * 2


def no_grad_after(x):
    torch.set_grad_enabled(False)
    return x * 2


@pytest.mark.parametrize(
    "function",
    [mutates, lambda x: (x[1:], x + 1)],
    ids=["mutation", "view of an input"],
)
def test_what_needs_the_wrapper(seen, function):
    with torch.no_grad():
        x, y = ones(), ones()
        results, expected = run(function, x), function(y)
    for a, b in zip(results, expected, strict=True):
        assert torch.equal(a, b) and a.stride() == b.stride()
    assert torch.equal(x, y)
    assert seen == [False]
    shares = [r._is_view() for r in results if isinstance(r, torch.Tensor)]
    assert shares == [r._is_view() for r in expected if isinstance(r, torch.Tensor)]


def test_mutation_keeps_the_version_counter(seen):
    x = ones()
    with torch.no_grad():
        run(mutates, x)
    assert x._version > 0 and seen == [False]


def test_training_and_freezing_are_no_such_calls(seen):
    x = ones().requires_grad_()
    run(lambda x: x.exp(), x).sum().backward()
    assert torch.equal(x.grad, x.detach().exp())
    linear = torch.nn.Linear(4, 4).eval()
    with torch.no_grad():
        run(linear, ones(), options={"freezing": True})
    assert seen == []


def test_grad_mode_that_the_graph_changes(seen):
    try:
        run(no_grad_after, ones())
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_under_autocast(seen):
    x, w = torch.randn(3, 4), torch.randn(4, 4)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        result = run(lambda x, w: torch.relu(x @ w), x, w)
    assert result.dtype is torch.bfloat16 and seen == [True]


def test_a_subclass_keeps_its_type(seen):
    from torch.testing._internal.two_tensor import TwoTensor

    x = TwoTensor(ones(), ones() * 2)
    with torch.no_grad():
        result = run(lambda x: x + 1, x)
    assert type(result) is TwoTensor and torch.equal(result.b, ones() * 3)
    assert seen == [False]


def test_profiled_calls_run(seen):
    with torch.no_grad(), torch.profiler.profile():
        assert torch.equal(run(torch.relu, ones()), ones())
