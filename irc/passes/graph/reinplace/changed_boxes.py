"""The boxes of an array in which what was made of it differs from it.

Functionalize turns writes to slices into concatenations of slices of the old array and what is
written, of which the next write takes slices again. A walk back through both, box by box, finds
which boxes of the result are the old array's own and what lies in the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from irc.dialects import graph
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim, Range, provable_le
from irc.ir.types import TensorType

Dims = tuple[Dim, ...]


@attrs.frozen
class Box:
    """A box of `value`, from `begins` on with `sizes`, that lies in a whole array from `starts` on.

    `dims`: which dimension of the whole each of the value's is; None for one of size 1 more.
    """

    value: Value
    begins: Dims
    sizes: Dims
    dims: tuple[int | None, ...]
    starts: Dims

    def is_own(self, whole: Value) -> bool:
        """Whether these are the elements that `whole` has in this place."""
        plain = tuple(range(len(self.starts)))
        return self.value is whole and self.dims == plain and self.begins == self.starts

    @property
    def shape(self) -> Dims:
        """The box's size along each dimension of the whole."""
        shape: list[Dim] = [1] * len(self.starts)
        for dim, size in zip(self.dims, self.sizes, strict=True):
            if dim is not None:
                shape[dim] = size
        return tuple(shape)

    def within(self, value: Value, begins: Dims) -> Box:
        """The same box of another value of that rank."""
        return attrs.evolve(self, value=value, begins=begins)

    def cut(self, dim: int, begin: Dim, size: Dim) -> Box:
        """The part that begins `begin` further on along dimension `dim` of the value."""
        begins, sizes = list(self.begins), list(self.sizes)
        begins[dim], sizes[dim] = begins[dim] + begin, size
        starts, along = list(self.starts), self.dims[dim]
        if along is not None:
            starts[along] = starts[along] + begin
        return attrs.evolve(
            self, begins=tuple(begins), sizes=tuple(sizes), starts=tuple(starts)
        )

    def make(self, builder: Builder) -> Value:
        """The box as a value of the whole's rank."""
        value = self.value
        type_ = value.type
        assert isinstance(type_, TensorType)
        for dim, (begin, size) in enumerate(zip(self.begins, self.sizes, strict=True)):
            if size != type_.shape[dim]:
                type_ = type_.with_shape((*type_.shape[:dim], size, *type_.shape[dim + 1 :]))
                value = builder.value(
                    graph.Slice, value, dim=dim, start=begin, step=1, result_types=type_
                )
        if type_.shape != self.shape:
            value = builder.value(graph.Reshape, value, result_types=type_.with_shape(self.shape))
        return value


@attrs.frozen
class Changes:
    """The boxes in which one array differs from another, in an order in which to write them; the
    operations that put it together; how many elements stay, None if that is not known."""

    boxes: list[Box]
    joins: list[Operation]
    kept: int | None


def changed_boxes(
    value: Value, whole: Value, ranges: Mapping[str, Range], most: int
) -> Changes | str:
    """Where `value` differs from `whole`, of its type, or why that isn't known. `ranges`: what is
    known of symbols. `most`: pieces that a value may be put together of."""
    type_ = whole.type
    assert isinstance(type_, TensorType)
    plain = tuple(range(type_.rank))
    origin: Dims = (0,) * type_.rank
    walk = _BoxWalk(whole, ranges, most)
    pieces = walk.pieces(Box(value, origin, type_.shape, plain, origin))
    changed = [box for box in pieces if not box.is_own(whole)]
    if not changed or len(changed) == len(pieces):
        return "its new content is no update of a slice"
    if any(box.value is whole for box in changed):
        return "what is written is a part of it itself"
    own = [box.shape for box in pieces if box.is_own(whole)]
    known = all(isinstance(n, int) for shape in own for n in shape)
    kept = sum(math.prod(map(_number, shape)) for shape in own) if known else None
    return Changes(joined(changed), walk.passed, kept)


class _BoxWalk:
    def __init__(self, whole: Value, ranges: Mapping[str, Range], most: int) -> None:
        self.whole, self.ranges, self.most = whole, ranges, most
        self.passed: list[Operation] = []

    def pieces(self, box: Box) -> list[Box]:
        """What a box is put together of; itself, if nothing of the whole is seen in it."""
        maker = box.value.defining_op
        if box.value is self.whole or maker is None:
            return [box]
        if isinstance(maker, graph.Slice) and maker.step == 1:
            begins = list(box.begins)
            begins[maker.dim] = begins[maker.dim] + maker.start
            inner = [box.within(maker.source, tuple(begins))]
        elif isinstance(maker, graph.Concat):
            parts = self.split(box, maker)
            if parts is None:
                return [box]
            inner = parts
        elif isinstance(maker, graph.Reshape):
            source = _reshaped(box, maker)
            if source is None:
                return [box]
            inner = [source]
        else:
            return [box]
        before = len(self.passed)
        pieces = [piece for part in inner for piece in self.pieces(part)]
        if len(pieces) > self.most or not any(p.is_own(self.whole) for p in pieces):
            del self.passed[before:]
            return [box]
        self.passed.append(maker)
        return pieces

    def split(self, box: Box, maker: graph.Concat) -> list[Box] | None:
        """The parts of a box in what is concatenated; None where that can't be told."""
        dim = maker.dim
        begin, size = box.begins[dim], box.sizes[dim]
        is_all = size == box.value.type.shape[dim]  # type: ignore[attr-defined]
        parts: list[Box] = []
        place: Dim = 0
        for source in maker.sources:
            end = place + source.type.shape[dim]
            first, last = (place, end) if is_all else self.common(begin, begin + size, place, end)
            if first is None or last is None:
                return None
            if first != last:
                part = box.cut(dim, first - begin, last - first)
                begins = list(part.begins)
                begins[dim] = first - place
                parts.append(part.within(source, tuple(begins)))
            place = end
        return parts

    def common(self, begin: Dim, end: Dim, other: Dim, other_end: Dim) -> tuple[Any, Any]:
        """From where to where two stretches overlap; equal numbers where they don't, None for what
        can't be told."""
        if self.is_le(end, other) or self.is_le(other_end, begin):
            return 0, 0
        first = other if self.is_le(begin, other) else begin if self.is_le(other, begin) else None
        last = end if self.is_le(end, other_end) else (
            other_end if self.is_le(other_end, end) else None
        )  # fmt: skip
        return first, last

    def is_le(self, a: Dim, b: Dim) -> bool:
        return provable_le(a, b, self.ranges)


