"""Groups: what members hand to each other in registers, scratch, results and temporaries."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import kernel
from irc.ir.passes import PassManager
from irc.ir.symbols import symbol
from irc.ir.types import bf16, f32
from irc.passes.common.bodies import axis
from tests.passes.kernel.programs import Program, check, random_input, read, tensor

I0, I1 = axis(0), axis(1)


def formed(make, bits=512):
    module = make()
    PassManager.parse(f"schedule{{vector_bits={bits}}},form-kernels").run(module)
    return module


def operations(module, cls):
    return [op for op in module.walk() if isinstance(op, cls)]


def softmax(rows, columns, dim=1, stored=False):
    """Softmax along `dim` as a group over the other; `stored`: keep the exponentials."""
    x = tensor(rows, columns)

    def make():
        p = Program(x)
        extents = (rows, columns) if dim == 1 else (columns, rows)
        at = (I0, I1) if dim == 1 else (I1, I0)
        a = p.args[0]

        def build():
            top = p.compute(extents, lambda c: read(c, a, *at), ("max", f32), red=(1,))

            def shifted(c):
                return c.op("math.exp", c.op("arith.subf", read(c, a, *at), read(c, top, I0)))

            kept = [tensor(*extents, strides=None if dim == 1 else (1, extents[0]))]
            if stored:
                e = p.compute(extents, shifted, types=kept)
                total = p.compute(extents, lambda c: read(c, e), ("sum", f32), red=(1,))
                y = p.compute(
                    extents,
                    lambda c: c.op("arith.divf", read(c, e), read(c, total, I0)),
                    types=kept,
                )
            else:
                total = p.compute(extents, shifted, ("sum", f32), red=(1,))
                y = p.compute(
                    extents,
                    lambda c: c.op("arith.divf", shifted(c), read(c, total, I0)),
                    types=kept,
                )
            return [y]

        return p.finish(p.group(extents[:1], build))

    return make, x


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("shape", [(5, 64), (37, 100), (3, 5), (70, 1)], ids=str)
def test_softmax(shape, dim, stored):
    make, x = softmax(*shape, dim, stored)
    check(make, [random_input(x, {})])


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_symbolic_sizes(dim):
    make, x = softmax(symbol("s0"), symbol("s1"), dim, True)
    check(make, [torch.randn(19, 70)])


def test_locals_that_are_too_large_become_temporaries():
    make, x = softmax(2, 40_000, 1, True)
    check(make, [random_input(x, {})], bits=(512,))
    module = formed(make)
    assert not operations(module, kernel.ScratchOp)
    (made,) = operations(module, kernel.KernelFuncOp)
    assert len(made.outputs) == 2


def test_small_locals_are_scratch():
    module = formed(softmax(8, 256, 1, True)[0])
    (scratch,) = operations(module, kernel.ScratchOp)
    assert scratch.count == 256


def layer_norm(rows, columns):
    x, w = tensor(rows, columns, e=bf16), tensor(columns)

    def make():
        p = Program(x, w)

        def wide(c):
            return c.op("arith.extf", read(c, p.args[0]), type=f32)

        def build():
            mean, m2 = p.compute((rows, columns), wide, ("moments", f32), red=(1,))

            def body(c):
                variance = c.op("arith.mulf", read(c, m2, I0), c.constant(1 / columns, f32))
                scale = c.op("math.rsqrt", c.op("arith.addf", variance, c.constant(1e-5, f32)))
                centred = c.op("arith.subf", wide(c), read(c, mean, I0))
                y = c.op("arith.mulf", c.op("arith.mulf", centred, scale), read(c, p.args[1], I1))
                return c.op("arith.truncf", y, type=bf16)

            y = p.compute((rows, columns), body)
            return [y, mean]

        return p.finish(*p.group((rows,), build))

    return make, [x, w]


@pytest.mark.parametrize("shape", [(9, 768), (3, 100)], ids=str)
def test_layer_norm_of_bf16(shape):
    make, types = layer_norm(*shape)
    check(make, [random_input(t, {}) for t in types], rtol=2e-2)


def test_row_values_are_computed_once_a_row():
    module = formed(layer_norm(9, 768)[0])
    from irc.dialects.math import RsqrtOp

    (scale,) = operations(module, RsqrtOp)
    outer = scale.parent_op
    assert isinstance(outer, kernel.ForOp) and isinstance(outer.parent_op, kernel.KernelFuncOp)


def test_nested_groups_and_a_result_that_is_read_and_stored():
    x = tensor(6, 5, 33)

    def make():
        p = Program(x)

        def build():
            def inner():
                top = p.compute(
                    (6, 5, 33), lambda c: read(c, p.args[0]), ("max", f32), red=(2,)
                )
                e = p.compute(
                    (6, 5, 33),
                    lambda c: c.op("arith.subf", read(c, p.args[0]), read(c, top, I0, I1)),
                )
                return [e, top]

            e, top = p.group((6, 5), inner)
            total = p.compute((6, 5, 33), lambda c: read(c, e), ("sum", f32), red=(1, 2))
            return [e, total]

        return p.finish(*p.group((6,), build))

    check(make, [random_input(x, {})])


def test_one_value_stored_twice():
    x = tensor(6, 33)

    def make():
        p = Program(x)

        def build():
            y = p.compute((6, 33), lambda c: c.op("math.exp", read(c, p.args[0])))
            return [y, y]

        return p.finish(*p.group((6,), build))

    check(make, [random_input(x, {})])


def test_members_without_axes_of_their_own_are_vectorized_along_the_group():
    x = tensor(40, 300)

    def make():
        p = Program(x)

        def build():
            mean, m2 = p.compute(
                (300, 40), lambda c: read(c, p.args[0], I1, I0), ("moments", f32), red=(1,)
            )
            return [mean, p.compute((300,), lambda c: c.op("math.rsqrt", read(c, m2, I0)))]

        return p.finish(*p.group((300,), build))

    check(make, [random_input(x, {})])
    assert not operations(formed(make), kernel.GatherOp)


@pytest.mark.parametrize("rows", [3, 16, 37])
def test_scratch_that_each_lane_reads_at_a_place_of_its_own(rows):
    """A router: rows stand in the lanes, and what is chosen of each row differs."""
    torch.manual_seed(0)
    x = torch.randn(rows, 4)

    def route(x):
        chosen, place = x.softmax(-1).topk(2, -1)
        return place, chosen / chosen.abs().sum(-1, keepdim=True)

    module = irc.trace(route, (x,))
    irc.PassManager.parse("lower-to-cpu").run(module)
    assert [op for op in operations(module, kernel.ScratchOp)]
    for mine in (irc.run(module, x), irc.compile(route, (x,))(x)):
        for a, b in zip(mine, route(x), strict=True):
            torch.testing.assert_close(a, b)


def test_in_place_pairs():
    x = tensor(8, 64)
    make, _ = softmax(8, 64)
    (made,) = operations(formed(make), kernel.KernelFuncOp)
    assert made.inplace == (0, 1)

    def transposed():
        p = Program(tensor(8, 8))
        return p.finish(
            p.compute(
                (8, 8), lambda c: c.op("math.exp", read(c, p.args[0], I1, I0))
            )
        )

    (made,) = operations(formed(transposed), kernel.KernelFuncOp)
    assert made.inplace is None
    assert x.rank == 2
