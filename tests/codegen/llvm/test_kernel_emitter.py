"""Compiled control flow against the interpreter; the text and the errors of the emitter."""

from __future__ import annotations

import pytest
import torch

from irc.codegen.llvm.kernel_emitter import emit_kernels, emit_text
from irc.dialects import kernel
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.diagnostics import InvalidIR
from tests.codegen.llvm.kernel_checks import (
    HOST,
    check_against_interpreter,
    map_kernel,
    random_values,
)
from tests.codegen.llvm.kernel_programs import Program, vector


@pytest.mark.parametrize("unroll", [None, 2, 4])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 9, 16])
@pytest.mark.parametrize("static", [False, True])
def test_loops_carry_values(unroll, count, static):
    p = Program("carry", [T.f32, T.f32], 1, count)
    lower = p.constant(0) if static else p.begin
    upper = p.constant(count) if static else p.end
    start = [p.constant(0.0, T.f32), p.constant(1.0, T.f32)]

    def at(i, total, previous):
        x = p.load(p.pointers[0], i, T.f32)
        return [p.op("arith.addf", p.op("arith.mulf", total, previous), x), x]

    total, previous = p.loop(lower, upper, 1, start, at, unroll)
    p.store(total, p.pointers[1], p.constant(0))
    p.store(previous, p.pointers[1], p.constant(1))
    check_against_interpreter("host", p.done(), [random_values(T.f32, 64, 0)[16:48]],
                              torch.zeros(2), tolerance=1e-6)  # fmt: skip


def test_nested_loops_and_branches():
    p = Program("nested", [T.i64, T.i64], 1, 12)

    def row(i):
        def column(j, total):
            even = p.op("arith.cmpi", p.op("arith.remsi", j, p.constant(2)), p.constant(0),
                        predicate="eq")  # fmt: skip
            x = p.load(p.pointers[0], p.op("arith.addi", i, j), T.i64)
            return p.branch(
                even, [T.i64], lambda: [p.op("arith.addi", total, x)],
                lambda: [p.op("arith.subi", total, p.op("arith.muli", x, x))],
            )  # fmt: skip

        total = p.loop(p.constant(0), i, 1, [p.constant(0, T.i64)], column, 2)
        p.store(total[0], p.pointers[1], i)

    p.loop(p.begin, p.end, 1, [], row)
    x = torch.randint(-50, 50, (64,), generator=torch.Generator().manual_seed(0))
    check_against_interpreter("host", p.done(), [x], torch.zeros(12, dtype=torch.int64))


def test_constants_of_many_lanes():
    data = torch.arange(16, dtype=torch.float32)
    p = Program("dense", [T.f32], 1, 1)
    kind = vector(T.f32, 16)
    attr = A.DenseAttr(kind, data.numpy().tobytes())
    p.store(p.op("arith.constant", value=attr, to=kind), p.pointers[0], p.constant(0))
    check_against_interpreter("host", p.done(), [], torch.zeros(16))


# -- text and errors


def add_one() -> kernel.KernelFuncOp:
    return map_kernel("add_one", [T.f32, T.f32], 16, lambda p, x: p.op(
        "arith.addf", x, p.constant(1.0, x.type)))  # fmt: skip


def test_arrays_are_apart_unless_they_may_be_one():
    assert "ptr noalias readonly %a0, ptr noalias %a1" in emit_kernels([add_one()], HOST)
    p = Program("same", [T.f32, T.f32], 1, 1, inplace=A.DenseIntsAttr([0, 1]))
    assert "noalias" not in emit_kernels([p.done()], HOST)


def test_text_for_people():
    assert "fadd contract <16 x float>" in emit_text([add_one()], HOST, "llvm")
    assert "add_one:" in emit_text([add_one()], HOST, "asm")


def test_what_a_cpu_cannot_do_is_refused():
    p = Program("gpu_only", [T.f32], 1, 1)
    p.op("kernel.program_id")
    with pytest.raises(InvalidIR, match="kernel.program_id"):
        emit_kernels([p.done()], HOST)
    wide = T.IntegerType(128)
    p = Program("wide", [wide], 1, 1)
    p.load(p.pointers[0], p.begin, wide)
    with pytest.raises(InvalidIR, match="i128"):
        emit_kernels([p.done()], HOST)
    with pytest.raises(InvalidIR, match="name"):
        emit_kernels([Program('a"b', [T.f32], 1, 1).done()], HOST)


@pytest.mark.fault("V20")
@pytest.mark.parametrize("unroll", [None, 2])
def test_long_blocks_are_cut(monkeypatch, unroll):
    """Wherever a block is cut, loops inside of loops carry the same values."""

    def kernel() -> Program:
        p = Program("cut", [T.f32, T.f32], 1, 3)

        def row(i, total):
            def column(j, inner):
                x = p.load(p.pointers[0], p.op("arith.addi", i, j), T.f32)
                return [p.op("arith.addf", p.op("arith.mulf", inner, x), total)]

            (inner,) = p.loop(p.constant(0), p.constant(6), 1, [total], column, unroll)
            return [p.op("arith.subf", inner, total)]

        start = p.constant(1.0, T.f32)
        (total,) = p.loop(p.begin, p.end, 1, [start], row, None)
        p.store(total, p.pointers[1], p.constant(0))
        return p

    values = random_values(T.f32, 64, 0)[16:48]
    whole = emit_kernels([kernel().done()], HOST)
    for longest in (0, 1, 3):
        monkeypatch.setattr("irc.codegen.llvm.kernel_writer.LONGEST_BLOCK", longest)
        text = emit_kernels([kernel().done()], HOST)
        assert "cut" in text and len(text.splitlines()) > len(whole.splitlines())
        check_against_interpreter("host", kernel().done(), [values], torch.zeros(1),
                                  tolerance=1e-6)  # fmt: skip
