"""Kernels of a native program of GPUs: loaded when they are launched first, and compiled when the
program has no machine code for such arguments.

    loaded = LoadedKernels(kernels, gpu)
    loaded.object(("gpu-kernel", "k", 0))       # the descriptor that native launches read

docs/design/gpu-host.md says what a variant's key is; `irc.codegen.host.support_gpu` the words of a
descriptor.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.metadata
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence

import torch

from irc.boundary.cuda import Gpu
from irc.cache.keys import irc_key, key_of
from irc.cache.store import shared_cache
from irc.codegen.host import support_gpu as words
from irc.codegen.host import support_reads as reads
from irc.ir.diagnostics import UserError
from irc.program.gpu_kernels import (
    GpuKernels,
    MachineCode,
    pack_code,
    scratch_address,
    unpack_code,
)
from irc.runtime.late_flags import flag_memory
from irc.runtime.native import gpu_support

_INVALID_CONTEXT = 201


class Descriptor(ctypes.c_uint64 * words.DESCRIPTOR_WORDS):  # type: ignore[misc]
    """The words of a kernel that native launches read."""


class Variant(ctypes.c_uint64 * words.VARIANT_WORDS):  # type: ignore[misc]
    """The words of a variant, which never change."""


class Variants:
    """The variants of one kernel on one GPU; called with a key, it adds the one for that key.

    Native code calls it with the interpreter lock held, and can't pass an error on: what goes wrong
    is kept for `failed`, which native code calls on the same thread.
    """

    def __init__(self, owner: LoadedKernels, name: str, device: int) -> None:
        self.owner, self.name, self.device = owner, name, device
        self.descriptor = Descriptor()
        facts = owner.kernels.kernels[name]
        self.descriptor[words.POINTERS] = facts.pointers
        self.descriptor[words.SIZES] = len(facts.signature) - facts.pointers
        self.descriptor[words.LOADER] = id(self)
        self.descriptor.owner = self
        self._functions: dict[int, Variant] = {}
        self._next, self._adding = 0, threading.Lock()
        self._errors: dict[int, BaseException] = {}

    def __call__(self, key: int) -> None:
        key &= 2**64 - 1
        try:
            variant = self._functions.get(key)
            if variant is None:  # another thread may be faster: its variant is there for good
                variant = self._functions.setdefault(key, self._loaded(key))
            with self._adding:
                self._add(variant)
        except BaseException as error:
            self._errors[threading.get_ident()] = error

    def _loaded(self, key: int) -> Variant:
        code = self.owner.code(self.name, key)
        if code.special:
            raise UserError(f"@{self.name} wants {code.special}, which no native launch gives")
        function = self.owner.gpu.load(self.device, code.code, code.symbol, code.shared)
        early = self.owner.kernels.kernels[self.name].early
        return Variant(key, function, code.threads, code.shared, int(early))

    def _add(self, variant: Variant) -> None:
        """Write where the variant is where native code looks for it, which may be looking: behind
        the others, or where they are many in place of the one that is there for longest."""
        number = self._next % words.VARIANT_LIMIT
        self.descriptor[words.FIRST_VARIANT + number] = ctypes.addressof(variant)
        self._next += 1
        self.descriptor[words.VARIANTS] = min(self._next, words.VARIANT_LIMIT)

    def failed(self, code: int) -> None:
        """Raise why a launch failed: what `__call__` met, or the driver's error `code`."""
        error = self._errors.pop(threading.get_ident(), None)
        if code == words.NOT_LOADED and error is not None:
            raise error
        raise RuntimeError(f"launching @{self.name}: {self.owner.gpu.error_text(code)}")


class EarlyPlace(ctypes.c_int64 * reads.PLACE_WORDS):  # type: ignore[misc]
    """Where a program's call puts one number that it reads early (`support_reads`)."""

    def __init__(self, gpu: Gpu, device: int) -> None:
        super().__init__()
        self.memory = torch.zeros(1, dtype=torch.int64, pin_memory=torch.cuda.is_available())
        self[reads.EVENT], self[reads.MEMORY] = gpu.event(device), self.memory.data_ptr()


