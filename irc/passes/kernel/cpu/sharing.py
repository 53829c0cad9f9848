"""Memory that inputs and outputs of a kernel may share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from irc.dialects import loop
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.symbols import symbol
from irc.ir.types import TensorType, element_bytes
from irc.passes.kernel.cpu.plan import CpuMember, CpuPlan, strides_of


def inplace_pairs(plan: CpuPlan) -> list[int]:
    """Flat (input position, output position) pairs of arrays that may be one: each read of the
    input is at the very point that the output's element belongs to, and none comes after the
    member that writes it. Call it before axes collapse."""
    pairs: list[int] = []
    first = len(plan.inputs)
    writers = {value: k for k, m in enumerate(plan.members) for value in _written(plan, m)}
    outputs: dict[Any, list[tuple[int, int]]] = {}
    updates: dict[Value, set[int]] = {}
    numbers = {output: number for number, output in enumerate(plan.outputs)}
    for output, number in numbers.items():
        if output in writers:
            outputs.setdefault(memory_of(output.type), []).append((number, writers[output]))
    for source, target in plan.updates:
        updates.setdefault(source, set()).add(numbers[target])
    reads = _pointwise_reads(plan)
    for position, value in enumerate(plan.inputs):
        candidates = set(updates.get(value, ()))
        if value in reads:
            alike = outputs.get(memory_of(value.type), ())
            candidates.update(number for number, writer in alike if reads[value] <= writer)
        for number in sorted(candidates):
            pairs += [position, first + number]
    return pairs


def _written(plan: CpuPlan, member: CpuMember) -> Iterable[Value]:
    """The arrays that a member writes element by element at its own points."""
    op = member.compute
    for number, output in enumerate(op.output_list):
        if output.kind in ("map", "scan"):
            for result in op.results_of(number):
                for access in member.stores[result]:
                    if access.storage is not None and access.storage.kind == "argument":
                        yield access.storage.value


def _pointwise_reads(plan: CpuPlan) -> dict[Value, int]:
    """The arrays that all members read at their own points only, each with its last reader.

    What is computed once reads at any time: one call may do so when another has written.
    """
    last: dict[Value, int] = {}
    elsewhere = {read.source for member in plan.once for read in member.compute.reads}
    for number, member in enumerate(plan.members):
        axes = tuple(symbol(a.name) for a in member.compute.axis_list)
        for op in member.reads:
            if isinstance(op, loop.ReadOp):
                last[op.source] = number
                if tuple(op.indices) != axes:
                    elsewhere.add(op.source)
    return {value: number for value, number in last.items() if value not in elsewhere}


def memory_of(type_: Type) -> Any:
    """Equal for arrays of equal sizes, strides and element widths."""
    assert isinstance(type_, TensorType)
    return type_.shape, strides_of(type_), element_bytes(type_.element)
