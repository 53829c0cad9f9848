"""Boxes of an array in memory: parts that have, along each dimension, some positions in a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import attrs

from irc.ir.strides import last_element
from irc.ir.types import TensorType


@attrs.frozen
class MemoryBox:
    """A part of an array of known sizes. first, last: the places in memory that it lies between,
    both included; starts, ends: the positions along each dimension, None if they aren't known."""

    first: int
    last: int
    starts: tuple[int, ...] | None
    ends: tuple[int, ...] | None


def box_in(whole: TensorType, part: TensorType, offset: Any) -> MemoryBox | None:
    """Where a view of `whole` lies, `offset` elements behind its first; None where that depends on
    symbols, or there is nothing in it."""
    reach = last_element(part)
    if reach is None or reach < 0 or not isinstance(offset, int) or whole.strides is None:
        return None
    sizes = _sizes(whole, part)
    starts = None if sizes is None else _starts(whole, sizes, offset)
    if sizes is None or starts is None:
        return MemoryBox(offset, offset + reach, None, None)
    ends = tuple(a + n for a, n in zip(starts, sizes, strict=True))
    return MemoryBox(offset, offset + reach, starts, ends)


def _sizes(whole: Any, part: Any) -> list[int] | None:
    """The size of a part along each dimension of the whole, which its strides tell; None if it is
    no box."""
    dims = (*whole.shape, *whole.strides)
    if not all(isinstance(d, int) and d >= 0 for d in dims):
        return None
    sizes, dim = [1] * whole.rank, 0
    for size, stride in zip(part.shape, part.strides, strict=True):
        if size == 1:
            continue
        while dim < whole.rank and (whole.strides[dim] != stride or whole.shape[dim] == 1):
            dim += 1
        if dim == whole.rank:
            return None
        sizes[dim], dim = size, dim + 1
    return sizes


def _starts(whole: Any, sizes: Sequence[int], offset: int) -> tuple[int, ...] | None:
    """The first position along each dimension of a box of `whole`; None if it is none."""
    starts, rest = [0] * whole.rank, offset
    for dim in sorted(range(whole.rank), key=lambda d: -whole.strides[d]):
        if whole.shape[dim] != 1 and whole.strides[dim]:
            starts[dim], rest = divmod(rest, whole.strides[dim])
        if starts[dim] + sizes[dim] > whole.shape[dim]:
            return None
    return None if rest else tuple(starts)


def overlap(boxes: Sequence[MemoryBox]) -> tuple[int, int] | None:
    """The numbers of two boxes that aren't known to have no element in common; None if there are
    none. In n log n steps where the boxes are stretches of memory or of one dimension."""
    if _in_a_row((b.first, b.last + 1) for b in boxes):
        return None
    if boxes and all(b.starts is not None for b in boxes):
        spans: list[Any] = [list(zip(b.starts, b.ends, strict=True)) for b in boxes]  # type: ignore[arg-type]
        if any(_in_a_row(span[dim] for span in spans) for dim in range(len(spans[0]))):
            return None
    for number, box in enumerate(boxes):
        for other in range(number):
            if not are_apart(boxes[other], box):
                return other, number
    return None


def are_apart(one: MemoryBox, other: MemoryBox) -> bool:
    """Whether two boxes of one array are known to have no element in common."""
    if one.last < other.first or other.last < one.first:
        return True
    if one.starts is None or other.starts is None or one.ends is None or other.ends is None:
        return False
    ends = zip(one.starts, one.ends, other.starts, other.ends, strict=True)
    return any(end <= second or other_end <= first for first, end, second, other_end in ends)


def _in_a_row(stretches: Iterable[tuple[int, int]]) -> bool:
    """Whether stretches, in their order, each end before the next one begins."""
    return all(a[1] <= b[0] for a, b in pairwise(sorted(stretches)))


__all__ = ["MemoryBox", "are_apart", "box_in", "overlap"]
