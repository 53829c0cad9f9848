"""Pooling and its gradient on a GPU, by Triton's interpreter: windows unrolled, and looked up."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import irc
from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from irc.dialects import host, kernel, loop
from irc.frontend.fx.narrow_pools import narrow_pools
from irc.frontend.importing.importer import import_graph
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


def looped(module: Any, args: list[torch.Tensor]) -> tuple[Any, int]:
    """What the computes of a program for a GPU give, and how many they are."""
    module = put_on(module, "cuda:0")
    for name, text in stages("sm_90").items():
        PassManager.parse(text).run(module, PassContext(target="sm_90"))
        if name == "fuse-loops":
            break
    count = sum(isinstance(op, loop.ComputeOp) for op in module.body.block.first.block.ops)
    return irc.run(module, *args), count


MEANS = {  # size, step, padding, ceil_mode, count_include_pad, divisor_override
    "overlapping": (3, 2, 1, False, True, None),
    "apart": (2, 2, 0, False, True, None),
    "at each place": (3, 1, 1, True, False, None),
    "wide": (5, 3, 2, False, True, 7),
    "with gaps": (2, 3, 1, True, True, None),
    "cut": (3, 2, 1, True, False, None),
}


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("name", MEANS)
def test_each_element_adds_up_its_shares_of_means(name: str, dims: int) -> None:
    size, step, padding, *rest = MEANS[name]
    x = torch.randn(2, 3, *[11, 7, 6][:dims])
    pool = {2: torch.nn.functional.avg_pool2d, 3: torch.nn.functional.avg_pool3d}[dims]
    gradient = torch.randn_like(pool(x, size, step, padding, *rest))
    backward = {2: torch.ops.aten.avg_pool2d_backward, 3: torch.ops.aten.avg_pool3d_backward}

    def function(g: torch.Tensor, x: torch.Tensor) -> Any:
        return backward[dims](g, x, [size] * dims, [step] * dims, [padding] * dims, *rest)

    (found,), count = looped(irc.trace(function, (gradient, x)), [gradient, x])
    assert count == 1 or (name, dims) == ("at each place", 3)  # where 27 windows are too many
    expected = function(gradient.double(), x.double())
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)


PLACES = {  # size, step, padding, dilation
    "overlapping": (3, 2, 1, 1), "apart": (2, 2, 0, 1), "at each place": (3, 1, 1, 1),
    "spread": (3, 2, 1, 2), "far": (2, 2, 1, 3), "wide": (5, 3, 2, 1), "with gaps": (2, 3, 0, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_places_in_windows_are_looked_up(name: str) -> None:
    window = [[n] * 2 for n in PLACES[name]]
    x = torch.randn(2, 3, 11, 8).round()
    x[0, 0, :4, :5] = -torch.inf
    g = torch.randn_like(torch.ops.aten.max_pool2d_with_indices(x, *window)[0])

    def function(x: torch.Tensor, g: torch.Tensor) -> Any:
        y, positions = torch.ops.aten.max_pool2d_with_indices(x, *window, False)
        backward = torch.ops.aten.max_pool2d_with_indices_backward
        return y, backward(g, x, *window, False, positions)

    traced = make_fx(function, tracing_mode="fake")(x, g)
    assert narrow_pools(traced) == 1
    found, _ = looped(import_graph(traced).module, [x, g])
    for mine, expected in zip(found, function(x, g), strict=True):
        torch.testing.assert_close(mine, expected)
