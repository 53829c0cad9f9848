"""What a kernel computes: one flattening of a compute or group, for every target.

A plan is flat: the axes that its members share (a group's, or the par axes of a lone compute), the
members in order, and the arrays that come in and go out. How rows are tiled on a gpu
(`gpu.plan`), or where arrays live and how indices become offsets on a cpu (`cpu.plan`), is a
second step.
"""

from __future__ import annotations

import attrs

from irc.dialects import loop
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.passes.kernel.plan.updates import goes_on, is_undefined, scatters_of


@attrs.define(eq=False)
class Member:
    """A compute of a kernel. `shared`: the names of its axes that all members share; `own`: its
    other axes."""

    compute: loop.ComputeOp
    shared: list[str]
    own: list[loop.AxisAttr]


@attrs.define(eq=False)
class Plan:
    """A kernel to be.

    axes: shared by all members. once: what is computed once, before the first point of the axes,
    and has axes of its own alone. inputs: the arrays that are read, in the order of the kernel's
    arguments. outputs: (result of `op`, the member's value that it holds), in their order.
    initialized: (input, result) of scatters: the result holds the input's elements already.
    alias: the members' values that the results of nested groups are. carried: what walks carry.
    """

    op: Operation
    axes: list[loop.AxisAttr]
    members: list[Member]
    inputs: list[Value]
    outputs: list[tuple[Value, Value]]
    initialized: list[tuple[Value, Value]]
    alias: dict[Value, Value]
    once: list[loop.ComputeOp]
    carried: list[loop.LoopCarried] = attrs.field(factory=list)

    @property
    def is_lone(self) -> bool:
        """Whether it is of one compute, in no group."""
        return isinstance(self.op, loop.ComputeOp)


def flatten(op: Operation) -> Plan:
    """The plan of a top-level `loop.compute` or `loop.group`. Raises InvalidIR."""
    computes: list[loop.ComputeOp] = []
    once: list[loop.ComputeOp] = []
    alias: dict[Value, Value] = {}
    carried: list[loop.LoopCarried] = []
    outputs: list[tuple[Value, Value]]
    if isinstance(op, loop.GroupOp):
        _collect(op, computes, once, alias, carried)
        if not computes:
            raise InvalidIR("a loop.group without a loop.compute that has its axes", op=op)
        axes = list(op.axis_list)
        yielded = [alias.get(v, v) for v in op.yield_op.values]
        outputs = list(zip(op.results, yielded, strict=True))
    elif isinstance(op, loop.ComputeOp):
        computes.append(op)
        axes = [a for a in op.axis_list if a.kind == "par"]
        outputs = [(r, r) for r in op.results]
    else:
        raise InvalidIR(f"'{op.name}' is no loop.compute or loop.group", op=op)
    names = [a.name for a in axes]
    members = [Member(c, names, [a for a in c.axis_list if a.name not in names]) for c in computes]
    inputs = _inputs(op, [*once, *computes], alias)
    results = {value: result for result, value in reversed(outputs)}
    inside = {result for compute in computes for result in compute.results}
    initialized = [
        (init, results[result])
        for compute in computes
        for number, init in scatters_of(compute)
        if not is_undefined(init) and init not in inside
        for result in compute.results_of(number)
        if result in results
    ]
    return Plan(op, axes, members, inputs, outputs, initialized, alias, once, carried)


def _collect(
    op: loop.GroupOp,
    computes: list[loop.ComputeOp],
    once: list[loop.ComputeOp],
    alias: dict[Value, Value],
    carried: list[loop.LoopCarried],
) -> None:
    for inner in op.block.ops:
        if isinstance(inner, loop.ComputeOp):
            (once if op.is_once(inner) else computes).append(inner)
        elif isinstance(inner, loop.GroupOp):
            # What a walk carries is one array, in the memory of what it begins with.
            alias |= {value: alias.get(each.init, each.init) for each in inner.carried
                      for value in (each.argument, each.result)}  # fmt: skip
            carried += inner.carried
            _collect(inner, computes, once, alias, carried)
            if inner.carried:
                continue
            for result, value in zip(inner.results, inner.yield_op.values, strict=True):
                alias[result] = alias.get(value, value)
        elif not isinstance(inner, loop.YieldOp):
            raise InvalidIR(f"'{inner.name}' can't be inside a loop.group", op=inner)


def _inputs(
    op: Operation, computes: list[loop.ComputeOp], alias: dict[Value, Value]
) -> list[Value]:
    """The arrays read that no member makes, each once; what a scatter starts from first."""
    results = {result for compute in computes for result in compute.results}
    inputs: dict[Value, None] = {}
    for compute in computes:
        for init in compute.inits:
            if alias.get(init, init) in results:
                if not goes_on(init):
                    raise InvalidIR("scatters into an array of the same group", op=op)
            elif not is_undefined(init):
                inputs.setdefault(init)
        for read in compute.reads:
            if alias.get(read.source, read.source) not in results:
                inputs.setdefault(read.source)
    return list(inputs)
