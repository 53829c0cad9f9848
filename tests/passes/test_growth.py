"""What passes and verifiers execute grows with a program's length, not with its square."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from llvmlite import ir

import irc
from bench.line_counts import counting
from irc.analysis.loop import is_unit
from irc.codegen.host.emitter import I64, PTR, VOID, HostEmitter
from irc.codegen.host.kernel_calls import KernelCalls
from irc.ir.passes import PassManager
from irc.ir.verifier import verify

T = "tensor<[4] x f32, strides [1]>"


def grows(run: Callable[[int], Callable[[], object]], length: int) -> float:
    """How many times as many lines a program of twice the length takes."""
    for doubled in (length, 2 * length):
        run(doubled)()  # what is made once: attributes, texts
    lines = []
    for doubled in (length, 2 * length):
        work, counts = run(doubled), Counter()
        with counting(counts):
            work()
        lines.append(counts.total())
    return lines[1] / lines[0]


def returning(count: int) -> Callable[[], object]:
    """A function that returns its arguments."""
    names = [f"%a{k}" for k in range(count)]
    types = ", ".join([T] * count)
    arguments = ", ".join(f"{n}: {T}" for n in names)
    module = irc.parse(
        f'func.func @main({arguments}) -> ({types}) attributes {{level = "aten"}} {{ '
        f"return {', '.join(names)} : {types} }}"
    )
    return lambda: PassManager.parse("functionalize").run(module)


def copying(count: int) -> Callable[[], object]:
    """Allocations beside each other, all in use to the end, that are written and read in turn."""
    steps = [f"%a{k} = host.alloc {{offset = #sym<{64 * k}>}} : {T}" for k in range(count)]
    steps += [f"host.copy %x, %a{k} : ({T}, {T})" for k in range(count)]
    steps += [f"host.copy %a{k}, %x : ({T}, {T})" for k in range(count)]
    text = "\n".join(steps)
    module = irc.parse(f"host.func @main(%x: {T}) {{\n{text}\nhost.return\n}}")
    return lambda: verify(module)


@pytest.mark.fault("V20")
@pytest.mark.parametrize("run", [returning, copying], ids=lambda run: run.__name__)
def test_lines_grow_with_the_length(run):
    assert grows(run, 100) < 2.3


def test_a_square_is_seen():
    def square(count):
        return lambda: [is_unit(k) for k in range(count) for _ in range(count)]

    assert grows(square, 20) > 3.5


@pytest.mark.fault("V20")
def test_the_text_of_a_host_function_grows_with_the_arguments_of_a_launch():
    sizes = []
    for count in (100, 200):
        module = ir.Module("test", context=ir.Context())
        emitter = HostEmitter(module, "program", arguments=0)
        kernel = ir.Function(module, ir.FunctionType(VOID, [PTR] * count + [I64] * 2), "k")
        emitter.begin()
        KernelCalls(emitter).call_kernel(kernel, [PTR(None)] * count, extent=I64(64), grain=1)
        emitter.finish([])
        sizes.append(len(str(module)))
    assert sizes[1] < 2.3 * sizes[0]
