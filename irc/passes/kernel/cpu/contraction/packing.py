"""Factors of a contraction, evaluated into memory of the kernel's own before they are multiplied.

What has the columns lies in panels, [columns / panel][depth][panel], in which vectors behind the
last column hold anything, and the other lanes of its own vector zeros; what has the rows in lines,
[rows][depth], set apart for other sets of the cache. Evaluating is a map over an axis of the sides
and the depth, so casts, activations and masked reads come along; where it is read across, squares
are transposed in registers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir.core import Operation, Region, Value
from irc.ir.symbols import Dim, coefficient, known_divisible, symbol
from irc.ir.types import FloatType, TensorType
from irc.passes.common.bodies import Body
from irc.passes.kernel.cpu.contraction.runs import AxisRun, Stretch
from irc.passes.kernel.cpu.contraction.split import cut
from irc.passes.kernel.cpu.contraction.tiling import TiledFactor
from irc.passes.kernel.cpu.emit import Scalar, VectorScope
from irc.passes.kernel.cpu.nest import Nest
from irc.passes.kernel.cpu.place import ENTRY, OUTER, SHARED, KernelState, TransposedTile
from irc.passes.kernel.cpu.plan import Access, Axis, CpuMember, Storage
from irc.passes.kernel.cpu.schedule import CpuSchedule
from irc.passes.kernel.cpu.vectors import Phase, Vectors, phases

if TYPE_CHECKING:
    from irc.passes.kernel.cpu.contraction.products import ProductWriter

LEFT, RIGHT = "left", "right"
_BEGIN, _END = "_begin", "_end"


def pack_right(
    owner: ProductWriter, scope: VectorScope, columns: Stretch, depth: Stretch,
    some: Stretch | None = None, terms: Stretch | None = None,
) -> None:  # fmt: skip
    """Evaluate the factor with the columns over a block, or some columns and terms of it."""
    tiling, emitter = owner.tiling, owner.emitter
    inner, panel, group = scope.child(OUTER), tiling.packed_panel, tiling.group
    rows = owner.packed_depth
    before = emitter.plus(
        emitter.times(columns.lower, emitter.scalar(rows, scope)),
        emitter.times(depth.lower, panel),
    )
    inner.names[_BEGIN] = emitter.minus(inner.names[RIGHT], before)
    column, place = symbol(tiling.columns.name), number_in(tiling.depth_run)
    target = column // panel * (rows * panel) + column % panel * group + symbol(_BEGIN)
    if group == 1:
        target = target + place * panel
    else:
        target = target + place // group * (group * panel) + place % group
    if group == 1 and some is None:
        _clear_behind(owner, inner, columns, depth)
    across = AxisRun(tiling.columns, [tiling.columns])
    factor = tiling.right, tiling.depth_run, across
    _PackedFactor(owner, RIGHT, *factor, target, owner.parts_apart).run(
        inner, terms or depth, some or columns
    )


def _clear_behind(
    owner: ProductWriter, scope: VectorScope, columns: Stretch, depth: Stretch
) -> None:
    """Put zeros where the last column's vector has lanes behind it, before it is packed: these are
    multiplied, too, and what memory holds there may be numbers below the normal ones, with which a
    product takes an Intel processor some hundred cycles."""
    tiling, emitter, lanes = owner.tiling, owner.emitter, owner.schedule.lanes
    extent, panel = tiling.columns.extent, tiling.packed_panel
    if known_divisible(extent, lanes):
        return
    end = emitter.scalar(extent, scope)
    first = emitter.minus(end, emitter.remainder(end, lanes, True))
    passed = emitter.times(emitter.scalar(owner.packed_depth, scope), panel)
    begin = emitter.times(emitter.quotient(first, panel, True), passed)
    begin = emitter.plus(begin, emitter.remainder(first, panel, True))
    begin = emitter.plus(begin, scope.names[_BEGIN])
    element = tiling.factor_element
    zero = 0.0 if isinstance(element, FloatType) else 0

    def clear() -> None:
        zeros = emitter.number(zero, element, lanes)

        def at(place: Scalar, _: object) -> list[Value]:
            there = emitter.plus(begin, emitter.times(place, panel))
            emitter.store(zeros, owner.memory[RIGHT], there, None)
            return []

        emitter.for_loop(depth.lower, depth.upper, 1, (), at)

    conditions = []
    if columns.upper != end:
        conditions.append(emitter.compare("sge", columns.upper, end))
    if not isinstance(first, int):
        conditions.append(emitter.compare("slt", first, end))
    if conditions:
        emitter.when(functools.reduce(emitter.both, conditions), clear)
    else:
        clear()


def pack_left(
    owner: ProductWriter, scope: VectorScope, rows: Stretch, depth: Stretch
) -> None:
    """Evaluate the factor with the rows over a block."""
    tiling, emitter, width = owner.tiling, owner.emitter, owner.left_row
    assert isinstance(width, int)
    before = emitter.plus(emitter.times(rows.lower, width), depth.lower)
    target = number_in(tiling.row_run) * width + number_in(tiling.depth_run)
    pack_rows(owner, scope, rows, depth, before, target)


def pack_rows(
    owner: ProductWriter, scope: VectorScope, rows: Stretch, depth: Stretch, before: Scalar,
    target: Dim, apart: Dim = 0,
) -> None:  # fmt: skip
    """Evaluate the factor with the rows over a block, into memory of which `before` elements are
    left out. apart: elements between the parts that it is cut into."""
    tiling, inner = owner.tiling, scope.child(OUTER)
    inner.names[_BEGIN] = owner.emitter.minus(inner.names[LEFT], before)
    factor = tiling.left, tiling.row_run, tiling.depth_run
    _PackedFactor(owner, LEFT, *factor, target + symbol(_BEGIN), apart).run(inner, rows, depth)


def number_in(run: AxisRun) -> Dim:
    """The place of a run's parts in it."""
    number: Dim = 0
    for part in run.parts:
        number = number * part.extent + symbol(part.name)
    return number


