"""Real kernels written by hand: softmax, layer norm, gelu, transpose, cumsum, scatter-add.

Each function builds one kernel for a target's registers, as form-kernels would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from irc.dialects import kernel
from irc.ir import types as T
from irc.ir.core import Value
from irc.target.cpu import TargetFeatures
from tests.codegen.llvm.kernel_programs import Program, vector

ACCUMULATORS = 4


def _row_loops(
    p: Program, columns: int, lanes: int, initial: Sequence[float], step: Callable[..., list[Value]]
) -> list[Value]:
    """`step(offset, accumulators, mask)` over a row: several vectors at a time with accumulators
    of their own, then single vectors, then a masked tail. Gives all the accumulators."""
    kind = vector(T.f32, lanes)
    kinds = len(initial)
    block = ACCUMULATORS * lanes
    start = [p.constant(v, kind) for v in initial] * ACCUMULATORS

    def wide(j: Value, *carried: Value) -> list[Value]:
        following: list[Value] = []
        for chain in range(ACCUMULATORS):
            at = p.op("arith.addi", j, p.constant(chain * lanes))
            following += step(at, carried[chain * kinds : (chain + 1) * kinds], None)
        return following

    def narrow(j: Value, *carried: Value) -> list[Value]:
        return [*step(j, carried[:kinds], None), *carried[kinds:]]

    whole, vectors = columns // block * block, columns // lanes * lanes
    carried = p.loop(p.constant(0), p.constant(whole), block, start, wide)
    carried = p.loop(p.constant(whole), p.constant(vectors), lanes, carried, narrow)
    if vectors < columns:
        at = p.constant(vectors)
        mask = p.tail_mask(at, p.constant(columns), lanes)
        carried = [*step(at, carried[:kinds], mask), *carried[kinds:]]
    return carried


def _total(p: Program, carried: Sequence[Value], combiner: str, op: str) -> Value:
    total = carried[0]
    for value in carried[1:]:
        total = p.op(op, total, value)
    return p.op("kernel.reduce", [total], combiner=combiner, to=[T.f32])


def softmax(features: TargetFeatures, rows: int, columns: int) -> kernel.KernelFuncOp:
    """f32 [rows, columns] over the last dimension, three passes over a row in cache."""
    lanes = features.lanes(32)
    kind = vector(T.f32, lanes)
    p = Program("softmax", [T.f32, T.f32], 1, rows)
    x, y = p.pointers

    def row(i: Value) -> None:
        base = p.op("arith.muli", i, p.constant(columns))

        def at(j: Value) -> Value:
            return p.op("arith.addi", base, j)

        def peak(j: Value, carried: Sequence[Value], mask: Value | None) -> list[Value]:
            masks = [mask, p.constant(-math.inf, kind)] if mask is not None else []
            return [p.op("arith.maximumf", carried[0], p.load(x, at(j), kind, *masks))]

        top = _total(p, _row_loops(p, columns, lanes, [-math.inf], peak), "max", "arith.maximumf")
        tops = p.splat(top, lanes)

        def power(j: Value, carried: Sequence[Value], mask: Value | None) -> list[Value]:
            masks = [mask, p.constant(-math.inf, kind)] if mask is not None else []
            value = p.op("arith.subf", p.load(x, at(j), kind, *masks), tops)
            value = p.op("math.exp", value)
            p.store(value, y, at(j), *masks[:1])
            return [p.op("arith.addf", carried[0], value)]

        total = _total(p, _row_loops(p, columns, lanes, [0.0], power), "sum", "arith.addf")
        scale = p.splat(p.op("arith.divf", p.constant(1.0, T.f32), total), lanes)

        def divide(j: Value, carried: Sequence[Value], mask: Value | None) -> list[Value]:
            masks = [mask] if mask is not None else []
            p.store(p.op("arith.mulf", p.load(y, at(j), kind, *masks), scale), y, at(j), *masks)
            return []

        _row_loops(p, columns, lanes, [], divide)

    p.loop(p.begin, p.end, 1, [], row)
    return p.done()


def layer_norm(features: TargetFeatures, rows: int, columns: int) -> kernel.KernelFuncOp:
    """f32 [rows, columns] over the last dimension, with weight and bias, eps 1e-5."""
    lanes = features.lanes(32)
    kind = vector(T.f32, lanes)
    p = Program("layer_norm", [T.f32] * 4, 1, rows)
    x, weight, bias, y = p.pointers
    count = p.constant(1.0 / columns, T.f32)

    def row(i: Value) -> None:
        base = p.op("arith.muli", i, p.constant(columns))

        def load(j: Value, mask: Value | None, pointer: Value = x) -> Value:
            at = p.op("arith.addi", base, j) if pointer is x else j
            return p.load(pointer, at, kind, *([mask] if mask is not None else []))

        def add(j: Value, carried: Sequence[Value], mask: Value | None) -> list[Value]:
            return [p.op("arith.addf", carried[0], load(j, mask))]

        total = _total(p, _row_loops(p, columns, lanes, [0.0], add), "sum", "arith.addf")
        mean = p.splat(p.op("arith.mulf", total, count), lanes)

        def square(j: Value, carried: Sequence[Value], mask: Value | None) -> list[Value]:
            value = p.op("arith.subf", load(j, mask), mean)
            if mask is not None:
                value = p.op("arith.select", mask, value, p.constant(0.0, kind))
            return [p.op("math.fma", value, value, carried[0])]

        m2 = _total(p, _row_loops(p, columns, lanes, [0.0], square), "sum", "arith.addf")
        variance = p.op("arith.mulf", m2, count)
        variance = p.op("arith.addf", variance, p.constant(1e-5, T.f32))
        scale = p.splat(p.op("math.rsqrt", variance), lanes)

        def write(j: Value, carried: Sequence[Value], mask: Value | None) -> list[Value]:
            value = p.op("arith.mulf", p.op("arith.subf", load(j, mask), mean), scale)
            value = p.op("arith.mulf", value, load(j, mask, weight))
            value = p.op("arith.addf", value, load(j, mask, bias))
            p.store(value, y, p.op("arith.addi", base, j), *([mask] if mask is not None else []))
            return []

        _row_loops(p, columns, lanes, [], write)

    p.loop(p.begin, p.end, 1, [], row)
    return p.done()


def gelu_bf16(features: TargetFeatures, count: int) -> kernel.KernelFuncOp:
    """Exact gelu of bf16, computed in f32."""
    lanes = features.lanes(32)
    wide, narrow = vector(T.f32, lanes), vector(T.bf16, lanes)
    p = Program("gelu_bf16", [T.bf16, T.bf16], 1, count)

    def compute(i: Value, *masks: Value) -> None:
        x = p.op("arith.extf", p.load(p.pointers[0], i, narrow, *masks), to=wide)
        erf = p.op("math.erf", p.op("arith.mulf", x, p.constant(math.sqrt(0.5), wide)))
        half = p.op("arith.mulf", x, p.constant(0.5, wide))
        y = p.op("arith.mulf", half, p.op("arith.addf", erf, p.constant(1.0, wide)))
        p.store(p.op("arith.truncf", y, to=narrow), p.pointers[1], i, *masks)

    whole = p.op("arith.subi", p.end, p.op(
        "arith.remsi", p.op("arith.subi", p.end, p.begin), p.constant(lanes)))  # fmt: skip
    p.loop(p.begin, whole, lanes, [], compute, unroll=2)
    p.loop(whole, p.end, lanes, [], lambda i: compute(i, p.tail_mask(i, p.end, lanes)))
    return p.done()


def transpose(features: TargetFeatures, rows: int, columns: int) -> kernel.KernelFuncOp:
    """f32 [rows, columns] to [columns, rows], both multiples of the lanes; by bands of rows."""
    size = features.lanes(32)
    row, tile = vector(T.f32, size), T.VectorType((size, size), T.f32)
    p = Program("transpose", [T.f32, T.f32], 1, rows // size)

    def band(b: Value) -> None:
        top = p.op("arith.muli", b, p.constant(size))

        def at(left: Value) -> None:
            value = p.constant(0.0, tile)
            base = p.op("arith.addi", p.op("arith.muli", top, p.constant(columns)), left)
            for r in range(size):
                place = p.op("arith.addi", base, p.constant(r * columns))
                loaded = p.load(p.pointers[0], place, row)
                value = p.op("kernel.insert", loaded, value, p.constant(r), to=tile)
            value = p.op("kernel.transpose", value, to=tile)
            base = p.op("arith.addi", p.op("arith.muli", left, p.constant(rows)), top)
            for r in range(size):
                line = p.op("kernel.extract", value, p.constant(r), to=row)
                p.store(line, p.pointers[1], p.op("arith.addi", base, p.constant(r * rows)))

        p.loop(p.constant(0), p.constant(columns), size, [], at)

    p.loop(p.begin, p.end, 1, [], band)
    return p.done()


def cumsum(features: TargetFeatures, rows: int, columns: int) -> kernel.KernelFuncOp:
    """f32 [rows, columns] along the last dimension; the carry is a vector of the last sum."""
    lanes = features.lanes(32)
    kind = vector(T.f32, lanes)
    p = Program("cumsum", [T.f32, T.f32], 1, rows)

    def row(i: Value) -> None:
        base = p.op("arith.muli", i, p.constant(columns))

        def at(j: Value, carry: Value) -> list[Value]:
            place = p.op("arith.addi", base, j)
            mask = p.tail_mask(j, p.constant(columns), lanes)
            masks = [mask] if columns % lanes else []
            value = p.load(p.pointers[0], place, kind, *masks)
            value = p.op("kernel.scan", [value], combiner="sum", to=[kind])
            value = p.op("arith.addf", value, carry)
            p.store(value, p.pointers[1], place, *masks)
            last = p.op("kernel.extract", value, p.constant(lanes - 1), to=T.f32)
            return [p.splat(last, lanes)]

        p.loop(p.constant(0), p.constant(columns), lanes, [p.constant(0.0, kind)], at)

    p.loop(p.begin, p.end, 1, [], row)
    return p.done()


def scatter_add(features: TargetFeatures, count: int) -> kernel.KernelFuncOp:
    """output[index[i]] += value[i], one thread; `count` a multiple of the lanes."""
    lanes = features.lanes(64)
    p = Program("scatter_add", [T.f32, T.i64, T.f32], 1, count)

    def at(i: Value) -> None:
        offsets = p.op("arith.index_cast", p.load(p.pointers[1], i, vector(T.i64, lanes)),
                       to=vector(T.index, lanes))  # fmt: skip
        value = p.load(p.pointers[0], i, vector(T.f32, lanes))
        p.op("kernel.scatter", value, p.pointers[2], offsets, combiner="sum")

    p.loop(p.begin, p.end, lanes, [], at)
    return p.done()


def axpy(features: TargetFeatures, count: int) -> kernel.KernelFuncOp:
    """y = 2 x + z: what memory bandwidth allows."""
    lanes = features.lanes(32)
    kind = vector(T.f32, lanes)
    p = Program("axpy", [T.f32, T.f32, T.f32], 1, count)

    def at(i: Value) -> None:
        x, z = (p.load(q, i, kind) for q in p.pointers[:2])
        product = p.op("arith.mulf", x, p.constant(2.0, kind))
        p.store(p.op("arith.addf", product, z), p.pointers[2], i)

    p.loop(p.begin, p.end, lanes, [], at, unroll=4)
    return p.done()
