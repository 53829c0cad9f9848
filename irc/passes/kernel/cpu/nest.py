"""One member of a plan as a loop nest on a cpu: its loops, and what they carry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import attrs

from irc.dialects import arith, loop
from irc.dialects.graph.inferred import tensor_type
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import known_divisible
from irc.passes.kernel.cpu.body import BodyEmitter
from irc.passes.kernel.cpu.counting import conditions_of_counting, narrowed
from irc.passes.kernel.cpu.emit import Scalar, VectorScope
from irc.passes.kernel.cpu.interleaved import side_by_side
from irc.passes.kernel.cpu.jam import Jam
from irc.passes.kernel.cpu.partial_sums import MAX_I32, combined_points
from irc.passes.kernel.cpu.place import KernelState, Placement
from irc.passes.kernel.cpu.plan import Axis, CpuMember
from irc.passes.kernel.cpu.reduce import Evaluation, Reducer, ReducerShape, make_reducer
from irc.passes.kernel.cpu.schedule import CpuSchedule
from irc.passes.kernel.cpu.spans import spans
from irc.passes.kernel.cpu.tiles import TransposedReads
from irc.passes.kernel.cpu.vectors import (
    Phase,
    Vectors,
    phases,
    whole_blocks,
)


@attrs.define(eq=False)
class Carried:
    """The reducers of a member's outputs and the values that their loops carry."""

    reducers: list[Reducer | None]
    counts: list[int]
    values: list[Value]

    @property
    def restarts(self) -> bool:
        """Whether any reducer gains by summing partial sums."""
        return any(r is not None and r.restarts for r in self.reducers)

    @property
    def scans(self) -> bool:
        """Whether any reducer needs its values in order."""
        return any(r is not None and r.scans for r in self.reducers)

    def restarted(self) -> Carried:
        """The state with fresh sums."""
        values: list[Value] = []
        for number, reducer in enumerate(self.reducers):
            if reducer is not None:
                values += reducer.initial() if reducer.restarts else self.part(number)
        return self.carrying(values)

    def joined(self, values: list[Value]) -> list[Value]:
        """These sums added to `values`, what came of a restarted state."""
        joined: list[Value] = []
        ended = self.carrying(values)
        for number, reducer in enumerate(self.reducers):
            if reducer is None:
                continue
            new = ended.part(number)
            joined += reducer.join(self.part(number), new) if reducer.restarts else new
        return joined

    def nothing_lost(self) -> list[Value]:
        """What `joined_exactly` lost before the first time."""
        return [
            value
            for number, reducer in enumerate(self.reducers)
            if reducer is not None and reducer.restarts
            for value in reducer.nothing_lost(self.part(number))
        ]

    def joined_exactly(self, values: list[Value], lost: list[Value]) -> list[Value]:
        """What `joined` gives with what rounding `lost` before made good, and what it loses now."""
        joined: list[Value] = []
        losses: list[Value] = []
        ended, before = self.carrying(values), iter(lost)
        for number, reducer in enumerate(self.reducers):
            if reducer is None:
                continue
            new = ended.part(number)
            if reducer.restarts:
                new, left = reducer.join_exactly(self.part(number), new, before)
                losses += left
            joined += new
        return [*joined, *losses]

    def carrying(self, values: list[Value]) -> Carried:
        """The same with other values."""
        return Carried(self.reducers, self.counts, values)

    def part(self, number: int) -> list[Value]:
        """The values of one output."""
        start = sum(self.counts[:number])
        return self.values[start : start + self.counts[number]]


