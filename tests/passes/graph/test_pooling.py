"""Maxima over windows in which nothing is above the padding."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

import irc
from tests.passes.graph.aten_programs import put_on

pytestmark = pytest.mark.fault("V9")

POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


def compiled(function, *arguments):
    torch._dynamo.reset()
    return torch.compile(function, backend="irc")(*arguments)


def lowest_of(dims: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full((2, 1, *(4, 5, 6)[:dims]), -math.inf, dtype=dtype)


@pytest.mark.parametrize("dims", POOLS)
@pytest.mark.parametrize("options", [
    {"kernel_size": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 1, "padding": 1, "dilation": 2},
    {"kernel_size": 4, "stride": 3, "padding": 2, "ceil_mode": True},
], ids=str)  # fmt: skip
def test_the_first_place_wins_where_all_are_lowest(dims, options):
    """By interpreter: random windows of which some hold -inf alone."""
    torch.manual_seed(0)
    x = lowest_of(dims)
    some = torch.where(torch.rand(x.shape) < 0.2, torch.randn(x.shape), x)
    pool = lambda x: POOLS[dims](x, return_indices=True, **options)  # noqa: E731
    module = irc.trace(pool, (x,))
    irc.PassManager.parse("functional,aten-to-graph").run(module)
    for source in (x, some):
        values, indices = irc.run(module, source)
        expected, places = pool(source)
        assert torch.equal(values, expected)
        assert torch.equal(indices, places)


@pytest.mark.parametrize(
    "dims, dtype", [(1, torch.float32), (2, torch.float32), (2, torch.bfloat16), (3, torch.float32)]
)
def test_gradients_go_to_the_first_place(dims, dtype):
    def f(x):
        return POOLS[dims](x, 2, padding=1)

    mine, eager = (lowest_of(dims, dtype).requires_grad_() for _ in range(2))
    torch._dynamo.reset()
    torch.compile(f, backend="irc")(mine).sum().backward()
    f(eager).sum().backward()
    assert torch.equal(mine.grad, eager.grad)


def test_integers_at_the_lowest_number():
    x = torch.full((1, 1, 5), torch.iinfo(torch.int64).min)
    pool = lambda x: F.max_pool1d(x, 2, padding=1, return_indices=True)  # noqa: E731
    try:
        expected = pool(x)
    except (RuntimeError, NotImplementedError):
        pytest.skip("this torch pools floats only")
    for mine, eager in zip(compiled(pool, x), expected, strict=True):
        assert torch.equal(mine, eager)


def test_adaptive_and_fractional_windows():
    x = lowest_of(2)
    samples = torch.full((2, 1, 2), 0.5)

    def f(x):
        fractional = F.fractional_max_pool2d(
            x, 2, output_size=(2, 3), return_indices=True, _random_samples=samples
        )
        return (*F.adaptive_max_pool2d(x, (3, 2), return_indices=True), *fractional)

    for mine, eager in zip(compiled(f, x), f(x), strict=True):
        assert torch.equal(mine, eager)


def gradient_on(device: str, pool: tuple[int, int, int, int, bool], dims: int = 2):
    """The program of a pool's gradient for tensors of a device, with its arguments on the CPU, and
    what eager gives."""
    *numbers, ceil = pool
    kernel, stride, padding, dilation = ([n] * dims for n in numbers)
    x = torch.randn(2, 3, *(13, 11, 7)[:dims])
    forward = getattr(torch.ops.aten, f"max_pool{dims}d_with_indices")
    backward = getattr(torch.ops.aten, f"max_pool{dims}d_with_indices_backward")
    y, places = forward(x, kernel, stride, padding, dilation, ceil)
    args = torch.randn_like(y), x, places

    def f(g, x, i):
        return backward(g, x, kernel, stride, padding, dilation, ceil, i)

    module = put_on(irc.trace(f, args), device)
    irc.PassManager.parse("convert-aten-to-graph").run(module)
    return module, args, f(*args)


@pytest.mark.parametrize("dims, pool", [
    (2, (3, 2, 1, 1, False)), (2, (2, 2, 0, 1, False)), (2, (3, 1, 1, 1, False)),
    (2, (3, 2, 1, 2, False)), (2, (3, 3, 1, 1, True)), (2, (2, 3, 0, 1, False)),
    (2, (4, 3, 2, 1, True)), (3, (2, 2, 1, 1, False)),
], ids=str)  # fmt: skip
def test_on_a_gpu_each_element_looks_at_its_windows(dims, pool):
    torch.manual_seed(0)
    module, args, expected = gradient_on("cuda:0", pool, dims)
    assert "graph.scatter" not in str(module) and "graph.window" in str(module)
    torch.testing.assert_close(irc.run(module, *args)[0], expected)


def test_elements_of_many_windows_are_added_up_where_they_are():
    torch.manual_seed(0)
    for device, pool in (("cuda:0", (5, 1, 2, 1, False)), ("cpu", (3, 2, 1, 1, False))):
        module, args, expected = gradient_on(device, pool)
        assert "graph.scatter" in str(module)
        torch.testing.assert_close(irc.run(module, *args)[0], expected)
