"""The pass `merge-computes`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from irc.analysis.contraction import follows_tiles, tiled
from irc.analysis.loop import (
    Clusters,
    array_bytes,
    is_axis,
    is_unit,
    points,
    reads_by_source,
)
from irc.dialects import loop, sym
from irc.ir import attributes as A
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.location import fuse
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.rewrite.fuel import NO_FUEL
from irc.ir.symbols import Dim
from irc.passes.common.bodies import Body, axis_name, clean_block
from irc.target import Target, target_of


@attrs.define
class SharedSpace:
    """The iteration space of a cluster of computes.

    combined: the positions of the red or scan axes; kind: "" (maps only), "red" or "scan";
    maps: whether some output is a map; ops: scalar operations in all bodies.
    """

    extents: tuple[Dim, ...]
    combined: frozenset[int]
    kind: str
    maps: bool
    ops: int
    outputs: int

    def joined(self, other: SharedSpace) -> SharedSpace | str:
        """The space of both together; why they don't fit."""
        if self.extents != other.extents:
            return f"their spaces are {_list(self.extents)} and {_list(other.extents)}"
        if self.kind and other.kind and self.kind != other.kind:
            return "one reduces and the other scans"
        if self.kind and other.kind and self.combined != other.combined:
            return (f"they combine over the axes {_list(sorted(self.combined))} and "
                    f"{_list(sorted(other.combined))} of one space")  # fmt: skip
        combined = self.combined | other.combined
        kind, maps = self.kind or other.kind, self.maps or other.maps
        if kind == "red" and maps and not self._trailing(combined):
            return "a map beside a reduction over leading axes would keep it out of row groups"
        return SharedSpace(
            self.extents, combined, kind, maps, self.ops + other.ops, self.outputs + other.outputs
        )

    def _trailing(self, combined: frozenset[int]) -> bool:
        first = min(combined)
        return all(
            k in combined or is_unit(self.extents[k]) for k in range(first, len(self.extents))
        )


def space_of(op: loop.ComputeOp, target: Target) -> SharedSpace | None:
    """The space of one compute; None for one that merges with nothing."""
    outputs = op.output_list
    if any(o.kind == "scatter" for o in outputs) or op.schedule is not None:
        return None
    if tiled(op, target) is not None:
        return None  # its kernel multiplies tiles, and computes nothing beside
    axes = op.axis_list
    if any(a.name != axis_name(k) for k, a in enumerate(axes)):
        return None
    combined = frozenset(k for k, a in enumerate(axes) if a.kind != "par")
    kinds = {a.kind for a in axes} - {"par"}
    maps = any(o.kind == "map" for o in outputs)
    if len(kinds) > 1:
        return None
    return SharedSpace(
        tuple(a.extent for a in axes), combined, kinds.pop() if kinds else "", maps,
        len(op.block), len(outputs),
    )  # fmt: skip


@register_pass
class MergeComputes(Pass):
    """Makes one compute of several over the same space.

    Computes merge that read a common array, or of which one reads the other's map at the same
    point: that value is then used directly. Maps merge with reductions and with scans; those over
    sums of different contractions don't, whose kernels have one contraction's tiles each.
    Remarks: why a compute and one that it reads, or that reads the same array, stay apart.

    `siblings`: readers of an array, the last ones, that are looked at for another one. Spaces are
    merged even if they share no array where one of elements of `tiny_bytes` would stay in cache: a
    kernel costs more.

    Before:
        %e = loop.compute par(i0: 4, i1: 8) -> map { ... math.exp ... }
        %s = loop.compute par(i0: 4) red(i1: 8) -> reduce(sum, f32) { ... loop.read %e[i0, i1] ... }
    After:
        %e, %s = loop.compute par(i0: 4) red(i1: 8) -> map, reduce(sum, f32) {
          ... %x = math.exp ... loop.yield %x, %x }
    """

    name = "merge-computes"
    summary = "make one compute of those over one space that share arrays or feed each other"
    anchor = "func.func"
    asks_target = True
    max_ops: int = 1024
    max_outputs: int = 24
    siblings: int = 8
    tiny_bytes: int = 4

    def run(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].blocks[0]
        planner = _MergePlanner(self, block, context)
        merges = planner.plan()
        if context.explains:
            for apart, why in planner.kept_apart():
                context.remark(why, apart)
        if merges:
            merged = emit(planner.clusters, block, merge_members)
            context.count("merged", merged)


