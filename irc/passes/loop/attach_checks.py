"""The pass `attach-checks`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from irc.analysis.contraction import tiled
from irc.analysis.loop import (
    computes_in,
    has_effect,
    is_barrier,
    is_unit,
    leading_axes,
    points,
    reads_by_source,
    relies_on_checks,
)
from irc.analysis.positions import data_dims, is_clamped, position_along
from irc.dialects import graph, loop, sym
from irc.ir import attributes as A
from irc.ir.core import Block, Operation, Region, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.rewrite.fuel import NO_FUEL
from irc.ir.symbols import Dim, Symbol, symbol
from irc.ir.types import TensorType, contiguous_strides, i1
from irc.passes.common.bodies import (
    SEGMENTS,
    Body,
    Transplant,
    axes_of,
    axis_name,
    clean_block,
    compress_all,
)
from irc.passes.loop.grouping import group_members, name_unit_axes, prepend
from irc.passes.loop.merge_computes import merge_members
from irc.target import Target, target_of

Kernel = loop.ComputeOp | loop.GroupOp


@attrs.frozen
class CheckPlace:
    """Where in a kernel a check may be evaluated.

    shared: the kernel's leading axes to evaluate it over; mapping: those that the check's axes
    are, by name; own: the check's further axes; merged: the kernel is one compute over the same
    space, which the check becomes part of.
    """

    shared: tuple[loop.AxisAttr, ...]
    mapping: dict[str, Dim]
    own: tuple[loop.AxisAttr, ...]
    merged: bool


@register_pass
class AttachChecks(Pass):
    """Evaluates checks of indices and divisors in the kernel that they are for.

    A check is a compute of its own at first: it combines all its points to one truth value, which
    is asserted before anything reads at the indices. Where the kernel that does has the indices at
    hand, the check moves there and gives one value per point, all of which must hold. Until the
    assertion the kernel itself must not read outside: a position that is data is replaced by 0
    wherever it is out of bounds.

    max_verdicts: the host reads them, a byte each: more only where the check has as many points.
    min_row: shorter rows are no reason to make rows of a compute that has none. Its rows have to
    be as many as the target's threads want, too (`keeps_rows`).

    Before:
        %ok = loop.compute red(i0: 4) -> reduce(all, i1) { ... loop.read %k[i0] ... }
        %c = graph.item %ok : (tensor<[] x i1, strides []>) -> i1
        sym.assert_value %c {error = "IndexError", message = "..."} : (i1)
        %y = loop.compute par(i0: 4) -> map { ... loop.read %x[_0](%n) ... }
    After:
        %ok, %y = loop.compute par(i0: 4) -> map, map { ... loop.read %x[_0](%inside) ... }
        %c = graph.item %ok {every} : (tensor<[4] x i1, strides [1]>) -> i1
        sym.assert_value %c {error = "IndexError", message = "..."} : (i1)
    """

    name = "attach-checks"
    summary = "evaluate checks of indices in the kernels that read at them"
    anchor = "func.func"
    asks_target = True
    max_verdicts: int = 65_536
    min_row: int = 16

    def run(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].blocks[0]
        context.count("repeated assertions", drop_repeated(block))
        number = {inner: k for k, inner in enumerate(block.ops)}
        moved: dict[Operation, list[tuple[int, Operation, Operation]]] = {}
        for check in list(block.reversed_ops):
            if not isinstance(check, loop.ComputeOp) or not is_check(check):
                continue
            reason = self._attach(check, moved, number, context)
            if reason is None:
                context.count("checks in kernels")
            else:
                context.remark(f"is a kernel of its own: {reason}", check)
        for kernel, asserted in moved.items():
            after = kernel
            for _, item, assertion in sorted(asserted, key=lambda entry: entry[0]):
                for inner in (item, assertion):
                    block.insert_after(inner, after)
                    after = inner

    def _attach(
        self,
        check: loop.ComputeOp,
        moved: dict[Operation, list[tuple[int, Operation, Operation]]],
        number: dict[Operation, int],
        context: PassContext,
    ) -> str | None:
        """Move one check; why not, if it stays."""
        assertions = {a: item for item, a in assertions_of(check)}
        kernel = first_user(check, assertions)
        if isinstance(kernel, str):
            return kernel
        place = place_in(check, kernel, self, target_of(context))
        if isinstance(place, str):
            return place
        if not context.spend("attach-checks", check):
            return NO_FUEL
        pending = moved.pop(kernel, [])
        for assertion, item in assertions.items():
            pending.append((number[assertion], item, assertion))
            assertion.detach()
            item.detach()
            item.attributes["every"] = A.UNIT
        moved[attach(check, kernel, place)] = pending
        return None


def drop_repeated(block: Block) -> int:
    """Remove assertions of truth values that an earlier one asserts; how many went."""
    asserted: set[Value] = set()
    dropped = 0
    for op in list(block.ops):
        if not isinstance(op, sym.AssertValueOp):
            continue
        item = op.condition.defining_op
        if not isinstance(item, graph.Item) or not isinstance(item.source.defining_op, Kernel):
            continue
        if item.source not in asserted:
            asserted.add(item.source)
            continue
        op.erase()
        dropped += 1
        if not item.results[0].has_uses:
            item.erase()
    return dropped


def is_check(op: loop.ComputeOp) -> bool:
    """Whether a compute gives truth values for assertions, and nothing else but maps."""
    outputs = op.output_list
    if op.schedule is not None or any(a.kind != "red" for a in op.axis_list):
        return False
    if any(a.name != axis_name(k) for k, a in enumerate(op.axis_list)):
        return False
    asserts = any(output is not loop.MAP for output in outputs)
    for k, output in enumerate(outputs):
        if output is loop.MAP:
            continue
        if output.combiner != "all":
            return False
        (result,) = op.results_of(k)
        for user in result.users:
            if not isinstance(user, graph.Item):
                return False
            if not all(isinstance(u, sym.AssertValueOp) for u in user.results[0].users):
                return False
    return asserts


def assertions_of(check: loop.ComputeOp) -> Iterator[tuple[Operation, Operation]]:
    """Pairs (what reads a truth value of a check, the assertion of it)."""
    for result in check.results:
        for item in dict.fromkeys(result.users):
            if isinstance(item, graph.Item):
                for assertion in dict.fromkeys(item.results[0].users):
                    yield item, assertion


def first_user(check: loop.ComputeOp, assertions: dict[Operation, Operation]) -> Kernel | str:
    """The first kernel after a check that reads what it reads; why there is none."""
    sources = set(reads_by_source(check)) | set(check.results)
    items = set(assertions.values())
    op = check.next
    while op is not None:
        if op in items or op in assertions:
            op = op.next
            continue
        if isinstance(op, Kernel) and not sources.isdisjoint(reads_by_source(op)):
            return op
        uses = any(value in sources for value in op.operands if value.defining_op is check)
        if uses or is_barrier(op) or has_effect(op):
            return f"'{op.name}' must come after its assertion"
        if relies_on_checks(op):
            return "something else reads at positions that are data first"
        op = op.next
    return "no kernel reads what it checks"


def place_in(
    check: loop.ComputeOp, kernel: Kernel, limits: AttachChecks, target: Target
) -> CheckPlace | str:
    """Where in `kernel` a check may be evaluated; why nowhere."""
    if kernel.schedule is not None:
        return "the kernel is scheduled already"
    if sym.when_of(kernel) is not None:
        return "the kernel runs for a range of a size alone"
    axes = kernel.axis_list
    if any(a.name != axis_name(k) for k, a in enumerate(axes)):
        return "the kernel's axes have names of their own"
    if any(isinstance(op, loop.GroupOp) for op in kernel.block.ops):
        return "the kernel holds groups"
    computes = computes_in(kernel)
    if any(o.kind in ("scatter", "scan") for op in computes for o in op.output_list):
        return "the kernel scatters or scans"
    if any(tiled(op, target) is not None for op in computes):
        return "the kernel multiplies tiles"
    for compute in (check, *computes):
        for read in compute.reads:
            if any(not _has_elements(size) for _, size in data_dims(read)):
                return "what is read may have no element at all"
    mapping = _unify(check, kernel)
    if mapping is None:
        return "the kernel does not read it at the points of its own axes"
    place = _chosen(check, kernel, mapping, limits, target)
    if isinstance(place, str):
        return place
    return _reads_at_point(check, kernel, place) or place


def _has_elements(size: Dim) -> bool:
    return isinstance(size, int) and size > 0


def _unify(check: loop.ComputeOp, kernel: Kernel) -> dict[str, Dim] | None:
    """The kernel's axis that each axis of a check is, where both read one array; axes of one
    point may be 0, and an axis may be none of the kernel's."""
    own = {a.name: a.extent for a in check.axis_list}
    axes = {a.name: a.extent for a in kernel.axis_list}
    reads = reads_by_source(kernel)
    pairs = [
        (tuple(mine.indices), tuple(other.indices))
        for source, own_reads in reads_by_source(check).items()
        for mine in own_reads
        for other in reads.get(source, ())
    ]
    names = axes_of(len(own))
    pairs += [
        (names[: len(tuple(other.indices))], tuple(other.indices))
        for result in check.results
        for other in reads.get(result, ())
    ]
    best: dict[str, Dim] | None = None
    for mine, theirs in pairs:
        mapping: dict[str, Dim] = {}
        for a, b in zip(mine, theirs, strict=True):
            if not isinstance(a, Symbol) or a.name not in own or a.name in mapping:
                continue
            if isinstance(b, Symbol) and axes.get(b.name) == own[a.name]:
                mapping[a.name] = b
            elif is_unit(own[a.name]):
                mapping[a.name] = 0
        placed = [d for d in mapping.values() if d != 0]
        distinct = placed and len(set(placed)) == len(placed)
        if distinct and (best is None or len(mapping) > len(best)):
            best = mapping
    return best


