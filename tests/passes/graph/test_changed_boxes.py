"""Which boxes of an array what was made of it by slices and concatenations differs in."""

from __future__ import annotations

import random

import attrs
import pytest
import torch

from irc.dialects import graph
from irc.dialects.func import FuncOp
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.module import ModuleOp
from irc.ir.symbols import Range, symbol
from irc.ir.types import TensorType, f32
from irc.passes.graph.reinplace import changed_boxes as C
from irc.passes.graph.reinplace.changed_boxes import Box, Changes, boxes_apart, changed_boxes

S, T, U = symbol("s0"), symbol("s1"), symbol("u0")


@attrs.frozen
class Both:
    """A value and its elements."""

    value: Value
    tensor: torch.Tensor


class Program:
    """Arrays of a function, each with its elements."""

    def __init__(self, *shapes):
        function = FuncOp.create("main", [TensorType(s, f32) for s in shapes], [])
        ModuleOp.empty().block.append(function)
        self.builder, self.all = Builder.at_end(function.block), []
        for number, argument in enumerate(function.block.arguments):
            sizes = [d if isinstance(d, int) else 7 for d in argument.type.shape]
            count = torch.Size(sizes).numel()
            self.keep(argument, 100.0 * number + torch.arange(count).reshape(sizes))

    def keep(self, value, tensor):
        self.all.append(Both(value, tensor))
        return self.all[-1]

    def of(self, value):
        """The elements of a value."""
        return next(each.tensor for each in self.all if each.value is value)

    def cut(self, x, dim, start, size, step=1):
        kind = graph.replace_size(x.value.type, dim, size)
        value = self.builder.value(
            graph.Slice, x.value, dim=dim, start=start, step=step, result_types=kind
        )
        tensor = x.tensor
        if isinstance(start, int) and isinstance(size, int):
            tensor = tensor.narrow(dim, start, (size - 1) * step + 1)
            tensor = tensor.index_select(dim, torch.arange(0, tensor.shape[dim], step))
        return self.keep(value, tensor)

    def join(self, dim, *parts):
        value = self.builder.value(graph.Concat, [p.value for p in parts], dim=dim)
        return self.keep(value, torch.cat([p.tensor for p in parts], dim))

    def shaped(self, x, *shape):
        kind = x.value.type.with_shape(shape)
        value = self.builder.value(graph.Reshape, x.value, result_types=kind)
        return self.keep(value, x.tensor.reshape(shape))

    def written(self, x, starts, content, dim=0):
        """`x` with `content` from `starts` on, as functionalize says it."""
        size, length = x.value.type.shape[dim], content.value.type.shape[dim]
        inner = content
        if dim + 1 < len(starts):
            rows = x if size == length else self.cut(x, dim, starts[dim], length)
            inner = self.written(rows, starts, content, dim + 1)
        end = starts[dim] + length
        parts = [self.cut(x, dim, 0, starts[dim])] if starts[dim] else []
        parts += [inner, *([self.cut(x, dim, end, size - end)] if end < size else [])]
        return parts[0] if len(parts) == 1 else self.join(dim, *parts)

    def check(self, value, whole, most=16):
        """The boxes, written one after the other, make `value`; how many elements are written."""
        found = changed_boxes(value.value, whole.value, {}, most)
        if isinstance(found, str):
            return found
        made, stays = whole.tensor.clone(), torch.ones_like(whole.tensor)
        for box in found.boxes:
            part = self.of(box.value)
            for dim, (begin, size) in enumerate(zip(box.begins, box.sizes, strict=True)):
                part = part.narrow(dim, begin, size)
            place = tuple(slice(b, b + n) for b, n in zip(box.starts, box.shape, strict=True))
            made[place] = part.reshape(box.shape)
            stays[place] = 0
        assert torch.equal(made, value.tensor)
        assert found.kept == int(stays.sum())
        return found


def seen(found):
    return [(box.starts, box.shape) for box in found.boxes]


