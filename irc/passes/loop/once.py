"""What a kernel computes once: small maps that go into the kernels that read them.

A batch norm over a channels-last image divides by a square root for each element that differs by
channel only. `inline-computes` leaves such a map alone (`inlined_by`), and `group-computes` makes
it a member of its reader's group that has axes of its own (`compute_once`). Each call of the
kernel, one for a thread, computes all of it before its first point: it is never more than one
thread would do by itself anyway (`serial`), and a launch less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any

from irc.analysis.contraction import follows_tiles, tiled
from irc.analysis.cost import class_of, work
from irc.analysis.loop import array_bytes, computes_in, is_map, outer_op, points
from irc.dialects import loop, sym
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Block, Operation, OpResult, Region
from irc.ir.passes import PassContext
from irc.ir.strides import estimate
from irc.ir.symbols import Dim, free_symbols, symbol
from irc.ir.types import TensorType, contiguous_strides, element_bytes
from irc.passes.common.bodies import (
    Body,
    Transplant,
    axis,
    axis_name,
    clean_block,
    make_compute,
    with_axes,
)
from irc.passes.loop.grouping import group_members, prepend
from irc.target import Target
from irc.target.costs import Cost

Kernel = loop.ComputeOp | loop.GroupOp


def costs_more_than_a_load(classes: int, target: Target) -> bool:
    """Whether one evaluation of a map (`class_of`) takes longer on a cpu than to load what was
    computed once: no other is."""
    if target.is_gpu or not classes:
        return False
    return target.operations(work(classes, 1)) > target.processor.access


def axes_that_matter(
    op: loop.ComputeOp, known: dict[Operation, frozenset[str]]
) -> frozenset[str]:
    """The axes along which what a map makes differs. known: those of other maps, and then of all
    that it depends on."""
    matter = known.get(op)
    if matter is not None:
        return matter
    axes = [axis.name for axis in op.axis_list]
    used: set[str] = set()
    for inner in op.block.ops:
        if isinstance(inner, loop.IndexOp):
            used |= free_symbols(inner.expression)
        elif isinstance(inner, loop.ReadOp):
            maker, dims = inner.source.defining_op, inner.indices
            if isinstance(maker, loop.ComputeOp) and is_map(maker):
                names = axes_that_matter(maker, known)
                dims = [d for a, d in zip(maker.axis_list, dims, strict=True) if a.name in names]
            used.update(*map(free_symbols, dims))
        else:
            continue
        if used.issuperset(axes):
            break
    matter = known[op] = frozenset(used.intersection(axes))
    return matter


def inlined_by(
    op: loop.ComputeOp, names: Set[str], classes: int, target: Target
) -> set[Operation] | None:
    """Which of the computes that read a map, themselves or through views, had better evaluate it
    where they read it, while the others compute it once; None where all or none of them had better.
    names: the axes that matter; classes: what one evaluation does (`class_of`)."""
    count = points(a.extent for a in op.axis_list if a.name in names)
    if not _may_be_once(op, count, target):
        return None
    if len(names) < len(op.axis_list) and len(op.results) > 1:
        return None
    again: dict[Operation | None, int] = {}
    for place, along in _places(op, names):
        if not isinstance(place, loop.ComputeOp):
            return None
        again[place] = again.get(place, 0) + _evaluations(place, along)
    inside: set[Operation] = set()
    each = target.operations(work(classes, count))
    everywhere = once = 0
    for place, times in again.items():
        assert place is not None
        evaluated = target.operations(work(classes, times))
        everywhere += evaluated
        if times <= count or not _has_place(place, target):
            inside.add(place)
            once += evaluated
        else:
            once += each + target.operations(Cost(near=2 * count + times))
    stored = Cost(near=2 * count + sum(again.values()), launches=1)
    if each > target.processor.serial or once >= everywhere:
        return None
    return inside if once <= each + target.operations(stored) else None


def _places(
    op: loop.ComputeOp, names: Set[str]
) -> Iterator[tuple[Operation | None, Set[str] | None]]:
    """What needs an array, itself or through views, in which computes are put into their readers:
    with the axes that it is read by (None: at data, or under a mask), if it is a compute."""
    for result in op.results:
        for user in result.users:
            if not isinstance(user, loop.ReadOp) or user.source is not result:
                yield None, None
                continue
            compute = user.parent_op
            assert isinstance(compute, loop.ComputeOp)
            along: set[str] = set()
            for own, dim in zip(op.axis_list, user.indices, strict=True):
                if own.name in names:
                    along |= free_symbols(dim)
            if user.positions or user.mask is not None:
                yield compute, None
            elif is_map(compute) and compute.block.first is user and user.next is compute.yield_op:
                yield from _places(compute, along)
            else:
                yield compute, along


def narrowed(op: loop.ComputeOp, names: Set[str]) -> loop.ComputeOp:
    """A map over those axes of another one, of one result, that matter. The other one becomes a
    view of it."""
    kept = [n for n, a in enumerate(op.axis_list) if a.name in names]
    axes = [loop.AxisAttr(axis_name(k), "par", op.axis_list[n].extent) for k, n in enumerate(kept)]
    mapping: dict[str, Dim] = {a.name: 0 for a in op.axis_list}
    mapping.update((op.axis_list[n].name, axis(k)) for k, n in enumerate(kept))
    body = with_axes(op, mapping, {a.name: a.extent for a in axes})
    shape, old = [a.extent for a in axes], op.results[0].type
    assert isinstance(old, TensorType)
    type_ = TensorType(shape, old.element, contiguous_strides(shape), old.device)
    narrow = make_compute(
        Builder.before(op), A.ArrayAttr(axes), op.output_list, [type_], body, (), op
    )
    view = Body(op.block, op.yield_op)
    view.location = op.location
    indices = [symbol(op.axis_list[n].name) for n in kept]
    op.yield_op.set_operand(0, view.read(narrow.results[0], indices))
    clean_block(op.block)
    return narrow


def _evaluations(compute: loop.ComputeOp, names: Set[str] | None) -> int:
    """How often a compute evaluates what differs by some of its axes: at each point of these and
    of the axes outside of them, which are those that step further over what it makes."""
    axes = sorted(compute.axis_list, key=_nesting(compute))
    used = [k for k, axis in enumerate(axes) if names is None or axis.name in names]
    return points(a.extent for a in axes[: used[-1] + 1 if used else 0])


def _nesting(compute: loop.ComputeOp) -> Callable[[loop.AxisAttr], tuple[bool, int]]:
    """A key that sorts axes as loops over them are nested, the outermost first."""
    result: Any = compute.results[0].type
    kept = [a for a in compute.axis_list if a.kind != "red" or compute.output_list[0] is loop.MAP]
    strides = dict(zip([a.name for a in kept], result.strides or (), strict=False))
    return lambda axis: (axis.kind != "par", -estimate(strides.get(axis.name, 0)))


def compute_once(block: Block, target: Target, context: PassContext) -> int:
    """Make the maps of a block that only kernels read, and that these may compute once, members of
    theirs; how many."""
    if target.is_gpu:
        return 0
    count = 0
    for op in block.reversed_ops:
        if not isinstance(op, loop.ComputeOp):
            continue
        if not _may_be_once(op, points(a.extent for a in op.axis_list), target):
            continue
        kernels = _kernels(op, block, target)
        if not kernels or not _pays(op, kernels, target):
            continue
        if not context.spend("group-computes", op):
            continue
        for kernel, read in kernels.items():
            _move(op, kernel, read)
        op.erase()
        count += 1
    return count


def _may_be_once(op: loop.ComputeOp, count: int, target: Target) -> bool:
    """Whether an operation is a map of known sizes, and small with `count` elements a result."""
    most = target.processor.near_bytes
    if any(count * element_bytes(r.type.element) > most for r in op.results):  # type: ignore[attr-defined]
        return False
    if not is_map(op) or op.schedule is not None:
        return False
    return all(isinstance(axis.extent, int) and axis.extent for axis in op.axis_list)


def _has_place(outer: Operation | None, target: Target) -> bool:
    """Whether a kernel may be a group of leading par axes, with which `split-reductions` does
    nothing."""
    if outer is None or outer.attributes.get("schedule") is not None:
        return False
    if any(tiled(op, target) is not None or follows_tiles(op, target) for op in computes_in(outer)):
        return False
    if isinstance(outer, loop.GroupOp):
        return bool(outer.axis_list)
    if not isinstance(outer, loop.ComputeOp) or outer.inits:
        return False
    kinds = [axis.kind for axis in outer.axis_list]
    count = kinds.count("par")
    if not count or "par" in kinds[count:]:
        return False
    if any(axis.name != axis_name(k) for k, axis in enumerate(outer.axis_list)):
        return False
    results = points(a.extent for a in outer.axis_list[:count])
    return count == len(kinds) or not target.idles(results)


def _kernels(op: loop.ComputeOp, block: Block, target: Target) -> dict[Kernel, list[OpResult]]:
    """The kernels that read a map, all that is made of it, with the results that each reads;
    nothing where something else needs it."""
    kernels: dict[Kernel, list[OpResult]] = {}
    for result in op.results:
        for user in result.users:
            outer = outer_op(user, block)
            inside = isinstance(user, loop.ReadOp) and user.source is result
            if not inside or not _has_place(outer, target):
                return {}
            assert isinstance(outer, Kernel)
            read = kernels.setdefault(outer, [])
            if result not in read:
                read.append(result)
    return kernels


def _pays(op: loop.ComputeOp, kernels: dict[Kernel, list[OpResult]], target: Target) -> bool:
    """Whether its readers compute what they read of a map in less time than a kernel does, with
    room for it in each."""
    count, speeds = points(a.extent for a in op.axis_list), target.processor
    far = sum({r.source: array_bytes(r.source.type) for r in op.reads
               if array_bytes(r.source.type) > speeds.near_bytes}.values())  # fmt: skip
    each = []
    for kernel, read in kernels.items():
        needed = _needed(op, read)
        cost = work(sum(map(class_of, needed)), count) + Cost(far=far)
        each.append(target.operations(cost))
        if _kept_bytes(kernel) + sum(array_bytes(r.type) for r in read) > speeds.scratch_bytes:
            return False
    if max(each) > speeds.serial:
        return False
    everything = work(sum([class_of(inner) for inner in op.block.ops]), count)
    alone = target.operations(everything + Cost(far=far, launches=1))
    return sum(each) < alone


def _kept_bytes(kernel: Kernel) -> int:
    """The bytes of what a kernel computes once already."""
    if isinstance(kernel, loop.ComputeOp):
        return 0
    once = [member for member in kernel.block.ops if kernel.is_once(member)]
    return sum(array_bytes(r.type) for member in once for r in member.results)


def _needed(op: loop.ComputeOp, read: Sequence[OpResult]) -> set[Operation]:
    """The operations of a map's body that some of its results need."""
    needed: set[Operation] = set()
    stack = [op.yield_op.values[result.index].defining_op for result in read]
    while stack:
        maker = stack.pop()
        if maker is not None and maker.parent is op.block and maker not in needed:
            needed.add(maker)
            stack += [operand.defining_op for operand in maker.operands]
    return needed