def _chosen(
    check: loop.ComputeOp, kernel: Kernel, mapping: dict[str, Dim], limits: AttachChecks,
    target: Target,
) -> CheckPlace | str:  # fmt: skip
    own, axes = check.axis_list, kernel.axis_list
    same = len(own) <= len(axes) and all(
        a.extent == b.extent and mapping.get(a.name, 0 if is_unit(a.extent) else None)
        in (0, symbol(b.name))
        for a, b in zip(own, axes, strict=False)
    )  # fmt: skip
    if same:
        mapping = {a.name: symbol(a.name) for a in own}
    if same and len(own) == len(axes) and isinstance(kernel, loop.ComputeOp):
        return CheckPlace(axes, mapping, (), True)
    rest = tuple(a for a in own if a.name not in mapping)
    if not same and any(o is loop.MAP for o in check.output_list):
        return "an array that it gives has other axes than the kernel"
    last = max(k for k, a in enumerate(axes) if symbol(a.name) in mapping.values())
    shared = axes if isinstance(kernel, loop.GroupOp) else axes[: last + 1]
    if any(a.kind != "par" for a in shared):
        return "the kernel combines along its axes"
    count, inner = points(a.extent for a in shared), points(a.extent for a in axes[len(shared) :])
    if count > max(limits.max_verdicts, points(a.extent for a in own)):
        return f"the kernel would check each index again, {count} times in all"
    if isinstance(kernel, loop.ComputeOp):
        if inner < limits.min_row or not target.keeps_rows(count, count * inner):
            return "the kernel has no rows that are long enough and as many as threads want"
    return CheckPlace(shared, mapping, rest, False)


