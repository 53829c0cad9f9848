"""Pooling and its gradient on a GPU, by Triton's interpreter: windows unrolled, and looked up."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import irc
from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from irc.dialects import host, kernel
from irc.ir.passes import PassContext, PassManager
from irc.passes.kernel.gpu import schedule
from irc.pipeline import stages
from tests.passes.graph.aten_programs import put_on

FORMED = ",".join(text for name, text in stages("sm_90").items() if name != "kernel-to-host")
NUMBERS = [3, 3], [2, 2], [1, 1], [1, 1], False


def ran(function: Any, args: list[torch.Tensor], outputs: list[torch.Tensor]) -> tuple[Any, str]:
    """What the one kernel of a program for a GPU leaves in its outputs, and its source."""
    module = put_on(irc.trace(function, args), "cuda:0")
    PassManager.parse(FORMED).run(module, PassContext(target="sm_90"))
    (launch,) = [op for op in module.walk() if isinstance(op, host.LaunchOp)]
    (func,) = [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]
    arguments = list(module.body.block.first.block.arguments)
    given = [args[arguments.index(value)] for value in launch.inputs]
    source = emit_kernel(func)
    job = runtime.Job.of(func, source, [*given, *outputs], {})
    (after,) = runtime.run_interpreted([job])
    return after[len(given) :], source


@pytest.fixture
def image(monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """Small images with windows for more than one tile, many for the schedule."""
    monkeypatch.setattr(schedule, "_is_unrolled", lambda plan, gpu: True)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 16, 9, 8, generator=generator)
    return x.to(memory_format=torch.channels_last)


def test_a_pool_has_its_windows_one_after_the_other(image: torch.Tensor) -> None:
    def function(x: torch.Tensor) -> Any:
        return torch.ops.aten.max_pool2d_with_indices(x, *NUMBERS)

    expected = list(function(image))
    outputs = [torch.empty_like(t) for t in expected]
    found, source = ran(function, [image], outputs)
    assert " for " not in source and "tl.reduce" not in source
    assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])


def test_its_gradient_is_looked_up(image: torch.Tensor) -> None:
    y, places = torch.ops.aten.max_pool2d_with_indices(image, *NUMBERS)

    def function(g: torch.Tensor, x: torch.Tensor, i: torch.Tensor) -> Any:
        return torch.ops.aten.max_pool2d_with_indices_backward(g, x, *NUMBERS, i)

    gradient = torch.randn_like(y)
    expected = function(gradient, image, places)
    found, source = ran(function, [gradient, image, places], [torch.empty_like(expected)])
    assert "atomic" not in source
    torch.testing.assert_close(found[0], expected)