class LoadedKernels:
    """The kernels of a program in this process, by name and device. `cached`: machine code may
    come from the cache on disk, and go there."""

    def __init__(self, kernels: GpuKernels, gpu: Gpu, cached: bool = True) -> None:
        self.kernels, self.gpu, self.cached = kernels, gpu, cached
        self._codes: dict[tuple[str, int], MachineCode] = dict(kernels.codes)
        self._variants: dict[tuple[str, int], Variants] = {}

    def code(self, name: str, key: int) -> MachineCode:
        """Machine code of a kernel for a key: the program's own, the cache's, or compiled now."""
        code = self._codes.get((name, key))
        if code is None:
            fresh = code_for(self.kernels, name, key, self.cached)
            code = self._codes[name, key] = fresh
        return code

    def variants(self, name: str, device: int) -> Variants:
        """The variants of a kernel on a GPU."""
        variants = self._variants.get((name, device))
        if variants is None:
            self.gpu.prepare(device)
            variants = self._variants[name, device] = Variants(self, name, device)
        return variants

    def object(self, key: Hashable) -> object:
        """The object that native code names `key`. KeyError where it isn't one of a GPU's."""
        match key:
            case ("gpu-table",):
                return self.gpu.table
            case ("gpu-library", *which):
                from irc.runtime.gpu_libraries import library_of

                return library_of(self.gpu)(*which)
            case ("gpu-kernel", str(name), int(device)):
                return self.variants(name, device).descriptor
            case ("gpu-launch-failed", str(name), int(device)):
                return self.variants(name, device).failed
            case ("gpu-flag", int(device), str(error), str(message)):
                return flag_memory(self.gpu, device, error, message)
            case ("gpu-read", int(), int(device)):
                return EarlyPlace(self.gpu, device)
            case ("gpu-error", str(what)):
                return functools.partial(self._raise, what)
        raise KeyError(key)

    def _raise(self, what: str, code: int) -> None:
        raise RuntimeError(f"{what}: {self.gpu.error_text(code)}")


class NativeLauncher:
    """As `irc.runtime.triton_kernels.Launcher`, over a program's machine code: for captures, and
    for calls that the native host function hands over."""

    def __init__(self, loaded: LoadedKernels, name: str) -> None:
        self.loaded, self.name = loaded, name

    def __call__(
        self,
        tensors: Sequence[torch.Tensor],
        sizes: Sequence[int],
        grid: int,
        gpu: int,
        stream: int,
    ) -> None:
        variants = self.loaded.variants(self.name, gpu)
        numbers = [t.data_ptr() for t in tensors]
        described = self.loaded.kernels.kernels[self.name].descriptors
        scratch = scratch_address(numbers[-1]) if described else 0
        numbers += [*sizes, scratch]
        count = len(numbers) + words.SCRATCH_POINTERS - 1
        values = (ctypes.c_int64 * count)(*numbers)
        start = ctypes.addressof(values)
        params = (ctypes.c_void_p * count)(*range(start, start + 8 * count, 8))
        table, held = ctypes.addressof(self.loaded.gpu.table), ctypes.c_void_p()
        descriptor, places = ctypes.addressof(variants.descriptor), ctypes.addressof(params)
        operands = table, descriptor, stream, grid, start, places, ctypes.addressof(held)
        launch = gpu_launch()
        code = launch(*operands)
        if code == _INVALID_CONTEXT:  # a thread's first call of CUDA
            self.loaded.gpu.make_current(gpu)
            code = launch(*operands)
        if code:
            variants.failed(code)


@functools.cache
def gpu_launch() -> Callable[..., int]:
    """`irc_gpu_launch` as a function of Python, which keeps the interpreter lock."""
    pointer = ctypes.c_void_p
    kinds = (pointer, pointer, pointer, ctypes.c_int64, pointer, pointer, pointer)
    return ctypes.PYFUNCTYPE(ctypes.c_int32, *kinds)(gpu_support("irc_gpu_launch"))


def code_key(kernels: GpuKernels, name: str, key: int) -> str:
    """The key under which the cache has machine code: all that decides it."""
    facts = kernels.kernels[name]
    decides = (name, facts.signature, facts.options, key, kernels.chip)
    return key_of("gpu-code", kernels.source, repr(decides), irc_key(), triton_version())


@functools.cache
def triton_version() -> str:
    """The version of the Triton that is installed, "" for none."""
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return ""


def code_for(kernels: GpuKernels, name: str, key: int, cached: bool) -> MachineCode:
    """Machine code from the cache, else compiled and stored; only compiled unless `cached`."""
    pair = name, key
    stored = cached_codes(kernels, [pair]) if cached else {}
    if stored:
        return stored[pair]
    from irc.codegen.triton.machine_code import compile_code

    code = compile_code(kernels, name, key)
    if cached:
        store_codes(kernels, {pair: code})
    return code


def cached_codes(
    kernels: GpuKernels, pairs: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], MachineCode]:
    """Those of the names and keys that the cache on disk has machine code for, with it."""
    codes = {}
    for name, key in pairs:
        data = shared_cache().get(code_key(kernels, name, key))
        if data is not None:
            with contextlib.suppress(ValueError):  # not one of ours: compiled again
                codes[name, key] = unpack_code(data)
    return codes


def store_codes(kernels: GpuKernels, codes: Mapping[tuple[str, int], MachineCode]) -> None:
    """Keep machine code in the cache on disk."""
    for (name, key), code in codes.items():
        shared_cache().put(code_key(kernels, name, key), pack_code(code))


__all__ = ["Descriptor", "LoadedKernels", "NativeLauncher", "Variants", "cached_codes", "code_for",
           "code_key", "gpu_launch", "store_codes", "triton_version"]  # fmt: skip
