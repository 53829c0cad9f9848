"""Operators that once were left to ATen or converted wrongly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import irc
from irc import pipeline


def programs(f: Callable[..., Any], *args: Any, dynamic: bool = False) -> Counter[str]:
    """The ATen calls of the program of `f`, after checking its values against eager mode."""
    calls: Counter[str] = Counter()
    module = irc.trace(f, args, dynamic=dynamic)
    pipeline.lower(module)
    calls.update(op.callee for op in module.walk() if op.name == "host.call_aten")
    results = irc.compile(f, args, dynamic=dynamic)(*args)
    torch.testing.assert_close(results, f(*args))
    return calls


@pytest.mark.parametrize("size", [(7, 9), (8, 8)])
def test_max_pool_backward_is_a_scatter(size: tuple[int, int]) -> None:
    x = torch.randn(2, 3, *size)
    y, indices = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    gradient = torch.randn_like(y)

    def f(gradient: torch.Tensor, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.max_pool2d_with_indices_backward(
            gradient, x, [3, 3], [2, 2], [1, 1], [1, 1], False, indices
        )

    assert not programs(f, gradient, x, indices)


@pytest.mark.parametrize("dim", [0, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weight_norm_backward(dim: int, dtype: torch.dtype) -> None:
    v, gradient = torch.randn(2, 5, 3, 4, dtype=dtype).unbind()
    g = torch.rand([v.shape[d] if d == dim else 1 for d in range(3)], dtype=dtype)
    _, norms = torch._weight_norm_interface(v, g, dim)

    def f(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.ops.aten._weight_norm_interface_backward(*tensors, dim)

    assert not programs(f, gradient, v, g, norms)


POOLS = [
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
    {"kernel_size": 2, "stride": 3, "ceil_mode": True},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
    {"kernel_size": 4, "stride": 3, "padding": 1, "ceil_mode": True},
    {"kernel_size": 50, "ceil_mode": True},
    {"kernel_size": 3, "divisor_override": 7, "ceil_mode": True},
]


@pytest.mark.parametrize("options", POOLS, ids=str)
def test_mean_pooling_and_its_gradient(options: dict[str, Any]) -> None:
    x = torch.randn(2, 3, 8, 7)
    gradient = torch.randn_like(F.avg_pool2d(x, **options))
    every = {"stride": [], "padding": 0, "ceil_mode": False, "count_include_pad": True,
             "divisor_override": None, **options}  # fmt: skip
    every = {k: [v, v] if type(v) is int and k[0] in "ksp" else v for k, v in every.items()}
    order = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad",
             "divisor_override")  # fmt: skip

    def f(gradient: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        back = torch.ops.aten.avg_pool2d_backward(gradient, x, *(every[k] for k in order))
        return F.avg_pool2d(x, **options), back

    assert not programs(f, gradient, x)
