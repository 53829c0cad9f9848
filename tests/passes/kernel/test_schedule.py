"""The schedule: what is chosen, that it prints and reads back, that wrong ones are refused."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import loop
from irc.interp.core import run
from irc.ir.passes import PassManager
from irc.ir.types import bf16, f32, f64
from irc.passes.common.bodies import axis
from irc.passes.kernel import schedule
from irc.passes.kernel.cpu.schedule import read_schedule
from tests.passes.kernel.programs import Program, read, tensor

I0, I1, I2 = axis(0), axis(1), axis(2)


def scheduled(x, body, *outputs, red=(), bits=512, types=(), extents=None):
    p = Program(x)
    p.finish(
        *as_tuple(
            p.compute(
                extents or x.shape, lambda c: body(c, p.args[0]), *outputs, red=red, types=types
            )
        )
    )
    PassManager.parse(f"schedule{{vector_bits={bits}}}").run(p.module)
    (op,) = [o for o in p.func.block.ops if isinstance(o, loop.ComputeOp)]
    return p.module, op, read_schedule(op.schedule)


def as_tuple(values):
    return values if isinstance(values, tuple) else (values,)


def plain(c, x):
    return read(c, x)


@pytest.mark.parametrize("bits, lanes", [(512, 16), (256, 16), (128, 8)])
def test_lanes_follow_the_registers(bits, lanes):
    assert scheduled(tensor(4, 1000), plain, bits=bits)[2].lanes == lanes


def test_short_registers_are_paired_unless_the_axis_is_too_short():
    assert scheduled(tensor(16), plain, bits=256)[2].lanes == 16
    assert scheduled(tensor(15), plain, bits=256)[2].lanes == 8


def test_lanes_follow_the_widest_type_computed_in():
    assert scheduled(tensor(4, 1000, e=f64), plain)[2].lanes == 8
    assert scheduled(tensor(4, 1000, e=bf16), plain)[2].lanes == 32

    def widened(c, x):
        wide = c.op("arith.extf", read(c, x), type=f32)
        return c.op("arith.truncf", c.op("math.exp", wide), type=bf16)

    assert scheduled(tensor(4, 1000, e=bf16), widened)[2].lanes == 16


def test_contiguous_axes_collapse_also_out_of_order():
    last = tensor(2, 5, 6, 7, strides=(210, 1, 35, 5))
    _, _, schedule = scheduled(last, plain, types=[last])
    assert len(schedule.collapse) == 3


def test_vectors_run_where_memory_does():
    assert scheduled(tensor(64, 64), plain, ("sum", f32), red=(1,))[2].vector_axis == "i1"
    assert scheduled(tensor(64, 64), plain, ("sum", f32), red=(0,))[2].vector_axis == "i1"


def test_short_rows_are_reduced_side_by_side():
    assert scheduled(tensor(5000, 3), plain, ("sum", f32), red=(1,))[2].vector_axis == "i0"


def test_strided_reads_are_tiled():
    def across(c, x):
        return c.op("arith.addf", read(c, x), read(c, x, I1, I0))

    schedule = scheduled(tensor(64, 64), across)[2]
    assert (schedule.vector_axis, schedule.tile_axis) == ("i1", "i0")


def test_a_schedule_that_stands_is_kept_and_obeyed():
    module, op, schedule = scheduled(tensor(64, 100), plain, ("sum", f32), red=(1,))
    schedule.lanes, schedule.copies, schedule.tail = 4, 2, "peel"
    op.attributes["schedule"] = mine = schedule.to_attribute()
    PassManager.parse("schedule").run(module)
    assert op.schedule is mine
    x = torch.randn(64, 100)
    PassManager.parse("form-kernels", verify="each").run(module)
    torch.testing.assert_close(run(module, x)[0], x.sum(1), rtol=1e-4, atol=1e-4)
    assert "vector<4xf32>" in str(module) and "vector<16xf32>" not in str(module)


def test_schedules_print_and_read_back():
    module, _, _ = scheduled(tensor(64, 100), plain, ("sum", f32), red=(1,))
    assert str(irc.parse(str(module))) == str(module)


def test_no_schedule_no_kernel():
    p = Program(tensor(4))
    p.finish(p.compute((4,), lambda c: read(c, p.args[0])))
    with pytest.raises(irc.InvalidIR, match="run the pass 'schedule' first"):
        PassManager.parse("form-kernels").run(p.module)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"collapse": [("i0", "i1")]}, "collapses the axes"),
        ({"outer": ["i7"]}, "outer axes"),
        ({"tile_axis": "i1"}, "tile"),
    ],
)
def test_schedules_that_do_not_fit_are_refused(changes, message):
    x = tensor(64, 100, strides=(128, 1))
    module, op, schedule = scheduled(x, plain, ("sum", f32), red=(1,))
    for name, value in changes.items():
        setattr(schedule, name, value)
    if "tile_axis" in changes:
        schedule.vector_axis = "i1"
    op.attributes["schedule"] = schedule.to_attribute()
    with pytest.raises(irc.InvalidIR, match=message):
        PassManager.parse("form-kernels").run(module)


REPEATED = """func.func @main(%x: ROW, %y: ROW) -> (ROW, ROW, ROW, ROW)
    attributes {level = "loop"} {
  %a = loop.compute par(i: 6, j: 40) -> map { %v = loop.read %x[i, j] : f32 loop.yield %v } : ROW
  %b = loop.compute par(i: 6, j: 40) -> map { %v = loop.read %a[i, j] : f32 loop.yield %v } : ROW
  %c = loop.compute par(i: 6, j: 40) -> map { %v = loop.read %b[i, j] : f32 loop.yield %v } : ROW
  %d = loop.compute par(i: 6, j: 40) -> map {
    %v = loop.read %y[5 - i, j] : f32 loop.yield %v } : ROW
  return %a, %b, %c, %d : ROW, ROW, ROW, ROW }"""


def test_what_is_equal_is_decided_once(monkeypatch):
    """A model's layers: other arrays are read, nothing else differs."""
    decided = []
    once = schedule.schedule_for_cpu

    def counted(op, *rest):
        decided.append(op)
        return once(op, *rest)

    monkeypatch.setattr(schedule, "schedule_for_cpu", counted)
    module = irc.parse(REPEATED.replace("ROW", "tensor<[6, 40] x f32>"))
    PassManager.parse("schedule{vector_bits=256}").run(module)
    a, b, c, d = [o for o in module.lookup("main").block.ops if isinstance(o, loop.ComputeOp)]
    assert decided == [a, d] and a.schedule is b.schedule is c.schedule is not None
