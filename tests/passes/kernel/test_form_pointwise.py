"""Pointwise kernels: every kind of read and store, types, strides, shapes, symbols."""

from __future__ import annotations

import pytest
import torch

from irc.ir.symbols import floordiv, mod, symbol
from irc.ir.types import bf16, f16, f32, f64, i1, i8, i32, i64, index, ui8
from irc.passes.common.bodies import axis
from tests.passes.kernel.programs import Program, check, random_input, read, tensor

I0, I1, I2 = axis(0), axis(1), axis(2)
SHAPES = [(3, 16), (5, 37), (1, 1), (0, 4), (4, 0), (2, 1500), (40, 3)]


def inputs(*types, seed=0, **sizes):
    return [random_input(t, sizes, seed + k) for k, t in enumerate(types)]


@pytest.mark.parametrize("shape", SHAPES)
def test_bias_is_read_along_rows(shape):
    x, b = tensor(*shape), tensor(shape[1])

    def make():
        p = Program(x, b)
        y = p.compute(
            shape, lambda c: c.op("arith.addf", read(c, p.args[0]), read(c, p.args[1], I1))
        )
        return p.finish(y)

    check(make, inputs(x, b))


ACROSS = [(33, 47), (64, 64), (3, 5), (16, 17), (17, 16), (70, 303), (303, 31), (0, 40), (40, 0)]


@pytest.mark.parametrize("bits", [512, 256])
@pytest.mark.parametrize("shape", ACROSS)
def test_reads_across_the_rows(shape, bits):
    x, y = tensor(*shape), tensor(shape[1], shape[0])

    def make():
        p = Program(x, y)
        return p.finish(
            p.compute(
                shape,
                lambda c: c.op("arith.addf", read(c, p.args[0]), read(c, p.args[1], I1, I0)),
            )
        )

    check(make, inputs(x, y), bits=[bits])


@pytest.mark.parametrize("bits", [512, 256])
@pytest.mark.parametrize("element", [f64, bf16, i8, i64])
def test_reads_across_the_rows_of_every_width(element, bits):
    """With symbolic sizes; two reads that share a tile and one with another."""
    rows, columns = symbol("s0"), symbol("s1")
    types = tensor(columns, rows, e=element), tensor(columns, rows, e=element)
    add = "arith.addf" if element is f64 else "arith.addi"

    def make():
        p = Program(*types)

        def body(c):
            a, b = (read(c, v, I1, I0) for v in p.args)
            if element is bf16:
                wide = [c.op("arith.extf", v, type=f32) for v in (a, b)]
                return c.op("arith.truncf", c.op("arith.mulf", *wide), type=bf16)
            return c.op(add, c.op(add, a, b), read(c, p.args[0], I1, I0))

        return p.finish(p.compute((rows, columns), body))

    for sizes in ((64, 64), (45, 83), (90, 7)):
        check(make, inputs(*types, s0=sizes[0], s1=sizes[1]), bits=[bits], rtol=1e-2)


def test_reads_across_the_rows_in_a_long_body():
    """A body that is not copied for each row of a tile."""
    x, y = tensor(50, 83), tensor(83, 50)

    def make():
        p = Program(x, y)

        def body(c):
            value = read(c, p.args[1], I1, I0)
            for _ in range(20):
                value = c.op("arith.addf", value, read(c, p.args[0]))
            return value

        return p.finish(p.compute((50, 83), body))

    check(make, inputs(x, y))


def test_result_in_channels_last_memory_of_a_contiguous_input():
    x = tensor(2, 5, 6, 7)
    last = tensor(2, 5, 6, 7, strides=(210, 1, 35, 5))

    def make():
        p = Program(x)
        return p.finish(
            p.compute((2, 5, 6, 7), lambda c: c.op("math.absf", read(c, p.args[0])), types=[last])
        )

    check(make, inputs(x))


@pytest.mark.parametrize("element", [f16, bf16])
@pytest.mark.parametrize("size", [5, 64, 1000])
def test_small_floats_are_widened(element, size):
    x = tensor(size, e=element)

    def make():
        p = Program(x)

        def body(c):
            wide = c.op("arith.extf", read(c, p.args[0]), type=f32)
            return c.op("arith.truncf", c.op("math.exp", wide), type=element)

        return p.finish(p.compute((size,), body))

    check(make, inputs(x), rtol=1e-2)


