"""The pass `cut-pieces`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from irc.analysis.cost import class_of, told, work
from irc.analysis.loop import points
from irc.analysis.scalar_ranges import EXCHANGED
from irc.dialects import arith, func, graph, layout, loop, sym
from irc.ir.builder import Builder
from irc.ir.core import Operation, Region, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, coefficient, free_symbols, symbol
from irc.ir.traits import Terminator
from irc.ir.types import TensorType, i1, index
from irc.passes.common.bodies import axis, axis_name, clean_block, make_axes, with_axes
from irc.passes.loop.evaluations import adjacent_axis
from irc.passes.loop.positions import position, position_folds
from irc.target import Target, target_of
from irc.target.costs import Cost

# By predicate: how far behind the place that an axis is compared with its outcome changes.
_CHANGES = {"slt": (0,), "sge": (0,), "sle": (1,), "sgt": (1,), "eq": (0, 1), "ne": (0, 1)}


@register_pass
class CutPieces(Pass):
    """Cuts a map where conditions on its axes change, into maps that each compute a piece.

    Concatenations, pads and rolled images come as reads under conditions. On a CPU a kernel reads
    under each of them, and computes all that may be chosen. Where a condition is one of an axis
    that the elements of a vector don't lie along, the places before its border and those behind it
    become computes of their own, in which it is decided; short rows of a piece are one long row
    then. Borders along the innermost axis stay: a kernel cuts its loop there by itself. A piece is
    cut again as long as that takes less time by the cost model, which counts a launch for each; at
    most `max_pieces` are made of a map.

    Before:
        %y = loop.compute par(i0: 8, i1: 4) -> map {
          %0 = loop.index {expression = #sym<i0>} : index
          %1 = arith.constant 3 : index
          %2 = arith.cmpi slt, %0, %1 : index
          %3 = arith.cmpi sge, %0, %1 : index
          %4 = loop.read %b[i0 - 3, i1] (where %3) : f32
          %5 = loop.read %a[i0, i1] (where %2 else %4) : f32
          loop.yield %5 } : tensor<[8, 4] x f32, strides [4, 1]>
    After:
        %p = loop.compute par(i0: 3, i1: 4) -> map { %0 = loop.read %a[i0, i1] ... }
        %q = loop.compute par(i0: 5, i1: 4) -> map { %0 = loop.read %b[i0, i1] ... }
        %y = layout.join %p, %q {dim = 0 : i64} : ... -> tensor<[8, 4] x f32, strides [4, 1]>
    """

    name = "cut-pieces"
    summary = "cut maps where conditions on their axes change"
    anchor = "func.func"
    asks_target = True
    max_pieces: int = 32

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        target = target_of(context)
        for compute in list(op.block.ops):
            if not isinstance(compute, loop.ComputeOp) or not _is_cuttable(compute):
                continue
            tree = _cut(compute, target, self.max_pieces)
            if tree is None:
                continue
            times = told(target, _cost(compute), tree.cost())
            if context.spend("cut-pieces", compute):
                context.remark(f"is cut into {tree.count()} pieces: {times}", compute)
                context.count("cut")
                context.count("pieces", tree.count())
                tree.write(compute)
            else:
                tree.drop()


def _is_cuttable(op: loop.ComputeOp) -> bool:
    """Whether a compute is a map of its own whose results any launches may make in their places,
    which strides that aren't known leave open."""
    types = [_type_of(result) for result in op.results]
    ranks = {len(op.axis_list), *(type_.rank for type_ in types)}
    if sym.range_entry(op) or not all(
        isinstance(step, int) for type_ in types for step in type_.strides or (None,)
    ):
        return False
    plain = bool(op.axis_list) and all(output == loop.MAP for output in op.output_list)
    updates = any(isinstance(u, graph.UpdateInput) for r in op.results for u in r.users)
    return plain and len(ranks) == 1 and op.schedule is None and not op.operands and not updates


def _type_of(value: Value) -> TensorType:
    assert isinstance(value.type, TensorType)
    return value.type


def _cost(op: loop.ComputeOp) -> Cost:
    """What a map computes and reads, conditions apart: these are decided once for a vector."""
    classes = reads = 0
    for inner in op.block.ops:
        if isinstance(inner, loop.ReadOp):
            reads += 1 if inner.mask is None else 2
        elif Terminator not in inner.traits and inner.results[0].type not in (i1, index):
            classes += class_of(inner)
    count = points(a.extent for a in op.axis_list)
    return work(classes, count) + Cost(near=reads * count, launches=1)


# -- where conditions change


def _borders(op: loop.ComputeOp) -> Iterator[tuple[int, list[int]]]:
    """The axes of known size that conditions are of, but for the innermost in memory, outermost
    first: which of them, and the places inside where an outcome changes, in order."""
    inner = adjacent_axis(op) % len(op.axis_list)
    places: dict[int, set[int]] = {}
    for each in op.block.ops:
        if isinstance(each, arith.CmpIOp):
            for dim, place in _changes(each, op):
                extent = op.axis_list[dim].extent
                known = isinstance(place, int) and isinstance(extent, int)
                if dim != inner and known and 0 < place < extent:
                    places.setdefault(dim, set()).add(place)
    steps: Any = _type_of(op.results[0]).strides
    for dim in sorted(places, key=lambda dim: steps[dim], reverse=True):
        yield dim, sorted(places[dim])


def _changes(op: arith.CmpIOp, compute: loop.ComputeOp) -> Iterator[tuple[int, Any]]:
    """The axis that a comparison is of alone, and the places where its outcome changes."""
    left, right = position(op.lhs), position(op.rhs)
    if left is None or right is None or op.predicate not in _CHANGES:
        return
    rest, predicate = left - right, op.predicate
    names = free_symbols(rest)
    dims = [k for k, a in enumerate(compute.axis_list) if a.name in names]
    scale = coefficient(rest, compute.axis_list[dims[0]].name) if len(dims) == 1 else 0
    if scale not in (1, -1):
        return
    rest = rest - scale * symbol(compute.axis_list[dims[0]].name)
    if scale == -1:
        rest, predicate = -rest, EXCHANGED[predicate]
    for behind in _CHANGES[predicate]:
        yield dims[0], behind - rest


# -- pieces


@attrs.define(eq=False)
class _Uncut:
    """A piece as it is: a compute that stands nowhere."""

    compute: loop.ComputeOp

    def count(self) -> int:
        """How many computes it is."""
        return 1

    def cost(self) -> Cost:
        """What it does."""
        return _cost(self.compute)

    def drop(self) -> None:
        """Forget it."""
        self.compute.drop_all_references()

    def insert(self, builder: Builder) -> Sequence[Value]:
        """Insert it; gives the results."""
        builder.insert(self.compute)
        return self.compute.results


@attrs.define(eq=False)
class _Joined:
    """Pieces that lie one after another along a dimension of arrays of such types."""

    dim: int
    pieces: list[_Uncut | _Joined]
    types: list[TensorType]

    def count(self) -> int:
        """How many computes they are."""
        return sum(piece.count() for piece in self.pieces)

    def cost(self) -> Cost:
        """What they do."""
        total = Cost()
        for piece in self.pieces:
            total += piece.cost()
        return total

    def drop(self) -> None:
        """Forget them."""
        for piece in self.pieces:
            piece.drop()

    def insert(self, builder: Builder) -> Sequence[Value]:
        """Insert them and what joins them; gives the results."""
        rows = [piece.insert(builder) for piece in self.pieces]
        return [
            builder.value(layout.JoinOp, values, dim=self.dim, result_types=type_)
            for values, type_ in zip(zip(*rows, strict=True), self.types, strict=True)
        ]

    def write(self, compute: loop.ComputeOp) -> None:
        """Put them in the place of a compute."""
        results = self.insert(Builder.before(compute))
        for old, new in zip(compute.results, results, strict=True):
            old.replace_all_uses_with(new)
        compute.erase()


def _cut(op: loop.ComputeOp, target: Target, most: int) -> _Joined | None:
    """The pieces of a map, at most so many, that is cut as long as that pays; None where it stays
    whole."""
    whole = target.operations(_cost(op))
    for dim, places in _borders(op):
        launches = Cost(launches=len(places) + 1)
        if len(places) >= most or target.operations(launches) >= whole:
            continue
        extent: Any = op.axis_list[dim].extent
        joined = _Joined(dim, [], [_type_of(result) for result in op.results])
        left = most - len(places)
        for low, high in itertools.pairwise([0, *places, extent]):
            part = _part(op, dim, low, high)
            smaller = _cut(part, target, left)
            if smaller is not None:
                part.drop_all_references()
            joined.pieces.append(smaller or _Uncut(part))
            left -= joined.pieces[-1].count() - 1
        if target.operations(joined.cost()) < whole:
            return joined
        joined.drop()
    return None


def _part(op: loop.ComputeOp, dim: int, low: int, high: int) -> loop.ComputeOp:
    """A map at the places [low, high) of an axis, as a compute that stands nowhere."""
    sizes: list[Dim] = [a.extent for a in op.axis_list]
    sizes[dim] = high - low
    extents = {axis_name(k): size for k, size in enumerate(sizes)}
    mapping = {a.name: axis(k) + (low if k == dim else 0) for k, a in enumerate(op.axis_list)}
    body = with_axes(op, mapping, extents)
    clean_block(body.block, position_folds(body.block, extents))
    types = [_sized(_type_of(result), sizes) for result in op.results]
    entries = {"axes": make_axes(sizes), "outputs": op.attributes["outputs"]}
    return loop.ComputeOp((), types, entries, (Region([body.block]),), op.location)


def _sized(type_: TensorType, sizes: Sequence[Dim]) -> TensorType:
    return TensorType(tuple(sizes), type_.element, type_.strides, type_.device)


__all__ = ["CutPieces"]
