"""The pass `stream-products`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from irc.analysis.contraction import contraction_of
from irc.analysis.loop import Clusters, is_map, points
from irc.dialects import loop
from irc.ir.core import Operation
from irc.ir.diagnostics import InternalError
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim
from irc.passes.common.bodies import clean_block, extents_of
from irc.passes.common.dce import sweep
from irc.passes.common.substitution import substitute_read
from irc.passes.kernel.gpu.plan import GpuPlan, plan_for_gpu
from irc.passes.kernel.gpu.stream_space import StreamSpace, stream_space
from irc.passes.kernel.plan.plan import flatten
from irc.passes.loop.grouping import group_members
from irc.passes.loop.merge_computes import emit
from irc.passes.loop.positions import position_folds
from irc.passes.loop.stream_axes import split_heads, split_stream
from irc.passes.loop.stream_blocks import stream_blocks
from irc.target import target_of

LONGEST_MAP = 64
"""The most operations of a map, as a mask is, that is computed for each score where it is read."""


@register_pass
class StreamProducts(Pass):
    """Groups products of rows with a stream of columns, what is made of them, and products of that
    with something else that is streamed.

    Of the products that were given to irc with an empty schedule (`stream-softmaxes`), those over
    the columns of others are kernels with these and all that stands between, and maps of the sums
    behind: no row of scores is ever in memory. What they share are the rows. A remark tells what
    keeps others apart, which are then kernels by themselves. Rows of several heads that share what
    is streamed fill a tile that has room for them; listed blocks are all that is walked over; and
    where there are few tiles of rows, parts of the stream are rows, too, which are combined behind.

    Before:
        %s = loop.compute par(i0: 4, i1: 512, i2: 512) red(i3: 64) -> reduce(sum, f32) schedule #loop.schedule<gpu> { ... }
        %m = loop.compute par(i0: 4, i1: 512) red(i2: 512) -> reduce(max, f32) { ... %s ... }
        %o = loop.compute par(i0: 4, i1: 512, i2: 64) red(i3: 512) -> reduce(sum, f32) schedule #loop.schedule<gpu> { ... %s, %m ... }
    After:
        %o = loop.group (i0: 4, i1: 512) { %s = ...; %m = ...; %o = ...; loop.yield %o }
    """  # noqa: E501

    name = "stream-products"
    summary = "group products over the columns of others with these"
    anchor = "func.func"
    preserves = "real"
    asks_target = True

    def run(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].blocks[0]
        streams, roots = list[list[Operation]](), set[Operation]()
        for product in [op for op in block.ops if _is_own_product(op)]:
            # A product over a stream is no score of the next one.
            stream = _stream_of(product, roots)
            if stream:
                streams.append(stream)
                roots.add(product)
        if not streams:
            return
        joined = _joined(streams)
        for members in joined:
            _inline_maps(members)
        clusters, prefixes = Clusters(block), dict[Operation, tuple[Dim, ...]]()
        for members in joined:
            rows = rows_of(members)
            members = [*members, *_followers(members, rows, clusters)]
            members.sort(key=clusters.number.__getitem__)
            if not context.spend("stream-products", members[-1]):
                continue
            reason = _merge(clusters, members)
            if reason:
                context.remark(f"products are not streamed: {reason}", members[-1])
                continue
            prefixes[members[0]] = rows
        if not prefixes:
            return
        emit(clusters, block, lambda members: group_members(members, prefixes))
        for group in [o for o in block.ops if isinstance(o, loop.GroupOp)]:
            if group.block.first in prefixes:
                plan = plan_for_gpu(flatten(group))
                space = stream_space(plan)
                if isinstance(space, str):
                    context.remark(f"products are not streamed: {space}", group)
                    dissolve(group)
                    continue
                context.count("streamed")
                self._settle(group, plan, space, context)
        sweep(op, context.fuel)

    @staticmethod
    def _settle(
        group: loop.GroupOp, plan: GpuPlan, space: StreamSpace, context: PassContext
    ) -> None:
        """Choose the axes of a group's rows and stream. Raises InternalError where a group with
        other axes streams nothing."""
        target = target_of(context)
        headed = split_heads(group, plan, space, target.gpu) if target.is_gpu else group
        if headed is not group:
            group, (plan, space) = headed, _streamed(headed)
        blocked = stream_blocks(group, plan, space)
        if isinstance(blocked, str):
            context.remark(f"all blocks are looked at: {blocked}", group)
        elif blocked is not group:
            group, (plan, space) = blocked, _streamed(blocked)
        if not target.is_gpu:
            return
        group, parts = split_stream(group, plan, space, target.gpu)
        if parts > 1:
            _streamed(group)
            context.remark(f"the stream is walked over in {parts} parts", group)


def _streamed(group: loop.GroupOp) -> tuple[GpuPlan, StreamSpace]:
    """The plan of a group that was made to stream products, and what it streams."""
    plan = plan_for_gpu(flatten(group))
    space = stream_space(plan)
    if isinstance(space, str):
        raise InternalError(f"a group with other axes is no kernel of streamed products: {space}")
    return plan, space


def _is_own_product(op: Operation | None) -> bool:
    """Whether a compute is a product that was given to irc, with nothing said of its schedule."""
    if not isinstance(op, loop.ComputeOp) or op.schedule is None or op.schedule.entries.items:
        return False
    return not isinstance(contraction_of(op), str)


def _stream_of(op: Operation, others: Collection[Operation]) -> list[Operation]:
    """The computes of a product over the columns of others, itself the last one; [] where it is
    none. Its first factor is made of those others, behind which nothing is looked at. others:
    products that are no scores."""
    assert isinstance(op, loop.ComputeOp)
    contraction = contraction_of(op)
    assert not isinstance(contraction, str)
    readers: dict[Operation, list[Operation]] = {}
    products, depth = list[Operation](), [axis.extent for axis in contraction.depth]
    pending: list[tuple[Operation, Iterable[loop.ReadOp]]] = [(op, contraction.left.reads)]
    while pending:
        reader, reads = pending.pop()
        for maker in {read.source.defining_op for read in reads}:
            if not isinstance(maker, loop.ComputeOp):
                continue
            if maker in readers:
                readers[maker].append(reader)
                continue
            readers[maker] = [reader]
            if maker in others:
                continue
            if _is_own_product(maker):
                scores = contraction_of(maker)
                assert not isinstance(scores, str)
                if [a.extent for a in scores.columns] == depth:
                    products.append(maker)
            else:
                pending.append((maker, maker.reads))
    members = dict.fromkeys(products)
    while products:
        for reader in readers.get(products.pop(), ()):
            if reader not in members:
                members[reader] = None
                products.append(reader)
    members.pop(op, None)
    return [*members, op] if members else []


def _joined(streams: Iterable[Sequence[Operation]]) -> list[list[Operation]]:
    """The computes of streams, those with a compute in common as one, in the program's order."""
    joined: list[dict[Operation, None]] = []
    for stream in streams:
        own = dict.fromkeys(stream)
        for other in [o for o in joined if not own.keys().isdisjoint(o)]:
            joined.remove(other)
            own = other | own
        joined.append(own)
    return [list(each) for each in joined]