class _PackedFactor:
    """A map over two axes, vectors of which run along `inner`, that writes at `target`, and the
    parts that it is cut into `apart` elements from each other."""

    def __init__(
        self, owner: ProductWriter, name: str, factor: TiledFactor, outer: AxisRun,
        inner: AxisRun, target: Dim, apart: Dim,
    ) -> None:  # fmt: skip
        self.owner, self.emitter = owner, owner.emitter
        self.outer_run, self.inner_run = outer, inner
        self.outer, self.inner = outer.inner, inner.inner
        self.lanes = owner.schedule.lanes
        self.member = self._member(name, factor, target, apart)
        state = self.state = KernelState(owner.emitter)
        state.pointers, state.positive = owner.state.pointers, owner.state.positive
        state.guards, state.written = owner.state.guards, owner.state.written
        # All other axes are points outside, as the depth or the axis of rows is.
        state.level_of = {**owner.state.level_of, _BEGIN: ENTRY}
        parts = (*outer.parts, *inner.parts)
        for axis in (*owner.tiling.outer, *parts):
            state.level_of[axis.name] = OUTER
        state.level_of[self.inner.name] = SHARED
        state.extents = {**owner.state.extents, **{axis.name: axis.extent for axis in parts}}
        state.shared = Vectors(self.inner.name, self.lanes, 1, "mask", 1)
        self.across = self._reads_across()
        if self.across:
            # Blocks of it end anywhere.
            self.outer = Axis(self.outer.name, self.outer.kind, symbol(_END))
            state.level_of[_END] = ENTRY
            state.tile = TransposedTile(self.outer, f"{self.outer.name}_start")
        own = CpuSchedule(unroll=True)
        self.nest = Nest(state, self.member, [self.outer] if self.across else [], None, own)

    def _reads_across(self) -> bool:
        """Whether a read is contiguous along the other axis, and squares fit."""
        return self.lanes in (8, 16) and any(
            coefficient(access.expression, self.outer.name) == 1
            and coefficient(access.expression, self.inner.name) not in (None, 0, 1)
            for op, access in self.member.reads.items()
            if isinstance(op, loop.ReadOp)
        )

    def _member(
        self, name: str, factor: TiledFactor, target: Dim, apart: Dim
    ) -> CpuMember:
        """The side's operations as a compute of their own."""
        owner, body, is_split = self.owner, Body(), self.owner.schedule.is_split
        original = owner.tiling.products.member
        copies: dict[Value, Value] = {}
        reads: dict[Operation, Access] = {}
        narrow = owner.tiling.group > 1 and not is_split
        value = factor.side.narrow if narrow else factor.side.value
        for op in factor.side.ops:
            if value is not factor.side.value and op is factor.side.value.defining_op:
                continue
            copy = body.block.append(op.clone(copies))
            access = original.reads.get(op)
            if access is not None:
                positions = {n: copies[v] for n, v in access.positions.items()}
                reads[copy] = Access(access.expression, access.storage, positions)
        values = [copies[value]]
        if is_split:
            values = cut(body.add, values[0], lambda element: element)
        body.finish(values)
        memory = owner.memory[name]
        both = (self.outer, self.inner)
        axes = A.ArrayAttr([loop.AxisAttr(a.name, "par", a.extent) for a in both])
        type_ = TensorType((self.outer.extent, self.inner.extent), owner.tiling.factor_element)
        outputs = A.ArrayAttr([loop.MAP] * len(values))
        entries: dict[str, A.Attribute] = {"axes": axes, "outputs": outputs}
        compute = loop.ComputeOp((), (type_,) * len(values), entries, (Region([body.block]),))
        owner.temporary.append(compute)
        place = Storage("argument", memory, ())
        stores: dict[Value, list[Access]] = {
            result: [Access(target + apart * part, place, {}, True)]
            for part, result in enumerate(compute.results)
        }
        return CpuMember(compute, [], reads, stores, [])

    def run(self, scope: VectorScope, outer: Stretch, inner: Stretch) -> None:
        """Write the loops over [outer) and [inner)."""
        self.nest.body.enter(ENTRY, scope)
        self._over(self.outer_run, scope, outer, lambda s, part: self._lines(s, part, inner))

    def _over(
        self, run: AxisRun, scope: VectorScope, stretch: Stretch,
        body: Callable[[VectorScope, Stretch], None],
    ) -> None:  # fmt: skip
        """Run `body` for each stretch of a run's inner part."""
        own, whole = self.owner.schedule, False
        if run is self.owner.tiling.depth_run:
            size = run.inner.extent
            parts = not own.block_depth or not self.owner.in_parts
            whole = parts or (isinstance(size, int) and own.block_depth % size == 0)
        run.over(self.emitter, scope, stretch, whole, body)

    def _lines(self, scope: VectorScope, outer: Stretch, inner: Stretch) -> None:
        """A stretch of the outer run's inner part."""
        body, emitter, run = self.nest.body, self.emitter, self.inner_run

        def vectors(here: VectorScope, part: Stretch) -> None:
            body.enter(OUTER, here)
            self._vectors(here, part)

        if self.across:
            tile = self.state.tile
            assert tile is not None
            tile.first, tile.last = outer.lower, outer.upper
            scope.names[_END] = outer.upper
            self._over(run, scope, inner, vectors)
            return

        def at(place: Scalar, _: object) -> list[Value]:
            line = scope.child(OUTER)
            line.names[self.outer.name] = place
            self._over(run, line, inner, vectors)
            return []

        emitter.for_loop(outer.lower, outer.upper, 1, (), at)

    def _vectors(self, scope: VectorScope, inner: Stretch) -> None:
        emitter, axis, vectors = self.emitter, self.inner_run.inner, self.state.shared
        assert vectors is not None
        for phase in self._phases(vectors, inner):

            def at(place: Scalar, _: object, phase: Phase = phase) -> list[Value]:
                here = scope.child(SHARED)
                here.span = phase.span
                here.names[axis.name] = place
                here.lanes = phase.lanes(emitter, axis.name, place)
                self.nest.body.enter(SHARED, here)
                self.nest.run(here)
                return []

            emitter.for_loop(phase.lower, phase.upper, phase.step, (), at)

    def _phases(self, vectors: Vectors, inner: Stretch) -> Iterable[Phase]:
        """The loops over a stretch: whole vectors where it begins and ends with one."""
        lower, upper, run = inner.lower, inner.upper, self.inner_run
        known = isinstance(lower, int) and isinstance(upper, int)
        if known or len(run.parts) == 1 or known_divisible(run.inner.extent, self.lanes):
            return phases(self.emitter, vectors, lower, upper, run.inner.extent)
        return [Phase(lower, upper, self.lanes, self.lanes, 1, upper)]
