"""The pass `rows-first`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irc.analysis.contraction import tiled
from irc.analysis.loop import points
from irc.analysis.shared_reads import jam_of
from irc.dialects import layout, loop
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import TensorType
from irc.passes.common.bodies import axis, axis_name, make_compute, with_axes
from irc.passes.loop.factor_axes import is_splittable, par_axes_first
from irc.target import Target, of_kind


@register_pass
class RowsFirst(Pass):
    """Orders the axes of maps like those of the reductions that they read: results first.

    On a GPU (`target` "gpu"; by default the program's) a softmax over columns so becomes
    computes that share their leading axes, one kernel for group-computes, where each program
    instance has some columns. A map's result is turned with its axes: computes read it at the
    turned indices, others through a view. Only where the reduction has at least `min_results`
    results (0: as many as keep the GPU busy with several each), over at most `max_points` points
    each: longer ones are better split. Maps of one point for each result are always turned, and
    those that read the sums of a contraction whose kernel multiplies tiles, on a CPU too: an image,
    say, whose channels the convolution has innermost. So are, on a CPU, those that read a
    reduction several points of which share what they read (`irc.analysis.shared_reads`).

    Before:
        %s = loop.compute red(i0: 768) par(i1: 8192) -> reduce(max, f32) { ... }
        %y = loop.compute par(i0: 768, i1: 8192) -> map { ... loop.read %s[i1] ... }
    After:
        %s = loop.compute par(i0: 8192) red(i1: 768) -> reduce(max, f32) { ... }
        %t = loop.compute par(i0: 8192, i1: 768) -> map { ... loop.read %s[i0] ... }
        %y = layout.view %t
    """

    name = "rows-first"
    summary = "order the axes of maps like those of the reductions that they read"
    anchor = "func.func"
    asks_target = True
    min_results: int = 0
    max_points: int = 16384
    target: str = ""

    def run(self, op: Operation, context: PassContext) -> None:
        target = of_kind(self.target, context)
        turned: set[Operation] = set()
        for inner in list(op.regions[0].blocks[0].ops):
            if not isinstance(inner, loop.ComputeOp):
                continue
            if not target.is_gpu and not keeps_sums(inner, target):
                continue
            readers = list(readers_to_turn(inner, target))
            worth_it = bool(readers) and self.is_worth_it(inner, target)
            kinds = [a.kind for a in inner.axis_list]
            sorted_already = kinds == sorted(kinds)
            if inner.schedule is not None and not sorted_already:
                continue  # which names its axes
            if not worth_it:
                rows = sorted_already and reduces_rows(inner)
                readers = [r for r in readers if rows and has_a_point_each(*r, inner)]
            beside = target.is_gpu and not sorted_already and is_read_by(inner, turned)
            beside = beside and reduces_rows(inner) and self.is_worth_it(inner, target)
            if not (readers or beside) or not context.spend("rows-first", inner):
                continue
            if not sorted_already:  # "par" before "red"
                inner = par_axes_first(inner)
            producers = list(producers_to_turn(inner)) if worth_it else []
            for map_, order in [*producers, *readers]:
                turned.add(turn(map_, order))
                context.count("turned")

    def is_worth_it(self, op: loop.ComputeOp, target: Target) -> bool:
        """Whether a compute combines points into enough results, each of few enough."""
        if keeps_sums(op, target):
            return True
        if not reduces_rows(op):
            return False
        results = points(a.extent for a in op.axis_list if a.kind == "par")
        each = points(a.extent for a in op.axis_list if a.kind == "red")
        many = target.fills(results // target.processor.vector_points)
        if self.min_results:
            many = results >= self.min_results
        return many and each <= self.max_points


def keeps_sums(op: loop.ComputeOp, target: Target) -> bool:
    """Whether sums of several points of a compute are in registers, as its order of axes has them:
    of a contraction's tile, or, on a CPU, of points that share what they read."""
    if tiled(op, target) is not None:
        return True
    return not target.is_gpu and not isinstance(jam_of(op, target), str)


def reduces_rows(op: loop.ComputeOp) -> bool:
    """Whether a compute combines some of its points, for each of others, and does nothing else."""
    kinds = {a.kind for a in op.axis_list}
    reduces = all(o.kind == "reduce" for o in op.output_list)
    return is_splittable(op) and {"par", "red"} <= kinds and reduces


def has_a_point_each(map_: loop.ComputeOp, order: Sequence[int], op: loop.ComputeOp) -> bool:
    """Whether a map has one point for each result of a reduction that it reads."""
    first = sum(a.kind == "par" for a in op.axis_list)
    return all(map_.axis_list[k].extent == 1 for k in order[first:])


def readers_to_turn(
    op: loop.ComputeOp, target: Target
) -> Iterator[tuple[loop.ComputeOp, list[int]]]:
    """The maps that read the results of a reduction along axes of theirs that don't come first,
    with the order that makes them come first."""
    places_of: dict[loop.ComputeOp, set[tuple[int, ...]]] = {}
    for result in op.results:
        for read in result.users:
            compute = read.parent_op
            if not isinstance(compute, loop.ComputeOp) or compute.parent is not op.parent:
                continue  # members of a group have its axes first
            if isinstance(read, loop.ReadOp):
                places_of.setdefault(compute, set()).add(tuple(axes_read(read, compute) or ()))
    for compute, places in places_of.items():
        (first, *others) = places
        if others or not first or not is_turnable(compute):
            continue
        rest = [k for k in range(len(compute.axis_list)) if k not in first]
        if (rest or keeps_sums(op, target)) and list(first) != list(range(len(first))):
            yield compute, [*first, *rest]


def producers_to_turn(op: loop.ComputeOp) -> Iterator[tuple[loop.ComputeOp, list[int]]]:
    """The maps whose every element a reduction reads, with its order of axes for theirs."""
    count = len(op.axis_list)
    seen: set[Operation] = set()
    for read in op.block.ops:
        if not isinstance(read, loop.ReadOp):
            continue
        maker = read.source.defining_op
        places = axes_read(read, op)
        if not isinstance(maker, loop.ComputeOp) or maker in seen or not is_turnable(maker):
            continue
        if places is None or sorted(places) != list(range(count)):
            continue
        seen.add(maker)
        order = [places.index(k) for k in range(count)]
        if order != list(range(count)):
            yield maker, order


def axes_read(read: loop.ReadOp, compute: loop.ComputeOp) -> list[int] | None:
    """The positions of the axes that a read's indices are; None where one is no axis, or twice."""
    names = [axis(k) for k in range(len(compute.axis_list))]
    places = [names.index(i) if i in names else -1 for i in read.indices]
    return places if -1 not in places and len(set(places)) == len(places) else None


def is_turnable(op: loop.ComputeOp) -> bool:
    """Whether a compute is a map of every point of its space."""
    return (
        is_splittable(op)
        and all(o.kind == "map" for o in op.output_list)
        and all(a.kind == "par" for a in op.axis_list)
    )


def is_read_by(op: loop.ComputeOp, computes: set[Operation]) -> bool:
    """Whether one of some computes reads a result of a compute."""
    users = (user for result in op.results for user in result.users)
    return any(isinstance(user, loop.ReadOp) and user.parent_op in computes for user in users)


def turn(op: loop.ComputeOp, order: Sequence[int]) -> Operation:
    """Replace a map by one whose axis number k is the old one's number `order[k]`; gives that."""
    old = op.axis_list
    mapping = {axis_name(position): axis(k) for k, position in enumerate(order)}
    extents = {axis_name(k): old[position].extent for k, position in enumerate(order)}
    body = with_axes(op, mapping, extents)
    axes = A.ArrayAttr(
        [loop.AxisAttr(axis_name(k), "par", old[p].extent) for k, p in enumerate(order)]
    )
    types = [turned_type(r.type, order) for r in op.results]
    builder = Builder.before(op)
    new = make_compute(builder, axes, op.output_list, types, body, (), op)
    for before, after in zip(op.results, new.results, strict=True):
        after.name_hint = before.name_hint
        _redirect(before, after, order)
    op.erase()
    return new


def turned_type(type_: object, order: Sequence[int]) -> TensorType:
    """The type of the same array with dimension `order[k]` as number k."""
    assert isinstance(type_, TensorType) and type_.strides is not None
    strides = type_.strides
    return type_.with_shape([type_.shape[d] for d in order], [strides[d] for d in order])


def _redirect(old: Value, new: Value, order: Sequence[int]) -> None:
    """Make the users of `old` use `new`, whose dimensions are turned."""
    view: Value | None = None
    for user in old.users:
        if isinstance(user, loop.ReadOp) and user.source is old:
            indices = tuple(user.indices)
            user.attributes["indices"] = A.DimsAttr([indices[d] for d in order])
            user.set_operand(0, new)
            continue
        if view is None:
            maker = new.defining_op
            assert maker is not None
            view = Builder.after(maker).value(layout.ViewOp, new, offset=0, result_types=old.type)
        user.replace_uses_of(old, view)
