"""The pass `expand-streams`."""

from __future__ import annotations

from collections.abc import Sequence

from irc.analysis.contraction import contraction_of
from irc.dialects import arith, func, loop
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, symbol
from irc.ir.types import f32
from irc.passes.kernel.gpu.plan import GpuMember, GpuPlan, plan_for_gpu
from irc.passes.kernel.gpu.stream_space import StreamSpace, stream_space
from irc.passes.kernel.plan.plan import flatten
from irc.passes.loop.stream_ends import ends_of
from irc.passes.loop.stream_lanes import ColumnLanes, RowLanes, whole_tiles
from irc.passes.loop.stream_points import StreamPoints
from irc.passes.loop.stream_products import dissolve
from irc.passes.loop.stream_walk import StreamWalk
from irc.target import Target, target_of


@register_pass
class ExpandStreams(Pass):
    """Makes groups of streamed products (`stream-products`) groups of a CPU's stages: blocks of rows
    that walk over the stream, step by step.

    The points are blocks of rows. Each lays out its rows of what is multiplied and walks over the
    stream with what it carries: maxima and sums so far, of each row. A step has a product of some
    columns of the stream with the rows, its elements' function with the greatest of each row,
    powers below the maximum so far with their sums, and products of these with what is streamed;
    sums so far become smaller where the maximum is greater. Behind the walk is what the group
    gives. Where lists say which blocks of the stream count, or comparisons of places with a row's,
    a walk ends behind the last one of its block of rows.

    Rows are the lanes of vectors all along, so that nothing of the stream is laid out anew, and
    what is combined over it are vectors. Where registers of whole tiles multiply both products
    (`kernel.dot_rows`: 16 bits, AMX), columns of the stream are the lanes: rows are read as they
    lie, and what is streamed is laid out in panels before the group, once for all blocks.

    rows, columns: of a block and of a step (0: the target's `walk_rows`, `walk_columns`; where
    registers of whole tiles multiply, `tiled_walk_rows`, `tiled_walk_columns`).

    Before:
        %y = loop.group (i0: 8, i1: 512) {
          %s = loop.compute par(i0: 8, i1: 512, i2: 512) red(i3: 64) -> reduce(sum, f32) {...}
          %m = loop.compute par(i0: 8, i1: 512) red(i2: 512) -> reduce(max, f32) {...}
          ... }
    After:
        %y = loop.group (i0: 8, block: 8) schedule ... {
          %q = loop.compute par(i0: 8, block: 8, depth0: 64, row: 64) -> map {...}
          %m0 = ...
          %l, %o = loop.group (i0: 8, block: 8, step: 2) iter_args(%m0, ...) schedule ... {
            %s = loop.compute par(i0: 8, block: 8, step: 2, column: 256, row: 64) red(depth0: 64) -> reduce(sum, f32) {...}
            ... }
          %y = loop.compute par(i0: 8, block: 8, width: 64, row: 64) -> scatter(set, [...]) {...}
          loop.yield %y }
    """  # noqa: E501

    name = "expand-streams"
    summary = "make streamed products on a CPU blocks of rows that walk over the stream"
    preserves = "real"
    asks_target = True
    rows: int = 0
    columns: int = 0

    def run(self, op: Operation, context: PassContext) -> None:
        target = target_of(context)
        if target.is_gpu:
            return
        functions = [o for o in op.regions[0].blocks[0].ops if isinstance(o, func.FuncOp)]
        for group in [o for function in functions for o in function.block.ops]:
            if not isinstance(group, loop.GroupOp) or group.schedule is not None:
                continue
            members = [op for op in group.block.ops if isinstance(op, loop.ComputeOp)]
            products = [each for each in members if each.schedule is not None
                        and not isinstance(contraction_of(each), str)]  # fmt: skip
            if len(products) < 2:  # or a product with what follows it
                continue
            flat = flatten(group)
            space = "" if flat.once else stream_space(plan := plan_for_gpu(flat))
            if isinstance(space, str):
                continue
            reason = why_not(plan, space)
            if reason:
                context.remark(f"products are not streamed: {reason}", group)
                dissolve(group)
                continue
            walk = self._walk(group, plan, space, target)
            context.remark(f"blocks of {walk.at.rows} rows walk over {walk.at.columns} "
                           "columns at a time", group)  # fmt: skip
            walk.run()
            context.count("expanded")

    def _walk(
        self, group: loop.GroupOp, plan: GpuPlan, space: StreamSpace, target: Target
    ) -> StreamWalk:
        features, dot = target.features, whole_tiles(space, target)
        sizes = features.walk_rows, features.walk_columns
        if dot is not None:
            sizes = features.tiled_walk_rows, features.tiled_walk_columns
        rows, columns = self.rows or sizes[0], self.columns or sizes[1]
        ends = ends_of(plan, space)
        # Where what counts ends with a row, wide steps have much that doesn't.
        columns = columns if ends is None else min(columns, 2 * rows)
        at: StreamPoints
        if dot is None:
            at = RowLanes(group, space.stream, rows, columns, target)
        else:
            at = ColumnLanes(group, space.stream, rows, columns, target, dot)
        return StreamWalk(at, plan, space, ends)


def why_not(plan: GpuPlan, space: StreamSpace) -> str:
    """Why a group's stages have no form; "" if they have one."""
    inside = {result for member in plan.members for result in member.compute.results}
    for member in plan.members:
        here = [*member.rows, *(axis.name for axis in space.axes_of(member))]
        places = [symbol(name) for name in here]
        for read in member.compute.reads:
            if read.source not in inside:
                continue
            if read.mask is not None or read.positions or list(read.indices) not in (
                places, places[: len(member.rows)], [*places, *_columns_of(member, places)]
            ):  # fmt: skip
                return "a member reads another one's result at another place"
    for each in space.combined:
        element = each.origin.attr.accumulator
        if element is not f32:
            return f"it combines {element}"
    if any(not isinstance(c.product, arith.MulFOp) for _, c in space.products):
        return "it multiplies integers"
    for member in space.behind:
        if len(member.own) > 1:
            return "what follows has several columns"
        outputs = member.compute.output_list
        if len(outputs) > 1 and any(output.kind == "scatter" for output in outputs):
            return "what follows is stored at several places"
    return ""


def _columns_of(member: GpuMember, places: Sequence[Dim]) -> list[Dim]:
    names = [symbol(axis.name) for axis in member.own if axis.kind == "par"]
    return [name for name in names if name not in places]


__all__ = ["ExpandStreams"]
