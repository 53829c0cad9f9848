"""Copies of permuted arrays by the interpreter: each element goes where it belongs."""

from __future__ import annotations

import pytest
import torch

from irc.interp.copies import in_order, joined, move

DTYPES = (torch.bfloat16, torch.int8, torch.float32, torch.bool, torch.complex64, torch.float64)


def numbered(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    values = torch.randint(-100, 100, shape, generator=torch.Generator().manual_seed(0))
    return values.to(dtype)


def views(dtype: torch.dtype) -> list[torch.Tensor]:
    """Arrays of six numbers by two or four that lie together, or nearly so."""
    x = numbered(6, 8, 4, dtype=dtype)
    rest = numbered(6 * 8 * 4 + 3, dtype=dtype)
    return [
        x.permute(1, 0, 2), x[:, :, :2].permute(1, 0, 2), x[:, ::2, 1:3].permute(1, 0, 2),
        x.permute(2, 0, 1), x[:, :, :1].permute(1, 0, 2), x[:0].permute(1, 0, 2), x,
        rest[1:193].reshape(6, 8, 4).permute(1, 0, 2), x[:, :, ::2].permute(1, 0, 2),
        numbered(6, 1, 4, dtype=dtype).expand(6, 8, 4).permute(1, 0, 2), x[0, 0, 0], x[0, 0],
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_in_order(dtype: torch.dtype) -> None:
    for x in views(dtype):
        copy = in_order(x)
        assert copy.is_contiguous() and torch.equal(copy, x)
        assert copy.shape == x.shape and copy.dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arrays_behind_each_other(dtype: torch.dtype) -> None:
    for x in views(dtype):
        for dim in range(x.dim()):
            other = x.roll(1, 0) if x.numel() else x
            for parts in ([x], [x, x], [x, other.contiguous(), x]):
                assert torch.equal(joined(parts, dim), torch.cat(parts, dim))


def test_numbers_that_are_none_keep_their_bits() -> None:
    bits = torch.tensor([[0x7F81, 0x7FC1], [-1, 0x7F80]], dtype=torch.int16)
    x = torch.stack([bits, bits]).view(torch.bfloat16).permute(1, 0, 2)
    target = torch.empty(2, 2, 2, dtype=torch.bfloat16)
    move(target, x)
    assert torch.equal(target.view(torch.int16), x.contiguous().view(torch.int16))
