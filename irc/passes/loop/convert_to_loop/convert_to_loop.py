"""The pass `convert-to-loop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irc.analysis.loop import array_bytes, points
from irc.dialects import arith, func, graph, layout, loop, sym
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import BlockArgument, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import FloatType
from irc.passes.loop.convert_to_loop.support import LIBRARY, TO_LOOP, ComputeBuilder, element_of
from irc.target import Target, target_of
from irc.target.costs import Cost

# What has no reason to stay without users.
REMOVABLE = (loop.ComputeOp, layout.ViewOp, layout.JoinOp, graph.Constant, graph.Pack)
# What reads arrays from memory, and is fused with nothing.
MEMORY_READERS = (func.ReturnOp, graph.UpdateInput, *LIBRARY)


@register_pass
class ConvertToLoop(Pass):
    """Turns every op of the graph level into `loop.compute`, but for calls and what the host does.

    A view becomes a compute that reads its source (for the computes among its users) and, where
    a call, a return or the host wants it, a `layout.view`. A concatenation chooses the piece that
    an element is of, which readers can fuse with. `fewest_joined` pieces or more, of known places,
    are computes that `layout.join` puts together, where choosing takes longer than storing each
    piece in its place, or there are more than `most_selected`.

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
    asks_target = True
    fewest_joined: int = 5
    most_selected: int = 128

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        converted = TO_LOOP.apply(op.block.ops, _LoopConversion(self._joins(target_of(context))))
        for inner in op.block.reversed_ops:
            if isinstance(inner, REMOVABLE) and not any(r.has_uses for r in inner.results):
                inner.erase()
        op.attributes["level"] = A.StringAttr("loop")
        context.count("converted", converted)


    def _joins(self, target: Target) -> Callable[[graph.Concat], bool]:
        """Whether the pieces of a concatenation are joined in memory."""

        def joins(op: graph.Concat) -> bool:
            whole: Any = op.joined.type
            known = all(isinstance(d, int) for d in (*whole.strides, whole.shape[op.dim]))
            if not known or len(op.sources) < self.fewest_joined:
                return False
            selected, joined = join_costs(op, target.processor.near_bytes)
            saved = target.operations(selected) - target.operations(joined)
            return saved > 0 or len(op.sources) > self.most_selected

        return joins


def join_costs(op: graph.Concat, near_bytes: int) -> tuple[Cost, Cost]:
    """What choosing a piece at each element costs, by two comparisons and a choice for each piece
    but the first, and what storing every piece costs, by a launch each. What computes read that
    are fused with the choice they load then."""
    count, type_ = len(op.sources), op.joined.type
    elements, size = points(type_.shape), array_bytes(type_)
    selected = Cost(cheap=3 * (count - 1) * elements)
    if all(isinstance(user, MEMORY_READERS) for user in op.joined.users):
        return selected, Cost(launches=count)
    far = 2 * size if size > near_bytes else 0
    return selected, Cost(near=3 * elements, far=far, launches=count)


class _LoopConversion:
    """One function under conversion.

    `handles` has, for a value that computes read, the value that shares the memory of the view
    that it stands for; a value without an entry is its own handle.
    """

    def __init__(self, joins: Callable[[graph.Concat], bool]) -> None:
        self.joins = joins
        self.handles: dict[Value, Value] = {}
        self.roundings = 0

    def convert(self, op: Operation, converter: Callable[[ComputeBuilder, Any], None]) -> None:
        """What the converter makes of an operation takes its place."""
        builder = ComputeBuilder(Builder.before(op), op, self.handles, self.joins)
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
        source = op.operands[0] if isinstance(op, sym.RefineOp) else None
        for position, operand in enumerate(op.operands):
            handle = self.handles.get(operand)
            if handle is not None:
                op.set_operand(position, handle)
        if source is not None and not isinstance(source, BlockArgument):
            # Computes read through it, so that they can fuse with what it refines.
            refined: Any = op.results[0]
            builder = ComputeBuilder(Builder.after(op), op, self.handles, self.joins)
            read = builder.map(lambda body, at: body.read(source, at), refined.type)
            refined.replace_all_uses_with(read)
            self.handles[read] = refined


def _is_rounding(op: graph.Cast) -> bool:
    """Whether a cast narrows a float to 16 bits for more than one reader, or for a view."""
    element = element_of(op.results[0])
    users = list(op.results[0].users)
    alone = len(users) == 1 and isinstance(users[0], graph.Cast | func.ReturnOp)
    return isinstance(element, FloatType) and element.width == 16 and not alone
