"""What the default schedule of a gpu asks of a kernel's accesses, and how wide its indices are."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir.symbols import Range, symbol
from irc.ir.types import f16, f32, i8
from irc.passes.common.bodies import axis
from irc.passes.kernel.gpu import own_points, schedule
from irc.passes.kernel.gpu.combine import Reduction
from irc.passes.kernel.gpu.form import _GpuKernel
from irc.passes.kernel.gpu.plan import INDEX_LIMIT, fits_32_bits, plan_for_gpu
from irc.passes.kernel.gpu.transposed import contiguous_axis, transposed_tile
from irc.passes.kernel.plan.plan import flatten
from irc.target.gpu import GpuFeatures
from tests.passes.kernel.programs import Program, read, tensor

I0, I1, I2 = axis(0), axis(1), axis(2)
N = symbol("n")


def planned(p):
    """The plan of the last compute or group of a program, which lives as long as the plan."""
    plan = plan_for_gpu(flatten(p.func.block.last))
    ALIVE.append(p)
    return plan


def lone(arrays, extents, reads, *outputs, made="math.exp", **rest):
    """The plan of a compute that adds up reads of arrays: (number, indices)."""
    p = Program(*arrays)

    def body(c):
        total = c.constant(0.0, f32)
        for number, indices in reads:
            value = read(c, p.args[number], *indices)
            if value.type is not f32:
                name = "arith.sitofp" if value.type is i8 else "arith.extf"
                value = c.op(name, value, type=f32)
            total = c.op("arith.addf", total, c.op(made, value))
        return [total] * max(1, len(outputs)), *rest.pop("more", ())

    inits = [p.args[k] for k in rest.pop("inits", ())]
    p.compute(extents, body, *outputs, inits=inits, **rest)
    return planned(p)


SQUARE, SUM, PLUS = tensor(64, 64), ("sum", f32), (I0 + I1,)
LONG = tensor(200)
ALIVE: list[Program] = []


def test_the_axis_of_one_element_a_step():
    names = ["i0", "i1", "i2"]
    for offset, expected in (
        (64 * I0 + I1, "i1"), (I0 + 64 * I1, "i0"), (I0 + I1, "i1"), (2 * I0, None), (7, None),
        (I1 * N, None), (2 * I0 + I1 // 2, None), (I0 * I1, None),
    ):  # fmt: skip
        assert contiguous_axis(offset, names) == expected, offset
    assert contiguous_axis(I0, []) is None


def test_what_moves_along_rows_and_from_row_to_row():
    plan = lone([SQUARE], (64, 64), [(0, (I0, I1))], SUM, red=(1,))
    (member,) = plan.members
    moving = {64 * I0 + I1: True, I0: False, 2 * I1: False, 7 * I0 * I1: True, I2: False, N: False}
    for offset, expected in moving.items():
        assert own_points.moves_along(member, offset) is expected, offset
    assert not own_points.moves_along(member, 3)


@pytest.mark.parametrize(
    "arrays, reads, across",
    [
        ([SQUARE], [(0, (I1, I0))], True),
        ([SQUARE], [(0, (I0, I1))], False),
        ([SQUARE], [(0, (I0, I1)), (0, (I1, I0))], False),
        ([tensor(64, 64, e=f16), SQUARE], [(0, (I0, I1)), (1, (I1, I0))], True),
        ([tensor(64, 64, e=f16), SQUARE], [(0, (I1, I0)), (1, (I0, I1))], False),
        ([tensor(64, 64, e=i8)], [(0, (I1, I0))], True),
        ([SQUARE, LONG], [(0, (I1, I0)), (1, (I1,))], True),
        ([SQUARE, LONG], [(0, (I0, I1)), (1, (I0,)), (1, (I0,))], False),
        ([tensor(64, 64, strides=(128, 2))], [(0, (I1, I0))], False),
        ([LONG, SQUARE], [(0, PLUS), (1, (I1, I0))], False),
    ],
    ids=str,
)
def test_most_bytes_are_contiguous_from_row_to_row(arrays, reads, across):
    plan = lone(arrays, (64, 64), reads, SUM, red=(1,))
    assert schedule._across_rows(plan) is across


@pytest.mark.parametrize(
    "arrays, reads, kind, kept",
    [
        ([SQUARE], [(0, (I1, I0))], "scan", True),
        ([SQUARE], [(0, (I0, I1))], "scan", False),
        ([SQUARE], [(0, (I1, I0))], "red", False),
        ([tensor(64, 64, strides=(128, 2))], [(0, (I1, I0))], "scan", False),
        ([LONG], [(0, PLUS)], "scan", False),
        ([LONG], [(0, (I0,))], "scan", False),
    ],
    ids=str,
)
def test_rows_that_are_stored_and_contiguous_from_row_to_row(arrays, reads, kind, kept):
    plan = lone(arrays, (64, 64), reads, SUM, red=(1,), kind=kind)
    assert schedule._is_kept_across(plan) is kept


COLUMNS = tensor(64, 64, strides=(1, 64))


@pytest.mark.parametrize(
    "arrays, reads, types, axes",
    [
        ([SQUARE], [(0, (I1, I0))], (), (0, 1)),
        ([SQUARE], [(0, (I0, I1))], (), None),
        ([SQUARE], [(0, (I0, I1))], (COLUMNS,), (1, 0)),
        ([SQUARE], [(0, (I0, I1)), (0, (I1, I0))], (), (0, 1)),
        ([tensor(8, 8)], [(0, (I1, I0))], (tensor(8, 8),), (0, 1)),
        ([tensor(8, 4)], [(0, (I1, I0))], (tensor(4, 8),), (0, 1)),
        ([tensor(8, 3)], [(0, (I1, I0))], (tensor(3, 8),), None),
        ([tensor(3, 8)], [(0, (I1, I0))], (tensor(8, 3),), None),
        ([LONG], [(0, (I0,))], (), None),
        ([SQUARE], [(0, (I1 // 2, I0))], (), None),
        ([LONG], [(0, PLUS)], (COLUMNS,), None),
        ([tensor(64, 64, strides=(128, 2))], [(0, (I1, I0))], (), None),
        ([SQUARE], [(0, (I1, I0))], (tensor(64, 64, strides=(128, 2)),), None),
        ([SQUARE], [(0, (I0, I1))], (SQUARE, COLUMNS), (0, 1)),
        ([SQUARE], [(0, (I0, I1))], (COLUMNS, SQUARE), (1, 0)),
    ],
    ids=str,
)
def test_axes_that_are_contiguous_where_read_and_where_written(arrays, reads, types, axes):
    sizes = types[0].shape if types else (64, 64)
    plan = lone(arrays, sizes, reads, *[None] * len(types), types=types)
    tile = transposed_tile(plan, GpuFeatures.sm_90())
    assert (None if tile is None else tile.axes) == axes


SCATTERED = loop.ResultAttr("scatter", "sum", None, A.DimsAttr([I0, I1]))


@pytest.mark.parametrize(
    "type_, order",
    [
        (tensor(64, 32), None),
        (tensor(64, 32, strides=(1, 64)), [1, 0]),
        (tensor(2, 32, strides=(1, 2)), [1, 0]),
        (tensor(64, 1, 32, strides=(1, 7, 64)), [1, 2, 0]),
        (tensor(64, 1, 32), None),
        (tensor(4, 5, 6, strides=(6, 24, 1)), [1, 0, 2]),
        (tensor(64, 32, strides=(N, 1)), None),
    ],
    ids=str,
)
def test_rows_are_ordered_by_how_far_they_move_where_written(type_, order):
    plan = lone([tensor(64, 32, strides=(1, 64))], type_.shape, [], types=[type_])
    assert own_points.row_order(plan) == order


def test_rows_are_ordered_by_reads_where_the_written_say_nothing():
    def order(*reads):
        plan = lone([SQUARE, LONG], (64, 64), reads, SCATTERED, types=[SQUARE], inits=[0])
        return own_points.row_order(plan)

    assert order((0, (I1, I0))) == [1, 0]
    assert order((1, (I0,)), (0, (I1, I0))) == [1, 0]
    assert order((1, (I0,))) is None
    assert order((0, (I0, I1)), (0, (I1, I0))) is None


def grouped(*members):
    """The plan of a group over one axis of members; each gives what it yields to the next."""
    p = Program(tensor(64, 64), tensor(64, 8, 8))

    def build():
        made = []
        for member in members:
            made.append(member(p, p.args, made))
        return [made[-1]]

    p.group((64,), build)
    return planned(p)


# Members of groups: a program, its arrays, what the members before have made.


def row_sum(p, args, made):
    return p.compute((64, 64), lambda c: read(c, args[0]), SUM, red=(1,))


def shifted(p, args, made):
    return p.compute((64, 64), lambda c: read(c, args[0]))


def partial(p, args, made):
    return p.compute((64, 8, 8), lambda c: read(c, args[1]), SUM, red=(2,))


def of_the_last(p, args, made):
    sizes = (64, 8) if made[-1].type.shape == (64, 8) else (64, 64)
    indices = [I0, I1][: made[-1].type.rank]
    return p.compute(sizes, lambda c: read(c, made[-1], *indices))


def both_kinds(p, args, made):
    found = p.compute((64, 64), lambda c: ([read(c, args[0])] * 2,), SUM, None, red=(1,))
    return found[0]


def two_maps(p, args, made):
    return p.compute((64, 64), lambda c: ([read(c, args[0])] * 2,))[1]


@pytest.mark.parametrize(
    "members, roots",
    [
        ((row_sum, of_the_last), [True, True]),
        ((shifted, of_the_last), [False, True]),
        ((partial, of_the_last), [True, True]),
        ((partial, of_the_last, row_sum), [False, False, True]),
        ((both_kinds, of_the_last), [True, True]),
        ((both_kinds,), [True]),
        ((two_maps,), [True]),
    ],
    ids=lambda v: v[0].__name__ if callable(v[0]) else str(v),
)
def test_members_that_must_be_run(members, roots):
    former = _GpuKernel.__new__(_GpuKernel)
    former.plan = plan = grouped(*members)
    assert [former._has_roots(member) for member in plan.members] == roots


def test_rows_that_are_folded_keep_their_order():
    plan = grouped(partial)
    assert plan.members[0].folded and own_points.row_order(plan) is None


def test_arrays_in_memory_that_are_read_along_rows():
    plan = grouped(row_sum, shifted, of_the_last)
    found = [schedule._is_read_along(plan, m, r) for m in plan.members for r in m.compute.reads]
    assert found == [True, True, False]
    plan = lone([SQUARE, LONG], (64, 64), [(0, (I0, I1)), (1, (I0,))], SUM, red=(1,))
    (member,) = plan.members
    along = [schedule._is_read_along(plan, member, r) for r in member.compute.reads]
    assert along == [True, False]


@pytest.mark.parametrize(
    "array, ranges, expected",
    [
        (tensor(1000), {}, True),
        (tensor(INDEX_LIMIT - 1), {}, True),
        (tensor(INDEX_LIMIT), {}, False),
        (tensor(1000, strides=(-INDEX_LIMIT,)), {}, False),
        (tensor(N), {"n": Range(0, 1000)}, True),
        (tensor(N), {"n": Range(0, INDEX_LIMIT - 1)}, True),
        (tensor(N), {"n": Range(0, INDEX_LIMIT)}, False),
        (tensor(N), {"n": Range(0, None)}, False),
        (tensor(N), {}, False),
    ],
    ids=str,
)
def test_indices_of_32_bits(array, ranges, expected):
    plan = lone([array], array.shape, [(0, (I0,))], types=[tensor(*array.shape)])
    assert fits_32_bits(plan, ranges) is expected
    small = lone([array], (1,), [(0, (0,))])
    assert fits_32_bits(small, ranges) is expected


def test_functions_with_steps():
    for made, expected in (("math.exp", False), ("math.floor", True), ("math.trunc", True)):
        plan = lone([SQUARE], (64, 64), [(0, (I0, I1))], made=made)
        ops = list(plan.members[0].compute.block.ops)
        assert plan.has_steps_behind(plan.members[0], ops[0]) is expected
        assert not plan.has_steps_behind(plan.members[0], ops[-1])


def test_the_mask_of_a_reduction():
    reduction = Reduction.__new__(Reduction)
    reduction.dim = None
    assert reduction.mask is None
    reduction.dim = SimpleNamespace(mask="lanes")
    assert reduction.mask == "lanes"


def test_an_array_of_one_number_has_tiles_of_one():
    entries: dict[str, A.Attribute] = {}
    plan = lone([tensor()], [], [(0, ())])
    assert schedule._pointwise(plan, GpuFeatures("sm_90"), entries) >= 1
    assert entries["x_block"] == A.IntegerAttr(1)
