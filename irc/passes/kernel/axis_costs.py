"""What a point of a member takes on a CPU with vectors along one of its axes, or without."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeGuard

from irc.analysis.cost import USUAL, op_cost
from irc.analysis.loop import estimate
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.symbols import coefficient, free_symbols, substitute
from irc.ir.types import FloatType, IntegerType, i1
from irc.passes.kernel.cpu.interleaved import operations_at, side_by_side
from irc.passes.kernel.cpu.plan import Access, Axis, CpuMember, lane_stride
from irc.target.cpu import TargetFeatures
from irc.target.speeds import Speeds


def cost_of(member: CpuMember, speeds: Speeds = USUAL) -> int:
    """The cost of one point: its operations, and one for each access."""
    body = sum(op_cost(op, speeds) for op in member.compute.block.ops)
    return 1 + int(body) + sum(1 for a in member.accesses() if a.bytes)


def varying_values(member: CpuMember, axis: str) -> set[Value]:
    """The body's values that differ along an axis."""
    varying: set[Value] = set()
    for op in member.compute.block.ops:
        if not op.results:
            continue
        access = member.reads.get(op)
        if access is not None and axis in free_symbols(access.expression):
            varying.add(op.results[0])
        elif any(o in varying for o in op.operands):
            varying.add(op.results[0])
    return varying


def widest_bits(member: CpuMember, varying: Iterable[Value]) -> int:
    """The widest type computed in along the vectors; positions and masks don't count."""
    widest = 0
    narrow = 64
    for value in varying:
        bits = _bits(value.type)
        if bits:
            widest = max(widest, bits)
    for output in member.compute.output_list:
        if output.accumulator is not None:
            widest = max(widest, _bits(output.accumulator))
    for group in member.stores.values():
        for access in group:
            if access.storage is not None and access.storage.kind != "register":
                narrow = min(narrow, 8 * access.bytes)
    return widest or narrow


def _bits(type_: Type) -> int:
    if isinstance(type_, FloatType | IntegerType) and type_ is not i1:
        return type_.width
    return 0


