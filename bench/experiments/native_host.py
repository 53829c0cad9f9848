"""Experiment (d): what a native host function costs, and whether it stands rough use.

    OMP_NUM_THREADS=1 python bench/experiments/native_host.py

Prints one fact a line. The programs are those of the tests (`tests/runtime/host_programs.py`).
"""

from __future__ import annotations

import ctypes
import os
import resource
import statistics
import sys
import threading
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from llvmlite import ir  # noqa: E402

from irc.codegen.host.arguments import HostArguments  # noqa: E402
from irc.codegen.host.aten import AtenCall, call_aten  # noqa: E402
from irc.codegen.host.kernel_calls import KernelCalls  # noqa: E402
from irc.codegen.host.memory import HostMemory  # noqa: E402
from irc.codegen.host.results import HostResults  # noqa: E402
from irc.codegen.llvm.jit import compile_module, load_object  # noqa: E402
from irc.target.cpu import TargetFeatures  # noqa: E402
from tests.runtime.host_programs import (  # noqa: E402
    F32,
    SlowPath,
    add_kernel,
    build,
    chain,
    spec,
)


def nanoseconds(function, *arguments, calls=100_000, rounds=7) -> float:
    """Median time of one call."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            function(*arguments)
        times.append((time.perf_counter() - begin) / calls)
    return statistics.median(times) * 1e9


def rss_kilobytes() -> int:
    """Resident memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


def python_wrapper(kernels: int):
    """The same program written in Python over ctypes, as a wrapper generator would print it."""
    module = ir.Module("kernel")
    add_kernel(module, 1.0).linkage = "external"
    loaded = load_object(compile_module(str(module), TargetFeatures.host()), exports=["add.0"])
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long)
    kernel = kind(loaded.address("add.0"))
    assert_size_stride = torch._C._dynamo.guards.assert_size_stride
    empty = torch._C._dynamo.guards._empty_strided_cpu

    def call(x):
        rows = x.size(0)
        assert_size_stride(x, (rows, 8), (8, 1))
        y = empty((rows, 8), (8, 1), torch.float32)
        source = x
        for _ in range(kernels):
            kernel(source.data_ptr(), y.data_ptr(), 0, rows * 8)
            source = y
        return (y,)

    call.keeps = loaded
    return call


def cost() -> None:
    """Time per call against the Python wrapper, for one and ten kernels over 32 elements."""
    x = torch.randn(4, 8)
    for kernels in (1, 10):
        program, wrapper = build(1, chain(kernels)), python_wrapper(kernels)
        native, boxed, python = (
            nanoseconds(program.call, x),
            nanoseconds(lambda call=program.call_boxed: call([x])),
            nanoseconds(wrapper, x, calls=30_000),
        )
        print(
            f"cost: {kernels} kernels: native {native:.0f} ns, as a list {boxed:.0f} ns, "
            f"Python wrapper {python:.0f} ns, ratio {python / native:.1f}"
        )
    empty = torch._C._dynamo.guards._empty_strided_cpu
    print(
        f"cost: torch's own empty_strided from Python "
        f"{nanoseconds(empty, (4, 8), (8, 1), torch.float32):.0f} ns, "
        f"eager x + 1 {nanoseconds(lambda: x + 1):.0f} ns"
    )


def arguments_and_results() -> None:
    """Cost of each tensor argument's check, and of each output."""

    def many(count):
        def body(e):
            for i in range(count):
                HostArguments(e).argument_tensor(i, spec(4, 8, strides=(8, 1)))
            e.begin()
            return [HostResults(e).result_none()]

        return body

    def outputs(count):
        def body(e):
            e.begin()
            memory, results = HostMemory(e), HostResults(e)
            return [results.result_tensor(memory.empty((4, 8), (8, 1), F32)) for _ in range(count)]

        return body

    x = torch.randn(4, 8)
    few, lots = (nanoseconds(build(n, many(n)).call, *[x] * n) for n in (10, 110))
    print(
        f"cost: a call without tensors {nanoseconds(build(0, many(0)).call):.0f} ns, "
        f"a checked tensor argument {(lots - few) / 100:.1f} ns"
    )
    few, lots = (nanoseconds(build(0, outputs(n)).call, calls=20_000) for n in (1, 21))
    print(f"cost: a new output tensor, made, wrapped and freed {(lots - few) / 20:.0f} ns")


def threads() -> None:
    """A million calls from eight threads."""
    program, wrong = build(1, chain(10)), []

    def work(seed):
        x = torch.full((4 + seed, 8), float(seed))
        expected = x + 10
        for i in range(125_000):
            (y,) = program.call(x)
            if i % 100 == 0 and not torch.equal(y, expected):
                wrong.append(seed)

    before = rss_kilobytes()
    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    begin = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    took = time.perf_counter() - begin
    print(
        f"threads: 8 threads, 1,000,000 calls of ten kernels in {took:.2f} s, wrong {len(wrong)}, "
        f"memory grew {rss_kilobytes() - before} KB"
    )


