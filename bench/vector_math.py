"""Speed of the elementary functions against torch eager: nanoseconds per element, one thread.

    python bench/vector_math.py [name ...]

Each round times torch and the generated loop one after the other on 1,000,000 f32; the table shows
medians over rounds, and the median of the rounds' ratios.  The last columns are the milliseconds to
emit and to compile the loop.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import sys
import time

import torch
from llvmlite import ir

from irc.codegen.llvm import jit
from irc.codegen.llvm.vector_math import DEFINITIONS, VectorMath, ir_type, is_inline, supported
from irc.target.cpu import TargetFeatures

COUNT = 1_000_000
ROUNDS = 21
RANGES = {
    "log": (1e-3, 1e3), "log2": (1e-3, 1e3), "log10": (1e-3, 1e3), "log1p": (-0.9, 1e3),
    "sqrt": (0.0, 1e3), "rsqrt": (1e-3, 1e3), "asin": (-1.0, 1.0), "acos": (-1.0, 1.0),
    "atanh": (-1.0, 1.0), "erfinv": (-1.0, 1.0), "acosh": (1.0, 1e3), "pow": (0.01, 5.0),
    "lgamma": (0.1, 50.0), "digamma": (0.1, 50.0),
}  # fmt: skip
NAMES = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc",
    "erfinv", "lgamma", "digamma", "sigmoid", "pow", "atan2", "fmod", "remainder", "floor_divide",
)  # fmt: skip


def build(name: str, features: TargetFeatures) -> tuple[object, object, int, float, float]:
    """(loaded object, C function, operands, ms to emit, ms to compile) of `out[i] = f(x[i]...)`."""
    start = time.perf_counter()
    lanes = features.lanes(32)
    arity = DEFINITIONS[name, "f32"].arity if (name, "f32") in DEFINITIONS else 2
    module, pointer, i64 = ir.Module("bench"), ir.PointerType(), ir.IntType(64)
    scalar, vector = ir_type("f32", 0), ir_type("f32", lanes)
    kind = ir.FunctionType(ir.VoidType(), [pointer] * (arity + 1) + [i64])
    function = ir.Function(module, kind, "loop")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    body, done = function.append_basic_block("body"), function.append_basic_block("done")
    entry = builder.block
    builder.branch(body)
    builder.position_at_end(body)
    index = builder.phi(i64)
    index.add_incoming(i64(0), entry)

    def at(argument: ir.Value) -> ir.Value:
        return builder.gep(argument, [index], source_etype=scalar)

    values = [builder.load(at(a), typ=vector, align=4) for a in function.args[:arity]]
    result = VectorMath(module, features).emit(builder, name, values)
    builder.store(result, at(function.args[arity]), align=4)
    following = builder.add(index, i64(lanes))
    index.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, function.args[-1]), body, done)
    builder.position_at_end(done)
    builder.ret_void()
    text = str(module)
    emitted = time.perf_counter()
    loaded = jit.load_object(jit.compile_module(text, features), exports=["loop"])
    compiled = time.perf_counter()
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (arity + 1), ctypes.c_int64)
    call = prototype(loaded.address("loop"))
    return loaded, call, arity, (emitted - start) * 1e3, (compiled - emitted) * 1e3


def measure(name: str, features: TargetFeatures) -> None:
    build(name, features)
    loaded, call, arity, emit_ms, compile_ms = build(name, features)
    low, high = RANGES.get(name, (-10.0, 10.0))
    inputs = [torch.rand(COUNT) * (high - low) + low for _ in range(arity)]
    mine, reference = torch.empty(COUNT), torch.empty(COUNT)
    eager = getattr(torch, name)
    pointers = [t.data_ptr() for t in (*inputs, mine)]
    times: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        eager(*inputs, out=reference)
        middle = time.perf_counter()
        call(*pointers, COUNT)
        times.append((middle - start, time.perf_counter() - middle))
    torch_ns, own_ns = (statistics.median(column) * 1e9 / COUNT for column in zip(*times))
    ratio = statistics.median(a / b for a, b in times)
    method = "inline" if is_inline(name, "f32") else "libm"
    print(
        f"{name:14s} {method:7s} {torch_ns:9.3f} {own_ns:9.3f} {ratio:8.2f}"
        f" {emit_ms:9.2f} {compile_ms:9.2f}",
        flush=True,
    )
    del loaded


def main() -> None:
    torch.set_num_threads(1)
    features = TargetFeatures.host()
    print(f"{features.chip}, load {os.getloadavg()[0]:.1f}, {COUNT} f32")
    print("function       method  torch ns    own ns    ratio   emit ms  compile ms")
    for name in sys.argv[1:] or NAMES:
        if supported(name, "f32"):
            measure(name, features)


if __name__ == "__main__":
    main()