def lanes_for(member: CpuMember, axis: Axis, bits: int) -> int:
    """The lanes of the vectors along an axis: a register of the widest type, fewer for a short
    axis."""
    lanes = max(1, bits // widest_bits(member, varying_values(member, axis.name)))
    if isinstance(axis.extent, int):
        while lanes > 1 and lanes // 2 >= axis.extent:
            lanes //= 2
    return min(lanes, 64)


def axis_cost(member: CpuMember, axis: Axis, cpu: TargetFeatures) -> float:
    """The estimated cost of one point of a member with vectors along `axis`, in instructions."""
    lanes = lanes_for(member, axis, cpu.vector_bits)
    if lanes == 1:
        return scalar_cost(member, cpu)
    extent = estimate(axis.extent)
    full = max(extent, 1) / (-(-max(extent, 1) // lanes) * lanes)
    each = 1 / (lanes * full)
    between = side_by_side(member, axis.name, lanes)
    if between is not None:
        return _between_cost(member, axis, between, lanes, each, cpu)
    total = sum(op_cost(op, cpu) for op in member.compute.block.ops) * each
    ordered = needs_order(member)
    for access in member.accesses():
        if not access.bytes:
            continue
        step = step_along(member, access, axis.name, lanes)
        if step == 1:
            total += each * (2 if access.is_store else 1)
        elif is_strided(step, access, cpu):
            # So many loads, and choices of two; what is combined is read again for its neighbours.
            total += each * (4 if axis.kind == "red" else 2) * abs(step)
        elif step != 0:
            total += cpu.scatter if access.is_store else cpu.gather
            if access.is_store and ordered and combines(member):
                total += cpu.gather
            if not access.is_store and ordered and combines(member):
                total += cpu.walked
            # Other reads are whole lines where squares of them are transposed.
            alone = ordered or access.is_store or bool(access.positions)
            if alone and crowds(step, access, min(extent, lanes), cpu):
                total += cpu.aliased
        elif not access.is_store:
            total += each / 2
    if axis.kind == "red":
        # Lanes are combined once, when all loops over what is combined are through.
        points = math.prod(max(1, estimate(a.extent)) for a in member.own if a.kind == "red")
        total += cpu.horizontal * len(member.compute.output_list) / points
    return total


def _between_cost(
    member: CpuMember, axis: Axis, between: Axis, lanes: int, each: float, cpu: TargetFeatures
) -> float:
    """The same where the points of `between` are written out, for what is decided at each of them,
    and their vectors interleaved. each: of a vector's instruction, a point."""
    assert isinstance(between.extent, int)
    total, reads = 0.0, dict[tuple[object, object], float]()
    for point in range(between.extent):
        for op in operations_at(member, between.name, point):
            access = member.reads.get(op)
            if access is None or not access.bytes:
                total += op_cost(op, cpu)
                continue
            step = step_along(member, access, axis.name, lanes)
            cost = lanes * cpu.gather
            if step in (0, 1):
                cost = 1.0
            elif is_strided(step, access, cpu):
                cost = 2.0 * abs(step)
            place = substitute(access.expression, {between.name: point})
            reads[place, access.storage] = cost  # what several points read is read once
    stores = sum(len(group) for group in member.stores.values())
    return each * ((total + sum(reads.values())) / between.extent + 3 * stores)


def is_strided(step: object, access: Access, cpu: TargetFeatures) -> TypeGuard[int]:
    """Whether what is read lies so few elements apart that whole vectors are read."""
    apart = abs(step) if isinstance(step, int) else 0
    return not access.is_store and (step == -1 or 1 < apart <= cpu.strided)


def crowds(step: object, access: Access, points: int, cpu: TargetFeatures) -> bool:
    """Whether so many elements that lie so far apart fall on fewer sets of the first-level cache
    than have room for them."""
    if not isinstance(step, int) or not step:
        return False
    places = cpu.aliasing_bytes // math.gcd(step * access.bytes, cpu.aliasing_bytes)
    return points > cpu.aliasing_rows * places


def step_along(member: CpuMember, access: Access, axis: str, lanes: int) -> object:
    """The step of an access along an axis; None where it has no constant one."""
    if access.positions:
        varying = varying_values(member, axis)
        if any(v in varying for v in access.positions.values()):
            return None
    return lane_stride(access.expression, axis, lanes)


def scalar_cost(member: CpuMember, cpu: TargetFeatures) -> float:
    """The estimated cost of one point without vectors."""
    if needs_order(member) and member.own:
        return _ordered_cost(member, cpu)
    body = sum(op_cost(op, cpu) for op in member.compute.block.ops)
    return body + cpu.scalar * sum(1 for a in member.accesses() if a.bytes)


def _ordered_cost(member: CpuMember, cpu: TargetFeatures) -> float:
    """The same of a member that scatters: its innermost loop computes what differs along it, and
    elements that it doesn't read in order come from behind the first-level cache."""
    inner = member.own[-1].name
    varying = varying_values(member, inner)
    body: float = sum(
        op_cost(o, cpu) for o in member.compute.block.ops if varying.intersection(o.results)
    )
    for access in member.accesses():
        step = step_along(member, access, inner, 1)
        if not access.bytes or step == 0:
            continue
        body += cpu.scalar
        if access.is_store:
            body += cpu.scalar * combines(member)
        elif step != 1:
            body += cpu.aliased
    return body


def needs_order(member: CpuMember) -> bool:
    """Whether points must come one after the other along the member's own axes."""
    return any(o.kind == "scatter" for o in member.compute.output_list)


def keeps_order(member: CpuMember, axis: Axis) -> bool:
    """Whether vectors along one of a member's own axes combine points as one after the other does:
    nothing is scattered, or the innermost loop's lanes go to elements of their own."""
    if not needs_order(member):
        return True
    if axis is not member.own[-1]:
        return False
    stores = [a for a in member.accesses() if a.is_store]
    varying = varying_values(member, axis.name)
    if any(v in varying for a in stores for v in a.positions.values()):
        return False
    steps = [coefficient(a.expression, axis.name) for a in stores]
    return all(isinstance(step, int) and step for step in steps)


def combines(member: CpuMember) -> bool:
    """Whether what it scatters is combined with what is there."""
    outputs = member.compute.output_list
    return any(o.kind == "scatter" and o.combiner != "set" for o in outputs)


__all__ = [
    "axis_cost", "cost_of", "crowds", "is_strided", "keeps_order", "lanes_for", "needs_order",
    "scalar_cost", "step_along",
    "varying_values",
]  # fmt: skip
