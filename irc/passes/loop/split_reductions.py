"""The pass `split-reductions`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from irc.analysis.contraction import contraction_of, tiled
from irc.analysis.cost import cost_of, told
from irc.analysis.depth_parts import cut_axis, leading_axes
from irc.analysis.loop import array_bytes, estimate, points, read_offset
from irc.dialects import loop, sym
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Block, Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, Expr, ceildiv, coefficient, free_symbols, known_divisible
from irc.ir.types import TensorType, contiguous_strides, element_bytes
from irc.passes.common.bodies import (
    Body,
    Transplant,
    axis,
    axis_name,
    make_axes,
    make_compute,
)
from irc.passes.loop.factor_axes import par_axes_first
from irc.passes.loop.group_computes import GroupComputes, group_with_readers
from irc.passes.loop.identities import identity, masked_product
from irc.passes.loop.localize import localize_block, localize_group
from irc.target import Target, of_kind
from irc.target.costs import Cost
from irc.target.gpu import GpuFeatures

SPLITTABLE = frozenset(("sum", "prod", "min", "max", "any", "all", "xor"))


@attrs.define
class Split:
    """How a reduction is split: its leading red axes become par (`whole`), or the red axis at
    `position` becomes `parts` of `size` points each, the last ones perhaps shorter."""

    whole: tuple[int, ...] = ()
    position: int = 0
    parts: int = 0
    size: Dim = 0


@register_pass
class SplitReductions(Pass):
    """Makes two computes of a large reduction with few results: parts, then their combination.

    The parts can run in parallel. Their number depends on the sizes alone, never on the number
    of threads, so that results don't either. On a GPU (`target` "gpu"; by default the
    program's) more parts are wanted, and also of sums with many results that one program instance
    for each tile of them leaves too few of, moments too where all parts have as many points; what
    reads the results point by point there becomes one group with the combination of the parts. A
    group there of reductions and what is done to their results, as a batch norm's over images with
    channels innermost, is taken apart for that. Where a schedule says `split_k`, the depth is split
    into so many parts (points of its leading axes, as taps of a window, or equal ones that begin
    with whole vectors, where it has them), whose schedule then has the other entries. On a CPU
    reductions of `min_points` (0: the target's `serial`) with at most `max_results` (0:
    `target.idles`) are split into about `parts` (0: twice what keeps it busy). `max_parts`: the
    most of whole axes, `part_points` the least points of each of them. Remarks: for each reduction,
    how it is split and what that is estimated to save, or why it is not.

    Before:
        %s = loop.compute red(i0: 1000000) -> reduce(sum, f32) { ... loop.read %x[i0] ... }
    After:
        %p = loop.compute par(i0: 64) red(i1: 15625) -> reduce(sum, f32) {
          ... loop.read %x[i0*15625 + i1] ... }
        %s = loop.compute red(i0: 64) -> reduce(sum, f32) { ... loop.read %p[i0] ... }
    """

    name = "split-reductions"
    summary = "split large reductions with few results into parts and their combination"
    anchor = "func.func"
    preserves = "real"
    asks_target = True
    min_points: int = 0
    max_results: int = 0
    parts: int = 0
    max_parts: int = 4096
    part_points: int = 32
    target: str = ""

    def run(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].blocks[0]
        target = of_kind(self.target, context)
        gpu = target.is_gpu
        alone: list[Operation] = []
        for inner in list(block.ops):
            _forget_one_part(inner)
            if gpu and _of_parts(inner):
                alone += self._split_depth(inner, target, context)
            elif isinstance(inner, loop.ComputeOp):
                combined = self._split(inner, inner, target, context)
                if combined is not None:
                    context.count("split")
                    alone.append(combined)
            elif gpu and isinstance(inner, loop.GroupOp) and _is_starved(inner, target):
                for member in ungrouped(inner):
                    combined = self._split(member, member, target, context)
                    context.count("split", int(combined is not None))
                    alone.append(member if combined is None else combined)
            elif isinstance(inner, loop.GroupOp) and not inner.axis_list:
                members = [m for m in inner.block.ops if isinstance(m, loop.ComputeOp)]
                split = [self._split(m, inner, target, context) for m in members]
                if count := len(split) - split.count(None):
                    context.count("split", count)
                    _store_outside(inner)
        if gpu and alone and group_with_readers(block, alone, GroupComputes(), context):
            localize_block(block)

    def _parts(self, op: loop.ComputeOp, target: Target) -> int:
        """How many parts are wanted; 0: none."""
        if target.is_gpu:
            return gpu_parts(op, target)
        if self._has_many(points(a.extent for a in op.axis_list if a.kind == "par"), target):
            return 0
        if points_of(op) < (self.min_points or target.processor.serial):
            return 0
        return self.parts or 2 * target.processor.parallel

    def _has_many(self, results: int, target: Target) -> bool:
        """Whether so many results are computed in parallel as they are."""
        return results > self.max_results if self.max_results else not target.idles(results)

    def _split(
        self,
        op: loop.ComputeOp,
        outer: Operation,
        target: Target,
        context: PassContext,
    ) -> loop.ComputeOp | None:
        """Split one compute at the place of `outer`; gives the combination of its parts, None
        where it stays whole."""
        whole = _why_whole(op, outer, target)
        parts = self._parts(op, target) if whole is None else 0
        columns = target.is_gpu and outer is op and bool(parts) and lies_across(op)
        least = target.gpu.part_rows if columns else self.part_points
        split = self._choose(op, parts, least) if parts else None
        if context.explains and any(o.kind == "reduce" for o in op.output_list):
            context.remark(self._told(op, whole, parts, split, target), op)
        if split is None or not context.spend("split-reductions", op):
            return None
        if columns:
            op, split = _parts_first(op, split)
            outer = op
        builder = Builder.before(outer)
        if split.whole:
            partial = _partial_axes(op, split, builder)
        else:
            partial = _partial_ranges(op, split, builder)
        partial.attributes.update(sym.range_entry(outer))
        return _combine(op, split, partial, results_first=target.is_gpu)

    def _split_depth(
        self, op: Operation, target: Target, context: PassContext
    ) -> list[loop.ComputeOp]:
        """Split what schedules want to have `split_k` parts of; gives what combines them, and the
        members of the group that it stood in."""
        assert isinstance(op, loop.ComputeOp | loop.GroupOp)
        alone = []
        for member in [op] if isinstance(op, loop.ComputeOp) else ungrouped(op):
            entries = _entries(member)
            parts = int(getattr(entries.pop("split_k", None), "value", 1))
            if parts == 1 or not context.spend("split-reductions", member):
                alone.append(member)
                continue
            member.attributes.pop("schedule")
            split = _depth_parts(member, parts, target.gpu)
            member, split = _parts_first(member, split)
            make = _partial_axes if split.whole else _partial_ranges
            partial = make(member, split, Builder.before(member))
            partial.attributes["schedule"] = loop.ScheduleAttr("gpu", A.DictAttr(entries))
            alone.append(_combine(member, split, partial, results_first=True))
            context.count("split")
        return alone

    def _choose(self, op: loop.ComputeOp, parts: int, least: int) -> Split | None:
        axes = op.axis_list
        red = [k for k, a in enumerate(axes) if a.kind == "red"]
        total = points(axes[k].extent for k in red)
        leading = 1
        for count, k in enumerate(red[:-1], 1):
            leading *= estimate(axes[k].extent)
            if parts // 2 <= leading <= self.max_parts and total // leading >= least:
                return Split(tuple(red[:count]))
        if any(o.kind == "map" for o in op.output_list):
            return None
        equal = any(o.combiner == "moments" for o in op.output_list)
        position = max(red, key=lambda k: (estimate(axes[k].extent), -k))
        extent = axes[position].extent
        if estimate(extent) < 2 * parts:
            return None
        for count in (parts, *range(parts // 2, 4 * parts)):
            if known_divisible(extent, count):
                return Split((), position, count, extent // count)
        return None if equal else Split((), position, parts, ceildiv(extent, parts))

    def _told(
        self, op: loop.ComputeOp, whole: str | None, parts: int, split: Split | None,
        target: Target,
    ) -> str:  # fmt: skip
        """The remark about a reduction."""
        axes = op.axis_list
        if split is not None and split.whole:
            times = times_of(op, math.prod(estimate(axes[k].extent) for k in split.whole), target)
            names = ", ".join(axes[k].name for k in split.whole)
            return f"is split: each point of {names} is a part: {times}"
        if split is not None:
            name = axes[split.position].name
            times = times_of(op, split.parts, target)
            return f"is split into {split.parts} parts of {split.size} points of {name}: {times}"
        if whole is not None:
            return f"is not split: {whole}"
        if parts and any(o.kind == "map" for o in op.output_list):
            return "is not split: a map beside it has all of its axes, and no leading ones fit"
        if parts:
            return f"is not split: no axis has points for {parts} parts (moments: equal ones)"
        results, total = points(a.extent for a in axes if a.kind == "par"), points_of(op)
        about = "about " if any(isinstance(a.extent, Expr) for a in axes) else ""
        if target.is_gpu:
            least = target.gpu.least_parts
            return (f"is not split: {about}{total} points are no {least} parts with "
                    f"enough to do for each of {results} results")  # fmt: skip
        if self._has_many(results, target):
            return f"is not split: its {about}{results} results are computed in parallel"
        least = self.min_points or target.processor.serial
        return f"is not split: {about}{total} points are few (min_points={least})"


def _entries(op: Operation) -> dict[str, A.Attribute]:
    """The entries of an operation's schedule."""
    schedule = op.attributes.get("schedule")
    return schedule.entries.as_dict() if isinstance(schedule, loop.ScheduleAttr) else {}


