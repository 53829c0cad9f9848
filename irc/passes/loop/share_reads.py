"""The pass `share-reads`."""

from __future__ import annotations

from irc.analysis.contraction import tiled
from irc.analysis.loop import points
from irc.analysis.shared_reads import jam_of
from irc.dialects import loop, sym
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import TensorType, contiguous_strides, element_bytes, f32
from irc.passes.common.bodies import axis_name, make_axes
from irc.passes.kernel.cpu.collapse import can_collapse
from irc.passes.kernel.cpu.interleaved import MOST
from irc.passes.kernel.cpu.plan import plan_for_cpu
from irc.passes.kernel.plan.plan import flatten
from irc.passes.loop.grouping import group_members
from irc.target import Target, target_of


@register_pass
class ShareReads(Pass):
    """Gives computes of a kernel for a CPU the axes whose points share what they read.

    A kernel's points are those of the axes that its computes share, and a compute sees one of them
    at a time. Where several points of a reduction read the same, as the windows of places beside
    each other do (`irc.analysis.shared_reads`), that axis and those behind it become axes of each
    member's own: `schedule` then has several points in registers together. What members hand on has
    room on the stack for all of these points, and the other axes have as many points as there are
    threads. So do the few points of a last axis (`irc.passes.kernel.cpu.interleaved`) of maps that
    read the same for them, or other things under conditions: rotary embeddings of pairs, products
    of complex numbers, colors. They are written out, and their vectors interleaved.

    Before:
        %s = loop.compute par(i0: 9, i1: 14, i2: 32) red(i3: 3, i4: 3) -> reduce(sum, f32) { ... }
    After:
        %s = loop.group (i0: 9) {
          %t = loop.compute par(i0: 9, i1: 14, i2: 32) red(i3: 3, i4: 3) -> reduce(sum, f32) { ... }
          loop.yield %t }
    """

    name = "share-reads"
    summary = "give computes the axes whose points share what they read"
    anchor = "func.func"
    asks_target = True

    def run(self, op: Operation, context: PassContext) -> None:
        target = target_of(context)
        if target.is_gpu:
            return
        for inner in list(op.regions[0].blocks[0].ops):
            if isinstance(inner, loop.ComputeOp | loop.GroupOp) and inner.schedule is None:
                count = fewer_axes(inner, target)
                if count is None:
                    continue
                if not context.spend("share-reads", inner):
                    continue
                axes = shared_axes(inner)[:count]
                extents = tuple(axis.extent for axis in axes)
                if isinstance(inner, loop.ComputeOp):
                    group_members([inner], {inner: extents})
                else:
                    inner.attributes["axes"] = make_axes(extents)
                context.count("shared")


def shared_axes(op: loop.ComputeOp | loop.GroupOp) -> list[loop.AxisAttr]:
    """The axes whose points a kernel of an operation has."""
    return [a for a in op.axis_list if a.kind == "par"]


def fewer_axes(op: loop.ComputeOp | loop.GroupOp, target: Target) -> int | None:
    """How many of the leading axes stay shared; None where all do."""
    members = [op] if isinstance(op, loop.ComputeOp) else list(op.block.ops)[:-1]
    axes = shared_axes(op)
    names = [axis.name for axis in axes]
    if names != [axis_name(k) for k in range(len(names))]:
        return None
    if has_short_ends(op, target):
        return len(axes) - 1
    counts = []
    for member in members:
        if not isinstance(member, loop.ComputeOp) or tiled(member, target) is not None:
            return None
        if member.schedule is not None or any(o.kind == "scatter" for o in member.output_list):
            return None
        jam = jam_of(member, target)
        if not isinstance(jam, str):
            counts += [names.index(name) for name in (jam.axis, jam.vector) if name in names]
    if not counts or min(counts) >= len(axes):
        return None
    fewer = min(counts)
    if points(axis.extent for axis in axes[:fewer]) < target.threads:
        return None
    if isinstance(op, loop.GroupOp) and handed_on(op, fewer) > target.features.stack_bytes:
        return None
    return fewer


def has_short_ends(op: loop.ComputeOp | loop.GroupOp, target: Target) -> bool:
    """Whether the points of the last axis are few, lie side by side in all that is stored, and
    can't be told from those of the axis around it as one axis' points."""
    axes = shared_axes(op)
    if len(axes) != len(op.axis_list) or len(axes) < 2:
        return False
    outer, last = axes[-2:]
    if not isinstance(last.extent, int) or not 2 <= last.extent <= MOST:
        return False
    if points(axis.extent for axis in axes[:-1]) < 2 * target.lanes(f32):
        return False
    for type_ in (result.type for result in op.results):
        assert isinstance(type_, TensorType)
        strides = type_.strides or contiguous_strides(type_.shape)
        if type_.rank != len(axes) or tuple(strides[-2:]) != (last.extent, 1):
            return False
    if sym.range_entry(op):
        return False
    plan = plan_for_cpu(flatten(op))
    if plan.once or any(
        member.own or any(output.kind != "map" for output in member.compute.output_list)
        or any(access.storage is None or access.storage.kind != "argument"
               for group in member.stores.values() for access in group)
        for member in plan.members
    ):  # fmt: skip
        return False
    named = {axis.name: axis for axis in plan.shared}
    every = [access for member in plan.members for access in member.accesses()]
    return not can_collapse(named[outer.name], named[last.name], every)


def handed_on(group: loop.GroupOp, shared: int) -> int:
    """The bytes that members hand on at a point of the first `shared` axes."""
    total = 0
    stored = set(group.yield_op.values)
    for member in group.block.ops:
        for result in member.results:
            if result not in stored and not group.is_once(member):
                type_ = result.type
                assert isinstance(type_, TensorType)
                total += points(type_.shape[shared:]) * element_bytes(type_.element)
    return total


__all__ = ["ShareReads", "fewer_axes"]
