"""Kernels with several outputs, of which one is computed in the memory of an input."""

from __future__ import annotations

import itertools

import pytest
import torch

from irc.dialects import kernel
from irc.interp.core import run
from irc.ir.passes import PassManager
from irc.ir.types import f32
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
        functions = [op for op in formed(names, "gpu").walk() if isinstance(op, kernel.FuncOp)]
        return functions[-1].inplace

    assert pairs("zero", "exp x", "-y") == (0, 3, 1, 4)
    assert pairs("exp x", "x + y") == (0, 2, 0, 3, 1, 3)
    assert pairs("zero", "zero", "x + y") == (0, 4, 1, 4)