def rows_of(members: Sequence[Operation]) -> tuple[Dim, ...]:
    """The extents of the rows that a stream's members share: the leading par axes of all."""
    shared: list[Dim] | None = None
    for member in members:
        assert isinstance(member, loop.ComputeOp)
        par = [axis.extent for axis in member.axis_list if axis.kind == "par"]
        if shared is None:
            shared = par
        equal = [a == b for a, b in zip(shared, par, strict=False)]
        shared = shared[: equal.index(False) if False in equal else len(equal)]
    return tuple(shared or ())


def _followers(
    members: Sequence[Operation], rows: tuple[Dim, ...], clusters: Clusters
) -> list[Operation]:
    """What else reads what the members make and nothing of other computes: what is combined over
    the stream, and maps over the rows with at most one more axis."""
    inside, followers = set(members), dict[Operation, None]()
    pending = list(members)
    while pending:
        readers = {user.parent_op for result in pending.pop().results for user in result.users}
        for op in readers:
            if not isinstance(op, loop.ComputeOp) or op in inside or not _follows(op, rows):
                continue
            makers = {read.source.defining_op for read in op.reads}
            if all(m in inside or not isinstance(m, loop.ComputeOp) for m in makers):
                inside.add(op)
                followers[op] = None
                pending.append(op)
    return sorted(followers, key=clusters.number.__getitem__)


def _follows(op: loop.ComputeOp, rows: tuple[Dim, ...]) -> bool:
    """Whether a compute is over the rows, and combines points of one more axis, or is a map with
    at most one."""
    axes = op.axis_list
    if tuple(axis.extent for axis in axes[: len(rows)]) != rows:
        return False
    combined = all(axis.kind == "red" for axis in axes[len(rows) :])
    reduces = all(output.kind == "reduce" for output in op.output_list)
    return combined and reduces or is_map(op) and len(axes) <= len(rows) + 1


def _inline_maps(members: Sequence[Operation]) -> None:
    """Put maps that members read, as masks are, in the place of what is read, where they would be
    arrays as large as the scores."""
    inside = set(members)
    for member in members:
        assert isinstance(member, loop.ComputeOp)
        changed = True
        while changed:
            changed = False
            for read in list(member.reads):
                maker = read.source.defining_op
                if maker in inside or not isinstance(maker, loop.ComputeOp) or not is_map(maker):
                    continue
                # A number of the point alone says where something is read.
                if len(maker.block) > LONGEST_MAP or not (
                    _is_large(maker, member) or not any(maker.reads)
                ):  # fmt: skip
                    continue
                value = substitute_read(read, maker, extents_of(member))
                read.results[0].replace_all_uses_with(value)
                read.erase()
                changed = True
                if not any(result.has_uses for result in maker.results):
                    maker.erase()
        extents = extents_of(member)
        clean_block(member.block, position_folds(member.block, extents))


def _is_large(maker: loop.ComputeOp, member: loop.ComputeOp) -> bool:
    """Whether a map has as many elements as a row of members has points of rows and stream."""
    row, *own = [a.extent for a in member.axis_list][-2:]
    return points(a.extent for a in maker.axis_list) >= points([row, *own])


def _merge(clusters: Clusters, members: Sequence[Operation]) -> str:
    """Make members one cluster; gives why they can't be."""
    first = members[0]
    for member in members[1:]:
        a, b = clusters.cluster_of(first), clusters.cluster_of(member)
        if reason := clusters.why_apart(a, b):
            return reason
        if not clusters.can_merge(a, b):
            return "something between them depends on the one and is needed by the other"
        clusters.merge(a, b)
    return ""


def dissolve(group: loop.GroupOp) -> None:
    """Put the members of a group in its place."""
    for result, value in zip(group.results, group.yield_op.values, strict=True):
        result.replace_all_uses_with(value)
    assert group.parent is not None
    for member in [each for each in group.block.ops if not isinstance(each, loop.YieldOp)]:
        member.detach()
        group.parent.insert_before(member, group)
    group.erase()


__all__ = ["StreamProducts"]