def _reshaped(box: Box, maker: graph.Reshape) -> Box | None:
    """The box of what is reshaped, if that only adds or drops dimensions of size 1."""
    result_type, source = box.value.type, maker.source.type
    assert isinstance(result_type, TensorType) and isinstance(source, TensorType)
    ours = [d for d, size in enumerate(result_type.shape) if size != 1]
    theirs = [d for d, size in enumerate(source.shape) if size != 1]
    if [result_type.shape[d] for d in ours] != [source.shape[d] for d in theirs]:
        return None
    known = dict(zip(theirs, ours, strict=True))
    begins = tuple(box.begins[known[d]] if d in known else 0 for d in range(source.rank))
    sizes = tuple(box.sizes[known[d]] if d in known else 1 for d in range(source.rank))
    dims = [box.dims[known[d]] if d in known else None for d in range(source.rank)]
    return attrs.evolve(
        box, value=maker.source, begins=begins, sizes=sizes, dims=tuple(_spread(dims, box))
    )


def _spread(dims: list[int | None], box: Box) -> Iterator[int | None]:
    """Give dimensions of size 1 that belong to none of the whole's those left over in their
    order, as far as there are any between their neighbours."""
    last = -1
    for number, dim in enumerate(dims):
        following = next((d for d in dims[number:] if d is not None), len(box.starts))
        if dim is None and last + 1 < following:
            dim = last + 1
        if dim is not None:
            last = dim
        yield dim


def boxes_apart(a: Box, b: Box, ranges: Mapping[str, Range]) -> bool:
    """Whether two boxes of one array surely have no element in common."""
    for first, size, other, length in zip(a.starts, a.shape, b.starts, b.shape, strict=True):
        if provable_le(first + size, other, ranges) or provable_le(other + length, first, ranges):
            return True
    return False


# -- boxes that are written one over the other


def joined(boxes: list[Box]) -> list[Box]:
    """The same elements in fewer boxes, where later ones are written over earlier ones: a value of
    which only parts are seen is written whole, if all that hides it is written as well."""
    if not all(_is_static(box) for box in boxes):
        return boxes
    seen: dict[Box, list[Box]] = {}
    for box in boxes:
        whole = _whole(box)
        covered = whole is not None and _covers(boxes, whole)
        seen.setdefault(whole if covered and whole is not None else box, []).append(box)
    return (_ordered(seen) or boxes) if len(seen) < len(boxes) else boxes


def _is_static(box: Box) -> bool:
    dims = (*box.begins, *box.sizes, *box.starts, *box.value.type.shape)  # type: ignore[attr-defined]
    return all(isinstance(d, int) for d in dims)


def _whole(box: Box) -> Box | None:
    """All of the value that a box is of, in its place; None where that leaves the array."""
    starts = list(box.starts)
    for begin, dim in zip(box.begins, box.dims, strict=True):
        if dim is not None:
            starts[dim] = starts[dim] - begin
        elif begin != 0:
            return None
    shape = box.value.type.shape  # type: ignore[attr-defined]
    begins = (0,) * len(shape)
    return attrs.evolve(box, begins=begins, sizes=shape, starts=tuple(starts))


def _common(a: Box, b: Box) -> int:
    """How many elements two boxes of known sizes have in common."""
    count = 1
    for first, size, other, length in zip(a.starts, a.shape, b.starts, b.shape, strict=True):
        end = min(_number(first + size), _number(other + length))
        count *= max(end - max(_number(first), _number(other)), 0)
    return count


def _number(dim: Dim) -> int:
    assert isinstance(dim, int)
    return dim


def _covers(boxes: list[Box], whole: Box) -> bool:
    """Whether boxes that are apart have all elements of another one."""
    return sum(_common(box, whole) for box in boxes) == _common(whole, whole)


def _ordered(seen: Mapping[Box, list[Box]]) -> list[Box] | None:
    """Boxes in an order in which each is written over those that it hides; None if there is none.
    `seen`: what is seen of each."""
    left, order = list(seen), []
    while left:
        lowest = next((box for box in left if not _hides_any(box, left, seen)), None)
        if lowest is None:
            return None
        order.append(lowest)
        left.remove(lowest)
    return order


def _hides_any(box: Box, others: list[Box], seen: Mapping[Box, list[Box]]) -> bool:
    return any(_common(part, other) for other in others if other is not box for part in seen[box])


__all__ = ["Box", "Changes", "boxes_apart", "changed_boxes"]
