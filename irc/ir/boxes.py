"""Boxes of an array in memory: parts that have, along each dimension, some positions in a row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import attrs

from irc.ir.strides import last_element
from irc.ir.symbols import Dim
from irc.ir.types import TensorType


@attrs.frozen
class MemoryBox:
    """A part of an array. first, last: the places in memory that it lies between, both included;
    None where they depend on symbols. starts, ends: the positions along each dimension; the end of
    a dimension that a part has whole is its size. None if they aren't known."""

    first: int | None
    last: int | None
    starts: tuple[int, ...] | None
    ends: tuple[Dim, ...] | None


def box_in(whole: TensorType, part: TensorType, offset: Any) -> MemoryBox | None:
    """Where a view of `whole` lies, `offset` elements behind its first; None where nothing is known
    of that, or there is nothing in it."""
    if not isinstance(offset, int) or whole.strides is None or 0 in part.shape:
        return None
    reach = last_element(part)
    sizes = _sizes(whole, part)
    starts = None if sizes is None else _starts(whole, sizes, offset)
    if starts is None or sizes is None:
        return None if reach is None else MemoryBox(offset, offset + reach, None, None)
    ends = tuple(a + n for a, n in zip(starts, sizes, strict=True))
    return MemoryBox(offset, None if reach is None else offset + reach, starts, ends)


def _sizes(whole: Any, part: Any) -> list[Dim] | None:
    """The size of a part along each dimension of the whole, which its strides tell; None if it is
    no box, or that depends on symbols."""
    if not all(isinstance(d, int) and d >= 0 for d in whole.strides):
        return None
    sizes: list[Dim] = [1] * whole.rank
    dim = 0
    for size, stride in zip(part.shape, part.strides, strict=True):
        if size == 1:
            continue
        while dim < whole.rank and (whole.strides[dim] != stride or whole.shape[dim] == 1):
            dim += 1
        if dim == whole.rank:
            return None
        sizes[dim], dim = size, dim + 1
    return sizes


def _starts(whole: Any, sizes: Sequence[Dim], offset: int) -> tuple[int, ...] | None:
    """The first position along each dimension of a box of `whole`; None if it is none."""
    starts, rest = [0] * whole.rank, offset
    for dim in sorted(range(whole.rank), key=lambda d: -whole.strides[d]):
        size, all_of_it = sizes[dim], whole.shape[dim]
        if all_of_it != 1 and whole.strides[dim]:
            starts[dim], rest = divmod(rest, whole.strides[dim])
        if starts[dim] == 0 and size == all_of_it:
            continue
        known = isinstance(size, int) and isinstance(all_of_it, int)
        if not known or starts[dim] + size > all_of_it:
            return None
    return None if rest else tuple(starts)


def overlap(boxes: Sequence[MemoryBox]) -> tuple[int, int] | None:
    """The numbers of two boxes that aren't known to have no element in common; None if there are
    none. In n log n steps where the boxes are stretches of memory or of one dimension."""
    if _in_a_row([(b.first, b.last) for b in boxes], 1):
        return None
    if boxes and all(b.starts is not None for b in boxes):
        spans: list[Any] = [list(zip(b.starts, b.ends, strict=True)) for b in boxes]  # type: ignore[arg-type]
        if any(_in_a_row([span[dim] for span in spans], 0) for dim in range(len(spans[0]))):
            return None
    for number, box in enumerate(boxes):
        for other in range(number):
            if not are_apart(boxes[other], box):
                return other, number
    return None


def are_apart(one: MemoryBox, other: MemoryBox) -> bool:
    """Whether two boxes of one array are known to have no element in common."""
    if _in_a_row([(one.first, one.last), (other.first, other.last)], 1):
        return True
    if one.starts is None or other.starts is None or one.ends is None or other.ends is None:
        return False
    mine = zip(one.starts, one.ends, strict=True)
    others = zip(other.starts, other.ends, strict=True)
    return any(_in_a_row(pair, 0) for pair in zip(mine, others, strict=True))


def _in_a_row(stretches: Sequence[tuple[Any, Any]], step: int) -> bool:
    """Whether stretches of known bounds, in their order, are apart: each begins at least `step`
    behind the end of the one before."""
    if not all(isinstance(bound, int) for stretch in stretches for bound in stretch):
        return False
    return all(a[1] + step <= b[0] for a, b in pairwise(sorted(stretches)))


__all__ = ["MemoryBox", "are_apart", "box_in", "overlap"]
