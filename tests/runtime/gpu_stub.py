"""A stand-in for GPUs: native programs of GPUs run here, and what they ask of CUDA is recorded.

    stub = Stub()
    executable = stub.build(module)        # a host program for sm_90, traced on the CPU
    executable(x); stub.launches           # which kernels, with which words, on which stream

The program's code is the one that a GPU would get. Device memory is the CPU's, "cubins" are names,
and a launch runs the kernel in irc's interpreter, so that values can be compared as well.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch

from irc.boundary import cuda, cuda_memory, torch_abi
from irc.codegen.host.support_gpu import CHECK_THREADS
from irc.codegen.llvm.jit import compile_module, load_object
from irc.codegen.triton import machine_code
from irc.dialects import kernel
from irc.interp.core import Frame
from irc.interp.kernel import OutOfBounds
from irc.interp.kernel import launch as interpret
from irc.ir.symbols import Dim, evaluate
from irc.program import host_program as P
from irc.program.gpu_kernels import GpuKernels, MachineCode, key_of
from irc.program.read_host import read_host_program
from irc.runtime.build_program import make_executable, program_constants, used_kernels
from irc.runtime.executable import Executable
from irc.runtime.gpu_compile import compile_for_gpu
from irc.runtime.gpu_program import load_for_gpu
from irc.target import Target
from irc.target.cpu import TargetFeatures
from tests.runtime.gpu_stub_blas import StubBlas
from tests.runtime.gpu_stub_convolutions import StubConvolutions
from tests.runtime.gpu_stub_draws import StubDraws

_CONTEXT = 0xC0000
#: A failed program deletes its guard with Python's error set, which Python can't run with.
_ASIDE = """
@callback = global ptr null
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
define i32 @delete(ptr %guard) {
  %a = alloca ptr
  %b = alloca ptr
  %c = alloca ptr
  call void @PyErr_Fetch(ptr %a, ptr %b, ptr %c)
  %function = load ptr, ptr @callback
  %code = call i32 %function(ptr %guard)
  %x = load ptr, ptr %a
  %y = load ptr, ptr %b
  %z = load ptr, ptr %c
  call void @PyErr_Restore(ptr %x, ptr %y, ptr %z)
  ret i32 %code
}
"""
#: The function of the kernel that looks at checks (`irc.runtime.check_kernel`).
CHECK_KERNEL = 0xC4EC
#: `at::detail::empty_strided_cpu(sizes, strides, dtype, pinned)`: the byte of a type is 0 here.
EMPTY_CPU = "_ZN2at6detail17empty_strided_cpuEN3c108ArrayRefIlEES3_NS1_10ScalarTypeEb"
#: Shared memory of a kernel, so that it is seen to arrive.
SHARED = 640


@attrs.frozen
class Launch:
    """One call of `cuLaunchKernel`: `words` are the arguments, `zeros` what stands behind them."""

    kernel: str
    key: int
    context: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    words: tuple[int, ...]
    zeros: tuple[int, ...]
    early: bool = False


@attrs.define(eq=False, slots=False)
class Stub:
    """GPUs that record. `streams`: torch's current one by device; `context`: of this thread;
    `torchs`: torch's current device where it is another one than the context's; `code`: the
    driver's answer to the next launches; `guards`: what torch's guards were asked."""

    runs: bool = True
    streams: dict[int, int] = attrs.field(factory=dict)
    context: int = _CONTEXT
    torchs: int | None = None
    code: int = 0
    launches: list[Launch] = attrs.field(factory=list)
    compiled: list[tuple[str, int]] = attrs.field(factory=list)
    loaded: list[tuple[str, int]] = attrs.field(factory=list)
    guards: list[tuple[str, int]] = attrs.field(factory=list)
    refuses: str = ""
    #: What runs a graph by its handle; graphs with their streams; copies; a capture's status.
    replay: Callable[[int], None] = lambda graph: None
    graphs: list[tuple[int, int]] = attrs.field(factory=list)
    copies: list[tuple[int, int, int]] = attrs.field(factory=list)
    capturing: int = 0
    #: Bytes of truth values that the kernel of checks looked at.
    checked: list[int] = attrs.field(factory=list)
    #: Copies to the CPU that are still under way: where to, and what; None: they come at once.
    arrives: list[tuple[int, bytes]] | None = None
    blas: StubBlas = attrs.field(factory=StubBlas)
    convolutions: StubConvolutions = attrs.field(factory=StubConvolutions)
    draws: StubDraws = attrs.field(factory=StubDraws)
    #: What makes tensors: the CPU's function, which takes the same arguments.
    memory: cuda_memory.MemoryFunctions = attrs.field(factory=cuda_memory.MemoryFunctions)
    #: Events that were recorded and waited for, and how many launches there were before.
    events: list[tuple[str, int, int]] = attrs.field(factory=list)
    gpu: cuda.Gpu = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._functions: list[tuple[str, int]] = []
        self._facts: dict[str, tuple[int, kernel.KernelFuncOp | None]] = {}
        self._steps: list[P.Launch] = []
        self._program: P.HostProgram | None = None
        self._callbacks = self._made()
        addresses = {w: ctypes.cast(f, ctypes.c_void_p).value for w, f in self._callbacks.items()}
        cpu = torch_abi.c_function("aoti_torch_device_type_cpu", ctypes.c_int32)()
        aside = load_object(
            compile_module(_ASIDE, TargetFeatures.host()), exports=("delete", "callback"),
            symbols={n: torch_abi.symbol_address(n) for n in ("PyErr_Fetch", "PyErr_Restore")},
        )  # fmt: skip
        _store(aside.address("callback"), addresses[cuda.DELETE_GUARD])
        addresses[cuda.DELETE_GUARD] = aside.address("delete")
        self._aside = aside
        table = cuda.table_of(torch_abi.dense_cpu_keys(), cpu, addresses)
        table[cuda.INDEX_MASK] = 2**64 - 1  # the CPU's index is -1
        which = {
            "product": self.blas.words, "biased": self.blas.biased, "memory": lambda: self.memory,
            "convolution": self.convolutions.words, "draw": self.draws.words,
        }  # fmt: skip
        library = lambda name, *rest: which[name](*rest)  # noqa: E731
        self.memory[cuda_memory.EMPTY] = torch_abi.symbol_address(EMPTY_CPU) or 0
        self.gpu = cuda.Gpu(table, self, _cpu_address, "stub", library)

    # What `cuda.DriverLibrary` does

    def context_of(self, device: int) -> int:
        return _CONTEXT + device

    def make_current(self, context: int) -> None:
        self.context = context

    def load(self, context: int, code: bytes, name: str, shared: int) -> int:
        assert code == b"cubin of " + name.encode() and shared == SHARED
        if self.refuses == "load":
            raise cuda.DriverError("cuModuleLoadData: no memory")
        self.loaded.append((name, context - _CONTEXT))
        self._functions.append((name, context))
        return len(self._functions)

    def event(self, context: int) -> int:
        return 0xE0 + context - _CONTEXT

    def error_text(self, code: int) -> str:
        return f"error {code}"

    # The functions of the table

    def _made(self) -> dict[int, Any]:
        i32, word, pointer = ctypes.c_int32, ctypes.c_uint32, ctypes.c_void_p
        forms: dict[int, tuple[Callable[..., int], Sequence[Any]]] = {
            cuda.LAUNCH: (self._launch, [pointer, *[word] * 7, pointer, pointer, pointer]),
            cuda.LAUNCH_EARLY: (self._launch_early, [pointer] * 4),
            cuda.GET_CONTEXT: (lambda out: _store(out, self.context), [pointer]),
            cuda.SET_CONTEXT: (self._set_context, [pointer]),
            cuda.GET_DEVICE: (self._get_device, [pointer]),
            cuda.GET_STREAM: (self._stream, [i32, pointer]),
            cuda.CREATE_GUARD: (self._create_guard, [i32, pointer]),
            cuda.DELETE_GUARD: (self._delete_guard, [pointer]),
            cuda.SET_GUARD: (self._set_guard, [pointer, i32]),
            cuda.GRAPH_LAUNCH: (self._launch_graph, [pointer, pointer]),
            cuda.IS_CAPTURING: (lambda stream, out: _store32(out, self.capturing), [pointer] * 2),
            cuda.COPY_OUT: (self._copy_out, [pointer, pointer, ctypes.c_size_t, pointer]),
            cuda.EVENT_RECORD: (self._record, [pointer, pointer]),
            cuda.EVENT_WAIT: (self._wait, [pointer]),
            cuda.COPY_BYTES: (self._copy, [pointer, pointer, ctypes.c_size_t, pointer]),
        }
        return {word: ctypes.CFUNCTYPE(i32, *kinds)(f) for word, (f, kinds) in forms.items()}

    def _set_context(self, context: int) -> int:
        self.context = context or 0
        return 0

    def _get_device(self, out: int) -> int:
        number = self._device() if self.torchs is None else self.torchs
        ctypes.c_int8.from_address(out).value = number
        return 0

    def _launch_graph(self, graph: int, stream: int) -> int:
        self.graphs.append((graph, stream or 0))
        if self.code == 0:
            self.replay(graph)
        return self.code

    def _copy(self, target: int, source: int, size: int, stream: int) -> int:
        self.copies.append((target, source, size))
        ctypes.memmove(target, source, size)
        return 0

    def _copy_out(self, target: int, source: int, size: int, stream: int) -> int:
        if self.arrives is None:
            ctypes.memmove(target, source, size)
        else:
            self.arrives.append((target, ctypes.string_at(source, size)))
        return 0

    def _record(self, event: int, stream: int) -> int:
        self.events.append(("record", event, len(self.launches)))
        return self.code

    def _wait(self, event: int) -> int:
        self.events.append(("wait", event, len(self.launches)))
        for target, content in self.arrives or ():
            ctypes.memmove(target, content, len(content))
        return self.code

    def _device(self) -> int:
        return self.context - _CONTEXT if self.context else -1

    def _stream(self, index: int, out: int) -> int:
        return _store(out, self.streams.get(self._device(), 0))

    def _create_guard(self, index: int, out: int) -> int:
        self.guards.append(("create", self._device()))
        self._before = self.context
        return _store(out, 0x6A7D)

    def _set_guard(self, guard: int, index: int) -> int:
        assert guard == 0x6A7D
        self.guards.append(("set", self._device()))
        return 0

    def _delete_guard(self, guard: int) -> int:
        assert guard == 0x6A7D
        self.guards.append(("delete", self._device()))
        self.context = self._before
        return 0

    def _check(self, shape: Sequence[int], params: int) -> int:
        """As `irc.runtime.check_kernel` has a GPU do it."""
        assert tuple(shape) == (1, 1, 1, CHECK_THREADS, 1, 1)
        if self.refuses == "check":
            return 1
        places = (ctypes.c_uint64 * 4).from_address(params)
        truths, count, seen, tell = (ctypes.c_uint64.from_address(p).value for p in places)
        holds = b"\0" not in ctypes.string_at(truths, count)
        self.checked.append(count)
        if self.code == 0 and (tell or not holds):
            self._copy_out(seen, ctypes.addressof(ctypes.c_uint8(holds)), 1, 0)
        return self.code

    def _launch(self, function: int, *rest: Any) -> int:
        *shape, shared, stream, params, extra = rest
        if function == CHECK_KERNEL:
            return self._check(shape, params)
        name, key_text = self._functions[function - 1][0].rsplit(":", 1)
        count, callee = self._facts[name]
        places = (ctypes.c_uint64 * (count + 2)).from_address(params)
        words = [ctypes.c_int64.from_address(place).value for place in places]
        assert extra is None
        if not self.context:
            return 201  # CUDA_ERROR_INVALID_CONTEXT
        found = Launch(
            name, int(key_text), self.context, tuple(shape[:3]), tuple(shape[3:]), shared,
            stream or 0, tuple(words[:count]), tuple(words[count:]),
        )  # fmt: skip
        self.launches.append(found)
        if self.code == 0 and self.runs and callee is not None:
            with contextlib.suppress(OutOfBounds):  # a GPU doesn't say so either
                self._run(callee, found)
        return self.code

    def _launch_early(self, config: int, function: int, params: int, extra: Any) -> int:
        """`cuLaunchKernelEx` with the attribute that lets program instances begin early."""
        numbers = (ctypes.c_uint32 * 14).from_address(config)
        stream, attributes = (ctypes.c_uint64 * 7).from_address(config)[4:6]
        assert numbers[12] == 1
        attribute = (ctypes.c_uint32 * 4).from_address(attributes)
        assert (attribute[0], attribute[2]) == (cuda.EARLY_ATTRIBUTE, 1)
        code = self._launch(function, *numbers[:7], stream, params, extra)
        if self.launches:
            self.launches[-1] = attrs.evolve(self.launches[-1], early=True)
        return code

    def _run(self, callee: kernel.KernelFuncOp, found: Launch) -> None:
        """Run a launch in irc's interpreter, on the memory that its words say."""
        names = [a.value for a in callee.symbols or ()]
        pointers = len(found.words) - len(names)
        symbols = dict(zip(names, found.words[pointers:], strict=True))
        step = next(s for s in self._program.steps
                    if isinstance(s, P.Launch) and s.kernel == found.kernel)  # fmt: skip
        layouts = [self._program.layouts[r] for r in step.tensors]
        tensors = [at(word, layout, {**self._symbols, **symbols})
                   for word, layout in zip(found.words, layouts, strict=False)]  # fmt: skip
        interpret(Frame(None, symbols=symbols), callee, tensors)

    # Programs

    def compile_code(self, kernels: GpuKernels, name: str, key: int) -> MachineCode:
        """In place of Triton: a "cubin" that says for what it is."""
        if self.refuses == "compile":
            raise RuntimeError(f"no code for {name}")
        self.compiled.append((name, key))
        symbol = f"{name}:{key}"
        return MachineCode(symbol, b"cubin of " + symbol.encode(), 96, SHARED,
                           "clusters" if self.refuses == "clusters" else "")  # fmt: skip

    def build(self, module: Any, monkeypatch: Any, **options: Any) -> Executable:
        """The executable of a module that was lowered for sm_90, over this stub."""
        program = read_host_program(module)
        return self.build_program(
            attrs.evolve(moved(program), **options), used_kernels(module, program, "gpu"),
            monkeypatch, program_constants(program, module.resources),
        )  # fmt: skip

    def build_program(
        self, program: P.HostProgram, functions: Sequence[kernel.KernelFuncOp], monkeypatch: Any,
        constants: Any = (),
    ) -> Executable:
        """The same from a host program and its kernels."""
        monkeypatch.setattr(machine_code, "compile_code", self.compile_code)
        self._program = program
        self._facts.update(
            {op.sym_name: (len(op.block.arguments), op) for op in functions}
        )
        code = compile_for_gpu(
            program, functions, Target.named("sm_90"), TargetFeatures.host(), self.gpu, hints={},
            cached=False, opt_level=1,
        )  # fmt: skip
        table, native, objects = load_for_gpu(code, self.gpu, cached=False)
        return make_executable(program, table, dict(constants), native, {}, named=objects)

    def call(self, executable: Executable, *given: Any, **symbols: int) -> tuple[Any, ...]:
        """Call, with the values of symbols that kernels don't take."""
        self._symbols = symbols
        self.launches.clear()
        return executable(*given)


