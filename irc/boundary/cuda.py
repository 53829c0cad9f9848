"""Facts about CUDA's driver and torch's CUDA library that native programs of a GPU rely on.

A `Gpu` says how GPUs are reached from this process: `table` has what native code reads (addresses
of functions, torch's code of the device type, the dispatch keys of a plain tensor, a context for
each device), and methods load modules. `installed()` is the one of this process, whose facts
`self_test` has compared with what torch's Python interface says; None where one doesn't hold, and
`unavailable_reason()` names it. A test may bring another `Gpu`, whose functions record.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import torch

from irc.boundary import torch_abi
from irc.boundary.once import once

#: Words of the table. `INDEX_MASK` is or-ed to a device's number to give torch's index of it.
DEVICE_TYPE, INDEX_MASK, KEYS_REQUIRED, KEYS_FORBIDDEN = 0, 1, 2, 3
LAUNCH, GET_CONTEXT, SET_CONTEXT, GET_STREAM = 4, 5, 6, 7
CREATE_GUARD, DELETE_GUARD, SET_GUARD, AUTOCAST_KEY = 8, 9, 10, 11
#: Not 0 while an error of a check that nobody waited for may be known.
LATE = 12
GRAPH_LAUNCH, IS_CAPTURING, COPY_BYTES = 13, 14, 15
CONTEXTS, DEVICES = 16, 64
#: For each device where the ring of its late checks is (0: there is none); a copy to the CPU.
RINGS, COPY_OUT = CONTEXTS + DEVICES, CONTEXTS + 2 * DEVICES
EVENT_RECORD, EVENT_WAIT = COPY_OUT + 1, COPY_OUT + 2
LAUNCH_EARLY = COPY_OUT + 3
#: For each device where the flags of its checks are (`irc.runtime.late_flags`; 0: it has none).
FLAGS = COPY_OUT + 4
#: What tells the GPU that is torch's current one, without an exception (0: nothing does). It may be
#: another one than the driver's: torch puts off making a GPU current that nothing was done on yet.
GET_DEVICE = FLAGS + DEVICES
TABLE_WORDS = GET_DEVICE + 1
#: CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
EARLY_ATTRIBUTE = 6

#: The functions of the table: where each is, and its name there.
_TORCH_FUNCTIONS = {
    GET_STREAM: "aoti_torch_get_current_cuda_stream",
    CREATE_GUARD: "aoti_torch_create_cuda_guard",
    DELETE_GUARD: "aoti_torch_delete_cuda_guard",
    SET_GUARD: "aoti_torch_cuda_guard_set_index",
}
_GET_DEVICE = "_ZN3c104cuda9GetDeviceEPa"
_DRIVER_FUNCTIONS = {
    LAUNCH: "cuLaunchKernel",
    LAUNCH_EARLY: "cuLaunchKernelEx",
    GET_CONTEXT: "cuCtxGetCurrent",
    SET_CONTEXT: "cuCtxSetCurrent",
    GRAPH_LAUNCH: "cuGraphLaunch",
    IS_CAPTURING: "cuStreamIsCapturing",
    COPY_BYTES: "cuMemcpyDtoDAsync_v2",
    COPY_OUT: "cuMemcpyDtoHAsync_v2",
    EVENT_RECORD: "cuEventRecord",
    EVENT_WAIT: "cuEventSynchronize",
}
_SHARED_LIMIT = 48 << 10
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_NO_TIMING = 2  # CU_EVENT_DISABLE_TIMING
_PREFER_SHARED = 2  # CU_FUNC_CACHE_PREFER_SHARED
_CARVEOUT, _ALL_SHARED = 9, 100  # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, in percent


class Table(ctypes.c_uint64 * TABLE_WORDS):  # type: ignore[misc]
    """The words that native code reads; a ctypes array holds their address at offset 16."""


class DriverError(RuntimeError):
    """A function of CUDA's driver failed."""


@attrs.define(eq=False)
class Gpu:
    """How GPUs are reached: see the module. `identity` names what code was made against."""

    table: Table
    driver: Any
    #: Where the C functions of torch's CUDA library are, None for one that it lacks.
    symbol_address: Callable[[str], int | None]
    identity: str
    #: A test's: what gives the words of libraries' functions (`irc.runtime.gpu_libraries`).
    library: Callable[..., Any] | None = None

    def prepare(self, device: int) -> None:
        """Have a device's context in the table. Raises DriverError, or torch's error."""
        if not 0 <= device < DEVICES:
            raise DriverError(f"there is no GPU number {device}")
        if not self.table[CONTEXTS + device]:
            self.table[CONTEXTS + device] = self.driver.context_of(device)

    def load(self, device: int, code: bytes, name: str, shared: int) -> int:
        """The address (a CUfunction) of a kernel in a cubin, loaded on a device, where it may use
        `shared` bytes. It stays loaded as long as the process."""
        self.prepare(device)
        function: int = self.driver.load(self.table[CONTEXTS + device], code, name, shared)
        return function

    def event(self, device: int) -> int:
        """A new event (a CUevent) of a device, which stays as long as the process."""
        self.prepare(device)
        event: int = self.driver.event(self.table[CONTEXTS + device])
        return event

    def make_current(self, device: int) -> None:
        """Make a device's context this thread's current one."""
        self.prepare(device)
        self.driver.make_current(self.table[CONTEXTS + device])

    def error_text(self, code: int) -> str:
        """What the driver says of an error's number."""
        text: str = self.driver.error_text(code)
        return text


