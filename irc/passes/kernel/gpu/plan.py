"""What a gpu kernel computes: its members, their spaces, and the arrays that they read and write.

The rows of a kernel are the axes that all members share (of a lone compute: its par axes); rows
are spread over program instances. The other axes of a member are its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from irc.dialects import loop
from irc.ir.attributes import Type
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import (
    Dim,
    Range,
    dim_product,
    dim_sum,
    range_of,
    symbol,
)
from irc.ir.traits import Jumps
from irc.ir.types import TensorType, contiguous_strides, element_bytes

INDEX_LIMIT = (1 << 31) - (1 << 20)
"""Below this, indices with the slack of a tile stay in 32 bits."""


@attrs.define(eq=False)
class Member:
    """A compute of the kernel.

    `rows`: the names of its axes that are the kernel's rows, one each; `folded`: axes that
    together are one more row axis; `own`: its other axes.
    """

    compute: loop.ComputeOp
    rows: list[str]
    own: list[loop.AxisAttr]
    folded: list[loop.AxisAttr] = attrs.field(factory=list)
    phase: int = 0

    @property
    def row_names(self) -> list[str]:
        """The names of all axes that belong to rows."""
        return [*self.rows, *(a.name for a in self.folded)]

    @property
    def tiled(self) -> list[loop.AxisAttr]:
        """The own axes that a tile spans: all, or the par ones where the others are combined
        point by point."""
        kinds = {a.kind for a in self.own}
        if len(kinds) > 1 and "par" in kinds:
            return [a for a in self.own if a.kind == "par"]
        return self.own

    @property
    def points(self) -> Dim:
        """How many points the tiled axes have."""
        return dim_product([a.extent for a in self.tiled])

    def needed_for(self, output: int) -> set[Operation]:
        """The operations of the body that what it yields for an output depends on."""
        needed: set[Operation] = set()
        pending = [self.compute.yield_op.values[output].defining_op]
        while pending:
            op = pending.pop()
            if op is None or op in needed:
                continue
            needed.add(op)
            operands = op._operands[1:] if isinstance(op, loop.ReadOp) else op._operands
            pending += [value.defining_op for value in operands]
        return needed


@attrs.frozen(eq=False)
class Origin:
    """Which value of which member an array is: output number, and part of its results."""

    member: Member
    output: int
    part: int

    @property
    def attr(self) -> loop.ResultAttr:
        """The output."""
        return self.member.compute.output_list[self.output]


@attrs.define(eq=False)
class Plan:
    """A kernel to be. `inputs`: arrays read; `outputs`: (result of `op`, the member's value)."""

    op: Operation
    rows: list[Dim]
    members: list[Member]
    inputs: list[Value]
    outputs: list[tuple[Value, Value]]
    alias: dict[Value, Value]
    origins: dict[Value, Origin]

    @property
    def steps(self) -> bool:
        """Whether a body has a function with steps, which could make much of the last bit."""
        return any(Jumps in op.traits for m in self.members for op in m.compute.block.ops)

    def origin(self, source: Value) -> Origin | None:
        """Where a local array comes from; None for an input."""
        return self.origins.get(self.alias.get(source, source))


def make_plan(op: Operation) -> Plan:
    """The plan of a top-level `loop.compute` or `loop.group`. Raises InvalidIR."""
    computes: list[loop.ComputeOp] = []
    alias: dict[Value, Value] = {}
    outputs: list[tuple[Value, Value]]
    if isinstance(op, loop.GroupOp):
        _collect(op, computes, alias)
        shared = len(op.axis_list)
        yielded = [alias.get(v, v) for v in op.yield_op.values]
        outputs = list(zip(op.results, yielded, strict=True))
    elif isinstance(op, loop.ComputeOp):
        computes.append(op)
        shared = 0
        outputs = [(r, r) for r in op.results]
    else:
        raise InvalidIR(f"'{op.name}' is no loop.compute or loop.group", op=op)
    members = [_member(c, shared if isinstance(op, loop.GroupOp) else None) for c in computes]
    _widen_rows(members)
    first = members[0]
    extents = {a.name: a.extent for a in first.compute.axis_list}
    rows = [extents[name] for name in first.rows]
    rows += _fold_par_axes(members)
    origins: dict[Value, Origin] = {}
    for member in members:
        for number in range(len(member.compute.output_list)):
            for part, result in enumerate(member.compute.results_of(number)):
                origins[result] = Origin(member, number, part)
    plan = Plan(op, rows, members, [], outputs, alias, origins)
    _find_inputs(plan)
    _find_phases(plan)
    return plan


def _collect(
    op: loop.GroupOp, computes: list[loop.ComputeOp], alias: dict[Value, Value]
) -> None:
    for inner in op.block.ops:
        if isinstance(inner, loop.ComputeOp):
            computes.append(inner)
        elif isinstance(inner, loop.GroupOp):
            _collect(inner, computes, alias)
            for result, value in zip(inner.results, inner.yield_op.values, strict=True):
                alias[result] = alias.get(value, value)
        elif not isinstance(inner, loop.YieldOp):
            raise InvalidIR(f"'{inner.name}' can't be inside a loop.group", op=inner)
    if not computes:
        raise InvalidIR("a loop.group without a loop.compute", op=op)


def _member(compute: loop.ComputeOp, shared: int | None) -> Member:
    axes = compute.axis_list
    if shared is None:
        rows = [a.name for a in axes if a.kind == "par"]
    else:
        rows = [a.name for a in axes[:shared]]
    return Member(compute, rows, [a for a in axes if a.name not in rows])


def _widen_rows(members: list[Member]) -> None:
    """Where all members have equal own axes, all par, those become rows: a pointwise kernel."""
    own = [tuple(a.extent for a in m.own) for m in members]
    if len(set(own)) == 1 and all(a.kind == "par" for m in members for a in m.own):
        for member in members:
            member.rows += [a.name for a in member.own]
            member.own = []


def _fold_par_axes(members: list[Member]) -> list[Dim]:
    """Where all members have equally many points along own par axes, those fold into one more
    row axis (its extent is given): a reduction beside them then has a row for each."""
    par = [[a for a in m.own if a.kind == "par"] for m in members]
    sizes = {dim_product([a.extent for a in axes]) for axes in par}
    mixed = any(len({a.kind for a in m.own} | {"par"}) > 1 for m in members)
    if len(sizes) != 1 or not mixed or not any(par):
        return []
    for member, axes in zip(members, par, strict=True):
        member.folded = axes
        member.own = [a for a in member.own if a.kind != "par"]
    return list(sizes)


def _find_inputs(plan: Plan) -> None:
    seen: dict[Value, None] = {}
    for member in plan.members:
        for read in member.compute.reads:
            if plan.origin(read.source) is None:
                seen.setdefault(read.source)
        for init in member.compute.inits:
            if plan.origin(init) is not None:
                raise InvalidIR("scatters into an array of the same group", op=plan.op)
            seen.setdefault(init)
    plan.inputs = list(seen)


def _find_phases(plan: Plan) -> None:
    """A member's phase: how many reductions over own axes must be done before it."""
    for member in plan.members:
        for read in member.compute.reads:
            origin = plan.origin(read.source)
            if origin is not None:
                done = origin.attr.kind == "reduce" and bool(origin.member.own)
                member.phase = max(member.phase, origin.member.phase + int(done))


def strides_of(type_: Type) -> Sequence[Dim]:
    """The strides of an array; row-major where its type has none."""
    assert isinstance(type_, TensorType)
    return contiguous_strides(type_.shape) if type_.strides is None else type_.strides


def offset_of(indices: Sequence[Any], type_: Type) -> Dim:
    """The element offset of an index into an array."""
    return dim_sum([d * s for d, s in zip(indices, strides_of(type_), strict=True)])


def stored_axes(compute: loop.ComputeOp, output: loop.ResultAttr) -> list[Dim]:
    """The axes that index a map, reduce or scan result."""
    reduced = output.kind == "reduce"
    return [symbol(a.name) for a in compute.axis_list if not (reduced and a.kind == "red")]


def accesses(plan: Plan) -> Iterator[tuple[Member, Dim, int, bool]]:
    """(member, offset over its axes, bytes of an element, whether stored) of arrays in memory."""
    for member in plan.members:
        for read in member.compute.reads:
            if plan.origin(read.source) is None:
                kind: Any = read.source.type
                yield member, offset_of(read.indices, kind), element_bytes(kind.element), False
    for result, value in plan.outputs:
        origin = plan.origin(value)
        if origin is not None and origin.attr.kind != "scatter":
            axes = stored_axes(origin.member.compute, origin.attr)
            kind = result.type
            yield origin.member, offset_of(axes, kind), element_bytes(kind.element), True


def fits_32_bits(plan: Plan, ranges: Mapping[str, Range]) -> bool:
    """Whether every offset and position of the kernel is known to stay in 32 bits."""
    spans: list[Dim] = []
    for value in [*plan.inputs, *(result for result, _ in plan.outputs)]:
        kind: Any = value.type
        sizes = zip(kind.shape, strides_of(kind), strict=True)
        spans.append(dim_sum([size * _magnitude(stride) for size, stride in sizes]))
    for member in plan.members:
        spans.append(dim_product([*plan.rows, *(a.extent for a in member.own)]))
    most = [s if isinstance(s, int) else range_of(s, ranges).hi for s in spans]
    return all(m is not None and m < INDEX_LIMIT for m in most)


def _magnitude(stride: Dim) -> Dim:
    return abs(stride) if isinstance(stride, int) else stride


__all__ = [
    "Member", "Origin", "Plan", "accesses", "fits_32_bits", "make_plan", "offset_of",
    "stored_axes", "strides_of",
]  # fmt: skip
