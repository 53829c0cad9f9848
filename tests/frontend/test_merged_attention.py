"""Attention of queries, keys and values that freezing computes by one product."""

from __future__ import annotations

import copy

import pytest
import torch
from torch.nn import functional

from irc.dialects import graph, layout
from irc.frontend.backend import recording
from irc.ir.passes import PassContext, PassManager
from irc.options.options import from_mapping
from irc.pipeline import stages
from irc.target import Target
from irc.target.cpu import TargetFeatures
from irc.target.figures import evolve


class Heads(torch.nn.Module):
    """Queries, keys and values by linear layers of one input, which freezing merges to one."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(96, 96) for _ in range(3))

    def forward(self, x):
        parts = [layer(x).view(2, -1, 3, 32).transpose(1, 2) for layer in self.layers]
        made = functional.scaled_dot_product_attention(*parts)
        return made.transpose(1, 2).reshape(2, -1, 96)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("own", [1, 999])
def test_attention_reads_parts_of_a_merged_product_where_they_lie(dtype, own):
    """By ATen and by irc's own: rows of any strides, whose elements lie side by side."""
    torch.manual_seed(0)
    model, x = Heads().to(dtype).eval(), torch.randn(2, 40, 96).to(dtype)
    figures = evolve(TargetFeatures.host(), own_attention=own, own_pair_attention=own)
    options = {"freezing": True, "target": str(Target(figures)), "fx_graph_cache": False}
    torch._dynamo.reset()
    with torch.no_grad(), recording() as made:
        program = torch.compile(model, backend="irc", options=options)
        bound = 1e-5 if dtype is torch.float32 else 2e-2
        wide = copy.deepcopy(model).double()(x.double())
        torch.testing.assert_close(program(x).double(), wide, rtol=bound, atol=bound)
    module, texts = made[0].imported.module, stages("llvm", from_mapping(options))
    context = PassContext(options=from_mapping(options))
    for name in ("aten-to-graph", "graph-to-layout"):
        PassManager.parse(texts[name]).run(module, context)
    (call,) = (op for op in module.walk() if isinstance(op, graph.CallAten)
               and "scaled_dot" in op.callee)  # fmt: skip
    assert [value.type.strides[-1] for value in call.operands] == [1, 1, 1]
    assert not any(isinstance(op, layout.CopyOp) for op in module.walk())
