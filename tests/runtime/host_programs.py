"""Hand-written host programs for the tests and experiments of the native boundary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from llvmlite import ir

from irc.boundary import torch_abi
from irc.codegen.host.arguments import HostArguments
from irc.codegen.host.emitter import I32, I64, PTR, VOID, HostEmitter, TensorSpec
from irc.codegen.host.kernel_calls import KernelCalls
from irc.codegen.host.memory import HostMemory
from irc.codegen.host.results import HostResults
from irc.codegen.llvm.jit import compile_module
from irc.runtime.native import NativeProgram
from irc.target.cpu import TargetFeatures

F32 = torch_abi.dtype_code(torch.float32)
FLOAT = ir.FloatType()


class SlowPath(Exception):
    """Raised by the stand-in for the Python executor."""


def slow(*arguments: object) -> object:
    """Says that the call wasn't for the native function."""
    raise SlowPath(len(arguments))


def spec(*sizes: int | None, strides: tuple[int | None, ...] | None = None) -> TensorSpec:
    """A float32 argument."""
    return TensorSpec(F32, sizes, strides)


def add_kernel(module: ir.Module, amount: float, *, status: bool = False) -> ir.Function:
    """`kernel(x, y, begin, end)`: y[i] = x[i] + amount; with `status`, 7 where x[i] is negative."""
    result = I32 if status else VOID
    kind = ir.FunctionType(result, (PTR, PTR, I64, I64))
    kernel = ir.Function(module, kind, f"add.{len(module.functions)}")
    kernel.linkage = "internal"
    source, target, begin, end = kernel.args
    entry, loop, body, done = (
        kernel.append_basic_block(n) for n in ("entry", "loop", "body", "done")
    )
    b = ir.IRBuilder(entry)
    b.branch(loop)
    b.position_at_end(loop)
    i, code = b.phi(I64), b.phi(I32)
    i.add_incoming(begin, entry)
    code.add_incoming(I32(0), entry)
    b.cbranch(b.icmp_signed("<", i, end), body, done)
    b.position_at_end(body)
    x = b.load(b.gep(source, [i], source_etype=FLOAT), typ=FLOAT)
    b.store(b.fadd(x, FLOAT(amount)), b.gep(target, [i], source_etype=FLOAT))
    i.add_incoming(b.add(i, I64(1)), body)
    negative = b.fcmp_ordered("<", x, FLOAT(0.0))
    code.add_incoming(b.select(negative, I32(7), code), body)
    b.branch(loop)
    b.position_at_end(done)
    b.ret(code) if status else b.ret_void()
    return kernel


def build(
    arguments: int,
    body: Callable[[HostEmitter], Sequence[object]],
    objects: Mapping[object, object] | None = None,
    fallback: Callable[..., object] = slow,
) -> NativeProgram:
    """Compile and load the program that `body` emits; `body` returns the results."""
    module = ir.Module("test", context=ir.Context())
    emitter = HostEmitter(module, "program", arguments=arguments)
    results = body(emitter)
    emitter.finish(results)  # type: ignore[arg-type]
    code = compile_module(str(module), TargetFeatures.host())
    return NativeProgram(
        code,
        "program",
        slots=emitter.slot_keys,
        objects=objects or {},
        fallback=fallback,
        boxed_fallback=fallback,
        externals=emitter.externals,
    )


def chain(kernels: int, grain: int = 16384) -> Callable[[HostEmitter], Sequence[object]]:
    """x [s0, 8] -> x + kernels, by that many kernels over scratch memory of the arena."""

    def body(e: HostEmitter) -> Sequence[object]:
        memory, calls = HostMemory(e), KernelCalls(e)
        x = HostArguments(e).argument_tensor(0, spec(None, 8, strides=(8, 1)))
        rows = memory.size(x, 0)
        e.begin()
        total = e.builder.mul(rows, I64(8))
        kernel = add_kernel(e.module, 1.0)
        y = memory.empty((rows, 8), (8, 1), F32)
        source = memory.data(x)
        scratch = memory.arena(e.builder.mul(total, I64(4))) if kernels > 1 else None
        for i in range(kernels):
            last = i == kernels - 1 or scratch is None
            target = memory.data(y) if last else memory.arena_pointer(scratch, 0)
            calls.call_kernel(kernel, [source, target], extent=total, grain=grain)
            source = target
        return [HostResults(e).result_tensor(y)]

    return body
