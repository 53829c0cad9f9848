"""Facts about the installed torch that native host functions rely on, each tested at import.

A native host function reads three things that no C interface hands out: the tensor inside a
Python tensor object (the object's field at offset 16), the dispatch keys inside that tensor (one
64-bit word that says dense, on a CPU, strided, not conjugated, not negated, not fake), and the
exclusion of autograd and autocast on this thread. `self_test` looks each of them up on probe
tensors and compares with what torch's Python interface says. When anything differs, `available()`
is False, `unavailable_reason()` names it, and executables run on `irc.runtime.python_host`.

The environment variable `IRC_FORCE_SLOW_HOST=1` (read at each question) has the same effect.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from irc.boundary.once import once

if TYPE_CHECKING:
    _Simple = ctypes._SimpleCData[Any]  # py_object and the numbers of C

#: Offset of the `at::Tensor` inside a Python tensor object. Its address is an AtenTensorHandle.
TENSOR_FIELD_OFFSET = 16
#: How far into a TensorImpl the self-test looks for the dispatch key word.
_IMPL_SCAN_BYTES = 256

#: C++ functions used under names of ours: neither throws on the paths taken here.
_MANGLED = {
    "irc_wrap_tensor": "_Z16THPVariable_WrapRKN2at10TensorBaseE",
    "irc_tls_is_excluded": "_ZN3c104impl28tls_is_dispatch_key_excludedENS_11DispatchKeyE",
    "irc_tls_set_excluded": "_ZN3c104impl29tls_set_dispatch_key_excludedENS_11DispatchKeyEb",
}

#: Everything that generated host code and its support functions may call.
REQUIRED_SYMBOLS = (
    *_MANGLED,
    "aoti_torch_get_dtype",
    "aoti_torch_get_dim",
    "aoti_torch_get_sizes",
    "aoti_torch_get_strides",
    "aoti_torch_get_data_ptr",
    "aoti_torch_get_storage_offset",
    "aoti_torch_get_device_type",
    "aoti_torch_get_device_index",
    "aoti_torch_empty_strided",
    "aoti_torch_copy_",
    "aoti_torch_delete_tensor_object",
    "aoti_torch_new_tensor_handle",
    "aoti_torch_create_tensor_from_blob_v2",
    "aoti_torch__reinterpret_tensor",
    "aoti_torch_grad_mode_is_enabled",
    "aoti_torch_grad_mode_set_enabled",
    "torch_parallel_for",
    "torch_get_num_threads",
    "torch_call_dispatcher",
    "torch_new_list_reserve_size",
    "torch_list_push_back",
    "torch_list_get_item",
    "torch_list_size",
    "torch_delete_list",
    "torch_new_string_handle",
)

_PYTHON_SYMBOLS = (
    "PyObject_Vectorcall",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyLong_FromLongLong",
    "PyLong_AsLongLong",
    "PyLong_AsLongLongAndOverflow",
    "PyFloat_FromDouble",
    "PyFloat_AsDouble",
    "PyBool_FromLong",
    "PyList_SetSlice",
    "PyErr_Occurred",
    "PyErr_SetString",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "Py_IncRef",
    "Py_DecRef",
)
_LIBC_SYMBOLS = ("aligned_alloc", "free", "calloc", "madvise", "memset", "memcpy", "memchr")

DTYPE_CODES: dict[torch.dtype, int] = {}
_DTYPE_NAMES = (
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex32",
    "complex64",
    "complex128",
    "bool",
    "bfloat16",
    "float8_e5m2",
    "float8_e4m3fn",
    "float8_e5m2fnuz",
    "float8_e4m3fnuz",
    "uint16",
    "uint32",
    "uint64",
)


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    folder = Path(torch.__file__).parent / "lib"
    suffix = ".dylib" if sys.platform == "darwin" else ".so"
    names = ("libtorch_cpu", "libc10", "libtorch_python")
    return tuple(ctypes.PyDLL(str(folder / (name + suffix))) for name in names)


@functools.cache
def symbol_address(name: str) -> int | None:
    """The address of a function of torch, Python or the C library; None when it isn't exported."""
    real = _MANGLED.get(name, name)
    for library in (*_libraries(), ctypes.pythonapi, ctypes.CDLL(None)):
        try:
            return ctypes.cast(getattr(library, real), ctypes.c_void_p).value
        except AttributeError:
            continue
    return None