@pytest.mark.parametrize("element", [i8, i32, i64, f64])
def test_other_elements(element):
    x = tensor(3, 29, e=element)
    name = "arith.mulf" if element is f64 else "arith.muli"

    def make():
        p = Program(x)

        def body(c):
            a = read(c, p.args[0])
            return c.op(name, a, a)

        return p.finish(p.compute((3, 29), body))

    check(make, inputs(x))


def test_comparison_select_and_bool_memory():
    x, m = tensor(3, 29), tensor(3, 29, e=i1)

    def make():
        p = Program(x, m)

        def body(c):
            a, flag = read(c, p.args[0]), read(c, p.args[1])
            positive = c.op("arith.cmpf", a, c.constant(0, f32), type=i1, predicate="ogt")
            both = c.op("arith.andi", positive, flag)
            return [c.op("arith.select", both, a, c.constant(-1, f32), type=f32), both]

        return p.finish(*p.compute((3, 29), body))

    check(make, inputs(x, m))


def test_index_values():
    def make():
        p = Program(tensor(1))

        def body(c):
            place = c.index(I0 * 100 + I1)
            return [
                c.op("arith.index_cast", place, type=i64),
                c.op("arith.sitofp", c.op("arith.index_cast", place, type=i64), type=f32),
            ]

        return p.finish(*p.compute((7, 30), body))

    check(make, inputs(tensor(1)))


def test_reversed_and_strided_reads():
    x = tensor(6, 50)

    def make():
        p = Program(x)

        def body(c):
            return c.op(
                "arith.subf", read(c, p.args[0], I0, 49 - I1 * 2), read(c, p.args[0], 5 - I0, I1)
            )

        return p.finish(p.compute((6, 25), body))

    check(make, inputs(x))


@pytest.mark.parametrize("sizes", [(6, 32), (6, 20), (4, 64)])
def test_reshaped_reads_divide(sizes):
    rows, columns = sizes
    x = tensor(columns, rows)

    def make():
        p = Program(x)
        flat = I0 * columns + I1

        def body(c):
            return c.op("math.absf", read(c, p.args[0], floordiv(flat, rows), mod(flat, rows)))

        return p.finish(p.compute((rows, columns), body))

    check(make, inputs(x))


def test_heads_are_split_without_gathers():
    x = tensor(4, 8, 64)

    def make():
        p = Program(x)

        def body(c):
            return c.op("math.absf", read(c, p.args[0], I0, floordiv(I1, 64), mod(I1, 64)))

        return p.finish(p.compute((4, 512), body))

    check(make, inputs(x))
    from irc.dialects import kernel
    from irc.ir.passes import PassManager

    module = make()
    PassManager.parse("schedule{vector_bits=512},form-kernels").run(module)
    assert not [o for o in module.walk() if isinstance(o, kernel.GatherOp)]


@pytest.mark.parametrize("size", [30, 64])
def test_masked_reads_pad(size):
    x = tensor(4, size)

    def make():
        p = Program(x)

        def body(c):
            place = c.index(I1 - 3)
            low = c.compare("sge", place, c.constant(0, index))
            high = c.compare("slt", place, c.constant(size, index))
            mask = c.op("arith.andi", low, high)
            return read(c, p.args[0], I0, I1 - 3, mask=mask, other=c.constant(7, f32))

        return p.finish(p.compute((4, size + 5), body))

    check(make, inputs(x))


def test_embedding_rows_are_contiguous():
    table, picked = tensor(50, 40), tensor(6, 3, e=i64)

    def make():
        p = Program(table, picked)

        def body(c):
            row = read(c, p.args[1], I0, I1)
            from irc.ir.symbols import symbol

            return read(c, p.args[0], symbol("_0"), I2, positions=[row])

        return p.finish(p.compute((6, 3, 40), body))

    check(make, [torch.randn(50, 40), torch.randint(0, 50, (6, 3))])


@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_gather_along_the_vectors(kind):
    element = i64 if kind == torch.int64 else i32
    table, picked = tensor(9, 50), tensor(9, 33, e=element)

    def make():
        p = Program(table, picked)

        def body(c):
            column = read(c, p.args[1])
            value = read(c, p.args[0], I0, symbol("_0"), positions=[column])
            return c.op("math.absf", value)

        return p.finish(p.compute((9, 33), body))

    check(make, [torch.randn(9, 50), torch.randint(0, 50, (9, 33), dtype=kind)])