def _forget_one_part(op: Operation) -> None:
    """Take from schedules that a depth is to be summed up in one part: as it is."""
    one = A.IntegerAttr(1)
    for member in op.block.ops if isinstance(op, loop.GroupOp) else (op,):
        entries = _entries(member)
        if entries.get("split_k") == one:
            del entries["split_k"]
            member.attributes["schedule"] = loop.ScheduleAttr("gpu", A.DictAttr(entries))


def _of_parts(op: Operation) -> bool:
    """Whether a schedule says of a compute, or of one in a group, in how many parts its depth is
    summed up."""
    members = op.block.ops if isinstance(op, loop.GroupOp) else (op,)
    return any("split_k" in _entries(member) for member in members)


def _depth_parts(op: loop.ComputeOp, parts: int, gpu: GpuFeatures) -> Split:
    """Each point of leading red axes, or one of these in so many equal parts. Where these begin
    within a line of memory: in parts of whole lines, the last one shorter. Raises InvalidIR where
    there are none."""
    line = gpu.step_bytes // max(_element_bytes(read.source) for read in op.reads)
    red = [k for k, a in enumerate(op.axis_list) if a.kind == "red"]
    extents = {k: op.axis_list[k].extent for k in red}
    whole = leading_axes(list(extents.values()), parts)
    if whole:
        return Split(tuple(red[:whole]))
    lies = [_lies_along(op, op.axis_list[k].name) for k in red]
    cut = cut_axis(list(extents.values()), lies, parts, line)
    if cut is not None:
        return Split((), red[cut], parts, extents[red[cut]] // parts)
    longest = sorted(extents, key=lambda k: (-estimate(extents[k]), k))
    lines = [k for k in longest if estimate(extents[k]) > (parts - 1) * line]
    if lines:
        size = ceildiv(ceildiv(extents[lines[0]], parts), line) * line
        return Split((), lines[0], parts, size)
    equal = [k for k in longest if known_divisible(extents[k], parts)]
    if not equal:
        raise InvalidIR(f"split_k is {parts}, which divides none of its axes of depth", op=op)
    return Split((), equal[0], parts, extents[equal[0]] // parts)


def _lies_along(op: loop.ComputeOp, name: str) -> bool:
    """Whether something is read whose elements lie side by side along an axis."""
    return any(coefficient(read_offset(read), name) == 1 for read in op.reads)


def _element_bytes(value: Value) -> int:
    assert isinstance(value.type, TensorType)
    return element_bytes(value.type.element)


def _why_whole(op: loop.ComputeOp, outer: Operation, target: Target) -> str | None:
    """Why a reduction can't be split at all; None where it can."""
    outputs = op.output_list
    for output in outputs:
        if output.kind not in ("reduce", "map"):
            return f"a {output.kind} is computed beside it"
        if target.is_gpu and output.combiner == "moments":
            if not all(isinstance(a.extent, int) for a in op.axis_list if a.kind == "red"):
                return "how many points have moments is not known"
        elif output.kind == "reduce" and output.combiner not in SPLITTABLE:
            return f"parts of {output.combiner} don't combine by it"
    if not any(o.kind == "reduce" for o in outputs):
        return "it reduces nothing"
    if op.schedule is not None:
        return "it has a schedule"
    if tiled(op, target) is not None:
        return "its kernel multiplies tiles"
    if any(a.name != axis_name(k) for k, a in enumerate(op.axis_list)):
        return "its axes have names of their own"
    # The parts move out of the group, so they may not read what is made inside it.
    if any(_defined_in(r.source, outer) for r in op.reads):
        return "it reads what its group makes"
    return None


def points_of(op: loop.ComputeOp) -> int:
    """The estimated number of points of a compute's space."""
    return points(a.extent for a in op.axis_list)


def times_of(op: loop.ComputeOp, parts: int, target: Target) -> str:
    """What a reduction takes whole and in parts, for people."""
    return told(target, *costs_of(op, parts, target))


def costs_of(op: loop.ComputeOp, parts: int, target: Target) -> tuple[Cost, Cost]:
    """A reduction whole, and in parts."""
    results = points(a.extent for a in op.axis_list if a.kind == "par")
    sizes = {read.source: array_bytes(read.source.type) for read in op.reads}
    large = {s: size for s, size in sizes.items() if size > target.processor.near_bytes}
    whole = cost_of(op, large, results)
    between = Cost(near=3 * parts * results * len(op.results), launches=1)
    after = whole.joined(between, parts * results)
    return whole, attrs.evolve(after, launches=2)


def gpu_parts(op: loop.ComputeOp, target: Target) -> int:
    """How many parts a GPU wants: enough program instances, each with enough to do; 0: none.
    Of fewer points parts are wanted where computing these takes longer than one launch more: what
    bytes there are, one program instance reads at once."""
    gpu = target.gpu
    total = points_of(op)
    results = max(points(a.extent for a in op.axis_list if a.kind == "par"), 1)
    most = gpu.split_fills * gpu.parallel
    across = lies_across(op)
    programs = -(-results // gpu.warp) if across else results
    least = gpu.split_rows if across else gpu.split_row_points
    rows = total // results
    parts = min(most // programs, rows // least)
    if across and rows >= gpu.long_column:
        tiles = -(-results // gpu.column_results)
        each = gpu.several_column_points if _reads_several(op) else gpu.column_points
        parts = max(parts, min(gpu.column_programs // tiles, rows // each))
    if parts < gpu.least_parts:
        return 0
    if total < gpu.split_points * most:
        whole, split = [attrs.evolve(cost, far=0) for cost in costs_of(op, parts, target)]
        if target.time(whole) <= target.time(split):
            return 0
    return 1 << (parts.bit_length() - 1)


def _is_starved(group: loop.GroupOp, target: Target) -> bool:
    """Whether a group is of reductions, and what is done to each of their results, and reductions
    of columns among them leave a GPU idle."""
    shared = len(group.axis_list)
    starved = False
    for member in group.block.ops:
        if isinstance(member, loop.YieldOp):
            continue
        if not isinstance(member, loop.ComputeOp) or member.schedule is not None:
            return False
        if tiled(member, target) is not None:
            return False
        if any(a.kind == "par" and a.extent != 1 for a in member.axis_list[shared:]):
            return False
        whole = _why_whole(member, member, target) is not None
        columns = not whole and bool(_contiguous(member, "par", "red"))
        starved = starved or (columns and gpu_parts(member, target) > 0)
    return bool(shared) and starved


def ungrouped(group: loop.GroupOp) -> list[loop.ComputeOp]:
    """The members of a group, in its place."""
    members = [op for op in group.block.ops if isinstance(op, loop.ComputeOp)]
    block = group.parent
    assert block is not None
    for value, result in zip(group.yield_op.values, group.results, strict=True):
        result.replace_all_uses_with(value)
    for member in members:
        member.detach()
        member.attributes.update(sym.range_entry(group))
        block.insert_before(member, group)
    group.erase()
    return members


def _parts_first(op: loop.ComputeOp, split: Split) -> tuple[loop.ComputeOp, Split]:
    """The same with results behind parts, so that a program instance has some that lie side by
    side."""
    order = sorted(range(len(op.axis_list)), key=lambda k: op.axis_list[k].kind == "par")
    place = {old: new for new, old in enumerate(order)}
    if not any(o.kind == "map" for o in op.output_list):
        op = par_axes_first(op, last="par")
        whole = tuple(place[k] for k in split.whole)
        split = attrs.evolve(split, whole=whole, position=place[split.position])
    return op, split


def lies_across(op: loop.ComputeOp) -> bool:
    """Whether results of a reduction are of elements that lie side by side."""
    return bool(_contiguous(op, "par", "red")) and not _contiguous(op, "red", "par")


def _contiguous(op: loop.ComputeOp, kind: str, other: str) -> set[Value]:
    """The arrays of reads that move by one element along an axis of the kind, and along the other
    kind's."""
    others = {a.name for a in op.axis_list if a.kind == other}
    arrays = set()
    for read in op.reads:
        offset = read_offset(read)
        along = [a.name for a in op.axis_list if a.kind == kind]
        if free_symbols(offset) & others and any(coefficient(offset, n) == 1 for n in along):
            arrays.add(read.source)
    return arrays


def _reads_several(op: loop.ComputeOp) -> bool:
    """Whether results of a reduction are of elements of several arrays of 32 bits, side by side."""
    types = [a.type for a in _contiguous(op, "par", "red") if isinstance(a.type, TensorType)]
    return len(types) > 1 and {element_bytes(type_.element) for type_ in types} == {4}


def _store_outside(group: loop.GroupOp) -> None:
    """Arrays that the parts of a split reduction store are no longer the group's to store."""
    for value, result in zip(group.yield_op.values, group.results, strict=True):
        if not _defined_in(value, group):
            result.replace_all_uses_with(value)
    localize_group(group)


def _defined_in(value: Value, outer: Operation) -> bool:
    maker = value.defining_op
    return maker is not None and maker.parent_op is outer


def _partial_types(op: loop.ComputeOp, shape: list[Dim]) -> Iterator[TensorType]:
    for number, output in enumerate(op.output_list):
        for result in op.results_of(number):
            type_ = result.type
            assert isinstance(type_, TensorType)
            if output.kind == "map":
                yield type_
                continue
            assert output.accumulator is not None
            strides = contiguous_strides(shape)
            yield TensorType(shape, output.accumulator, strides, type_.device)


def _partial_axes(op: loop.ComputeOp, split: Split, builder: Builder) -> loop.ComputeOp:
    """The parts where leading red axes become par; takes the body along."""
    axes = [
        loop.AxisAttr(a.name, "par" if k in split.whole else a.kind, a.extent)
        for k, a in enumerate(op.axis_list)
    ]
    shape = [a.extent for a in axes if a.kind == "par"]
    body = Body(_copy_block(op))
    types = list(_partial_types(op, shape))
    return make_compute(builder, A.ArrayAttr(axes), op.output_list, types, body, (), op)


def _copy_block(op: loop.ComputeOp) -> Block:
    return op.regions[0].clone({}).blocks[0]


def _partial_ranges(op: loop.ComputeOp, split: Split, builder: Builder) -> loop.ComputeOp:
    """The parts where one red axis becomes a par axis over parts and a red one inside."""
    old = op.axis_list
    at = split.position
    extents: list[Dim] = [a.extent for a in old]
    extents[at : at + 1] = [split.parts, split.size]
    kinds = [a.kind for a in old]
    kinds[at : at + 1] = ["par", "red"]
    mapping: dict[str, Dim] = {}
    for k, a in enumerate(old):
        mapping[a.name] = axis(k if k < at else k + 1)
    whole = axis(at) * split.size + axis(at + 1)
    mapping[old[at].name] = whole
    names = {axis_name(k): extent for k, extent in enumerate(extents)}
    body = Body()
    mask: Value | None = None
    if split.size * split.parts != old[at].extent:
        mask = body.compare("slt", body.index(whole), body.index(old[at].extent))
    copier = Transplant(body, mapping, names, (), mask)
    copier.copy_body(op)
    values = []
    contraction = contraction_of(op) if mask is not None else ""
    for value, output in zip(op.yield_op.values, op.output_list, strict=True):
        copied = copier.values.get(value, value)
        if mask is not None and not isinstance(contraction, str):
            copied = masked_product(contraction, copier.values, mask, body)
        elif mask is not None:
            assert output.accumulator is not None
            neutral = identity(body, output.combiner, copied.type, output.accumulator)
            copied = body.select(mask, copied, neutral)
        values.append(copied)
    body.finish(values)
    axes = A.ArrayAttr(
        [
            loop.AxisAttr(axis_name(k), kind, extent)
            for k, (kind, extent) in enumerate(zip(kinds, extents, strict=True))
        ]
    )
    shape = [e for e, kind in zip(extents, kinds, strict=True) if kind == "par"]
    types = list(_partial_types(op, shape))
    return make_compute(builder, axes, op.output_list, types, body, (), op)


def _combine(
    op: loop.ComputeOp, split: Split, partial: loop.ComputeOp, results_first: bool
) -> loop.ComputeOp:
    """Put the combination of the parts in the place of `op`; `results_first`: the axes of the
    results before those of the parts, so that readers of the results can share them."""
    first = partial.axis_list
    kept = [k for k, a in enumerate(first) if a.kind == "par"]
    red = set(split.whole) if split.whole else {split.position}
    order = sorted(kept, key=lambda k: k in red) if results_first else kept
    axes = A.ArrayAttr(
        [
            loop.AxisAttr(axis_name(n), "red" if k in red else "par", first[k].extent)
            for n, k in enumerate(order)
        ]
    )
    place = [axis(order.index(k)) for k in kept]
    body = Body()
    body.location = op.location
    outputs, values, types = [], [], []
    old: list[Value | None] = []
    moments: list[tuple[Value, int]] = []
    for number, output in enumerate(op.output_list):
        result, *rest = op.results_of(number)
        part, *more = partial.results_of(number)
        if output.kind == "map":
            result.replace_all_uses_with(part)
            continue
        outputs.append(output)
        values.append(body.read(part, place))
        types.append(result.type)
        old.append(result)
        for squares, deviations in zip(rest, more, strict=True):
            # The moments of the parts' means, and the sum of what is within the parts.
            moments.append((squares, len(old)))
            outputs.append(loop.ResultAttr("reduce", "sum", output.accumulator, None))
            values.append(body.read(deviations, place))
            types += [squares.type, squares.type]
            old += [None, None]
    body.finish(values)
    builder = Builder.before(op)
    combined = make_compute(builder, axes, outputs, types, body, (), op)
    for whole, new in zip(old, combined.results, strict=True):
        if whole is not None:
            new.name_hint = whole.name_hint
            whole.replace_all_uses_with(new)
    each = math.prod(estimate(a.extent) for a in first if a.kind == "red")
    for squares, number in moments:
        between, within = combined.results[number : number + 2]
        squares.replace_all_uses_with(_together(builder, op, squares, between, within, each))
    op.erase()
    return combined


def _together(
    builder: Builder, op: loop.ComputeOp, squares: Value, between: Value, within: Value, each: int
) -> Value:
    """The sums of squared deviations of parts of `each` points, by those of their means, and those
    within them."""
    type_ = squares.type
    assert isinstance(type_, TensorType)
    body = Body()
    place = [axis(k) for k in range(type_.rank)]
    left, right = body.read(between, place), body.read(within, place)
    scaled = body.op("arith.mulf", left, body.constant(each, left.type))
    body.finish([body.op("arith.addf", scaled, right)])
    axes = make_axes(type_.shape)
    together = make_compute(builder, axes, [loop.MAP], [type_], body, (), op)
    together.results[0].name_hint = squares.name_hint
    return together.results[0]
