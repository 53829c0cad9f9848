"""The pass `convert-to-loop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irc.dialects import arith, func, graph, layout, loop, sym
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import BlockArgument, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import FloatType
from irc.passes.loop.convert_to_loop.support import TO_LOOP, ComputeBuilder, element_of

# What has no reason to stay without users.
REMOVABLE = (loop.ComputeOp, layout.ViewOp, graph.Constant, graph.Pack)


@register_pass
class ConvertToLoop(Pass):
    """Turns every op of the graph level into `loop.compute`, but for calls and what the host does.

    A view becomes a compute that reads its source (for the computes among its users) and, where
    a call, a return or the host wants it, a `layout.view`.

    Before:
        %y = graph.add %a, %b : tensor<[4] x f32, strides [1]>
    After:
        %y = loop.compute par(i0: 4) -> map {
          %0 = loop.read %a[i0] : f32
          %1 = loop.read %b[i0] : f32
          %2 = arith.addf %0, %1 : f32
          loop.yield %2 }
    """

    name = "convert-to-loop"
    summary = "turn graph ops into computes over named axes"
    anchor = "func.func"
    preserves = "real"
    conversion = TO_LOOP

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        converted = TO_LOOP.apply(op.block.ops, _LoopConversion())
        for inner in op.block.reversed_ops:
            if isinstance(inner, REMOVABLE) and all(r._users is None for r in inner.results):
                inner.erase()
        op.attributes["level"] = A.StringAttr("loop")
        context.count("converted", converted)


class _LoopConversion:
    """One function under conversion.

    `handles` has, for a value that computes read, the value that shares the memory of the view
    that it stands for; a value without an entry is its own handle.
    """

    def __init__(self) -> None:
        self.handles: dict[Value, Value] = {}
        self.roundings = 0

    def convert(self, op: Operation, converter: Callable[[ComputeBuilder, Any], None]) -> None:
        """What the converter makes of an operation takes its place."""
        builder = ComputeBuilder(Builder.before(op), op, self.handles)
        converter(builder, op)
        if isinstance(op, graph.Cast) and _is_rounding(op):
            self._number_rounding(builder.results[0])
        for old, new in zip(op.results, builder.results, strict=True):
            handle = self.handles.get(new)
            if handle is None or handle.name_hint is None:
                new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        op.erase()

    def _number_rounding(self, array: Value) -> None:
        compute = array.defining_op
        assert isinstance(compute, loop.ComputeOp)
        narrowing = compute.yield_op.values[0].defining_op
        if isinstance(narrowing, arith.TruncFOp):
            narrowing.attributes["rounding"] = A.IntegerAttr(self.roundings)
            self.roundings += 1

    def failed(self, op: Operation) -> None:
        """What uses the results finds them where they were."""

    def keep(self, op: Operation) -> None:
        """What stays reads memory: through handles."""
        source = op._operands[0] if isinstance(op, sym.RefineOp) else None
        for position, operand in enumerate(op.operands):
            handle = self.handles.get(operand)
            if handle is not None:
                op.set_operand(position, handle)
        if source is not None and not isinstance(source, BlockArgument):
            # Computes read through it, so that they can fuse with what it refines.
            refined: Any = op.results[0]
            builder = ComputeBuilder(Builder.after(op), op, self.handles)
            read = builder.map(lambda body, at: body.read(source, at), refined.type)
            refined.replace_all_uses_with(read)
            self.handles[read] = refined


def _is_rounding(op: graph.Cast) -> bool:
    """Whether a cast narrows a float to 16 bits for more than one reader, or for a view."""
    element = element_of(op.results[0])
    users = list(op.results[0].users)
    alone = len(users) == 1 and isinstance(users[0], graph.Cast | func.ReturnOp)
    return isinstance(element, FloatType) and element.width == 16 and not alone
