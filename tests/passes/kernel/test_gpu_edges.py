"""Masks on a gpu: where an access is made as two, joined masks, and places read without one."""

from __future__ import annotations

import itertools

import pytest

from irc.dialects import kernel
from irc.ir.core import Block
from irc.ir.symbols import symbol
from irc.ir.types import f32, i1, index
from irc.passes.kernel.gpu.edges import _bound_on, _conditions, edge_of
from irc.passes.kernel.gpu.evaluate import Evaluator
from irc.passes.kernel.gpu.tiles import TileBuilder, TileDim, union
from tests.passes.kernel.programs import tensor

X, Y, S, R = symbol("x"), symbol("y"), symbol("s"), symbol("r")


class Lanes:
    """A builder with lanes x along one dimension, y along another, a scalar s and a row r."""

    def __init__(self):
        self.block = Block((index, i1, index, index))
        self.builder = b = TileBuilder(self.block)
        self.dims = TileDim(0, 8), TileDim(1, 64)
        b.bind("y", b.iota(self.dims[0]))
        b.bind("x", b.iota(self.dims[1]))
        scalars = [b.make(kernel.ProgramIdOp, [], [((), index)])[0] for _ in "s"]
        b.bind("s", scalars[0])

    def below(self, name, bound):
        """`name` < bound."""
        b = self.builder
        return b.compare("slt", b.index(symbol(name)), b.index(bound))

    def truths(self, tile):
        """The value of a mask at each (y, x), s being 3."""
        return {(y, x): bool(self.value(tile.value, tile.dims, y, x))
                for y, x in itertools.product(range(8), range(64))}  # fmt: skip

    def value(self, value, dims, y, x):
        op = value.defining_op
        name = op.name
        if name == "kernel.program_id":
            return 3
        if name == "kernel.iota":
            return y if dims == (self.dims[0],) else x
        if name == "arith.constant":
            return op.attributes["value"].value
        if name == "kernel.splat":
            return self.value(op.scalar, (), y, x)
        if name == "kernel.expand":
            return self.value(op.source, tuple(dims[k] for k in op.dims), y, x)
        a, b = (self.value(o, dims, y, x) for o in op.operands)
        if name == "arith.cmpi":
            return {"slt": a < b, "sge": a >= b, "sgt": a > b}[op.predicate]
        return {"arith.andi": a and b, "arith.addi": a + b, "arith.muli": a * b}[name]


def masks(*conditions):
    """Lanes and the conjunction of conditions (name, bound)."""
    lanes = Lanes()
    mask = None
    for name, bound in conditions:
        mask = lanes.builder.both(mask, lanes.below(name, bound))
    return lanes, mask


SPLIT = [
    # Offset, conditions, bytes of an element: the last whole group, or None where one is as good.
    (X, [("x", 30)], 4, 28), (X, [("x", 30)], 2, 24), (X, [("x", 30)], 8, None),
    (X, [("x", 31)], 8, 30), (X, [("x", 30)], 16, None), (X, [("x", 32)], 4, None),
    (X, [("x", 3)], 4, None), (X, [("x", 4)], 4, None), (X, [("x", 5)], 4, 4),
    (X, [], 4, None), (X, [("y", 5)], 4, None), (X + 4 * S, [("x", 30)], 4, 28),
    (X + S, [("x", 30)], 4, None), (X + 2, [("x", 30)], 4, None), (X + 8, [("x", 30)], 4, 28),
    (2 * X, [("x", 30)], 4, None), (5 * X, [("x", 30)], 4, None), (X * Y, [("x", 30)], 4, None),
    (64 * Y + X, [("x", 30)], 4, 28),
    (Y + 64 * X, [("y", 6)], 4, 4), (Y + 64 * X, [("x", 30)], 4, None),
    (64 * Y + X, [("y", 5), ("x", 30)], 4, 28), (64 * Y + X, [("x", 30), ("y", 5)], 4, 28),
    (X, [("x", 30), ("x", 35)], 4, 28), (X, [("x", 35), ("x", 30)], 4, 28),
    (4 * S, [("x", 30)], 4, None), (S, [("s", 30)], 4, None), (R, [("x", 30)], 4, None),
    (X + 4 * R, [("x", 30)], 4, 28),
    (X, [("x", 30), ("s", 5)], 4, 28), (X, [("x", 30), ("s", 2)], 4, 28),
]  # fmt: skip


