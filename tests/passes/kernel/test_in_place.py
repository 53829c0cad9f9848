"""Kernels with several outputs, of which one is computed in the memory of an input."""

from __future__ import annotations

import itertools

import pytest
import torch

import irc
from irc.dialects import kernel
from irc.interp.core import run
from irc.ir.passes import PassManager
from irc.ir.types import bf16, f16, f32, f64, i32
from irc.passes.common.bodies import axis
from irc.passes.kernel.cpu.plan import plan_for_cpu
from irc.passes.kernel.cpu.sharing import inplace_pairs, memory_of
from irc.passes.kernel.plan.plan import flatten
from tests.passes.kernel.programs import Program, compare, read, tensor

BODIES = {
    "zero": lambda c, x, y: c.constant(0.0, f32),
    "exp x": lambda c, x, y: c.op("math.exp", read(c, x)),
    "x + y": lambda c, x, y: c.op("arith.addf", read(c, x), read(c, y)),
    "-y": lambda c, x, y: c.op("arith.negf", read(c, y)),
}


def program(names):
    """x and y in memory that the program owns, and one compute of them with several outputs."""
    p = Program(tensor(7, 33), tensor(7, 33))
    x, y = (p.compute((7, 33), lambda c, a=a: c.op("math.tanh", read(c, a))) for a in p.args)
    return p.finish(*p.compute((7, 33), lambda c: ([BODIES[n](c, x, y) for n in names],)))


def formed(names, target):
    module = program(names)
    text = f"schedule{{target={target}}},form-kernels"
    PassManager.parse(text, verify="each").run(module)
    return module


@pytest.mark.parametrize("target", ["cpu", "gpu"])
@pytest.mark.parametrize("names", list(itertools.permutations(BODIES, 3)), ids=", ".join)
def test_no_output_is_written_where_another_one_still_reads(names, target):
    inputs = [torch.randn(7, 33, generator=torch.Generator().manual_seed(k)) for k in (0, 1)]
    wanted = run(program(names), *inputs, mode="real")
    module = formed(names, target)
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    compare(run(module, *inputs, mode="real"), wanted, 1e-9)


def test_a_gpu_output_may_be_where_it_needs_each_element_read():
    def pairs(*names):
        every = formed(names, "gpu").walk()
        return [op for op in every if isinstance(op, kernel.KernelFuncOp)][-1].inplace

    assert pairs("zero", "exp x", "-y") == (0, 3, 1, 4)
    assert pairs("exp x", "x + y") == (0, 2, 0, 3, 1, 3)
    assert pairs("zero", "zero", "x + y") == (0, 4, 1, 4)


def group_that_reads_until(reader):
    """`y`, which is the program's own, is read by the members up to number `reader` of a group;
    the second member writes an array of y's type, the third another one."""
    p = Program(tensor(7, 33))
    y = p.compute((7, 33), lambda c: c.op("math.tanh", read(c, p.args[0])))

    def term(c, member):
        return read(c, y) if member <= reader else c.constant(2.0, f32)

    def members():
        s = p.compute((7, 33), lambda c: term(c, 0), ("sum", f32), red=(1,))
        a = p.compute((7, 33), lambda c: c.op("math.exp", term(c, 1)))
        z = p.compute((7, 33), lambda c: c.op("arith.addf", term(c, 2), c.read(s, [axis(0)])))
        return [a, z]

    return p.finish(*p.group((7,), members))


@pytest.mark.fault("V19")
@pytest.mark.parametrize("reader", [0, 1, 2])
def test_no_output_is_written_where_a_later_member_of_the_group_reads(reader):
    inputs = [torch.randn(7, 33, generator=torch.Generator().manual_seed(0))]
    wanted = run(group_that_reads_until(reader), *inputs, mode="real")
    module = group_that_reads_until(reader)
    PassManager.parse("schedule{target=cpu},form-kernels", verify="each").run(module)
    function = [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)][-1]
    pairs = list(zip(function.inplace[::2], function.inplace[1::2], strict=True))
    assert pairs == ([(0, 1), (0, 2)] if reader < 2 else [(0, 2)])
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    compare(run(module, *inputs, mode="real"), wanted, 1e-9)
    compare(irc.build(module, target="llvm")(*inputs), run(group_that_reads_until(reader), *inputs),
            1e-5)  # fmt: skip


@pytest.mark.parametrize(
    "a, b, expected",
    [
        (tensor(8, 6), tensor(8, 6), True),
        (tensor(8, 6), tensor(8, 6, e=i32), True),
        (tensor(8, 6, e=bf16), tensor(8, 6, e=f16), True),
        (tensor(8, 6), tensor(8, 6, e=f64), False),
        (tensor(8, 6), tensor(4, 6), False),
        (tensor(8, 6), tensor(8, 6, strides=(1, 8)), False),
        (tensor(8, 1), tensor(8, 1, strides=(1, 8)), False),
        (tensor(8, 6), tensor(48), False),
    ],
    ids=str,
)
def test_arrays_that_can_be_one(a, b, expected):
    assert (memory_of(a) == memory_of(b)) is expected


I0, I1 = axis(0), axis(1)


@pytest.mark.parametrize(
    "reads, expected",
    [
        ([(I0, I1)], [0, 2]),
        ([], []),
        ([(I1, I0)], []),
        ([(I0, I1), (I0, I1)], [0, 2]),
        ([(I0, I1), (I1, I0)], []),
        ([(I1, I0), (I0, I1)], []),
    ],
    ids=str,
)
def test_an_input_that_is_read_elsewhere_too_keeps_its_memory(reads, expected):
    p = Program(tensor(8, 8), tensor(8, 8, strides=(9, 1)))
    x, y = p.args

    def body(c):
        place = c.op("arith.index_cast", c.index(I0), type=i32)
        total = c.op("arith.sitofp", place, type=f32)
        for value in [*[c.read(x, at) for at in reads], c.read(y, (I1, I0))]:
            total = c.op("arith.addf", total, value)
        return total

    p.compute((8, 8), body)
    assert inplace_pairs(plan_for_cpu(flatten(p.func.block.last))) == expected
