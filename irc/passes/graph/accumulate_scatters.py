"""The pass `accumulate-scatters`."""

from __future__ import annotations

from typing import Any

from irc.dialects import func, graph
from irc.dialects.graph_canonical import full_value
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import i1


@register_pass
class AccumulateScatters(Pass):
    """Scatters sums into the array that they are added to, not into zeros.

    The gradient of a weight that an embedding and a product share is such a sum: instead of
    filling an array of its size with zeros and adding all of it, only the rows that were looked
    up are touched. The sums are the same, their terms are added in another order.

    Before:
        %z = graph.full {value = 0.0 : f32} : tensor<9x4xf32>
        %p = graph.put %z, %v, %i {combiner = "sum", ...} : ... -> tensor<9x4xf32>
        %y = graph.add %x, %p : (tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<9x4xf32>
    After:
        %y = graph.put %x, %v, %i {combiner = "sum", ...} : ... -> tensor<9x4xf32>
    """

    name = "accumulate-scatters"
    summary = "scatter sums into the array that they are added to"
    anchor = "func.func"
    preserves = "real"

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        for add in op.block.ops:
            if isinstance(add, graph.Add):
                scattered, other = operands_of(add)
                if scattered is not None:
                    accumulate(add, scattered, other)
                    context.count("accumulated")


def operands_of(add: Any) -> tuple[graph.Put | graph.Scatter | None, Value]:
    """The operand that is sums scattered into zeros, for this addition alone, and the other one."""
    for value, other in ((add.lhs, add.rhs), (add.rhs, add.lhs)):
        maker = value.defining_op
        if (
            isinstance(maker, graph.Put | graph.Scatter)
            and maker.combiner == "sum"
            and value.use_count == 1
            and full_value(maker.source) == 0
            and value.type.element is not i1  # type: ignore[attr-defined]
        ):
            return maker, other
    return None, add.lhs


def accumulate(add: Any, scattered: graph.Put | graph.Scatter, into: Value) -> None:
    """Replace the addition by the scatter, into `into`."""
    cls, operands = type(scattered), [into, *scattered._operands[1:]]
    made = cls(operands, [add.value.type], scattered.attributes, (), scattered.location)
    Builder.before(add).insert(made)
    add.value.replace_all_uses_with(made.results[0])
    add.erase()
    zeros = scattered.source.defining_op
    scattered.erase()
    while zeros is not None and not any(r.has_uses for r in zeros.results):
        following = zeros._operands[0].defining_op if zeros._operands else None
        zeros.erase()
        zeros = following