def _reads_at_point(check: loop.ComputeOp, kernel: Kernel, place: CheckPlace) -> str | None:
    """Why the arrays that a check gives can't be read from within the kernel, if so."""
    names = [a.name for a in place.shared]
    extents = [a.extent for a in place.shared]
    for source, reads in reads_by_source(kernel).items():
        if source.defining_op is not check:
            continue
        for read in reads:
            masked = place.merged and read.mask is not None
            if masked or leading_axes(read, names, extents) < len(names):
                return "the kernel reads what it gives at other points"
    return None


# -- rewriting


def attach(check: loop.ComputeOp, kernel: Kernel, place: CheckPlace) -> Kernel:
    """Evaluate a check in `kernel`, which a new operation takes the place of."""
    for compute in computes_in(kernel):
        clamp_positions(compute)
    moved = evaluated_there(check, kernel, place)
    if isinstance(kernel, loop.GroupOp):
        return _joined(kernel, moved)
    if place.merged:
        return merge_members([moved, kernel])
    extents = tuple(a.extent for a in place.shared)
    return group_members([moved, kernel], {moved: extents})


def clamp_positions(compute: loop.ComputeOp) -> None:
    """Read at 0 where a position that is data is out of bounds."""
    for read in list(compute.reads):
        dims = data_dims(read)
        if not dims or all(is_clamped(read, k, size) for k, size in dims):
            continue
        assert read.parent is not None
        body = Body(read.parent, read)
        body.location = read.location
        indices, positions = list(read.indices), list(read.positions)
        for k, size in dims:
            position = position_along(read, k)
            if position is None:
                position = body.index(indices[k], read.positions)
            positions.append(clamped(body, position, size))
            indices[k] = symbol(loop.placeholder(len(positions) - 1))
        used, kept = compress_all(indices, positions)
        fresh = body.read(read.source, used, kept, read.mask, read.other)
        read.results[0].replace_all_uses_with(fresh)
        read.erase()
    clean_block(compute.block)


