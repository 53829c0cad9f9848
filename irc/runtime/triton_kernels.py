"""Kernels for a GPU as the Python host program launches them, through Triton."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from irc.program.gpu_kernels import GpuKernels
from irc.runtime.gpu_kernels import LoadedKernels, NativeLauncher

# How a launch is specialized: by the alignment of pointers and by facts of the sizes.
Key = tuple[Any, ...]


class Launcher:
    """Launches one kernel: `launcher(tensors, sizes, grid, gpu, stream)`.

    Triton compiles a kernel anew for pointers and sizes of another kind (`key`); what it compiled
    is kept by kind, and launched again without its looking at the arguments. Tools that hook into
    Triton's launches see a kind's first one only.
    """

    def __init__(self, source: str, name: str, options: Mapping[str, Any]) -> None:
        self.source, self.name, self.options = source, name, options
        self.described = "tl.make_tensor_descriptor" in source
        self._compiled: dict[Key, tuple[Callable[..., None], Any, Any, Any]] = {}

    def __call__(
        self,
        tensors: Sequence[torch.Tensor],
        sizes: Sequence[int],
        grid: int,
        gpu: int,
        stream: int,
    ) -> None:
        """Launch `grid` > 0 program instances on a stream of the current GPU, number `gpu`, where
        all tensors are."""
        if self.described:
            from irc.codegen.triton.runtime import give_scratch

            give_scratch()  # to this thread
        pointers = [t.data_ptr() for t in tensors]
        key = key_of(pointers, sizes, gpu)
        entry = self._compiled.get(key)
        if entry is None:
            compiled = self.first_launch(tensors, sizes, grid)
            metadata = compiled.packed_metadata
            self._compiled[key] = compiled.run, compiled.function, metadata, compiled
            return
        run, function, metadata, _ = entry
        run(grid, 1, 1, stream, function, metadata, None, None, None, *pointers, *sizes)

    def first_launch(self, tensors: Sequence[torch.Tensor], sizes: Sequence[int], grid: int) -> Any:
        """Launch through Triton, which compiles; gives what it compiled."""
        from irc.codegen.triton import runtime as triton_runtime
        from irc.codegen.triton.emitter import safe_name

        function = getattr(triton_runtime.load(self.source), safe_name(self.name))
        options = triton_runtime.supported_options(self.options)
        return function[(grid,)](*tensors, *sizes, **options)


def key_of(pointers: Sequence[int], sizes: Sequence[int], gpu: int) -> Key:
    """What Triton's code for a kernel may depend on: which pointers are multiples of 16, and which
    sizes are 1, multiples of 16, or beyond 32 bits."""
    joined = 0
    for pointer in pointers:
        joined |= pointer
    aligned = True if joined & 15 == 0 else tuple([p & 15 == 0 for p in pointers])
    if not sizes:
        return gpu, aligned
    kinds = [1 if n == 1 else (n & 15 == 0, -(1 << 31) <= n < 1 << 31, n < 1 << 63) for n in sizes]
    return gpu, aligned, *kinds


class TritonKernels:
    """A `KernelTable`: one Triton source for all kernels, each compiled at its first launch; with
    `loaded`, their machine code is launched, through the driver."""

    def __init__(self, kernels: GpuKernels, loaded: LoadedKernels | None = None) -> None:
        self._loaded = loaded
        self.source = kernels.source
        self._options = {name: dict(each.options) for name, each in kernels.kernels.items()}
        self._outputs = {name: each.outputs for name, each in kernels.kernels.items()}
        self._launchers: dict[str, Launcher | NativeLauncher] = {}

    def launcher(self, name: str) -> Launcher | NativeLauncher:
        """What launches the kernel."""
        launcher = self._launchers.get(name)
        if launcher is None:
            launcher = self._launchers[name] = (
                Launcher(self.source, name, self._options[name])
                if self._loaded is None
                else NativeLauncher(self._loaded, name)
            )
        return launcher

    def launch(
        self, name: str, tensors: Sequence[torch.Tensor], symbols: Sequence[int], grid: int
    ) -> None:
        """Launch `grid` program instances on the tensors' GPU; none when `grid` is 0.

        Tensors of the CPU, which torch allows beside a GPU's where they have one element, go
        there and back as copies.
        """
        if not grid:
            return
        if not all([t.is_cuda for t in tensors]):
            self._launch_copies(name, tensors, symbols, grid)
            return
        gpu = tensors[0].get_device()
        with torch.cuda.device(gpu):
            stream = torch._C._cuda_getCurrentRawStream(gpu)
            self.launcher(name)(tensors, symbols, grid, gpu, stream)

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
