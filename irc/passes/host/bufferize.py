"""The pass `bufferize`: immutable arrays become memory.

This is the one place where memory is made. Everything above it works on values; what comes out
allocates, writes and copies in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irc.dialects import aten, func, graph, host, kernel, layout, sym
from irc.ir import attributes as A
from irc.ir.attributes import Attribute
from irc.ir.builder import Builder
from irc.ir.core import Block, BlockArgument, Operation, Region, Value
from irc.ir.definition import SEGMENTS
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import FunctionType, IndexType, TensorType, i64

SYMBOLS = (sym.BindOp, sym.BindSizeOp, sym.ValueOp, sym.AssertOp, sym.AssertValueOp)


@register_pass
class Bufferize(Pass):
    """Makes `func.func` a `host.func`: allocations, launches that write, copies to arguments.

    A launch writes its result over an input that dies there, where its kernel says that the two
    may share memory; it writes an updated argument directly where nothing reads the old elements
    any more. What is returned is marked `escapes`.

    Before:
        %y = host.launch %x {callee = @k0} : (tensor<...>) -> tensor<...>
        func.return %y : tensor<...>
    After:
        %y = host.alloc {escapes} : tensor<...>
        host.launch %x, %y {callee = @k0} : (tensor<...>, tensor<...>)
        host.return %y : tensor<...>
    """

    name = "bufferize"
    summary = "turn values into memory: allocations, in-place writes, copies to arguments"

    def run(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].blocks[0]
        kernels = {k.sym_name: k for k in block.ops if isinstance(k, kernel.FuncOp)}
        for function in [f for f in block.ops if isinstance(f, func.FuncOp)]:
            made = _Bufferizer(function, kernels, context).run()
            block.insert_before(made, function)
            function.drop_all_references()
            function.detach()


def storage_root(value: Value) -> Value:
    """The value that owns the memory which `value` shows."""
    maker = value.defining_op
    while maker is not None and (
        isinstance(maker, layout.ViewOp | host.ViewOp | sym.RefineOp) or _may_alias(maker)
    ):
        value = maker._operands[0]
        maker = value.defining_op
    return value


def _may_alias(op: Operation) -> bool:
    """Whether a call's result may share its first tensor's memory."""
    if not isinstance(op, graph.CallAten | host.CallAtenOp) or not op._operands:
        return False
    return isinstance(op._operands[0].type, TensorType) and aten.schema_of(op).returns_alias


class _Bufferizer:
    def __init__(
        self, function: func.FuncOp, kernels: dict[str, kernel.FuncOp], context: PassContext
    ) -> None:
        self.function = function
        self.kernels = kernels
        self.context = context
        self.mapping: dict[Value, Value] = {}
        self.block = Block([a.type for a in function.block.arguments])
        self.builder = Builder.at_end(self.block)
        self.order: dict[Operation, int] = {
            op: n for n, op in enumerate(function.block.ops)
        }
        self.last_use: dict[Value, int] = {}
        self.returned: set[Value] = set()
        self.updates: list[graph.UpdateInput] = []
        self.written_directly: set[int] = set()

    def run(self) -> host.FuncOp:
        function = self.function
        for old, new in zip(function.block.arguments, self.block.arguments, strict=True):
            self.mapping[old] = new
            new.name_hint = old.name_hint
        self._liveness()
        for op in function.block.ops:
            self.builder.location = op.location
            self.visit(op)
        attributes = {
            k: v for k, v in function.attributes.items() if k not in ("function_type", "level")
        }
        last = self.block.last
        assert last is not None
        inputs = [a.type for a in self.block.arguments]
        types = FunctionType(inputs, [v.type for v in last.operands])
        attributes["function_type"] = A.TypeAttr(types)
        return host.FuncOp((), (), attributes, (Region([self.block]),), function.location)

    def _liveness(self) -> None:
        end = len(self.order)
        for op, number in self.order.items():
            at = number
            if isinstance(op, graph.UpdateInput):
                self.updates.append(op)
                at = end  # the copy happens at the end
            for operand in op._operands:
                root = storage_root(operand)
                self.last_use[root] = max(at, self.last_use.get(root, -1))
            if isinstance(op, func.ReturnOp):
                self.returned |= {storage_root(v) for v in op.operands}
                for root in self.returned:
                    self.last_use[root] = end

    # -- operations

    def visit(self, op: Operation) -> None:
        if isinstance(op, SYMBOLS):
            self.builder.insert(op.clone(self.mapping))
        elif isinstance(op, host.LaunchOp):
            self.launch(op)
        elif isinstance(op, layout.ViewOp):
            self.define(
                op,
                host.ViewOp,
                [self.mapping[op.source]],
                {"offset": op.attributes["offset"]},
            )
        elif isinstance(op, sym.RefineOp):
            self.builder.insert(op.clone(self.mapping))
        elif isinstance(op, graph.CallAten):
            attributes = {k: op.attributes[k] for k in ("callee", "arguments")}
            self.define(op, host.CallAtenOp, [self.mapping[v] for v in op.operands], attributes)
            self.context.count("aten calls")
        elif isinstance(op, graph.Constant):
            self.define(op, host.ConstantOp, [], {"value": op.attributes["value"]})
        elif isinstance(op, graph.Item):
            self.define(op, host.ItemOp, [self.mapping[op.source]], {})
        elif isinstance(op, graph.FromScalar):
            self.from_scalar(op)
        elif isinstance(op, func.ReturnOp):
            self.finish(op)
        elif not isinstance(op, graph.UpdateInput):
            raise InvalidIR(f"'{op.name}' has no meaning in a host program", op=op)

    def define(
        self,
        op: Operation,
        cls: type[Operation],
        operands: Sequence[Value],
        attributes: dict[str, Attribute],
    ) -> None:
        """Insert an operation of the host dialect with the results of `op`."""
        made = self.builder.insert(cls(operands, op.result_types, attributes))
        for old, new in zip(op.results, made.results, strict=True):
            self.mapping[old] = new
            new.name_hint = old.name_hint

    def from_scalar(self, op: graph.FromScalar) -> None:
        kind = op.scalar.type
        name = "int64" if isinstance(kind, IndexType) or kind is i64 else "float64"
        if str(kind) == "i1":
            name = "bool"
        arguments = A.DictAttr({"s": aten.OperandAttr(0), "dtype": aten.DtypeAttr(name)})
        attributes = {
            "callee": A.StringAttr("aten.scalar_tensor.default"),
            "arguments": arguments,
        }
        self.define(op, host.CallAtenOp, [self.mapping[op.scalar]], attributes)

    def launch(self, op: host.LaunchOp) -> None:
        callee = self.kernels[op.callee]
        inputs = [self.mapping[v] for v in op.inputs]
        outs = []
        taken: set[Value] = set()
        for number, made in enumerate(op.results):
            memory = self.argument_for(op, number, callee, taken)
            if memory is None:
                memory = self.reused(op, number, callee, taken)
            if memory is None:
                memory = self.allocate(made)
            taken.add(memory)
            self.mapping[made] = memory
            outs.append(memory)
        segments = A.DenseIntsAttr((len(inputs), len(outs)))
        attributes = {"callee": op.attributes["callee"], SEGMENTS: segments}
        self.builder.insert(host.LaunchOp([*inputs, *outs], (), attributes))
        self.context.count("launches")

    def allocate(self, made: Value) -> Value:
        """Fresh memory for a launch's result."""
        attributes: dict[str, Attribute] = {}
        if made in self.returned:
            attributes["escapes"] = A.UNIT
        alloc = self.builder.insert(host.AllocOp((), (made.type,), attributes))
        alloc.results[0].name_hint = made.name_hint
        return alloc.results[0]

    def sharable(
        self, op: host.LaunchOp, number: int, callee: kernel.FuncOp
    ) -> list[int]:
        """The inputs that the kernel allows to share memory with output `number`."""
        pairs = callee.inplace or ()
        wanted = len(op.inputs) + number
        return [pairs[k] for k in range(0, len(pairs), 2) if pairs[k + 1] == wanted]

    def reused(
        self, op: host.LaunchOp, number: int, callee: kernel.FuncOp, taken: set[Value]
    ) -> Value | None:
        """The memory of an input that dies at this launch, if the kernel may write over it."""
        made = op.results[number]
        for position in self.sharable(op, number, callee):
            value = op.inputs[position]
            memory = self.mapping[value]
            maker = memory.defining_op
            if not isinstance(maker, host.AllocOp) or memory in taken:
                continue
            same_root = [v for v in op.inputs if storage_root(v) is storage_root(value)]
            if self.dies_at(value, op) and len(same_root) == 1 and (
                memory.type is made.type
            ):
                if made in self.returned:
                    maker.attributes["escapes"] = A.UNIT
                self.context.count("in-place")
                return memory
        return None

    def dies_at(self, value: Value, op: Operation) -> bool:
        """Whether no later operation reads the memory that `value` shows."""
        memory = self.mapping[value]
        last = max(
            (self.last_use.get(storage_root(old), -1) for old, new in self.mapping.items()
             if new is memory),
            default=-1,
        )  # fmt: skip
        return last <= self.order[op]

    def argument_for(
        self, op: host.LaunchOp, number: int, callee: kernel.FuncOp, taken: set[Value]
    ) -> Value | None:
        """The argument that this result is written to, if it may be written at once."""
        made = op.results[number]
        update = next(
            (u for u in self.updates if u.value is made and u.argument not in
             self.written_directly),
            None,
        )  # fmt: skip
        if update is None or made in self.returned:
            return None
        argument = self.function.block.arguments[update.argument]
        if argument.type is not made.type or self.mapping[argument] in taken:
            return None
        if self.last_use.get(argument, -1) > self.order[op] or self.may_share(argument):
            return None
        reads = [p for p, v in enumerate(op.inputs) if storage_root(v) is argument]
        allowed = self.sharable(op, number, callee)
        if any(p not in allowed for p in reads):
            return None
        self.written_directly.add(update.argument)
        self.context.count("arguments written in place")
        return self.mapping[argument]

    def may_share(self, argument: BlockArgument) -> bool:
        """Whether an argument is said to share memory with another one."""
        info = self.function.arg_info
        if info is None or argument.index >= len(info):
            return False
        return info[argument.index].get("aliases") is not None

    # -- the end

    def finish(self, op: func.ReturnOp) -> None:
        self.write_arguments()
        info = self.function.result_info
        values = []
        for number, value in enumerate(op.operands):
            entry = info[number] if info is not None else A.DictAttr({})
            values.append(self.result(value, entry))
        self.builder.insert(host.ReturnOp(values))

    def result(self, value: Value, entry: A.DictAttr) -> Value:
        alias = entry.get("alias_of")
        if alias is None or not isinstance(value.type, TensorType):
            return self.mapping[value]
        argument = self.block.arguments[alias.value]
        if storage_root(self.mapping[value]) is argument:
            return self.mapping[value]
        # The value was written to the argument: the caller sees a view of that.
        strides = entry.get("strides")
        own = self.function.arg_info[alias.value].get("offset") if self.function.arg_info else None
        offset = entry.get("offset")
        start = (offset.dim if offset is not None else 0) - (own.dim if own is not None else 0)
        type_ = value.type.with_strides(strides.dims if strides is not None else
                                        value.type.strides)  # fmt: skip
        return self.builder.value(  # type: ignore[no-any-return]
            host.ViewOp, argument, offset=start, result_types=type_
        )

    def write_arguments(self) -> None:
        """Copy updated values to their arguments; what is read from an argument that another
        update writes is saved first."""
        pending = [u for u in self.updates if u.argument not in self.written_directly]
        written = {self.block.arguments[u.argument] for u in pending}
        sources = []
        for update in pending:
            target = self.block.arguments[update.argument]
            source = self.mapping[update.value]
            root = storage_root(source)
            if root in written and (root is not target or source is not target):
                source = self.saved(source)
            sources.append((source, target))
        for source, target in sources:
            if source is not target:
                self.builder.insert(host.CopyOp([source, target]))
                self.context.count("arguments copied")

    def saved(self, source: Value) -> Value:
        """A copy of a tensor in memory of its own."""
        kind: Any = source.type
        from irc.ir.types import contiguous_strides

        type_ = kind.with_strides(contiguous_strides(kind.shape))
        memory = self.builder.value(host.AllocOp, result_types=type_)
        self.builder.insert(host.CopyOp([source, memory]))
        return memory  # type: ignore[no-any-return]
