"""Results have eager mode's strides where ATen's kernels have another order than their operands."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

SHAPES = [
    ((4, 3, 5), (2, 1, 0)), ((4, 3, 5), (0, 2, 1)), ((6, 4), (1, 0)), ((3, 4, 5, 6), (1, 0, 2, 3)),
    ((3, 4, 5, 6), (0, 3, 1, 2)), ((3, 4, 5, 6), (3, 2, 1, 0)), ((3, 4, 5, 6, 2), (0, 4, 1, 2, 3)),
]  # fmt: skip


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    torch._dynamo.reset()


@pytest.mark.fault("C9")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("shape", "order"), SHAPES, ids=str)
def test_batch_normalization_of_transposed_sources(shape, order, training, dynamic):
    source = torch.randn(shape).permute(order).requires_grad_()
    channels = source.shape[1]
    rest = [torch.randn(channels), torch.rand(channels) + 0.5]
    weights = [torch.randn(channels, requires_grad=True) for _ in range(2)]

    def norm(x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.batch_norm(x, mean, variance, weight, bias, training)

    compiled = torch.compile(norm, backend="irc", dynamic=dynamic)
    results = []
    for function in (norm, compiled):
        running = [t.clone() for t in rest]
        output = function(source, *running, *weights)
        gradients = torch.autograd.grad(output, [source, *weights], torch.ones_like(output) * 0.3)
        results.append([output, *running, *gradients])
    torch.testing.assert_close(*results[::-1], check_stride=True, rtol=2e-5, atol=1e-5)


@pytest.mark.fault("C9")
@pytest.mark.parametrize("dynamic", [False, True])
def test_batch_normalization_of_slices(dynamic):
    norm = torch.nn.BatchNorm2d(3).eval()
    compiled = torch.compile(norm, backend="irc", dynamic=dynamic)
    source = torch.randn(2, 3, 6, 8)
    for x in (source, source[:, :, ::2], source.to(memory_format=torch.channels_last),
              source.to(memory_format=torch.channels_last)[:, :, 1:], source[:1].expand(4, 3, 6, 8),
              source[:0], source[:, :, :1, :1]):  # fmt: skip
        torch.testing.assert_close(compiled(x), norm(x), check_stride=True)


FORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x,
    "channels last": lambda x: x.to(memory_format=torch.channels_last),
    "transposed": lambda x: x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    "a slice": lambda x: torch.cat([x, x], 2)[:, :, ::2],
}


@pytest.mark.fault("C9")
@pytest.mark.parametrize("of_gradient", FORMS)
@pytest.mark.parametrize("of_source", FORMS)
def test_gradients_of_batch_normalization(of_source, of_gradient):
    source = FORMS[of_source](torch.randn(2, 3, 6, 8)).requires_grad_()
    given = FORMS[of_gradient](torch.randn(2, 3, 6, 8))
    norm = torch.nn.BatchNorm2d(3)
    compiled = torch.compile(norm, backend="irc")
    ours, eager = (
        torch.autograd.grad(f(source), [source, *norm.parameters()], given)
        for f in (compiled, norm)
    )
    torch.testing.assert_close(ours, eager, check_stride=True, rtol=2e-5, atol=1e-5)


@pytest.mark.fault("C9")
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128, torch.float32])
@pytest.mark.parametrize("dynamic", [False, True])
def test_angles(dtype, dynamic):
    values = torch.randn(4, 3, 5, dtype=dtype)

    def angles(tensors: list[Tensor]) -> list[Tensor]:
        return [torch.angle(t) for t in tensors]

    tensors = [
        values, values.permute(2, 1, 0), values.mT, values[:, ::2], values[:1].expand(3, 3, 5),
        values[..., 0], values.mT[:0],
    ]  # fmt: skip
    compiled = torch.compile(angles, backend="irc", dynamic=dynamic)
    torch.testing.assert_close(compiled(tensors), angles(tensors), check_stride=True)
