"""The pass `convert-to-loop`."""

from __future__ import annotations

from typing import Any

from irc.analysis.views import view_strides
from irc.dialects import arith, aten, func, graph, layout, loop, sym
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.conversion import conversion_failure
from irc.ir.core import BlockArgument, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.traits import ViewLike
from irc.ir.types import ComplexType, FloatType, TensorType, element_bytes
from irc.passes.loop.convert_to_loop_rules import (
    RULES,
    Converter,
    Rule,
    element_of,
    symbolic_value,
)
from irc.passes.loop.scalar_semantics import POINTWISE

# What stays as it is on the loop level; its tensors are handles to memory.
STAYS = (
    func.ReturnOp, graph.CallAten, graph.Item, graph.UpdateInput, graph.FromScalar,
    layout.ViewOp, sym.RefineOp, graph.Pack, graph.PackedConv, graph.PackedLinear,
    graph.WinogradConv, graph.PanelConv,
)  # fmt: skip
_LIBRARY = (
    graph.CallAten, graph.Pack, graph.PackedConv, graph.PackedLinear, graph.WinogradConv,
    graph.PanelConv,
)  # fmt: skip
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

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        reasons = {o: [why] for o in op.block.ops if (why := _missing(o)) is not None}
        if reasons:
            raise conversion_failure(list(reasons), reasons)
        converter = _Conversion(op)
        converted = 0
        for inner in op.block.ops:
            if converter.convert(inner):
                converted += 1
        for inner in op.block.reversed_ops:
            if isinstance(inner, REMOVABLE) and all(r._users is None for r in inner.results):
                inner.erase()
        op.attributes["level"] = A.StringAttr("loop")
        context.count("converted", converted)


class _Conversion:
    """One function under conversion.

    `handles` has, for a value that computes read, the value that shares the memory of the view
    that it stands for; a value without an entry is its own handle.
    """

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.handles: dict[Value, Value] = {}
        self.roundings = 0

    def convert(self, op: Operation) -> bool:
        """Convert one operation of the entry block; False when it stays."""
        stays = isinstance(op, STAYS) and not _is_symbolic(op)
        if stays or not op.name.startswith(("graph.", "layout.")):
            self._keep(op)
            return False
        if isinstance(op, graph.Constant) and not (_is_splat(op) and _is_computed_with(op)):
            return False
        if isinstance(op, graph.Copy | layout.CopyOp) and is_complex(op.results[0]):
            self._call_clone(op)
            return True
        if ViewLike in op.traits and "view" in op.attributes:
            self._convert_view(op)
            return True
        rule = _rule_of(type(op))
        assert rule is not None
        converter = Converter(Builder.before(op), op, self.handles)
        rule(converter, op)
        if isinstance(op, graph.Cast) and _is_rounding(op):
            self._number_rounding(converter.results[0])
        for old, new in zip(op.results, converter.results, strict=True):
            new.name_hint = old.name_hint
        self._replace(op, converter.results)
        return True

    def _number_rounding(self, array: Value) -> None:
        compute = array.defining_op
        assert isinstance(compute, loop.ComputeOp)
        narrowing = compute.yield_op.values[0].defining_op
        if isinstance(narrowing, arith.TruncFOp):
            narrowing.attributes["rounding"] = A.IntegerAttr(self.roundings)
            self.roundings += 1

    def _replace(self, op: Operation, values: list[Value]) -> None:
        for old, new in zip(op.results, values, strict=True):
            old.replace_all_uses_with(new)
        op.erase()

    def _keep(self, op: Operation) -> None:
        source = op._operands[0] if isinstance(op, sym.RefineOp) else None
        for position, operand in enumerate(op.operands):
            handle = self.handles.get(operand)
            if handle is not None:
                op.set_operand(position, handle)
        if source is not None and not isinstance(source, BlockArgument):
            # Computes read through it, so that they can fuse with what it refines.
            refined: Any = op.results[0]
            builder = Builder.after(op)
            converter = Converter(builder, op, self.handles)
            read = converter.map(lambda body, at: body.read(source, at), refined.type)
            refined.replace_all_uses_with(read)
            self.handles[read] = refined

    def _call_clone(self, op: Operation) -> None:
        """A copy of complex elements is ATen's: kernels have no complex numbers."""
        source, (result,) = op._operands[0], op.results
        strides = result.type.strides  # type: ignore[attr-defined]
        entries = {
            "callee": A.StringAttr("aten.clone.default"),
            "arguments": A.DictAttr({"self": aten.OperandAttr(0)}),
            "eager_strides": A.ArrayAttr([A.DimsAttr(strides)]),
        }
        operands = [self.handles.get(source, source)]
        made = graph.CallAten(operands, [result.type], entries, (), op.location)
        Builder.before(op).insert(made)
        self._replace(op, list(made.results))

    def _convert_view(self, op: Any) -> None:
        builder = Builder.before(op)
        source = op._operands[0]
        handle = self.handles.get(source, source)
        # The compute that reads a view may have other strides than the view itself.
        found = view_strides(op, handle.type)
        assert found is not None
        made = builder.value(
            layout.ViewOp, handle, offset=found[1], result_types=op.results[0].type
        )
        converter = Converter(builder, op, self.handles)
        RULES[type(op)](converter, op)
        read = converter.results[0]
        self.handles[read] = made
        made.name_hint = op.results[0].name_hint
        self._replace(op, [read])


def _rule_of(cls: type[Operation]) -> Rule | None:
    """The rule for a class of operations: its own, or that of the nearest class above it."""
    return next((RULES[base] for base in cls.__mro__ if base in RULES), None)


def _missing(op: Operation) -> str | None:
    """Why an operation has no form on the loop level; None if it has one, or stays."""
    if isinstance(op, STAYS) or not op.name.startswith(("graph.", "layout.")):
        return None
    if _rule_of(type(op)) is None:
        return "no rule is rooted at this operation"
    if isinstance(op, graph.PointwiseOp) and op.function not in POINTWISE:
        return f"there is no scalar code for '{op.function}'"
    return None


def _is_rounding(op: graph.Cast) -> bool:
    """Whether a cast narrows a float to 16 bits for more than one reader, or for a view."""
    element = element_of(op.results[0])
    users = list(op.results[0].users)
    alone = len(users) == 1 and isinstance(users[0], graph.Cast | func.ReturnOp)
    return isinstance(element, FloatType) and element.width == 16 and not alone


def is_complex(value: Value) -> bool:
    """Whether a value is a tensor of complex numbers."""
    return isinstance(value.type, TensorType) and isinstance(value.type.element, ComplexType)


def _is_symbolic(op: Operation) -> bool:
    """Whether an operation makes a tensor of a number that kernels compute from symbols."""
    return isinstance(op, graph.FromScalar) and symbolic_value(op._operands[0]) is not None


def _is_computed_with(op: graph.Constant) -> bool:
    """Whether nothing but computes reads the constant: anything else wants it in memory."""
    return not any(isinstance(user, _LIBRARY) for user in op.tensor.users)


def _is_splat(op: Any) -> bool:
    value = op.value
    if is_complex(op.results[0]):
        return False
    return isinstance(value, A.DenseAttr) and len(value.data) == element_bytes(
        op.results[0].type.element
    )
