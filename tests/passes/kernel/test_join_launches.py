"""Launches that need nothing of each other become one, with the same results over any parts."""

from __future__ import annotations

import ctypes

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import irc
from irc.dialects import host, kernel
from irc.ir.passes import PassContext, PassManager
from irc.ir.types import f32
from irc.pipeline import stages
from tests.passes.kernel.programs import (
    FORMING,
    Program,
    check,
    compare,
    random_input,
    read,
    tensor,
)

#: Products stay the library's, whatever this processor's figures say.
TO_KERNELS = ",".join(list(stages())[:-2]).replace(
    "aten-to-graph", "aten-to-graph{max_autotune_gemm_backends=ATEN}"
)


def launches(module):
    """The launches of a module, in order."""
    return [op for op in module.walk() if isinstance(op, host.LaunchOp)]


def joined(module, options=""):
    """Run the pass; how many launches went."""
    context = PassContext()
    PassManager.parse(f"join-launches{options}", verify="each").run(module, context)
    return context.statistics["join-launches", "joined"]


def kernels_of(function, *arguments):
    """The program of a function with its kernels formed."""
    module = irc.trace(function, arguments)
    PassManager.parse(f"{TO_KERNELS},schedule,form-kernels").run(module)
    return module


def three(rows=9, columns=33):
    """Maps, sums over rows and a transposition, each of an input of its own."""
    program = Program(tensor(rows, columns), tensor(rows, columns), tensor(rows, columns))
    x, y, z = program.args
    a = program.compute([rows, columns], lambda b: b.op("math.exp", read(b, x)))
    s = program.compute([rows, columns], lambda b: read(b, y), ("sum", f32), red=[0])
    from irc.passes.common.bodies import axis

    t = program.compute([columns, rows], lambda b: read(b, z, axis(1), axis(0)))
    return program.finish(a, s, t)


def test_one_launch_with_the_same_values():
    inputs = [random_input(tensor(9, 33), {}, seed) for seed in range(3)]
    module = three()
    PassManager.parse(FORMING % 512).run(module)
    assert len(launches(module)) == 3 and joined(module) == 2
    assert len(launches(module)) == 1
    assert [k.sym_name for k in module.walk() if isinstance(k, kernel.KernelFuncOp)] == ["k0_k1_k2"]
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    x, y, z = inputs
    compare(irc.build(module)(*inputs), [x.exp(), y.sum(0), z.t().contiguous()], 1e-5)


def test_any_parts_of_the_points_give_all_results():
    module = three()
    PassManager.parse(f"{FORMING % 512},join-launches").run(module)
    (only,) = [k for k in module.walk() if isinstance(k, kernel.KernelFuncOp)]
    grid = only.grid
    PassManager.parse("bufferize,plan-memory").run(module)
    executable = irc.build(module)
    address = executable.run_python.form().kernels.address(only.sym_name)
    kinds = [ctypes.c_void_p] * 6 + [ctypes.c_int64] * 2
    call = ctypes.CFUNCTYPE(None, *kinds)(address)
    x, y, z = inputs = [random_input(tensor(9, 33), {}, seed) for seed in range(3)]
    for cut in range(grid + 1):
        outputs = [torch.full(s, -7.0) for s in ((9, 33), (33,), (33, 9))]
        pointers = [t.data_ptr() for t in (*inputs, *outputs)]
        for begin, end in ((cut, grid), (0, cut)):
            call(*pointers, begin, end)
        compare(outputs, [x.exp(), y.sum(0), z.t().contiguous()], 1e-5)


@pytest.mark.parametrize("sizes", [{"s0": 7}, {"s0": 1}, {"s0": 40}, {"s0": 0}], ids=str)
def test_symbolic_sizes(sizes):
    from irc.ir.symbols import symbol

    def make():
        rows = symbol("s0")
        program = Program(tensor(rows, 5), tensor(3, rows + 2))
        x, y = program.args
        a = program.compute([rows, 5], lambda b: b.op("math.exp", read(b, x)))
        s = program.compute([3, rows + 2], lambda b: read(b, y), ("sum", f32), red=[0])
        return program.finish(a, s)

    module = make()
    PassManager.parse(FORMING % 512).run(module)
    assert joined(module) == 1
    inputs = [random_input(v.type, sizes) for v in make().block.first.block.arguments]
    check(make, inputs)
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    compare(irc.build(module)(*inputs), [inputs[0].exp(), inputs[1].sum(0)], 1e-5)


def test_what_needs_another_launch_stays_behind_it():
    def f(x):
        y = x @ x.exp()
        return torch.softmax(y, 1) @ x

    module = kernels_of(f, torch.randn(40, 40))
    before = len(launches(module))
    assert before > 1 and joined(module) == 0


def test_results_that_nothing_waits_for_go_along_with_the_next_launch():
    def f(x, w):
        y = x.exp()
        return (y @ w).tanh(), y.sum(0)

    x, w = torch.randn(64, 40), torch.randn(40, 50)
    module = kernels_of(f, x, w)
    assert len(launches(module)) == 3 and joined(module) == 1
    order = [op.name for op in launches(module)[1].parent.ops]
    assert order.index("graph.call_aten") < [
        k for k, name in enumerate(order) if name == "host.launch"
    ][1]
    torch.testing.assert_close(irc.compile(f, (x, w))(x, w), f(x, w))


def test_large_arrays_and_too_many_parts_stay_apart():
    module = three()
    PassManager.parse(FORMING % 512).run(module)
    assert joined(module, "{max_bytes=2000}") == 0
    assert joined(module, "{max_parts=2}") == 1


def test_an_input_that_another_result_may_overwrite():
    def make():
        program = Program(tensor(8, 16))
        (x,) = program.args
        y = program.compute([8, 16], lambda b: b.op("math.exp", read(b, x)))
        a = program.compute([8, 16], lambda b: b.op("math.sin", read(b, y)))
        s = program.compute([8, 16], lambda b: read(b, y), ("sum", f32), red=[0])
        return program.finish(a, s)

    module = make()
    PassManager.parse(FORMING % 512).run(module)
    assert joined(module) == 0
    check(make, [random_input(tensor(8, 16), {})], passes="")


def test_arguments_are_updated_without_a_copy_as_before():
    norm = nn.BatchNorm1d(6).train()
    x = torch.randn(8, 6)
    compiled = torch.compile(lambda x: (norm(x), x.sum(0)), backend="irc")
    wanted = nn.BatchNorm1d(6).train()
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), (wanted(x), x.sum(0)))
    torch.testing.assert_close(norm.running_var, wanted.running_var)
    assert int(norm.num_batches_tracked) == 1


def test_checks_are_made_before_what_relies_on_them():
    def f(table, index, x):
        return F.embedding(index, table), x.sum(0), x.exp().sum(1)

    table, index, x = torch.randn(5, 3), torch.tensor([0, 4, 2]), torch.randn(6, 7)
    executable = irc.compile(f, (table, index, x))
    torch.testing.assert_close(executable(table, index, x), f(table, index, x))
    with pytest.raises(IndexError):
        executable(table, index + 1, x)


def test_a_training_step_with_fewer_launches_has_the_same_gradients():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.LayerNorm(30), nn.GELU(), nn.Linear(30, 10))
    x = torch.randn(12, 20)

    def gradients(call):
        model.zero_grad()
        call(x).pow(2).mean().backward()
        return [p.grad.clone() for p in model.parameters()]

    wanted = gradients(model)
    irc.metrics.reset()
    got = gradients(torch.compile(model, backend="irc"))
    torch.testing.assert_close(got, wanted)
    assert irc.metrics.launches <= 5
