"""The pass `convert-aten-to-graph`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irc.analysis.levels import holds_loops
from irc.dialects import aten, func, graph, sym
from irc.dialects.aten.facts import Fact
from irc.dialects.sym.facts import facts_of
from irc.dialects.sym.known import Known
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.rewrite.conversion import Declined, StartAgain, decline
from irc.ir.types import ComplexType, TensorType
from irc.passes.graph.convert_aten.calls import leave_to_aten, update_input
from irc.passes.graph.convert_aten.complex_pairs import (
    Pair,
    convert_pair,
    paired_values,
)
from irc.passes.graph.convert_aten.races import decline_races
from irc.passes.graph.convert_aten.support import TO_GRAPH, Call
from irc.passes.graph.result_types import REFUSALS, refusal
from irc.target.record import default_float, keeps_order, library_figures


@register_pass
class ConvertAtenToGraph(Pass):
    """Turns ATen operators into operations of the graph dialect: promotion becomes casts,
    broadcasting `graph.broadcast`, 16-bit floats are computed in f32. What has no converter
    becomes `graph.call_aten`. Strides leave the types; the function's `arg_info` and
    `result_info` keep eager's.

    Before:
        %y = aten.add.Tensor %x {arguments = {other = 1 : i64, self = #aten.operand<0>}} :
          (tensor<[4] x bf16, strides [1]>) -> tensor<[4] x bf16, strides [1]>
    After:
        %0 = graph.cast %x : (tensor<4xbf16>) -> tensor<4xf32>
        %1 = graph.full {value = 1.0 : f32} : tensor<4xf32>
        %2 = graph.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        %y = graph.cast %2 : (tensor<4xf32>) -> tensor<4xbf16>
    """

    name = "convert-aten-to-graph"
    summary = "ATen operators to the closed graph dialect, everything explicit"
    anchor = "func.func"
    preserves = "real"
    rounds_constants = True
    conversion = TO_GRAPH

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        if holds_loops(op):
            return
        _FunctionConversion(op, context).run()


def without_strides(type_: Type) -> Type:
    """A tensor type as the graph level has it."""
    return type_.with_strides(None) if isinstance(type_, TensorType) else type_


class _FunctionConversion:
    """One function under conversion: its new operations stand behind the old ones."""

    def __init__(self, function: func.FuncOp, context: PassContext) -> None:
        self.function = function
        self.context = context
        self.values: dict[Value, Value] = {}
        self.ranges = facts_of(function).ranges
        self.known = Known()
        self.float, self.figures = default_float(context), library_figures(context)
        self.keeps_order = keeps_order(context)
        self.complex = False  # whether any tensor has complex elements
        self.paired: set[Value] = set()
        self.pairs: dict[Value, Pair] = {}
        self.call: Call | None = None  # the operation that is converted
        self.reason = ""  # why it is left to ATen

    def run(self) -> None:
        block = self.function.block
        olds = list(block.ops)
        self.convert_arguments()
        self.builder = Builder.at_end(block)
        values, last = dict(self.values), block.last
        self.complex = holds_complex(block.arguments, olds)
        self.paired = paired_values(self.function) if self.complex else set()
        try:
            TO_GRAPH.apply(olds, self)
        except StartAgain:
            self.discard_after(last)
            self.values, self.paired, self.pairs = values, set(), {}
            self.known, self.call = Known(), None
            TO_GRAPH.apply(olds, self)
        for op in reversed(olds):
            op.erase()
        self.function.attributes["level"] = A.StringAttr("graph")
        self.function.refresh_type()

    def convert(self, op: Operation, converter: Callable[[Call], Any]) -> None:
        """What the converter makes of an operation takes its place."""
        call = self.call
        if call is None or call.op is not op:
            call = self.begin(op)
        if self.paired and not self.paired.isdisjoint((*op.operands, *op.results)):
            self.convert_paired(op)
            return
        is_call = converter is leave_to_aten
        last = self.function.block.last
        try:
            if self.complex and not is_call and converter is not update_input:
                if stays_complex(op):
                    decline("complex elements are ATen's")
            outcome = converter(call)
            values = [outcome] if isinstance(outcome, Value) else list(outcome)
            if self.keeps_order:
                decline_races(last, self.function.block)
            self.define(op, self.checked(op, values, call.result_types))
        except Declined as declined:
            self.reason = str(declined)
            self.discard_after(last)
            raise
        except REFUSALS as error:
            # A converter takes arguments to be right: it has declined if torch refuses them.
            reason = refusal(op) if isinstance(op, aten.AtenOp) and not is_call else None
            if reason is None:
                raise
            self.reason = f"torch refuses it: {reason}"
            self.discard_after(last)
            raise Declined(self.reason) from error
        if is_call:
            self.context.count(f"ATen calls: {op.qualified}")  # type: ignore[attr-defined]
            self.context.remark(f"{op.qualified} is left to ATen: {self.reason}", op)  # type: ignore[attr-defined]

    def begin(self, op: Operation) -> Call:
        """The call that an operation's converters see."""
        self.builder.location = op.location
        sources = aten.arguments_of(op) if isinstance(op, aten.AtenOp) else fields_of(op)
        arguments = {name: self.new_argument(v) for name, v in sources.items()}
        types = [without_strides(r.type) for r in op.results]
        self.reason = "no converter"
        self.call = call = Call(
            self.builder, op, arguments, sources, types, self.values, self.ranges, self.known,
            self.float, self.figures,
        )  # fmt: skip
        return call

    def convert_paired(self, op: Operation) -> None:
        assert self.call is not None
        last = self.function.block.last
        try:
            outcome = convert_pair(self.call, self.pairs)
            if self.keeps_order:
                decline_races(last, self.function.block)
        except Declined as declined:
            raise StartAgain from declined
        if isinstance(outcome, Value):
            self.define(op, self.checked(op, [outcome], self.call.result_types))
        else:
            self.pairs[op.results[0]] = outcome

    def convert_arguments(self) -> None:
        """Move the strides of arguments from their types to `arg_info`."""
        info = self.function.arg_info
        entries = list(info) if info is not None else []
        for position, argument in enumerate(self.function.block.arguments):
            old = argument.type
            if position == len(entries):
                entries.append(A.DictAttr({}))
            # Operations not converted yet still read the strides of eager here.
            stand_in = _StandIn(old)
            argument.replace_all_uses_with(stand_in)
            self.values[stand_in] = argument
            if isinstance(old, TensorType) and old.strides is not None:
                entry = entries[position].as_dict()
                entry["strides"] = A.DimsAttr(old.strides)
                entries[position] = A.DictAttr(entry)
                argument.type = old.with_strides(None)
        if entries:
            self.function.attributes["arg_info"] = A.ArrayAttr(entries)

    def keep(self, op: Operation) -> None:
        """A copy of an operation of another dialect, on types without strides."""
        self.known.add(op)
        operands = [self.values[o] for o in op.operands]
        attributes = dict(op.attributes)
        value = attributes.get("value")
        if isinstance(op, graph.Constant) and isinstance(value, A.DenseAttr | A.ResourceAttr):
            first, second = value.parameters
            type_ = without_strides(first if isinstance(value, A.DenseAttr) else second)
            parts = (type_, second) if isinstance(value, A.DenseAttr) else (first, type_)
            attributes["value"] = type(value)(*parts)
        regions = [region.clone(dict(self.values)) for region in op.regions]
        types = [without_strides(r.type) for r in op.results]
        copy = type(op)(operands, types, attributes, regions, op.location)
        for inner in copy.walk() if regions else ():
            for result in inner.results:
                result.type = without_strides(result.type)
        self.builder.insert(copy)
        self.define(op, copy.results)

    def failed(self, op: Operation) -> None:
        """Let what uses the results be tried."""
        self.values.update((r, _StandIn(without_strides(r.type))) for r in op.results)

    def define(self, op: Operation, values: Sequence[Value | None]) -> None:
        for old, new in zip(op.results, values, strict=True):
            if new is None:
                if old.has_uses:
                    raise InvalidIR("a result that is used was not converted", op=op)
                continue
            self.values[old] = new
            if new.name_hint is None:
                new.name_hint = old.name_hint

    def checked(
        self, op: Operation, values: Sequence[Value | None], types: Sequence[Type]
    ) -> list[Value | None]:
        """The values that `op` became, with its types: torch may know more of their sizes, by a
        fact that the program states before. Raises InvalidIR for other types."""
        refined: list[Value | None] = []
        for value, type_ in zip(values, types, strict=True):
            if value is not None and value.type is not type_:
                value = self.refined(op, value, type_)
            refined.append(value)
        return refined

    def refined(self, op: Operation, value: Value, type_: Type) -> Value:
        have = value.type
        wrong: str | None = "another element, rank or device"
        if isinstance(have, TensorType) and isinstance(type_, TensorType):
            if have.rank == type_.rank and have.with_shape(type_.shape) is type_:
                wrong = self.known.refuses_refinement(have, type_)
        if wrong is not None:
            raise InvalidIR(f"{op.name} became {have}, not {type_}: {wrong}", op=op)
        return self.builder.insert(sym.RefineOp((value,), (type_,))).results[0]

    def discard_after(self, last: Operation | None) -> None:
        """Erase what a converter made before it declined."""
        while self.function.block.last is not last:
            op = self.function.block.last
            assert op is not None
            op.erase()

    def new_argument(self, argument: Any) -> Any:
        """An argument on the graph level; None for a complex value that is a pair."""
        if isinstance(argument, Value):
            return None if argument in self.pairs else self.values[argument]
        if isinstance(argument, list):
            return [self.new_argument(a) for a in argument]
        return argument


def fields_of(op: Any) -> dict[str, Any]:
    """The operands and attributes of an operation that is no operator's, by name."""
    cls = type(op)
    operands = {field.name: getattr(op, field.name) for field in cls.operand_fields}
    lists = {name: list(v) for name, v in operands.items() if isinstance(v, tuple)}
    return {**operands, **lists, **{name: getattr(op, name) for name in cls.attribute_fields}}


def holds_complex(arguments: Sequence[Value], ops: Sequence[Operation]) -> bool:
    """Whether a function's arguments, or what its operations make, have complex elements."""
    kinds = {value.type for value in arguments}
    for op in ops:
        for result in op.results:
            kinds.add(result.type)
    return any(isinstance(k, TensorType) and isinstance(k.element, ComplexType) for k in kinds)


def stays_complex(op: Any) -> bool:
    """Whether an operator has complex elements and is more than another view of them."""
    types = [value.type for value in (*op.operands, *op.results)]
    if not any(isinstance(t, TensorType) and isinstance(t.element, ComplexType) for t in types):
        return False
    if not isinstance(op, aten.AtenOp):
        return False
    return not (op.schema.returns_alias or Fact.SAME_BEGIN in op.schema.facts)


class _StandIn(Value):
    """Stands for a function argument, with its old type, while the body is converted; and for the
    result of an operation that could not be."""

    __slots__ = ()

    def __init__(self, type_: Type) -> None:
        self.type = type_
        self._users = None
        self.name_hint = None


__all__ = ["ConvertAtenToGraph", "without_strides"]
