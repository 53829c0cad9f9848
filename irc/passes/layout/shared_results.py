"""Which results of a function are views of which others in eager mode, by the places they fill.

Results that share a storage (`shares` in `result_info`) show one element at each of its places, so
one that fills only places of another can be taken from that: `insert-layout-copies` does where
rewriting made them apart. Where none has all places, `joined_results` makes the storage.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import attrs

from irc.analysis.loop import estimate
from irc.dialects import func
from irc.dialects.sym.facts import facts_of
from irc.ir import attributes as A
from irc.ir.strides import is_dense
from irc.ir.symbols import Dim, Range, dim_product, dim_sum, known_divisor, provable_le
from irc.ir.types import TensorType, element_bytes

LIMIT = 4096  # bytes of which places are compared one by one


@attrs.frozen
class Piece:
    """Where a result lies in its storage: its type with the caller's strides, its offset (in
    elements of its own), and the ranges of the symbols in these. `is_saved`: only the backward
    program sees it."""

    type: TensorType
    offset: Dim
    is_saved: bool = attrs.field(default=False, eq=False)
    ranges: Mapping[str, Range] = attrs.field(factory=dict, eq=False)

    @property
    def sizes(self) -> tuple[Dim, ...]:
        """The type's sizes."""
        return self.type.shape

    @property
    def strides(self) -> tuple[Dim, ...]:
        """The type's strides."""
        return self.type.strides or ()

    @property
    def width(self) -> int:
        """The bytes of an element."""
        return element_bytes(self.type.element)

    @property
    def size(self) -> Dim:
        """The bytes of its elements together."""
        return dim_product(self.sizes) * self.width

    @property
    def begin(self) -> Dim:
        """The byte of the storage where its first element begins."""
        return self.offset * self.width

    @property
    def end(self) -> Dim:
        """The byte after its last element."""
        pairs = zip(self.sizes, self.strides, strict=True)
        return dim_sum([self.offset, 1, *((n - 1) * s for n, s in pairs)]) * self.width

    @property
    def is_solid(self) -> bool:
        """Whether it has an element at every place from its first to its last, and one each."""
        return is_dense(self.sizes, self.strides)

    @property
    def is_static(self) -> bool:
        """Whether its sizes, strides and offset are numbers."""
        return all(isinstance(d, int) for d in (*self.sizes, *self.strides, self.offset))

    def is_le(self, a: Dim, b: Dim) -> bool:
        """Whether a <= b is known of two places."""
        return provable_le(a, b, self.ranges)

    def places(self) -> frozenset[int]:
        """The bytes of its elements, for one whose sizes, strides and offset are numbers."""
        pairs = cast("Iterable[tuple[int, int]]", zip(self.sizes, self.strides, strict=True))
        ranges = [[k * s * self.width for k in range(n)] for n, s in pairs]
        begin = cast(int, self.begin)
        inner = range(begin, begin + self.width)
        return frozenset(map(sum, itertools.product(inner, *ranges)))

    def holds(self, other: Piece) -> bool:
        """Whether each place of `other` is known to be one of these, so that `other` can be a view
        of it: an element of another type begins a multiple of its size after the first one."""
        if known_divisor(other.begin - self.begin) % other.width:
            return False
        if self.is_solid:
            return self.is_le(self.begin, other.begin) and self.is_le(other.end, self.end)
        if self == other:
            return True
        if not (self.is_static and other.is_static):
            return False
        most = max(cast(int, self.size), cast(int, other.size))
        return most <= LIMIT and other.places() <= self.places()


def groups(function: func.FuncOp) -> list[dict[int, Piece]]:
    """The results that share a storage which is no argument's, by position: one dictionary for
    each storage. Results without elements, and those whose places are not known, are left out."""
    by_memory: dict[int, dict[int, Piece]] = {}
    info = function.result_info
    for position, value in enumerate(function.return_op.operands):
        entry = info[position] if info is not None and position < len(info) else None
        if isinstance(entry, A.DictAttr) and entry.get("alias_of") is None:
            piece = _piece(value.type, entry)
            first = entry.get("shares")
            key = first.value if isinstance(first, A.IntegerAttr) else position
            if piece is not None:
                by_memory.setdefault(key, {})[position] = piece
    return _with_ranges(function, list(by_memory.values()))


def _with_ranges(
    function: func.FuncOp, storages: list[dict[int, Piece]]
) -> list[dict[int, Piece]]:
    """The pieces, those with symbols knowing these' ranges where others are in their storage."""
    together = [known for known in storages if len(known) > 1]
    if all(piece.is_static for known in together for piece in known.values()):
        return storages
    ranges = facts_of(function).ranges
    for known in together:
        for position, piece in known.items():
            if not piece.is_static:
                known[position] = attrs.evolve(piece, ranges=ranges)
    return storages


def sources(function: func.FuncOp) -> dict[int, tuple[int, Dim]]:
    """For each result that fills only places of another: that one's position (of several, the one
    with the most elements), and how many bytes further on the result begins."""
    nearest: dict[int, tuple[int, Dim]] = {}
    for known in groups(function):
        for number, piece in known.items() if len(known) > 1 else ():
            holders = [k for k, other in known.items() if k == number or other.holds(piece)]
            best = max(holders, key=lambda k: (estimate(known[k].size), -k))
            if best != number:
                nearest[number] = (best, piece.begin - known[best].begin)
    return {k: (best, place) for k, (best, place) in nearest.items() if best not in nearest}


def _piece(
    type_: Any, entry: A.DictAttr, ranges: Callable[[], Mapping[str, Range]] = dict
) -> Piece | None:
    """Where a result of type `type_` lies; None where it has no elements or that is not known."""
    strides, offset = entry.get("strides"), entry.get("offset")
    if not isinstance(strides, A.DimsAttr) or not isinstance(offset, A.DimAttr):
        return None
    if not isinstance(type_, TensorType) or len(strides.dims) != type_.rank or 0 in type_.shape:
        return None
    steps = [s for s in strides.dims if s is not None]
    if len(steps) < type_.rank:
        return None
    piece = Piece(type_.with_strides(steps), offset.dim, entry.get("saved") is not None)
    return piece if piece.is_static else attrs.evolve(piece, ranges=ranges())
