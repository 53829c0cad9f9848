"""The errors that a program raises itself, in its native form and in Python."""

from __future__ import annotations

from collections.abc import Sequence

import torch

ERRORS = {
    e.__name__: e for e in (RuntimeError, IndexError, ValueError, ZeroDivisionError, TypeError)
}


def raise_out_of_range(symbol: str, span_text: str, number: int) -> None:
    """The error of a symbol bound to data outside of its range."""
    raise RuntimeError(f"{symbol} is {number}, not as the program assumes: {span_text}")


def raise_error(error: str, message: str) -> None:
    """Raise one of `ERRORS` by name."""
    raise ERRORS[error](message)


def raise_misfit(callee: str, sizes: Sequence[int], content: torch.Tensor) -> None:
    """Raise RuntimeError if an operator's result hasn't the sizes that were compiled for."""
    shape = content.shape
    if len(shape) != len(sizes):
        actual, expected = f"{len(shape)} dimensions", len(sizes)
    else:
        differ = [dim for dim, size in enumerate(sizes) if size != shape[dim]]
        if not differ:
            return
        actual, expected = f"{shape[differ[0]]} elements along {differ[0]}", sizes[differ[0]]
    raise RuntimeError(
        f"{callee} gave a result with {actual}; the program was compiled for {expected}"
    )


__all__ = ["ERRORS", "raise_error", "raise_misfit", "raise_out_of_range"]
