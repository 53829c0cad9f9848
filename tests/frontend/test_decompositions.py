"""Which operators the decomposition table takes apart, by device (no GPU is needed)."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from irc.frontend.decompositions import decompositions


@pytest.mark.parametrize(("device", "whole"), [("cpu", False), ("cuda", True)])
def test_dropout_stays_whole_where_its_kernel_has_its_own_numbers(device, whole):
    with FakeTensorMode():
        x = torch.empty(4, 4, device=device)
        graph = make_fx(
            lambda x: torch.ops.aten.native_dropout(x, 0.1, True),
            decomposition_table=decompositions(),
        )(x).graph
    targets = {node.target for node in graph.nodes if node.op == "call_function"}
    assert (torch.ops.aten.native_dropout.default in targets) == whole


def test_max_unpool_keeps_the_memory_format():
    x = torch.randn(2, 3, 4, 6).to(memory_format=torch.channels_last)
    pooled, where = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    unpool = lambda a, b: torch.nn.functional.max_unpool2d(a, b, 2)  # noqa: E731
    torch._dynamo.reset()
    result = torch.compile(unpool, backend="irc")(pooled, where)
    torch.testing.assert_close(result, unpool(pooled, where), check_stride=True)
