"""New tensors of a GPU below torch's dispatcher.

    words = finder(symbol_address, make)()       # EMPTY is 0: torch's C function makes them

`aoti_torch_empty_strided` takes 2 us of an H200's host, more than half of it on the way to the
function that asks the caching allocator. That one is called directly where torch has it and what it
gives is what torch's operator gives. What torch does around it has no place here: the program's
device is the current one, and all of the memory is written, so that none is filled
(`torch.utils.deterministic.fill_uninitialized_memory`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import torch

from irc.boundary.cuda_blas import plainly

#: Words: the function.
EMPTY, WORDS = 0, 1
#: `at::detail::empty_strided_cuda(sizes, strides, dtype, device)`, which gives a tensor.
_SYMBOL = "_ZN2at6detail18empty_strided_cudaEN3c108ArrayRefIlEES3_NS1_10ScalarTypeESt8optionalINS1_6DeviceEE"  # noqa: E501


class MemoryFunctions(ctypes.c_uint64 * WORDS):  # type: ignore[misc]
    """The words; a ctypes array holds their address at offset 16."""


#: Makes a tensor by `irc.codegen.host.support_memory`: words, a device, sizes, strides, a dtype.
Maker = Callable[
    [MemoryFunctions, int, Sequence[int], Sequence[int], torch.dtype], torch.Tensor | None
]


def finder(
    symbol_address: Callable[[str], int | None], make: Maker
) -> Callable[[], MemoryFunctions]:
    """What gives the words, the function tested before by `make`."""
    tested: list[MemoryFunctions] = []

    def memory() -> MemoryFunctions:
        if not tested:
            if torch.cuda.is_current_stream_capturing():
                return MemoryFunctions()  # no time for a test
            words = MemoryFunctions()
            words[EMPTY] = symbol_address(_SYMBOL) or 0
            if words[EMPTY] and self_test(words, make) is not None:
                words = MemoryFunctions()
            tested.append(words)
        return tested[0]

    return memory


def self_test(words: MemoryFunctions, make: Maker, place: str = "cuda") -> str | None:
    """Why the function doesn't give what torch's operator gives; None when it does."""
    cases = [((4, 3), (1, 7), torch.bfloat16), ((), (), torch.float32),
             ((0, 2), (2, 1), torch.bool), ((2, 3, 5), (15, 5, 1), torch.int64)]  # fmt: skip
    with plainly():
        device = torch.cuda.current_device() if place == "cuda" else -1
        for sizes, strides, dtype in cases:
            own = make(words, device, sizes, strides, dtype)
            theirs = torch.empty_strided(sizes, strides, dtype=dtype, device=place)
            if own is None or facts(own) != facts(theirs):
                return f"an empty tensor of {sizes} isn't as torch's"
            storage = own.untyped_storage()
            storage.copy_(torch.UntypedStorage(storage.nbytes()))  # to memory that is there
    return None


def facts(tensor: torch.Tensor) -> tuple[object, ...]:
    """All that is known of a tensor but where it is."""
    storage = tensor.untyped_storage()
    return (
        tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.storage_offset(),
        storage.nbytes(), storage.resizable(), tensor.is_leaf, tensor.requires_grad,
        tensor.is_inference(), tensor._version, torch._C._dispatch_keys(tensor).raw_repr(),
    )  # fmt: skip


__all__ = ["EMPTY", "WORDS", "MemoryFunctions", "facts", "finder", "self_test"]
