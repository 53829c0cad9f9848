"""Factors whose terms are multiplied in groups: `group`, and `products = "matrix"`.

A factor keeps its elements then. What has the rows has its terms side by side, where it lies or is
packed; what has the columns lies, or is packed, in panels in which groups of terms of a column are
side by side: of bf16, `w[floordiv(n, 48), floordiv(k, 2), mod(n, 48), mod(k, 2)]`. Groups are made
in registers: where the terms lie side by side, squares of them are exchanged as numbers as wide as
a group; where the columns do, lines of them are interleaved. Numbers of f32 are exchanged as they
are, and each line is cut into parts of bf16 before it is interleaved with the next. What is no
whole square or line, and any other factor, is evaluated as others are, and stored element by
element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irc.dialects import arith, kernel
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.types import FloatType, VectorType, i32
from irc.passes.kernel.cpu.contraction.packing import RIGHT, pack_right
from irc.passes.kernel.cpu.contraction.runs import Stretch
from irc.passes.kernel.cpu.contraction.split import cut
from irc.passes.kernel.cpu.contraction.tiling import Tiling, reads_depth, reads_vectors
from irc.passes.kernel.cpu.emit import Emitter, Scalar, VectorScope
from irc.passes.kernel.cpu.place import OUTER
from irc.passes.kernel.cpu.plan import Axis

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.contraction.products import ProductWriter

SQUARE = 8
"""Columns, and groups of terms, that are exchanged in registers when they are packed."""


def pack_groups(
    owner: ProductWriter, scope: VectorScope, columns: Stretch, depth: Stretch
) -> None:
    """Evaluate the factor with the columns over a block, into panels of groups."""
    tiling, own = owner.tiling, owner.schedule
    along = reads_depth(tiling.right, tiling.columns.name, tiling.depth_run)
    across = reads_vectors(tiling.right, tiling.columns.name, tiling.depth_run, own.lanes)
    units = _square(owner) if along else (own.lanes, tiling.group)
    even = [
        _is_even(axis, block, unit) for axis, block, unit in
        zip((tiling.columns, tiling.depth), (own.point_columns, own.block_depth), units,
            strict=True)
    ]  # fmt: skip
    if not (along or across) or (len(tiling.depth_run.parts) > 1 and not all(even)):
        pack_right(owner, scope, columns, depth)
        return
    emitter = owner.emitter
    middle = [
        stretch.upper if whole else _last_whole(emitter, stretch, unit)
        for stretch, unit, whole in zip((columns, depth), units, even, strict=True)
    ]
    inside = Stretch(columns.lower, middle[0]), Stretch(depth.lower, middle[1])
    (_pack_squares if along else _pack_lines)(owner, scope, columns, depth, *inside)
    if not even[0]:
        pack_right(owner, scope, columns, depth, Stretch(middle[0], columns.upper), depth)
    if not even[1]:
        pack_right(owner, scope, columns, depth, inside[0], Stretch(middle[1], depth.upper))


def _is_even(axis: Axis, block: int, unit: int) -> bool:
    """Whether each block of an axis is made of whole units."""
    return isinstance(axis.extent, int) and not axis.extent % unit and not block % unit


def _last_whole(emitter: Emitter, stretch: Stretch, unit: int) -> Scalar:
    """Where the last whole unit of a stretch ends."""
    count = emitter.quotient(emitter.minus(stretch.upper, stretch.lower), unit, True)
    return emitter.plus(stretch.lower, emitter.times(count, unit))


class _Source:
    """The factor with the columns as it lies, and where it goes."""

    def __init__(
        self, owner: ProductWriter, scope: VectorScope, columns: Stretch, depth: Stretch
    ) -> None:
        access = owner.tiling.right.access
        assert access is not None and access.storage is not None
        self.owner, self.scope, self.tiling = owner, scope, owner.tiling
        self.emitter, self.access = owner.emitter, access
        self.columns, self.depth = columns, depth
        self.element = access.storage.element
        self.pointer = owner.state.pointers[access.storage.value]
        self.memory = owner.memory[RIGHT]

    def place(self, column: Scalar, term: Scalar) -> Scalar:
        """Where an element is read."""
        names = {self.tiling.columns.name: column, self.tiling.depth.name: term}
        inner = self.scope.child(OUTER)
        inner.names.update(names)
        return self.emitter.scalar(self.access.expression, inner)

    def begin(self, column: Scalar) -> Scalar:
        """Where a column's group is stored that the first term of all would be in."""
        emitter, tiling = self.emitter, self.tiling
        passed = emitter.minus(column, self.columns.lower)
        within = emitter.remainder(passed, tiling.packed_panel, True)
        before = emitter.minus(passed, within)
        begin = emitter.plus(
            emitter.times(before, emitter.scalar(self.owner.packed_depth, self.scope)),
            emitter.times(within, tiling.group),
        )
        begin = emitter.minus(begin, emitter.times(self.depth.lower, tiling.packed_panel))
        return emitter.plus(self.scope.names[RIGHT], begin)