def c_function(
    name: str, restype: type[_Simple] | None, *argtypes: type[_Simple]
) -> Callable[..., Any]:
    """A ctypes function over `symbol_address(name)` that keeps the interpreter lock held."""
    address = symbol_address(name)
    if address is None:
        raise AttributeError(f"{name} is not exported by the installed torch or Python")
    return ctypes.PYFUNCTYPE(restype, *argtypes)(address)


def dtype_code(dtype: torch.dtype) -> int:
    """The integer by which the C shims name `dtype`; ValueError for one that they don't know."""
    if not DTYPE_CODES:
        for name in _DTYPE_NAMES:
            if hasattr(torch, name) and symbol_address(f"aoti_torch_dtype_{name}") is not None:
                code = c_function(f"aoti_torch_dtype_{name}", ctypes.c_int32)()
                DTYPE_CODES[getattr(torch, name)] = code
    try:
        return DTYPE_CODES[dtype]
    except KeyError:
        raise ValueError(f"torch's C interface has no code for {dtype}") from None


def tensor_handle(tensor: torch.Tensor) -> int:
    """The AtenTensorHandle of a live tensor object, borrowed: valid while `tensor` lives."""
    return id(tensor) + TENSOR_FIELD_OFFSET


def tensor_from_handle(handle: int) -> torch.Tensor:
    """A Python tensor for the tensor behind `handle`, which stays owned by the caller."""
    return c_function("irc_wrap_tensor", ctypes.py_object, ctypes.c_void_p)(handle)