def _store(out: int, value: int) -> int:
    ctypes.c_uint64.from_address(out).value = value
    return 0


def _store32(out: int, value: int) -> int:
    ctypes.c_uint32.from_address(out).value = value
    return 0


def _cpu_address(name: str) -> int | None:
    return torch_abi.symbol_address(name.replace("aoti_torch_cuda_", "aoti_torch_cpu_"))


def moved(program: P.HostProgram, device: str = "cuda:0") -> P.HostProgram:
    """The program with its arrays on a GPU."""

    def change(value: Any) -> Any:
        if isinstance(value, dict) and "Layout" in value:
            return {"Layout": [*value["Layout"][:-1], device]}
        if isinstance(value, dict):
            return {name: change(each) for name, each in value.items()}
        return [change(each) for each in value] if isinstance(value, list) else value

    return P.from_json(change(P.to_json(program)))


def at(address: int, layout: P.Layout, symbols: dict[str, int]) -> torch.Tensor:
    """The memory at an address as a tensor."""

    def number(dim: Dim) -> int:
        return dim if isinstance(dim, int) else evaluate(dim, symbols)

    sizes, strides = [[number(d) for d in dims] for dims in (layout.sizes, layout.strides)]
    dtype = getattr(torch, layout.dtype)
    if 0 in sizes:
        return torch.empty_strided(sizes, strides, dtype=dtype)
    span = 1 + sum((n - 1) * k for n, k in zip(sizes, strides, strict=True))
    memory = (ctypes.c_byte * (span * layout.element_bytes)).from_address(address)
    return torch.frombuffer(memory, dtype=dtype).as_strided(sizes, strides)


def check_keys(launches: Sequence[Launch], pointers: int) -> None:
    """Every launch ran the variant for its words."""
    for each in launches:
        assert each.key == key_of(each.words[:pointers], each.words[pointers:]), each
        assert each.zeros == (0, 0)