class DriverLibrary:
    """CUDA's driver, through ctypes with the interpreter lock held."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def address(self, name: str) -> int:
        """Where a function is; DriverError when the driver lacks it."""
        try:
            address = ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value
        except AttributeError as error:
            raise DriverError(f"CUDA's driver has no {name}") from error
        assert address is not None
        return address

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        if code:
            raise DriverError(f"{name}: {self.error_text(code)}")

    def error_text(self, code: int) -> str:
        """The name and the words of an error's number."""
        words = []
        for name in ("cuGetErrorName", "cuGetErrorString"):
            text = ctypes.c_char_p()
            if getattr(self.library, name)(code, ctypes.byref(text)) == 0 and text.value:
                words.append(text.value.decode())
        return ": ".join(words) or f"error {code}"

    def current_context(self) -> int:
        """The context of this thread, 0 for none."""
        context = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(context))
        return context.value or 0

    def make_current(self, context: int) -> None:
        """Make a context this thread's current one."""
        self._call("cuCtxSetCurrent", ctypes.c_void_p(context))

    def context_of(self, device: int) -> int:
        """The primary context of a device, which torch uses, too."""
        torch.cuda.init()
        number, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(number), device)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        assert context.value is not None
        return context.value

    def load(self, context: int, code: bytes, name: str, shared: int) -> int:
        """As `Gpu.load`, in a context."""
        with self._within(context):
            return self._load(code, name, shared)

    def event(self, context: int) -> int:
        """As `Gpu.event`, in a context."""
        event = ctypes.c_void_p()
        with self._within(context):
            self._call("cuEventCreate", ctypes.byref(event), _NO_TIMING)
        assert event.value is not None
        return event.value

    @contextlib.contextmanager
    def _within(self, context: int) -> Iterator[None]:
        """With a context as this thread's current one."""
        before = self.current_context()
        if before != context:
            self.make_current(context)
        try:
            yield
        finally:
            if before != context:
                self.make_current(before)

    def _load(self, code: bytes, name: str, shared: int) -> int:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), code)
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared > _SHARED_LIMIT:
            self._call("cuFuncSetCacheConfig", function, _PREFER_SHARED)
            self._call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, shared)
            # Else a processor may get memory for one program instance, and has no other.
            self._call("cuFuncSetAttribute", function, _CARVEOUT, _ALL_SHARED)
        assert function.value is not None
        return function.value


@functools.cache
def _torch_library() -> Any:
    return ctypes.PyDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cuda.so"))


@functools.cache
def _torch_address(name: str) -> int | None:
    """Where a C function of torch is, that of CUDA among them."""
    address = torch_abi.symbol_address(name)
    if address is not None:
        return address
    try:
        return ctypes.cast(getattr(_torch_library(), name), ctypes.c_void_p).value
    except (AttributeError, OSError):
        return None


def dense_keys() -> tuple[int, int]:
    """(required, allowed) bits of the key word of a plain dense tensor of a GPU."""
    with torch.inference_mode(False):
        plain = torch._C._dispatch_keys(torch.empty(1, device="cuda")).raw_repr()
    with torch.inference_mode():
        required = torch._C._dispatch_keys(torch.empty(1, device="cuda")).raw_repr()
    autocast = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA).raw_repr()
    return required & ~(autocast & ~0xFFFF), plain


def autocast_key() -> int:
    """The code of the dispatch key of a GPU's autocast."""
    return int(torch._C.DispatchKey.AutocastCUDA)  # type: ignore[call-overload]


def table_of(keys: tuple[int, int], device_type: int, functions: Mapping[int, int]) -> Table:
    """A table with these (required, allowed) keys and these functions by their words."""
    table = Table()
    table[DEVICE_TYPE], table[AUTOCAST_KEY] = device_type, autocast_key()
    table[KEYS_REQUIRED], table[KEYS_FORBIDDEN] = keys[0], ~keys[1] & (2**64 - 1)
    for word, address in functions.items():
        table[word] = address
    return table