def clamped(body: Body, position: Value, size: Dim) -> Value:
    """`position` where it is within [0, size), else 0."""
    above = body.compare("sge", position, body.index(0))
    below = body.compare("slt", position, body.index(size))
    inside = body.op("arith.andi", above, below)
    return body.select(inside, position, body.index(0))


def evaluated_there(check: loop.ComputeOp, kernel: Kernel, place: CheckPlace) -> loop.ComputeOp:
    """A check over the axes of `place`, before `kernel`: one truth value for each of their points,
    all of which stand for the one of before."""
    first = len(place.shared)
    fresh = {a.name: symbol(axis_name(first + k)) for k, a in enumerate(place.own)}
    own = [loop.AxisAttr(axis_name(first + k), "red", a.extent) for k, a in enumerate(place.own)]
    axes = [*place.shared, *own]
    body = Body()
    extents = {a.name: a.extent for a in axes}
    copier = Transplant(body, {**place.mapping, **fresh}, extents)
    terminator = check.yield_op
    for op in check.block.ops:
        if op is not terminator:
            copier.copy(op)
    values = [copier.values[v] for v in terminator.values]
    body.finish(values)
    kept = [a.extent for a in axes if a.kind == "par"]
    combines = len(kept) < len(axes)
    outputs, types = [], []
    for k, output in enumerate(check.output_list):
        (result,) = check.results_of(k)
        if output is loop.MAP:
            outputs.append(output)
            types.append(result.type)
            continue
        device = result.type.device  # type: ignore[attr-defined]
        outputs.append(output if combines else loop.MAP)
        types.append(TensorType(kept, i1, contiguous_strides(kept), device))
    attributes = {"axes": A.ArrayAttr(axes), "outputs": A.ArrayAttr(outputs)}
    moved = loop.ComputeOp((), types, attributes, (Region([body.block]),), check.location)
    assert kernel.parent is not None
    kernel.parent.insert_before(moved, kernel)
    clamp_positions(moved)
    for old, new in zip(check.results, moved.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    check.erase()
    return moved


def _joined(group: loop.GroupOp, member: loop.ComputeOp) -> loop.GroupOp:
    """A group with one more member, its first."""
    inside: set[Operation] = {member, *group.block.ops}
    stored = [r for r in member.results if any(u.parent_op not in inside for u in r.users)]
    terminator = group.yield_op
    values = [*stored, *terminator.values]
    terminator.operands = values
    terminator.attributes[SEGMENTS] = A.DenseIntsAttr((len(values), 0, 0))
    region = group.regions[0]
    new = loop.GroupOp((), [v.type for v in values], group.attributes, (region,), group.location)
    group.regions = ()
    block: Block | None = group.parent
    assert block is not None
    block.insert_before(new, group)
    member.detach()
    prepend(region.blocks[0], member)
    for op in region.blocks[0].ops:
        name_unit_axes(op, new)
    replaced: Sequence[Value] = [*stored, *group.results]
    for old, fresh in zip(replaced, new.results, strict=True):
        fresh.name_hint = old.name_hint
        old.replace_uses_if(
            fresh, lambda user: user is not terminator and user.parent_op not in inside
        )
    group.erase()
    return new


__all__ = ["AttachChecks", "CheckPlace", "assertions_of", "is_check"]
