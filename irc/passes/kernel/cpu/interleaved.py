"""Vectors that are interleaved before they are stored: the few points of an axis that lie side by
side where the points of the vectors' axis lie that many elements apart.

    y[i, 0], y[i, 1] = x[2*i]*c[i] - x[2*i + 1]*s[i], x[2*i]*s[i] + x[2*i + 1]*c[i]

With vectors along `i` and both points of the other axis written out, what both read is read once,
and whole vectors are stored: turned pairs of a rotary embedding, complex numbers, colors.
"""

from __future__ import annotations

from irc.dialects import loop
from irc.ir.core import Operation, Value
from irc.ir.symbols import coefficient
from irc.passes.kernel.cpu.emit import VectorScope
from irc.passes.kernel.cpu.plan import Axis, CpuMember, lane_stride
from irc.passes.kernel.cpu.spans import decide

MOST = 4
"""Points whose vectors are interleaved (`kernel.interleave`)."""


def side_by_side(member: CpuMember, vector: str, lanes: int) -> Axis | None:
    """A member's own axis, of a few points, along which all that it gives is stored element by
    element, between elements along the vectors; None where there is no such."""
    if len(member.own) != 1 or any(o.kind != "map" for o in member.compute.output_list):
        return None
    (axis,) = member.own
    if not isinstance(axis.extent, int) or not 2 <= axis.extent <= MOST:
        return None
    stores = [access for group in member.stores.values() for access in group]
    for access in stores:
        if access.storage is None or access.storage.kind != "argument" or access.positions:
            return None
        if coefficient(access.expression, axis.name) != 1:
            return None
        if lane_stride(access.expression, vector, lanes) != axis.extent:
            return None
    return axis if stores else None


def operations_at(member: CpuMember, axis: str, point: int) -> list[Operation]:
    """What a member's body computes at a point of an axis that is written out, where conditions on
    it are known, in order."""
    scope, alias = VectorScope(), dict[Value, Value]()
    scope.points = {axis: point}
    block = member.compute.block
    for op in block.ops:
        decided = None if isinstance(op, loop.YieldOp) else decide(op, "", scope)
        if isinstance(decided, bool):
            scope.known[op.results[0]] = decided
        elif decided is not None:
            alias[op.results[0]] = decided
    needed, stack = set[Operation](), list(member.compute.yield_op.operands)
    while stack:
        value = stack.pop()
        while value in alias:
            value = alias[value]
        maker = value.defining_op
        if value in scope.known or maker is None or maker.parent is not block or maker in needed:
            continue
        operands = list(maker.operands)
        if isinstance(maker, loop.ReadOp) and maker.mask in scope.known:
            other = [] if maker.other is None else [maker.other]
            if not scope.known[maker.mask]:
                stack += other
                continue
            operands = list(maker.positions)
        needed.add(maker)
        stack += operands
    return [op for op in block.ops if op in needed]


__all__ = ["MOST", "operations_at", "side_by_side"]
