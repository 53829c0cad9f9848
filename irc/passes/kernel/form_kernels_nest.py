"""One member of a plan as a loop nest on a cpu.

Levels count from the kernel inward: 0 the kernel's entry, 1 the loop over the outer space, 2 the
shared vector axis if there is one, and then one per loop of the member. Each operation of the
body is placed at the deepest level of what it depends on, so what an inner loop does not change
is computed outside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from irc.analysis.loop import estimate
from irc.dialects import arith, kernel, loop
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import (
    Dim,
    Expr,
    Function,
    Product,
    Sum,
    Symbol,
    coefficient,
    dim_sum,
    known_divisible,
    substitute,
    symbol,
    terms_of,
)
from irc.ir.types import FloatType, VectorType, i1, index
from irc.passes.kernel.form_kernels_emit import Content, Emitter, Lanes, Scalar, Scope
from irc.passes.kernel.form_kernels_plan import (
    Access,
    Axis,
    Member,
    is_transposed,
    lane_stride,
)
from irc.passes.kernel.form_kernels_reduce import (
    Reducer,
    Shape,
    Step,
    arith_width,
    combining_op,
    make_reducer,
)

ENTRY, OUTER, SHARED = 0, 1, 2

LONG_SUM = 512
"""A float sum of more steps than this is taken in chunks of `SUM_CHUNK` steps."""
SUM_CHUNK = 128
SHORT_SUM = 8
"""An inner loop of so many steps or more makes a partial sum of its own."""


@attrs.define(eq=False)
class Vectors:
    """How an axis is vectorized: lanes, vectors handled together, and how the rest is done:
    "mask" (one masked vector at a time) or "peel" (scalars)."""

    axis: str
    width: int
    copies: int
    tail: str


@attrs.define(eq=False)
class Index:
    """An access ready to be emitted: groups of terms by level, and its step along the lanes
    (None: none that is constant; 0: the same for all lanes of a vector)."""

    access: Access
    expression: Dim
    levels: list[int]
    groups: list[Dim]
    level: int
    varying: bool
    stride: Dim | None
    shift: Dim | None


class KernelState:
    """What the members of one kernel share."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.pointers: dict[Value, Value] = {}
        self.positive: Callable[[Dim], bool] = lambda d: isinstance(d, int) and d > 0
        self.shared: Vectors | None = None
        self.shared_axis: Axis | None = None
        self.level_of: dict[str, int] = {}
        self.extents: dict[str, Dim] = {}
        self.guards: dict[Dim, Value] = {}
        self.written: set[Value] = set()
        self.tile: Tile | None = None


@attrs.define(eq=False)
class Tile:
    """Tiles in which reads across the rows are transposed: squares of as many points of `axis` as
    a vector has lanes, one after the other over [first, last).

    The one at hand has the rows [lower, upper). `full`: that it has all; None: always. `start` is
    the name of `lower` in index expressions.
    """

    axis: Axis
    start: str
    first: Scalar = 0
    last: Scalar = 0
    lower: Scalar = 0
    upper: Scalar = 0
    full: Value | None = None