@pytest.mark.parametrize("start, size", [(0, 2), (2, 3), (5, 2), (0, 1), (6, 1)])
@pytest.mark.parametrize("dim", [0, 1])
def test_one_slice(dim, start, size):
    shape = [3, 3]
    shape[dim] = 7
    part = [3, 3]
    part[dim] = size
    p = Program(shape, part)
    x, new = p.all
    starts = [0, 0]
    starts[dim] = start
    found = p.check(p.written(x, starts, new), x)
    assert seen(found) == [(tuple(starts), tuple(part))]
    assert found.boxes[0].value is new.value


def test_two_slices_one_over_the_other():
    p = Program((6, 7), (3, 4), (2, 2))
    x, first, second = p.all
    for starts, boxes in (
        ((4, 4), [((1, 1), (3, 4)), ((4, 4), (2, 2))]),
        ((2, 2), [((1, 1), (3, 4)), ((2, 2), (2, 2))]),  # all of the first, then the second in it
        ((3, 4), [((1, 1), (3, 4)), ((3, 4), (2, 2))]),
    ):
        value = p.written(p.written(x, (1, 1), first), starts, second)
        assert sorted(seen(p.check(value, x))) == sorted(boxes)
        assert seen(p.check(value, x))[0] == boxes[0] or starts == (4, 4)


def test_what_is_hidden_is_not_written():
    p = Program((6, 7), (3, 4), (4, 5))
    x, first, second = p.all
    value = p.written(p.written(x, (1, 1), first), (1, 0), second)
    assert seen(p.check(value, x)) == [((1, 0), (4, 5))]


def test_boxes_that_hide_each_other_are_written_in_their_parts():
    """Each of two is seen where the other one has elements too: neither can be the first."""
    p = Program((4, 5), (3, 3), (3, 3))
    x, a, b = p.all
    first, second = p.written(x, (0, 0), a), p.written(x, (1, 0), b)
    value = p.join(0, *[p.cut((first, second)[row % 2], 0, row, 1) for row in range(4)])
    assert len(p.check(value, x).boxes) == 4
    value = p.join(0, *[p.cut((first, second)[row > 0], 0, row, 1) for row in range(4)])
    assert len(p.check(value, x).boxes) == 2


def test_a_row_has_one_dimension_less():
    p = Program((4, 5), (5,), (4,), (1, 1, 5, 1))
    x, row, column, deep = p.all
    assert seen(p.check(p.written(x, (2, 0), p.shaped(row, 1, 5)), x)) == [((2, 0), (1, 5))]
    assert seen(p.check(p.written(x, (0, 3), p.shaped(column, 4, 1)), x)) == [((0, 3), (4, 1))]
    assert seen(p.check(p.written(x, (3, 0), p.shaped(deep, 1, 5)), x)) == [((3, 0), (1, 5))]


def test_a_reshape_that_joins_dimensions_ends_the_walk():
    p = Program((4, 6), (2, 12))
    x, other = p.all
    value = p.shaped(p.shaped(p.written(x, (0, 0), p.shaped(other, 4, 6)), 2, 12), 4, 6)
    assert p.check(value, x) == "its new content is no update of a slice"
    assert p.check(x, x) == "its new content is no update of a slice"


def test_a_part_of_the_array_itself_is_written():
    p = Program((4, 6))
    (x,) = p.all
    value = p.cut(p.join(0, p.cut(x, 0, 0, 2), x), 0, 0, 4)
    assert p.check(value, x) == "what is written is a part of it itself"
    value = p.written(x, (1, 0), p.cut(x, 0, 0, 1))
    assert seen(p.check(value, x)) == [((1, 0), (1, 6))]


def test_other_steps_and_operations_end_the_walk():
    p = Program((4,), (8,), (3,))
    x, other, more = p.all
    value = p.join(0, p.cut(other, 0, 0, 2, step=2), p.cut(x, 0, 2, 2))
    (box,) = p.check(value, x).boxes
    assert box.value is p.all[3].value, "the slice itself is written"
    p = Program((4,), (2,))
    x, other = p.all
    value = p.join(0, p.cut(x, 0, 0, 2, step=2), other)
    assert p.check(value, x) == "its new content is no update of a slice"


