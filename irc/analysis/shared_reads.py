"""Reductions several points of which read the same: what sums of several points in registers save.

    jam = jam_of(compute, target)
    if not isinstance(jam, str): ... jam.axis, jam.points ...

Windows overlap, and each place of an image reads one weight; rows of a small product read one
column. A reduction that takes its points one after the other loads all that anew. Where several
points of an axis are taken together (unroll and jam), each element that they share is loaded once
for all of them: what they load is counted from the indices of the reads, which are affine in the
axes. Vectors run along another axis, on which reads lie side by side.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from irc.analysis.contraction import tiled
from irc.analysis.loop import is_unit, points
from irc.dialects import loop
from irc.ir.symbols import Dim, coefficient, dim_sum, free_symbols, symbol
from irc.ir.types import TensorType, element_bytes
from irc.target import Target


@attrs.frozen
class SharedReads:
    """How points of a reduction are taken together.

    axis: the par axis whose points are; points: how many. vector: the par axis along which vectors
    run. written_out: the axes that are summed over along which the points overlap, whose elements
    have code of their own. gain: the time one by one over the time so. ahead: how many tiles of
    points before its sums the memory is asked for what a tile is the first to read; 0: never.
    """

    axis: str
    points: int
    vector: str
    written_out: tuple[str, ...]
    gain: float
    ahead: int


def jam_of(compute: loop.ComputeOp, target: Target) -> SharedReads | str:
    """How points of a compute share most of what they read, or why they don't."""
    objection = _objection(compute, target)
    if objection is not None:
        return objection
    axes = {axis.name: axis for axis in compute.axis_list}
    par = [a for a in compute.axis_list if a.kind == "par" and not is_unit(a.extent)]
    vector = next((a.name for a in reversed(par) if _lies_along(compute, a.name, target)), None)
    if vector is None:
        return "what it reads lies side by side along no axis of its results"
    best: SharedReads | None = None
    for axis in par:
        if axis.name == vector:
            continue
        overlapping = tuple(_overlapping(compute, axis.name))
        jam = _best_points(compute, axes[axis.name], vector, overlapping, target)
        if jam is not None and (best is None or jam.gain >= best.gain):
            best = jam
    if best is None or best.gain < target.features.sure_jams:
        return "its points share too little of what they read"
    return best


def _objection(compute: loop.ComputeOp, target: Target) -> str | None:
    """Why a compute is no short reduction over affine reads."""
    features = target.features
    if any(o.kind != "reduce" for o in compute.output_list) or len(compute.output_list) != 1:
        return "it is not one reduction"
    if tiled(compute, target) is not None:
        return "its kernel multiplies tiles"
    red = [a.extent for a in compute.axis_list if a.kind != "par"]
    if not red or not all(isinstance(n, int) and n for n in red):
        return "nobody knows how many elements it combines"
    if set(red) == {1}:
        return "it combines one element alone"
    if compute.output_list[0].combiner not in ("sum", "prod", "min", "max"):
        return "it combines more than values"
    if points(a.extent for a in compute.axis_list) < features.tiled_work:
        return "it is small"
    first, *rest = red
    if first > features.most_terms or any(n > features.most_taps for n in rest):  # type: ignore[operator]
        return "its sums are of partial sums"
    if any(read.positions for read in compute.reads):
        return "it reads at places that it reads"
    return None


def _lies_along(compute: loop.ComputeOp, name: str, target: Target) -> bool:
    """Whether vectors may run along an axis: results, and all that is read and depends on it, lie
    side by side."""
    type_ = compute.results[0].type
    par = [a.name for a in compute.axis_list if a.kind == "par"]
    assert isinstance(type_, TensorType) and type_.strides is not None
    if len(par) != type_.rank or type_.strides[par.index(name)] != 1:
        return False
    steps = [_step(read, name) for read in compute.reads]
    return 1 in steps and all(step in (0, 1) for step in steps)


def _step(read: loop.ReadOp, name: str) -> Dim | None:
    """By how many elements a read moves along an axis; None where not evenly."""
    type_ = read.source.type
    assert isinstance(type_, TensorType)
    total: Dim = 0
    for index, stride in zip(read.indices, type_.strides or (), strict=False):
        step = coefficient(index, name) if name in free_symbols(index) else 0
        if step is None:
            return None
        total = total + step * stride
    return total


def _overlapping(compute: loop.ComputeOp, name: str) -> Iterator[str]:
    """The axes combined over along which points of an axis overlap: some index moves along both."""
    used = [free_symbols(index) for read in compute.reads for index in read.indices]
    for axis in compute.axis_list:
        if axis.kind != "par" and any({name, axis.name} <= names for names in used):
            yield axis.name


