"""Where each part of a member's body belongs: levels, what varies along the vectors, prefixes.

Levels count from the kernel inward: 0 the kernel's entry, 1 the loop over the outer space, 2 the
shared vector axis if there is one, and then one per loop of the member. Each operation of the
body is placed at the deepest level of what it depends on, so what an inner loop does not change
is computed outside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from irc.dialects import kernel, loop
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim, Expr, coefficient, dim_sum, substitute, symbol, terms_of
from irc.ir.types import TensorType
from irc.passes.kernel.cpu.emit import Emitter, Scalar
from irc.passes.kernel.cpu.plan import (
    Access,
    Axis,
    CpuMember,
    Storage,
    is_transposed,
    lane_stride,
)
from irc.passes.kernel.cpu.vectors import Vectors

ENTRY, OUTER, SHARED = 0, 1, 2


@attrs.define(eq=False)
class Index:
    """An access ready to be emitted: groups of terms by level, and its step along the lanes
    (None: none that is constant; 0: the same for all lanes of a vector). `own_lane`: each lane of
    a block of scratch reads its own element of the place that `expression` gives it."""

    access: Access
    expression: Dim
    levels: list[int]
    groups: list[Dim]
    level: int
    varying: bool
    stride: Dim | None
    shift: Dim | None
    own_lane: bool = False


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
        self.tile: TransposedTile | None = None

    def before_points(self) -> KernelState:
        """The same for what is computed before the shared axes: there are no vectors along them,
        and no tile."""
        state = KernelState(self.emitter)
        state.pointers, state.positive, state.guards = self.pointers, self.positive, self.guards
        state.level_of, state.extents = self.level_of, self.extents
        state.written = self.written
        return state


@attrs.define(eq=False)
class TransposedTile:
    """Tiles in which reads across the rows are transposed: squares of as many points of `axis` as
    a vector has lanes, one after the other over [first, last).

    The one at hand has the rows [lower, upper). `full`: that it has all; None: always. `start` is
    the name of `lower` in index expressions. `rows`: the transposed reads' rows that are held in
    registers, and `number` the one at hand; else they lie on the stack.
    """

    axis: Axis
    start: str
    first: Scalar = 0
    last: Scalar = 0
    lower: Scalar = 0
    upper: Scalar = 0
    full: Value | None = None
    rows: dict[Access, list[Value]] = attrs.field(factory=dict)
    number: int = 0


class Placement:
    """What is known of a member before it is emitted."""

    def __init__(
        self,
        state: KernelState,
        member: CpuMember,
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
        self.moved: dict[tuple[Dim, Storage | None], Index] = {}
        self.ops_at: list[list[Operation]] = [[] for _ in range(self.base + 1 + len(self.loops))]
        self.splat_wanted: set[Value] = set()
        self.names_of: dict[Value, list[str]] = {}
        self.transposed: dict[Access, tuple[Access, Value]] = {}
        self.fetched: dict[Access, tuple[Index, Dim]] = {}
        self._place_ops()
        self._prepare_prefixes()

    # -- analysis

    def _place_ops(self) -> None:
        member = self.member
        for op in member.compute.block.ops:
            if isinstance(op, loop.YieldOp):
                continue
            level = max((self._level(o) for o in op.operands), default=ENTRY)
            varying = any(o in self.varying for o in op.operands)
            access = member.reads.get(op)
            if access is not None:
                prepared = self._prepare(access)
                level = max(level, prepared.level)
                varying = varying or prepared.varying
                place = access.storage
                if place is not None:
                    level = max(level, OUTER)
                    known = place.kind in ("argument", "table")
                    if not known or place.value in self.state.written:
                        level = max(level, self.base)
                    if place.kind == "register" and isinstance(op, loop.ReadOp):
                        chosen = op.mask in self.varying or op.other in self.varying
                        varying = chosen or self.state.shared is not None
                    elif place.kind == "sums":
                        level, varying = self.base + len(self.loops), True
            result = op.results[0]
            self.levels[result] = level
            if varying:
                self.varying.add(result)
                self.splat_wanted.update(o for o in op.operands if o not in self.varying)
            self.ops_at[level].append(op)
        if self.vectors is not None:
            self.splat_wanted.update(member.compute.yield_op.operands)
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
            if isinstance(value.type, TensorType):
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
        moved = isinstance(d, Expr) and bool(loose & d.symbols)
        shared = self.state.shared
        blocked = place is not None and place.kind == "scratch" and shared is not None
        if blocked:
            # Scratch holds a block of lanes per point.
            assert shared is not None
            d, stride, shift, varying = d * (shared.width * shared.copies), 1, 1, True
        if moved:
            stride, shift, varying = None, None, True
        elif not blocked and axis is not None and isinstance(d, Expr) and axis in d.symbols:
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
        index = Index(access, d, levels, groups, level, varying, stride, shift, blocked and moved)
        self.indices[access] = index
        return index

    def prepared(self, place: Dim, access: Access) -> Index:
        """The index of an access at another place."""
        key = (place, access.storage)
        if key not in self.moved:
            self.moved[key] = self._prepare(Access(place, access.storage, access.positions))
        return self.moved[key]

    def fetch_ahead(self, axis: str, points: int) -> None:
        """What the reads of arguments read so many points of a loop further: the index of each, but
        for a constant, which reads that are beside each other differ by."""
        if all(a.name != axis for a in self.loops):
            raise InvalidIR(f"{axis} is no loop of the compute's own", op=self.member.compute)
        further = {axis: symbol(axis) + points}
        for op, access in self.member.reads.items():
            place = access.storage
            if not isinstance(op, loop.ReadOp) or place is None or access.positions:
                continue
            if place.kind == "argument" and self.indices[access].stride == 1:
                moved = substitute(access.expression, further)
                constant = terms_of(moved)[1]
                self.fetched[access] = self.prepared(moved - constant, access), constant
        self._prepare_prefixes()

    def _prepare_prefixes(self) -> None:
        """Which partial sums each level computes for the levels inside it."""
        self.prefixes: list[list[list[Dim]]] = [[] for _ in self.ops_at]
        for prepared in self.indices.values():
            for position, level in enumerate(prepared.levels):
                if level < prepared.level and level < len(self.prefixes):
                    self.prefixes[level].append(prepared.groups[: position + 1])

    def _find_transposed(self, tile: TransposedTile) -> None:
        """The reads that go through a transposed tile: each gets one on the stack."""
        vectors, emitter = self.vectors, self.emitter
        assert vectors is not None
        width = vectors.width
        for op, access in self.member.reads.items():
            if not isinstance(op, loop.ReadOp) or not is_transposed(
                op, access, tile.axis.name, vectors.axis
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
