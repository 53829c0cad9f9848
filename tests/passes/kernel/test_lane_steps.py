"""How index expressions step: from lane to lane, along two axes as along one, across a tile."""

from __future__ import annotations

import itertools

import pytest

from irc.dialects import loop
from irc.ir.symbols import Dim, ceildiv, evaluate, floordiv, maximum, minimum, symbol
from irc.ir.types import i64
from irc.passes.common.bodies import axis
from irc.passes.kernel.cpu.collapse import can_collapse
from irc.passes.kernel.cpu.plan import (
    Access,
    Axis,
    Storage,
    is_transposed,
    lane_stride,
    plan_for_cpu,
    strides_of,
)
from irc.passes.kernel.plan.plan import flatten
from tests.passes.kernel.programs import Program, read, tensor

I0, I1 = axis(0), axis(1)
x, y, s, o, i, n = (symbol(name) for name in "xysoin")
LANES = 16
STEPS: list[tuple[Dim, Dim | None]] = [
    # None: no such step; else the step over 16 lanes.
    (7, 0), (y, 0), (x, 1), (3 * x + y, 3), (y - x, -1), (s * x, s), (x * x, None),
    (x * y * s + x, y * s + 1), ((x // 64) * s, 0), ((x % 64) * s, s), ((x // 3) * s, None),
    (x + x // 3, None), (x // 64 + x, 1), (x // 3 + y, None), ((x // 64) * x, x // 64),
    (x // 16, 0), (x % 16, 1), (x // 8, None), (x % 8, None), (x // 24, None), (x % 24, None),
    ((2 * x + y % 32 * 32) // 64, 0), ((2 * x) % 64, 2), ((2 * x) % 96, 2),
    ((2 * x) // 48, None), ((3 * x) // 48, 0),
    ((x + 8) // 64, None), ((x + 16) // 64, 0), ((x + y) // 64, None), ((x + 32 * y) % 64, 1),
    ((64 - x) // 64, None), ((64 - x) % 64, None), ((s * x) // 64, None), ((s * x) % 64, None),
    (x // s, None), (x % s, None), (floordiv(7, x), None), ((x // 64 + x) // s, None),
    ((x // 64 + y) // 5, 0), ((x // 64 + y) % 5, 0), ((x // 64 + y) % s, 0),
    (floordiv(y + 5, x + 1), None), (floordiv(x // 64 + y, x + 1), None),
    ((x // 64 * 5 + x % 64) // 16, None), ((x % 3 + y) // 5, None),
    # The sign of the divisor is not known.
    (x // (64 * s), None), (x % (64 * s), None),
    (minimum(x, y), None), (maximum(x, 7), None), (ceildiv(x, y), None),
]  # fmt: skip


@pytest.mark.parametrize("d, step", STEPS, ids=str)
def test_steps_from_lane_to_lane(d, step):
    assert lane_stride(d, "x", LANES) == step


@pytest.mark.parametrize("d", [d for d, step in STEPS if step is not None], ids=str)
def test_what_is_said_of_steps_holds_of_aligned_lanes(d):
    step = lane_stride(d, "x", LANES)
    for start, b, c in itertools.product(range(0, 256, LANES), (0, 3, 32), (1, 5)):
        others = {"y": b, "s": c}
        values = [evaluate(d, {"x": start + lane, **others}) for lane in range(LANES)]
        by = evaluate(step, {"x": start, **others})
        assert values == [values[0] + by * lane for lane in range(LANES)]


@pytest.mark.parametrize(
    "kinds, inner_extent, expressions, expected",
    [
        ("par par", 5, [5*o + i], True),
        ("par par", 5, [], True),
        ("red red", 5, [10*o + 2*i + 3], True),
        ("scan scan", 5, [5*o + i], False),
        ("par red", 5, [5*o + i], False),
        ("par par", 5, [6*o + i], False),
        ("par par", 5, [5*o + i, 6*o + i], False),
        ("par par", 5, [6*o + i, 5*o + i], False),
        ("par par", 5, [7, 5*o + i], True),
        ("par par", 5, [o, 5*o + i], False),
        ("par par", 5, [i], False),
        ("par par", n, [n*o + i], True),
        ("par par", n, [n*s*o + s*i], True),
        ("par par", n, [n*o + s*i], False),
        ("par par", 5, [5*o*i], False),
        ("par par", 5, [o // 2 + i], False),
        ("par par", 5, [o + i // 2], False),
        ("par par", 5, [(5*o + i) // 2], False),
    ],
    ids=str,
)  # fmt: skip
def test_axes_collapse_where_all_expressions_step_along_both_as_along_one(
    kinds, inner_extent, expressions, expected
):
    outer, inner = (
        Axis(name, kind, extent)
        for name, kind, extent in zip("oi", kinds.split(), (3, inner_extent), strict=True)
    )
    accesses = [Access(d, None, {}) for d in expressions]
    assert can_collapse(outer, inner, accesses) is expected
    if expected:
        size = evaluate(inner.extent, {"n": 5})
        for d, j, k in itertools.product(expressions, range(3), range(size)):
            names = {"n": 5, "s": 7}
            one = evaluate(d, {"o": 0, "i": j * size + k, **names})
            assert evaluate(d, {"o": j, "i": k, **names}) == one


def read_of_a_matrix(body, strides=None, kind="argument"):
    """The read that `body` makes of a matrix, and where that is."""
    p = Program(tensor(64, 64, strides=strides), tensor(64, e=i64))
    p.compute((64, 64), lambda c: body(c, *p.args))
    (member,) = plan_for_cpu(flatten(p.func.block.last)).members
    ((op, access),) = [
        entry for entry in member.reads.items()
        if isinstance(entry[0], loop.ReadOp) and entry[0].source is p.args[0]
    ]  # fmt: skip
    place = Storage(kind, p.args[0], strides_of(p.args[0].type))
    return op, Access(access.expression, place, access.positions)


@pytest.mark.parametrize(
    "reading, expected",
    [
        (dict(at=(I1, I0)), True),
        (dict(at=(I1, I0), kind="scratch"), False),
        (dict(at=(I0, I1)), False),
        (dict(at=(I0, I0)), False),
        (dict(at=(0, I0)), False),
        (dict(at=(0, I0 + I1)), False),
        (dict(at=(I1, 2 * I0)), False),
        (dict(at=(I1, I0), strides=(64, 2)), False),
        (dict(at=(I1 // 2, I0)), False),
        (dict(at=(I1 // 2, I1)), False),
        (dict(at=(2 * I1, I0), strides=(1, 1)), True),
        (dict(at=(I1, I0), mask=True), False),
    ],
    ids=str,
)
def test_reads_that_are_transposed(reading, expected):
    at, mask = reading["at"], reading.get("mask")

    def body(c, x, _):
        condition = c.compare("slt", c.index(I0), c.index(I1)) if mask else None
        return read(c, x, *at, mask=condition)

    kind = reading.get("kind", "argument")
    op, access = read_of_a_matrix(body, reading.get("strides"), kind)
    assert is_transposed(op, access, "i0", "i1") is expected


def test_a_read_at_places_from_memory_is_not_transposed():
    def body(c, x, places):
        return read(c, x, symbol("_0") + 2 * I1, I0, positions=[read(c, places, I1)])

    op, access = read_of_a_matrix(body)
    assert not is_transposed(op, access, "i0", "i1")
