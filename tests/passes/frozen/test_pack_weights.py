"""Weights of 16-bit floats are packed where oneDNN has code for them, and say why where not."""

from __future__ import annotations

import copy
import functools

import pytest
import torch
from torch import nn

from irc.dialects import host
from irc.frontend.backend import recording
from irc.ir.passes import PassManager
from irc.ir.types import TensorType, bf16, f16, f32
from irc.options.options import from_mapping
from irc.passes.frozen import pack_weights
from irc.pipeline import pipeline_text
from irc.target import Target

ELEMENTS = {torch.bfloat16: bf16, torch.float16: f16, torch.float32: f32}


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, stride=2, groups=2, bias=False)
        self.last = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.second(torch.relu(self.first(x))))
        return self.last(x.mean((2, 3)))


def test_what_oneDNN_packs_here() -> None:
    elements = Target.host().library
    assert "f32" in elements
    ops = torch.ops.mkldnn
    assert ("bf16" in elements) == ops._is_mkldnn_bf16_supported()
    assert ("f16" in elements) == ops._is_mkldnn_fp16_supported()


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_frozen_weights_of_each_float(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model, x = Network().eval().to(dtype), torch.randn(3, 3, 15, 17).to(dtype)
    options = {"freezing": True, "fx_graph_cache": False}
    with torch.no_grad(), recording() as made:
        result = torch.compile(model, backend="irc", options=options)(x)
        exact = copy.deepcopy(model).double()(x.double())
        expected = model(x)
    assert result.dtype is dtype and result.stride() == expected.stride()
    own, eager = ((r.double() - exact).abs().max().item() for r in (result, expected))
    assert own <= 2 * eager + 1e-6
    (compiled,) = made
    assert compiled.executable.metrics["aten_calls"] == 3 and compiled.imported is not None
    module, frozen = compiled.imported.module, from_mapping({"freezing": True})
    PassManager.parse(pipeline_text("llvm", frozen)).run(module)
    packs = [op for op in module.walk() if isinstance(op, host.PackOp)]
    assert len(packs) == (3 if str(ELEMENTS[dtype]) in Target.host().library else 0)


def test_why_not() -> None:
    objection = functools.partial(pack_weights.objection, ("f32", "f16"))
    kinds = [TensorType((2, 3), element) for element in (f32, f16, bf16)]
    assert objection(kinds[0], kinds[0]) is None
    assert objection(kinds[0], kinds[1]) == "oneDNN doesn't pack f16, f32 here"
    assert objection(kinds[2], kinds[2]) == "oneDNN doesn't pack bf16 here"
    assert objection(TensorType((0, 3), f32)) == "it has no elements"
