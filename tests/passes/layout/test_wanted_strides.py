"""Which strides can be wanted, of what, and what wanting them of a view means for its source."""

from __future__ import annotations

from typing import Any

import pytest

from irc.dialects import graph
from irc.ir import attributes as A
from irc.ir.core import Block
from irc.ir.symbols import Dim, symbol
from irc.ir.types import TensorType, f32
from irc.passes.layout.assign_layouts import (
    entry,
    is_writable,
    repeats,
    source_strides,
    strides_entry,
)

S0, S1 = symbol("s0"), symbol("s1")
Sizes = tuple[Dim, ...]


def view(cls: Any, source: Sizes, made: Sizes, **attributes: Any) -> Any:
    """A view op with a result of these sizes, of an argument."""
    (argument,) = Block([TensorType(source, f32)]).arguments
    return cls.make(argument, result_types=TensorType(made, f32), **attributes)


@pytest.mark.parametrize(
    ("permutation", "wanted", "expected"),
    [([1, 0], (1, 4), (4, 1)), ([2, 0, 1], (10, 20, 30), (20, 30, 10))],
)
def test_a_permutation_permutes_back(permutation: list[int], wanted: Any, expected: Any) -> None:
    sizes = (2, 3, 4)[: len(permutation)]
    op = view(graph.Permute, sizes, tuple(sizes[d] for d in permutation), permutation=permutation)
    assert source_strides(op, wanted) == expected


@pytest.mark.parametrize(
    ("source", "dim", "step", "wanted", "expected"),
    [
        ((6, 8), 1, 1, (8, 1), (8, 1)),
        ((6, 8), 1, 1, (7, 1), None),  # rows of the source would overlap
        ((6, 8), 0, 1, (8, 1), (8, 1)),
        ((6, 8), 0, 2, (16, 1), (8, 1)),
        ((6, 8), 0, 2, (15, 1), None),
        ((6, 8), 0, 2, (17, 1), None),
        ((6, 8), 0, 3, (24, 1), (8, 1)),
        ((2, 6, 8), 1, 2, (96, 32, 2), (96, 16, 2)),
        ((4, S0), 0, 1, (S0, 1), (S0, 1)),
        ((4, S0), 0, 2, (S0 * 2, 1), (S0, 1)),
        ((4, S0), 0, 2, (S0, 1), None),
    ],
)
def test_a_slice_wants_its_step_of_the_source(
    source: Sizes, dim: int, step: int, wanted: Any, expected: Any
) -> None:
    made = tuple(2 if d == dim else size for d, size in enumerate(source))
    op = view(graph.Slice, source, made, dim=dim, start=0, step=step)
    assert source_strides(op, wanted) == expected


@pytest.mark.parametrize(
    ("source", "dims", "made", "wanted", "expected"),
    [
        ((4,), [1], (3, 4), (0, 1), (1,)),
        ((4,), [1], (3, 4), (4, 1), None),  # what is repeated has no stride
        ((4,), [1], (3, 4), (1, 1), None),
        ((4,), [2], (2, 3, 4), (0, 5, 1), None),
        ((4,), [2], (2, 3, 4), (5, 0, 1), None),
        ((4,), [2], (2, 3, 4), (0, 0, 1), (1,)),
        ((4,), [1], (1, 4), (7, 1), (1,)),  # a size of 1 has any stride
        ((4,), [0], (4, 3), (2, 0), (2,)),
        ((4,), [1], (2, 4), (0, 0), None),  # the source has four places
        ((1, 4), [0, 1], (3, 4), (0, 1), (4, 1)),
        ((4, 1), [0, 1], (4, 3), (1, 0), (1, 1)),
        ((4, 1), [0, 1], (4, 3), (5, 0), (5, 1)),
        ((2, 1, 4), [0, 1, 2], (2, 3, 4), (4, 0, 1), (4, 4, 1)),
        ((1, 4), [1, 2], (2, 1, 4), (0, 99, 1), (4, 1)),
        ((1, 2, 4), [0, 1, 2], (3, 2, 4), (0, 6, 1), (12, 6, 1)),
        ((4, 4), [1, 2], (2, 4, 4), (0, 1, 1), None),
        ((4, 4), [1, 2], (2, 4, 4), (0, 1, 4), (1, 4)),
        ((S0,), [1], (3, S0), (0, 1), (1,)),
        ((1, S0), [0, 1], (S1, S0), (0, 1), (S0, 1)),
    ],
)
def test_a_broadcast_wants_the_strides_of_what_is_not_repeated(
    source: Sizes, dims: list[int], made: Sizes, wanted: Any, expected: Any
) -> None:
    assert source_strides(view(graph.Broadcast, source, made, dims=dims), wanted) == expected


def test_other_views_and_other_operations_want_nothing() -> None:
    (argument,) = Block([TensorType((4,), f32)]).arguments
    assert source_strides(view(graph.Reshape, (4, 2), (8,)), (1,)) is None
    assert source_strides(graph.Neg.make(argument), (1,)) is None


@pytest.mark.parametrize(
    ("sizes", "strides", "expected"),
    [
        ((4, 3), (3, 1), True), ((4,), (0,), False), ((2,), (0,), False), ((1,), (0,), True),
        ((0,), (0,), True), ((S0,), (0,), False), ((S0,), (1,), True), ((4, 3), (0, 1), False),
        ((4, 3), (1, 0), False), ((1, 3), (0, 1), True), ((), (), True),
    ],
)  # fmt: skip
def test_nothing_is_written_where_elements_share_places(
    sizes: Sizes, strides: Sizes, expected: bool
) -> None:
    assert is_writable(TensorType(sizes, f32), strides) is expected


@pytest.mark.parametrize(
    ("sizes", "strides", "wanted", "expected"),
    [
        ((4, 3), (3, 1), (3, 1), True), ((4, 3), (3, 1), (0, 1), False),
        ((4, 3), (0, 1), (0, 1), True), ((4, 3), (0, 1), (3, 1), True),
        ((4, 3), (1, 4), (0, 1), False), ((1, 3), (3, 1), (0, 1), True),
        ((2, 3), (3, 1), (0, 1), False), ((4, 3), (0, 1), (0, 0), False),
        ((S0, 3), (3, 1), (0, 1), False), ((S0, 3), (0, 1), (0, 1), True),
    ],
)  # fmt: skip
def test_what_is_wanted_once_is_seen_to_be_repeated(
    sizes: Sizes, strides: Sizes, wanted: Sizes, expected: bool
) -> None:
    assert repeats(TensorType(sizes, f32, strides), wanted) is expected


def test_what_is_said_of_an_argument_or_result() -> None:
    dims = A.DimsAttr([6, 1])
    info = A.ArrayAttr([A.DictAttr({"strides": dims}), A.DictAttr({}), A.UNIT])
    assert [entry(info, k) for k in range(4)] == [info[0], info[1], None, None]
    assert [strides_entry(info, k) for k in range(4)] == [(6, 1), None, None, None]
    assert entry(None, 0) is None and strides_entry(None, 0) is None
    wrong = A.ArrayAttr([A.DictAttr({"strides": A.UNIT})])
    assert entry(wrong, 0) is wrong[0] and strides_entry(wrong, 0) is None
