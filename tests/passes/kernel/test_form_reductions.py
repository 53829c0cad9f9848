"""Reductions of every combiner along every axis, scans and scatters."""

from __future__ import annotations

import math

import pytest
import torch

from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir.symbols import symbol
from irc.ir.types import bf16, f32, f64, i1, i8, i32, i64, ui8
from irc.passes.common.bodies import axis
from tests.passes.kernel.programs import Program, check, random_input, read, tensor

I0, I1, I2 = axis(0), axis(1), axis(2)
FLOAT_COMBINERS = ["sum", "prod", "min", "max", "argmin", "argmax", "moments", "logsumexp"]
SHAPES = [(3, 700), (65, 40), (5, 3)]


def reduction(type_, combiner, red, accumulator=None, extents=None):
    extents = extents or type_.shape

    def make():
        p = Program(type_)
        made = p.compute(
            extents,
            lambda c: read(c, p.args[0]),
            (combiner, accumulator or type_.element),
            red=red,
        )
        return p.finish(*(made if isinstance(made, tuple) else (made,)))

    return make


@pytest.mark.parametrize("combiner", FLOAT_COMBINERS)
@pytest.mark.parametrize("red", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_float_reductions(combiner, red, shape):
    x = tensor(*shape)
    check(reduction(x, combiner, red), [random_input(x, {})], native=shape == (65, 40))


@pytest.mark.parametrize("combiner", ["sum", "max", "argmax", "moments"])
@pytest.mark.parametrize("red", [(0, 2), (1,), (0, 1), (1, 2)], ids=str)
def test_several_axes(combiner, red):
    x = tensor(4, 9, 21)
    check(reduction(x, combiner, red), [random_input(x, {})], native=red == (0, 2))


@pytest.mark.parametrize("combiner", ["max", "min", "argmax", "argmin", "sum", "logsumexp"])
@pytest.mark.parametrize("red", [(0,), (1,)])
def test_nan_and_infinity(combiner, red):
    x = torch.randn(20, 33)
    x[3, 7] = math.nan
    x[3, 9] = math.nan
    x[5, 1] = math.inf
    x[6] = -math.inf
    x[:, 30] = -math.inf
    check(reduction(tensor(20, 33), combiner, red), [x])


@pytest.mark.parametrize("combiner", ["argmax", "argmin"])
@pytest.mark.parametrize("red", [(0,), (1,), (0, 1)])
def test_first_of_equal_values_wins(combiner, red):
    x = torch.randint(0, 3, (40, 70)).float()
    check(reduction(tensor(40, 70), combiner, red), [x])


@pytest.mark.parametrize("combiner", ["sum", "prod", "min", "max", "xor", "argmax"])
@pytest.mark.parametrize("element", [i8, i32, i64])
def test_integers(combiner, element):
    x = tensor(9, 50, e=element)
    check(reduction(x, combiner, (1,)), [random_input(x, {})])


@pytest.mark.parametrize("combiner", ["min", "max"])
@pytest.mark.parametrize("red", [(0,), (1,)])
def test_unsigned_extremes(combiner, red):
    x = torch.randint(0, 256, (9, 50), dtype=torch.uint8)
    check(reduction(tensor(9, 50, e=ui8), combiner, red), [x])


@pytest.mark.parametrize("combiner", ["any", "all"])
@pytest.mark.parametrize("red", [(0,), (1,)])
def test_flags(combiner, red):
    x = torch.rand(9, 50) < (0.05 if combiner == "any" else 0.95)
    check(reduction(tensor(9, 50, e=i1), combiner, red), [x])


@pytest.mark.parametrize("combiner", ["sum", "prod", "min", "max", "moments", "logsumexp"])
@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_empty(combiner, shape):
    x = tensor(*shape)
    check(reduction(x, combiner, (1,)), [torch.zeros(shape)], native=shape == (5, 0))
    check(reduction(x, combiner, (0,)), [torch.zeros(shape)], native=False)


def long_rows(combiner, *sizes):
    """Values of exact sums, with equal ones, and a NaN in the last row."""
    x = (torch.randint(-999, 1000, sizes) / 1024).float()
    if combiner == "prod":
        x = 1 + x / 10_000
    x[-1, sizes[1] // 2] = math.nan
    return x


@pytest.mark.parametrize(
    ("combiner", "columns"),
    [("sum", 70_001), ("sum", 73_728), ("prod", 70_001), ("max", 73_728), ("argmax", 70_001),
     ("moments", 70_001)],
)  # fmt: skip
def test_long_rows_are_read_in_parts(combiner, columns):
    x = long_rows(combiner, 2, columns)
    check(reduction(tensor(2, columns), combiner, (1,)), [x], bits=(512,), native=combiner == "sum")


@pytest.mark.parametrize("combiner", ["sum", "argmax"])
def test_long_rows_of_unknown_length_are_read_in_parts(combiner):
    x = long_rows(combiner, 260, 257)
    make = reduction(tensor(symbol("s0"), symbol("s1")), combiner, (0, 1))
    check(make, [x.nan_to_num(0.5)], bits=(512,))
    check(make, [x], bits=(512,), native=False)


@pytest.mark.parametrize("red", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("combiner", ["sum", "moments", "argmax"])
@pytest.mark.parametrize("sizes", [(20, 100), (0, 4), (4, 0)])
def test_symbolic(red, combiner, sizes):
    if combiner == "argmax" and 0 in sizes:
        pytest.skip("the position of the largest of nothing")
    x = tensor(symbol("s0"), symbol("s1"))
    native = 0 not in sizes and red == (0,)
    check(reduction(x, combiner, red), [torch.randn(sizes)], native=native)


def test_wide_accumulator_of_small_floats():
    x = tensor(6, 100, e=bf16)

    def make():
        p = Program(x)
        y = p.compute(
            (6, 100),
            lambda c: c.op("arith.extf", read(c, p.args[0]), type=f32),
            ("sum", f32),
            red=(1,),
            types=[tensor(6, e=bf16)],
        )
        return p.finish(y)

    x_values = torch.randn(6, 100).bfloat16()
    check(make, [x_values], rtol=2e-2)


def test_map_beside_a_reduction():
    x = tensor(9, 50)

    def make():
        p = Program(x)

        def body(c):
            e = c.op("math.exp", read(c, p.args[0]))
            return [e, e]

        return p.finish(*p.compute((9, 50), body, None, ("sum", f32), red=(1,)))

    check(make, [random_input(x, {})])


@pytest.mark.parametrize("red", [(0,), (1,)])
def test_long_sums_are_accurate(red):
    x = torch.rand(2, 200_000) if red == (1,) else torch.rand(200_000, 2)
    assert error_of_sum(tensor(*x.shape), x, red) < 2e-6


def test_long_sums_of_unknown_length_are_accurate():
    assert error_of_sum(tensor(symbol("s0")), torch.full((4_000_000,), 0.1), (0,)) < 5e-6


@pytest.mark.parametrize("size", [900_000, symbol("s0")])
@pytest.mark.parametrize("place", [0, 450_000, 899_999])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 3e38])
def test_long_sums_keep_what_is_not_finite(size, place, value):
    x = torch.full((900_000,), 3e38 if value == 3e38 else 1.0)
    x[place] = value
    wanted = math.inf if value == 3e38 else value
    torch.testing.assert_close(
        sums(tensor(size), x, (0,)), torch.tensor(wanted), equal_nan=True, rtol=0, atol=0
    )


def error_of_sum(type_, x, red):
    """The largest relative error of the compiled program's sums."""
    exact = x.double().sum(red[0])
    return ((sums(type_, x, red).double() - exact).abs() / exact).max()


def sums(type_, x, red):
    """The compiled program's sums."""
    make = reduction(type_, "sum", red)
    from irc import build
    from irc.ir.passes import PassManager

    module = make()
    PassManager.parse("schedule,form-kernels,bufferize,plan-memory").run(module)
    (got,) = (lambda r: r if isinstance(r, list | tuple) else [r])(build(module)(x))
    return got


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("combiner", ["sum", "prod", "max"])
@pytest.mark.parametrize("element", [f32, f64, i64])
def test_scans(dim, combiner, element):
    x = tensor(9, 37, e=element)

    def make():
        p = Program(x)
        return p.finish(
            p.compute(
                (9, 37), lambda c: read(c, p.args[0]), (combiner, element), red=(dim,), kind="scan"
            )
        )

    check(make, [random_input(x, {})])


def scatter_program(out, index_type, updates, combiner, dims, masked=False):
    def make():
        p = Program(out, index_type, updates)
        rank = updates.rank

        def body(c):
            place = read(c, p.args[1], *[axis(k) for k in range(index_type.rank)])
            value = read(c, p.args[2], *[axis(k) for k in range(rank)])
            masks = []
            if masked:
                masks = [c.compare("sge", place, c.constant(2, i64))]
            return [value], [place], masks

        attr = loop.ResultAttr("scatter", combiner, None, A.DimsAttr(dims))
        return p.finish(
            p.compute(updates.shape, body, attr, types=[out], inits=[p.args[0]])
        )

    return make


@pytest.mark.parametrize("combiner", ["sum", "set", "max"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("element", [f32, i32])
def test_scatter_of_rows(combiner, masked, element):
    out, places, updates = tensor(10, 40, e=element), tensor(30, e=i64), tensor(30, 40, e=element)
    make = scatter_program(out, places, updates, combiner, [symbol("_0"), I1], masked)
    check(
        make,
        [random_input(out, {}), torch.randint(0, 10, (30,)), random_input(updates, {}, 3)],
    )


@pytest.mark.parametrize("combiner", ["sum", "set", "min"])
def test_scatter_of_elements(combiner):
    out, places, updates = tensor(25), tensor(60, e=i64), tensor(60)
    make = scatter_program(out, places, updates, combiner, [symbol("_0")])
    check(make, [torch.randn(25), torch.randint(0, 25, (60,)), torch.randn(60)])


@pytest.mark.parametrize("combiner", ["sum", "set"])
def test_scatter_along_a_row(combiner):
    out, places, updates = tensor(6, 25), tensor(6, 60, e=i64), tensor(6, 60)
    make = scatter_program(out, places, updates, combiner, [I0, symbol("_0")])
    check(make, [torch.randn(6, 25), torch.randint(0, 25, (6, 60)), torch.randn(6, 60)])