class Nest:
    """Emits one member: its loops here, what is in them by `body` and `tiles`."""

    def __init__(
        self,
        state: KernelState,
        member: CpuMember,
        loops: Sequence[Axis],
        vectors: Vectors | None,
        schedule: CpuSchedule,
    ) -> None:
        self.placed = placed = Placement(state, member, loops, vectors)
        if schedule.has("fetch_axis"):
            placed.fetch_ahead(schedule.fetch_axis, schedule.fetch_points)
        self.body = BodyEmitter(placed)
        self.tiles = TransposedReads(self.body)
        self.schedule, self.member, self.loops = schedule, member, placed.loops
        self.emitter, self.state = placed.emitter, state
        self.own_vectors, self.vectors = vectors, placed.vectors
        self.counting = conditions_of_counting(member.compute)
        self.jam: Jam | None = None
        if schedule.has("jam_axis"):
            names = [axis.name for axis in self.loops]
            if schedule.jam_axis not in names:
                raise InvalidIR(f"{schedule.jam_axis} is no loop of the compute's own",
                                op=member.compute)  # fmt: skip
            self.jam = Jam(self, names.index(schedule.jam_axis), schedule.jam_points)

    def enter(self, level: int, scope: VectorScope) -> None:
        """Emit what belongs to one level, of the maps beside the sums too."""
        if self.jam is not None:
            for map_ in self.jam.beside:
                map_.body.enter(level, scope)
        self.body.enter(level, scope)

    def run(self, scope: VectorScope) -> None:
        """Emit the loops of the member, below its base level."""
        tile = self.state.tile
        if tile is None:
            self._loop(0, scope, None)
            return
        assert self.vectors is not None
        emitter, rows = self.emitter, self.vectors.width

        def body(position: Scalar, carried: list[Value]) -> list[Value]:
            inner = scope.child(scope.level)
            end = emitter.plus(position, rows)
            tile.lower, tile.upper, tile.full = position, end, None
            if not known_divisible(tile.axis.extent, rows):
                tile.upper = emitter.least(end, tile.last)
                tile.full = emitter.compare("sle", end, tile.last)
            inner.names[tile.start] = position
            if not self._unrolls_tiles(inner):
                for access in self.placed.transposed:
                    self.tiles.fill(access, inner)
                return self._loop(0, inner, None)
            if tile.full is None:
                return self._unrolled_tile(inner)
            emitter.when(
                tile.full,
                lambda: self._unrolled_tile(inner.child(inner.level)),
                lambda: self._partial_tile(inner.child(inner.level)),
            )
            return []

        emitter.for_loop(tile.first, tile.last, rows, (), body)

    def _unrolls_tiles(self, scope: VectorScope) -> bool:
        """Whether the rows of whole tiles stay in registers, with a copy of the body for each."""
        lanes = scope.lanes
        whole = lanes is not None and lanes.mask is None and lanes.width > 1
        return whole and self.schedule.unroll

    def _unrolled_tile(self, scope: VectorScope) -> list[Value]:
        tile = self.state.tile
        assert tile is not None and self.vectors is not None
        self.tiles.hold_rows(scope)
        for tile.number in range(self.vectors.width):
            inner = scope.child(self.placed.base + 1)
            inner.names[tile.axis.name] = self.emitter.plus(tile.lower, tile.number)
            self.body.enter(inner.level, inner)
            self._below(0, inner, None)
        tile.rows = {}
        return []

    def _partial_tile(self, scope: VectorScope) -> list[Value]:
        for access in self.placed.transposed:
            self.tiles.fill_tile(access, scope, False)
        return self._loop(0, scope, None)

    def _loop(self, depth: int, scope: VectorScope, state: Carried | None) -> list[Value]:
        """Emit loop number `depth` and what is inside; gives the values carried on."""
        if self.jam is not None and depth == self.jam.depth:
            self.jam.run(scope)
            return []
        starts = depth == len(self.loops) or self.loops[depth].kind != "par"
        if state is None and starts and self.has_combiners:
            state = self.combiners(scope)
            carried = self._loop(depth, scope, state)
            state.values = carried
            self.finish(scope, state)
            return []
        if depth == len(self.loops):
            return self.innermost(scope, state)
        axis, tile = self.loops[depth], self.state.tile
        if tile is not None and axis is tile.axis:
            return self._cover(depth, scope, state, tile.lower, tile.upper)
        upper = self.emitter.scalar(axis.extent, scope)
        chunk = 0 if state is None else self.schedule.chunks.get(axis.name, 0)
        if state is None or not chunk:
            return self._cover(depth, scope, state, 0, upper)
        vectors = self._vectors_of(depth)
        if vectors is not None and self.schedule.streams:
            return self._in_streams(depth, scope, state, vectors, upper, chunk)
        return self._in_chunks(depth, scope, state, upper, chunk)

    def _vectors_of(self, depth: int) -> Vectors | None:
        own = self.own_vectors
        return own if own is not None and own.axis == self.loops[depth].name else None

    def _in_chunks(
        self, depth: int, scope: VectorScope, state: Carried, upper: Scalar, chunk: int
    ) -> list[Value]:
        """A long reduction by chunks, so that sums are of partial sums."""

        def body(start: Scalar, part: Carried) -> list[Value]:
            end = self.emitter.least(self.emitter.plus(start, chunk), upper)
            return self._cover(depth, scope.child(scope.level), part, start, end)

        return self._sum_chunks(state, upper, chunk, body)

    def _sum_chunks(
        self,
        state: Carried,
        upper: Scalar,
        step: int,
        run: Callable[[Scalar, Carried], list[Value]],
    ) -> list[Value]:
        """A loop over [0, upper) whose steps run on fresh float sums, which are added to those
        carried with the error of each sum carried along (Kahan 1965)."""
        count = len(state.values)

        def body(start: Scalar, values: list[Value]) -> list[Value]:
            carried = state.carrying(values[:count])
            return carried.joined_exactly(run(start, carried.restarted()), values[count:])

        start = [*state.values, *state.nothing_lost()]
        return self.emitter.for_loop(0, upper, step, start, body)[:count]

    def _in_streams(
        self, depth: int, scope: VectorScope, state: Carried, vectors: Vectors, upper: Scalar,
        chunk: int,
    ) -> list[Value]:
        """A long reduction along the vectors in which each accumulator reads a part of its own:
        of the whole axis, or of one chunk after the other where the axis has no known extent."""
        emitter, copies = self.emitter, vectors.copies
        steps, block = chunk // copies, vectors.width * copies
        stop: Scalar
        done: Scalar
        if isinstance(upper, int):
            stop = apart = upper // block * vectors.width
            stride, done = steps, stop * copies
        else:
            stop = done = whole_blocks(emitter, upper, self.loops[depth].extent, steps * copies)
            apart, stride = steps, steps * copies

        def body(start: Scalar, part: Carried) -> list[Value]:
            end = emitter.plus(start, steps)
            if isinstance(upper, int):
                end = emitter.least(end, stop)
            stream = Phase(start, end, vectors.width, vectors.width, copies, apart=apart)
            return self._cover_phases(depth, scope.child(scope.level), part, [stream])

        carried = self._sum_chunks(state, stop, stride, body)
        if done is upper or done == upper:
            return carried
        return self._cover(depth, scope, state.carrying(carried), done, upper)

    def _partially(
        self, state: Carried, run: Callable[[Carried], list[Value]]
    ) -> list[Value]:
        """Run loops on fresh sums and add those to the ones carried; other reducers go on."""
        started = state.restarted()
        return state.joined(run(started))

    def _cover(
        self, depth: int, scope: VectorScope, state: Carried | None, lower: Scalar, upper: Scalar
    ) -> list[Value]:
        """The loop number `depth` over [lower, upper)."""
        vectors = self._vectors_of(depth)
        if vectors is None:
            scope = scope.child(scope.level)
            lower, upper = self._counted(depth, scope, lower, upper)
            return self._cover_phases(depth, scope, state, [Phase(lower, upper, 1, 0, 0)])
        extent = self.loops[depth].extent
        cut = spans(self.member.compute.block.ops, vectors, lower, upper)
        covering = [phases(self.emitter, vectors, low, high, extent) for low, high in cut]
        return self._cover_phases(depth, scope, state, chain.from_iterable(covering))

    def _counted(
        self, depth: int, scope: VectorScope, lower: Scalar, upper: Scalar
    ) -> tuple[Scalar, Scalar]:
        """The part of loop number `depth` over [lower, upper) whose points count, as far as that is
        known before it; `scope` then knows the conditions that hold in it."""
        axis, vectors = self.loops[depth], self.vectors
        if axis.kind != "red" or axis.name in self.written_out:
            return lower, upper
        for condition in self.counting:
            part = narrowed(
                self.emitter, condition, axis.name, scope, vectors.axis if vectors else "", lower,
                upper,
            )  # fmt: skip
            if part is not None:
                lower, upper = part
                scope.known[condition.results[0]] = True
        return lower, upper

    @property
    def written_out(self) -> Sequence[str]:
        """The axes whose points have code of their own."""
        return self.schedule.written_out if self.schedule.has("written_out") else ()

    def _cover_phases(
        self, depth: int, scope: VectorScope, state: Carried | None, covering: Iterable[Phase]
    ) -> list[Value]:
        """The loops of some phases of loop number `depth`, one after the other."""
        axis = self.loops[depth]
        carried = state.values if state is not None else []
        if axis.name in self.written_out:
            return self._write_out(depth, scope, state)
        for phase in covering:

            def body(position: Scalar, values: list[Value], phase: Phase = phase) -> list[Value]:
                inner = scope.child(self.placed.base + 1 + depth)
                inner.names[axis.name] = position
                if phase.width:
                    inner.lanes = phase.lanes(self.emitter, axis.name, position)
                    inner.span = phase.span
                self.enter(inner.level, inner)
                return self._below(depth, inner, state and state.carrying(values))

            carried = self.emitter.for_loop(phase.lower, phase.upper, phase.step, carried, body)
        return carried

    def _write_out(self, depth: int, scope: VectorScope, state: Carried | None) -> list[Value]:
        """All points of loop number `depth`, each with code of its own, for which conditions on
        the axis are known."""
        axis, carried = self.loops[depth], state.values if state is not None else []
        if not isinstance(axis.extent, int) or self._vectors_of(depth) is not None:
            raise InvalidIR(f"the points of {axis.name} can't be written out: nobody knows how "
                            "many, or vectors run along it", op=self.member.compute)  # fmt: skip
        lanes = scope.lanes
        between = None
        if lanes is not None and lanes.width > 1 and lanes.mask is None:
            between = side_by_side(self.member, lanes.axis, lanes.width)
        self.body.held = None if between is None else {}
        for point in range(axis.extent):
            inner = scope.child(self.placed.base + 1 + depth)
            inner.names[axis.name], inner.points = point, {**scope.points, axis.name: point}
            self.body.enter(inner.level, inner)
            carried = self._below(depth, inner, state and state.carrying(carried))
        self.body.store_interleaved()
        return carried

    def _below(self, depth: int, scope: VectorScope, state: Carried | None) -> list[Value]:
        following = depth + 1
        if state is not None and state.restarts and following < len(self.loops):
            if self.loops[following].name in self.schedule.partial:
                return self._partially(
                    state, lambda part: self._loop(following, scope, part)
                )
        return self._loop(following, scope, state)

    # -- combiners

    @property
    def has_combiners(self) -> bool:
        """Whether any output is a reduction or a scan."""
        return any(o.kind in ("reduce", "scan") for o in self.member.compute.output_list)

    def combiners(self, scope: VectorScope) -> Carried:
        """The state before the first value."""
        own, lanes = self.own_vectors, scope.lanes
        horizontal = own is not None and lanes is None
        if horizontal:
            assert own is not None
            extent = next(a.extent for a in self.loops if a.name == own.axis)
            even = known_divisible(extent, own.width)
            shape = ReducerShape(
                own.width,
                own.copies,
                True,
                peeled=own.tail == "peel" and not even,
                uneven=own.tail == "mask" and not even,
            )
        elif lanes is not None:
            shape = ReducerShape(lanes.width, lanes.copies, False)
        else:
            shape = ReducerShape(1, 1, True)
        reducers: list[Reducer | None] = []
        values: list[Value] = []
        counts: list[int] = []
        for output in self.member.compute.output_list:
            if output.kind not in ("reduce", "scan"):
                reducers.append(None)
                counts.append(0)
                continue
            assert output.accumulator is not None
            if output.kind == "scan":
                shape.horizontal = False
            exact = (output.combiner == "moments" and shape.horizontal
                     and self.schedule.compensated)  # fmt: skip
            bits = self._position_bits() if output.combiner in ("argmin", "argmax") else 64
            reducer = make_reducer(
                self.emitter, output.combiner, output.accumulator, shape, exact, bits
            )
            reducer.scans = output.kind == "scan"
            initial = reducer.initial()
            reducers.append(reducer)
            counts.append(len(initial))
            values += initial
        return Carried(reducers, counts, values)

    def _position_bits(self) -> int:
        """The width of positions. Raises InvalidIR where the schedule's doesn't hold all."""
        op, bits = self.member.compute, self.schedule.position_bits
        points = combined_points(op)
        if bits == 32 and not (isinstance(points, int) and points <= MAX_I32):
            raise InvalidIR(f"the schedule's position_bits is 32, for {points} points", op=op)
        return bits

    def innermost(self, scope: VectorScope, state: Carried | None) -> list[Value]:
        """Take the body's values into the state, and store those of maps; gives the values then."""
        op = self.member.compute
        lanes = scope.lanes
        copies, width = (lanes.copies, lanes.width) if lanes is not None else (1, 1)
        carried: list[Value] = []
        position_at = scatters = 0
        for number, output in enumerate(op.output_list):
            yielded = op.yield_op.operands[number]
            content = scope.values[yielded]
            if output.kind == "map":
                self.body.store(op.results_of(number)[0], content, scope)
            elif output.kind == "scatter":
                mask = op.yield_op.masks[scatters] if op.yield_op.masks else None
                scatters += 1
                self.body.scatter(op.results_of(number)[0], output.combiner, content, mask, scope)
            else:
                assert state is not None
                reducer = state.reducers[number]
                assert reducer is not None
                values = [self.body.lane_value(content, k, width, scope) for k in range(copies)]
                values = [self.emitter.convert(v, reducer.type) for v in values]
                mask = lanes.mask if lanes is not None and reducer.shape.horizontal else None
                step = Evaluation(values, width, mask)
                if output.combiner in ("argmin", "argmax"):
                    step.positions = self._positions(reducer, position_at, scope)
                    position_at += 1
                after = reducer.step(state.part(number), step)
                carried += after
                if output.kind == "scan":
                    (result,), (final,) = op.results_of(number), reducer.finish(after)
                    element = loop.signless(tensor_type(result).element)
                    final = [self.emitter.convert(v, element) for v in final]
                    self.body.store(result, final if width > 1 else final[0], scope)
        return carried

    def _positions(self, reducer: Reducer, number: int, scope: VectorScope) -> list[Value]:
        """The row-major position over the combined axes, per copy."""
        element: Type = reducer.position_type  # type: ignore[attr-defined]
        access = self.member.positions[number]
        lanes = scope.lanes
        copies, width = (lanes.copies, lanes.width) if lanes is not None else (1, 1)
        prepared = self.placed.indices[access]
        if width == 1 or not prepared.varying:
            place = self.emitter.value(self.body.offset(access, 0, scope))
            scalar = self.emitter.convert(place, element)
            return [self.emitter.splat(scalar, width, scope)] * copies
        positions = []
        for copy in range(copies):
            if prepared.stride is None:
                wide = self.body.offsets(access, copy, scope)
                positions.append(self.emitter.convert(wide, element))
                continue
            base = self.emitter.value(self.body.offset(access, copy, scope))
            start = self.emitter.splat(self.emitter.convert(base, element), width, scope)
            steps = self.emitter.iota(element, width)
            if prepared.stride != 1:
                by = self.emitter.value(self.emitter.scalar(prepared.stride, scope))
                wide = self.emitter.splat(self.emitter.convert(by, element), width, scope)
                steps = self.emitter.add(arith.MulIOp, (steps, wide), steps.type)
            positions.append(self.emitter.add(arith.AddIOp, (start, steps), start.type))
        return positions

    def finish(self, scope: VectorScope, state: Carried) -> None:
        """Store what the state gives."""
        op = self.member.compute
        for number, output in enumerate(op.output_list):
            reducer = state.reducers[number]
            if reducer is None or output.kind == "scan":
                continue
            finals = reducer.finish(state.part(number))
            for result, final in zip(op.results_of(number), finals, strict=True):
                single = scope.lanes is None or scope.lanes.width == 1
                self.body.store(result, final[0] if single else final, scope)
