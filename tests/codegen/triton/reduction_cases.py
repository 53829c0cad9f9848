"""Loop programs of gpu kernels that reduce and scan: elements, axes, sizes of 0."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from case_registry import case, integer, random
from loop_programs import every_reduction, lone_reduce, pointwise, scanned
from programs import Case, Program, reduce, tensor

from irc.dialects import loop
from irc.ir import types as T
from irc.ir.symbols import symbol


def special(n: int, m: int) -> torch.Tensor:
    """Rows with NaN, infinities, ties and equal elements."""
    x = (random(n, m) * 2).round() / 2
    x[0, m // 2] = math.nan
    x[0, m // 3] = math.nan
    x[1, 3] = math.inf
    x[2, :] = -math.inf
    x[3, :] = 1.0
    return x


@case("reductions", 1e-5)
def _reductions() -> Case:
    return Case(every_reduction(6, 37, 1), [special(6, 37)])


@case("reductions_looped", 1e-5)
def _reductions_looped() -> Case:
    return Case(every_reduction(6, 37, 1), [special(6, 37)], r_block=integer(8))


@case("reductions_leading", 1e-5)
def _reductions_leading() -> Case:
    return Case(every_reduction(37, 6, 0), [special(6, 37).t().contiguous()])


@case("reductions_leading_looped", 1e-5)
def _reductions_leading_looped() -> Case:
    args = [special(6, 37).t().contiguous()]
    return Case(every_reduction(37, 6, 0), args, x_block=integer(4), r_block=integer(8))


@case("integer_reductions")
def _integer_reductions() -> Case:
    names = ("sum", "min", "max", "xor", "any", "all", "prod")
    outputs = [reduce(c, T.i32) for c in names]
    program = lone_reduce([5, 20], [1], outputs, [tensor(5, element=T.i32)] * len(names), T.i32)
    return Case(program, [torch.randint(-9, 9, (5, 20), dtype=torch.int32)])


@case("bool_reductions")
def _bool_reductions() -> Case:
    outputs = [reduce("any", T.i1), reduce("all", T.i1), reduce("sum", T.i64)]
    types = [tensor(4, element=T.i1), tensor(4, element=T.i1), tensor(4, element=T.i64)]
    program = lone_reduce([4, 12], [1], outputs, types, T.i1)
    content = torch.rand(4, 12) > 0.6
    content[1], content[2] = True, False
    return Case(program, [content])


@case("two_red_axes")
def _two_red_axes() -> Case:
    outputs = [reduce("sum"), reduce("argmax")]
    types = [tensor(4), tensor(4, element=T.i64)]
    return Case(lone_reduce([6, 4, 5], [0, 2], outputs, types), [random(6, 4, 5)])


@case("empty_reduction")
def _empty_reduction() -> Case:
    outputs = [reduce("sum"), reduce("max"), reduce("moments")]
    program = lone_reduce([3, symbol("s0")], [1], outputs, [tensor(3)] * 4)
    program.symbols["s0"] = (0, 1)
    return Case(program, [random(3, 0)])


@case("empty_columns")
def _empty_columns() -> Case:
    program = lone_reduce([0, 40], [0], [reduce("sum"), reduce("min")], [tensor(40)] * 2)
    return Case(program, [random(0, 40)])


@case("empty_rows")
def _empty_rows() -> Case:
    program = lone_reduce([5, 0], [1], [reduce("sum"), reduce("max")], [tensor(5)] * 2)
    return Case(program, [random(5, 0)])


@case("no_rows")
def _no_rows() -> Case:
    return Case(pointwise(0, 7), [random(0, 7)])


@case("no_planes")
def _no_planes() -> Case:
    return Case(lone_reduce([3, 0, 4], [2], [reduce("sum")], [tensor(3, 0)]), [random(3, 0, 4)])


def columns_first(n: int, m: int, *outer: int) -> Program:
    """An array whose columns are contiguous, copied with its strides."""
    shape = [*outer, n, m]
    strides = [*(n * m * (k + 1) for k in range(len(outer))), 1, n]
    kind = tensor(*shape, strides=strides)
    program = Program(kind)
    op = program.compute(
        shape, [loop.MAP], [kind], lambda b, i: [b.op("math.absf", b.read(program.args[0], i))]
    )
    return program.finish(op)


@case("columns_first")
def _columns_first() -> Case:
    return Case(columns_first(33, 50), [random(50, 33).t()])


@case("planes_of_columns_first")
def _planes_of_columns_first() -> Case:
    return Case(columns_first(33, 50, 3), [random(3, 50, 33).mT])


@case("cumsum", 1e-5)
def _cumsum() -> Case:
    return Case(scanned(4, 50, "sum"), [random(4, 50)])


@case("cumsum_looped", 1e-5)
def _cumsum_looped() -> Case:
    return Case(scanned(4, 50, "sum"), [random(4, 50)], r_block=integer(16))


@case("cumsum_leading", 1e-5)
def _cumsum_leading() -> Case:
    return Case(scanned(20, 6, "sum", axis=0), [random(20, 6)], x_block=integer(4))


@case("cummax_looped")
def _cummax_looped() -> Case:
    content = random(2, 40)
    content[1, 20] = math.nan
    return Case(scanned(2, 40, "max"), [content], r_block=integer(16))


@case("cumprod_integers")
def _cumprod_integers() -> Case:
    content = torch.randint(-3, 4, (3, 20))
    return Case(scanned(3, 20, "prod", T.i64), [content])