def _pack_squares(
    owner: ProductWriter, scope: VectorScope, columns: Stretch, depth: Stretch,
    some: Stretch, terms: Stretch,
) -> None:  # fmt: skip
    """Some columns of a block, and some of its terms, which lie side by side."""
    source, emitter, tiling = _Source(owner, scope, columns, depth), owner.emitter, owner.tiling
    panel, element = tiling.packed_panel, source.element
    count, length = _square(owner)
    line = emitter.vector_type(element, length)
    square = VectorType((count, length), element)
    together: dict[str, A.Attribute] = {}
    if not owner.schedule.is_split:
        together["together"] = A.IntegerAttr(tiling.group)

    def lines(column: Scalar, _: Sequence[Value]) -> list[Value]:
        starts = [source.place(emitter.plus(column, number), 0) for number in range(count)]
        begin = source.begin(column)

        def square_at(term: Scalar, _: Sequence[Value]) -> list[Value]:
            rows = emitter.filled(0.0 if isinstance(element, FloatType) else 0, element, square)
            for number, start in enumerate(starts):
                loaded = emitter.load(
                    source.pointer, emitter.plus(start, term), line, None, None
                )
                place = emitter.value(number)
                rows = emitter.add(kernel.InsertOp, (loaded, rows, place), square)
            rows = emitter.add(kernel.TransposeOp, (rows,), square, together)
            first = emitter.plus(begin, emitter.times(term, panel))
            step = tiling.group if owner.schedule.is_split else 1
            for number in range(0, count, step):
                several = [
                    emitter.add(kernel.ExtractOp, (rows, emitter.value(number + k)), line)
                    for k in range(step)
                ]
                passed = number // step * tiling.group * panel
                _store_group(source, several, emitter.plus(first, passed))
            return []

        emitter.for_loop(terms.lower, terms.upper, length, (), square_at)
        return []

    emitter.for_loop(some.lower, some.upper, count, (), lines)


def _square(owner: ProductWriter) -> tuple[int, int]:
    """Columns and terms that are exchanged in registers."""
    lanes, group = owner.schedule.lanes, owner.tiling.group
    return (lanes, lanes) if owner.schedule.is_split else (SQUARE, SQUARE * group)


def _pack_lines(
    owner: ProductWriter, scope: VectorScope, columns: Stretch, depth: Stretch,
    some: Stretch, terms: Stretch,
) -> None:  # fmt: skip
    """Some columns of a block, which lie side by side, and some of its terms."""
    source, emitter, tiling = _Source(owner, scope, columns, depth), owner.emitter, owner.tiling
    group, lanes = tiling.group, owner.schedule.lanes
    line = emitter.vector_type(source.element, lanes)

    def at(term: Scalar, _: Sequence[Value]) -> list[Value]:
        def vectors(column: Scalar, _: Sequence[Value]) -> list[Value]:
            loads = [
                emitter.load(
                    source.pointer, source.place(column, emitter.plus(term, number)), line, None,
                    None,
                )
                for number in range(group)
            ]  # fmt: skip
            target = emitter.plus(source.begin(column), emitter.times(term, tiling.packed_panel))
            _store_group(source, loads, target)
            return []

        emitter.for_loop(some.lower, some.upper, lanes, (), vectors)
        return []

    emitter.for_loop(terms.lower, terms.upper, group, (), at)


def _store_group(source: _Source, lines: Sequence[Value], target: Scalar) -> None:
    """Store lines of columns, a term each, so that a column's terms are side by side; one line has
    them like that already. Where factors are cut into parts, the lines of each part."""
    owner, emitter = source.owner, source.emitter
    element, lanes = owner.tiling.factor_element, owner.schedule.lanes
    every: list[Sequence[Value]] = [lines]
    if owner.schedule.is_split:
        cuts = [cut(emitter.add, line, lambda of: emitter.vector_type(of, lanes))
                for line in lines]  # fmt: skip
        every = list(zip(*cuts, strict=True))
    apart = emitter.scalar(owner.parts_apart, source.scope) if len(every) > 1 else 0
    wide = emitter.vector_type(element, lanes * len(lines))
    for part, vectors in enumerate(every):
        together = vectors[0]
        if len(vectors) > 1:
            together = emitter.add(kernel.InterleaveOp, vectors, wide)
        there = emitter.plus(target, emitter.times(apart, part)) if part else target
        emitter.store(together, source.memory, there, None)


# -- products


def whole_groups(
    emitter: Emitter, tiling: Tiling, depth: Stretch, group: int
) -> Scalar:
    """Where the last whole group of a part of the depth ends."""
    if _is_even(tiling.depth, tiling.schedule.block_depth, group):
        return depth.upper
    return _last_whole(emitter, depth, group)


def term_masks(
    emitter: Emitter, place: Scalar, upper: Scalar, lanes: int, group: int
) -> tuple[Value, Value]:
    """Which elements of the group at a place are terms below the upper one: of one column, and of a
    vector of columns."""
    one = emitter.lane_mask(place, upper, group)
    type_ = emitter.vector_type(i32, lanes * group)
    last = emitter.number(group - 1, i32, lanes * group)
    number = emitter.add(arith.AndIOp, (emitter.iota(i32, lanes * group), last), type_)
    left = emitter.add(arith.IndexCastOp, (emitter.value(emitter.minus(upper, place)),), i32)
    bound = emitter.add(kernel.SplatOp, (left,), type_)
    attributes: dict[str, A.Attribute] = {"predicate": A.StringAttr("slt")}
    mask: Type = emitter.vector_type(one.type.element, lanes * group)  # type: ignore[attr-defined]
    return one, emitter.add(arith.CmpIOp, (number, bound), mask, attributes)


__all__ = ["SQUARE", "pack_groups", "term_masks", "whole_groups"]