@pytest.mark.parametrize("offset, conditions, size, whole", SPLIT, ids=str)
def test_an_access_is_made_as_two_where_its_mask_splits_a_group(offset, conditions, size, whole):
    lanes, mask = masks(*conditions)
    edge = edge_of(lanes.builder, offset, mask, size)
    assert (edge is None) == (whole is None)
    if edge is not None:
        along = 1 if "x" in {n for n, _ in conditions} else 0
        all_, below, above = (lanes.truths(t) for t in (mask, edge.below, edge.above))
        for lane, holds in all_.items():
            assert below[lane] == (holds and lane[along] < whole)
            assert above[lane] == (holds and lane[along] >= whole)


def test_bounds_of_lanes():
    lanes = Lanes()
    b = lanes.builder
    x, y, s = (b.index(d) for d in (X, Y, S))
    seven = b.index(7)
    wide = b.expand(seven, x.dims)
    given = {
        "below": (b.compare("slt", x, seven), 7),
        "at least": (b.compare("sge", x, seven), None),
        "of others": (b.compare("slt", y, seven), None),
        "below lanes": (b.compare("slt", seven, x), None),
        "below a scalar": (b.compare("slt", x, s), None),
        "below lanes of others": (b.compare("slt", x, b.op("arith.addi", x, wide)), None),
        "both": (b.op("arith.andi", b.compare("slt", x, seven), b.compare("sge", x, s)), None),
        "a float": (b.compare("olt", b.constant(1.0, f32), b.constant(2.0, f32)), None),
    }
    for name, (tile, bound) in given.items():
        assert _bound_on(tile.value, x.value) == bound, name
    assert _bound_on(lanes.block.arguments[1], x.value) is None
    scalar = b.compare("slt", s, seven)
    assert _bound_on(scalar.value, s.value) == 7 and _bound_on(scalar.value, x.value) is None
    other = b.op("arith.cmpi", s, type(s)(lanes.block.arguments[0], (), 0), element=i1,
                 predicate="slt")  # fmt: skip
    assert _bound_on(other.value, s.value) is None


def test_the_conditions_of_a_mask():
    lanes, mask = masks(("x", 30), ("y", 5), ("s", 3))
    found = list(_conditions(mask))
    assert [(len(c.dims), c.value.defining_op.name) for c in found] == [
        (1, "arith.cmpi"), (1, "arith.cmpi"), (0, "arith.cmpi")]  # fmt: skip
    assert [c.value for c in found] == [lanes.below(*c).value
                                        for c in (("x", 30), ("y", 5), ("s", 3))]  # fmt: skip


def test_joined_masks():
    lanes, mask = masks(("x", 30))
    b, other = lanes.builder, lanes.below("y", 5)
    assert b.both(None, None) is None
    assert b.both(mask, None) is mask and b.both(None, mask) is mask and b.both(mask, mask) is mask
    joined = b.both(mask, other)
    assert joined.value.defining_op.name == "arith.andi" and joined.dims == union(mask, other)


@pytest.mark.parametrize(
    "indices, shape, mask, expected",
    [
        ((Y,), (8,), [("x", 30)], True),
        ((Y,), (8,), [("x", 30), ("y", 5)], True),
        ((Y,), (8,), [("y", 5)], False),
        ((X,), (64,), [("x", 30)], False),
        ((Y, X), (8, 64), [("x", 30)], False),
        ((Y,), (7,), [("x", 30)], False),
        ((Y - 1,), (8,), [("x", 30)], False),
        ((Y + 1,), (8,), [("x", 30)], False),
        ((Y + 1,), (9,), [("x", 30)], True),
        ((0, Y), (1, 8), [("x", 30)], True),
        ((Y, 0), (8, 0), [("x", 30)], False),
        ((0, Y), (0, 8), [("x", 30)], False),
        ((S,), (100,), [("x", 30)], False),
        ((3,), (8,), [("x", 30)], True),
        ((3,), (8,), [("s", 5)], False),
    ],
    ids=str,
)
def test_one_element_a_row_is_read_once_where_it_is_inside(indices, shape, mask, expected):
    lanes, mask = masks(*mask)
    b = lanes.builder
    b.extents = {"x": 64, "y": 8}
    evaluator = Evaluator.__new__(Evaluator)
    evaluator.b = b
    source = tensor(*shape)
    offset = sum(i * stride for i, stride in zip(indices, source.strides, strict=True))
    assert evaluator._is_narrower(offset, indices, source, mask) is expected
