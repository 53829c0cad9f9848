"""Kernels for a GPU as the Python host program launches them, through Triton."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from irc.codegen.triton import runtime as triton_runtime
from irc.codegen.triton.emitter import emit_module, safe_name
from irc.dialects import kernel


class TritonKernels:
    """A `KernelTable`: one Triton source for all kernels, each compiled at its first launch."""

    def __init__(self, kernels: Iterable[kernel.FuncOp]) -> None:
        functions = list(kernels)
        self.source = emit_module(functions)
        self._options = {
            op.sym_name: triton_runtime.supported_options(triton_runtime.launch_options(op))
            for op in functions
        }
        self._outputs = {op.sym_name: tuple(op.outputs or ()) for op in functions}
        self._functions: dict[str, Callable[..., Any]] = {}

    def launch(
        self, name: str, tensors: Sequence[torch.Tensor], symbols: Sequence[int], grid: int
    ) -> None:
        """Launch `grid` program instances on the tensors' GPU; none when `grid` is 0.

        Tensors of the CPU, which torch allows beside a GPU's where they have one element, go
        there and back as copies.
        """
        if not grid:
            return
        function = self._functions.get(name)
        if function is None:
            module = triton_runtime.load(self.source)
            function = self._functions[name] = getattr(module, safe_name(name))
        if not all([t.is_cuda for t in tensors]):
            self._launch_copies(name, tensors, symbols, grid)
            return
        with torch.cuda.device(tensors[0].device):
            function[(grid,)](*tensors, *symbols, **self._options[name])  # type: ignore[index]

    def _launch_copies(
        self, name: str, tensors: Sequence[torch.Tensor], symbols: Sequence[int], grid: int
    ) -> None:
        """Launch with copies of the CPU's tensors; those written are copied back."""
        device = next((t.device for t in tensors if t.is_cuda), torch.device("cuda"))
        copies = [t if t.is_cuda else _copy_to(device, t) for t in tensors]
        self.launch(name, copies, symbols, grid)
        for position in self._outputs[name]:
            if copies[position] is not tensors[position]:
                tensors[position].copy_(copies[position])


def _copy_to(device: torch.device, tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, whatever they are."""
    span = 1 + sum((n - 1) * k for n, k in zip(tensor.shape, tensor.stride(), strict=True))
    flat = tensor.as_strided((span if tensor.numel() else 0,), (1,)).to(device)
    return flat.as_strided(tensor.shape, tensor.stride())