def test_pieces_are_few():
    p = Program((20,), *[(1,)] * 10)
    x, *new = p.all
    value = x
    for number, content in enumerate(new):
        value = p.written(value, (2 * number,), content)
    assert len(p.check(value, x, 20).boxes) == 10
    fewer = p.check(value, x, 19)
    assert isinstance(fewer, str) or len(fewer.boxes) < 10


def test_what_joins_the_boxes_is_told():
    p = Program((6,), (2,))
    x, new = p.all
    value = p.written(x, (1,), new)
    found = p.check(value, x)
    makers = {each.value.defining_op for each in p.all} - {None}
    assert set(found.joins) == makers


@pytest.mark.parametrize("seed", range(60))
def test_random_writes(seed):
    choose = random.Random(seed)
    p = Program((5, 6), (5, 6))
    x, new = p.all
    value = x
    for _ in range(choose.randint(1, 4)):
        starts, sizes = [], []
        for size in (5, 6):
            sizes.append(choose.choice([1, 2, size, choose.randint(1, size)]))
            starts.append(choose.randint(0, size - sizes[-1]))
        source = choose.choice([new, new, new, value])
        part = source
        for dim in (0, 1):
            if sizes[dim] != part.value.type.shape[dim]:
                begin = choose.randint(0, part.value.type.shape[dim] - sizes[dim])
                part = p.cut(part, dim, begin, sizes[dim])
        if sizes[0] == 1 and choose.random() < 0.5:
            part = p.shaped(p.shaped(part, sizes[1]), 1, sizes[1])
        value = p.written(value, starts, part)
    p.check(value, x)


# -- sizes that are symbols


def test_symbolic_parts_need_no_ranges_where_all_is_seen():
    p = Program((S + T + 2,), (2,))
    x, new = p.all
    value = p.builder.value(
        graph.Concat,
        [p.cut(x, 0, 0, S).value, new.value, p.cut(x, 0, S + 2, T).value],
        dim=0, result_types=x.value.type,
    )  # fmt: skip
    found = changed_boxes(value, x.value, {}, 16)
    assert isinstance(found, Changes) and found.kept is None
    assert seen(found) == [((S,), (2,))]


@pytest.mark.parametrize(
    "begin, ranges, told",
    [
        (U, Range(0, 3), ["left"]),
        (U, Range(5, 8), ["right"]),
        (U, Range(0, 8), None),  # in which part it begins is not known
        (U, Range(4, 4), ["left", "right"]),
        (U, Range(0, 4), None),  # whether it ends in the first is not
        (U, Range(4, 8), None),  # whether it begins in the first is not
        (3, None, ["left"]), (4, None, ["left", "right"]), (5, None, ["right"]),
    ],
)  # fmt: skip
def test_where_a_stretch_lies_is_told_or_not(begin, ranges, told):
    p = Program((5,), (5,))
    left, right = p.all
    value = p.join(0, left, right).value
    walk = C._BoxWalk(left.value, {} if ranges is None else {"u0": ranges}, 16)
    box = Box(value, (begin,), (2,), (0,), (0,))
    maker = value.defining_op
    parts = walk.split(box, maker)
    if told is None:
        assert parts is None
    else:
        names = {left.value: "left", right.value: "right"}
        assert [names[part.value] for part in parts] == told
        assert sum(part.sizes[0] for part in parts) == 2
        assert parts[0].starts == (0,) and parts[-1].starts == (2 - parts[-1].sizes[0],)


# -- boxes


def box(starts, sizes, dims=None, begins=None, value=None):
    value = Program((9,) * len(sizes)).all[0].value if value is None else value
    return Box(value, begins or (0,) * len(sizes), sizes, dims or tuple(range(len(sizes))), starts)


