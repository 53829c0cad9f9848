"""The pass `group-computes`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import attrs

from irc.analysis.contraction import tiled
from irc.analysis.cost import cost_of, told
from irc.analysis.loop import (
    Clusters,
    array_bytes,
    is_map,
    leading_axes,
    points,
    reads_by_source,
)
from irc.dialects import loop
from irc.ir.core import Block, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.rewrite.fuel import NO_FUEL
from irc.ir.symbols import Dim, format_dim, free_symbols
from irc.ir.types import TensorType, element_bytes
from irc.passes.common.bodies import axes_of, axis_name
from irc.passes.loop.grouping import group_members
from irc.passes.loop.merge_computes import emit
from irc.passes.loop.once import compute_once
from irc.target import Target, target_of
from irc.target.costs import Cost


@attrs.define
class Prefix:
    """The leading par axes that a cluster's members share, and what it does.

    ops: scalar operations of the bodies; cost: of all points; large: the arrays read that no
    first-level cache keeps, with their bytes. tiles: how many members are contractions whose
    kernel multiplies tiles; maps: whether the others are maps over the shared axes alone.
    """

    extents: tuple[Dim, ...]
    ops: int
    cost: Cost = Cost()
    large: dict[Value, int] = attrs.field(factory=dict)
    tiles: int = 0
    maps: bool = False


@register_pass
class GroupComputes(Pass):
    """Puts computes that share leading par axes, and feed each other or read the same arrays,
    into one `loop.group`.

    A member reads another member's array at the same point of the shared axes only, so what one
    point of them makes stays in cache or in registers. On a cpu a small map that is left, as the
    square roots that a batch norm over channels-last images divides by, goes into the groups that
    read it as a member with axes of its own: what is computed once. With a contraction whose kernel
    multiplies tiles go maps over its sums alone. `siblings`: readers of an array, the last ones,
    that are looked at for another one.

    Before:
        %m = loop.compute par(i0: 4) red(i1: 8) -> reduce(max, f32) { ... }
        %y = loop.compute par(i0: 4, i1: 8) -> map { ... loop.read %m[i0] ... }
    After:
        %y = loop.group (i0: 4) {
          %m = loop.compute par(i0: 4) red(i1: 8) -> reduce(max, f32) { ... }
          %n = loop.compute par(i0: 4, i1: 8) -> map { ... loop.read %m[i0] ... }
          loop.yield %n }
    """

    name = "group-computes"
    summary = "put computes that share leading axes and data into one group"
    anchor = "func.func"
    asks_target = True
    max_ops: int = 2048
    siblings: int = 8

    def run(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].blocks[0]
        planner = _GroupPlanner(self, block, context)
        merges = planner.plan()
        for reader, reason in planner.kept_apart():
            context.remark(f"is not grouped with a compute that it reads: {reason}", reader)
        if merges:
            prefixes = planner.prefix_of_first_member()
            grouped = emit(
                planner.clusters, block, lambda members: group_members(members, prefixes)
            )
            context.count("grouped", grouped)
        context.count("computed once", compute_once(block, target_of(context), context))


def group_with_readers(
    block: Block, computes: Collection[Operation], options: GroupComputes, context: PassContext
) -> int:
    """Group computes that were made after `group-computes`, for a GPU, with their readers as it
    would have; gives how many groups there are."""
    planner = _GroupPlanner(options, block, context)
    if not planner.plan(computes):
        return 0
    prefixes = planner.prefix_of_first_member()
    return emit(planner.clusters, block, lambda members: group_members(members, prefixes))


class _GroupPlanner:
    def __init__(self, options: GroupComputes, block: Block, context: PassContext) -> None:
        self.options, self.context = options, context
        self.target = target_of(context)
        self.gpu, self.speeds = self.target.is_gpu, self.target.processor
        self.clusters = Clusters(block)
        self.prefixes: dict[int, Prefix] = {}
        self.reads: dict[Operation, dict[Value, list[loop.ReadOp]]] = {}
        self.readers: dict[Value, list[int]] = {}
        self.reasons: dict[tuple[int, int], str] = {}

    def plan(self, beside: Collection[Operation] | None = None) -> int:
        """Decide the groups, with `beside` only such as hold one of these computes; gives the
        number of merges."""
        merges = 0
        for number, op in enumerate(self.clusters.ops):
            if not isinstance(op, loop.ComputeOp):
                continue
            prefix = prefix_of(op, self.target)
            if prefix is None or (op.schedule is not None and not prefix.tiles):
                continue
            self.prefixes[number] = prefix
            reads = self.reads[op] = reads_by_source(op)
            sizes = {source: array_bytes(source.type) for source in reads}
            near = self.speeds.near_bytes
            prefix.large = {source: size for source, size in sizes.items() if size > near}
            prefix.cost = cost_of(op, prefix.large, points(prefix.extents))
            for candidate in self.candidates(op):
                if beside is not None and not self.holds(candidate, number, beside):
                    continue
                reason = self.try_merge(candidate, self.clusters.find(number))
                merges += reason is None
                if reason is not None:
                    self.reasons[candidate, number] = reason
            for source in self.reads[op]:
                self.readers.setdefault(source, []).append(number)
        return merges

    def holds(self, a: int, b: int, computes: Collection[Operation]) -> bool:
        """Whether one of two clusters has one of the computes."""
        clusters = self.clusters
        members = clusters.members[clusters.find(a)] + clusters.members[clusters.find(b)]
        return any(clusters.ops[number] in computes for number in members)

    def kept_apart(self) -> Iterator[tuple[Operation, str]]:
        """The computes that are in another cluster than one that they read, with the reason."""
        clusters = self.clusters
        for (producer, reader), reason in self.reasons.items():
            op = clusters.ops[reader]
            if clusters.find(producer) != clusters.find(reader) and any(
                source.defining_op in self.reads
                and clusters.find(clusters.number[source.defining_op]) == clusters.find(producer)
                for source in self.reads[op]
            ):
                yield op, reason

    def candidates(self, op: Operation) -> list[int]:
        """Clusters to try: of producers (the nearest first), then of readers of large arrays."""
        clusters: dict[int, None] = {}
        number = self.clusters.number
        makers = {s.defining_op for s in self.reads[op] if s.defining_op in self.reads}
        for maker in sorted(makers, key=lambda m: (not self.has_tiles(m), -number[m])):
            clusters[self.clusters.find(number[maker])] = None
        for source in self.reads[op]:
            if array_bytes(source.type) > self.speeds.near_bytes:
                for reader in self.readers.get(source, [])[-self.options.siblings :]:
                    clusters[self.clusters.find(reader)] = None
        return list(clusters)

    def has_tiles(self, op: Operation) -> bool:
        """Whether a compute is in a cluster with a contraction of tiles."""
        return self.prefixes[self.clusters.cluster_of(op)].tiles > 0

    def try_merge(self, a: int, b: int) -> str | None:
        """Group two clusters if that is legal and pays: None, else the reason."""
        clusters = self.clusters
        if apart := clusters.why_apart(a, b):
            return apart
        first, second = self.prefixes[a], self.prefixes[b]
        if first.tiles or second.tiles:
            return self.try_epilogue(a, b)
        ops = first.ops + second.ops
        shared = 0
        for x, y in zip(first.extents, second.extents, strict=False):
            if x != y:
                break
            shared += 1
        shared = self.shared_axes(a, b, first.extents[:shared])
        extents = first.extents[:shared]
        if ops > self.options.max_ops:
            return f"{ops} operations together, over max_ops ({self.options.max_ops})"
        volume = self.volume(a, b, shared)
        if not self.pays(a, b, extents, volume):
            shown = ", ".join(map(format_dim, extents))
            times = self.times(a, b, extents, volume) if extents and self.context.explains else ""
            return (f"the leading axes that both can share, [{shown}], are too few for it to pay"
                    f"{times}")  # fmt: skip
        # On a GPU a program instance has some points of the shared axes, which read side by side.
        vector = self.speeds.vector_points
        side_by_side = self.gpu and self.target.fills(points(extents) // vector)
        large = volume * vector > self.speeds.scratch_bytes
        if large and not side_by_side and self.reads_across(a, b, shared):
            return "the elements of what they read lie adjacent along an axis that they would share"
        if self.gpu and not (self.has_rows(a, shared) and self.has_rows(b, shared)):
            return "on a GPU all results of a reduction are shared axes, or each is a loop"
        if self.gpu and (self.has_scan(a) or self.has_scan(b)) and self.reads_elsewhere(a, b):
            return "on a GPU what a scan makes is known at its own point only"
        return self.merge(a, b, extents)

    def merge(self, a: int, b: int, extents: tuple[Dim, ...]) -> str | None:
        """Group two clusters if nothing stands between them: None, else the reason."""
        clusters, first, second = self.clusters, self.prefixes[a], self.prefixes[b]
        if not clusters.can_merge(a, b):
            return "something between them depends on the one and is needed by the other"
        if not self.context.spend("group-computes", clusters.ops[clusters.members[b][0]]):
            return NO_FUEL
        del self.prefixes[a], self.prefixes[b]
        self.prefixes[clusters.merge(a, b)] = Prefix(
            extents, first.ops + second.ops, first.cost.joined(second.cost, points(extents)),
            first.large | second.large, first.tiles + second.tiles, first.maps and second.maps,
        )  # fmt: skip
        return None

    def multiplies(self, reads: Iterable[loop.ReadOp]) -> bool:
        """Whether any read is a contraction's whose kernel multiplies tiles."""
        return any(tiled(read.parent_op, self.target) for read in reads)

    def try_epilogue(self, a: int, b: int) -> str | None:
        """Group a contraction of tiles with maps that read its sums, all over its own axes: a tile
        of them is in registers. On a gpu these may read sums of several contractions."""
        first, second = self.prefixes[a], self.prefixes[b]
        if first.tiles + second.tiles > 1 and not self.gpu:
            return "a kernel for a cpu multiplies tiles of one contraction"
        if not (first.maps and second.maps) or first.extents != second.extents:
            return "only maps over the axes of a contraction's sums go into its kernel"
        between = [read for _, reads in self.reads_between(a, b) for read in reads]
        if not first.tiles or not between or self.multiplies(between):
            return "what is no map of a contraction's sums is not computed beside them"
        if self.reads_elsewhere(a, b):
            return "it reads sums of other tiles"
        if first.ops + second.ops > self.options.max_ops:
            return f"they have more than max_ops ({self.options.max_ops}) operations together"
        return self.merge(a, b, first.extents)

    def shared_axes(self, a: int, b: int, extents: tuple[Dim, ...]) -> int:
        """How many leading axes the data that passes between two clusters, or that both read,
        lets them share."""
        clusters = self.clusters
        names = [axis_name(k) for k in range(len(extents))]
        shared = len(extents)
        related = False
        for producer, consumer in ((a, b), (b, a)):
            for _, reads in self.reads_between(producer, consumer):
                related = True
                shared = min(shared, *[leading_axes(read, names, extents) for read in reads])
        if related:
            return shared
        siblings = 0
        common: dict[Value, int] = {}
        for number in clusters.members[a]:
            for source, reads in self.reads[clusters.ops[number]].items():
                count = min(leading_axes(read, names, extents) for read in reads)
                common[source] = min(count, common.get(source, count))
        for number in clusters.members[b]:
            for source, reads in self.reads[clusters.ops[number]].items():
                if source in common and array_bytes(source.type) > self.speeds.near_bytes:
                    count = min(leading_axes(read, names, extents) for read in reads)
                    siblings = max(siblings, min(count, common[source]))
        return siblings

    def reads_between(self, producer: int, consumer: int) -> list[tuple[Value, list[loop.ReadOp]]]:
        """What `consumer` reads of arrays that `producer` makes."""
        clusters = self.clusters
        if not clusters.depends(consumer, producer):
            return []
        return [
            (source, reads)
            for number in clusters.members[consumer]
            for source, reads in self.reads[clusters.ops[number]].items()
            if source.defining_op in self.reads
            and clusters.cluster_of(source.defining_op) == producer
        ]

    def pays(self, a: int, b: int, extents: tuple[Dim, ...], volume: int) -> bool:
        """Whether one pass over the shared axes takes less time than two over each."""
        if not extents:
            return self.is_epilogue(a, b)
        if volume <= self.speeds.core_bytes and self.keeps_parallel(a, b, extents):
            return True  # a launch less, whatever it costs
        before, after = self.weigh(a, b, extents, volume)
        return self.target.operations(after) < sum(map(self.target.operations, before))

    def keeps_parallel(self, a: int, b: int, extents: tuple[Dim, ...]) -> bool:
        """Whether one of two clusters shared no more points before. How many threads there are is
        not known: a program that has few must not pay for what others could win."""
        return extents in (self.prefixes[a].extents, self.prefixes[b].extents)

    def weigh(
        self, a: int, b: int, extents: tuple[Dim, ...], volume: int
    ) -> tuple[tuple[Cost, Cost], Cost]:
        """What two clusters cost, and what their group: what both read stays in the core's cache
        if it is little enough at one point; what passes between them, too, and they are one pass
        over the shared axes, with a launch less."""
        first, second = self.prefixes[a], self.prefixes[b]
        room, spared = self.speeds.core_bytes, 0
        if volume <= room:
            for pair in ((a, b), (b, a)):
                large = self.prefixes[pair[1]].large
                spared += sum([large.get(source, 0) for source, _ in self.reads_between(*pair)])
        for source, size in first.large.items():
            if source in second.large and size <= room * points(extents):
                spared += size
        one, other, parallel = first.cost, second.cost, points(extents)
        if self.keeps_parallel(a, b, extents):
            one, other = attrs.evolve(one, parallel=0), attrs.evolve(other, parallel=0)
            parallel = 0
        after = one.joined(other, parallel)
        launches = 1 + (volume > room)
        return (one, other), attrs.evolve(after, far=after.far - spared, launches=launches)

    def times(self, a: int, b: int, extents: tuple[Dim, ...], volume: int) -> str:
        """What two clusters and their group take, for people."""
        (one, other), after = self.weigh(a, b, extents, volume)
        return f": {told(self.target, one + other, after)}"

    def volume(self, a: int, b: int, shared: int) -> int:
        """The bytes that pass between two clusters at one point of the shared axes."""
        return sum(
            point_bytes(source.type, shared)
            for pair in ((a, b), (b, a))
            for source, _ in self.reads_between(*pair)
        )

    def reads_across(self, a: int, b: int, shared: int) -> bool:
        """Whether the largest array that comes from elsewhere has its adjacent elements along a
        shared axis, as a channels-last image has when planes are shared: each point would then
        gather its elements from as many cache lines."""
        clusters = self.clusters
        largest, across = self.speeds.near_bytes, False
        for number in (*clusters.members[a], *clusters.members[b]):
            for source, reads in self.reads[clusters.ops[number]].items():
                maker, size = source.defining_op, array_bytes(source.type)
                inside = maker in self.reads and clusters.cluster_of(maker) in (a, b)
                if size > largest and not inside:
                    largest = size
                    across = all(runs_along_shared_axis(read, shared) for read in reads)
        return across

    def has_rows(self, cluster: int, shared: int) -> bool:
        """Whether the first `shared` axes are all par axes of each member that combines points."""
        clusters = self.clusters
        kinds = [
            [a.kind for a in clusters.ops[number].axis_list]  # type: ignore[attr-defined]
            for number in clusters.members[cluster]
        ]
        return all(k.count("par") == shared for k in kinds if set(k) != {"par"})

    def has_scan(self, cluster: int) -> bool:
        """Whether a member has a scan."""
        clusters = self.clusters
        members = [clusters.ops[number] for number in clusters.members[cluster]]
        return any(o.kind == "scan" for m in members for o in m.output_list)  # type: ignore[attr-defined]

    def reads_elsewhere(self, a: int, b: int) -> bool:
        """Whether one cluster reads the other's arrays at another point than its own."""
        return not all(
            reads_own_point(read)
            for pair in ((a, b), (b, a))
            for _, reads in self.reads_between(*pair)
            for read in reads
        )

    def is_epilogue(self, a: int, b: int) -> bool:
        """Whether one finishes the other's full reduction: a few points, no shared axes."""
        for producer, consumer in ((a, b), (b, a)):
            if not self.reads_between(producer, consumer):
                continue
            ends = self.clusters.members[consumer]
            few = all(self.target.idles(total_points(self.clusters.ops[n])) for n in ends)
            return few and not self.prefixes[producer].extents
        return False

    def prefix_of_first_member(self) -> dict[Operation, tuple[Dim, ...]]:
        """The shared axes of each cluster, by its first operation."""
        clusters = self.clusters
        return {
            clusters.ops[min(clusters.members[c])]: prefix.extents
            for c, prefix in self.prefixes.items()
        }


