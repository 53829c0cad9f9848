"""How the kernels of a host program are run where its Python form runs it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch


class KernelTable(Protocol):
    """How kernels are run: the seam between the host program and a target."""

    def launch(
        self, name: str, tensors: Sequence[torch.Tensor], symbols: Sequence[int], grid: int
    ) -> None:
        """Run the kernel over [0, grid) on these tensors and sizes."""


class CpuKernels:
    """Kernels in loaded object code, called on one thread with the interpreter lock released."""

    def __init__(self, addresses: Mapping[str, int], keep: object) -> None:
        self._addresses, self._keep = dict(addresses), keep
        self._functions: dict[tuple[str, int, int], Callable[..., None]] = {}

    def address(self, name: str) -> int:
        """Where the kernel's code is; KeyError when there is none of that name."""
        return self._addresses[name]

    def launch(
        self, name: str, tensors: Sequence[torch.Tensor], symbols: Sequence[int], grid: int
    ) -> None:
        """Run the kernel over [0, grid)."""
        key = (name, len(tensors), len(symbols))
        function = self._functions.get(key)
        if function is None:
            kinds = [ctypes.c_void_p] * len(tensors) + [ctypes.c_int64] * (len(symbols) + 2)
            function = ctypes.CFUNCTYPE(None, *kinds)(self._addresses[name])
            self._functions[key] = function
        function(*(t.data_ptr() for t in tensors), *symbols, 0, grid)


__all__ = ["CpuKernels", "KernelTable"]
