"""Operators whose results ATen's kernels write in other strides than torch's shape functions say.

An operand is copied into that order, so that what is computed of it has it; the copy is part of
what reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

aten = torch.ops.aten


def normalized(overload: Any, function: Callable[..., Any] | None) -> Callable[..., Any]:
    """A batch normalization (None: the operator stays whole): on a CPU its result is contiguous or
    channels last, as its source's strides suggest."""

    def compute(source: Tensor, *rest: Any, **keywords: Any) -> Any:
        if not _is_copied(source, suggest_memory_format(source)):
            return NotImplemented if function is None else function(source, *rest, **keywords)
        return (function or overload)(_as_suggested(source, source), *rest, **keywords)

    return compute


def normalized_backward(function: Callable[..., Any]) -> Callable[..., Any]:
    """Its gradients: that of its source has the strides of the result."""

    def compute(gradient: Tensor, source: Tensor, *rest: Any, **keywords: Any) -> Any:
        return function(
            _as_suggested(gradient, source), _as_suggested(source, source), *rest, **keywords
        )

    return compute


def _as_suggested(tensor: Tensor, source: Tensor) -> Tensor:
    suggested = suggest_memory_format(source)
    return tensor.contiguous(memory_format=suggested) if _is_copied(tensor, suggested) else tensor


def _is_copied(tensor: Tensor, suggested: torch.memory_format) -> bool:
    return tensor.device.type == "cpu" and not tensor.is_contiguous(memory_format=suggested)


def angle(source: Tensor) -> Any:
    """That of complex numbers is contiguous: it is the real part of an array of its own."""
    if not source.is_complex() or source.is_contiguous():
        return NotImplemented
    return aten.angle.default(source.contiguous())


__all__ = ["angle", "normalized", "normalized_backward"]
