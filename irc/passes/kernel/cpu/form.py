"""Kernels for a cpu: the loop over the outer space around the members' nests.

The outer space is the product of the axes `outer` of the schedule, of which the last may be the
shared vector axis in blocks. A call computes the points [begin, end) of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from irc.dialects import arith, kernel, loop
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import (
    Dim,
    Range,
    ceildiv,
    dim_product,
    free_symbols,
    known_divisible,
    known_positive,
)
from irc.ir.types import TensorType, index
from irc.passes.kernel.axis_costs import cost_of
from irc.passes.kernel.cpu.collapse import collapse_plan
from irc.passes.kernel.cpu.emit import Emitter, Scalar, VectorScope
from irc.passes.kernel.cpu.jam_points import reads_own_point
from irc.passes.kernel.cpu.nest import Nest
from irc.passes.kernel.cpu.place import ENTRY, OUTER, SHARED, KernelState, TransposedTile
from irc.passes.kernel.cpu.plan import (
    FIRST_POINT,
    Axis,
    CpuMember,
    CpuPlan,
    inner_groups,
    plan_for_cpu,
)
from irc.passes.kernel.cpu.schedule import CpuSchedule, read_schedule
from irc.passes.kernel.cpu.sharing import inplace_pairs
from irc.passes.kernel.cpu.spans import spans
from irc.passes.kernel.cpu.stages import InnerPoints, Stage, TiledStage, leaves_of, run_stages
from irc.passes.kernel.cpu.vectors import Phase, phases, vectors_of
from irc.passes.kernel.plan.plan import Plan


def form_cpu_kernel(
    plan: CpuPlan, schedule: loop.ScheduleAttr, name: str, ranges: dict[str, Range]
) -> tuple[kernel.KernelFuncOp, list[TensorType]]:
    """The kernel of a plan, and the types of memory that its contractions have. Raises InvalidIR
    for a schedule that does not fit it."""
    inplace = inplace_pairs(plan)
    former = _CpuKernel(plan, read_schedule(schedule, plan.op), name, ranges)
    return former.form(inplace), former.workspaces


def form_copying_kernel(
    flat: Plan, schedule: loop.ScheduleAttr, name: str, ranges: dict[str, Range]
) -> kernel.KernelFuncOp:
    """The kernel of a compute that scatters which first copies what it starts from."""
    plan, copying = plan_for_cpu(flat, copying=True), read_schedule(schedule, flat.op).copying
    return _CpuKernel(plan, copying, name, ranges).form(inplace_pairs(plan))


def kernel_symbols(plan: CpuPlan) -> list[str]:
    """The function's symbols that the kernel of a plan needs, sorted."""
    names: set[str] = set()
    bound: set[str] = {FIRST_POINT}
    for axis in plan.axes():
        bound.add(axis.name)
        names |= free_symbols(axis.extent)
    for member in plan.everybody:
        for access in member.accesses():
            names |= free_symbols(access.expression)
            bound.update(access.positions)
    return sorted(names - bound)


def keep_sums(plan: CpuPlan, schedules: Sequence[CpuSchedule]) -> None:
    """Give sums no memory that maps beside them alone read."""
    beside: dict[Value, list[bool]] = {}
    for member, schedule in zip(plan.members, schedules, strict=True):
        joins = schedule.has("beside_sums") and schedule.beside_sums
        for op, access in member.reads.items():
            if isinstance(op, loop.ReadOp) and access.storage is not None:
                here = joins and reads_own_point(op)
                beside.setdefault(access.storage.value, []).append(here)
    for member, schedule in zip(plan.members, schedules, strict=True):
        for result in member.stores if schedule.has("jam_axis") else ():
            place = plan.storage[result]
            if place.kind == "scratch" and all(beside.get(result, [False])):
                place.keep_in_registers()


def kernel_function(
    plan: CpuPlan, name: str, symbols: Sequence[str], memory: Iterable[TensorType] = ()
) -> kernel.KernelFuncOp:
    """A kernel without operations: it takes a pointer for each array that the plan reads or writes
    and for memory of its own, the symbols, and the first and the last point of a call."""
    types: list[Type] = [kernel.PointerType(plan.storage[v].element) for v in plan.inputs]
    for value in plan.outputs:
        types.append(kernel.PointerType(loop.signless(value.type.element)))  # type: ignore[attr-defined]
    types += [kernel.PointerType(type_.element) for type_ in memory]
    scalars = [index] * (len(symbols) + 2)
    func = kernel.KernelFuncOp.create(name, [*types, *scalars], "cpu")
    func.location = plan.op.location
    return func


