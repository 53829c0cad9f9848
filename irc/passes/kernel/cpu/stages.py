"""The stages of a group's kernel: what is computed for each point of the shared axes, in order.

A stage is a member's loops (`Nest`), a contraction in tiles of registers, or a group inside with
axes of its own, whose stages run for each point of those. What one stage hands to the next is
written again at each point of the shared axes, and so stays in the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from irc.dialects import arith
from irc.ir.core import Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import Dim, Range
from irc.ir.types import TensorType, index
from irc.passes.kernel.cpu.contraction.products import ProductWriter
from irc.passes.kernel.cpu.contraction.tiling import simplify_places, tiling_of
from irc.passes.kernel.cpu.emit import Emitter, Scalar, VectorScope
from irc.passes.kernel.cpu.nest import Nest
from irc.passes.kernel.cpu.place import OUTER, KernelState
from irc.passes.kernel.cpu.plan import Axis, CpuMember, CpuPlan
from irc.passes.kernel.cpu.schedule import CpuSchedule


class TiledStage:
    """A contraction whose own axes are its rows, its columns and axes that it has points of, one
    after the other."""

    def __init__(
        self, plan: CpuPlan, member: CpuMember, schedule: CpuSchedule, bound: Sequence[Axis],
        grid: Dim, ranges: Mapping[str, Range],
    ) -> None:  # fmt: skip
        if schedule.point_rows or schedule.point_columns:
            raise InvalidIR("a contraction in a group has no points of the parallel space of its "
                            "own (point_rows, point_columns)", op=member.compute)  # fmt: skip
        if any(a.storage is not None and a.storage.kind == "scratch" for a in member.accesses()):
            raise InvalidIR("what a contraction in tiles reads or gives is not on the stack "
                            "(scratch)", op=member.compute)  # fmt: skip
        outside = {axis.name for axis in bound}
        own = [axis for axis in member.own if axis.kind == "par" and axis.name not in outside]
        red = [axis for axis in member.own if axis.kind == "red"]
        inner = CpuMember(member.compute, red, member.reads, member.stores, member.positions)
        alone = CpuPlan(member.compute, [*bound, *own], [inner], plan.inputs, plan.outputs, {}, {})
        simplify_places(alone)
        top = CpuSchedule(outer=[axis.name for axis in alone.shared])
        self.tiling = tiling_of(alone, top, schedule)
        taken = {self.tiling.columns, self.tiling.rows, *self.tiling.row_run.parts, *bound}
        self.points = [axis for axis in own if axis not in taken]
        self.member, self.bound = member, bound
        self.products = ProductWriter(
            self.tiling, grid, ranges, self.points[-1] if self.points else None
        )

    @property
    def workspaces(self) -> list[TensorType]:
        """Memory of its own."""
        return list(self.products.workspaces.values())

    def bind(self, kernel: KernelState, arguments: Sequence[Value], scope: VectorScope) -> None:
        """Where to write, and the pointers to the workspaces."""
        state = kernel.before_points()
        state.level_of, state.extents = dict(kernel.level_of), dict(kernel.extents)
        for axis in self.bound:
            state.level_of[axis.name], state.extents[axis.name] = OUTER, axis.extent
        self.products.bind(kernel.emitter, state, arguments)
        tiling = self.tiling
        for axis in (*self.points, tiling.rows, tiling.columns, tiling.depth):
            kernel.emitter.scalar(axis.extent, scope)

    def enter(self, level: int, scope: VectorScope, begin: Scalar) -> None:
        """Write what is the same for all points of a kernel's call."""
        self.products.find_memory(scope, begin)
        self.places = {name: scope.names[name] for name in self.products.memory}
        self.products.enter(level, scope)

    def run(self, scope: VectorScope) -> None:
        """The products at a point of the shared axes."""
        tiling, products = self.tiling, self.products
        scope = scope.child(OUTER)
        scope.names.update(self.places)  # another stage's memory has the same names
        outside, products.emitter.extents = products.emitter.extents, products.extents

        def at(inner: VectorScope) -> None:
            rows, columns = (products.block(0, 0, axis, inner)
                             for axis in (tiling.rows, tiling.columns))  # fmt: skip
            products.run(inner, rows, columns)

        over_points(products.emitter, self.points, scope, at)
        products.emitter.extents = outside

    def forget(self) -> None:
        """Drop what it was written from."""
        for op in self.products.temporary:
            op.drop_all_references()


class InnerPoints:
    """A group inside: its stages, for each point of the axes that it has more than the one around
    it. limit: a number of which there are no more steps of a walk."""

    def __init__(self, axes: list[Axis], limit: Value | None = None) -> None:
        self.axes, self.limit = axes, limit
        self.stages: list[Stage] = []

    def run(self, state: KernelState, scope: VectorScope) -> None:
        """All points."""
        emitter = state.emitter

        def body(inner: VectorScope) -> None:
            run_stages(state, self.stages, inner)

        if self.limit is None:
            over_points(emitter, self.axes, scope, body)
            return
        content = scope.values[self.limit]
        count = content[0] if isinstance(content, list) else content
        steps: Scalar = emitter.add(arith.IndexCastOp, (count,), index)
        if self.axes:
            steps = emitter.least(steps, emitter.scalar(self.axes[0].extent, scope))
            over_points(emitter, self.axes, scope, body, steps)
        else:  # an axis of one point
            emitter.when(emitter.compare("sgt", steps, 0), lambda: body(scope.child(OUTER)))


Stage: TypeAlias = Nest | TiledStage | InnerPoints


def over_points(
    emitter: Emitter, axes: Sequence[Axis], scope: VectorScope,
    body: Callable[[VectorScope], None], end: Scalar | None = None,
) -> None:  # fmt: skip
    """Run `body(scope)` at each point of some axes, outermost first. end: of the first one, if that
    is not its extent."""
    if not axes:
        body(scope)
        return

    def at(place: Scalar, _: Sequence[Value]) -> list[Value]:
        inner = scope.child(OUTER)
        inner.names[axes[0].name] = place
        over_points(emitter, axes[1:], inner, body)
        return []

    end = emitter.scalar(axes[0].extent, scope) if end is None else end
    emitter.for_loop(0, end, 1, (), at)


def leaves_of(stages: Sequence[Stage]) -> list[Nest | TiledStage]:
    """The stages that are no groups, in order."""
    leaves: list[Nest | TiledStage] = []
    for stage in stages:
        leaves += leaves_of(stage.stages) if isinstance(stage, InnerPoints) else [stage]
    return leaves


def run_stages(state: KernelState, stages: Sequence[Stage], scope: VectorScope) -> None:
    """What is computed at a point of the axes whose places the scope has."""
    for stage in stages:
        if isinstance(stage, InnerPoints):
            stage.run(state, scope)
            continue
        if isinstance(stage, Nest):
            stage.enter(OUTER, scope)
        stage.run(scope)


__all__ = ["InnerPoints", "TiledStage", "leaves_of", "run_stages"]
