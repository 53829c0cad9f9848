"""Which biases of convolutions become additions, and that values stay."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import irc
from irc.interp.core import run
from irc.ir.passes import PassContext, PassManager
from irc.pipeline import pipeline_text

F = torch.nn.functional
TO_GRAPH = "functionalize,decompose-aten,convert-aten-to-graph,canonicalize"


def split(function: Any, args: list[Any]) -> tuple[list[str], list[str], Any]:
    """The biases of the calls that are left, the remarks, and what the program gives."""
    module = irc.trace(function, args)
    context = PassContext(target="sm_90")
    PassManager.parse(f"{TO_GRAPH},propagate-channels-last,split-biases").run(module, context)
    calls = [op for op in module.walk() if op.name == "graph.call_aten"]
    biases = [str(call.arguments.as_dict()["bias"]) for call in calls]
    assert all(len(c.operands) == len(list(c.attributes["operand_strides"])) for c in calls)
    return biases, [remark.message for remark in context.remarks], run(module, *args)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_bias_is_added_apart(dtype: torch.dtype, transposed: bool) -> None:
    torch.manual_seed(0)
    conv = F.conv_transpose2d if transposed else F.conv2d
    args = [torch.randn(2, 4, 6, 6), torch.randn(4, 4, 3, 3), torch.randn(4)]
    args = [each.to(dtype) for each in args]
    biases, _, (found,) = split(lambda x, w, b: conv(x, w, b), args)
    assert biases == ["#aten.none"]
    # As on a GPU: what the library gives is rounded, and then the sum.
    assert found.dtype == dtype and torch.equal(found, conv(*args[:2]) + args[2][:, None, None])


def test_without_a_bias_nothing_changes() -> None:
    biases, remarks, _ = split(F.conv2d, [torch.randn(1, 4, 6, 6), torch.randn(4, 4, 3, 3)])
    assert biases == ["#aten.none"] and not any("bias" in remark for remark in remarks)


@pytest.mark.parametrize("last", [False, True])
def test_a_kernel_of_torch_that_adds_the_bias_keeps_it(last: bool) -> None:
    """Depthwise convolutions of images with channels first are torch's own."""
    image = torch.randn(1, 4, 6, 6)
    image = image.to(memory_format=torch.channels_last) if last else image
    args = [image, torch.randn(4, 1, 3, 3), torch.randn(4)]
    biases, remarks, _ = split(lambda x, w, b: F.conv2d(x, w, b, groups=4), args)
    assert biases == ["#aten.none" if last else "#aten.operand<2>"]
    assert any("kernel adds it" in remark for remark in remarks) is not last


def test_only_on_a_gpu() -> None:
    assert "split-biases" in pipeline_text("sm_90")
    assert "split-biases" not in pipeline_text("avx2")
