"""From a lowered module to an `Executable`.

    executable = irc.build(module)            # host.func @main and its kernels
    y, = executable(x)

The kernels and the host function are two objects: kernels don't depend on torch, so they serve
the Python executor as well, and only their addresses are linked into the host function.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import torch

from irc.boundary import torch_abi
from irc.boundary.aten_paths import boxed_callable, find_operator
from irc.boundary.templates import Dynamic
from irc.codegen.host.names import ENTRY, kernel_symbol
from irc.dialects import kernel
from irc.ir.contents import content_tensor
from irc.ir.diagnostics import InvalidIR, UserError
from irc.program import host_program as P
from irc.program.folded import FoldedConstants, with_folded
from irc.runtime import metrics
from irc.runtime.arguments import ArgumentSpec
from irc.runtime.cpu_kernels import CpuKernels, KernelTable
from irc.runtime.executable import (
    Executable,
    NativeCode,
    ProgramInfo,
    PythonRunner,
    ResultSpec,
)
from irc.runtime.graphs_options import GraphOptions
from irc.target import Target
from irc.target.attribute import settle
from irc.target.cpu import TargetFeatures

if TYPE_CHECKING:
    from irc.boundary.cuda import Gpu

#: Programs of more steps get the fast code generator for the host function: it takes a sixth of
#: the time, and what its code costs more vanishes beside so many steps.
_TUNED_STEPS = 64
#: The function that a module's caller calls.
MAIN = "main"


@attrs.frozen
class BuildOptions:
    """`native`: call through native code where torch allows it. `precise`: elementary functions
    of f32 through f64. `cache`: look into the disk cache and store there. `clock_aten`: the
    program adds to `irc.program.clocks` how long its ATen calls take. `late_checks`: a GPU's
    program doesn't wait for its checks (`irc.runtime.late_checks`). `check_bounds`: kernels run in
    the interpreter, where each access is checked (`irc.runtime.checked_kernels`); nothing is kept
    in the cache. `cuda_graphs`: calls on a GPU are captured, for so many sizes; `remarks`: which of
    the remarks are told that come up in calls. `captured`: what calls the program captures what
    it has a GPU do, so that a native function would save nothing where these are launches."""

    native: bool = True
    precise: bool = False
    cache: bool = True
    clock_aten: bool = False
    late_checks: bool = True
    check_bounds: bool = False
    cuda_graphs: bool = False
    cuda_graph_sizes: int = 8
    remarks: str = ""
    captured: bool = False

    @staticmethod
    def of(options: Any) -> BuildOptions:
        """From a mapping with these names, `irc.Options`, or None.

        Raises UserError for an unknown name.
        """
        if isinstance(options, BuildOptions):
            return options
        if options is None:
            return BuildOptions()
        if not isinstance(options, Mapping):
            return BuildOptions(
                precise=options.precise_math,
                cache=options.fx_graph_cache and not options.check_bounds,
                clock_aten=options.clock_aten,
                late_checks=options.late_checks is not False,
                check_bounds=options.check_bounds,
                cuda_graphs=options.cuda_graphs,
                cuda_graph_sizes=options.cuda_graph_sizes,
                remarks=options.remarks if options.cuda_graphs else "",
            )
        fields = attrs.fields_dict(BuildOptions)
        unknown = set(options) - set(fields)
        if unknown:
            raise UserError(f"building has no option {', '.join(sorted(unknown))}")
        kinds: dict[str, Any] = {name: type(field.default) for name, field in fields.items()}
        return BuildOptions(**{name: kinds[name](value) for name, value in options.items()})

    @property
    def graphs(self) -> GraphOptions | None:
        """What is asked of graphs; None where none are."""
        return GraphOptions(self.cuda_graph_sizes, self.remarks) if self.cuda_graphs else None


@attrs.frozen
class CompiledParts:
    """What a program is made of once compiled: bytes and plain data, storable.

    `kernels`: object code of all kernels. `host`: object code of the native host function, empty
    when there is none; `slots` and `externals` as its emitter left them.
    """

    program: P.HostProgram
    kernels: bytes
    host: bytes = b""
    slots: tuple[Any, ...] = ()
    externals: frozenset[str] = frozenset()
    #: Counters that passes left: layout_copies, padding_bytes, ...
    counters: Mapping[str, int] = attrs.field(factory=dict)
    #: How constants that passes computed are computed again.
    folded: tuple[FoldedConstants, ...] = ()
    #: The programs that control flow calls, by name.
    called: Mapping[str, CompiledParts] = attrs.field(factory=dict)
    #: What a machine must have to run the code: an architecture, and instruction sets.
    needs: tuple[str, ...] = ()
    #: The kind of GPU that the kernels are for, and `kernels` packed by `irc.program.gpu_kernels`;
    #: "" for a CPU.
    chip: str = ""


def used_kernels(module: Any, program: P.HostProgram, kind: str) -> list[kernel.KernelFuncOp]:
    """The kernels that the program launches. Raises UserError for one of another kind."""
    used = set(program.kernels)
    every = [op for op in module.ops if isinstance(op, kernel.KernelFuncOp)]
    kernels = [op for op in every if op.sym_name in used]
    for op in kernels:
        if op.target != kind:
            raise UserError(
                f"kernel @{op.sym_name} is for a {op.target}, this build is for a {kind}"
            )
    return kernels


def compile_parts(
    module: Any,
    options: BuildOptions,
    counters: Mapping[str, int] | None = None,
    name: str = MAIN,
) -> CompiledParts:
    """Generate the code of a module's function `name` and of those that its control flow calls, for
    the target that the module carries: nothing is loaded."""
    target = settle(module)
    if target.is_gpu:
        return _compile_for_gpu(module, options, counters or {}, name, target)
    from irc.codegen.llvm.jit import compile_module
    from irc.codegen.llvm.kernel_emitter import compile_kernels
    from irc.program.read_host import read_host_program

    features = target.features
    program = attrs.evolve(read_host_program(module, name), clocked=options.clock_aten)
    others = program.devices - {"cpu"}
    if others:
        raise UserError(
            f"target llvm has tensors on the cpu only, not on {', '.join(sorted(others))}"
        )
    called = {each: compile_parts(module, options, name=each) for each in program.programs}
    kernels = used_kernels(module, program, "cpu")
    code = compile_kernels(kernels, features, options.precise) if kernels else b""
    if not (options.native and torch_abi.available()):
        return CompiledParts(
            program, code, counters=dict(counters or {}), called=called, needs=features.needs()
        )
    from irc.codegen.host.lowering import emit_host

    host = emit_host(program, target)
    native = compile_module(host.text, features, opt_level=host_level(program))
    return CompiledParts(
        program, code, native, host.slots, host.externals, dict(counters or {}), called=called,
        needs=features.needs(),
    )  # fmt: skip


def _compile_for_gpu(
    module: Any, options: BuildOptions, counters: Mapping[str, int], name: str, target: Target
) -> CompiledParts:
    """As `compile_parts`, for a GPU; the host function is for this machine's CPU."""
    from irc.dialects.sym.facts import hints_of
    from irc.program.read_host import read_host_program
    from irc.runtime.gpu_compile import compile_for_gpu

    program = attrs.evolve(
        read_host_program(module, name), clocked=options.clock_aten,
        late_checks=options.late_checks,
    )  # fmt: skip
    called = {each: compile_parts(module, options, name=each) for each in program.programs}
    processor = TargetFeatures.host()
    compiled = compile_for_gpu(
        program, used_kernels(module, program, "gpu"), target, processor,
        _gpu(options), hints=hints_of(module.lookup(name)),
        cached=options.cache, opt_level=host_level(program), captured=options.captured,
    )  # fmt: skip
    return CompiledParts(
        program, compiled.kernels, compiled.host, compiled.slots, compiled.externals,
        dict(counters),
        called=called, needs=processor.needs() if compiled.host else (), chip=target.gpu.chip,
    )  # fmt: skip


