"""Loads a native host function and makes Python builtins of it.

The loader joins three things: object code (from the JIT or the cache), the addresses of torch's,
Python's and our support functions, and the Python objects that the code refers to by context word.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import llvmlite
import torch

from irc.boundary import aten_paths, torch_abi
from irc.boundary.once import once
from irc.cache.keys import key_of
from irc.cache.store import shared_cache
from irc.codegen.host import support as host_support
from irc.codegen.host import support_kept
from irc.codegen.host.names import (
    CONTEXT_ARENA,
    CONTEXT_FALLBACK,
    CONTEXT_OBJECTS,
    CONTEXT_RUNTIME,
)
from irc.codegen.llvm.jit import LoadedObject, compile_module, load_object
from irc.ir.symbols import evaluate, parse_dim
from irc.program import clocks
from irc.runtime import errors
from irc.runtime.memory import ArenaSlots, kept_results
from irc.target.cpu import TargetFeatures

if TYPE_CHECKING:
    from irc.boundary.cuda import Gpu


def _made_support(text: str, exports: Iterable[str], symbols: Mapping[str, int]) -> LoadedObject:
    features = TargetFeatures.host()
    key = key_of("support", text, features.cache_key(), llvmlite.__version__)
    data = shared_cache().get(key)
    if data is None:
        data = compile_module(text, features)
        shared_cache().put(key, data)
    return load_object(data, exports=exports, symbols=symbols)


@once
def _support_object() -> LoadedObject:
    """The functions that all programs call. torch frees storages with them for as long as there is
    a tensor: this is never dropped, and when the interpreter ends llvmlite disposes of nothing."""
    symbols = {**torch_abi.symbols(), support_kept.SYMBOL: kept_results().address}
    return _made_support(host_support.support_text(), host_support.SIGNATURES, symbols)


@once
def _gpu_support_object() -> LoadedObject:
    """The functions that programs of GPUs alone call."""
    from irc.codegen.host import support_gpu, support_memory, support_products

    symbols = torch_abi.symbols()
    for name in ("irc_call_python", "irc_check_tensor", "irc_lock"):
        symbols[name] = _support_object().address(name)
    for name in (*support_products.SYMBOLS, *support_memory.SYMBOLS):
        address = torch_abi.symbol_address(name)
        if address is None:
            raise KeyError(f"torch's process has no {name}")
        symbols[name] = address
    return _made_support(support_gpu.support_text(), support_gpu.SIGNATURES, symbols)


@once
def graph_support() -> LoadedObject:
    """The bodies of builtins that replay graphs: `irc.codegen.host.support_graphs`."""
    from irc.codegen.host import support_graphs

    symbols = torch_abi.symbols()
    symbols |= {name: _support_object().address(name) for name in support_graphs.SUPPORT}
    symbols |= {name: gpu_support(name) for name in support_graphs.GPU_SUPPORT}
    return _made_support(support_graphs.support_text(), support_graphs.EXPORTS, symbols)


def gpu_support(name: str) -> int:
    """Where a function of `irc.codegen.host.support_gpu` is."""
    return _gpu_support_object().address(name)


def _addresses(externals: Iterable[str], gpu: Gpu | None) -> dict[str, int]:
    """Where the functions are that a host module declares; KeyError for one that isn't anywhere."""
    addresses = {}
    of_torch = torch_abi.symbol_address if gpu is None else gpu.symbol_address
    for name in externals:
        if name.startswith(clocks.SYMBOL_PREFIX):
            addresses[name] = clocks.address(name.removeprefix(clocks.SYMBOL_PREFIX))
            continue
        if name in host_support.SIGNATURES:
            addresses[name] = _support_object().address(name)
            continue
        if name.startswith("irc_gpu_"):
            addresses[name] = _gpu_support_object().address(name)
            continue
        address = of_torch(name)
        if address is None:
            raise KeyError(f"torch doesn't export {name}")
        addresses[name] = address
    return addresses


@functools.cache
def _context_type(words: int) -> type:
    return type("HostContext", (ctypes.c_uint64 * words,), {})


def _raise_shim_error(step: str) -> None:
    raise RuntimeError(f"{step}: {torch_abi.last_error_text()}")


def _raise_no_memory(size_bytes: int) -> None:
    raise MemoryError(f"no memory for {size_bytes} bytes of intermediate results")


def raise_misfit(
    callee: str, fixed: Sequence[int | None], code: int, tensor: torch.Tensor, *others: int
) -> None:
    """The error of an operator's result that isn't as compiled for. `others` are the sizes that
    are None in `fixed`; `code` is `irc_fit_result`'s."""
    rest = iter(others)
    sizes = [next(rest) if size is None else size for size in fixed]
    errors.raise_misfit(callee, sizes, tensor)
    _raise_shim_error(callee)