def runs_along_shared_axis(read: loop.ReadOp, shared: int) -> bool:
    """Whether the adjacent elements of what is read lie along the first `shared` axes alone."""
    type_, compute = read.source.type, read.parent_op
    assert isinstance(type_, TensorType) and isinstance(compute, loop.ComputeOp)
    sizes = zip(type_.shape, type_.strides or (), strict=False)
    unit = [d for d, (size, stride) in enumerate(sizes) if stride == 1 and size != 1]
    if not unit:
        return False
    axes = {axis.name for axis in compute.axis_list}
    used = free_symbols(tuple(read.indices)[unit[0]]) & axes
    return bool(used) and used <= {axis_name(k) for k in range(shared)}


def reads_own_point(read: loop.ReadOp) -> bool:
    """Whether an array is read at the point of its reader, over axes of the same extents."""
    compute, type_ = read.parent_op, read.source.type
    assert isinstance(compute, loop.ComputeOp) and isinstance(type_, TensorType)
    extents = [axis.extent for axis in compute.axis_list[: len(type_.shape)]]
    return tuple(read.indices) == axes_of(len(type_.shape)) and extents == list(type_.shape)


def prefix_of(op: loop.ComputeOp, target: Target) -> Prefix | None:
    """The leading par axes of a compute; None for one that groups with nothing."""
    if any(o.kind == "scatter" for o in op.output_list):
        return None
    extents: list[Dim] = []
    for position, axis in enumerate(op.axis_list):
        if axis.name != axis_name(position):
            return None
        if axis.kind != "par":
            break
        extents.append(axis.extent)
    multiplies = tiled(op, target) is not None
    return Prefix(
        tuple(extents), len(op.block), tiles=int(multiplies), maps=multiplies or is_map(op)
    )


def total_points(op: Operation) -> int:
    """The estimated number of points of a compute's space."""
    assert isinstance(op, loop.ComputeOp)
    return points(a.extent for a in op.axis_list)


def point_bytes(type_: object, shared: int) -> int:
    """The bytes of an array that belong to one point of its leading `shared` dimensions."""
    assert isinstance(type_, TensorType)
    return points(type_.shape[shared:]) * element_bytes(type_.element)
