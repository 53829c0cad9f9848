"""Kernels whose every access is checked: the option `check_bounds`.

They run in the interpreter, so that nothing depends on the code generators; each load and store is
held to the elements of its tensor. This is for finding a wrong text, not for speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from irc.dialects import kernel
from irc.interp.core import Frame
from irc.interp.kernel import OutOfBounds, launch


class CheckedKernels:
    """A `KernelTable` of cpu kernels in the interpreter. An access outside of its tensor raises an
    IndexError that names the operation and its line; nothing is read or written there."""

    def __init__(self, kernels: Mapping[str, kernel.KernelFuncOp]) -> None:
        self._kernels = dict(kernels)

    def launch(
        self, name: str, tensors: Sequence[torch.Tensor], symbols: Sequence[int], grid: int
    ) -> None:
        """Run the kernel over [0, grid)."""
        callee = self._kernels[name]
        names = [a.value for a in callee.symbols or ()]
        frame = Frame(None, symbols=dict(zip(names, symbols, strict=True)))
        try:
            launch(frame, callee, tensors, whole=False)
        except OutOfBounds as error:
            raise IndexError(f"kernel @{name}: {error}") from error


__all__ = ["CheckedKernels"]