def fork() -> None:
    """A child of a process that has used two OpenMP threads."""
    program = build(1, chain(3, grain=64))
    torch.set_num_threads(2)
    x = torch.randn(2000, 8)
    expected = x + 1 + 1 + 1
    program.call(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if all(torch.equal(program.call(x)[0], expected) for _ in range(1000)) else 1)
    status = os.waitpid(child, 0)[1]
    torch.set_num_threads(1)
    print(f"fork: child of a two-thread parent, 1000 calls, exit status {status}")


def odd_inputs() -> None:
    """What the checks let in and what they hand to the Python executor."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    program = build(1, chain(2))
    x = torch.randn(4, 8)
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
    inputs = {
        "offset": torch.randn(9, 8)[5:],
        "zero rows": x[:0],
        "parameter": torch.nn.Parameter(x),
        "inference tensor": torch.inference_mode()(torch.ones)(4, 8),
        "fake": fake,
        "negative bit": torch._neg_view(x),
        "meta": x.to("meta"),
        "other stride": x.t().contiguous().t(),
        "functional": torch._to_functional_tensor(x),
        "sparse": x.to_sparse(),
    }
    for name, value in inputs.items():
        try:
            (y,) = program.call(value)
            answer = "native, equal" if torch.equal(y, value.detach() + 1 + 1) else "WRONG"
        except SlowPath:
            answer = "handed to the Python executor"
        print(f"inputs: {name}: {answer}")


def failures() -> None:
    """Programs whose second step raises, over and over."""

    def refuse(code):
        raise ZeroDivisionError(code)

    def by_status(e):
        memory, kernels = HostMemory(e), KernelCalls(e)
        x = HostArguments(e).argument_tensor(0, spec(None))
        n = memory.size(x, 0)
        e.begin()
        y, scratch = memory.empty((n,), (1,), F32), memory.arena(5000)
        add, checked = add_kernel(e.module, 1.0), add_kernel(e.module, 1.0, status=True)
        data = memory.data(x)
        kernels.call_kernel(add, [data, memory.arena_pointer(scratch, 0)], extent=n, grain=1000)
        operands = [data, memory.data(y)]
        kernels.call_kernel(checked, operands, extent=n, grain=1000, on_status="refuse")
        return [HostResults(e).result_tensor(y)]

    def by_aten(e):
        memory, arguments = HostMemory(e), HostArguments(e)
        x, y = (arguments.argument_tensor(i, spec(None, None)) for i in range(2))
        e.begin(below_autograd=True)
        first = memory.arena_tensor(memory.arena(5000), 0, (4, 4), (4, 1), F32)
        call_aten(e, AtenCall("aten.mm.out", {"self": x, "mat2": x, "out": first}), floating=True)
        last = AtenCall("aten.mm.default", {"self": first, "mat2": y}, [2])
        return [HostResults(e).result_tensor(t) for t in call_aten(e, last, floating=True)]

    bad, square, wrong = -torch.rand(100), torch.randn(4, 4), torch.randn(5, 5)
    status, aten = build(1, by_status, {"refuse": refuse}), build(2, by_aten)
    for name, call, times, error in (
        ("kernel status", lambda: status.call(bad), 100_000, ZeroDivisionError),
        ("ATen call", lambda: aten.call(square, wrong), 3_000, RuntimeError),
    ):

        def repeat(count, call=call, error=error):
            for _ in range(count):
                try:
                    call()
                except error:
                    pass

        repeat(200)
        counts = [sys.getrefcount(t) for t in (bad, square, wrong)]
        before = rss_kilobytes()
        repeat(times)
        same = counts == [sys.getrefcount(t) for t in (bad, square, wrong)]
        print(
            f"failures: {name} half way, {times} times: memory grew "
            f"{rss_kilobytes() - before} KB, reference counts {'same' if same else 'CHANGED'}, "
            f"grad mode {torch.is_grad_enabled()}"
        )


def parallel() -> None:
    """torch_parallel_for over two threads against one, 1e6 elements, ten kernels."""
    program = build(1, chain(10, grain=16384))
    x = torch.randn(125_000, 8)
    for count in (1, 2):
        torch.set_num_threads(count)
        took = nanoseconds(program.call, x, calls=20)
        print(f"parallel: {count} threads: {took / 1e6:.2f} ms")
    torch.set_num_threads(2)
    small = torch.randn(4096, 8)
    tiny = build(1, chain(1, grain=16384)).call
    forced = build(1, chain(1, grain=1024)).call
    print(
        f"parallel: 32,768 elements plain {nanoseconds(tiny, small, calls=2000):.0f} ns, "
        f"as one region {nanoseconds(forced, small, calls=2000):.0f} ns"
    )
    torch.set_num_threads(1)


def main() -> None:
    """Everything, in order; the fork last but one, so that it inherits a used process."""
    print(
        f"torch {torch.__version__}, Python {sys.version.split()[0]}, "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    for part in (cost, arguments_and_results, odd_inputs, failures, threads, fork, parallel):
        part()
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
