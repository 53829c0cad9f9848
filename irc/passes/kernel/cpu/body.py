"""The operations of a member's body at their places: arithmetic, offsets, reads and stores."""

from __future__ import annotations

from irc.dialects import arith, kernel, loop
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.core import Operation, Value
from irc.ir.symbols import dim_sum, substitute, symbol, terms_of
from irc.ir.types import FloatType, VectorType, i1, index
from irc.passes.kernel.cpu.emit import Content, Scalar, VectorScope
from irc.passes.kernel.cpu.lanes import LaneExpressions, lane_sum
from irc.passes.kernel.cpu.place import Index, Placement
from irc.passes.kernel.cpu.plan import REGISTERS, Access
from irc.passes.kernel.cpu.reduce import arith_width, combining_op
from irc.passes.kernel.cpu.spans import decide


class BodyEmitter:
    """Emits the operations of one member, each where `placed` says that it belongs."""

    def __init__(self, placed: Placement) -> None:
        self.placed = placed
        self.emitter, self.state = placed.emitter, placed.state
        self.member, self.vectors = placed.member, placed.vectors
        #: Vectors that wait for those of other points, to be stored between them: where each
        #: access of a copy begins, and its points' so far.
        self.held: dict[tuple[Access, int], tuple[Value, Value, list[Value]]] | None = None

    # -- levels

    def enter(self, level: int, scope: VectorScope) -> None:
        """Emit what belongs to one level, once its coordinate is known."""
        emitter = self.emitter
        emitter.extents = self.placed.extents
        for op in self.placed.ops_at[level]:
            emitter.location = op.location
            if scope.common is None:
                self._emit(op, scope)
            else:
                self._emit_alike(op, scope, scope.common)
        if scope.common is None:
            for groups in self.placed.prefixes[level]:
                emitter.prefix_sums(groups, scope)

    # -- operations

    def lane_value(self, content: Content, copy: int, width: int, scope: VectorScope) -> Value:
        """The value that vector number `copy` has, in each of its lanes."""
        if isinstance(content, list):
            return content[copy]
        return self.emitter.splat(content, width, scope)

    def _differs(self, op: Operation, scope: VectorScope) -> bool:
        """Whether an operation's lanes differ in the span at hand: a condition that is the same in
        all of it may leave what varies along the axis with operands that don't."""
        varies = op.results[0] in self.placed.varying
        return varies and any(isinstance(scope.values[o], list) for o in op.operands)

    def _emit_alike(self, op: Operation, scope: VectorScope, common: VectorScope) -> None:
        """Emit an operation at a point of a tile, unless another point has the same."""
        result, access = op.results[0], self.member.reads.get(op)
        place = None if access is None else substitute(access.expression, scope.moved)
        key = (op, place, *(id(scope.values.get(o, o)) for o in op.operands))
        if key in common.alike:
            content, known = common.alike[key]
            scope.values[result] = content
            if known is not None:
                scope.known[result] = known
            self._bind_positions(result, content, scope)
            return
        self._emit(op, scope)
        common.alike[key] = (scope.values[result], scope.known.get(result))

    def _emit(self, op: Operation, scope: VectorScope) -> None:
        emitter, result = self.emitter, op.results[0]
        content: Content
        decided = decide(op, "" if self.vectors is None else self.vectors.axis, scope)
        if isinstance(op, arith.ConstantOp):
            content = emitter.constant(op.attributes["value"], result.type)
            if isinstance(op.attributes["value"], A.BoolAttr):
                scope.known[result] = op.attributes["value"].value
        elif isinstance(decided, Value):
            content = scope.values[decided]
            if decided in scope.known:
                scope.known[result] = scope.known[decided]
        elif decided is not None:
            scope.known[result] = decided
            content = emitter.number(decided, i1)
        elif isinstance(op, loop.ReadOp):
            content = self._read(op, scope)
        elif isinstance(op, loop.IndexOp):
            content = self._index(op, scope)
        elif scope.lanes is not None and self._differs(op, scope):
            lanes = scope.lanes
            type_ = emitter.vector_type(result.type, lanes.width)
            content = []
            for copy in range(lanes.copies):
                operands = [
                    self.lane_value(scope.values[o], copy, lanes.width, scope)
                    for o in op.operands
                ]
                content.append(emitter.add(type(op), operands, type_, op.attributes))
        else:
            operands = [scope.values[o] for o in op.operands]
            content = emitter.add(type(op), operands, result.type, op.attributes)
        scope.values[result] = content
        self._bind_positions(result, content, scope)
        if result in self.placed.splat_wanted and not isinstance(content, list):
            assert self.vectors is not None
            inside = scope.lanes is None or scope.lanes.width > 1
            if inside:
                emitter.splat(content, self.vectors.width, scope)

    def _bind_positions(self, value: Value, content: Content, scope: VectorScope) -> None:
        """Let index expressions find an operand that they name."""
        names = self.placed.names_of.get(value)
        if names is None or (isinstance(content, list) and arith_width(content[0]) > 1):
            return
        place = self.emitter.convert(_first(content), index)
        for name in names:
            scope.names[name] = place

    def _index(self, op: loop.IndexOp, scope: VectorScope) -> Content:
        access = self.member.reads[op]
        lanes, prepared = scope.lanes, self.placed.indices[access]
        if not prepared.varying or lanes is None or lanes.width == 1:
            place = self.emitter.value(self.offset(access, 0, scope))
            return [place] if prepared.varying and lanes is not None else place
        return [self.offsets(access, copy, scope) for copy in range(lanes.copies)]

    # -- offsets

    def offset(self, access: Access, copy: int, scope: VectorScope) -> Scalar:
        """The offset of the first lane of a copy; of a uniform access, its offset."""
        prepared, emitter = self.placed.indices[access], self.emitter
        if scope.common is not None and prepared.stride is not None:
            return self._offset_in_tile(access, copy, scope, scope.common)
        if prepared.stride is None:
            # In a peeled remainder what varies is one scalar.
            return emitter.scalar(prepared.expression, scope)
        if copy and prepared.varying:
            assert self.vectors is not None and scope.lanes is not None
            step = copy * scope.lanes.apart
            if prepared.shift is None:
                axis = self.vectors.axis
                moved = substitute(prepared.expression, {axis: symbol(axis) + step})
                return emitter.scalar(moved, scope)
            first = emitter.prefix_sums(prepared.groups, scope)
            return emitter.plus(first, emitter.scalar(prepared.shift * step, scope))
        return emitter.prefix_sums(prepared.groups, scope)

    def _offset_in_tile(
        self, access: Access, copy: int, scope: VectorScope, common: VectorScope
    ) -> Scalar:
        """The offset at a point of a tile: what it is for all of them, and a constant."""
        emitter, place = self.emitter, substitute(access.expression, scope.moved)
        _, constant = terms_of(place)
        prepared = self.placed.prepared(place - constant, access)
        total = emitter.plus(emitter.prefix_sums(prepared.groups, common), constant)
        if not copy or not prepared.varying:
            return total
        assert scope.lanes is not None and prepared.shift is not None
        step = prepared.shift * (copy * scope.lanes.apart)
        return emitter.plus(total, emitter.scalar(step, scope))

    def offsets(self, access: Access, copy: int, scope: VectorScope) -> Value:
        """The offsets of all lanes of a copy, as a vector of index."""
        prepared, lanes, emitter = self.placed.indices[access], scope.lanes, self.emitter
        assert lanes is not None
        if not prepared.varying:
            return emitter.splat(emitter.value(self.offset(access, 0, scope)), lanes.width, scope)
        if prepared.stride is not None:
            base = self.offset(access, copy, scope)
            stride = emitter.scalar(prepared.stride, scope)
            if stride == 0:
                return emitter.splat(emitter.value(base), lanes.width, scope)
            return emitter.vector_index(base, stride, lanes.width, scope)
        env = LaneExpressions(self.emitter, access, copy, scope, lanes)
        outside = emitter.prefix_sums(prepared.groups, scope)
        rest = prepared.expression - dim_sum(prepared.groups)
        if prepared.own_lane:
            first = emitter.plus(outside, copy * lanes.apart)
            outside = emitter.vector_index(first, 1, lanes.width, scope)
        return env.vector(lane_sum(env, outside, rest))

    # -- memory

    def _guard(self, level: int, scope: VectorScope) -> Value | None:
        """A condition for a load hoisted to `level`: that the loops inside have any points."""
        emitter, guard = self.emitter, None
        shared = self.state.shared_axis
        for axis in self.placed.loops if shared is None else [shared, *self.placed.loops]:
            if self.placed.level_of[axis.name] <= level or self.state.positive(axis.extent):
                continue
            condition = self.state.guards.get(axis.extent)
            if condition is None:
                outside, emitter.block = emitter.block, emitter.entry
                size = emitter.scalar(axis.extent, scope)
                condition = emitter.compare("sgt", size, 0)
                emitter.block = outside
                self.state.guards[axis.extent] = condition
            if guard is not None:
                condition = emitter.add(arith.AndIOp, (guard, condition), i1)
            guard = condition
        return guard

    def _read(self, op: loop.ReadOp, scope: VectorScope) -> Content:
        access = self.member.reads[op]
        place = access.storage
        assert place is not None
        if place.kind == "register":
            return self._register(op, scope.values[place.value], scope)
        if place.kind == "sums":
            content = scope.values[place.value]
            return self._register(op, content if isinstance(content, list) else [content], scope)
        pointer, lanes = self.state.pointers[place.value], scope.lanes
        result, emitter = op.results[0], self.emitter
        if access in self.placed.transposed:
            assert lanes is not None
            return [self._from_tile(access, emitter.vector_type(result.type, lanes.width), scope)]
        mask = None if op.mask is None else scope.values[op.mask]
        known = None if op.mask is None else scope.known.get(op.mask)
        if known is False:
            zero = 0.0 if isinstance(result.type, FloatType) else 0
            return (
                emitter.number(zero, result.type) if op.other is None else scope.values[op.other]
            )
        if known:
            mask = None
        other = None if op.other is None else scope.values[op.other]
        if result not in self.placed.varying or lanes is None or lanes.width == 1:
            mask, other = _first(mask), _first(other)
            guard = self._guard(scope.level, scope)
            if guard is not None:
                mask = guard if mask is None else emitter.add(arith.AndIOp, (guard, mask), i1)
            value = emitter.load(pointer, self.offset(access, 0, scope), result.type, mask, other)
            return [value] if result in self.placed.varying and lanes is not None else value
        alike = self.placed.indices[access].stride == 0 or not self.placed.indices[access].varying
        if alike and (mask is None or not (isinstance(mask, list) or isinstance(other, list))):
            return emitter.load(pointer, self.offset(access, 0, scope), result.type, mask, other)
        type_ = emitter.vector_type(result.type, lanes.width)
        return [
            self._vector_read(access, pointer, copy, type_, mask, other, scope)
            for copy in range(lanes.copies)
        ]

    def _register(self, op: loop.ReadOp, content: Content, scope: VectorScope) -> Content:
        """What is in a register, where the read's mask holds."""
        known = True if op.mask is None else scope.known.get(op.mask)
        if known:
            return content
        result, lanes, emitter = op.results[0], scope.lanes, self.emitter
        zero = 0.0 if isinstance(result.type, FloatType) else 0
        other = emitter.number(zero, result.type) if op.other is None else scope.values[op.other]
        if known is False:
            return other
        parts = (scope.values[op.mask], content, other)
        if result not in self.placed.varying or lanes is None or lanes.width == 1:
            chosen = emitter.add(arith.SelectOp, tuple(map(_first, parts)), result.type)
            return [chosen] if result in self.placed.varying and lanes is not None else chosen
        type_ = emitter.vector_type(result.type, lanes.width)
        return [
            emitter.add(
                arith.SelectOp,
                tuple(self.lane_value(p, copy, lanes.width, scope) for p in parts),
                type_,
            )
            for copy in range(lanes.copies)
        ]

    def _from_tile(self, access: Access, type_: Type, scope: VectorScope) -> Value:
        """A read that was transposed: the row of the tile that belongs to this point."""
        emitter, tile = self.emitter, self.state.tile
        assert tile is not None and self.vectors is not None
        if access in tile.rows:
            return tile.rows[access][tile.number]
        number = emitter.minus(scope.names[tile.axis.name], tile.lower)
        place = emitter.times(number, self.vectors.width)
        return emitter.load(self.placed.transposed[access][1], place, type_, None, None)

    def _vector_read(
        self,
        access: Access,
        pointer: Value,
        copy: int,
        type_: Type,
        mask: Content,
        other: Content,
        scope: VectorScope,
    ) -> Value:
        emitter, prepared, lanes = self.emitter, self.placed.indices[access], scope.lanes
        assert lanes is not None
        width = lanes.width
        under = None if mask is None else self.lane_value(mask, copy, width, scope)
        whole = None if isinstance(mask, list) else under
        instead = None if other is None else self.lane_value(other, copy, width, scope)
        assert access.storage is not None
        # Scratch under a shared vector axis has room for all lanes of a point, but a lane that
        # is no point may hold any position. A table has some behind its end.
        scratch = access.storage.kind == "scratch" and self.state.shared is not None
        table = access.storage.kind == "table" and prepared.stride == 1
        roomy = table or (scratch and not prepared.own_lane)
        if lanes.mask is not None and not roomy:
            under = (
                lanes.mask
                if under is None
                else emitter.add(arith.AndIOp, (under, lanes.mask), under.type)
            )
        if access in self.placed.fetched:
            self._fetch(access, pointer, copy * lanes.apart, scope)
        if prepared.stride == 1:
            place = self.offset(access, copy, scope)
            if mask is not None and not isinstance(mask, list):
                place = emitter.place_where(mask, place)
            return emitter.load(pointer, place, type_, under, instead)
        if self._is_strided(prepared) and under is whole:
            place, condition = self.offset(access, copy, scope), _first(mask)
            if condition is not None:
                place = emitter.place_where(condition, place)
            apart = prepared.stride
            assert isinstance(apart, int)
            return emitter.load_strided(pointer, place, apart, type_, condition, instead)
        return emitter.gather(pointer, self.offsets(access, copy, scope), type_, under, instead)

    def _is_strided(self, prepared: Index) -> bool:
        """Whether elements lie backwards, or a few others apart: whole vectors are read."""
        most = 1 if self.vectors is None else self.vectors.strided
        stride = prepared.stride
        return isinstance(stride, int) and (stride == -1 or 1 < abs(stride) <= most)

    def _fetch(self, access: Access, pointer: Value, lane: int, scope: VectorScope) -> None:
        """Have memory fetched that a vector is read from some points later, masked or not."""
        emitter, (prepared, constant) = self.emitter, self.placed.fetched[access]
        first = emitter.prefix_sums(prepared.groups, scope)
        there = emitter.plus(emitter.plus(first, emitter.scalar(constant, scope)), lane)
        emitter.effect(kernel.PrefetchOp, (pointer, emitter.value(there)))

    def store(self, result: Value, content: Content, scope: VectorScope) -> None:
        """Store the final values of a result wherever it lives."""
        for access in self.member.stores[result]:
            place = access.storage
            assert place is not None
            if place.kind in REGISTERS:
                scope.values[result] = self._all_lanes(content, scope)
                continue
            self._store_to(access, self.state.pointers[place.value], content, scope)

    def _all_lanes(self, content: Content, scope: VectorScope) -> Content:
        lanes = scope.lanes
        if lanes is None or isinstance(content, list) or lanes.width == 1:
            return content
        return [self.emitter.splat(content, lanes.width, scope)] * lanes.copies

    def _store_to(
        self, access: Access, pointer: Value, content: Content, scope: VectorScope
    ) -> None:
        emitter, prepared, lanes = self.emitter, self.placed.indices[access], scope.lanes
        assert access.storage is not None
        element = access.storage.element
        if lanes is None or lanes.width == 1 or not prepared.varying:
            value = emitter.convert(_first(content), element)
            emitter.store(value, pointer, self.offset(access, 0, scope), None)
            return
        for copy in range(lanes.copies):
            value = emitter.convert(self.lane_value(content, copy, lanes.width, scope), element)
            if self.held is not None:
                if (access, copy) not in self.held:
                    place = emitter.value(self.offset(access, copy, scope))
                    self.held[access, copy] = pointer, place, []
                self.held[access, copy][2].append(value)
            elif prepared.stride == 1:
                emitter.store(value, pointer, self.offset(access, copy, scope), lanes.mask)
            else:
                places = self.offsets(access, copy, scope)
                emitter.scatter(value, pointer, places, lanes.mask, "set")

    def store_interleaved(self) -> None:
        """Store what is held, each point's lanes between those of the others."""
        for pointer, place, values in () if self.held is None else self.held.values():
            type_, count = values[0].type, len(values)
            assert isinstance(type_, VectorType)
            lanes, element = type_.shape[0], type_.element
            wide = self.emitter.vector_type(element, count * lanes)
            together = self.emitter.add(kernel.InterleaveOp, values, wide)
            self.emitter.store(together, pointer, place, None)
        self.held = None

    def scatter(
        self, result: Value, combiner: str, content: Content, mask: Value | None, scope: VectorScope
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
            value = emitter.convert(self.lane_value(content, copy, lanes.width, scope), element)
            hold = None if kept is None else self.lane_value(kept, copy, lanes.width, scope)
            if lanes.mask is not None:
                hold = (
                    lanes.mask
                    if hold is None
                    else emitter.add(arith.AndIOp, (hold, lanes.mask), hold.type)
                )
            if self.placed.indices[access].stride != 1:
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