def gpu_key(options: BuildOptions) -> tuple[str, ...]:
    """What else decides a program of a GPU: how it is reached, what its host function and its
    kernels are made for and by."""
    from irc.runtime.gpu_kernels import triton_version

    gpu = _gpu(options)
    return (
        f"gpu={None if gpu is None else gpu.identity} late={options.late_checks}",
        TargetFeatures.host().cache_key(),
        triton_version(),
    )


def _gpu(options: BuildOptions) -> Gpu | None:
    """How GPUs are reached from this process, for a program that may be native."""
    if not options.native:
        return None
    from irc.boundary import cuda  # not for programs of a CPU

    return cuda.installed()


def can_launch(options: BuildOptions) -> bool:
    """Whether programs of GPUs are native here, with machine code of their kernels."""
    return _gpu(options) is not None


def host_level(program: P.HostProgram) -> int:
    """How much LLVM optimizes a host function: long ones are straight-line code that gains
    little."""
    return 1 if len(program.steps) <= _TUNED_STEPS else 0


def load(parts: CompiledParts, resources: Mapping[str, Any], options: BuildOptions) -> Executable:
    """Link compiled parts into this process. `resources` has the large constants by key. Raises
    UserError for code that this machine can't run."""
    missing = TargetFeatures.host().missing_here(parts.needs)
    if missing:
        raise UserError(
            f"this machine can't run the program: it has no {', '.join(missing)}",
            notes=("its target needs that; irc-opt --emit=asm shows the code for any CPU",),
        )
    return count_program(_load(parts, with_folded(resources, parts.folded), options))


