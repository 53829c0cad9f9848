"""Programs of GPUs from code to what is called; `irc.runtime.gpu_compile` generates the code.

Where no native host function can be had (`irc.boundary.cuda`), the host function is empty, the
kernels have no machine code, and `irc.runtime.triton_kernels` launches them for the Python
executor. Where none is needed, as a program is captured, Python launches their machine code.
"""

from __future__ import annotations

from typing import Any

import attrs

from irc.boundary.cuda import Gpu
from irc.codegen.host.names import ENTRY
from irc.program import gpu_kernels
from irc.runtime import triton_kernels
from irc.runtime.cpu_kernels import KernelTable
from irc.runtime.executable import NativeCode
from irc.runtime.gpu_kernels import LoadedKernels


@attrs.frozen
class GpuCode:
    """What `compile_for_gpu` makes: packed kernels, and the host function as its emitter left it,
    empty for one in Python."""

    kernels: bytes
    host: bytes = b""
    slots: tuple[Any, ...] = ()
    externals: frozenset[str] = frozenset()


def load_for_gpu(
    code: GpuCode, gpu: Gpu | None, *, cached: bool
) -> tuple[KernelTable, NativeCode | None, dict[Any, object]]:
    """What launches the kernels for the Python executor, the host function (None for one in
    Python), and the objects that it names."""
    kernels = gpu_kernels.unpack(code.kernels)
    if gpu is None or not (code.host or kernels.codes):
        return triton_kernels.TritonKernels(kernels), None, {}
    loaded = LoadedKernels(kernels, gpu, cached)
    table = triton_kernels.TritonKernels(kernels, loaded)
    if not code.host:
        return table, None, {}
    objects = {key: loaded.object(key) for key in code.slots if _is_of_gpu(key)}
    return table, NativeCode(code.host, ENTRY, code.slots, code.externals, gpu=gpu), objects


def _is_of_gpu(key: Any) -> bool:
    return isinstance(key, tuple) and str(key[0]).startswith("gpu-")


__all__ = ["GpuCode", "load_for_gpu"]
