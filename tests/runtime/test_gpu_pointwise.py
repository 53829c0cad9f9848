"""Convolutions of single points as products: over a stub of cuBLAS, and on GPUs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from irc.boundary import torch_abi
from irc.codegen.host.gpu_pointwise import FULL_SUMS, pointwise_products
from irc.program.read_host import read_host_program
from tests.runtime.gpu_stub import Stub, moved
from tests.runtime.test_gpu_host import lowered

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)


@pytest.fixture
def stub() -> Stub:
    return Stub()


def last(*sizes: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    torch.manual_seed(sum(sizes))
    return torch.randn(*sizes).to(dtype).to(memory_format=torch.channels_last)


def forward(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.conv2d(torch.relu(torch.conv2d(x, w)), v) * 2


def backward(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, ...]:
    gradients = torch.ops.aten.convolution_backward.default(
        g * 2, x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False]
    )
    return gradients[0] + 1, gradients[1]


FORWARD = [last(2, 4, 3, 5), last(6, 4, 1, 1), last(8, 6, 1, 1)]
BACKWARD = [last(2, 4, 3, 5), last(6, 4, 1, 1), last(2, 6, 3, 5)]


def close(mine: torch.Tensor, eager: torch.Tensor) -> None:
    torch.testing.assert_close(mine, eager, rtol=4e-2, atol=4e-2)
    assert mine.stride() == eager.stride()


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_convolutions_of_points_are_products(stub, dtype, missing, monkeypatch):
    stub.blas.missing = missing
    args = [a.to(dtype) for a in FORWARD]
    call = stub.build(lowered(forward, args), monkeypatch)
    for _ in range(2):
        (y,) = stub.call(call, *args)
        close(y, forward(*args))
    expected = [] if missing else [("gemm", dtype, 1, 0, 6, 30, 4), ("gemm", dtype, 1, 0, 8, 30, 6)]
    assert [each[:7] for each in stub.blas.products] == expected * 2
    assert set(stub.blas.modes) == (set() if missing else {FULL_SUMS, 0})


@pytest.mark.parametrize("missing", [False, True])
def test_so_are_their_gradients(stub, missing, monkeypatch):
    stub.blas.missing = missing
    call = stub.build(lowered(backward, BACKWARD), monkeypatch)
    for _ in range(2):
        for mine, eager in zip(stub.call(call, *BACKWARD), backward(*BACKWARD), strict=True):
            close(mine, eager)
    found = [each[2:7] for each in stub.blas.products]
    assert found == ([] if missing else [(0, 0, 4, 30, 6), (0, 1, 4, 6, 30)] * 2)


def count(function: Any, *args: torch.Tensor) -> int:
    program = moved(read_host_program(lowered(function, list(args))))
    return len(pointwise_products(program))


def test_which_convolutions_are_products():
    x, w, _ = FORWARD
    assert count(forward, *FORWARD) == 2
    assert count(lambda x, w: torch.conv2d(x, w, None, 2) + 1, x, w) == 0
    assert count(lambda x, w: torch.conv2d(x, w, None, 1, 1) + 1, x, w) == 0
    assert count(lambda x, w: torch.conv2d(x, w) + 1, x, last(6, 4, 2, 2)) == 0
    assert count(lambda x, w: torch.conv2d(x, w, None, 1, 0, 1, 2) + 1, x, last(6, 2, 1, 1)) == 0
    assert count(lambda x, w: torch.conv2d(x, w) + 1, x.float(), w.float()) == 0
    assert count(lambda x, w: torch.conv2d(x, w) + 1, last(2, 1, 3, 5), last(6, 1, 1, 1)) == 0


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_values_are_the_operators(dtype, monkeypatch):
    from irc.codegen.host import gpu_lowering

    seen: list[int] = []
    emitted = gpu_lowering.emit_gpu_product
    monkeypatch.setattr(gpu_lowering, "emit_gpu_product",
                        lambda *given: seen.append(1) or emitted(*given))  # fmt: skip
    torch._dynamo.reset()
    shapes = (4, 64, 28, 28), (256, 64, 1, 1), (128, 256, 1, 1)
    args = [last(*s, dtype=dtype).cuda() for s in shapes]
    given = [args[0], args[1], last(4, 256, 28, 28, dtype=dtype).cuda()]
    for function, operands in ((forward, args), (backward, given)):
        call = torch.compile(function, backend="irc", options={"fx_graph_cache": False})
        results, exact = call(*operands), function(*(a.double() for a in operands))
        eager = function(*operands)
        if not isinstance(eager, tuple):
            results, eager, exact = (results,), (eager,), (exact,)
        for mine, theirs, true in zip(results, eager, exact, strict=True):
            assert mine.stride() == theirs.stride()
            off, bound = ((t.double() - true).norm() / true.norm() for t in (mine, theirs))
            assert off <= 1.1 * bound + 1e-4
    assert len(seen) == 4