def _best_points(
    compute: loop.ComputeOp, axis: loop.AxisAttr, vector: str, written_out: Sequence[str],
    target: Target,
) -> SharedReads | None:  # fmt: skip
    """The number of points that takes least time, together with what is left at the end."""
    features, extents = target.features, {a.name: a.extent for a in compute.axis_list}
    terms = 1
    for a in compute.axis_list:
        terms *= 1 if a.kind == "par" else int(a.extent)  # type: ignore[arg-type]
    written = 1
    for name in written_out:
        written *= int(extents[name])  # type: ignore[arg-type]
    known = [_Loads.of(read, axis.name, written_out, extents) for read in compute.reads]

    def time(count: int) -> float:
        """Cycles of a tile for all terms: a product of a vector in each, and its loads beside it
        or, at the least, the time until sums can be added to again."""
        loaded = sum(each.count(count) for each in known) * terms / written
        return max(loaded, count * terms, terms * features.product_latency) + loaded / 4

    most = min(features.most_jammed, max(features.written_products // max(written, 1), 1))
    extent = axis.extent if isinstance(axis.extent, int) else None
    best: tuple[float, int] | None = None
    for count in range(2, min(most, extent or most) + 1):
        each = (time(count) + features.jam_start) / count
        if extent is not None:
            whole, rest = divmod(extent, count)
            # A tile at the end is code of its own.
            end = (time(rest) + features.jam_start) * (1 + features.tile_slack) if rest else 0.0
            each = (whole * (time(count) + features.jam_start) + end) / extent
        if best is None or each < best[0]:
            best = each, count
    if best is None:
        return None
    # One by one, several vectors of a point are added to at a time.
    alone = len(known) * terms
    single = max(alone, terms) + alone / 4
    gain = single / (time(best[1]) / best[1])
    ahead = int(any(_is_far(read, axis.name, target) for read in compute.reads))
    return SharedReads(axis.name, best[1], vector, tuple(written_out), gain, ahead)


def _is_far(read: loop.ReadOp, axis: str, target: Target) -> bool:
    """Whether points read an array that the second-level cache has no room for."""
    type_ = read.source.type
    assert isinstance(type_, TensorType)
    size = points(type_.shape) * element_bytes(type_.element)
    return size > target.features.core_bytes and _step(read, axis) != 0


def first_places(
    read: loop.ReadOp, axis: str, count: int, combined: Mapping[str, int]
) -> tuple[int, ...]:
    """What a tile of `count` points of a par axis is the first to read: neither the tile before it
    did nor, where points of another axis overlap along what is combined, the point before.

    Gives elements from where the tile's first point reads the first of all that is combined.
    combined: the axes that are, and how many elements they have. Nothing where places don't move
    evenly.
    """
    steps = {name: _step(read, name) for name in (axis, *combined)}
    each = {name: step for name, step in steps.items() if isinstance(step, int)}
    if len(each) < len(steps) or not each[axis]:
        return ()
    beside: dict[str, list[int]] = {axis: [0]}
    for name, extent in combined.items():
        others = _beside(read, name)
        partner = axis if axis in others else next(iter(others), "")
        places = [each[name] * n for n in range(extent)]
        beside[partner] = _sums(beside.get(partner, [0]), places)
    tile = _sums([each[axis] * n for n in range(count)], beside.pop(axis))
    new = {*tile}.difference(place - each[axis] * count for place in tile)
    for partner, places in beside.items():
        step = _step(read, partner) if partner else None
        before = [place - step for place in places] if isinstance(step, int) else []
        new = {*_sums(new, {*places}.difference(before))}
    return tuple(sorted(new))


def _beside(read: loop.ReadOp, name: str) -> list[str]:
    """The par axes that the places of a read move along together with an axis that is combined."""
    compute = read.parent_op
    assert isinstance(compute, loop.ComputeOp)
    par = {a.name for a in compute.axis_list if a.kind == "par"}
    used = [free_symbols(index) for index in read.indices]
    return sorted({other for names in used if name in names for other in names & par})


def _sums(some: Iterable[int], others: Iterable[int]) -> list[int]:
    """All sums of one of each, each once."""
    return sorted({a + b for a, b in itertools.product(some, others)})


@attrs.frozen
class _Loads:
    """Of a read, by how much each index moves along the points and the axes that are written out;
    None in the place of what isn't even: each point has elements of its own."""

    steps: tuple[tuple[int, ...], ...] | None
    extents: tuple[int, ...]

    @classmethod
    def of(
        cls, read: loop.ReadOp, axis: str, written_out: Sequence[str],
        extents: Mapping[str, Dim],
    ) -> _Loads:  # fmt: skip
        """Those of a read."""
        names = (axis, *written_out)
        sizes = tuple(int(extents[name]) for name in written_out)  # type: ignore[arg-type]
        steps = []
        for index in read.indices:
            row = [coefficient(index, n) if n in free_symbols(index) else 0 for n in names]
            if not all(isinstance(step, int) for step in row):
                return cls(None, sizes)
            moved = [symbol(n) * (s or 0) for n, s in zip(names, row, strict=True)]
            rest = index - dim_sum(moved)
            if free_symbols(rest) & set(names):
                return cls(None, sizes)
            if any(row):
                steps.append(tuple(row))
        return cls(tuple(steps), sizes)  # type: ignore[arg-type]

    def count(self, points: int) -> int:
        """How many elements so many points load, each once."""
        every = itertools.product(range(points), *map(range, self.extents))
        if self.steps is None:
            return sum(1 for _ in every)
        return len({
            tuple(sum(s * p for s, p in zip(row, place, strict=True)) for row in self.steps)
            for place in every
        })  # fmt: skip


__all__ = ["SharedReads", "first_places", "jam_of"]