def _opened() -> Gpu:
    """The GPUs of this process, untested. Raises OSError and DriverError for what is missing."""
    driver = DriverLibrary(ctypes.PyDLL("libcuda.so.1"))
    functions = {word: driver.address(name) for word, name in _DRIVER_FUNCTIONS.items()}
    for word, name in _TORCH_FUNCTIONS.items():
        address = _torch_address(name)
        if address is None:
            raise DriverError(f"torch doesn't export {name}")
        functions[word] = address
    functions[GET_DEVICE] = _torch_address(_GET_DEVICE) or 0
    device_type = torch_abi.c_function("aoti_torch_device_type_cuda", ctypes.c_int32)()
    table = table_of(dense_keys(), device_type, functions)
    return Gpu(table, driver, _torch_address, f"cuda {torch.version.cuda}")


def self_test(gpu: Gpu) -> str | None:
    """The first fact that doesn't hold, or None."""
    holder = gpu.table
    if ctypes.c_uint64.from_address(id(holder) + 16).value != ctypes.addressof(holder):
        return "a ctypes array doesn't hold its address at offset 16"
    device = torch.cuda.current_device()
    gpu.prepare(device)
    torch.zeros(1).cuda()
    if gpu.driver.current_context() != gpu.table[CONTEXTS + device]:
        return "torch doesn't use the primary context of a device"
    if gpu.table[GET_DEVICE]:
        number = ctypes.c_int8(-1)
        ask = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(gpu.table[GET_DEVICE])
        if ask(ctypes.addressof(number)) or number.value != device:
            return "torch's current device is told differently by its C++ function"
    return _test_stream(gpu, device) or _test_tensors(gpu, device)


def _test_stream(gpu: Gpu, device: int) -> str | None:
    prototype = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)
    ask = prototype(gpu.table[GET_STREAM])
    side = torch.cuda.Stream()
    for stream in (torch.cuda.current_stream(), side):
        with torch.cuda.stream(stream):
            current = ctypes.c_void_p()
            if ask(device, ctypes.addressof(current)) or (current.value or 0) != stream.cuda_stream:
                return "torch's current stream is told differently by its C function"
    return None


def _test_tensors(gpu: Gpu, device: int) -> str | None:
    offset = torch_abi.key_offset()
    assert offset is not None
    required, forbidden = gpu.table[KEYS_REQUIRED], gpu.table[KEYS_FORBIDDEN]
    plain = torch.ones(2, 3)  # copied there: no operator's kernel need be loaded
    dense, half = plain.cuda(), torch.ones(4, dtype=torch.complex64).cuda()
    probes = [dense, torch.nn.Parameter(dense[0]), dense[:, 1:], half.conj(),
              torch._neg_view(dense), plain.to_sparse().cuda(), plain]  # fmt: skip
    answers = []
    for tensor in probes:
        impl = ctypes.c_uint64.from_address(torch_abi.tensor_handle(tensor)).value
        word = ctypes.c_uint64.from_address(impl + offset).value
        if word != torch._C._dispatch_keys(tensor).raw_repr():
            return "the dispatch keys aren't where they are in a tensor of the CPU"
        answers.append(word & required == required and not word & forbidden)
    if answers != [True, True, True, False, False, False, False]:
        return "dispatch keys don't tell plain tensors of a GPU from others"
    index = ctypes.c_int32(-7)
    ask = torch_abi.c_function(
        "aoti_torch_get_device_index", ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p
    )
    if ask(torch_abi.tensor_handle(dense), ctypes.addressof(index)) or index.value != device:
        return "the index of a tensor's device is told differently by torch's C function"
    return None


@once
def _tested() -> tuple[Gpu | None, str | None]:
    from torch.utils._python_dispatch import _disable_current_modes

    try:
        with _disable_current_modes():  # a compile runs under fake tensors
            gpu = _opened()
            reason = self_test(gpu)
    except (AttributeError, AssertionError, OSError, RuntimeError, TypeError, ValueError) as error:
        return None, f"the self-test failed: {error}"
    return (gpu, None) if reason is None else (None, reason)


@functools.cache
def _is_there() -> bool:
    """Whether torch sees a GPU; asked once, since it takes microseconds."""
    return torch.cuda.is_available()


def unavailable_reason() -> str | None:
    """Why programs of a GPU have no native host function here; None when they can."""
    reason = torch_abi.unavailable_reason()
    if reason is not None:
        return reason
    if not _is_there():
        return "there is no GPU"
    return _tested()[1]


def installed() -> Gpu | None:
    """The GPUs of this process, if native programs can use them."""
    return _tested()[0] if unavailable_reason() is None else None