class _MergePlanner:
    def __init__(self, options: MergeComputes, block: Block, context: PassContext) -> None:
        self.options, self.context = options, context
        self.target = target_of(context)
        self.near_bytes = self.target.processor.near_bytes
        self.clusters = Clusters(block)
        self.spaces: dict[int, SharedSpace] = {}
        self.reads: dict[Operation, dict[Value, list[loop.ReadOp]]] = {}
        self.readers: dict[Value, list[int]] = {}
        self.tiny: dict[tuple[Dim, ...], list[int]] = {}
        # Why a cluster and an operation were not merged.
        self.reasons: dict[tuple[int, int], str] = {}

    def plan(self) -> int:
        """Decide the clusters; gives the number of merges."""
        merges = 0
        for number, op in enumerate(self.clusters.ops):
            if not isinstance(op, loop.ComputeOp):
                continue
            space = space_of(op, self.target)
            if space is None:
                continue
            self.spaces[number] = space
            self.reads[op] = reads_by_source(op)
            for candidate in self.candidates(op, number):
                reason = self.try_merge(candidate, self.clusters.find(number))
                merges += reason is None
                if reason is not None:
                    self.reasons[candidate, number] = reason
            for source in self.reads[op]:
                self.readers.setdefault(source, []).append(number)
            tiny = points(space.extents) * self.options.tiny_bytes <= self.near_bytes
            if tiny and not self.reads_computes(op):
                self.tiny.setdefault(space.extents, []).append(number)
        return merges

    def candidates(self, op: loop.ComputeOp, number: int) -> list[int]:
        """Clusters to try: those of producers, then of those that read the same large arrays."""
        find, most = self.clusters.find, self.options.siblings
        clusters: dict[int, None] = {}
        for source in self.reads[op]:
            maker = source.defining_op
            if maker is not None and maker in self.reads:
                clusters[find(self.clusters.number[maker])] = None
        for source in self.reads[op]:
            if array_bytes(source.type) > self.near_bytes:
                for reader in self.readers.get(source, [])[-most:]:
                    clusters[find(reader)] = None
        if not self.reads_computes(op):
            # One that finishes a reduction belongs into that reduction's kernel instead.
            for other in self.tiny.get(self.spaces[number].extents, [])[-most:]:
                clusters[find(other)] = None
        return list(clusters)

    def reads_computes(self, op: loop.ComputeOp) -> bool:
        """Whether a compute reads what another compute makes."""
        return any(isinstance(s.defining_op, loop.ComputeOp) for s in self.reads[op])

    def try_merge(self, a: int, b: int) -> str | None:
        """Merge two clusters if that is legal: None, else the reason."""
        clusters = self.clusters
        if apart := clusters.why_apart(a, b):
            return apart
        space = self.spaces[a].joined(self.spaces[b])
        if isinstance(space, str):
            return space
        members = [clusters.ops[number] for c in (a, b) for number in clusters.members[c]]
        if space.kind and any(follows_tiles(m, self.target) for m in members):
            return "a map over the sums of a contraction is computed with these"
        if space.ops > self.options.max_ops:
            return f"{space.ops} operations together are more than max_ops={self.options.max_ops}"
        if space.outputs > self.options.max_outputs:
            limit = self.options.max_outputs
            return f"{space.outputs} results together are more than max_outputs={limit}"
        first, second = (self.sums_read(clusters.members[c]) for c in (a, b))
        if first and second and not first & second:
            return "they are computed with the sums of different contractions"
        if not clusters.can_merge(a, b):
            return "what stands between them needs the one and is needed by the other"
        if misread := self.misread(a, b) or self.misread(b, a):
            return misread
        if not self.context.spend("merge-computes", clusters.ops[clusters.members[b][0]]):
            return NO_FUEL
        del self.spaces[a], self.spaces[b]
        self.spaces[clusters.merge(a, b)] = space
        return None


    def sums_read(self, members: Iterable[int]) -> set[Operation]:
        """The contractions whose kernels multiply tiles that members read the sums of."""
        ops = [self.clusters.ops[number] for number in members]
        makers = {read.source.defining_op for op in ops if isinstance(op, loop.ComputeOp)
                  for read in op.reads}  # fmt: skip
        return {op for op in makers if op is not None and tiled(op, self.target) is not None}

    def misread(self, producer: int, consumer: int) -> str:
        """Why a point of `consumer` can't follow the same one of `producer`: "" where all that it
        reads there are maps, each at that point."""
        clusters = self.clusters
        if not clusters.depends(consumer, producer):
            return ""
        for number in clusters.members[consumer]:
            for source, reads in self.reads[clusters.ops[number]].items():
                maker = source.defining_op
                if maker not in self.reads or clusters.cluster_of(maker) != producer:
                    continue
                assert isinstance(maker, loop.ComputeOp)
                kind = output_of(maker, source).kind
                if kind != "map":
                    return f"it needs the whole result of the other's {kind}"
                if any(not at_same_point(read, maker) for read in reads):
                    return "it reads the other's array at other points than its own"
        return ""

    # -- remarks

    def kept_apart(self) -> Iterator[tuple[Operation, str]]:
        """Computes that are not merged with one that they read, or (the first only) with one
        that reads what they read; with the reason."""
        clusters = self.clusters
        told: set[int] = set()
        for (candidate, number), reason in self.reasons.items():
            a, b = clusters.find(candidate), clusters.find(number)
            if a == b:
                continue
            op = clusters.ops[number]
            makers = [source.defining_op for source in self.reads[op]]
            if any(maker in self.reads and clusters.cluster_of(maker) == a for maker in makers):
                yield op, f"is not merged with a compute that it reads: {reason}"
            elif number not in told:
                told.add(number)
                yield op, f"is not merged with one that reads the same array: {reason}"


