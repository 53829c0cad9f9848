"""Loop programs of gpu kernels of several computes: second loops, several spaces, padded rows."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
from case_registry import case, integer, random
from loop_programs import lone_reduce, number, softmax
from programs import Case, Program, reduce, scan, tensor

from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir import types as T
from irc.ir.core import Value


@case("own_par_beside_red")
def _own_par_beside_red() -> Case:
    """A group whose member reduces beside own par axes: combined point by point."""
    program = Program(tensor(3, 10, 6))

    def fill() -> list[Value]:
        total = program.compute(
            [3, 10, 6], [reduce("sum")], [tensor(3, 10)],
            lambda b, i: [b.read(program.args[0], i)], red=[2],
        ).results[0]  # fmt: skip

        def square(b: Any, i: Any) -> list[Value]:
            value = b.read(total, i)
            return [b.op("arith.mulf", value, value)]

        return [program.compute([3, 10], [loop.MAP], [tensor(3, 10)], square).results[0]]

    return Case(program.finish(program.group([3], [tensor(3, 10)], fill)), [random(3, 10, 6)])


@case("moments_beside_uneven_par", 1e-5)
def _moments_beside_uneven_par() -> Case:
    """Members with different own par axes: the reduction is a loop in each lane."""
    program = Program(tensor(3, 10, 6), tensor(3))

    def fill() -> list[Value]:
        results = program.compute(
            [3, 10, 6], [reduce("moments"), reduce("argmax"), reduce("logsumexp")],
            [tensor(3, 10), tensor(3, 10), tensor(3, 10, element=T.i64), tensor(3, 10),
             tensor(3, 10)],
            lambda b, i: [b.read(program.args[0], i)] * 3, red=[2],
        ).results  # fmt: skip
        other = program.compute(
            [3], [loop.MAP], [tensor(3)], lambda b, i: [b.read(program.args[1], i)]
        ).results[0]
        return [*results, other]

    kinds = [tensor(3, 10), tensor(3, 10), tensor(3, 10, element=T.i64), tensor(3, 10),
             tensor(3, 10), tensor(3)]  # fmt: skip
    return Case(program.finish(program.group([3], kinds, fill)), [random(3, 10, 6), random(3)])


def scaled_scan(n: int, m: int, combiner: str) -> Program:
    """A scan whose only reader is a map in the same group."""
    program = Program(tensor(n, m))

    def fill() -> list[Value]:
        total = program.compute(
            [n, m], [scan(combiner)], [tensor(n, m)],
            lambda b, i: [b.read(program.args[0], i)], red=[1], kind="scan",
        ).results[0]  # fmt: skip

        def twice(b: Any, i: Any) -> list[Value]:
            return [b.op("arith.mulf", b.read(total, i), number(b, 2.0))]

        return [program.compute([n, m], [loop.MAP], [tensor(n, m)], twice).results[0]]

    return program.finish(program.group([n], [tensor(n, m)], fill))


@case("scan_then_map", 1e-5)
def _scan_then_map() -> Case:
    return Case(scaled_scan(4, 30, "sum"), [random(4, 30)])


@case("scan_then_map_looped", 1e-5)
def _scan_then_map_looped() -> Case:
    return Case(scaled_scan(4, 30, "sum"), [random(4, 30)], r_block=integer(8))


def reduced_twice(n: int, m: int, combiners: tuple[str, ...]) -> Program:
    """The sum of each row, and what `combiners` give for the row less its sum."""
    program = Program(tensor(n, m))
    kinds = [
        tensor(n, element=T.i64 if c.startswith("arg") else T.f32)
        for c in combiners
        for _ in range(loop.COMBINER_RESULTS[c])
    ]

    def fill() -> list[Value]:
        total = program.compute(
            [n, m], [reduce("sum")], [tensor(n)], lambda b, i: [b.read(program.args[0], i)], red=[1]
        ).results[0]

        def less(b: Any, i: Any) -> list[Value]:
            gap = b.op("arith.subf", b.read(program.args[0], i), b.read(total, i[:1]))
            return [gap] * len(combiners)

        outputs = [reduce(c) for c in combiners]
        return [total, *program.compute([n, m], outputs, kinds, less, red=[1]).results]

    return program.finish(program.group([n], [tensor(n), *kinds], fill))


@case("second_loop_backwards", 1e-5)
def _second_loop_backwards() -> Case:
    program = reduced_twice(3, 30, ("prod", "min", "max", "logsumexp"))
    return Case(program, [random(3, 30) / 8], r_block=integer(8))


@case("second_loop_of_moments", 1e-5)
def _second_loop_of_moments() -> Case:
    return Case(reduced_twice(3, 30, ("moments",)), [random(3, 30)], r_block=integer(8))


@case("second_loop_of_argmax", 1e-5)
def _second_loop_of_argmax() -> Case:
    content = random(3, 30)
    content[1, 5] = content[1, 20] = math.nan
    content[2] = 1.0
    return Case(reduced_twice(3, 30, ("argmax", "argmin")), [content], r_block=integer(8))


@case("logcumsumexp_looped", 1e-5)
def _logcumsumexp_looped() -> Case:
    content = random(3, 30)
    content[1, :5] = -math.inf
    return Case(scaled_scan(3, 30, "logsumexp"), [content], r_block=integer(8))


@case("unsigned_extremes")
def _unsigned_extremes() -> Case:
    outputs = [reduce("max", T.ui8), reduce("min", T.ui8), reduce("argmax", T.ui8)]
    types = [tensor(5, element=T.ui8), tensor(5, element=T.ui8), tensor(5, element=T.i64)]
    program = lone_reduce([5, 20], [1], outputs, types, T.ui8)
    return Case(program, [torch.randint(0, 256, (5, 20), dtype=torch.uint8)])


def three_spaces() -> Program:
    """A group whose members have own axes of three lengths, one of a single point."""
    program = Program(tensor(3, 10), tensor(3, 1), tensor(3, 40))

    def fill() -> list[Value]:
        sums = [
            program.compute(
                [3, m], [reduce("sum")], [tensor(3)],
                lambda b, i, k=k: [b.read(program.args[k], i)], red=[1],
            ).results[0]
            for k, m in ((0, 10), (1, 1), (2, 40))
        ]  # fmt: skip

        def total(b: Any, i: Any) -> list[Value]:
            value = b.read(program.args[0], i)
            for array in sums[1:]:
                value = b.op("arith.addf", value, b.read(array, i[:1]))
            return [value]

        return [program.compute([3, 10], [loop.MAP], [tensor(3, 10)], total).results[0], *sums]

    kinds = [tensor(3, 10), tensor(3), tensor(3), tensor(3)]
    return program.finish(program.group([3], kinds, fill))


@case("three_spaces", 1e-5)
def _three_spaces() -> Case:
    args = [random(3, 10), random(3, 1, seed=1), random(3, 40, seed=2)]
    return Case(three_spaces(), args, x_block=integer(2))


@case("three_spaces_looped", 1e-5)
def _three_spaces_looped() -> Case:
    args = [random(3, 10), random(3, 1, seed=1), random(3, 40, seed=2)]
    return Case(three_spaces(), args, r_block=integer(8))


@case("softmax_padded_rows")
def _softmax_padded_rows() -> Case:
    return _in_padded_rows(T.f32, torch.float32)


@case("softmax_padded_rows_looped")
def _softmax_padded_rows_looped() -> Case:
    return _in_padded_rows(T.f32, torch.float32, x_block=integer(1), r_block=integer(64))


@case("softmax_padded_rows_bf16", 1e-2)
def _softmax_padded_rows_bf16() -> Case:
    return _in_padded_rows(T.bf16, torch.bfloat16)


def _in_padded_rows(element: T.Type, dtype: torch.dtype, **schedule: A.Attribute) -> Case:
    """Rows of 203 elements, each at a multiple of 16 bytes."""
    x = torch.full((5, 208), math.nan).to(dtype)[:, :203].copy_(random(5, 203))
    return Case(softmax(5, 203, element, (208, 1), (208, 1)), [x], **schedule)


@case("softmax_columns")
def _softmax_columns() -> Case:
    return Case(softmax(50, 20, T.f32, (1, 50), (1, 50)), [random(20, 50).t()])


@case("softmax_columns_looped")
def _softmax_columns_looped() -> Case:
    program = softmax(50, 300, T.f32, (1, 50), (1, 50))
    return Case(program, [random(300, 50).t()], x_block=integer(16), r_block=integer(32))


@case("softmax_turned", 1e-2)
def _softmax_turned() -> Case:
    program = softmax(50, 90, T.bf16, (90, 1), (1, 50))
    return Case(program, [random(50, 90, dtype=torch.bfloat16)])