def _move(op: loop.ComputeOp, kernel: Kernel, read: Sequence[OpResult]) -> None:
    """Put what a kernel reads of a map into it, as a member with axes of its own."""
    names = [f"c{number}" for number in range(len(op.axis_list))]
    axes = [loop.AxisAttr(n, "par", a.extent) for n, a in zip(names, op.axis_list, strict=True)]
    mapping = {a.name: symbol(n) for n, a in zip(names, op.axis_list, strict=True)}
    body = Body()
    body.location = op.location
    copier = Transplant(body, mapping, {axis.name: axis.extent for axis in axes})
    needed = _needed(op, read)
    for inner in op.block.ops:
        if inner in needed:
            copier.copy(inner)
    yielded = [op.yield_op.values[result.index] for result in read]
    body.finish([copier.values.get(value, value) for value in yielded])
    attributes: dict[str, A.Attribute]
    attributes = {"axes": A.ArrayAttr(axes), "outputs": A.ArrayAttr([loop.MAP] * len(read))}
    if isinstance(kernel, loop.ComputeOp):
        attributes |= sym.range_entry(kernel)
    region = Region([body.block])
    member = loop.ComputeOp((), [r.type for r in read], attributes, (region,), op.location)
    kernel.parent.insert_before(member, kernel)  # type: ignore[union-attr]
    inside = set(computes_in(kernel))
    for old, new in zip(read, member.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_uses_if(new, lambda user: user.parent_op in inside)
    if isinstance(kernel, loop.GroupOp):
        member.detach()
        prepend(kernel.block, member)
        return
    shared = tuple(axis.extent for axis in kernel.axis_list if axis.kind == "par")
    group_members([member, kernel], {member: shared})


__all__ = [
    "axes_that_matter", "compute_once", "costs_more_than_a_load", "inlined_by", "narrowed",
]  # fmt: skip
