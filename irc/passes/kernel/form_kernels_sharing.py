"""Memory that inputs and outputs of a kernel may share."""

from __future__ import annotations

from collections.abc import Iterable

from irc.dialects import loop
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.ir.symbols import symbol
from irc.ir.types import TensorType, element_bytes
from irc.passes.kernel.form_kernels_plan import Member, Plan, strides_of


def inplace_pairs(plan: Plan) -> list[int]:
    """Flat (input position, output position) pairs of arrays that may be one: each read of the
    input is at the very point that the output's element belongs to, and none comes after the
    member that writes it. Call it before axes collapse."""
    pairs: list[int] = []
    first = len(plan.inputs)
    writers = {value: k for k, m in enumerate(plan.members) for value in _written(plan, m)}
    for position, value in enumerate(plan.inputs):
        last = _last_pointwise_read(plan, value)
        for number, output in enumerate(plan.outputs):
            writer = writers.get(output)
            same = same_memory(value.type, output.type)
            if (value, output) in plan.initialized:
                pairs += [position, first + number]
            elif last is not None and writer is not None and same and last <= writer:
                pairs += [position, first + number]
    return pairs


def _written(plan: Plan, member: Member) -> Iterable[Value]:
    """The arrays that a member writes element by element at its own points."""
    op = member.compute
    for number, output in enumerate(op.output_list):
        if output.kind in ("map", "scan"):
            for result in op.results_of(number):
                for access in member.stores[result]:
                    if access.storage is not None and access.storage.kind == "argument":
                        yield access.storage.value


def _last_pointwise_read(plan: Plan, value: Value) -> int | None:
    """The last member that reads an array, if all do so at their own point only."""
    last = None
    for number, member in enumerate(plan.members):
        axes = tuple(symbol(a.name) for a in member.compute.axis_list)
        for op in member.reads:
            if isinstance(op, loop.ReadOp) and op.source is value:
                if tuple(op.indices) != axes:
                    return None
                last = number
    return last


def same_memory(a: Type, b: Type) -> bool:
    """Whether two arrays have equal sizes, strides and element widths."""
    assert isinstance(a, TensorType) and isinstance(b, TensorType)
    return (
        a.shape == b.shape
        and strides_of(a) == strides_of(b)
        and element_bytes(a.element) == element_bytes(b.element)
    )
