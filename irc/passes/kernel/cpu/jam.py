"""Sums of several points of an axis in registers together: the loops over what is combined run
once for all of them (unroll and jam), so that what several points read is read once.

Windows overlap: of seven taps at each of 14 places in a row, 98 products, 20 elements of the image
and seven of the weight are read. Vectors run along an axis around these points, or just inside of
them: then a tile goes over all vectors, which lie side by side, before the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from irc.analysis.shared_reads import first_places
from irc.dialects import arith, kernel, loop
from irc.ir.core import Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import coefficient, substitute, symbol
from irc.passes.kernel.cpu.emit import Scalar, VectorScope
from irc.passes.kernel.cpu.plan import Axis
from irc.passes.kernel.cpu.spans import bound_of, spans
from irc.passes.kernel.cpu.vectors import Phase, phases

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.nest import Carried, Nest


@attrs.frozen
class JamPart:
    """Tiles of `points` points from `lower` up to `upper`, for which conditions on the axis are the
    same where `known`."""

    lower: Scalar
    upper: Scalar
    points: int
    known: bool


class Jam:
    """Emits a loop over a par axis of a nest by tiles of points, and the loops inside."""

    def __init__(self, nest: Nest, depth: int, points: int) -> None:
        self.nest, self.depth, self.points = nest, depth, points
        self.axis = nest.loops[depth]
        self.start = f"{self.axis.name}_first"
        self.beside: list[Nest] = []
        placed = nest.placed
        placed.level_of[self.start] = placed.base + 1 + depth
        own = placed.own_vectors
        inside = nest.loops[depth + 1 :]
        self.vectors = own if own is not None and inside and inside[0].name == own.axis else None
        self.first = depth + 1 if self.vectors is None else depth + 2
        inside = nest.loops[self.first :]
        chosen = nest.schedule
        sums = [a.name for a in inside if a.name in (*chosen.partial, *chosen.chunks)]
        if own is None or placed.state.tile is not None or sums or not inside:
            raise InvalidIR(
                f"points of {self.axis.name} can't have their sums in registers together: vectors "
                "run along a par axis of the compute's own around it or just inside of it, and "
                "what is combined inside makes one sum", op=nest.member.compute)  # fmt: skip
        if any(a.kind == "par" for a in inside) or own.axis == self.axis.name:
            raise InvalidIR(f"only vectors and what is combined come inside of {self.axis.name}, "
                            "whose points have their sums in registers",
                            op=nest.member.compute)  # fmt: skip

    def join(self, map_: Nest) -> None:
        """Have a map of the same points computed for each of a tile's, from their sums."""
        nest, depth, own = self.nest, self.depth, map_.own_vectors
        loops = [axis.name for axis in map_.loops]
        if loops != [axis.name for axis in nest.loops[: self.first]]:
            raise InvalidIR("a map beside sums has the loops around these, in their order",
                            op=map_.member.compute)  # fmt: skip
        assert nest.own_vectors is not None
        same = own is not None and attrs.astuple(own) == attrs.astuple(nest.own_vectors)
        if not same or map_.has_combiners or map_.jam is not None:
            raise InvalidIR("a map beside sums has their vectors, and combines nothing",
                            op=map_.member.compute)  # fmt: skip
        map_.placed.level_of[self.start] = map_.placed.base + 1 + depth
        self.beside.append(map_)

    def run(self, scope: VectorScope) -> None:
        """Emit the loop."""
        emitter = self.nest.emitter
        for part in self._runs(emitter.scalar(self.axis.extent, scope)):

            def body(place: Scalar, _: list[Value], part: JamPart = part) -> list[Value]:
                self._tile(scope, place, part)
                return []

            emitter.for_loop(part.lower, part.upper, part.points, (), body)

    # -- which tiles

    def _runs(self, upper: Scalar) -> Iterable[JamPart]:
        """Tiles that cover the axis: runs of them for which the same conditions hold, if its extent
        is known; then what is left, a tile of its own or point by point."""
        emitter, points = self.nest.emitter, self.points
        if not isinstance(upper, int):
            whole = emitter.times(emitter.quotient(upper, points, True), points)
            yield JamPart(0, whole, points, False)
            yield JamPart(whole, upper, 1, False)
            return
        tiles = upper // points
        begin = 0
        outcomes = [self._outcomes(number * points) for number in range(tiles)]
        for number in range(1, tiles + 1):
            if number == tiles or outcomes[number] != outcomes[begin]:
                yield JamPart(begin * points, number * points, points, True)
                begin = number
        if upper > tiles * points:
            yield JamPart(tiles * points, upper, upper - tiles * points, True)

    def _outcomes(self, first: int) -> list[bool]:
        """What conditions on the axis, and on axes that are written out, give in a tile."""
        names = [self.axis, *self._written_out]
        results = []
        for op in self.nest.member.compute.block.ops:
            bound = bound_of(op) if isinstance(op, arith.CmpIOp) else None
            place = op.lhs.defining_op if isinstance(op, arith.CmpIOp) else None
            if bound is None or not isinstance(place, loop.IndexOp):
                continue
            steps = [coefficient(place.expression, a.name) for a in names]
            rest = place.expression - sum(
                symbol(a.name) * (s or 0) for a, s in zip(names, steps, strict=True)
            )
            if not isinstance(rest, int) or not all(isinstance(s, int) for s in steps):
                continue
            places = [rest + int(steps[0]) * (first + n) for n in range(self.points)]  # type: ignore[arg-type]
            for axis, step in zip(names[1:], steps[1:], strict=True):
                places = [p + int(step) * n for p in places for n in range(int(axis.extent))]  # type: ignore[arg-type]
            results += [place < bound[0] for place in places]
        return results

    @property
    def _written_out(self) -> list[Axis]:
        chosen = self.nest.schedule
        names = chosen.written_out if chosen.has("written_out") else ()
        inside = self.nest.loops[self.first :]
        return [a for a in inside if a.name in names and isinstance(a.extent, int)]

    # -- a tile

    def _tile(self, scope: VectorScope, first: Scalar, part: JamPart) -> None:
        nest, emitter = self.nest, self.nest.emitter
        common = self._level(scope, self.depth)
        common.names[self.start] = first
        if part.known and isinstance(part.upper, int) and isinstance(part.lower, int):
            common.ranges = {self.start: (part.lower, part.upper - part.points)}
        if self.vectors is None:
            self._points(common, scope, first, part)
            return
        axis, depth = nest.loops[self.depth + 1], self.depth + 1
        upper = emitter.scalar(axis.extent, common)
        for low, high in spans(nest.member.compute.block.ops, self.vectors, 0, upper):
            for phase in phases(emitter, self.vectors, low, high, axis.extent):

                def body(place: Scalar, _: list[Value], phase: Phase = phase) -> list[Value]:
                    inside = self._level(common, depth)
                    inside.names[axis.name] = place
                    inside.lanes = phase.lanes(emitter, axis.name, place)
                    inside.span = phase.span
                    self._points(inside, scope, first, part)
                    return []

                emitter.for_loop(phase.lower, phase.upper, phase.step, (), body)

    def _points(
        self, common: VectorScope, scope: VectorScope, first: Scalar, part: JamPart
    ) -> None:
        """The sums of a tile's points, of the vector at hand. scope: outside of the tile."""
        nest, name, emitter = self.nest, self.axis.name, self.nest.emitter
        levels = [nest.placed.base + 1 + depth for depth in range(self.depth, self.first)]
        self._fetch(common, part.points)
        scopes = []
        for number in range(part.points):
            inner = common.child(common.level)
            inner.names[name] = emitter.plus(first, number)
            inner.moved = {**scope.moved, name: symbol(self.start) + number}
            if isinstance(first, int):
                inner.moved[name] = first + number
            inner.common = common
            for level in levels:
                nest.body.enter(level, inner)
            scopes.append(inner)
        states = [nest.combiners(inner) for inner in scopes]
        values = [value for state in states for value in state.values]
        values = self._combine(self.first, common, scopes, states, values)
        for inner, state in zip(scopes, self._with(states, values), strict=True):
            nest.finish(inner, state)
            for map_ in self.beside:
                for level in levels:
                    map_.body.enter(level, inner)
                map_.innermost(inner, None)

    def _fetch(self, common: VectorScope, points: int) -> None:
        """Have memory fetched that a tile is the first to read, some tiles before it does."""
        nest, emitter, ahead = self.nest, self.nest.emitter, self.nest.schedule.jam_ahead
        inside = {a.name: a.extent for a in nest.loops[self.first :]}
        extents = {name: extent for name, extent in inside.items() if isinstance(extent, int)}
        if not ahead or len(extents) < len(inside):
            return
        moved = {**dict.fromkeys(inside, 0), self.axis.name: symbol(self.start) + ahead * points}
        for read, access in nest.member.reads.items():
            if not isinstance(read, loop.ReadOp) or access.storage is None or access.positions:
                continue
            pointer = nest.state.pointers.get(access.storage.value)
            places = first_places(read, self.axis.name, points, extents)
            if pointer is None or not places:
                continue
            begin = emitter.scalar(substitute(access.expression, moved), common)
            for place in places:
                there = emitter.value(emitter.plus(begin, place))
                emitter.effect(kernel.PrefetchOp, (pointer, there))

    def _level(self, scope: VectorScope, depth: int) -> VectorScope:
        """What all points of a tile have at loop number `depth`: behind it what a loop made is not
        there, and what was written out is."""
        common = scope.child(self.nest.placed.base + 1 + depth)
        if self.nest.loops[depth] not in self._written_out:
            common.alike = dict(scope.alike)
        return common

    @staticmethod
    def _with(states: Sequence[Carried], values: Sequence[Value]) -> list[Carried]:
        """The points' states with other values."""
        left = iter(values)
        return [state.carrying([next(left) for _ in state.values]) for state in states]

    def _combine(
        self, depth: int, common: VectorScope, scopes: Sequence[VectorScope],
        states: Sequence[Carried], values: list[Value],
    ) -> list[Value]:  # fmt: skip
        """The loops from number `depth` on, for all points; gives the values carried on."""
        nest = self.nest
        if depth == len(nest.loops):
            pairs = zip(scopes, self._with(states, values), strict=True)
            return [value for inner, state in pairs for value in nest.innermost(inner, state)]
        axis = nest.loops[depth]

        def body(place: Scalar, carried: list[Value]) -> list[Value]:
            inside, insides = self._level(common, depth), []
            inside.names[axis.name] = place
            for scope in scopes:
                inner = scope.child(inside.level)
                inner.names[axis.name], inner.common = place, inside
                if isinstance(place, int):
                    inner.moved = {**scope.moved, axis.name: place}
                nest.body.enter(inner.level, inner)
                insides.append(inner)
            return self._combine(depth + 1, inside, insides, states, carried)

        if axis in self._written_out:
            for point in range(int(axis.extent)):  # type: ignore[arg-type]
                values = body(point, values)
            return values
        upper = nest.emitter.scalar(axis.extent, common)
        return nest.emitter.for_loop(0, upper, 1, values, body)


__all__ = ["Jam"]
