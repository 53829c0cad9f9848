"""Fused loop-level programs of common kernels, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from programs import Program, axes_of, reduce, scan, scatter, tensor

from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.core import Value
from irc.ir.symbols import symbol


def number(body: Any, value: float) -> Value:
    return body.constant(value, T.f32)


def read(body: Any, source: Value, indices: Sequence[Any]) -> Value:
    """A read, widened to f32 where it is a 16-bit float."""
    value = body.read(source, indices)
    kind: Any = value.type
    if isinstance(kind, T.FloatType) and kind.width == 16:
        return body.op("arith.extf", value, type=T.f32)
    return value


def narrowed(body: Any, value: Value, element: T.Type) -> Value:
    return value if element is T.f32 else body.op("arith.truncf", value, type=element)


def pointwise(n: Any, m: Any, element: T.Type = T.f32) -> Program:
    """gelu."""
    program = Program(tensor(n, m, element=element))

    def fill(body: Any, axes: Any) -> list[Value]:
        x = read(body, program.args[0], axes)
        half = body.op("arith.mulf", x, number(body, 0.5))
        inner = body.op("math.erf", body.op("arith.mulf", x, number(body, 0.7071067811865476)))
        value = body.op("arith.mulf", half, body.op("arith.addf", inner, number(body, 1.0)))
        return [narrowed(body, value, element)]

    return program.finish(
        program.compute([n, m], [loop.MAP], [tensor(n, m, element=element)], fill)
    )


def softmax(
    n: Any,
    m: Any,
    element: T.Type = T.f32,
    read_strides: Sequence[int] | None = None,
    written_strides: Sequence[int] | None = None,
) -> Program:
    """max, sum of exponentials and quotient in one group."""
    rows = tensor(n, m, element=element, strides=written_strides)
    program = Program(tensor(n, m, element=element, strides=read_strides))
    x = program.args[0]

    def fill() -> list[Value]:
        top = program.compute(
            [n, m], [reduce("max")], [tensor(n)], lambda b, i: [read(b, x, i)], red=[1]
        ).results[0]

        def power(b: Any, i: Any) -> Value:
            gap = b.op("arith.subf", read(b, x, i), b.read(top, i[:1]))
            return b.op("math.exp", gap, nonpositive=A.UNIT)

        total = program.compute(
            [n, m], [reduce("sum")], [tensor(n)], lambda b, i: [power(b, i)], red=[1]
        ).results[0]

        def quotient(b: Any, i: Any) -> list[Value]:
            return [narrowed(b, b.op("arith.divf", power(b, i), b.read(total, i[:1])), element)]

        return [program.compute([n, m], [loop.MAP], [rows], quotient).results[0]]

    return program.finish(program.group([n], [rows], fill))


def summed_powers_of(n: int, m: int, element: T.Type = T.f32) -> Program:
    """max and the sum of powers below it, as a cross entropy has them, of each row."""
    program = Program(tensor(n, m, element=element))
    x = program.args[0]

    def fill() -> list[Value]:
        top = program.compute(
            [n, m], [reduce("max")], [tensor(n)], lambda b, i: [read(b, x, i)], red=[1]
        ).results[0]

        def power(b: Any, i: Any) -> list[Value]:
            gap = b.op("arith.subf", read(b, x, i), b.read(top, i[:1]))
            return [b.op("math.exp", gap, nonpositive=A.UNIT)]

        total = program.compute([n, m], [reduce("sum")], [tensor(n)], power, red=[1]).results[0]
        return [top, total]

    return program.finish(program.group([n], [tensor(n), tensor(n)], fill))


def layer_norm(n: Any, m: int, element: T.Type = T.f32) -> Program:
    """moments and the normalized rows, with scale and shift; mean and m2 are stored too."""
    weights = tensor(m, element=element)
    program = Program(tensor(n, m, element=element), weights, weights)
    x, gamma, beta = program.args
    kinds = [tensor(n, m, element=element), tensor(n), tensor(n)]

    def fill() -> list[Value]:
        mean, square = program.compute(
            [n, m], [reduce("moments")], kinds[1:], lambda b, i: [read(b, x, i)], red=[1]
        ).results

        def normalized(b: Any, i: Any) -> list[Value]:
            gap = b.op("arith.subf", read(b, x, i), b.read(mean, i[:1]))
            variance = b.op("arith.divf", b.read(square, i[:1]), number(b, m))
            inverse = b.op("math.rsqrt", b.op("arith.addf", variance, number(b, 1e-5)))
            value = b.op("arith.mulf", b.op("arith.mulf", gap, inverse), read(b, gamma, i[1:]))
            return [narrowed(b, b.op("arith.addf", value, read(b, beta, i[1:])), element)]

        out = program.compute([n, m], [loop.MAP], [kinds[0]], normalized).results[0]
        return [out, mean, square]

    return program.finish(program.group([n], kinds, fill))


def layer_norm_backward(n: int, m: int, element: T.Type = T.f32) -> Program:
    """The gradient of the input of a layer norm: two sums a row, then the rows."""
    kind = tensor(n, m, element=element)
    program = Program(kind, kind, tensor(m, element=element), tensor(n), tensor(n))
    grad, x, gamma, mean, rstd = program.args

    def parts(b: Any, i: Any) -> tuple[Value, Value]:
        scaled = b.op("arith.mulf", read(b, grad, i), read(b, gamma, i[1:]))
        gap = b.op("arith.subf", read(b, x, i), b.read(mean, i[:1]))
        return scaled, b.op("arith.mulf", gap, b.read(rstd, i[:1]))

    def fill() -> list[Value]:
        def sums(b: Any, i: Any) -> list[Value]:
            scaled, hat = parts(b, i)
            return [scaled, b.op("arith.mulf", scaled, hat)]

        first, second = program.compute(
            [n, m], [reduce("sum"), reduce("sum")], [tensor(n), tensor(n)], sums, red=[1]
        ).results

        def gradient(b: Any, i: Any) -> list[Value]:
            scaled, hat = parts(b, i)
            share = number(b, 1 / m)
            middle = b.op("arith.mulf", b.read(first, i[:1]), share)
            bent = b.op("arith.mulf", hat, b.op("arith.mulf", b.read(second, i[:1]), share))
            value = b.op("arith.subf", b.op("arith.subf", scaled, middle), bent)
            return [narrowed(b, b.op("arith.mulf", value, b.read(rstd, i[:1])), element)]

        return [program.compute([n, m], [loop.MAP], [kind], gradient).results[0]]

    return program.finish(program.group([n], [kind], fill))


def lone_reduce(
    shape: Sequence[Any], red: Sequence[int], outputs: Sequence[loop.ResultAttr],
    types: Sequence[Any], element: T.Type = T.f32,
) -> Program:  # fmt: skip
    program = Program(tensor(*shape, element=element))

    def fill(body: Any, axes: Any) -> list[Value]:
        return [read(body, program.args[0], axes)] * len(outputs)

    return program.finish(program.compute(list(shape), outputs, types, fill, red=red))


ALL = ("sum", "prod", "min", "max", "argmin", "argmax", "moments", "logsumexp")


def every_reduction(n: int, m: int, red: int) -> Program:
    kept = n if red else m
    outputs = [reduce(c) for c in ALL]
    types = [
        tensor(kept, element=T.i64 if c.startswith("arg") else T.f32)
        for c in ALL
        for _ in range(loop.COMBINER_RESULTS[c])
    ]
    return lone_reduce([n, m], [red], outputs, types)


def scanned(n: int, m: int, combiner: str, kind: T.Type = T.f32, axis: int = 1) -> Program:
    program = Program(tensor(n, m, element=kind))
    op = program.compute(
        [n, m],
        [scan(combiner, kind)],
        [tensor(n, m, element=kind)],
        lambda b, i: [b.read(program.args[0], i)],
        red=[axis],
        kind="scan",
    )
    return program.finish(op)


def transpose_add(n: Any, m: Any, *outer: int) -> Program:
    program = Program(tensor(*outer, n, m), tensor(*outer, m, n))

    def fill(body: Any, axes: Any) -> list[Value]:
        *rest, i, j = axes
        flipped = body.read(program.args[0], [*rest, j, i])
        return [body.op("arith.addf", flipped, body.read(program.args[1], axes))]

    extents = [*outer, m, n]
    return program.finish(program.compute(extents, [loop.MAP], [tensor(*extents)], fill))


def scattered(combiner: str, element: T.Type, rows: int = 7, count: int = 30) -> Program:
    """out[index[i], j] combined with x[i, j], where index[i] is not negative."""
    program = Program(
        tensor(rows, 4, element=element), tensor(count, element=T.i64),
        tensor(count, 4, element=element),
    )  # fmt: skip
    init, index, x = program.args

    def fill(body: Any, axes: Any) -> tuple[list[Value], list[Value], list[Value]]:
        row = body.read(index, axes[:1])
        zero = body.constant(0, T.i64)
        keep = body.compare("sge", row, zero)
        return [body.read(x, axes)], [row], [keep]

    indices = [symbol("_0"), axes_of(2)[1]]
    op = program.compute(
        [count, 4], [scatter(combiner, indices)], [tensor(rows, 4, element=element)], fill,
        inits=[init],
    )  # fmt: skip
    return program.finish(op)
