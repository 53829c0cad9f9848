"""The pass `accumulate-scatters`."""

from __future__ import annotations

from typing import Any

from irc.dialects import graph
from irc.dialects.graph.canonical import full_value
from irc.ir.core import Value
from irc.ir.passes import register_pass
from irc.ir.rewrite.driver import pattern
from irc.ir.rewrite.passes import PatternPass
from irc.ir.types import i1


# add(x, put(0, v, i...)) -> put(x, v, i...), where nothing else reads the sums
@pattern(graph.Add, name="graph.accumulate_scatter", counted="accumulated")
def accumulate(add: Any, rw: Any) -> Any:
    scattered, into = operands_of(add)
    if scattered is None:
        return rw.no_match("no operand is sums scattered into zeros, for it alone")
    operands = [into, *scattered.operands[1:]]
    attributes, location = scattered.attributes, scattered.location
    rw.replace(add, type(scattered)(operands, [add.value.type], attributes, (), location))
    return True


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


@register_pass
class AccumulateScatters(PatternPass):
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
    patterns = (accumulate,)