def test_masked_gather_with_two_indices():
    table, rows, columns = tensor(7, 11), tensor(40, e=i64), tensor(40, e=i64)

    def make():
        p = Program(table, rows, columns)

        def body(c):
            row, column = read(c, p.args[1]), read(c, p.args[2])
            inside = c.compare("slt", row, c.constant(7, i64))
            return read(
                c, p.args[0], symbol("_0"), symbol("_1"),
                positions=[row, column], mask=inside, other=c.constant(0, f32),
            )  # fmt: skip

        return p.finish(p.compute((40,), body))

    check(make, [torch.randn(7, 11), torch.randint(0, 9, (40,)), torch.randint(0, 11, (40,))])


def test_rank_zero_and_scalar_operands():
    x, s = tensor(), tensor(5, 20)

    def make():
        p = Program(x, s)
        y = p.compute((), lambda c: c.op("math.exp", read(c, p.args[0])))
        z = p.compute(
            (5, 20), lambda c: c.op("arith.mulf", read(c, p.args[1]), c.read(p.args[0], []))
        )
        return p.finish(y, z)

    check(make, inputs(x, s))


def test_unsigned_bytes():
    x = tensor(70, e=ui8)

    def make():
        p = Program(x)

        def body(c):
            wide = c.op("arith.uitofp", read(c, p.args[0]), type=f32)
            return c.op("arith.mulf", wide, c.constant(1 / 255, f32))

        return p.finish(p.compute((70,), body))

    check(make, [torch.randint(0, 256, (70,), dtype=torch.uint8)])


@pytest.mark.parametrize("sizes", [(3, 5), (1, 100), (0, 7), (9, 0), (2, 2000)])
@pytest.mark.parametrize("minimum", [0, 2])
def test_symbolic_sizes(sizes, minimum):
    if minimum > min(sizes):
        pytest.skip("the program says that sizes are larger")
    s0, s1 = symbol("s0"), symbol("s1")
    x, b = tensor(s0, s1), tensor(s0)

    def make():
        p = Program(x, b, minimum=minimum)

        def body(c):
            return c.op("arith.addf", read(c, p.args[0]), read(c, p.args[1], I0))

        return p.finish(p.compute((s0, s1), body))

    # With a size of 0 eager's strides are not the type's, so only the interpreter can run it.
    check(make, [torch.randn(sizes), torch.randn(sizes[0])], native=0 not in sizes)


def test_equal_computes_share_a_kernel():
    x = tensor(64, 8)

    def make():
        p = Program(x)
        y = p.compute((64, 8), lambda c: c.op("math.exp", read(c, p.args[0])))
        return p.finish(p.compute((64, 8), lambda c: c.op("math.exp", read(c, y))))

    check(make, inputs(x))
    from irc.dialects import kernel
    from irc.ir.passes import PassManager

    module = make()
    PassManager.parse("schedule{vector_bits=512},form-kernels").run(module)
    assert len([o for o in module.ops if isinstance(o, kernel.KernelFuncOp)]) == 1


@pytest.mark.parametrize("border", [32, 50, 3])
@pytest.mark.parametrize("rows", [2, 40])
def test_concatenated_halves_need_no_masks_inside(border, rows):
    x, y = tensor(rows, border), tensor(rows, 100 - border)

    def make():
        p = Program(x, y)

        def body(c):
            place = c.index(I1)
            left = c.compare("slt", place, c.constant(border, index))
            right = c.compare("sge", place, c.constant(border, index))
            zero = c.constant(0, f32)
            a = read(c, p.args[0], mask=left, other=zero)
            b = read(c, p.args[1], I0, I1 - border, mask=right, other=zero)
            return c.op("arith.select", left, a, b, type=f32)

        return p.finish(p.compute((rows, 100), body))

    check(make, inputs(x, y))
    if border == 32:
        from irc.dialects import kernel
        from irc.ir.passes import PassManager

        module = make()
        PassManager.parse("schedule{vector_bits=512},form-kernels").run(module)
        masked = [o for o in module.walk() if isinstance(o, kernel.LoadOp) and o.mask is not None]
        assert len(masked) == 1  # of the last, partial vector
