"""The pass `schedule`: how each compute and group runs on the target.

`irc.dialects.loop.schedule` lists the keys. A lone compute has those of a group and those of its
own in one schedule; a compute in a group has a schedule with its own keys, among them those of
vectors unless the group has a shared vector axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from irc.analysis.loop import estimate
from irc.dialects import func, loop
from irc.dialects.sym.ranges import WHEN
from irc.ir.attributes import Attribute
from irc.ir.core import Operation
from irc.ir.diagnostics import UserError
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import coefficient
from irc.passes.kernel.axis_costs import (
    axis_cost,
    cost_of,
    crowds,
    is_strided,
    keeps_order,
    lanes_for,
    needs_order,
    scalar_cost,
    step_along,
)
from irc.passes.kernel.cpu.collapse import find_collapses
from irc.passes.kernel.cpu.contraction.by_size import schedule_by_size
from irc.passes.kernel.cpu.contraction.choose import is_open, schedule_tiles
from irc.passes.kernel.cpu.contraction.measured import Measured
from irc.passes.kernel.cpu.interleaved import side_by_side
from irc.passes.kernel.cpu.jam_points import jams_of
from irc.passes.kernel.cpu.partial_sums import cut_sums
from irc.passes.kernel.cpu.plan import (
    Axis,
    CpuMember,
    CpuPlan,
    is_transposed,
    plan_for_cpu,
)
from irc.passes.kernel.cpu.schedule import CpuSchedule, Pairs
from irc.passes.kernel.plan.plan import flatten
from irc.passes.kernel.plan.structure import structural_key
from irc.passes.kernel.plan.symbol_ranges import symbol_ranges
from irc.target import Target, of_kind
from irc.target.cpu import TargetFeatures

Decided = tuple[list[Attribute | None], list[tuple[int, str]]]
"""The schedules of a compute or group and of what is inside, and remarks by the number of these."""


@register_pass
class Schedule(Pass):
    """Decides how each compute and group runs, and writes it as its `schedule`.

    `target`: "cpu" or "gpu"; by default the program's. What has a schedule keeps it, and gets what
    it lacks if it is of a contraction. On a cpu one with a symbolic size gets those that it would
    have with a few numbers in its place (`variants`). What is best
    of a processor are figures of the target. On a cpu: `vector_bits`: the width of
    the vector registers (0: the target's). `unrolled_ops`: the most operations of a body that is
    written once for each row of a transposed tile; rows that went through the stack made x.t() + y
    twice as slow (690 against 284 us at 1008 x 1008 f32 on a Zen 4). `spans`: an axis with borders
    that would cut it into more stays whole: each span is code of its own.

    Before:
        %y = loop.compute par(i0: 64) -> map { ... }
    After:
        %y = loop.compute par(i0: 64) -> map schedule #loop.schedule<cpu, ...> { ... }
    """

    name = "schedule"
    summary = "decide how computes and groups run on the target"
    asks_target = True
    target: str = ""
    vector_bits: int = 0
    unrolled_ops: int = 16
    spans: int = 5

    def run(self, op: Operation, context: PassContext) -> None:
        target, known = self.made_for(context), dict[Any, Decided]()
        for function in op.regions[0].blocks[0].ops:
            if not isinstance(function, func.FuncOp):
                continue
            ranges = symbol_ranges(function) if target.is_gpu else {}
            for inner in function.block.ops:
                if not isinstance(inner, loop.ComputeOp | loop.GroupOp):
                    continue
                if target.is_gpu:
                    from irc.passes.kernel.gpu.schedule_entry import schedule_for_gpu

                    if not schedule_for_gpu(inner, target, ranges):
                        continue
                elif not is_open(inner):
                    continue
                else:
                    for compute, remark in self._decided(inner, target, known):
                        context.remark(remark, compute)
                context.count("scheduled")

    def _decided(
        self, op: Operation, target: Target, known: dict[Any, Decided]
    ) -> list[tuple[Operation, str]]:
        """Write the schedules of a compute or group for a cpu, those of an equal one if there was
        any; gives remarks."""
        key = structural_key(op, flatten(op).inputs), op.attributes.get(WHEN)
        parts: list[Operation] = [
            each for each in op.walk() if isinstance(each, loop.ComputeOp | loop.GroupOp)
        ]
        decided = known.get(key)
        if decided is None:
            told = schedule_for_cpu(op, target, self)
            schedules = [each.attributes.get("schedule") for each in parts]
            known[key] = schedules, [(parts.index(each), text) for each, text in told]
            return told
        for each, schedule in zip(parts, decided[0], strict=True):
            if schedule is not None:
                each.attributes["schedule"] = schedule
        return [(parts[number], text) for number, text in decided[1]]

    def made_for(self, context: PassContext) -> Target:
        """The program's target, with the option's vectors."""
        target = of_kind(self.target, context)
        if not self.vector_bits or target.is_gpu:
            return target
        try:
            wide = attrs.evolve(target.features, vector_bits=self.vector_bits)
        except ValueError as error:
            raise UserError(str(error)) from None
        return attrs.evolve(target, processor=wide)


def schedule_for_cpu(
    op: Operation, target: Target, limits: Schedule
) -> list[tuple[Operation, str]]:
    """Write the schedule of a top-level compute or group and of the members inside.

    Gives remarks: the computes that stay scalar, and contractions whose entries of tiles are
    dropped, with the reason.
    """
    measured = Measured.of(op)
    flat, room = flatten(op), target.features.stack_bytes
    reason: str | None = None
    if not schedule_by_size(op, target):
        reason = schedule_tiles(op, plan_for_cpu(flat, scratch=room), target)
    if reason is None:
        objection = None if measured is None else measured.objection(room)
        if measured is None or objection is None:
            return []
        measured.drop()
        schedule_for_cpu(op, target, limits)
        return [(measured.compute, f"isn't scheduled as it was measured: {objection}")]
    top, scalar = _scheduled(op, plan_for_cpu(flat, scratch=room), target, limits)
    if isinstance(op, loop.ComputeOp) and op.inits:
        top.copying, _ = _scheduled(op, plan_for_cpu(flat, True, room), target, limits)
    op.attributes["schedule"] = top.to_attribute()
    remarks = [(compute, f"is not vectorized: {why}") for compute, why in scalar]
    if reason:
        remarks.append((flat.members[0].compute, f"has no tiles, as its schedule asks: {reason}"))
    return remarks


def _scheduled(
    op: Operation, plan: CpuPlan, target: Target, limits: Schedule
) -> tuple[CpuSchedule, list[tuple[Operation, str]]]:
    """The schedule of a plan's operation, and the computes that stay scalar. Members get theirs."""
    scalar: list[tuple[Operation, str]] = []
    cpu = target.features
    lone = isinstance(op, loop.ComputeOp)
    jams = {} if lone else jams_of(plan, target)
    shared_pairs, own_pairs = find_collapses(plan, jams)
    best, choices = _choose_axes(plan, cpu)
    top = CpuSchedule(collapse=shared_pairs, vector_axis="")
    if best is not None:
        _shared_vectors(plan, best, target, top)
        top.spans = limits.spans
    top.outer = _outer_order(plan, best, bool(best and top.block))
    if lone:
        top.order = []
    else:
        top.scratch = cpu.stack_bytes
    for member, pairs in zip(plan.once, own_pairs, strict=False):
        scalar += _schedule_once(member, pairs, cpu, limits)
    rest = own_pairs[len(plan.once) :]
    for member, pairs, choice in zip(plan.members, rest, choices, strict=True):
        own = top if lone else CpuSchedule(collapse=[], order=[])
        own.collapse = own.collapse + pairs
        if best is None and choice is not None:
            _own_vectors(member, choice, cpu, own)
            own.spans = limits.spans
        elif best is None:
            own.vector_axis = own.vector_axis if own.has("vector_axis") else ""
            scalar.append((member.compute, _why_scalar([*plan.shared, *member.own], member, cpu)))
        elif top.tile_axis:
            own.unroll = sum(1 for _ in member.compute.block.ops) <= limits.unrolled_ops
        elif (axis := side_by_side(member, best.name, top.lanes)) is not None:
            own.written_out = [axis.name]
        own.order = own.order + _loop_order(member, own.vector_axis if best is None else "")
        if best is None and member in jams:
            jams[member].write(member, own)
        cut_sums(member, own, best is not None)
        if not lone:
            member.compute.attributes["schedule"] = own.to_attribute()
    return top, scalar


def _schedule_once(
    member: CpuMember, pairs: Pairs, cpu: TargetFeatures, limits: Schedule
) -> list[tuple[Operation, str]]:
    """The schedule of what is computed once; the compute with the reason if it stays scalar."""
    own = CpuSchedule(collapse=pairs, vector_axis="")
    _, choice = _own_choice(member, cpu)
    if choice is not None:
        _own_vectors(member, choice, cpu, own)
        own.spans = limits.spans
    own.order = _loop_order(member, own.vector_axis)
    member.compute.attributes["schedule"] = own.to_attribute()
    return [] if choice is not None else [(member.compute, _why_scalar(member.own, member, cpu))]


def _why_scalar(axes: Iterable[Axis], member: CpuMember, cpu: TargetFeatures) -> str:
    """Why no axis of a member, nor one that its group shares, has vectors."""
    parts: list[str] = []
    for axis in axes:
        if axis in member.own and not keeps_order(member, axis):
            order = "its scatter combines points in order"
            parts += [] if order in parts else [order]
        elif axis.kind == "scan":
            parts.append(f"{axis.name} is scanned in order")
        elif lanes_for(member, axis, cpu.vector_bits) == 1:
            parts.append(f"{axis.name} has too few points or too wide elements")
        else:
            vector, plain = axis_cost(member, axis, cpu), scalar_cost(member, cpu)
            parts.append(f"along {axis.name} a point costs {vector:.1f}, without {plain:.1f}")
    return "; ".join(parts) or "it has one point"


# -- axes


def _points(member: CpuMember) -> int:
    total = 1
    for axis in member.own:
        total *= max(1, estimate(axis.extent))
    return total


def _choose_axes(
    plan: CpuPlan, cpu: TargetFeatures
) -> tuple[Axis | None, list[Axis | None]]:
    """A shared vector axis if that is cheapest, else the own vector axis of each member."""
    choices: list[Axis | None] = []
    own_total = 0.0
    for member in plan.members:
        cost, choice = _own_choice(member, cpu)
        choices.append(choice)
        own_total += cost * _points(member)
    best = None
    for axis in reversed(plan.shared):
        # Under a shared vector axis scratch has a vector for each of its elements.
        lanes = min(lanes_for(m, axis, cpu.vector_bits) for m in plan.members)
        if plan.table_bytes + plan.scratch_bytes * lanes > cpu.stack_bytes:
            continue
        total = sum(axis_cost(m, axis, cpu) * _points(m) for m in plan.members)
        if total < own_total:
            own_total, best = total, axis
    return best, choices


def _own_choice(member: CpuMember, cpu: TargetFeatures) -> tuple[float, Axis | None]:
    """What a point of a member costs with vectors along the best of its own axes, and that one."""
    cost, choice = scalar_cost(member, cpu), None
    for axis in reversed(member.own):
        if axis.kind == "scan" or not keeps_order(member, axis):
            continue
        here = axis_cost(member, axis, cpu)
        if here < cost:
            cost, choice = here, axis
    return cost, choice


# -- decisions


def _shared_vectors(plan: CpuPlan, axis: Axis, target: Target, schedule: CpuSchedule) -> None:
    cpu = target.features
    bits = cpu.vector_bits
    lanes = min(lanes_for(m, axis, bits) for m in plan.members)
    schedule.vector_axis, schedule.lanes, schedule.copies = axis.name, lanes, 1
    schedule.tail = _tail(plan.members, bits)
    _write_strided(plan.members, axis, lanes, cpu, schedule)
    schedule.tile_axis, schedule.block = "", 0
    # Rows are combined one after the other: take many bytes of each at once.
    reduces = any(m.red_axes or needs_order(m) for m in plan.members)
    if reduces:
        schedule.copies = _block_copies(plan.members, axis, lanes, cpu)
        while schedule.copies > 1 and (
            plan.table_bytes + plan.scratch_bytes * lanes * schedule.copies > cpu.stack_bytes
        ):
            schedule.copies //= 2
    tile = None if reduces else _tile_axis(plan, axis, lanes)
    if tile is not None:
        schedule.tile_axis = tile.name
        each = _transposed_bytes(plan, tile, axis)
        if max(cost_of(m, cpu) for m in plan.members) <= cpu.light_body:
            schedule.lanes = lanes = min(lanes, max(4, cpu.tile_row // each))
        schedule.tile_block = max(lanes, cpu.tile_blocks[each.bit_length() - 1])
    elif not reduces:
        schedule.lanes = lanes = _paired(plan.members, axis, lanes, cpu)
    others = 1
    for other in plan.shared:
        if other is not axis:
            others *= -(-estimate(other.extent) // (schedule.tile_block if other is tile else 1))
    if not target.fills(others):
        block = lanes * schedule.copies
        most = cpu.transposed_tiles * lanes if tile is not None else cpu.map_block
        schedule.block = block if reduces else max(block, most)
        if isinstance(axis.extent, int) and axis.extent <= schedule.block:
            schedule.block = 0


def _tile_axis(plan: CpuPlan, vector: Axis, lanes: int) -> Axis | None:
    """An axis along which strided reads are contiguous, so that squares can be transposed."""
    if any(m.own for m in plan.members) or lanes < 4 or estimate(vector.extent) < lanes:
        return None
    for axis in plan.shared:
        if estimate(axis.extent) < lanes:
            continue
        if _transposed_bytes(plan, axis, vector):
            return axis
    return None


def _transposed_bytes(plan: CpuPlan, rows: Axis, vector: Axis) -> int:
    """The bytes of the widest element that is read transposed; 0: none is."""
    return max(
        (
            access.bytes
            for member in plan.members
            for op, access in member.reads.items()
            if isinstance(op, loop.ReadOp)
            and is_transposed(op, access, rows.name, vector.name)
        ),
        default=0,
    )


def _paired(members: Sequence[CpuMember], axis: Axis, lanes: int, cpu: TargetFeatures) -> int:
    """The lanes of two registers where members profit from them, else those of one."""
    cost = max(cost_of(m, cpu) for m in members)
    short = isinstance(axis.extent, int) and axis.extent < 2 * lanes
    if cpu.vector_bits > cpu.paired_bits or lanes == 1 or short or cost > cpu.heavy_body:
        return lanes
    return 2 * lanes


def _block_copies(
    members: Sequence[CpuMember], axis: Axis, lanes: int, cpu: TargetFeatures
) -> int:
    """Vectors carried through a reduction along another axis: many bytes of each row at once."""
    ordered = [m for m in members if m.red_axes or needs_order(m)]
    heavy = any(cost_of(m, cpu) > cpu.heavy_body // 4 for m in members)
    state = sum(o.result_count for m in ordered for o in m.compute.output_list)
    most = 8 if cpu.vector_bits >= 512 else 4
    copies = 2 if heavy or len(ordered) > 1 else max(1, most // max(state, 1))
    accesses = [(m, a) for m in members if needs_order(m) for a in m.accesses() if a.bytes]
    while copies > 1 and any(
        crowds(step_along(m, a, axis.name, lanes), a, lanes * copies, cpu) for m, a in accesses
    ):
        copies //= 2
    return _fitting(copies, axis, lanes)


def _fitting(copies: int, axis: Axis, lanes: int) -> int:
    """Fewer copies where the axis has fewer vectors; a power of two."""
    while copies & (copies - 1):
        copies &= copies - 1
    if isinstance(axis.extent, int):
        while copies > 1 and copies * lanes > axis.extent:
            copies //= 2
    return copies


def _own_vectors(
    member: CpuMember, axis: Axis, cpu: TargetFeatures, schedule: CpuSchedule
) -> None:
    bits = cpu.vector_bits
    lanes = lanes_for(member, axis, bits)
    schedule.vector_axis, schedule.lanes, schedule.copies = axis.name, lanes, 1
    schedule.tail = _tail([member], bits)
    _write_strided([member], axis, lanes, cpu, schedule)
    if axis.kind == "red":
        cost = cost_of(member, cpu)
        most = cpu.heavy_body if bits > cpu.paired_bits else cpu.light_body
        copies = 2 if cost > most else 4
        if cost <= cpu.light_body and estimate(axis.extent) >= cpu.long_row:
            copies = 8
        schedule.copies = _fitting(copies, axis, lanes)
    elif member.red_axes:
        schedule.copies = _block_copies([member], axis, lanes, cpu)
    elif all(a.kind == "par" for a in member.own):
        schedule.lanes = _paired([member], axis, lanes, cpu)


def _write_strided(
    members: Iterable[CpuMember], axis: Axis, lanes: int, cpu: TargetFeatures,
    schedule: CpuSchedule,
) -> None:  # fmt: skip
    """How far elements lie apart that are chosen from whole vectors, if any do."""
    steps = [
        abs(step) for m in members for a in m.accesses()
        if is_strided(step := step_along(m, a, axis.name, lanes), a, cpu)
    ]  # fmt: skip
    if max(steps, default=1) > 1:
        schedule.strided = max(steps)


def _tail(members: Iterable[CpuMember], bits: int) -> str:
    """Masks, but scalars for 8- and 16-bit elements where masked accesses of them are slow."""
    if bits >= 512:
        return "mask"
    narrow = any(0 < a.bytes < 4 for m in members for a in m.accesses())
    return "peel" if narrow else "mask"


def _outer_order(plan: CpuPlan, vector: Axis | None, block: bool) -> list[str]:
    """The shared axes by falling stride of the first array stored, the vector axis last."""
    others = [a for a in plan.shared if a is not vector]
    store = next((a for m in plan.members for g in m.stores.values() for a in g if a.bytes), None)
    if store is not None and len(others) > 1:
        strides = {a.name: coefficient(store.expression, a.name) for a in others}
        if all(s is not None for s in strides.values()):
            others.sort(key=lambda a: -estimate(strides[a.name] or 0))
    names = [a.name for a in others]
    return [*names, vector.name] if vector is not None and block else names


def _loop_order(member: CpuMember, vector_axis: str) -> list[str]:
    """Par axes, then combined ones, in order; the vector axis is last of its kind."""

    def place(axis: Axis) -> tuple[bool, bool]:
        return axis.kind != "par", axis.name == vector_axis

    if needs_order(member):
        return [a.name for a in member.own]
    return [a.name for a in sorted(member.own, key=place)]


__all__ = ["Schedule", "schedule_for_cpu"]
