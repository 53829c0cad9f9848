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
        self._functions: dict[str, Callable[..., Any]] = {}

    def launch(
        self, name: str, tensors: Sequence[torch.Tensor], symbols: Sequence[int], grid: int
    ) -> None:
        """Launch `grid` program instances on the tensors' GPU; none when `grid` is 0."""
        if not grid:
            return
        function = self._functions.get(name)
        if function is None:
            module = triton_runtime.load(self.source)
            function = self._functions[name] = getattr(module, safe_name(name))
        with torch.cuda.device(tensors[0].device):
            function[(grid,)](*tensors, *symbols, **self._options[name])  # type: ignore[index]