class Nest:
    """Emits one member."""

    def __init__(
        self,
        state: KernelState,
        member: Member,
        loops: Sequence[Axis],
        vectors: Vectors | None,
    ) -> None:
        self.state = state
        self.emitter = state.emitter
        self.member = member
        self.loops = list(loops)
        self.own_vectors = vectors
        self.vectors = vectors or state.shared
        self.base = SHARED if state.shared is not None else OUTER
        self.level_of = dict(state.level_of)
        for position, axis in enumerate(self.loops):
            self.level_of[axis.name] = self.base + 1 + position
        self.extents = {**state.extents, **{a.name: a.extent for a in self.loops}}
        self.levels: dict[Value, int] = {}
        self.varying: set[Value] = set()
        self.indices: dict[Access, Index] = {}
        self.ops_at: list[list[Operation]] = [[] for _ in range(self.base + 1 + len(self.loops))]
        self.splat_wanted: set[Value] = set()
        self.names_of: dict[Value, list[str]] = {}
        self.transposed: dict[Access, tuple[Access, Value]] = {}
        self._place_ops()
        self._prepare_prefixes()

    # -- analysis

    def _place_ops(self) -> None:
        member = self.member
        for op in member.compute.block.ops:
            if isinstance(op, loop.YieldOp):
                continue
            level = max((self._level(o) for o in op._operands), default=ENTRY)
            varying = any(o in self.varying for o in op._operands)
            access = member.reads.get(op)
            if access is not None:
                prepared = self._prepare(access)
                level = max(level, prepared.level)
                varying = varying or prepared.varying
                place = access.storage
                if place is not None:
                    level = max(level, OUTER)
                    if place.kind != "argument" or place.value in self.state.written:
                        level = max(level, self.base)
                    if place.kind == "register":
                        varying = self.state.shared is not None
            result = op.results[0]
            self.levels[result] = level
            if varying:
                self.varying.add(result)
                self.splat_wanted.update(o for o in op._operands if o not in self.varying)
            self.ops_at[level].append(op)
        if self.vectors is not None:
            self.splat_wanted.update(member.compute.yield_op._operands)
        if self.state.tile is not None:
            self._find_transposed(self.state.tile)
        for group in member.stores.values():
            for access in group:
                self._prepare(access)
        for access in member.positions:
            self._prepare(access)

    def _level(self, value: Value) -> int:
        level = self.levels.get(value)
        if level is None:
            if value.type.__class__.__name__ == "TensorType":
                return ENTRY
            raise InvalidIR(
                f"the body uses a scalar of type {value.type} that is made outside it",
                op=self.member.compute,
            )
        return level

    def _prepare(self, access: Access) -> Index:
        """Split an access's expression into groups of terms by level."""
        vectors, d = self.vectors, access.expression
        for name, value in access.positions.items():
            self.level_of[name] = self._level(value)
            self.names_of.setdefault(value, []).append(name)
        loose = {n for n, v in access.positions.items() if v in self.varying}
        axis = vectors.axis if vectors is not None else None
        place = access.storage
        shift: Dim | None = 0
        stride: Dim | None = 0
        varying = False
        if place is not None and place.kind == "scratch" and self.state.shared is not None:
            # Scratch holds a block of lanes per point.
            block = self.state.shared.width * self.state.shared.copies
            d, stride, shift, varying = d * block, 1, 1, True
        elif isinstance(d, Expr) and loose & d.symbols:
            stride, shift, varying = None, None, True
        elif axis is not None and isinstance(d, Expr) and axis in d.symbols:
            assert vectors is not None
            stride, varying = lane_stride(d, axis, vectors.width), True
            shift = coefficient(d, axis)
        by_level: dict[int, list[Dim]] = {}
        terms, constant = terms_of(d)
        level = ENTRY
        for monomial, scale in terms:
            own = max(self.level_of[name] for name in monomial.symbols)
            level = max(level, own)
            if stride is None and (monomial.symbols & loose or axis in monomial.symbols):
                continue
            by_level.setdefault(own, []).append(monomial * scale)
        if constant:
            by_level.setdefault(ENTRY, []).append(constant)
        levels = sorted(by_level)
        groups = [dim_sum(by_level[k]) for k in levels]
        found = Index(access, d, levels, groups, level, varying, stride, shift)
        self.indices[access] = found
        return found

    def _prepare_prefixes(self) -> None:
        """Which partial sums each level computes for the levels inside it."""
        self.prefixes: list[list[list[Dim]]] = [[] for _ in self.ops_at]
        for prepared in self.indices.values():
            for position, level in enumerate(prepared.levels):
                if level < prepared.level and level < len(self.prefixes):
                    self.prefixes[level].append(prepared.groups[: position + 1])

    def _find_transposed(self, tile: Tile) -> None:
        """The reads that go through a transposed tile: each gets one on the stack."""
        vectors, emitter = self.vectors, self.emitter
        assert vectors is not None
        width = vectors.width
        for op, access in self.member.reads.items():
            if not isinstance(op, loop.ReadOp) or not is_transposed(
                op, access, tile.axis.name, vectors.axis, width
            ):
                continue
            place = access.storage
            assert place is not None
            if place.value in self.state.written:
                continue
            moved = substitute(access.expression, {tile.axis.name: symbol(tile.start)})
            self.level_of[tile.start] = self.base + 1
            first = Access(moved, place, {})
            self._prepare(first)
            scratch = kernel.ScratchOp(
                (), (kernel.PointerType(place.element),), {"count": A.IntegerAttr(width * width)}
            )
            emitter.entry.append(scratch)
            self.transposed[access] = (first, scratch.pointer)

    # -- levels

    def enter(self, level: int, scope: Scope) -> None:
        """Emit what belongs to one level, once its coordinate is known."""
        emitter = self.emitter
        emitter.extents = self.extents
        for op in self.ops_at[level]:
            emitter.location = op.location
            self._emit(op, scope)
        for groups in self.prefixes[level]:
            emitter.prefix_sums(groups, scope)

    def run(self, scope: Scope) -> None:
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
            for access in self.transposed:
                self._fill(access, inner)
            return self._loop(0, inner, None)

        emitter.for_loop(tile.first, tile.last, rows, (), body)

    def _fill(self, access: Access, scope: Scope) -> None:
        """Put the transposed tile of a read on the stack: a row of vector lanes for each of the
        tile's rows."""
        emitter, tile, lanes = self.emitter, self.state.tile, scope.lanes
        assert tile is not None and lanes is not None
        if lanes.mask is not None or lanes.width == 1:
            self._fill_rows(access, scope)
        elif tile.full is None:
            self._fill_whole(access, scope)
        else:
            emitter.when(
                tile.full,
                lambda: self._fill_whole(access, scope.child(scope.level)),
                lambda: self._fill_rows(access, scope.child(scope.level)),
            )

    def _fill_whole(self, access: Access, scope: Scope) -> None:
        emitter, lanes = self.emitter, scope.lanes
        assert lanes is not None
        first, pointer = self.transposed[access]
        source, element = self.state.pointers[first.storage.value], first.storage.element  # type: ignore[union-attr]
        width = lanes.width
        row = emitter.vector_type(element, width)
        square = VectorType((width, width), element)
        zero = 0.0 if isinstance(element, FloatType) else 0
        tile = emitter.constant(emitter.number(zero, element).defining_op.attributes["value"], square)  # type: ignore[union-attr]
        base = self.offset(first, 0, scope)
        step = emitter.scalar(self.indices[first].stride or 0, scope)
        for lane in range(width):
            place = emitter.plus(base, emitter.times(step, lane))
            loaded = emitter.load(source, place, row, None, None)
            operands = (loaded, tile, emitter.number(lane, index))
            tile = emitter.add(kernel.InsertOp, operands, square)
        tile = emitter.add(kernel.TransposeOp, (tile,), square)
        for number in range(width):
            line = emitter.add(kernel.ExtractOp, (tile, emitter.number(number, index)), row)
            emitter.store(line, pointer, number * width, None)

    def _fill_rows(self, access: Access, scope: Scope) -> None:
        emitter, tile, lanes = self.emitter, self.state.tile, scope.lanes
        assert tile is not None and lanes is not None
        first, pointer = self.transposed[access]
        source, element = self.state.pointers[first.storage.value], first.storage.element  # type: ignore[union-attr]
        row = emitter.vector_type(element, lanes.width)
        base = self.offset(first, 0, scope)
        stride = emitter.scalar(self.indices[first].stride or 0, scope)

        def body(position: Scalar, carried: list[Value]) -> list[Value]:
            number = emitter.minus(position, tile.lower)
            place = emitter.plus(base, number)
            if lanes.width == 1:
                value = emitter.load(source, place, row, None, None)
            else:
                places = emitter.vector_index(place, stride, lanes.width, scope.child(scope.level))
                value = emitter.gather(source, places, row, lanes.mask, None)
            assert self.vectors is not None
            emitter.store(value, pointer, emitter.times(number, self.vectors.width), None)
            return []

        emitter.for_loop(tile.lower, tile.upper, 1, (), body)

    def _from_tile(self, access: Access, type_: Type, scope: Scope) -> Value:
        """A read that was transposed: the row of the tile that belongs to this point."""
        emitter, tile = self.emitter, self.state.tile
        assert tile is not None and self.vectors is not None
        number = emitter.minus(scope.names[tile.axis.name], tile.lower)
        place = emitter.times(number, self.vectors.width)
        return emitter.load(self.transposed[access][1], place, type_, None, None)

    def _loop(self, depth: int, scope: Scope, state: _State | None) -> list[Value]:
        """Emit loop number `depth` and what is inside; gives the values carried on."""
        starts = depth == len(self.loops) or self.loops[depth].kind != "par"
        if state is None and starts and self.has_combiners:
            state = self._combiners(scope)
            carried = self._loop(depth, scope, state)
            state.values = carried
            self._finish(scope, state)
            return []
        if depth == len(self.loops):
            return self._innermost(scope, state)
        axis, tile = self.loops[depth], self.state.tile
        if tile is not None and axis is tile.axis:
            return self._cover(depth, scope, state, tile.lower, tile.upper)
        upper = self.emitter.scalar(axis.extent, scope)
        if state is None or not state.restarts or self._steps(depth) <= LONG_SUM:
            return self._cover(depth, scope, state, 0, upper)
        return self._in_chunks(depth, scope, state, upper)

    def _vectors_of(self, depth: int) -> Vectors | None:
        own = self.own_vectors
        return own if own is not None and own.axis == self.loops[depth].name else None

    def _steps(self, depth: int) -> int:
        """The estimated number of steps of one loop."""
        vectors = self._vectors_of(depth)
        block = 1 if vectors is None else vectors.width * vectors.copies
        return -(-estimate(self.loops[depth].extent) // block)

    def _in_chunks(self, depth: int, scope: Scope, state: _State, upper: Scalar) -> list[Value]:
        """A long reduction by chunks, so that sums are of partial sums."""
        vectors = self._vectors_of(depth)
        chunk = SUM_CHUNK * (1 if vectors is None else vectors.width * vectors.copies)

        def body(start: Scalar, values: list[Value]) -> list[Value]:
            emitter, inner = self.emitter, scope.child(scope.level)
            end = emitter.least(emitter.plus(start, chunk), upper)
            return self._partially(
                state.carrying(values), lambda part: self._cover(depth, inner, part, start, end)
            )

        return self.emitter.for_loop(0, upper, chunk, state.values, body)

    def _partially(
        self, state: _State, run: Callable[[_State], list[Value]]
    ) -> list[Value]:
        """Run loops on fresh sums and add those to the ones carried; other reducers go on."""
        started = state.restarted()
        return state.joined(run(started))

    def _cover(
        self, depth: int, scope: Scope, state: _State | None, lower: Scalar, upper: Scalar
    ) -> list[Value]:
        """The loop number `depth` over [lower, upper)."""
        axis, vectors = self.loops[depth], self._vectors_of(depth)
        carried = state.values if state is not None else []
        if vectors is None:
            covering = [Phase(lower, upper, 1, 0, 0)]
        else:
            covering = phases(self.emitter, vectors, lower, upper, axis.extent)
        for phase in covering:

            def body(position: Scalar, values: list[Value], phase: Phase = phase) -> list[Value]:
                inner = scope.child(self.base + 1 + depth)
                inner.names[axis.name] = position
                if phase.width:
                    inner.lanes = phase.lanes(self.emitter, axis.name, position)
                self.enter(inner.level, inner)
                return self._below(depth, inner, state and state.carrying(values))

            carried = self.emitter.for_loop(phase.lower, phase.upper, phase.step, carried, body)
        return carried

    def _below(self, depth: int, scope: Scope, state: _State | None) -> list[Value]:
        following = depth + 1
        if state is not None and state.restarts and following < len(self.loops):
            if self._steps(following) >= SHORT_SUM:
                return self._partially(
                    state, lambda part: self._loop(following, scope, part)
                )
        return self._loop(following, scope, state)

    # -- combiners

    @property
    def has_combiners(self) -> bool:
        """Whether any output is a reduction or a scan."""
        return any(o.kind in ("reduce", "scan") for o in self.member.compute.output_list)

    def _combiners(self, scope: Scope) -> _State:
        own, lanes = self.own_vectors, scope.lanes
        horizontal = own is not None and lanes is None
        if horizontal:
            assert own is not None
            extent = next(a.extent for a in self.loops if a.name == own.axis)
            even = known_divisible(extent, own.width)
            shape = Shape(
                own.width,
                own.copies,
                True,
                peeled=own.tail == "peel" and not even,
                uneven=own.tail == "mask" and not even,
            )
        elif lanes is not None:
            shape = Shape(lanes.width, lanes.copies, False)
        else:
            shape = Shape(1, 1, True)
        reducers: list[Reducer | None] = []
        values: list[Value] = []
        counts: list[int] = []
        extent = self._red_points()
        for output in self.member.compute.output_list:
            if output.kind not in ("reduce", "scan"):
                reducers.append(None)
                counts.append(0)
                continue
            assert output.accumulator is not None
            if output.kind == "scan":
                shape.horizontal = False
            reducer = make_reducer(
                self.emitter, output.combiner, output.accumulator, shape, extent
            )
            reducer.scans = output.kind == "scan"
            initial = reducer.initial()
            reducers.append(reducer)
            counts.append(len(initial))
            values += initial
        return _State(reducers, counts, values)

    def _red_points(self) -> Dim:
        total: Dim = 1
        for axis in self.member.compute.axis_list:
            if axis.kind != "par":
                total = total * axis.extent
        return total

    def _innermost(self, scope: Scope, state: _State | None) -> list[Value]:
        op = self.member.compute
        lanes = scope.lanes
        copies, width = (lanes.copies, lanes.width) if lanes is not None else (1, 1)
        carried: list[Value] = []
        position_at = scatters = 0
        for number, output in enumerate(op.output_list):
            yielded = op.yield_op._operands[number]
            content = scope.values[yielded]
            if output.kind == "map":
                self._store(op.results_of(number)[0], content, scope)
            elif output.kind == "scatter":
                mask = op.yield_op.masks[scatters] if op.yield_op.masks else None
                scatters += 1
                self._scatter(op.results_of(number)[0], output.combiner, content, mask, scope)
            else:
                assert state is not None
                reducer = state.reducers[number]
                assert reducer is not None
                values = [self._lane_value(content, k, width, scope) for k in range(copies)]
                values = [self.emitter.convert(v, reducer.type) for v in values]
                mask = lanes.mask if lanes is not None and reducer.shape.horizontal else None
                step = Step(values, width, mask)
                if output.combiner in ("argmin", "argmax"):
                    step.positions = self._positions(reducer, position_at, scope)
                    position_at += 1
                after = reducer.step(state.part(number), step)
                carried += after
                if output.kind == "scan":
                    finals = reducer.finish(after)
                    for result, final in zip(op.results_of(number), finals, strict=True):
                        self._store(result, final if width > 1 else final[0], scope)
        return carried

    def _positions(self, reducer: Reducer, number: int, scope: Scope) -> list[Value]:
        """The row-major position over the combined axes, per copy."""
        element: Type = reducer.position_type  # type: ignore[attr-defined]
        access = self.member.positions[number]
        lanes = scope.lanes
        copies, width = (lanes.copies, lanes.width) if lanes is not None else (1, 1)
        prepared = self.indices[access]
        if width == 1 or not prepared.varying:
            place = self.emitter.value(self.offset(access, 0, scope))
            scalar = self.emitter.convert(place, element)
            return [self.emitter.splat(scalar, width, scope)] * copies
        found = []
        for copy in range(copies):
            if prepared.stride is None:
                wide = self.offsets(access, copy, scope)
                found.append(self.emitter.convert(wide, element))
                continue
            base = self.emitter.value(self.offset(access, copy, scope))
            start = self.emitter.splat(self.emitter.convert(base, element), width, scope)
            steps = self.emitter.iota(element, width)
            if prepared.stride != 1:
                by = self.emitter.value(self.emitter.scalar(prepared.stride, scope))
                wide = self.emitter.splat(self.emitter.convert(by, element), width, scope)
                steps = self.emitter.add(arith.MulIOp, (steps, wide), steps.type)
            found.append(self.emitter.add(arith.AddIOp, (start, steps), start.type))
        return found

    def _finish(self, scope: Scope, state: _State) -> None:
        op = self.member.compute
        for number, output in enumerate(op.output_list):
            reducer = state.reducers[number]
            if reducer is None or output.kind == "scan":
                continue
            finals = reducer.finish(state.part(number))
            for result, final in zip(op.results_of(number), finals, strict=True):
                single = scope.lanes is None or scope.lanes.width == 1
                self._store(result, final[0] if single else final, scope)

    # -- operations

    def _lane_value(self, content: Content, copy: int, width: int, scope: Scope) -> Value:
        if isinstance(content, list):
            return content[copy]
        return self.emitter.splat(content, width, scope)

    def _emit(self, op: Operation, scope: Scope) -> None:
        emitter, result = self.emitter, op.results[0]
        content: Content
        if isinstance(op, arith.ConstantOp):
            content = emitter.constant(op.attributes["value"], result.type)
        elif isinstance(op, loop.ReadOp):
            content = self._read(op, scope)
        elif isinstance(op, loop.IndexOp):
            content = self._index(op, scope)
        elif result in self.varying and scope.lanes is not None:
            lanes = scope.lanes
            type_ = emitter.vector_type(result.type, lanes.width)
            content = []
            for copy in range(lanes.copies):
                operands = [
                    self._lane_value(scope.values[o], copy, lanes.width, scope)
                    for o in op._operands
                ]
                content.append(emitter.add(type(op), operands, type_, op.attributes))
        else:
            operands = [scope.values[o] for o in op._operands]
            content = emitter.add(type(op), operands, result.type, op.attributes)
        scope.values[result] = content
        self._bind_positions(result, content, scope)
        if result in self.splat_wanted and not isinstance(content, list):
            assert self.vectors is not None
            inside = scope.lanes is None or scope.lanes.width > 1
            if inside:
                emitter.splat(content, self.vectors.width, scope)

    def _bind_positions(self, value: Value, content: Content, scope: Scope) -> None:
        """Let index expressions find an operand that they name."""
        names = self.names_of.get(value)
        if names is None or (isinstance(content, list) and arith_width(content[0]) > 1):
            return
        place = self.emitter.convert(_first(content), index)
        for name in names:
            scope.names[name] = place

    def _index(self, op: loop.IndexOp, scope: Scope) -> Content:
        access = self.member.reads[op]
        lanes, prepared = scope.lanes, self.indices[access]
        if not prepared.varying or lanes is None or lanes.width == 1:
            place = self.emitter.value(self.offset(access, 0, scope))
            return [place] if prepared.varying and lanes is not None else place
        return [self.offsets(access, copy, scope) for copy in range(lanes.copies)]

    # -- offsets

    def offset(self, access: Access, copy: int, scope: Scope) -> Scalar:
        """The offset of the first lane of a copy; of a uniform access, its offset."""
        prepared, emitter = self.indices[access], self.emitter
        if prepared.stride is None:
            # In a peeled remainder what varies is one scalar.
            return emitter.scalar(prepared.expression, scope)
        if copy and prepared.varying:
            assert self.vectors is not None
            step = copy * self.vectors.width
            if prepared.shift is None:
                axis = self.vectors.axis
                moved = substitute(prepared.expression, {axis: symbol(axis) + step})
                return emitter.scalar(moved, scope)
            first = emitter.prefix_sums(prepared.groups, scope)
            return emitter.plus(first, emitter.scalar(prepared.shift * step, scope))
        return emitter.prefix_sums(prepared.groups, scope)

    def offsets(self, access: Access, copy: int, scope: Scope) -> Value:
        """The offsets of all lanes of a copy, as a vector of index."""
        prepared, lanes, emitter = self.indices[access], scope.lanes, self.emitter
        assert lanes is not None
        if not prepared.varying:
            return emitter.splat(emitter.value(self.offset(access, 0, scope)), lanes.width, scope)
        if prepared.stride is not None:
            base = self.offset(access, copy, scope)
            stride = emitter.scalar(prepared.stride, scope)
            if stride == 0:
                return emitter.splat(emitter.value(base), lanes.width, scope)
            return emitter.vector_index(base, stride, lanes.width, scope)
        env = _VectorEnvironment(self, access, copy, scope, lanes)
        outside = emitter.prefix_sums(prepared.groups, scope)
        rest = prepared.expression - dim_sum(prepared.groups)
        return env.vector(emitter_sum(env, outside, rest))

    # -- memory

    def _guard(self, level: int, scope: Scope) -> Value | None:
        """A condition for a load hoisted to `level`: that the loops inside have any points."""
        emitter, found = self.emitter, None
        shared = self.state.shared_axis
        for axis in self.loops if shared is None else [shared, *self.loops]:
            if self.level_of[axis.name] <= level or self.state.positive(axis.extent):
                continue
            condition = self.state.guards.get(axis.extent)
            if condition is None:
                outside, emitter.block = emitter.block, emitter.entry
                size = emitter.scalar(axis.extent, scope)
                condition = emitter.compare("sgt", size, 0)
                emitter.block = outside
                self.state.guards[axis.extent] = condition
            found = condition if found is None else emitter.add(arith.AndIOp, (found, condition), i1)
        return found

    def _read(self, op: loop.ReadOp, scope: Scope) -> Content:
        access = self.member.reads[op]
        place = access.storage
        assert place is not None
        if place.kind == "register":
            return scope.values[place.value]
        pointer, lanes = self.state.pointers[place.value], scope.lanes
        result, emitter = op.results[0], self.emitter
        if access in self.transposed:
            assert lanes is not None
            return [self._from_tile(access, emitter.vector_type(result.type, lanes.width), scope)]
        mask = None if op.mask is None else scope.values[op.mask]
        other = None if op.other is None else scope.values[op.other]
        if result not in self.varying or lanes is None or lanes.width == 1:
            mask, other = _first(mask), _first(other)
            guard = self._guard(scope.level, scope)
            if guard is not None:
                mask = guard if mask is None else emitter.add(arith.AndIOp, (guard, mask), i1)
            value = emitter.load(pointer, self.offset(access, 0, scope), result.type, mask, other)
            return [value] if result in self.varying and lanes is not None else value
        type_ = emitter.vector_type(result.type, lanes.width)
        return [
            self._vector_read(access, pointer, copy, type_, mask, other, scope)
            for copy in range(lanes.copies)
        ]

    def _vector_read(
        self,
        access: Access,
        pointer: Value,
        copy: int,
        type_: Type,
        mask: Content,
        other: Content,
        scope: Scope,
    ) -> Value:
        emitter, prepared, lanes = self.emitter, self.indices[access], scope.lanes
        assert lanes is not None
        width = lanes.width
        if prepared.stride == 0 and mask is None:
            element = arith.element_type(type_)
            scalar = emitter.load(pointer, self.offset(access, copy, scope), element, None, None)
            return emitter.add(kernel.SplatOp, (scalar,), type_)
        wanted = None if mask is None else self._lane_value(mask, copy, width, scope)
        given = None if other is None else self._lane_value(other, copy, width, scope)
        assert access.storage is not None
        # Scratch under a shared vector axis has room for all lanes of a point.
        roomy = access.storage.kind == "scratch" and self.state.shared is not None
        if lanes.mask is not None and not roomy:
            wanted = (
                lanes.mask
                if wanted is None
                else emitter.add(arith.AndIOp, (wanted, lanes.mask), wanted.type)
            )
        if prepared.stride == 1:
            return emitter.load(pointer, self.offset(access, copy, scope), type_, wanted, given)
        return emitter.gather(pointer, self.offsets(access, copy, scope), type_, wanted, given)

    def _store(self, result: Value, content: Content, scope: Scope) -> None:
        """Store the final values of a result wherever it lives."""
        for access in self.member.stores[result]:
            place = access.storage
            assert place is not None
            if place.kind == "register":
                scope.values[result] = self._all_lanes(content, scope)
                continue
            self._store_to(access, self.state.pointers[place.value], content, scope)

    def _all_lanes(self, content: Content, scope: Scope) -> Content:
        lanes = scope.lanes
        if lanes is None or isinstance(content, list) or lanes.width == 1:
            return content
        return [self.emitter.splat(content, lanes.width, scope)] * lanes.copies

    def _store_to(self, access: Access, pointer: Value, content: Content, scope: Scope) -> None:
        emitter, prepared, lanes = self.emitter, self.indices[access], scope.lanes
        assert access.storage is not None
        element = access.storage.element
        if lanes is None or lanes.width == 1 or not prepared.varying:
            value = emitter.convert(_first(content), element)
            emitter.store(value, pointer, self.offset(access, 0, scope), None)
            return
        for copy in range(lanes.copies):
            value = emitter.convert(self._lane_value(content, copy, lanes.width, scope), element)
            if prepared.stride == 1:
                emitter.store(value, pointer, self.offset(access, copy, scope), lanes.mask)
            else:
                places = self.offsets(access, copy, scope)
                emitter.scatter(value, pointer, places, lanes.mask, "set")


    def _scatter(
        self, result: Value, combiner: str, content: Content, mask: Value | None, scope: Scope
    ) -> None:
        """Combine values into the elements that they are for."""
        emitter = self.emitter
        (access,) = self.member.stores[result]
        assert access.storage is not None
        pointer, element = self.state.pointers[access.storage.value], access.storage.element
        kept = None if mask is None else scope.values[mask]
        lanes = scope.lanes
        if lanes is None or lanes.width == 1:
            value = emitter.convert(_first(content), element)
            place = self.offset(access, 0, scope)

            def combine() -> None:
                new = value
                if combiner != "set":
                    old = emitter.load(pointer, place, element, None, None)
                    new = emitter.add(combining_op(combiner, element), (old, value), element)
                emitter.store(new, pointer, place, None)

            if kept is None:
                combine()
            else:
                emitter.when(_first(kept), combine)
            return
        type_ = emitter.vector_type(element, lanes.width)
        for copy in range(lanes.copies):
            value = emitter.convert(self._lane_value(content, copy, lanes.width, scope), element)
            hold = None if kept is None else self._lane_value(kept, copy, lanes.width, scope)
            if lanes.mask is not None:
                hold = (
                    lanes.mask
                    if hold is None
                    else emitter.add(arith.AndIOp, (hold, lanes.mask), hold.type)
                )
            if self.indices[access].stride != 1:
                places = self.offsets(access, copy, scope)
                emitter.scatter(value, pointer, places, hold, combiner)
                continue
            place = self.offset(access, copy, scope)
            if combiner != "set":
                old = emitter.load(pointer, place, type_, hold, None)
                value = emitter.add(combining_op(combiner, element), (old, value), type_)
            emitter.store(value, pointer, place, hold)


def _first(content: Content) -> Content:
    return content[0] if isinstance(content, list) else content


@attrs.define(eq=False)
class _State:
    """The reducers of a member's outputs and the values that their loops carry."""

    reducers: list[Reducer | None]
    counts: list[int]
    values: list[Value]

    @property
    def restarts(self) -> bool:
        """Whether any reducer gains by summing partial sums."""
        return any(r is not None and r.restarts for r in self.reducers)

    def restarted(self) -> _State:
        """The state with fresh sums."""
        values: list[Value] = []
        for number, reducer in enumerate(self.reducers):
            if reducer is not None:
                values += reducer.initial() if reducer.restarts else self.part(number)
        return self.carrying(values)

    def joined(self, values: list[Value]) -> list[Value]:
        """These sums added to `values`, what came of a restarted state."""
        found: list[Value] = []
        ended = self.carrying(values)
        for number, reducer in enumerate(self.reducers):
            if reducer is None:
                continue
            new = ended.part(number)
            if reducer.restarts:
                old = self.part(number)
                new = [reducer.combine(a, b) for a, b in zip(old, new, strict=True)]
            found += new
        return found

    def carrying(self, values: list[Value]) -> _State:
        """The same with other values."""
        return _State(self.reducers, self.counts, values)

    def part(self, number: int) -> list[Value]:
        """The values of one output."""
        start = sum(self.counts[:number])
        return self.values[start : start + self.counts[number]]


# -- index expressions on vectors


class _VectorEnvironment:
    """Evaluates an index expression whose names differ from lane to lane."""

    def __init__(
        self, nest: Nest, access: Access, copy: int, scope: Scope, lanes: Lanes
    ) -> None:
        self.nest, self.access, self.copy = nest, access, copy
        self.scope, self.lanes = scope, lanes
        self.emitter = nest.emitter
        self.type = self.emitter.vector_type(index, lanes.width)

    def vector(self, x: Scalar | Value) -> Value:
        """A scalar or vector as a vector."""
        if isinstance(x, Value) and x.type is self.type:
            return x
        return self.emitter.splat(self.emitter.value(x), self.lanes.width, self.scope)

    def name(self, name: str) -> Scalar:
        """The value of a symbol: a vector for what varies."""
        position = self.access.positions.get(name)
        key = ("vector", name if position is None else position, self.copy)
        found = self.scope.dims.get(key)
        if found is not None:
            return found  # type: ignore[no-any-return]
        if position is not None:
            content = self.scope.values[position]
            single = content[self.copy] if isinstance(content, list) else content
            found = self.emitter.convert(single, index)
        elif name == self.lanes.axis:
            start = self.emitter.plus(self.scope.names[name], self.copy * self.lanes.width)
            found = self.emitter.vector_index(start, 1, self.lanes.width, self.scope)
        else:
            return self.scope.names[name]
        self.scope.dims[key] = found
        return found  # type: ignore[no-any-return]

    def binary(self, scalar: Callable, cls: type[Operation], a: Scalar, b: Scalar) -> Scalar:  # type: ignore[type-arg]
        """An operation on scalars if both are, else on vectors."""
        if self.is_scalar(a) and self.is_scalar(b):
            return scalar(a, b)  # type: ignore[no-any-return]
        return self.emitter.add(cls, (self.vector(a), self.vector(b)), self.type)

    def is_scalar(self, x: Scalar) -> bool:
        """Whether x is no vector."""
        return isinstance(x, int) or x.type is not self.type

    def evaluate(self, d: Dim) -> Scalar:
        """The value of an expression: a scalar or a vector of index."""
        if not isinstance(d, Expr):
            return d
        emitter = self.emitter
        if isinstance(d, Symbol):
            return self.name(d.name)
        if isinstance(d, Sum):
            return emitter_sum(self, 0, d)
        if isinstance(d, Product):
            total: Scalar = 1
            for factor in d.factors:
                part = self.evaluate(factor)
                total = (
                    part
                    if isinstance(total, int) and total == 1
                    else self.binary(emitter.times, arith.MulIOp, total, part)
                )
            return total
        assert isinstance(d, Function)
        parts = [self.evaluate(a) for a in d.arguments]
        if all(self.is_scalar(p) for p in parts):
            return emitter._function(d, parts)
        return self.function(d, [self.vector(p) for p in parts])

    def function(self, d: Function, parts: list[Value]) -> Value:
        """A function node on vectors."""
        add = self.emitter.add
        if d.name in ("min", "max"):
            total = parts[0]
            for part in parts[1:]:
                cls = arith.MinSIOp if d.name == "min" else arith.MaxSIOp
                total = add(cls, (total, part), self.type)
            return total
        a, b = parts
        sign = self.emitter.nonnegative(*d.arguments)
        if d.name == "floordiv":
            return add(arith.DivUIOp if sign else arith.FloorDivSIOp, (a, b), self.type)
        if d.name == "ceildiv":
            return add(arith.CeilDivSIOp, (a, b), self.type)
        if d.name == "mod":
            if sign:
                return add(arith.RemUIOp, (a, b), self.type)
            whole = add(arith.FloorDivSIOp, (a, b), self.type)
            return add(arith.SubIOp, (a, add(arith.MulIOp, (whole, b), self.type)), self.type)
        raise NotImplementedError(f"the index function {d.name} has no code")


def emitter_sum(env: _VectorEnvironment, start: Scalar, d: Dim) -> Scalar:
    """start + d, scalars first."""
    terms, constant = terms_of(d)
    total = env.emitter.plus(start, constant)
    vectors: list[Scalar] = []
    for monomial, scale in terms:
        part = env.evaluate(monomial)
        if scale != 1:
            part = env.binary(env.emitter.times, arith.MulIOp, part, scale)
        if env.is_scalar(part):
            total = env.emitter.plus(total, part)
        else:
            vectors.append(part)
    for part in vectors:
        skip = isinstance(total, int) and total == 0
        total = part if skip else env.binary(env.emitter.plus, arith.AddIOp, total, part)
    return total


# -- covering a vector axis


@attrs.define(eq=False)
class Phase:
    """One loop over part of a vector axis: `copies` vectors of `width` lanes from `lower` to
    `upper` by `step`, masked below `limit` where that is given."""

    lower: Scalar
    upper: Scalar
    step: int
    width: int
    copies: int
    limit: Scalar | None = None

    def lanes(self, emitter: Emitter, axis: str, position: Scalar) -> Lanes:
        """The lanes at one position."""
        mask = None
        if self.limit is not None:
            mask = emitter.lane_mask(position, self.limit, self.width)
        return Lanes(axis, self.width, self.copies, mask)


def phases(
    emitter: Emitter, vectors: Vectors, lower: Scalar, upper: Scalar, extent: Dim
) -> Iterable[Phase]:
    """The loops that cover [lower, upper): whole blocks, then the rest.

    `lower` is a multiple of a block, `upper` too or the axis's `extent`.
    """
    width, copies = vectors.width, vectors.copies
    block = width * copies
    if isinstance(lower, int) and isinstance(upper, int):
        middle: Scalar = lower + (upper - lower) // block * block
    elif known_divisible(extent, block):
        middle = upper
    elif block == 1:
        middle = upper
    else:
        whole = emitter.number(-block, index)
        middle = emitter.add(arith.AndIOp, (emitter.value(upper), whole), index)
    yield Phase(lower, middle, block, width, copies)
    if middle is upper or middle == upper:
        return
    even = known_divisible(extent, width)
    if even or vectors.tail == "mask":
        yield Phase(middle, upper, width, width, 1, None if even else upper)
        return
    if copies > 1:
        if isinstance(middle, int) and isinstance(upper, int):
            last: Scalar = middle + (upper - middle) // width * width
        else:
            last = emitter.add(
                arith.AndIOp, (emitter.value(upper), emitter.number(-width, index)), index
            )
        yield Phase(middle, last, width, width, 1)
        middle = last
    yield Phase(middle, upper, 1, 1, 1)