def _raises(function: Callable[..., None]) -> Callable[..., object]:
    return lambda *fixed: functools.partial(function, *fixed)


def dim_callable(text: str, names: Sequence[str]) -> Callable[..., tuple[int]]:
    """The Python function behind an expression that has no instructions: gives a 1-tuple."""
    dim = parse_dim(text)

    def compute(*values: int) -> tuple[int]:
        return (evaluate(dim, dict(zip(names, values, strict=True))),)

    return compute


def _late_errors() -> Callable[[int], None]:
    """What raises the errors of checks that nobody waited for."""
    from irc.runtime import late_checks

    return late_checks.raise_failed


def _late_check(gpu: int, every: bool, error: str, message: str) -> Callable[..., None]:
    """What adds the check of a truth value to those of the GPU."""
    from irc.runtime import late_checks

    fail = functools.partial(errors.raise_error, error, message)
    return lambda truth: late_checks.check_truth(truth, every, gpu, fail)


def _late_fail(gpu: int, error: str, message: str) -> Callable[[], None]:
    """What raises the error of a check that native code leaves to the GPU's ring."""
    from irc.runtime import late_checks

    late_checks.ring_of(gpu)
    return functools.partial(errors.raise_error, error, message)


#: Makers of the objects that a lowered host program names, from the rest of their keys.
_MADE: dict[object, Callable[..., object]] = {
    "raise": _raises(errors.raise_error),
    "range": _raises(errors.raise_out_of_range),
    "misfit": _raises(raise_misfit),
    "dim": dim_callable,
    "late-errors": _late_errors,
    "late-check": _late_check,
    "late-fail": _late_fail,
    "no-tensor": torch_abi.undefined_tensor,
    "to-gpu": lambda device: lambda number: (number.to(f"cuda:{device}"),),
}


def _standard_object(key: Hashable) -> object | None:
    """The objects that every program may name, whatever it computes."""
    if isinstance(key, tuple) and key[0] == "aten":
        return aten_paths.boxed_callable(key[1], key[2])
    if isinstance(key, tuple) and key[0] == "aten-replay":
        return aten_paths.replay_callable(key[1], key[2])
    if isinstance(key, tuple) and key[0] == "shim-error":
        return functools.partial(_raise_shim_error, key[1])
    if isinstance(key, tuple) and key[0] in _MADE:
        return _MADE[key[0]](*key[1:])
    return _raise_no_memory if key == ("no-memory",) else None


class NativeProgram:
    """A loaded host function: `call(*arguments)` and `call_boxed([arguments])`, both builtins.

    `slots` are the emitter's `slot_keys`, `externals` the functions that it declared; `objects`
    gives the Python object for each slot; `symbols` are addresses of generated kernels, which the
    caller keeps loaded; `gpu` is what a program of GPUs was made for. `fallback` runs the same
    program in Python: it is called with the very arguments of a call whose checks failed;
    `boxed_fallback` gets the list of a boxed call of the wrong length.
    Raises KeyError for a slot without an object, JitError when the code doesn't link.
    """

    def __init__(
        self,
        code: bytes,
        name: str,
        *,
        slots: Sequence[Hashable],
        objects: Callable[[Hashable], object] | Mapping[Hashable, object],
        fallback: Callable[..., object],
        boxed_fallback: Callable[[list[object]], object],
        externals: Iterable[str],
        symbols: Mapping[str, int] | None = None,
        gpu: Gpu | None = None,
    ) -> None:
        reason = torch_abi.unavailable_reason()
        if reason is not None:
            raise RuntimeError(f"native host functions can't run here: {reason}")
        every = {**_addresses(externals, gpu), **(symbols or {})}
        entries = (name, f"{name}.boxed")
        loaded = load_object(code, exports=entries, symbols=every)
        lookup = objects.__getitem__ if isinstance(objects, Mapping) else objects
        kept = [fallback, boxed_fallback, *(_standard_object(key) or lookup(key) for key in slots)]
        context = _context_type(CONTEXT_OBJECTS + len(slots))()
        arena = ArenaSlots(_support_object().address)
        runtime = torch_abi.runtime_table()
        context[CONTEXT_RUNTIME] = ctypes.addressof(runtime)
        context[CONTEXT_ARENA] = arena.address
        for word, kept_object in enumerate(kept, start=CONTEXT_FALLBACK):
            context[word] = id(kept_object)
        # The builtins own the context through their `self`; it owns everything they reach.
        context.keeps = (loaded, kept, arena, runtime)
        weakref.finalize(context, arena.close).atexit = False
        make = torch_abi.make_builtin
        self.call = make(name, loaded.address(entries[0]), context, takes_list=False)
        self.call_boxed = make(name, loaded.address(entries[1]), context, takes_list=True)
