"""What an operator of a library holds on to stays as it was: it is no memory that is used again."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest
import torch

import irc

KEPT: list[torch.Tensor] = []


@pytest.fixture(autouse=True, scope="module")
def _operators() -> Iterator[None]:
    def watch(x: torch.Tensor) -> torch.Tensor:
        KEPT.append(x)
        return x.sum().reshape(1)

    def raise_all(x: torch.Tensor) -> None:
        x.add_(1)
        KEPT.append(x)

    with torch.library._scoped_library("irc_kept", "DEF") as library:
        library.define("watch(Tensor x) -> Tensor")
        library.define("raise_all(Tensor(a!) x) -> ()")
        for key in ("CompositeExplicitAutograd",):
            library.impl("watch", watch, key)
            library.impl("raise_all", raise_all, key)
        library.impl("watch", lambda x: x.new_empty(1), "Meta")
        library.impl("raise_all", lambda x: None, "Meta")
        yield


@pytest.fixture(autouse=True)
def _empty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("IRC_DISABLE_CACHE", "1")
    KEPT.clear()
    yield
    KEPT.clear()


def watch(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.irc_kept.watch(x)


def reads_once(x):
    return watch(x.sin())


def reads_then_writes(x):
    """The last reader but one of a value that a kernel could go on computing in."""
    y = x.sin()
    total = watch(y)
    return (y + 1).relu() @ x.t(), total


def reads_a_view(x):
    y = x.sin()
    return watch(y.t()[1:]), (y * 2).sum()


def reads_a_product(x):
    y = x @ x.t()
    total = watch(y)
    z = y.exp()
    return total, z.sum(0) + z.sum(1)


def updates(x):
    y = x.sin()
    total = watch(y)
    x.copy_(y)
    return total


def writes(x):
    y = x.cos()
    torch.ops.irc_kept.raise_all(y)
    return (y * 3).tan().sum(0) + y.sum(0)


def in_a_branch(x):
    y = x.sin()
    return torch.cond(y.sum() > -1e9, lambda v: watch(v) + 1, lambda v: v.sum().reshape(1), (y,))


def expected(function: Callable, *inputs: torch.Tensor) -> list[torch.Tensor]:
    KEPT.clear()
    function(*[x.clone() for x in inputs])
    kept = [x.clone() for x in KEPT]
    KEPT.clear()
    return kept


@pytest.mark.fault("V3")
@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize(
    "function",
    [reads_once, reads_then_writes, reads_a_view, reads_a_product, updates, writes, in_a_branch],
)
def test_what_an_operator_keeps_stays_as_it_was(function, slow, monkeypatch):
    monkeypatch.setenv("IRC_FORCE_SLOW_HOST", str(int(slow)))
    torch._dynamo.reset()
    first, second = torch.randn(33, 33), torch.randn(33, 33)
    wanted = expected(function, first) + expected(function, second)
    compiled = torch.compile(function, backend="irc", fullgraph=True)
    with torch.no_grad():
        compiled(first.clone())
        compiled(second.clone())
    torch.testing.assert_close(KEPT, wanted)
    del compiled
    torch._dynamo.reset()
    gc.collect()
    scratch = [torch.full((33, 33), 7.0) for _ in range(8)]
    torch.testing.assert_close(KEPT, wanted)
    assert scratch


@pytest.mark.fault("V3")
def test_operators_of_torch_get_memory_of_the_arena():
    """Only what may be kept costs a tensor of its own."""

    def f(x):
        return watch(x.sin()), torch.sort((x * 3).cos())[0].sum(0)

    module = irc.trace(f, (torch.randn(5, 5),))
    irc.PassManager.parse("lower-to-cpu", verify="each").run(module)
    escapes = [op.escapes for op in module.walk() if op.name == "host.alloc"]
    assert escapes.count(False) == 1, escapes
