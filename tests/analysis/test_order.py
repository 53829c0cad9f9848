"""Operations with effects keep their order, whatever is fused around them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import irc
from irc.analysis.loop import Clusters
from irc.dialects import func, loop

pytestmark = pytest.mark.fault("C1")


def drawn(function: Any, *arguments: torch.Tensor) -> list[torch.Tensor]:
    """The results from a seed."""
    torch.manual_seed(3)
    return list(function(*arguments))


def around(x):
    """Two kernels that fuse, with a draw between them, and one that the second reads."""
    first = x.sin()
    between = torch.rand(3)
    return first, between, x.cos() * torch.rand_like(x)


def chain(x):
    first = torch.randn(5) + 1
    second = x * torch.bernoulli(x.sigmoid())
    return x + 1, second.sum(1), first, torch.randint(9, (4,)), (x * torch.rand_like(x)).sum(1)


@pytest.mark.parametrize("function", [around, chain])
@pytest.mark.parametrize("compiled", ["irc.compile", "torch.compile"])
def test_random_numbers_are_drawn_in_order(function, compiled):
    x = torch.randn(40, 50, generator=torch.Generator().manual_seed(0))
    torch._dynamo.reset()
    if compiled == "irc.compile":
        run: Any = irc.compile(function, (x,))
    else:
        run = torch.compile(function, backend="irc", fullgraph=True)
    torch.testing.assert_close(drawn(run, x), drawn(function, x), rtol=1e-5, atol=1e-5)


def test_merged_computes_leave_calls_in_order():
    x = torch.ones(8, 8)
    module = irc.trace(around, (x,))
    irc.PassManager.parse("functional,aten-to-graph,graph-to-layout,layout-to-loop").run(module)
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    clusters = Clusters(function.block)
    computes = [k for k, op in enumerate(clusters.ops) if isinstance(op, loop.ComputeOp)]
    calls = [k for k, op in enumerate(clusters.ops) if op.name == "graph.call_aten"]
    assert clusters.depends(calls[1], calls[0]), "the second draw comes after the first"
    merged = clusters.merge(computes[0], computes[-1])
    ordered = [op for cluster in clusters.order() for op in cluster]
    drawn = [op for op in ordered if op.name == "graph.call_aten"]
    assert drawn == [clusters.ops[k] for k in calls] and merged >= 0
