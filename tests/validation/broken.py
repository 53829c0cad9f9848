"""Passes that are wrong, each in its own way; the checker has to find out."""

from __future__ import annotations

from irc.dialects import graph
from irc.ir.builder import Builder
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass


def first(module: Operation, name: str) -> Operation:
    """The first operation of that name."""
    return next(op for op in module.walk() if op.name == name)


@register_pass
class SwapOperands(Pass):
    """Turns x - y into y - x."""

    name = "test-swap-operands"
    summary = "swap the operands of a subtraction"
    anchor = "any"

    def run(self, op: Operation, context: PassContext) -> None:
        found = first(op, "graph.sub")
        found.operands = list(reversed(found.operands))


@register_pass
class Reassociate(Pass):
    """Turns (x + y) + z into x + (y + z), which rounds differently."""

    name = "test-reassociate"
    summary = "reassociate an addition"

    def run(self, op: Operation, context: PassContext) -> None:
        outer = [o for o in op.walk() if o.name == "graph.add"][1]
        inner = outer.operands[0].defining_op
        x, y = inner.operands
        inner.operands = [y, outer.operands[1]]
        outer.operands = [x, inner.results[0]]


@register_pass
class ReassociateReal(Reassociate):
    """The same, honest about it."""

    name = "test-reassociate-real"
    summary = "reassociate an addition, as real numbers"
    preserves = "real"


@register_pass
class Rename(Pass):
    """Changes the text and nothing else."""

    name = "test-rename"
    summary = "rename a value"

    def run(self, op: Operation, context: PassContext) -> None:
        first(op, "graph.add").results[0].name_hint = "renamed"


@register_pass
class DoNothing(Pass):
    """Does nothing."""

    name = "test-nothing"
    summary = "do nothing"

    def run(self, op: Operation, context: PassContext) -> None:
        return


@register_pass
class ClipPositions(Pass):
    """Wrong only from the fourth position on: positions are clipped at 2."""

    name = "test-clip-positions"
    summary = "clip positions at 2"

    def run(self, op: Operation, context: PassContext) -> None:
        iota = first(op, "graph.iota")
        builder = Builder.after(iota)
        two = builder.value(graph.Full, result_types=[iota.results[0].type], value=2)
        low = builder.value(graph.Minimum, iota.results[0], two)
        iota.results[0].replace_uses_if(low, lambda user: user is not low.defining_op)


@register_pass
class DropBound(Pass):
    """Returns undefined memory in place of the sum."""

    name = "test-undefined"
    summary = "give undefined elements"

    def run(self, op: Operation, context: PassContext) -> None:
        add = first(op, "graph.add")
        made = Builder.before(add).value(graph.Undefined, result_types=add.result_types)
        add.replace_with([made])
