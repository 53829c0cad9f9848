"""How a gpu kernel's members are rows: the second step of a plan.

The rows of a kernel are the axes that all members share (of a lone compute: its par axes); rows
are spread over program instances. The other axes of a member are its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from irc.analysis.loop import offset_of, strides_of
from irc.dialects import loop
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.symbols import (
    Dim,
    Range,
    dim_product,
    dim_sum,
    free_symbols,
    range_of,
    symbol,
)
from irc.ir.traits import Jumps
from irc.ir.types import element_bytes
from irc.passes.kernel.plan.plan import Plan

INDEX_LIMIT = (1 << 31) - (1 << 20)
"""Below this, indices with the slack of a tile stay in 32 bits."""


@attrs.define(eq=False)
class GpuMember:
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
            operands = op.operands[1:] if isinstance(op, loop.ReadOp) else op.operands
            pending += [value.defining_op for value in operands]
        return needed


@attrs.frozen(eq=False)
class Origin:
    """Which value of which member an array is: output number, and part of its results."""

    member: GpuMember
    output: int
    part: int

    @property
    def attr(self) -> loop.ResultAttr:
        """The output."""
        return self.member.compute.output_list[self.output]

    def is_output(self, member: GpuMember, number: int) -> bool:
        """Whether it is of output `number` of a member."""
        return self.member is member and self.output == number


@attrs.define(eq=False)
class GpuPlan:
    """A kernel to be. `rows`: the sizes of its row axes; the rest is as in `flat`."""

    flat: Plan
    rows: list[Dim]
    members: list[GpuMember]
    origins: dict[Value, Origin]

    @property
    def op(self) -> Operation:
        """The compute or group."""
        return self.flat.op

    @property
    def inputs(self) -> list[Value]:
        """The arrays read."""
        return self.flat.inputs

    @property
    def outputs(self) -> list[tuple[Value, Value]]:
        """(result of `op`, the member's value)."""
        return self.flat.outputs

    def has_steps_behind(self, member: GpuMember, op: Operation) -> bool:
        """Whether a body has a function with steps that may be of what an operation of a member
        gives, which could make much of its last bit: behind it, or in a member that follows."""
        later = self.members[self.members.index(member) + 1 :]
        bodies = [list(m.compute.block.ops) for m in later]
        own = list(member.compute.block.ops)
        bodies.append(own[own.index(op) + 1 :])
        return any(Jumps in each.traits for body in bodies for each in body)

    def origin(self, source: Value) -> Origin | None:
        """Where a local array comes from; None for an input."""
        return self.origins.get(self.flat.alias.get(source, source))


def plan_for_gpu(flat: Plan) -> GpuPlan:
    """The plan of a kernel for a gpu. Raises InvalidIR."""
    if flat.once:
        raise InvalidIR("on a gpu nothing is computed once; the pass 'schedule' puts it where it "
                        "is read", op=flat.once[0])  # fmt: skip
    computes = [member.compute for member in flat.members]
    if any(init.defining_op in computes for compute in computes for init in compute.inits):
        raise InvalidIR("on a gpu no member goes on with an array that another one began",
                        op=flat.op)  # fmt: skip
    members = [GpuMember(m.compute, list(m.shared), list(m.own)) for m in flat.members]
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
    plan = GpuPlan(flat, rows, members, origins)
    _find_phases(plan)
    return plan


def _widen_rows(members: list[GpuMember]) -> None:
    """Where all members have equal own axes, all par, those become rows: a pointwise kernel."""
    own = [tuple(a.extent for a in m.own) for m in members]
    if len(set(own)) == 1 and all(a.kind == "par" for m in members for a in m.own):
        for member in members:
            member.rows += [a.name for a in member.own]
            member.own = []


def _fold_par_axes(members: list[GpuMember]) -> list[Dim]:
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


def _find_phases(plan: GpuPlan) -> None:
    """A member's phase: how many reductions over own axes must be done before it."""
    for member in plan.members:
        for read in member.compute.reads:
            origin = plan.origin(read.source)
            if origin is not None:
                done = origin.attr.kind == "reduce" and bool(origin.member.own)
                member.phase = max(member.phase, origin.member.phase + int(done))


def stored_axes(compute: loop.ComputeOp, output: loop.ResultAttr) -> list[Dim]:
    """The axes that index a map, reduce or scan result."""
    reduced = output.kind == "reduce"
    return [symbol(a.name) for a in compute.axis_list if not (reduced and a.kind == "red")]


def reads_in_memory(plan: GpuPlan) -> Iterator[tuple[GpuMember, loop.ReadOp]]:
    """What members read of arrays in memory."""
    for member in plan.members:
        for read in member.compute.reads:
            if plan.origin(read.source) is None:
                yield member, read


def accesses(plan: GpuPlan) -> Iterator[tuple[GpuMember, Dim, int, bool]]:
    """(member, offset over its axes, bytes of an element, whether stored) of arrays in memory."""
    type_: Any
    for member, read in reads_in_memory(plan):
        type_ = read.source.type
        yield member, offset_of(read.indices, type_), element_bytes(type_.element), False
    for result, value in plan.outputs:
        origin = plan.origin(value)
        if origin is not None and origin.attr.kind != "scatter":
            axes = stored_axes(origin.member.compute, origin.attr)
            type_ = result.type
            yield origin.member, offset_of(axes, type_), element_bytes(type_.element), True


def symbols_of(plan: GpuPlan) -> list[str]:
    """The symbols of sizes, strides and indices that a kernel is given, by name."""
    dims: list[Any] = list(plan.rows)
    local: set[str] = set()
    for member in plan.members:
        compute = member.compute
        local.update(a.name for a in compute.axis_list)
        dims += [a.extent for a in compute.axis_list]
        for inner in compute.block.ops:
            if isinstance(inner, loop.ReadOp):
                dims += inner.indices
            elif isinstance(inner, loop.IndexOp):
                dims.append(inner.expression)
        for output in compute.output_list:
            dims += [] if output.indices is None else list(output.indices)
    for value in [*plan.inputs, *(r for r, _ in plan.outputs)]:
        type_: Any = value.type
        dims += [*type_.shape, *strides_of(type_)]
    names = {n for d in dims for n in free_symbols(d)} - local
    return sorted(n for n in names if not (n[0] == "_" and n[1:].isdigit()))


def fits_32_bits(plan: GpuPlan, ranges: Mapping[str, Range]) -> bool:
    """Whether every offset and position of the kernel is known to stay in 32 bits."""
    spans: list[Dim] = []
    for value in [*plan.inputs, *(result for result, _ in plan.outputs)]:
        type_: Any = value.type
        sizes = zip(type_.shape, strides_of(type_), strict=True)
        spans.append(dim_sum([size * _magnitude(stride) for size, stride in sizes]))
    for member in plan.members:
        spans.append(dim_product([*plan.rows, *(a.extent for a in member.own)]))
    most = [s if isinstance(s, int) else range_of(s, ranges).hi for s in spans]
    return all(m is not None and m < INDEX_LIMIT for m in most)


def _magnitude(stride: Dim) -> Dim:
    return abs(stride) if isinstance(stride, int) else stride


__all__ = [
    "GpuMember", "GpuPlan", "Origin", "accesses", "fits_32_bits", "offset_of", "plan_for_gpu",
    "stored_axes", "strides_of", "symbols_of",
]  # fmt: skip
