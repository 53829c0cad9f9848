"""The pass `convert-aten-to-graph`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import Any

from irc.analysis.facts import facts_of
from irc.analysis.known import Known
from irc.analysis.levels import holds_loops
from irc.dialects import aten, func, graph, sym
from irc.ir import attributes as A
from irc.ir.attributes import Attribute, Type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import InvalidIR, UserError
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import ComplexType, TensorType, contiguous_strides
from irc.passes.graph.convert_aten.complex_pairs import (
    Pair,
    convert_pair,
    has_pairs,
    paired_values,
)
from irc.passes.graph.convert_aten.support import CONVERTERS, Call, Declined, converts
from irc.target.record import default_float


def load_converters() -> None:
    """Import every file of converters."""
    import irc.passes.graph.convert_aten as package

    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)


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

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        if holds_loops(op):
            return
        load_converters()
        _FunctionConversion(op, context).run()


def without_strides(kind: Type) -> Type:
    """A tensor type as the graph level has it."""
    return kind.with_strides(None) if isinstance(kind, TensorType) else kind


class _FunctionConversion:
    def __init__(self, function: func.FuncOp, context: PassContext) -> None:
        self.function = function
        self.context = context
        self.values: dict[Value, Value] = {}
        self.ranges = facts_of(function).ranges
        self.known = Known()
        self.float = default_float(context)

    def run(self) -> None:
        block = self.function.block
        olds = list(block.ops)
        self.convert_arguments()
        self.builder = Builder.at_end(block)
        given, last = dict(self.values), block.last
        paired = paired_values(self.function)
        try:
            self.convert_all(olds, paired)
        except Declined:
            self.discard_after(last)
            self.values = given
            self.convert_all(olds, set())
        for op in reversed(olds):
            op.erase()
        self.function.attributes["level"] = A.StringAttr("graph")
        self.function.refresh_type()

    def convert_all(self, olds: Sequence[Operation], paired: set[Value]) -> None:
        """Convert the operations in order, the complex values `paired` to pairs of reals. Raises
        Declined for a pair that a converter does not cover."""
        pairs: dict[Value, Pair] = {}
        self.known = Known()
        for op in olds:
            self.builder.location = op.location
            if not isinstance(op, aten.AtenOp):
                self.known.add(op)
                self.keep(op)
            elif paired and any(v in paired for v in (*op.operands, *op.results)):
                self.convert_paired(op, pairs)
            else:
                self.convert(op)

    def convert_paired(self, op: aten.AtenOp, pairs: dict[Value, Pair]) -> None:
        sources = aten.arguments_of(op)
        arguments = {
            name: None if has_pairs(v, pairs) else self.new_argument(v)
            for name, v in sources.items()
        }
        types = [without_strides(r.type) for r in op.results]
        call = Call(
            self.builder, op, arguments, sources, types, self.values, self.ranges, self.known,
            self.float,
        )  # fmt: skip
        made = convert_pair(call, pairs)
        if isinstance(made, Value):
            self.define(op, self.checked(op, [made], types))
        else:
            pairs[op.results[0]] = made

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
                found = entries[position].as_dict()
                found["strides"] = A.DimsAttr(old.strides)
                entries[position] = A.DictAttr(found)
                argument.type = old.with_strides(None)
        if entries:
            self.function.attributes["arg_info"] = A.ArrayAttr(entries)

    def keep(self, op: Operation) -> None:
        """A copy of an operation of another dialect, on types without strides."""
        operands = [self.values[o] for o in op.operands]
        attributes = dict(op.attributes)
        value = attributes.get("value")
        if isinstance(op, graph.Constant) and isinstance(value, A.DenseAttr | A.ResourceAttr):
            first, second = value.parameters
            kind = without_strides(first if isinstance(value, A.DenseAttr) else second)
            parts = (kind, second) if isinstance(value, A.DenseAttr) else (first, kind)
            attributes["value"] = type(value)(*parts)
        copy = type(op)(
            operands, [without_strides(r.type) for r in op.results], attributes, (), op.location
        )
        self.builder.insert(copy)
        self.define(op, copy.results)

    def define(self, op: Operation, values: Sequence[Value | None]) -> None:
        for old, new in zip(op.results, values, strict=True):
            if new is None:
                if old.has_uses:
                    raise InvalidIR("a result that is used was not converted", op=op)
                continue
            self.values[old] = new
            if new.name_hint is None:
                new.name_hint = old.name_hint

    def convert(self, op: aten.AtenOp) -> None:
        converter = CONVERTERS.get(op.name)
        sources = aten.arguments_of(op)
        arguments = {name: self.new_argument(v) for name, v in sources.items()}
        types = [without_strides(r.type) for r in op.results]
        if op.qualified == "aten.copy_.default":
            call = Call(self.builder, op, arguments, sources, types, known=self.known)
            self.update_input(op, call)
            return
        last = self.function.block.last
        reason = "no converter" if converter is None else "complex elements are ATen's"
        if converter is not None and not stays_complex(op):
            try:
                made = converter(
                    Call(
                        self.builder, op, arguments, sources, types, self.values, self.ranges,
                        self.known, self.float,
                    )  # fmt: skip
                )
                values = [made] if isinstance(made, Value) else list(made)
                self.define(op, self.checked(op, values, types))
                return
            except Declined as declined:
                reason = str(declined)
                self.discard_after(last)
        self.context.count(f"ATen calls: {op.qualified}")
        self.context.remark(f"{op.qualified} is left to ATen: {reason}", op)
        self.call(op, types)

    def checked(
        self, op: aten.AtenOp, values: Sequence[Value | None], types: Sequence[Type]
    ) -> list[Value | None]:
        """The values that `op` became, with its types: torch may know more of their sizes, by a
        fact that the program states before. Raises InvalidIR for other types."""
        made: list[Value | None] = []
        for value, kind in zip(values, types, strict=True):
            if value is not None and value.type is not kind:
                value = self.refined(op, value, kind)
            made.append(value)
        return made

    def refined(self, op: aten.AtenOp, value: Value, kind: Type) -> Value:
        have = value.type
        wrong: str | None = "another element, rank or device"
        if isinstance(have, TensorType) and isinstance(kind, TensorType):
            if have.rank == kind.rank and have.with_shape(kind.shape) is kind:
                wrong = self.known.refuses_refinement(have, kind)
        if wrong is not None:
            raise InvalidIR(f"{op.name} became {have}, not {kind}: {wrong}", op=op)
        return self.builder.insert(sym.RefineOp((value,), (kind,))).results[0]

    def discard_after(self, last: Operation | None) -> None:
        """Erase what a converter made before it declined."""
        while self.function.block.last is not last:
            made = self.function.block.last
            assert made is not None
            made.erase()

    def new_argument(self, argument: Any) -> Any:
        if isinstance(argument, Value):
            return self.values[argument]
        if isinstance(argument, list):
            return [self.new_argument(a) for a in argument]
        return argument

    def update_input(self, op: aten.AtenOp, call: Call) -> None:
        """`copy_` onto an argument at the end: the only mutation of a functionalized graph."""
        target = self.values[aten.arguments_of(op)["self"]]
        if target not in self.function.block.arguments:
            raise InvalidIR("writes a value that is no argument; functionalize first", op=op)
        from irc.passes.graph.convert_aten.pointwise import round_cast

        value = round_cast(call, call.src, call.result.element)
        value = call.broadcast(value, call.result.shape)
        self.builder.create(graph.UpdateInput, value, argument=target.index)
        self.define(op, [value])

    def call(self, op: aten.AtenOp, types: Sequence[Type]) -> None:
        """`graph.call_aten`, of the variant that makes a fresh result where there is one."""
        schema, attributes = op.schema, dict(op.attributes)
        written = written_copies(op)
        callee, contiguous = op.qualified, False
        if schema.returns_alias:
            callee, contiguous = copying_variant(op)
        strides: list[Attribute] = []
        for result in (*op.results, *(op.operands[k] for k in written)):
            kind = result.type
            if isinstance(kind, TensorType):
                dims = kind.strides
                if contiguous or dims is None:
                    dims = contiguous_strides(kind.shape)
                strides.append(A.DimsAttr(dims))
        entries: dict[str, Attribute] = {
            "callee": A.StringAttr(callee),
            "arguments": attributes["arguments"],
            "eager_strides": A.ArrayAttr(strides),
        }
        passed = [o.type.strides for o in op.operands if isinstance(o.type, TensorType)]
        known = [A.DimsAttr(s) for s in passed if s is not None]
        if passed and len(known) == len(passed):
            entries["operand_strides"] = A.ArrayAttr(known)
        if schema.is_random:
            entries["random"] = A.UNIT
        if not schema.returns or written or schema.communicates:
            entries["mutates"] = A.UNIT
        if written:
            entries["written"] = A.DenseIntsAttr(written)
        operands = [self.values[o] for o in op.operands]
        kinds = [*types, *(operands[k].type for k in written)]
        made = graph.CallAten(operands, kinds, entries, (), op.location)
        self.builder.insert(made)
        self.define(op, made.results[: len(types)])
        for number, content in zip(written, made.results[len(types) :], strict=True):
            self.values[op.operands[number]] = content


def written_copies(op: aten.AtenOp) -> tuple[int, ...]:
    """The numbers of the operands that the operator writes, which are fresh copies of values.

    Raises InvalidIR for a write of anything else, UserError for one of parts of a copy: those of
    an operator that sees one storage through several operands.
    """
    given = op.arguments.as_dict()
    numbers = [
        number
        for argument in op.schema.arguments
        if argument.is_write and argument.name in given
        for number in aten.operand_indices(given[argument.name])
    ]
    for number in numbers:
        maker = op.operands[number].defining_op
        if isinstance(maker, aten.AtenOp) and maker.qualified == "aten.clone.default":
            continue
        if isinstance(maker, aten.AtenOp) and maker.schema.returns_alias:
            raise UserError(
                f"'{op.name}' is given one storage more than once, and writes it", op=op
            )
        raise InvalidIR("writes its operands; functionalize first", op=op)
    return tuple(dict.fromkeys(numbers))


def stays_complex(op: aten.AtenOp) -> bool:
    """Whether an operator has complex elements and is more than another view of them."""
    types = [value.type for value in (*op.operands, *op.results)]
    if not any(isinstance(t, TensorType) and isinstance(t.element, ComplexType) for t in types):
        return False
    return not (op.schema.returns_alias or op.qualified == "aten._unsafe_view.default")


def copying_variant(op: aten.AtenOp) -> tuple[str, bool]:
    """The operator that gives a view's elements in fresh contiguous memory, for a view operator;
    whether it is another one."""
    schema = op.schema
    overload = schema.overload or "default"
    for name in (f"{schema.name}_copy", f"_{schema.name}_copy"):
        qualified = f"{schema.namespace}.{name}.{overload}"
        found = aten.known_schema(qualified, op)
        if found is not None and len(found.arguments) == len(schema.arguments):
            return qualified, True
    return op.qualified, False


class _StandIn(Value):
    """Stands for a function argument, with its old type, while the body is converted."""

    __slots__ = ()

    def __init__(self, kind: Type) -> None:
        self.type = kind
        self._users = None
        self.name_hint = None


__all__ = ["ConvertAtenToGraph", "converts", "load_converters", "without_strides"]