@pytest.mark.parametrize(
    "a, b, apart",
    [
        (((0,), (3,)), ((3,), (2,)), True), (((3,), (2,)), ((0,), (3,)), True),
        (((0,), (3,)), ((2,), (2,)), False), (((2,), (2,)), ((0,), (3,)), False),
        (((0, 0), (3, 3)), ((1, 3), (1, 1)), True), (((0, 0), (3, 3)), ((3, 0), (1, 1)), True),
        (((0, 0), (3, 3)), ((2, 2), (1, 1)), False),
        (((S,), (2,)), ((S + 2,), (1,)), True), (((S,), (2,)), ((T,), (1,)), False),
    ],
)  # fmt: skip
def test_boxes_that_are_apart(a, b, apart):
    assert boxes_apart(box(*a), box(*b), {}) is apart


def test_own_elements_are_of_the_same_value_in_the_same_place():
    p = Program((4, 5), (4, 5))
    x, other = (each.value for each in p.all)
    own = Box(x, (1, 2), (2, 2), (0, 1), (1, 2))
    assert own.is_own(x) and not own.is_own(other)
    assert not attrs.evolve(own, begins=(1, 1)).is_own(x)
    assert not attrs.evolve(own, dims=(None, 1)).is_own(x)


@pytest.mark.parametrize(
    "dims, rank, outcome",
    [
        ([None, 1], 2, [0, 1]), ([0, None], 2, [0, 1]), ([None, 0], 2, [None, 0]),
        ([0, None, 2], 3, [0, 1, 2]), ([None, None, 2], 3, [0, 1, 2]), ([None, None], 3, [0, 1]),
        ([0, None, 1], 2, [0, None, 1]), ([None, None], 1, [0, None]), ([None], 0, [None]),
        ([0, None, None, 3], 4, [0, 1, 2, 3]), ([None, 2], 3, [0, 2]), ([1], 2, [1]),
    ],
)  # fmt: skip
def test_dimensions_of_size_one_take_what_is_left_between_their_neighbours(dims, rank, outcome):
    some = box((0,) * rank, (1,) * rank)
    assert list(C._spread(dims, some)) == outcome


@pytest.mark.parametrize(
    "made, source, fits",
    [
        ((3, 4), (3, 4), True), ((1, 3, 4), (3, 4), True), ((3, 4), (3, 1, 4, 1), True),
        ((3, 4), (4, 3), False), ((2, 6), (3, 4), False), ((12,), (3, 4), False),
        ((3, 4), (12,), False), ((1,), (1, 1), True),
    ],
)  # fmt: skip
def test_a_reshape_that_only_moves_ones_is_seen_through(made, source, fits):
    p = Program(source)
    value = p.shaped(p.all[0], *made).value
    rank = len(made)
    begins = tuple(min(1, size - 1) for size in made)
    whole = Box(value, begins, (1,) * rank, tuple(range(rank)), tuple(range(10, 10 + rank)))
    found = C._reshaped(whole, value.defining_op)
    assert (found is not None) is fits
    if found is not None:
        assert found.begins == tuple(min(1, size - 1) for size in source)
        assert found.starts == whole.starts


def test_all_of_a_value_has_a_place_unless_it_would_leave_the_array():
    value = Program((4, 1)).all[0].value
    part = box((6,), (2, 1), (0, None), (3, 0), value)
    whole = C._whole(part)
    assert (whole.starts, whole.sizes, whole.begins) == ((3,), (4, 1), (0, 0))
    assert C._whole(attrs.evolve(part, begins=(3, 1))) is None


def test_boxes_of_symbolic_sizes_are_left_as_they_are():
    p = Program((4,))
    value = p.all[0].value
    parts = [box((0,), (2,), value=value), box((2,), (2,), begins=(2,), value=value)]
    assert len(C.joined(parts)) == 1
    for change in ({"starts": (S,)}, {"begins": (S,)}, {"sizes": (S,)}):
        others = [parts[0], attrs.evolve(parts[1], **change)]
        assert C.joined(others) is others
