"""Facts about the storages of the installed torch, tested: how to make one of memory of ours.

`torch_from_blob` (since torch 2.11) takes memory with a function that frees it. The storage that it
makes can't be resized: it has no allocator and no leave. `facts` finds both in the storage by
probes, sets them, and has torch resize it; where anything differs it is None, `unknown_reason()`
names it, and results are made by torch alone.
"""

from __future__ import annotations

import ctypes
import functools
from typing import NamedTuple

import torch

from irc.boundary import torch_abi

_FROM_BLOB = "torch_from_blob"
_ALLOCATOR = "_ZN3c1015GetCPUAllocatorEv"
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
#: How far the probes look into a tensor and a storage.
_TENSOR_BYTES, _STORAGE_BYTES = 128, 128
_PROBES = 2
_LENGTH = 50
#: What probes need for as long as torch may call it: a few, since they run once.
_needed: list[object] = []


class StorageFacts(NamedTuple):
    """The address of `torch_from_blob`; offsets in bytes of a tensor's storage, of a storage's
    allocator and of its leave to be resized; the address of torch's allocator."""

    from_blob: int
    storage: int
    allocator: int
    resizable: int
    torchs: int


class _Blob:
    """A tensor of `torch_from_blob` over memory of this object's, and how often it was freed."""

    def __init__(self) -> None:
        self.memory = (ctypes.c_float * _LENGTH)(*range(_LENGTH))
        self.freed: list[int] = []
        self._free = _DELETER(lambda data, _context: self.freed.append(data))
        _needed.extend((self.memory, self._free))
        sizes, strides = (ctypes.c_int64 * 1)(_LENGTH), (ctypes.c_int64 * 1)(1)
        handle, word, number = ctypes.c_void_p(), ctypes.c_int64, ctypes.c_int32
        place = ctypes.c_void_p
        new = torch_abi.c_function(
            _FROM_BLOB, number, place, word, place, place, word, number, number, number, place,
            number, place, word, place, place,
        )  # fmt: skip
        code, free = torch_abi.dtype_code(torch.float32), ctypes.cast(self._free, place)
        data = ctypes.addressof(self.memory)
        at = [ctypes.addressof(each) for each in (sizes, strides, handle)]
        if new(data, 1, at[0], at[1], 0, code, 0, -1, at[2], 0, None, 0, free, None):
            raise RuntimeError(torch_abi.last_error_text())
        assert handle.value is not None
        self.tensor: torch.Tensor | None = torch_abi.tensor_from_handle(handle.value)
        delete = torch_abi.c_function(
            "aoti_torch_delete_tensor_object", ctypes.c_int32, ctypes.c_void_p
        )
        delete(handle)


def _places_of(value: int, address: int, count: int) -> set[int]:
    """Where in so many bytes a word of that value is."""
    words = (ctypes.c_uint64 * (count // 8)).from_address(address)
    return {8 * i for i, word in enumerate(words) if word == value}


def _bytes(address: int) -> bytes:
    return ctypes.string_at(address, _STORAGE_BYTES)


def _leaves(blob: torch.Tensor, own: bytes) -> set[int]:
    """Which bytes are the leave to be resized: those of a storage without it that make torch say
    that it has it. Each is written back at once; nothing else reads the storage meanwhile."""
    storage, places = blob.untyped_storage(), set()
    now = _bytes(storage._cdata)
    for i in range(_STORAGE_BYTES):
        if own[i] == 1 and now[i] == 0:
            byte = ctypes.c_uint8.from_address(storage._cdata + i)
            byte.value = 1
            if storage.resizable():
                places.add(i)
            byte.value = 0
    return places


def _the_one(candidates: set[int], what: str) -> int:
    if len(candidates) != 1:
        raise RuntimeError(f"{what} isn't at one place")
    return candidates.pop()


def _find() -> StorageFacts:
    from_blob, ask = (torch_abi.symbol_address(name) for name in (_FROM_BLOB, _ALLOCATOR))
    if from_blob is None or ask is None:
        raise RuntimeError("torch has no from_blob with a deleter, or hides its allocator")
    torchs = torch_abi.c_function(_ALLOCATOR, ctypes.c_uint64)()
    in_tensor = set(range(0, _TENSOR_BYTES, 8))
    allocators, leaves = set(range(0, _STORAGE_BYTES, 8)), set(range(_STORAGE_BYTES))
    for _ in range(_PROBES):
        own, blob = torch.empty(_LENGTH), _Blob().tensor
        assert blob is not None
        mine, other = (each.untyped_storage()._cdata for each in (own, blob))
        for tensor, storage in ((own, mine), (blob, other)):
            impl = torch_abi.read_word(torch_abi.tensor_handle(tensor))
            in_tensor &= _places_of(storage, impl, _TENSOR_BYTES)
        allocators &= _places_of(torchs, mine, _STORAGE_BYTES)
        allocators &= _places_of(0, other, _STORAGE_BYTES)
        leaves &= _leaves(blob, _bytes(mine))
    return StorageFacts(
        from_blob,
        _the_one(in_tensor, "the storage of a tensor"),
        _the_one(allocators, "the allocator of a storage"),
        _the_one(leaves, "the leave to resize a storage"),
        torchs,
    )


def _test(facts: StorageFacts) -> None:
    """Have torch resize a storage that was told so; RuntimeError when it does anything else."""
    blob = _Blob()
    tensor = blob.tensor
    assert tensor is not None
    storage = tensor.untyped_storage()
    if storage.resizable():
        raise RuntimeError("a storage of from_blob can be resized as it is")
    ctypes.c_uint64.from_address(storage._cdata + facts.allocator).value = facts.torchs
    ctypes.c_uint8.from_address(storage._cdata + facts.resizable).value = 1
    if not storage.resizable() or blob.freed or tensor.data_ptr() != ctypes.addressof(blob.memory):
        raise RuntimeError("a storage doesn't know that it can be resized")
    tensor.resize_(2 * _LENGTH)
    if blob.freed != [ctypes.addressof(blob.memory)]:
        raise RuntimeError("resizing a storage doesn't free its memory once")
    if tensor[:_LENGTH].tolist() != list(blob.memory) or storage.nbytes() != 8 * _LENGTH:
        raise RuntimeError("resizing a storage loses what it held")
    whole = _Blob()
    whole.tensor = None
    if whole.freed != [ctypes.addressof(whole.memory)]:
        raise RuntimeError("a storage of from_blob doesn't free its memory once")


@functools.cache
def _tested() -> StorageFacts | str:
    from torch.utils._python_dispatch import _disable_current_modes

    try:
        with _disable_current_modes(), torch.inference_mode(False):
            known = _find()
            _test(known)
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
        return f"the self-test of storages failed: {error}"
    return known


def facts() -> StorageFacts | None:
    """What is known of torch's storages; None where a fact doesn't hold."""
    tested = _tested()
    return None if isinstance(tested, str) else tested


def unknown_reason() -> str | None:
    """Why torch makes all results itself; None where it needn't."""
    tested = _tested()
    return tested if isinstance(tested, str) else None


__all__ = ["StorageFacts", "facts", "unknown_reason"]
