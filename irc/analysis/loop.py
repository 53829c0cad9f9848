"""What the loop passes ask about computes: sizes, readers, index maps and dependence.

Sizes that are symbolic count as `SYMBOLIC_SIZE`, whatever their hints, so that a program compiles
to the same text for every hint. What computes cost is in `irc.analysis.cost`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from irc.analysis.positions import stays_inside
from irc.dialects import graph, host, loop, sym
from irc.ir.attributes import Type
from irc.ir.core import Block, Operation, Value
from irc.ir.strides import estimate
from irc.ir.symbols import Dim, Symbol, dim_sum
from irc.ir.traits import Barrier, Pure, Terminator, WritesMemory
from irc.ir.types import TensorType, contiguous_strides, element_bytes


def points(extents: Iterable[Dim]) -> int:
    """The estimated number of points of a space."""
    total = 1
    for extent in extents:
        total *= estimate(extent)
    return total


def device_of(op: Operation) -> str:
    """The device of the arrays that an operation makes, "" for none."""
    return next((r.type.device for r in op.results if isinstance(r.type, TensorType)), "")


def array_bytes(type_: Type) -> int:
    """The estimated bytes of an array."""
    assert isinstance(type_, TensorType)
    return points(type_.shape) * element_bytes(type_.element)


def is_map(op: Operation) -> bool:
    """Whether `op` is a compute all of whose outputs are maps, over par axes only."""
    if not isinstance(op, loop.ComputeOp):
        return False
    return all(o is loop.MAP for o in op.output_list) and all(a.kind == "par" for a in op.axis_list)


def computes_in(op: Operation) -> list[loop.ComputeOp]:
    """The computes of a kernel-to-be: the operation itself, or all in a group, in order."""
    return [inner for inner in op.walk() if isinstance(inner, loop.ComputeOp)]


def reads_by_source(op: Operation) -> dict[Value, list[loop.ReadOp]]:
    """The reads inside a compute or group by the array that they read."""
    reads: dict[Value, list[loop.ReadOp]] = {}
    for region in op.regions:
        for inner in region.walk():
            if isinstance(inner, loop.ReadOp):
                reads.setdefault(inner.source, []).append(inner)
    return reads


def outer_op(op: Operation, block: Block) -> Operation:
    """The operation of `block` that is `op` or holds it."""
    while op.parent is not block:
        parent = op.parent_op
        assert parent is not None, "the operation is not inside the block"
        op = parent
    return op


def axis_position(dim: Dim, names: Sequence[str]) -> int | None:
    """The position of the axis that an index expression is; None for anything else."""
    if isinstance(dim, Symbol) and dim.name in names:
        return names.index(dim.name)
    return None


def is_axis(dim: Dim, name: str, extent: Dim) -> bool:
    """Whether an index expression is the axis `name`; 0 is an axis with one point."""
    if isinstance(dim, Symbol):
        return dim.name == name
    return dim == 0 and is_unit(extent)


def leading_axes(read: loop.ReadOp, names: Sequence[str], extents: Sequence[Dim]) -> int:
    """How many leading indices of a read are exactly the leading axes, in order."""
    count = 0
    for dim, name, extent in zip(read.indices, names, extents, strict=False):
        if not is_axis(dim, name, extent):
            break
        count += 1
    return count


def is_unit(extent: Dim) -> bool:
    """Whether an axis has exactly one point."""
    return isinstance(extent, int) and extent == 1


# Room between the labels of clusters, and the part of it that new ones take.
_GAP = 1 << 400
_SHARE = 1 << 16


class Clusters:
    """Operations of a block put into clusters, without cycles between the clusters.

    Each operation starts as its own cluster. An edge goes from an operation to each that it
    depends on: through values (also those used inside its regions), and through order, where an
    effect (an assertion, a call that writes or draws random numbers, a binder of a symbol) must
    stay before or after it.
    `relies` says of an operation whether it must stay after the checks of data before it.

    The clusters are kept in a topological order (a list with labels that ascend), as in D. Pearce,
    P. Kelly: "A dynamic topological sort algorithm for directed acyclic graphs" (2007): a question
    about two clusters looks only at such as stand between them, and a merge moves only those.
    """

    def __init__(self, block: Block, relies: Callable[[Operation], bool] | None = None) -> None:
        self._relies = relies or relies_on_checks
        self.ops: list[Operation] = list(block.ops)
        self.number: dict[Operation, int] = {op: k for k, op in enumerate(self.ops)}
        count = len(self.ops)
        self._leader = list(range(count))
        self.members: dict[int, list[int]] = {k: [k] for k in range(count)}
        self._direct: list[set[int]] = [set() for _ in range(count)]
        self._devices = [device_of(op) for op in self.ops]
        # How many merges there were, and were when what each cluster uses was looked up.
        self._merges = 0
        self._found_at = [-1] * count
        # What the last questions found: from which cluster, by others, and not looked behind yet.
        self._looked_from, self._passed, self._rest = -1, set[int](), list[int]()
        # The order: the neighbours of each cluster (`count` is both ends), and ascending labels.
        self._next = [*range(1, count + 1), 0]
        self._previous = [count, *range(count)]
        self._label = [number * _GAP for number in range(1, count + 1)] + [0]
        self._link(block)

    def _link(self, block: Block) -> None:
        number = self.number
        barrier = checked = last_effect = -1
        for k, op in enumerate(self.ops):
            direct = self._direct[k]
            for value in used_values(op):
                maker = value.defining_op
                if maker is not None:
                    if maker.parent is not block:
                        continue
                    direct.add(number[maker])
            if barrier >= 0:
                direct.add(barrier)
            if checked >= 0 and self._relies(op):
                direct.add(checked)
            if has_effect(op):
                if last_effect >= 0:
                    direct.add(last_effect)
                last_effect = k
            if isinstance(op, sym.AssertValueOp):
                checked = k
            elif is_barrier(op):
                barrier = k

    def find(self, k: int) -> int:
        """The cluster of operation number k."""
        leader = self._leader
        while leader[k] != k:
            leader[k] = leader[leader[k]]
            k = leader[k]
        return k

    def cluster_of(self, op: Operation) -> int:
        """The cluster of an operation of the block."""
        return self.find(self.number[op])

    def depends(self, later: int, earlier: int) -> bool:
        """Whether cluster `later` must come after cluster `earlier`."""
        if self._label[later] <= self._label[earlier]:
            return False
        return earlier in self.direct(later) or earlier in self._through(later, earlier)

    def _through(self, later: int, earlier: int) -> set[int]:
        """The clusters that some other one needs which `later` needs; all of them that stand at
        `earlier` or behind it."""
        if self._looked_from != later:
            self._looked_from, self._passed = later, set()
            self._rest = list(self.direct(later))
        label, bound, passed = self._label, self._label[earlier], self._passed
        stack = [c for c in self._rest if label[c] > bound]
        if stack:
            self._rest = [c for c in self._rest if label[c] <= bound]
            direct = self.direct(later)
            while stack:
                for cluster in self.direct(stack.pop()) - passed:
                    passed.add(cluster)
                    if cluster not in direct:
                        (stack if label[cluster] > bound else self._rest).append(cluster)
        return passed

    def direct(self, cluster: int) -> set[int]:
        """The clusters that `cluster` uses directly."""
        if self._found_at[cluster] != self._merges:
            self._found_at[cluster] = self._merges
            self._direct[cluster] = {self.find(d) for d in self._direct[cluster]} - {cluster}
        return self._direct[cluster]

    def why_apart(self, a: int, b: int) -> str:
        """Why two clusters can't be one launch, whatever they compute: the arrays that a launch
        makes are on one device, and it runs for one range of a size. "" where they can."""
        first, second = self._devices[a], self._devices[b]
        if first != second and first and second:
            return "they are on two devices"
        one, other = self.ops[a], self.ops[b]
        if one.attributes.get(sym.WHEN) is not other.attributes.get(sym.WHEN):
            return "they run for different ranges of a size"
        return ""

    def can_merge(self, a: int, b: int) -> bool:
        """Whether no path leads from one cluster to the other through a third one."""
        first, second = (a, b) if self._label[a] < self._label[b] else (b, a)
        return first not in self._through(second, first)

    def merge(self, a: int, b: int) -> int:
        """Make two clusters that `can_merge` one; gives its number, `a`. It stands where the first
        of them stood, behind what the other one needs."""
        first, second = (a, b) if self._label[a] < self._label[b] else (b, a)
        needed = self._between(first, second)
        self._unlink(second)
        for cluster in needed:
            self._unlink(cluster)
        self._insert(needed, first)
        if first != a:
            self._insert([a], first)
            self._unlink(first)
        self._leader[b] = a
        self._devices[a] = self._devices[a] or self._devices[b]
        self._merges += 1
        self._looked_from = -1
        self._direct[a] |= self._direct[b]
        self.members[a] += self.members.pop(b)
        return a

    def _between(self, first: int, second: int) -> list[int]:
        """The clusters behind `first` that must come before `second`, in order."""
        label, bound = self._label, self._label[first]
        between: set[int] = set()
        stack = [second]
        while stack:
            new = {d for d in self.direct(stack.pop()) if label[d] > bound} - between
            between |= new
            stack += new
        return sorted(between, key=label.__getitem__)

    def _unlink(self, cluster: int) -> None:
        before, after = self._previous[cluster], self._next[cluster]
        self._next[before], self._previous[after] = after, before

    def _insert(self, clusters: Sequence[int], after: int) -> None:
        """Put clusters that are in no place, in order, before the cluster `after`."""
        if not clusters:
            return
        label, before = self._label, self._previous[after]
        step = (label[after] - label[before]) // _SHARE // (len(clusters) + 1)
        for cluster in clusters:
            self._next[before], self._previous[cluster] = cluster, before
            label[cluster] = label[before] + step
            before = cluster
        self._next[before], self._previous[after] = after, before
        if step == 0:
            self._renumber()

    def _renumber(self) -> None:
        """Labels with room between them again."""
        end = len(self.ops)
        cluster, number = self._next[end], 1
        while cluster != end:
            self._label[cluster] = number * _GAP
            cluster, number = self._next[cluster], number + 1

    def order(self, late: bool = False) -> list[list[Operation]]:
        """The clusters' operations in an order that honours every dependence, each cluster's own
        in their original order; close to the original order of first members (`late`: of last
        ones)."""
        for members in self.members.values():
            members.sort()
        done: set[int] = set()
        result: list[list[Operation]] = []
        for start in range(len(self.ops)):
            stack = [self.find(start)]
            if late and start != self.members[stack[0]][-1]:
                continue
            while stack:
                cluster = stack[-1]
                if cluster in done:
                    stack.pop()
                    continue
                waiting = [d for d in sorted(self.direct(cluster)) if d not in done]
                if waiting:
                    stack.extend(reversed(waiting))
                    continue
                stack.pop()
                done.add(cluster)
                result.append([self.ops[k] for k in self.members[cluster]])
        return result


def used_values(op: Operation) -> Iterator[Value]:
    """The values that an operation uses, also inside its regions (some defined there)."""
    yield from op.operands
    for region in op.regions:
        for inner in region.walk():
            yield from inner.operands


def has_effect(op: Operation) -> bool:
    """Whether `op` does more than give its results: it writes, checks or draws random numbers,
    and stays in order with others that do. A launch that has results does not."""
    traits = op.traits
    removable = getattr(op, "is_removable", None)
    if removable is not None:
        return not removable()
    if op.results and isinstance(op, host.LaunchOp):
        return False
    return WritesMemory in traits or (Pure not in traits and not op.results)


def strides_of(type_: Type) -> Sequence[Dim]:
    """The strides of an array; row-major where its type has none."""
    assert isinstance(type_, TensorType)
    return contiguous_strides(type_.shape) if type_.strides is None else type_.strides


def offset_of(indices: Sequence[Any], type_: Type) -> Dim:
    """The element offset of an index into an array."""
    return dim_sum([d * s for d, s in zip(indices, strides_of(type_), strict=True)])


def read_offset(read: loop.ReadOp) -> Dim:
    """Where what is read lies in its array, in elements."""
    return offset_of(read.indices, read.source.type)


def relies_on_checks(op: Operation) -> bool:
    """Whether `op` must stay after the checks of data before it: it writes at positions that are
    data, or reads at such that may be out of bounds, or is a call."""
    if isinstance(op, loop.ComputeOp | loop.GroupOp):
        for inner in op.regions[0].walk():
            if isinstance(inner, loop.ReadOp) and not stays_inside(inner):
                return True
            if isinstance(inner, loop.YieldOp) and inner.extra:
                return True
        return False
    return Pure not in op.traits and not isinstance(op, graph.Item)


_BARRIERS = frozenset({Barrier, Terminator})


def is_barrier(op: Operation) -> bool:
    """Whether everything after `op` must stay after it: an assertion about sizes, a symbol's
    binder, the return."""
    return not op.traits.isdisjoint(_BARRIERS)