def _list(items: Iterable[object]) -> str:
    return f"[{', '.join(map(str, items))}]"


def output_of(op: loop.ComputeOp, result: Value) -> loop.ResultAttr:
    """The output that `result` of `op` belongs to."""
    position = result.index  # type: ignore[attr-defined]
    for output in op.output_list:
        position -= output.result_count
        if position < 0:
            return output
    raise IndexError(f"{op.name} has no result {result}")


def at_same_point(read: loop.ReadOp, producer: loop.ComputeOp) -> bool:
    """Whether a read is at exactly the point of the space that made the element."""
    if read.mask is not None:
        return False
    axes = producer.axis_list
    return all(
        is_axis(d, axis.name, axis.extent) for d, axis in zip(read.indices, axes, strict=True)
    )


# -- rewriting


def emit(clusters: Clusters, block: Block, build: object) -> int:
    """Put the block's operations in the clusters' order and make one operation of each cluster
    with several members, by `build(members)`; gives how many operations went."""
    order = clusters.order()
    for op in clusters.ops:
        op.detach()
    removed = 0
    for members in order:
        if len(members) == 1:
            block.append(members[0])
            continue
        for member in members:
            block.append(member)
        build(members)  # type: ignore[operator]
        removed += len(members) - 1
    return removed


def merge_members(members: Sequence[Operation]) -> loop.ComputeOp:
    """One compute in the place of adjacent ones over the same space; unused maps are dropped."""
    inside = set(members)
    yielded: dict[Value, Value] = {}
    block = Block()
    outputs: list[loop.ResultAttr] = []
    values: list[Value] = []
    kept: list[Value] = []
    kinds: dict[int, str] = {}
    for member in members:
        assert isinstance(member, loop.ComputeOp)
        for k, axis in enumerate(member.axis_list):
            if axis.kind != "par":
                kinds[k] = axis.kind
        _move_body(member, block, yielded)
        terminator = member.yield_op
        for number, output in enumerate(member.output_list):
            results = member.results_of(number)
            if output is loop.MAP:
                yielded[results[0]] = terminator.values[number]
    for member in members:
        assert isinstance(member, loop.ComputeOp)
        for number, output in enumerate(member.output_list):
            results = member.results_of(number)
            if any(_used_outside(r, inside) for r in results):
                outputs.append(output)
                values.append(member.yield_op.values[number])
                kept.extend(results)
    return _build_merged(members, block, outputs, values, kept, kinds)


def _move_body(member: loop.ComputeOp, block: Block, yielded: dict[Value, Value]) -> None:
    """Move the member's operations to the end of `block`; reads of values at hand go."""
    terminator = member.yield_op
    for op in member.block.ops:
        if op is terminator:
            continue
        if isinstance(op, loop.ReadOp) and op.source in yielded:
            op.results[0].replace_all_uses_with(yielded[op.source])
            op.erase()
            continue
        op.detach()
        block.append(op)


def _used_outside(result: Value, inside: set[Operation]) -> bool:
    for user in result.users:
        if user.parent_op not in inside:
            return True
    return False


def _build_merged(
    members: Sequence[Operation],
    block: Block,
    outputs: Sequence[loop.ResultAttr],
    values: Sequence[Value],
    kept: Sequence[Value],
    kinds: dict[int, str],
) -> loop.ComputeOp:
    first = members[0]
    assert isinstance(first, loop.ComputeOp)
    body = Body(block)
    body.finish(values)
    clean_block(block)
    axes = A.ArrayAttr(
        [
            loop.AxisAttr(a.name, kinds.get(k, "par"), a.extent)
            for k, a in enumerate(first.axis_list)
        ]
    )
    merged = loop.ComputeOp(
        (),
        [value.type for value in kept],
        {"axes": axes, "outputs": A.ArrayAttr(outputs), **sym.range_entry(first)},
        (Region([block]),),
        fuse([m.location for m in members], "merge-computes"),
    )
    assert first.parent is not None
    first.parent.insert_before(merged, first)
    for old, new in zip(kept, merged.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    for member in reversed(members):
        member.erase()
    return merged