class _CpuKernel:
    def __init__(
        self, plan: CpuPlan, schedule: CpuSchedule, name: str, ranges: dict[str, Range]
    ) -> None:
        self.plan, self.schedule, self.ranges = plan, schedule, ranges
        self.member_schedules = collapse_plan(plan, schedule)
        keep_sums(plan, self.member_schedules[len(plan.once) :])
        self.symbols = kernel_symbols(plan)
        self._contractions()
        self.workspaces = [type_ for stage in self.tiled.values() for type_ in stage.workspaces]
        self.func = kernel_function(plan, name, self.symbols, self.workspaces)
        self.emitter = Emitter(self.func.block)
        self.emitter.location = plan.op.location
        self.state = KernelState(self.emitter)
        self.state.positive = lambda d: known_positive(d, ranges)
        self.scope = VectorScope()
        self._bind_arguments()

    def _contractions(self) -> None:
        """The members that are contractions in tiles."""
        plan = self.plan
        grid = plan.parts_of(dim_product([axis.extent for axis in plan.shared]))
        self.tiled: dict[CpuMember, TiledStage] = {}
        schedules = self.member_schedules[len(plan.once) :]
        for member, schedule in zip(plan.members, schedules, strict=True):
            if not schedule.has("tile_rows"):
                continue
            if self.schedule.vector_axis:
                raise InvalidIR("a contraction in tiles shares no axis of vectors", op=plan.op)
            self.tiled[member] = TiledStage(
                plan, member, schedule, self._bound(member), grid, self.ranges
            )

    def _bound(self, member: CpuMember) -> list[Axis]:
        """The axes whose points a member is computed at."""
        groups = inner_groups(member.compute, self.plan.op)
        names = {axis.name for group in groups for axis in group.axis_list}
        return [*self.plan.shared, *(axis for axis in member.own if axis.name in names)]

    def _bind_arguments(self) -> None:
        plan, arguments = self.plan, self.func.block.arguments
        arrays = [*plan.inputs, *plan.outputs]
        for value, argument in zip(arrays, arguments, strict=False):
            self.state.pointers[value] = argument
        for value in arrays[: len(plan.inputs)]:
            self.state.pointers[value].name_hint = value.name_hint
        self.memory = arguments[len(arrays) : len(arrays) + len(self.workspaces)]
        scalars = arguments[len(arrays) + len(self.workspaces) :]
        for name, argument in zip(self.symbols, scalars, strict=False):
            argument.name_hint = name
            self.scope.names[name] = argument
            self.state.level_of[name] = ENTRY
        self.begin, self.end = scalars[-2], scalars[-1]
        self.begin.name_hint, self.end.name_hint = "begin", "end"
        self.scope.names[FIRST_POINT] = self.begin
        self.state.level_of[FIRST_POINT] = ENTRY
        self.state.written = set(plan.outputs)

    # -- the outer space

    def form(self, inplace: Sequence[int]) -> kernel.KernelFuncOp:
        """Emit everything."""
        self._outer_axes()
        self._nests()
        emitter, scope = self.emitter, self.scope
        for axis in self.plan.axes():
            emitter.scalar(axis.extent, scope)
        self._scratch()
        for nest in (*self.once, *self.nests):
            nest.enter(ENTRY, scope)
        for stage in self.tiled.values():
            stage.enter(ENTRY, scope, self.begin)
        if self.once:
            emitter.when(emitter.compare("slt", self.begin, self.end), self._compute_once)
        if self.shared_axis is not None and not self.outer:
            self._chunk()
        else:
            self._points()
        emitter.location = self.plan.op.location
        emitter.effect(kernel.KernelReturnOp, ())
        emitter.finish()
        self._attributes(inplace)
        for stage in self.tiled.values():
            stage.forget()
        return self.func

    def _outer_axes(self) -> None:
        schedule, plan = self.schedule, self.plan
        named = {a.name: a for a in plan.shared}
        self.shared_axis: Axis | None = named.get(schedule.vector_axis)
        self.block = schedule.block if self.shared_axis is not None else 0
        tile_axis = schedule.tile_axis if self.shared_axis or schedule.has("tile_axis") else ""
        if tile_axis and (self.shared_axis is None or tile_axis not in named):
            raise InvalidIR("a tile needs a shared vector axis and another shared axis", op=plan.op)
        order = [n for n in schedule.outer if n != schedule.vector_axis]
        expected = set(named) - ({schedule.vector_axis} if self.shared_axis else set())
        if set(order) != expected:
            raise InvalidIR(
                f"the schedule's outer axes ({', '.join(order)}) are not the shared axes "
                f"({', '.join(sorted(expected))})",
                op=plan.op,
            )
        self.outer = [named[n] for n in order]
        state = self.state
        if tile_axis:
            self._tile_rows(named[tile_axis])
        for axis in self.outer:
            state.level_of[axis.name] = OUTER
            state.extents[axis.name] = axis.extent
        if self.shared_axis is not None:
            state.level_of[self.shared_axis.name] = SHARED
            state.extents[self.shared_axis.name] = self.shared_axis.extent
            state.shared = vectors_of(schedule)
            if not self.block:
                state.shared_axis = self.shared_axis
        extents: list[Dim] = [a.extent for a in self.outer]
        if self.block:
            assert self.shared_axis is not None
            extents.append(ceildiv(self.shared_axis.extent, self.block))
        self.grid = dim_product(extents)

    def _tile_rows(self, axis: Axis) -> None:
        """The outer space has blocks of a tile's rows; the rows are a loop inside the vectors."""
        if any(member.own for member in self.plan.members) or self.schedule.copies > 1:
            raise InvalidIR("only pointwise members are tiled", op=self.plan.op)
        self.state.tile = TransposedTile(axis, f"{axis.name}_start")
        rows = self.tile_block
        blocks = Axis(f"{axis.name}_block", "par", ceildiv(axis.extent, rows))
        self.outer = [blocks if a is axis else a for a in self.outer]

    @property
    def tile_block(self) -> int:
        """Points of the tile axis in one point of the parallel space."""
        return self.schedule.tile_block

    def _enter_tile(self, scope: VectorScope) -> None:
        """Find the rows of the tiles at a point of the outer space."""
        tile, emitter, rows = self.state.tile, self.emitter, self.tile_block
        assert tile is not None
        extent = emitter.scalar(tile.axis.extent, scope)
        tile.first = emitter.times(scope.names[f"{tile.axis.name}_block"], rows)
        tile.last = emitter.plus(tile.first, rows)
        if not known_divisible(tile.axis.extent, rows):
            tile.last = emitter.least(tile.last, extent)

    def _nests(self) -> None:
        plan, schedules = self.plan, self.member_schedules
        outside, count = self.state.before_points(), len(plan.once)
        self.once = [self._nest(outside, *p) for p in zip(plan.once, schedules, strict=False)]
        self.stages: list[Stage] = []
        memory = iter(self.memory)
        inside: dict[Operation, InnerPoints] = {}
        for member, schedule in zip(plan.members, schedules[count:], strict=True):
            place, bound = self.stages, list[Axis]()
            for group in inner_groups(member.compute, plan.op):
                if group not in inside:
                    names = {a.name for a in group.axis_list} - {axis.name for axis in bound}
                    axes = [a for a in member.own if a.name in names]
                    inside[group] = InnerPoints(axes, self._limit(group))
                    place.append(inside[group])
                bound += inside[group].axes
                place = inside[group].stages
            stage = self.tiled.get(member)
            if schedule.has("beside_sums") and schedule.beside_sums:
                self._beside(self._nest(self.state, member, schedule, bound), place)
                continue
            if stage is None:
                place.append(self._nest(self.state, member, schedule, bound))
                continue
            stage.bind(self.state, [next(memory) for _ in stage.workspaces], self.scope)
            place.append(stage)
        self.nests = [stage for stage in leaves_of(self.stages) if isinstance(stage, Nest)]

    def _limit(self, group: loop.GroupOp) -> Value | None:
        """What a group's number of steps is where it is computed. Raises InvalidIR."""
        value = group.limit
        if value is None:
            return None
        value = self.plan.storage[value].value if value in self.plan.storage else value
        if self.plan.storage[value].kind != "register":
            raise InvalidIR("the limit of a walk is made beside it", op=group)
        return value

    def _nest(
        self, state: KernelState, member: CpuMember, schedule: CpuSchedule,
        bound: Sequence[Axis] = (),
    ) -> Nest:  # fmt: skip
        for axis in bound:
            state.level_of[axis.name], state.extents[axis.name] = OUTER, axis.extent
        loops = ordered_loops(member, schedule, {axis.name for axis in bound})
        if state.tile is not None:
            loops.insert(0, state.tile.axis)
        vectors = None
        if state.shared is None and schedule.vector_axis in {a.name for a in loops}:
            vectors = vectors_of(schedule)
        return Nest(state, member, loops, vectors, schedule)

    def _beside(self, map_: Nest, stages: Sequence[Stage]) -> None:
        """Have a map computed from the sums of a reduction that it reads, while those of a tile's
        points are in registers. Raises InvalidIR."""
        for read in map_.member.reads.values():
            place = read.storage
            for stage in stages:
                if place is None or not isinstance(stage, Nest) or stage.jam is None:
                    continue
                if place.kind == "sums" and place.value in stage.member.stores:
                    stage.jam.join(map_)
                    return
        raise InvalidIR("it is beside no sums: what it reads are none of several points in "
                        "registers, made before it, that such maps alone read",
                        op=map_.member.compute)  # fmt: skip

    def _compute_once(self) -> None:
        """What is computed once, before the first point."""
        for nest in self.once:
            scope = self.scope.child(OUTER)
            nest.body.enter(OUTER, scope)
            nest.run(scope)

    def _scratch(self) -> None:
        shared = self.state.shared
        lanes = 1 if shared is None else shared.width * shared.copies
        for place in {each.value: each for each in self.plan.storage.values()}.values():
            if place.kind in ("scratch", "table"):
                # Of no elements, too: nothing is written there.
                count = max(place.count, 1) * (lanes if place.kind == "scratch" else 1)
                if place.kind == "table":
                    count += self._slack()
                attributes: dict[str, Attribute] = {"count": A.IntegerAttr(count)}
                pointer = kernel.PointerType(place.element)
                value = self.emitter.add(kernel.ScratchOp, (), pointer, attributes)
                self.state.pointers[place.value] = value

    def _slack(self) -> int:
        """How many elements a vector that begins at any place of a table may read behind it."""
        most = 1
        for nest in (*self.once, *self.nests):
            vectors = nest.vectors
            if vectors is not None:
                axes = (*self.plan.shared, *nest.member.own)
                extent = next(a.extent for a in axes if a.name == vectors.axis)
                most = max(most, 1 if known_divisible(extent, vectors.width) else vectors.width)
        return most - 1

    def _chunk(self) -> None:
        """One contiguous range of the shared vector axis."""
        axis, emitter = self.shared_axis, self.emitter
        assert axis is not None

        def body() -> list[Value]:
            scope = self.scope.child(OUTER)
            for nest in self.nests:
                nest.body.enter(OUTER, scope)
            extent = emitter.scalar(axis.extent, scope)
            if self.block:
                lower: Scalar = emitter.times(self.begin, self.block)
                upper = emitter.least(emitter.times(self.end, self.block), extent)
            else:
                lower, upper = 0, extent
            self._shared_loop(lower, upper, scope)
            return []

        if self.grid == 1:
            # The one point is computed by whoever is given it.
            emitter.for_loop(self.begin, self.end, 1, (), lambda i, c: body())
        else:
            emitter.when(emitter.compare("slt", self.begin, self.end), body)

    def _shared_loop(self, lower: Scalar, upper: Scalar, scope: VectorScope) -> None:
        axis, vectors = self.shared_axis, self.state.shared
        assert axis is not None and vectors is not None
        ops = [op for nest in self.nests for op in nest.member.compute.block.ops]
        for low, high in spans(ops, vectors, lower, upper):
            self._shared_span(low, high, scope)

    def _shared_span(self, lower: Scalar, upper: Scalar, scope: VectorScope) -> None:
        axis, vectors, emitter = self.shared_axis, self.state.shared, self.emitter
        assert axis is not None and vectors is not None
        for phase in phases(emitter, vectors, lower, upper, axis.extent):

            def body(position: Scalar, carried: list[Value], phase: Phase = phase) -> list[Value]:
                inner = scope.child(SHARED)
                inner.span = phase.span
                inner.names[axis.name] = position
                inner.lanes = phase.lanes(emitter, axis.name, position)
                for nest in self.nests:
                    nest.body.enter(SHARED, inner)
                    nest.run(inner)
                return []

            emitter.for_loop(phase.lower, phase.upper, phase.step, (), body)

    def _points(self) -> None:
        """A loop over the points of the outer space."""
        sizes = [self.emitter.scalar(a.extent, self.scope) for a in self.outer]
        if self.block:
            assert self.shared_axis is not None
            blocks = ceildiv(self.shared_axis.extent, self.block)
            sizes.append(self.emitter.scalar(blocks, self.scope))
        if len(sizes) <= 1:
            self.emitter.for_loop(
                self.begin, self.end, 1, (), lambda i, c: self._point([i][: len(sizes)])
            )
            return
        start: list[Value] = []
        rest: Scalar = self.begin
        for size in reversed(sizes[1:]):
            start.insert(0, self.emitter.value(self.emitter.remainder(rest, size, True)))
            rest = self.emitter.quotient(rest, size, True)
        start.insert(0, self.emitter.value(rest))

        def body(position: Scalar, coordinates: list[Value]) -> list[Value]:
            self._point(coordinates)
            return self._advance(coordinates, sizes)

        self.emitter.for_loop(self.begin, self.end, 1, start, body)

    def _advance(self, coordinates: list[Value], sizes: list[Scalar]) -> list[Value]:
        """The coordinates of the next point: the last one counts, a full one carries over."""
        emitter = self.emitter
        after: list[Value] = []
        carry: Value | None = None
        for position in reversed(range(len(sizes))):
            one = 1 if carry is None else emitter.add(arith.IndexCastUIOp, (carry,), index)
            moved = emitter.value(emitter.plus(coordinates[position], one))
            if position:
                carry = emitter.compare("eq", moved, sizes[position])
                zero = emitter.number(0, index)
                moved = emitter.add(arith.SelectOp, (carry, zero, moved), index)
            after.insert(0, moved)
        return after

    def _point(self, coordinates: Sequence[Scalar]) -> list[Value]:
        emitter, scope = self.emitter, self.scope.child(OUTER)
        for axis, coordinate in zip(self.outer, coordinates, strict=False):
            scope.names[axis.name] = coordinate
        if self.state.tile is not None:
            self._enter_tile(scope)
        if self.shared_axis is None:
            run_stages(self.state, self.stages, scope)
            return []
        for nest in self.nests:
            nest.body.enter(OUTER, scope)
        extent = emitter.scalar(self.shared_axis.extent, scope)
        if not self.block:
            self._shared_loop(0, extent, scope)
            return []
        lower = emitter.times(coordinates[-1], self.block)
        upper = emitter.least(emitter.plus(lower, self.block), extent)
        self._shared_loop(lower, upper, scope)
        return []

    # -- facts about the kernel

    def _attributes(self, inplace: Sequence[int]) -> None:
        plan = self.plan
        entries = self.func.attributes
        entries["symbols"] = A.ArrayAttr([A.StringAttr(n) for n in self.symbols])
        entries["grid"] = A.DimAttr(self.grid)
        entries["work"] = A.DimAttr(self._work())
        first = len(plan.inputs)
        last = first + len(plan.outputs) + len(self.workspaces)
        entries["outputs"] = A.DenseIntsAttr(range(first, last))
        own = [n for n, value in enumerate(plan.outputs, first)
               if value in plan.storage and plan.storage[value].kind == "private"]  # fmt: skip
        own += range(first + len(plan.outputs), last)
        if own:
            entries["private"] = A.DenseIntsAttr(own)
        if inplace:
            entries["inplace"] = A.DenseIntsAttr(inplace)
        if plan.initialized:
            arrays = [*plan.inputs, *plan.outputs]
            flat = [arrays.index(value) for pair in plan.initialized for value in pair]
            entries["initialized"] = A.DenseIntsAttr(flat)

    def _work(self) -> Dim:
        total: Dim = 0
        for member in self.plan.members:
            total = total + dim_product([a.extent for a in member.own]) * cost_of(member)
        if self.shared_axis is not None:
            total = total * (self.block or self.shared_axis.extent)
        if self.state.tile is not None:
            total = total * self.tile_block
        return total


def ordered_loops(
    member: CpuMember, schedule: CpuSchedule, bound: Collection[str] = ()
) -> list[Axis]:
    """A member's own axes in the order of its loops, less those that are bound around it. Raises
    InvalidIR for a wrong order."""
    named = {a.name: a for a in member.own if a.name not in bound}
    order = [n for n in schedule.order if n in named]
    if set(order) != set(named):
        raise InvalidIR(
            f"the schedule's order ({', '.join(order)}) is not of the axes ({', '.join(named)})",
            op=member.compute,
        )
    loops = [named[n] for n in order]
    kinds = [a.kind == "par" for a in loops]
    if kinds != sorted(kinds, reverse=True):
        raise InvalidIR("combined axes come inside par axes in a schedule", op=member.compute)
    return loops