@functools.cache
def undefined_tensor() -> ctypes.Array[ctypes.c_uint64]:
    """The memory of a tensor that is none, as C++ writes one: its address is a handle of it. Such a
    handle stands for nothing where a function's tensor isn't optional. RuntimeError without one."""
    handle, defined = ctypes.c_void_p(), ctypes.c_bool(True)
    new = c_function("aoti_torch_new_uninitialized_tensor", ctypes.c_int32, ctypes.c_void_p)
    ask = c_function("aoti_torch_is_defined", ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
    if new(ctypes.addressof(handle)) or handle.value is None:
        raise RuntimeError("torch makes no tensor that is none")
    words = (ctypes.c_uint64 * 1)(read_word(handle.value))
    delete = c_function("aoti_torch_delete_tensor_object", ctypes.c_int32, ctypes.c_void_p)
    delete(handle)
    if ask(ctypes.addressof(words), ctypes.addressof(defined)) or defined.value:
        raise RuntimeError("a tensor that is none isn't one pointer, which all of them share")
    return words


@functools.cache
def abi_version() -> int:
    """torch's version as its C interface counts it; part of every dispatcher call."""
    return c_function("aoti_torch_abi_version", ctypes.c_uint64)()


def last_error_text() -> str:
    """Text of this thread's last failed C shim call, or a plain sentence before torch 2.13.

    An operator that runs in Python (under a dispatch mode) leaves its own error pending, which the
    interpreter tells with the next call as the cause of a SystemError: that one is raised.
    """
    try:
        known = symbol_address("torch_exception_get_what_without_backtrace")
    except SystemError as error:
        if error.__cause__ is None:
            raise
        raise error.__cause__ from None
    if known is None:
        return "an ATen call failed (torch before 2.13 doesn't tell why)"
    what = c_function("torch_exception_get_what_without_backtrace", ctypes.c_char_p)()
    return (what or b"an ATen call failed").decode(errors="replace")


def _key_word(tensor: torch.Tensor) -> int:
    return torch._C._dispatch_keys(tensor).raw_repr()


def _probes() -> list[torch.Tensor]:
    dense = torch.ones(2, 3)
    half = torch.ones(4, dtype=torch.complex64)
    return [
        dense,
        torch.nn.Parameter(torch.ones(3)),
        dense[:, 1:],
        half.conj(),
        torch._neg_view(dense),
        dense.to_sparse(),
        torch.empty(2, device="meta"),
        torch._efficientzerotensor(2),
        torch.ones(0, dtype=torch.int64),
    ]


def read_word(address: int) -> int:
    """The 64-bit word at an address of this process."""
    return ctypes.c_uint64.from_address(address).value


def _find_key_offset(probes: Iterable[torch.Tensor]) -> int | None:
    candidates = set(range(0, _IMPL_SCAN_BYTES, 8))
    for tensor in probes:
        impl = read_word(tensor_handle(tensor))
        word = _key_word(tensor)
        candidates = {c for c in candidates if read_word(impl + c) == word}
    return candidates.pop() if len(candidates) == 1 else None


@functools.cache
def key_offset() -> int | None:
    """Offset of the dispatch key word inside a TensorImpl; None when the probes don't agree."""
    return _find_key_offset(_probes())


@functools.cache
def dense_cpu_keys() -> tuple[int, int]:
    """(required, allowed) bits of the key word of a plain dense CPU tensor."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes():  # a compile runs under fake tensors
        with torch.inference_mode(False):
            plain = _key_word(torch.ones(1))
        with torch.inference_mode():
            required = _key_word(torch.ones(1))
    required &= ~(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU).raw_repr() & ~0xFFFF)
    return required, plain


def _key_code(key: torch._C.DispatchKey) -> int:
    return int(key)  # type: ignore[call-overload]  # the stub has no __int__


def excluded_keys() -> tuple[int, int]:
    """Codes of the two dispatch keys that a program runs below: autograd and CPU autocast."""
    key = torch._C.DispatchKey
    return _key_code(key.AutogradFunctionality), _key_code(key.AutocastCPU)


def _test_handles(probes: list[torch.Tensor]) -> str | None:
    get_dim = c_function("aoti_torch_get_dim", ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
    get_sizes = c_function("aoti_torch_get_sizes", ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
    get_dtype = c_function("aoti_torch_get_dtype", ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
    official = torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors
    pointer = c_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    delete = c_function("aoti_torch_delete_tensor_object", ctypes.c_int32, ctypes.c_void_p)
    for tensor, capsule in zip(probes, official(probes), strict=True):
        allocated = pointer(capsule, None)
        same = read_word(allocated) == read_word(tensor_handle(tensor))
        delete(allocated)
        if not same:
            return "the tensor isn't at offset 16 of its Python object"
    for tensor in (probes[0], probes[2]):
        dim, dtype, sizes = ctypes.c_int64(), ctypes.c_int32(), ctypes.c_void_p()
        handle = tensor_handle(tensor)
        if get_dim(handle, ctypes.byref(dim)) or get_dtype(handle, ctypes.byref(dtype)):
            return "the C shims refuse the tensor at offset 16"
        if get_sizes(handle, ctypes.byref(sizes)) or not sizes.value:
            return "the C shims don't give sizes"
        read = tuple((ctypes.c_int64 * dim.value).from_address(sizes.value))
        if read != tuple(tensor.shape) or dtype.value != dtype_code(tensor.dtype):
            return "the C shims read a tensor differently from torch"
        if tensor_from_handle(handle) is not tensor:
            return "a handle doesn't wrap back to its Python tensor"
    return None


def _test_keys(probes: list[torch.Tensor]) -> str | None:
    if key_offset() is None:
        return "the dispatch keys aren't at one place in a tensor"
    required, allowed = dense_cpu_keys()
    plain = [(_key_word(t) & required) == required and not _key_word(t) & ~allowed for t in probes]
    if plain != [True, True, True, False, False, False, False, False, True]:
        return "dispatch keys don't tell plain CPU tensors from others"
    return None


def _test_exclusion() -> str | None:
    is_excluded = c_function("irc_tls_is_excluded", ctypes.c_bool, ctypes.c_uint16)
    set_excluded = c_function("irc_tls_set_excluded", None, ctypes.c_uint16, ctypes.c_bool)
    key = torch._C.DispatchKey.AutogradFunctionality
    code = _key_code(key)
    before = is_excluded(code)
    try:
        for excluded in (True, False):
            set_excluded(code, excluded)
            seen = torch._C._dispatch_tls_is_dispatch_key_excluded(key)
            if seen is not excluded or is_excluded(code) is not excluded:
                return "exclusion of dispatch keys on this thread doesn't answer"
    finally:
        set_excluded(code, before)
    return None


_MARKER = object()


class _PointerHolder(ctypes.c_int64 * 1):  # type: ignore[misc]
    pass


def _test_python() -> str | None:
    if sys.implementation.name != "cpython" or sys.maxsize < 2**62:
        return "this is not a 64-bit CPython"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "this Python runs without an interpreter lock"
    holder = _PointerHolder(7)
    if read_word(id(holder) + 16) != ctypes.addressof(holder):
        return "a ctypes array doesn't hold its address at offset 16"
    items = [holder, None, _MARKER]
    array = read_word(id(items) + 24)
    if [read_word(array + 8 * i) for i in range(3)] != [id(x) for x in items]:
        return "a Python list doesn't hold its array at offset 24"
    pair = (holder, _MARKER)
    if [read_word(id(pair) + 24 + 8 * i) for i in range(2)] != [id(x) for x in pair]:
        return "a Python tuple doesn't hold its items at offset 24"
    sizes = [read_word(id(x) + 16) for x in (items, pair)]
    types = [read_word(id(x) + 8) for x in (items, pair)]
    if sizes != [3, 2] or types != [id(list), id(tuple)]:
        return "Python objects don't begin with count, type, size"
    return None


def self_test() -> str | None:
    """The first fact that doesn't hold in this process, or None when all of them do."""
    symbols = (*REQUIRED_SYMBOLS, *_PYTHON_SYMBOLS, *_LIBC_SYMBOLS)
    missing = [name for name in symbols if symbol_address(name) is None]
    if missing:
        return f"torch doesn't export {', '.join(missing)}"
    probes = _probes()
    return _test_python() or _test_handles(probes) or _test_keys(probes) or _test_exclusion()


@functools.cache
def _tested_reason() -> str | None:
    try:
        return self_test()
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
        return f"the self-test failed: {error}"


def unavailable_reason() -> str | None:
    """Why native host functions can't run here; None when they can."""
    if os.environ.get("IRC_FORCE_SLOW_HOST", "") not in ("", "0"):
        return "IRC_FORCE_SLOW_HOST is set"
    return _tested_reason()


def available() -> bool:
    """Whether native host functions run in this process."""
    return unavailable_reason() is None


def symbols() -> dict[str, int]:
    """Name and address of every function that host code may call, for the JIT's linker."""
    names = (*REQUIRED_SYMBOLS, *_PYTHON_SYMBOLS, *_LIBC_SYMBOLS)
    addresses = {name: symbol_address(name) for name in names}
    return {name: address for name, address in addresses.items() if address is not None}


# The table that every native function reaches through its context: what differs by process.
RUNTIME_TENSOR_TYPE, RUNTIME_PARAMETER_TYPE, RUNTIME_NONE = 0, 1, 2
RUNTIME_KEY_OFFSET, RUNTIME_KEYS_REQUIRED, RUNTIME_KEYS_FORBIDDEN = 3, 4, 5
RUNTIME_FORKED, RUNTIME_TRUE, RUNTIME_FALSE, RUNTIME_LIST_TYPE = 6, 7, 8, 9
RUNTIME_TUPLE_TYPE, RUNTIME_SYSTEM_ERROR, RUNTIME_INT_TYPE, RUNTIME_FLOAT_TYPE = 10, 11, 12, 13
RUNTIME_AUTOGRAD_KEY, RUNTIME_AUTOCAST_KEY, RUNTIME_LENGTH = 14, 15, 16


@once
def runtime_table() -> ctypes.Array[ctypes.c_uint64]:
    """The process-wide table of 64-bit words; a forked child marks itself in `RUNTIME_FORKED`."""
    required, allowed = dense_cpu_keys()
    table = (ctypes.c_uint64 * RUNTIME_LENGTH)()
    table[RUNTIME_TENSOR_TYPE] = id(torch.Tensor)
    table[RUNTIME_PARAMETER_TYPE] = id(torch.nn.Parameter)
    table[RUNTIME_NONE] = id(None)
    table[RUNTIME_KEY_OFFSET] = key_offset() or 0
    table[RUNTIME_KEYS_REQUIRED] = required
    table[RUNTIME_KEYS_FORBIDDEN] = ~allowed & (2**64 - 1)
    table[RUNTIME_TRUE], table[RUNTIME_FALSE] = id(True), id(False)
    table[RUNTIME_LIST_TYPE], table[RUNTIME_TUPLE_TYPE] = id(list), id(tuple)
    table[RUNTIME_SYSTEM_ERROR] = id(SystemError)
    table[RUNTIME_INT_TYPE], table[RUNTIME_FLOAT_TYPE] = id(int), id(float)
    table[RUNTIME_AUTOGRAD_KEY], table[RUNTIME_AUTOCAST_KEY] = excluded_keys()
    os.register_at_fork(after_in_child=lambda: table.__setitem__(RUNTIME_FORKED, 1))
    return table


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_METH_FASTCALL, _METH_O = 0x0080, 0x0008


def make_builtin(name: str, address: int, owner: object, *, takes_list: bool) -> object:
    """A Python builtin over native code. `owner` becomes its `self` and keeps the code alive.

    `takes_list` makes a function of one argument (METH_O), else one of many (METH_FASTCALL).
    `owner` must accept attributes: the method record is kept on it, in `method_records`.
    """
    flags = _METH_O if takes_list else _METH_FASTCALL
    record = _MethodDef(name.encode(), address, flags, None)
    owner.__dict__.setdefault("method_records", []).append(record)
    new = c_function(
        "PyCFunction_NewEx", ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    )
    return new(ctypes.addressof(record), owner, None)
