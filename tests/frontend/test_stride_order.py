"""Results of elementwise operators have eager mode's strides, whatever their operands'."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from irc.frontend.fx.stride_order import by_steps

#: Not for integers, or not for a zero of them.
FLOATS = ("logaddexp", "logaddexp2", "floor_divide", "logit_backward")


def operands(rows: int, dtype: torch.dtype) -> list[Tensor]:
    """One shape, or one that broadcasts to it, in several orders."""
    values = torch.arange(rows * 5).view(5, rows).remainder(7).to(dtype)
    column = torch.arange(rows).view(rows, 1).to(dtype)
    permuted = values.t()
    return [permuted, permuted.contiguous(), column.expand(rows, 5), column, permuted[:, :1]]


@pytest.mark.fault("C9")
@pytest.mark.parametrize(
    ("overload", "dynamic"),
    [*((o, False) for o in by_steps()), (torch.ops.aten.xlogy.Tensor, True)],
    ids=str,
)
def test_strides_of_permuted_and_expanded_operands(overload, dynamic):
    numbers = [0.25] if "logit" in str(overload) else []

    def program(tensors: list[Tensor]) -> list[Tensor]:
        pairs = itertools.permutations(tensors, 2)
        return [overload(a, b, *numbers) for a, b in pairs if a.shape == b.shape or not numbers]

    dtypes = [torch.float32]
    if overload.overloadpacket.__name__ not in FLOATS:
        dtypes.append(torch.int32)
    compiled = torch.compile(program, backend="irc", dynamic=dynamic)
    for dtype in dtypes:
        tensors = operands(3, dtype)
        expected = program(tensors)
        torch.testing.assert_close(
            compiled(tensors), expected, check_stride=True, equal_nan=True, rtol=1e-5, atol=1e-6
        )


@pytest.mark.fault("C9")
def test_three_dimensions_and_one_of_one_element():
    a = torch.rand(4, 1, 2, 3).permute(3, 1, 0, 2)
    b = torch.rand(3, 1, 1, 2).expand(3, 1, 4, 2)

    def program(a: Tensor, b: Tensor) -> list[Tensor]:
        return [torch.xlogy(b, a), torch.logical_or(a, b), torch.special.xlog1py(b, a)]

    compiled = torch.compile(program, backend="irc")
    torch.testing.assert_close(compiled(a, b), program(a, b), check_stride=True)
