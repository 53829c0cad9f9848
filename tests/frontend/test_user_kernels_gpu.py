"""Triton kernels of the user's in compiled programs, launched on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from irc.frontend.backend import recording
from tests.frontend.test_user_kernels import (
    Doubled,
    add_to,
    added,
    compiled,
    fused,
    swap_halves,
    triple,
    tuned,
)
from tests.frontend.user_kernels import cover, scaled_sum

pytestmark = [pytest.mark.gpu, pytest.mark.fault("C6")]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def random(*shape: int, **how: Any) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", **how)


@pytest.mark.parametrize("dynamic", [False, True])
def test_values_and_writes(dynamic: bool) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = fused(fused(x, x + 1) * 3, None, 0.5) - 1
        added(y[1:, ::2], z[1:, ::2].contiguous())
        return z * y

    call = compiled(program, dynamic=dynamic)
    with recording() as found:
        for rows in (5, 8, 77) if dynamic else (5,):
            x, y = random(rows, 12), random(rows, 12)
            after = y.clone()
            expected = program(x, after)
            torch.testing.assert_close(call(x, y), expected)
            torch.testing.assert_close(y, after)
    assert len(found) == 1


def test_alignment_and_sizes_that_triton_compiles_apart() -> None:
    """In any order: what a call remembers is not taken for another one."""

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        scaled_sum[cover(x.numel())](x, y, out, x.numel(), 0.5, BLOCK=128)
        return out + 1

    base, call = random(4096), compiled(program, dynamic=True)
    for _ in range(3):
        for count in (1024, 1023, 32, 2, 1024):
            for begin in (0, 1, 4, 3, 16):
                x, y = base[begin : begin + count], base[2 * begin :][:count]
                torch.testing.assert_close(call(x, y), (x + y) / 2 + 1)


def test_two_views_of_one_tensor() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        whole = x * 2
        swap_halves[(1,)](whole[:4], whole[4:], 4, BLOCK=4)
        return whole + 0

    x = random(8)
    torch.testing.assert_close(compiled(program)(x), torch.cat([x[4:], x[:4]]) * 2)


@pytest.mark.parametrize("size", [4096, 4099])
def test_a_tuned_kernel(size: int) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        tuned[cover(x.numel())](x, out, x.numel())
        return out * 2

    x = random(size)
    torch.testing.assert_close(compiled(program)(x), 2 * x + 2)


@triton.heuristics({"BLOCK": lambda given: triton.next_power_of_2(given["n"])})
@triton.jit
def guessed(x, out, n, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    tl.store(out + places, tl.load(x + places, mask=places < n) + 1, mask=places < n)


def test_heuristics_alone_run_outside_of_the_graph() -> None:
    """torch takes no such kernel into a graph: the program is cut there, and right."""

    def program(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        guessed[(1,)](x * 2, out, x.numel())
        return out * 3

    x = random(100)
    torch.testing.assert_close(torch.compile(program, backend="irc")(x), 6 * x + 3)


def test_gradients() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        add_to(y, x.detach())
        return (triple(x.sin()) * Doubled.apply(x, y)).sum()

    x, y = random(33, 15, requires_grad=True), random(33, 15)
    z = x.detach().clone().requires_grad_()
    expected = program(z, y.clone())
    expected.backward()
    result = compiled(program)(x, y)
    result.backward()
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(x.grad, z.grad)


@triton.jit
def copy_block(source, target, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    target.store([row, column], source.load([row, column]) + 1)


def test_tensor_descriptors() -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    def program(x: torch.Tensor) -> torch.Tensor:
        y, out = x * 2, torch.empty_like(x)
        copy_block[(4, 2)](
            TensorDescriptor.from_tensor(y, [16, 32]), TensorDescriptor.from_tensor(out, [16, 32]),
            ROWS=16, COLUMNS=32,
        )  # fmt: skip
        return out * 3

    x = random(64, 64)
    torch.testing.assert_close(compiled(program)(x), 6 * x + 3)


def test_in_cuda_graphs() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return fused(fused(x, x + 1) * 3, None, 0.5) - 1

    call = torch.compile(program, backend="irc", mode="reduce-overhead", fullgraph=True)
    for _ in range(5):
        x = random(64, 100)
        torch.testing.assert_close(call(x), program(x))


def test_on_the_second_device() -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    x = torch.randn(40, device="cuda:1")
    torch.testing.assert_close(compiled(lambda x: fused(x, x + 1) * 3)(x), 6 * x * 2 + 6)
