"""Boxes of an array in memory, against the places that all their elements take."""

from __future__ import annotations

import random
from itertools import product

import pytest

from irc.ir.boxes import are_apart, box_in, overlap
from irc.ir.types import TensorType, contiguous_strides, f32

RANDOM = random.Random(31)


def array(shape, strides=None):
    return TensorType(shape, f32, tuple(strides or contiguous_strides(shape)))


def places(type_, offset):
    """The places of all elements."""
    indices = product(*(range(n) for n in type_.shape))
    return {offset + sum(i * s for i, s in zip(at, type_.strides, strict=True)) for at in indices}


def any_part(whole):
    """A box of an array with its offset; sometimes without its dimensions of size 1."""
    starts = [RANDOM.randrange(n) for n in whole.shape]
    sizes = [RANDOM.randint(1, n - a) for n, a in zip(whole.shape, starts, strict=True)]
    offset = sum(a * s for a, s in zip(starts, whole.strides, strict=True))
    kept = [d for d, n in enumerate(sizes) if n != 1 or RANDOM.random() < 0.5]
    return array([sizes[d] for d in kept], [whole.strides[d] for d in kept]), offset


@pytest.mark.parametrize("seed", range(30))
def test_boxes_are_apart_just_where_they_share_no_place(seed):
    RANDOM.seed(seed)
    shape = [RANDOM.randint(1, 5) for _ in range(RANDOM.randint(0, 3))]
    strides = list(contiguous_strides([n + RANDOM.randint(0, 2) for n in shape]))
    whole = array(shape, strides)
    parts = [any_part(whole) for _ in range(12)]
    boxes = [box_in(whole, part, offset) for part, offset in parts]
    taken = [places(part, offset) for part, offset in parts]
    assert all(box is not None and box.starts is not None for box in boxes)
    for a, b in product(range(len(parts)), repeat=2):
        assert are_apart(boxes[a], boxes[b]) is taken[a].isdisjoint(taken[b])
    for count in range(len(parts)):
        pairs = [(a, b) for b in range(count) for a in range(b) if taken[a] & taken[b]]
        found = overlap(boxes[:count])
        assert found in pairs if pairs else found is None


@pytest.mark.parametrize(
    ("part", "offset"),
    [
        (array([3], [1]), 3),  # over the end of a row
        (array([2], [2]), 0),  # every other element
        (array([4, 2], [1, 4]), 0),  # turned around
        (array([3, 2], [4, 1]), 8),  # more rows than there are
    ],
)
def test_what_is_no_box_is_a_stretch_of_memory(part, offset):
    box = box_in(array([4, 4]), part, offset)
    assert box is not None and box.starts is None
    assert (box.first, box.last) == (min(places(part, offset)), max(places(part, offset)))


def test_parts_of_nothing_and_of_unknown_size_are_no_boxes():
    from irc.ir.symbols import symbol

    assert box_in(array([4, 4]), array([0, 4]), 0) is None
    assert box_in(array([4, 4]), array([symbol("s0")], [1]), 0) is None
    assert box_in(array([symbol("s0"), 4]), array([symbol("s1"), 1], [4, 1]), 0) is None
    assert box_in(array([4, 4]), array([2], [1]), symbol("s0")) is None


def test_columns_side_by_side_are_apart_without_a_look_at_each_pair():
    whole = array([3, 300])
    boxes = [box_in(whole, array([3], [300]), k) for k in range(300)]
    assert overlap(boxes) is None
    assert overlap([*boxes, boxes[7]]) == (7, 300)


def test_columns_of_an_array_of_unknown_length_are_apart():
    from irc.ir.symbols import symbol

    rows = symbol("s0")
    whole = array([rows, 9, 2], [18, 2, 1])
    boxes = [box_in(whole, array([rows, 2], [18, 1]), 2 * k) for k in range(9)]
    assert overlap(boxes) is None and overlap([*boxes, boxes[4]]) == (4, 9)
    wide = box_in(whole, array([rows, 3, 2], [18, 2, 1]), 4)
    assert [are_apart(wide, box) for box in boxes] == [k not in (2, 3, 4) for k in range(9)]
    assert box_in(whole, array([rows, 3, 2], [18, 2, 1]), 14) is None  # it leaves its rows
    lone = box_in(whole, array([2], [1]), 0)
    assert lone.starts is None  # there may be no row at all
    assert not are_apart(lone, boxes[0]) and not are_apart(lone, boxes[1])