def _load(
    parts: CompiledParts, resources: Mapping[str, Any], options: BuildOptions
) -> Executable:
    program = parts.program
    called = {name: _load(each, resources, options) for name, each in parts.called.items()}
    constants = program_constants(program, resources)
    counters = program_counters(program, parts.counters, called)
    if parts.chip:
        from irc.runtime.gpu_program import GpuCode, load_for_gpu

        code = GpuCode(parts.kernels, parts.host, parts.slots, parts.externals)
        table, native, objects = load_for_gpu(code, _gpu(options), cached=options.cache)
        graphs = options.graphs if program.name == MAIN else None
        return make_executable(
            program, table, constants, native, counters, called, graphs, objects
        )
    kernels = load_kernels(program, parts.kernels)
    native = None
    if parts.host and options.native and torch_abi.available():
        symbols = {kernel_symbol(name): kernels.address(name) for name in program.kernels}
        native = NativeCode(parts.host, ENTRY, parts.slots, parts.externals, symbols)
    graphs = options.graphs if program.name == MAIN else None
    return make_executable(program, kernels, constants, native, counters, called, graphs)


def program_constants(
    program: P.HostProgram, resources: Mapping[str, Any]
) -> dict[str, torch.Tensor]:
    return {key: constant_tensor(key, data, resources) for key, data in program.constants.items()}


def program_counters(
    program: P.HostProgram, counters: Mapping[str, int], called: Mapping[str, Executable]
) -> dict[str, int]:
    """The counters of a program with those that it calls."""
    own = {
        "kernels": len(program.kernels),
        "launches": sum(isinstance(s, P.Launch) for s in program.steps),
        "aten_calls": sum(isinstance(s, P.CallOperator | P.CopyInto) for s in program.steps),
    }
    inside = [each.info.metrics for each in called.values()]
    return {**counters, **{n: k + sum(i[n] for i in inside) for n, k in own.items()}}


def count_program(executable: Executable) -> Executable:
    """The executable, whose counters are added to the process's."""
    metrics.add("compiles")
    for name, amount in executable.info.metrics.items():
        metrics.add(name, amount)
    return executable


def make_executable(
    program: P.HostProgram,
    kernels: KernelTable,
    constants: Mapping[str, torch.Tensor],
    native: NativeCode | None,
    counters: Mapping[str, int],
    called: Mapping[str, Executable] | None = None,
    graphs: GraphOptions | None = None,
    named: Mapping[Any, object] | None = None,
) -> Executable:
    """The executable of a program over any target's kernels. `called`: what its control flow
    calls, by name. `graphs`: its calls go through CUDA graphs. `named`: further objects that its
    native code names."""
    info = ProgramInfo(
        program.name,
        tuple(_argument_spec(a) for a in program.arguments),
        tuple(_result_spec(o) for o in program.outputs),
        dict(counters),
    )
    objects: dict[Any, object] = {("constant", key): t for key, t in constants.items()}
    objects.update(named or {})
    programs = {name: each.fast_call for name, each in (called or {}).items()}
    for number, step in enumerate(program.steps):
        if isinstance(step, P.Control):
            from irc.runtime.control import run_control

            objects["control", number] = run_control(step, programs)
    python = _PythonForm(program, kernels, constants, programs)
    if native is None:
        python.form()
    plain = Executable(info, python, native, objects)
    if graphs is None:
        return plain
    from irc.runtime.graphs import graphed
    from irc.runtime.graphs_instance import PieceHost

    def host_of(piece: P.HostProgram) -> PieceHost:
        return PieceHost(piece, kernels, constants, programs)

    return graphed(program, plain, host_of, graphs)


