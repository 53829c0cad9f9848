"""Arguments whose elements are the conjugates or the negatives of what their memory holds.

`x.conj()` and `x.conj().imag` of torch only set a bit. Programs read memory as it is, so each call
with such an argument gets a copy of it as it reads, at the same place in a storage; what the
program writes there goes back afterwards, and results that share its memory are the argument or
views of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def is_lazy(argument: object) -> bool:
    """Whether an argument is a tensor with its conjugate or its negative bit set."""
    return isinstance(argument, torch.Tensor) and (argument.is_conj() or argument.is_neg())


class _ResolvedCopy:
    """An argument's elements as it reads, at the same offset of a storage and with its strides."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.lazy = tensor
        raw = tensor.conj() if tensor.is_conj() else tensor
        raw = torch._neg_view(raw) if raw.is_neg() else raw
        pairs = zip(tensor.shape, tensor.stride(), strict=True)
        span = 1 + sum((n - 1) * s for n, s in pairs) if tensor.numel() else 0
        flat = raw.as_strided((raw.storage_offset() + span,), (1,), 0)
        flat = torch.conj_physical(flat) if tensor.is_conj() else flat
        self.flat = torch.neg(flat) if tensor.is_neg() else flat
        self.before = self.flat.clone()
        self.tensor = self.view_of(self.flat, tensor)

    @staticmethod
    def view_of(source: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return source.as_strided(like.shape, like.stride(), like.storage_offset())

    def write_back(self) -> None:
        """Give the argument what was written to the copy."""
        if not torch.equal(self.flat.view(torch.uint8), self.before.view(torch.uint8)):
            self.lazy.copy_(self.tensor)

    def returned(self, result: torch.Tensor) -> torch.Tensor | None:
        """A result as the argument or a view of it; None for one in other memory."""
        if result is self.tensor:
            return self.lazy
        if not result.numel() or result.dtype is not self.lazy.dtype:
            return None
        same = result.untyped_storage().data_ptr() == self.flat.untyped_storage().data_ptr()
        return self.view_of(self.lazy, result) if same else None


def without_bits(arguments: Sequence[object]) -> tuple[list[object], list[_ResolvedCopy]]:
    """The arguments, with copies in place of those that have a bit set, and the copies."""
    copies: list[_ResolvedCopy] = []
    plain: list[object] = []
    for argument in arguments:
        if is_lazy(argument):
            copies.append(_ResolvedCopy(argument))  # type: ignore[arg-type]
            argument = copies[-1].tensor
        plain.append(argument)
    return plain, copies


def with_bits(results: Sequence[Any], copies: Sequence[_ResolvedCopy]) -> tuple[Any, ...]:
    """The results of a call on `copies`, whose arguments get what was written."""
    for copy in copies:
        copy.write_back()
    values = []
    for result in results:
        if isinstance(result, torch.Tensor):
            for copy in copies:
                own = copy.returned(result)
                if own is not None:
                    result = own
                    break
        values.append(result)
    return tuple(values)
