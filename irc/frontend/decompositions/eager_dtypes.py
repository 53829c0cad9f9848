"""Decompositions of operators of two dtypes: what ATen refuses stays whole, so that it is refused
when the program runs, and a result has the dtype that ATen gives, where torch's shape functions
and decompositions say another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

#: Exponents of a factor 2**n whose product with an f64 is exact, unless the result is subnormal.
LEAST, MOST, BIAS, MANTISSA = -1022, 1023, 1023, 52


def of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition of floats and complex numbers; with integers ATen raises."""

    def taken_apart(first: torch.Tensor, second: torch.Tensor) -> Any:
        dtype = torch.result_type(first, second)
        if not (dtype.is_floating_point or dtype.is_complex):
            return NotImplemented
        return function(first, second)

    return taken_apart


def of_one_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition of operands of one dtype; with two ATen raises."""

    def taken_apart(first: torch.Tensor, second: torch.Tensor) -> Any:
        return function(first, second) if first.dtype is second.dtype else NotImplemented

    return taken_apart


def power_of_truth(source: torch.Tensor, exponent: Any) -> Any:
    """Bools to the power of a bool, which ATen gives as bools; other powers stay whole."""
    if source.dtype is not torch.bool or not isinstance(exponent, bool):
        return NotImplemented
    return source.clone() if exponent else torch.ones_like(source)


def _is_wide(source: torch.Tensor) -> bool:
    return source.is_floating_point() or source.is_complex()


def ldexp(source: torch.Tensor, other: torch.Tensor) -> Any:
    """`source * 2**other`, of floats and integers exact where the power itself leaves the range of
    the dtype; their result has the dtype of the floats. ATen refuses bools as their exponents. It
    rounds the power of 16-bit floats, a factor of them all: gradients that cancel show that."""
    if source.dtype is other.dtype and source.dtype.itemsize == 2 and other.is_floating_point():
        return NotImplemented
    if other.is_floating_point() or other.is_complex() or not _is_wide(source):
        return source * torch.pow(2.0, other)
    if source.is_complex():
        return source * torch.pow(source.new_full((), 2.0), other)
    if other.dtype is torch.bool:
        return NotImplemented
    result, rest = source.double(), other.long()
    for _ in range(3 if source.dtype is torch.float64 else 1):
        power = rest.clamp(LEAST, MOST)
        result = result * ((power + BIAS) << MANTISSA).view(torch.float64)
        rest = rest - power
    return result.to(source.dtype)