class _PythonForm:
    """A program's Python form, made when it is first needed: of a program that is native, for the
    first call that the native checks hand over. It keeps the kernels loaded for as long as the
    native code lives."""

    def __init__(self, *details: Any) -> None:
        self._details = details
        self._host: Any = None

    def form(self) -> Any:
        """The form itself."""
        if self._host is None:
            from irc.runtime.python_host import PythonHost

            self._host = PythonHost(*self._details)
        return self._host

    def __call__(self, symbols: Mapping[str, int], arguments: Sequence[object]) -> Sequence[object]:
        host: PythonRunner = self._host or self.form()
        return host(symbols, arguments)


def load_kernels(program: P.HostProgram, code: bytes) -> CpuKernels:
    """Link the kernels' object code; all names that the program launches are resolved."""
    names = program.kernels
    if not names:
        return CpuKernels({}, None)
    from irc.codegen.llvm.jit import load_object, make_torch_visible

    make_torch_visible()
    loaded = load_object(code, exports=names)
    return CpuKernels({name: loaded.address(name) for name in names}, loaded)


def constant_tensor(
    key: str, constant: P.ConstantData, resources: Mapping[str, Any]
) -> torch.Tensor:
    """The tensor of a constant, with the strides of its type, or packed.

    Raises InvalidIR when a resource is missing or hasn't the size that its type says.
    """
    layout = constant.layout
    sizes = tuple(int(d) for d in layout.sizes)  # type: ignore[arg-type]
    dtype = getattr(torch, layout.dtype)
    content: Any = constant.data
    if content is None:
        content = resources.get(key.partition(":")[0])
        if content is None:
            raise InvalidIR(f"the constant {key[:16]} is not beside the program")
    if isinstance(content, torch.Tensor) or constant.data is None:
        tensor = content_tensor(content, dtype, sizes)
    else:
        tensor = _from_bytes(key, bytes(content), dtype, sizes)
    if layout.strides is not None:
        strides = tuple(int(d) for d in layout.strides)  # type: ignore[arg-type]
        pairs = zip(sizes, tensor.stride(), strides, strict=True)
        if any(size > 1 and a != b for size, a, b in pairs):
            tensor = torch.empty_strided(sizes, strides, dtype=dtype).copy_(tensor)
    tensor = tensor.to(layout.device)
    return tensor if constant.packing is None else _packed(tensor, constant.packing)


def _packed(tensor: torch.Tensor, packing: P.Packing) -> torch.Tensor:
    """A constant in the order that a library chose: no strides tell where its elements are."""
    tensor = tensor.t() if packing.transposed else tensor
    first = find_operator(packing.callee)._schema.arguments[0].name
    arguments = ((first, Dynamic(0)), *packing.arguments)
    with torch.no_grad():
        (packed,) = boxed_callable(packing.callee, arguments)(tensor)
    assert isinstance(packed, torch.Tensor)
    return packed


def _from_bytes(
    key: str, data: bytes, dtype: torch.dtype, sizes: tuple[int, ...]
) -> torch.Tensor:
    count = 1
    for size in sizes:
        count *= size
    if count == 0:
        return torch.empty(sizes, dtype=dtype)
    flat = torch.frombuffer(bytearray(data), dtype=dtype)
    if flat.numel() == 1:
        return flat[0].expand(sizes).clone()
    if flat.numel() != count:
        raise InvalidIR(f"the constant {key[:16]} has {flat.numel()} elements, not {count}")
    return flat.reshape(sizes)


def _argument_spec(argument: P.Argument) -> ArgumentSpec:
    layout = argument.layout
    if layout is None:
        return ArgumentSpec(argument.name, argument.kind)  # type: ignore[arg-type]
    return ArgumentSpec(
        argument.name, "tensor", getattr(torch, layout.dtype), layout.sizes, layout.strides,
        layout.device,
    )  # fmt: skip


def _result_spec(output: P.Output) -> ResultSpec:
    layout = output.layout
    if layout is None:
        return ResultSpec(output.kind)
    return ResultSpec(
        "tensor", getattr(torch, layout.dtype), layout.sizes, layout.strides or (), output.alias_of
    )


def build_seconds(module: Any, options: Any = None) -> dict[str, float]:
    """How long the parts of a build take: generating code, loading it."""
    chosen = BuildOptions.of(options)
    start = time.perf_counter()
    parts = compile_parts(module, chosen)
    middle = time.perf_counter()
    load(parts, getattr(module, "resources", {}), chosen)
    return {"compile": middle - start, "load": time.perf_counter() - middle}
