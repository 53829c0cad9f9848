"""Functions of a GPU's libraries as native programs call them, each tested before."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from irc.boundary import (
    cuda_blas,
    cuda_blas_lt,
    cuda_convolutions,
    cuda_draws,
    cuda_memory,
    torch_abi,
)
from irc.boundary.cuda import Gpu
from irc.codegen.host.gpu_products import support_name
from irc.codegen.host.support_products import KEPT_WORDS
from irc.runtime import native


@functools.cache
def library_of(gpu: Gpu) -> Callable[..., Any]:
    """What gives the words of a function: of ("product", form, dtype) as `cuda_blas` says, of
    ("biased", dtype, numbers, device, step) as `cuda_blas_lt`: new ones each time, of
    ("convolution", its fields) as `cuda_convolutions`, of ("memory",) as `cuda_memory`, and of
    ("draw", device) as `cuda_draws`."""
    if gpu.library is not None:
        return gpu.library
    finders: dict[str, Callable[..., Any]] = {
        "product": cuda_blas.finder(gpu.symbol_address, _call_product),
        "biased": cuda_blas_lt.finder(gpu.symbol_address, _call_biased),
        "convolution": cuda_convolutions.finder(gpu.symbol_address, call_convolution),
        "draw": cuda_draws.finder(call_draw),
        "memory": cuda_memory.finder(gpu.symbol_address, functools.partial(made_empty, gpu)),
    }
    return lambda which, *rest: finders[which](*rest)


def _call_biased(site: cuda_blas_lt.BiasedSite, *operands: int) -> int:
    addresses = [ctypes.c_void_p] * 4
    key = ctypes.PYFUNCTYPE(ctypes.c_uint64, *addresses)(native.gpu_support("irc_gpu_alignments"))
    call = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *addresses, *addresses[:2])(
        native.gpu_support("irc_gpu_biased")
    )
    kept = (ctypes.c_uint64 * KEPT_WORDS)()
    site.load(key(*operands[:4]), operands[2])
    return int(call(ctypes.addressof(site.words), *operands, ctypes.addressof(kept)))


def _call_product(
    form: str, words: cuda_blas.ProductFunction, numbers: ctypes.Array[Any], a: int, b: int, c: int
) -> int:
    dtype = "float32" if words[cuda_blas.ELEMENT] == 0 else ""
    address = native.gpu_support(support_name(form, dtype))
    pointers = [ctypes.c_void_p] * 5
    call = ctypes.PYFUNCTYPE(ctypes.c_int32, *pointers, ctypes.c_int64, pointers[0])(address)
    kept = (ctypes.c_uint64 * KEPT_WORDS)()
    operands = ctypes.addressof(words), ctypes.addressof(numbers), a, b, c, 0
    return int(call(*operands, ctypes.addressof(kept)))


def call_convolution(
    words: cuda_convolutions.ConvolutionWords, *tensors: torch.Tensor
) -> int:
    """`irc_gpu_convolution` on an image, a weight and a result."""
    call = ctypes.PYFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(
        native.gpu_support("irc_gpu_convolution")
    )
    return int(call(ctypes.addressof(words), *map(torch_abi.tensor_handle, tensors)))


def call_draw(words: cuda_draws.DrawWords, increment: int, out: int, stream: int) -> int:
    """`irc_gpu_draw` to memory of the present device."""
    pointer = ctypes.c_void_p
    call = ctypes.PYFUNCTYPE(ctypes.c_int32, pointer, ctypes.c_int64, pointer, pointer)(
        native.gpu_support("irc_gpu_draw")
    )
    return int(call(ctypes.addressof(words), increment, out, stream))


def made_empty(
    gpu: Gpu, words: cuda_memory.MemoryFunctions, device: int, sizes: Sequence[int],
    strides: Sequence[int], dtype: torch.dtype,
) -> torch.Tensor | None:  # fmt: skip
    """A tensor by `irc_gpu_empty`; None where it fails."""
    i64, pointer, handle = ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p()
    arrays = [(i64 * max(1, len(each)))(*each) for each in (sizes, strides)]
    call = ctypes.PYFUNCTYPE(
        ctypes.c_int32, pointer, pointer, i64, i64, pointer, pointer, ctypes.c_int32, pointer
    )(native.gpu_support("irc_gpu_empty"))
    code = call(
        ctypes.addressof(words), ctypes.addressof(gpu.table), device, len(sizes),
        *map(ctypes.addressof, arrays), torch_abi.dtype_code(dtype), ctypes.addressof(handle),
    )  # fmt: skip
    if code or not handle.value:
        return None
    tensor = torch_abi.tensor_from_handle(handle.value)
    delete = torch_abi.c_function("aoti_torch_delete_tensor_object", ctypes.c_int32, pointer)
    return None if delete(handle) else tensor


__all__ = ["call_convolution", "call_draw", "library_of", "made_empty"]
