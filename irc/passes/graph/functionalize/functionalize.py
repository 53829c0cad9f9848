"""The pass `functionalize`: programs that mutate tensors as programs that make new ones.

A storage that may be written is a root with a current value and a version. A tensor is a root
seen through a chain of views. A write makes a new value of the tensor, carries it back through
the chain into the root, and so makes the next version; a view made before that is derived again
from the current root where it is read. Each argument is a root of its own, unless the function
says in `aliases` that some share a storage: then their common storage is one. At the end,
`aten.copy_.default` writes the changed ones to the arguments.

Every value has the strides that its type says, and what is new has them in eager's order, so
that each view that eager could take can be taken again.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from irc.dialects import aten, func, sym
from irc.dialects.aten.facts import Fact
from irc.dialects.aten.schema import Schema
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import BlockArgument, Operation, Value
from irc.ir.diagnostics import UserError
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import DTYPE_OF_ELEMENT, TensorType
from irc.passes.graph.functionalize.argument_storages import (
    argument_begin,
    bases,
    settled_copies,
    written_arguments,
)
from irc.passes.graph.functionalize.caller_results import CallerResults
from irc.passes.graph.functionalize.functional_forms import functional_schema, merged, renumber
from irc.passes.graph.functionalize.storage_roots import Root, StorageTensor, conform, place_key
from irc.passes.graph.functionalize.value_building import (
    call,
    cast,
    contiguous,
    in_order,
    is_view_of,
    numbers,
    positions,
    regroups,
    retype,
    retype_regrouped,
    strides_of,
    type_of,
)
from irc.passes.graph.functionalize.view_chains import (
    ChainStep,
    ElementStep,
    FlattenStep,
    RefineStep,
    StridedStep,
    ViewStep,
    invertible,
    overlaps,
    replay_all,
    take_all,
)
from irc.passes.graph.result_types import element_of_call, is_view_call, types_of_call


@register_pass
class Functionalize(Pass):
    """Removes mutation: every operation after it makes new tensors.

    Before:
        %v = aten.slice.Tensor %x {...}
        %w = aten.add_.Tensor %v, %y {...}
        return %x
    After:
        %v = aten.slice.Tensor %x {...}
        %w = aten.add.Tensor %v, %y {...}
        %z = aten.slice_scatter.default %x, %w {...}
        %c = aten.copy_.default %x, %z {...}
        return %c

    What is returned shares storage as in eager mode. An operator that has no form without
    mutation (a custom one, say) writes fresh copies. set_ and resize_ are refused, and so are
    writes of more than one value to a place through a view that overlaps itself, and as_strided
    of an argument beyond its elements.
    """

    name = "functionalize"
    summary = "turn in-place operations, out= and writes through views into new tensors"
    anchor = "func.func"

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        _Functionalizer(op, context).run()


class _Functionalizer:
    def __init__(self, function: func.FuncOp, context: PassContext) -> None:
        self.function = function
        self.context = context
        self.tensors: dict[Value, StorageTensor] = {}
        # The arguments that tensors are, not only views of.
        self.arguments: dict[StorageTensor, BlockArgument] = {}
        self.dead: list[Operation] = []
        # The copies onto arguments that stay, and what each argument is behind its own.
        self.settled = settled_copies(function)
        self.copied: dict[int, Value] = {n: op.results[0] for op, n in self.settled.items()}

    def run(self) -> None:
        ops = list(self.function.block.ops)
        self.start(ops)
        for op in ops:
            if isinstance(op, func.ReturnOp):
                self.finish(op)
            elif isinstance(op, aten.AtenOp):
                self.visit(op)
            elif isinstance(op, sym.RefineOp):
                self.refine(op)
            else:
                self.refresh_operands(op)
                self.add_roots(op)
        for op in reversed(self.dead):
            op.erase()
        self.function.refresh_type()

    def start(self, ops: Sequence[Operation]) -> None:
        """A root for each argument, or for those together that share a storage and are written."""
        arguments = self.function.block.arguments
        for number, argument in enumerate(arguments):
            if isinstance(argument.type, TensorType):
                root = Root(argument, number, functools.partial(self.begin, number))
                self.tensors[argument] = StorageTensor(root, (), argument, 0, argument.type)
        if "aliases" in self.function.attributes:
            self.start_shared(ops)
        self.arguments = {self.tensors[a]: a for a in arguments if a in self.tensors}

    def start_shared(self, ops: Sequence[Operation]) -> None:
        """The roots of arguments that share storages."""
        arguments = self.function.block.arguments
        written = written_arguments(self.function)
        builder = Builder.before(ops[0])
        for base in bases(self.function, written, builder):
            root = Root(base.value, base.members[0], base.offset, base.members, base.allowed)
            for number in base.members:
                type_ = type_of(arguments[number])
                place = self.begin(number) - base.offset
                step = StridedStep(root.type, type_, place, base.allowed, builder.location)
                tensor = StorageTensor(root, (step,), arguments[number], 0, type_)
                self.tensors[arguments[number]] = tensor
            self.context.count("arguments with a common storage", len(base.members))

    def begin(self, number: int) -> Any:
        """Where an argument begins in its storage: the program depends on it from here on."""
        return argument_begin(self.function, number, Builder.at_start(self.function.block))

    # -- reading

    def current(self, value: Value, builder: Builder) -> Value:
        """The value that shows the tensor's elements now; stale views are derived again."""
        tensor = self.tensors.get(value)
        return value if tensor is None else self.shown(tensor, builder)

    def shown(self, tensor: StorageTensor, builder: Builder) -> Value:
        """The value that shows a tensor's elements now."""
        root = tensor.root
        if tensor.version != root.version:
            shown = replay_all(tensor.chain, builder, root.value)
            tensor.value, tensor.version = shown, root.version
            self.context.count("views derived again", len(tensor.chain))
        return tensor.value

    def refresh_operands(self, op: Operation) -> bool:
        """Make an operation read what its operands show now; whether a type changed."""
        builder = Builder.before(op)
        changed = False
        for number, operand in enumerate(op.operands):
            shown = self.current(operand, builder)
            changed = changed or shown.type is not operand.type
            op.set_operand(number, shown)
        return changed

    # -- operations

    def visit(self, op: aten.AtenOp) -> None:
        schema = op.schema
        reason = schema.storage_change
        if reason is not None:
            raise UserError(f"'{op.name}' can't be functionalized: {reason}", op=op)
        view = schema.in_place_view
        if view is not None:
            self.change_metadata(op, view)
        elif schema.is_mutable:
            self.mutate(op, schema)
        else:
            self.pure(op, schema)

    def pure(self, op: aten.AtenOp, schema: Schema) -> None:
        """An operator that writes nothing: its results are views, or new storages."""
        source = self.tensors.get(op.operands[0]) if op.operands else None
        changed = self.refresh_operands(op)
        types = [r.type for r in op.results]
        if schema.returns_alias and source is not None and self.is_view(op, schema, source):
            if regroups(op) and not source.is_eagers:
                op.set_operand(0, contiguous(Builder.before(op), op.operands[0]))
                retype_regrouped(op)
            elif changed:
                retype(op, types_of_call(schema, op.operands, op.arguments))
            for number, result in enumerate(op.results):
                type_ = types[number]
                assert isinstance(type_, TensorType)
                chain = self.chain_of(source, op, number, type_)
                root = source.root
                self.tensors[result] = StorageTensor(root, chain, result, root.version, type_)
            if schema.counts_from_storage and source.root.version:
                self.take_again(op)
            return
        if changed:
            retype(op, types_of_call(schema, op.operands, op.arguments))
        self.add_roots(op, types)

    def add_roots(self, op: Operation, types: Sequence[Any] = ()) -> None:
        """Each result is a storage of its own, with eager's strides (those of `types`)."""
        builder = Builder.after(op)
        for result, type_ in zip(op.results, types or [r.type for r in op.results], strict=True):
            if isinstance(result.type, TensorType):
                value = conform(builder, result, type_)
                self.tensors[result] = StorageTensor(Root(value), (), value, 0, type_)
                self.tensors[value] = self.tensors[result]

    def refine(self, op: sym.RefineOp) -> None:
        """Sizes known better: the same tensor, seen with another type."""
        source = self.tensors[op.operands[0]]
        self.refresh_operands(op)
        refined = op.results[0]
        type_ = type_of(refined)
        chain = (*source.chain, RefineStep(op, source.type, type_))
        version = source.root.version
        self.tensors[refined] = StorageTensor(source.root, chain, refined, version, type_)

    def chain_of(
        self, source: StorageTensor, op: aten.AtenOp, number: int, type_: TensorType
    ) -> tuple[ChainStep, ...]:
        """The chain of a view of `source`; as_strided counts from the storage, not from it."""
        if not op.schema.counts_from_storage:
            return (*source.chain, ViewStep(op, number, source.type, type_))
        root = source.root
        offset, begin = aten.arguments_of(op)["storage_offset"], root.offset
        if offset is None:
            offset, begin = self.place_of(source, op), 0
        if not root.members and type_ is root.type and offset == begin:
            return ()
        steps: list[ChainStep] = []
        vector, allowed = root.type, root.allowed
        if not root.members:
            flat = FlattenStep.of(root.type, op.location)
            steps, vector = [flat], flat.type
            if root.argument is not None and flat.order() is None:
                allowed = frozenset(positions(numbers(root.type.shape), strides_of(root.type)))
        if type_.element is not vector.element:
            view = ElementStep.of(vector, type_.element, op.location)
            begin, allowed = view.place(begin, op.location), view.allowed(allowed)
            steps, vector = [*steps, view], view.type
        return (*steps, StridedStep(vector, type_, offset - begin, allowed, op.location))

    def place_of(self, source: StorageTensor, op: aten.AtenOp) -> Any:
        """Where a tensor begins behind its root's begin, for an as_strided without an offset."""
        last = source.chain[-1] if source.chain else None
        if last is None or isinstance(last, StridedStep):
            return 0 if last is None else last.offset
        raise UserError("as_strided of a view needs its storage_offset", op=op)

    def take_again(self, op: aten.AtenOp) -> None:
        """as_strided of a storage that was written: through its chain instead."""
        tensor = self.tensors[op.results[0]]
        tensor.version = -1
        self.dead.append(op)

    def is_view(self, op: aten.AtenOp, schema: Schema, source: StorageTensor) -> bool:
        """Whether an operator that may return a view does so here, in eager mode."""
        if schema.namespace == "aten" and Fact.MAYBE_VIEW not in schema.facts:
            return True
        result_type = op.results[0].type
        assert isinstance(result_type, TensorType)
        if source.type.strides is None or result_type.strides is None:
            raise UserError(
                f"whether '{op.name}' gives a view can't be told without strides", op=op
            )
        if Fact.SELF_IF_ALIKE in schema.facts:
            return source.type is result_type
        return is_view_call(schema, source.type, op)

    def change_metadata(self, op: aten.AtenOp, view: str) -> None:
        """transpose_ and the like: the tensor is from here on the view."""
        tensor = self.tensors[op.operands[0]]
        type_ = type_of(op.results[0])
        if tensor.value is self.arguments.get(tensor) and type_ is not tensor.type:
            raise UserError(
                f"'{op.name}' changes the sizes or strides of an argument for its caller", op=op
            )
        cls = aten.op_class(f"aten.{view}")
        assert cls is not None
        builder = Builder.before(op)
        source = self.shown(tensor, builder)
        changed = cls([source], [type_], op.attributes, (), op.location)
        builder.insert(changed)
        if source.type is not tensor.type:
            retype(changed, types_of_call(cls.schema, changed.operands, changed.arguments))
        tensor.chain = self.chain_of(tensor, changed, 0, type_)
        tensor.value, tensor.type = changed.results[0], type_
        if cls.schema.counts_from_storage and tensor.root.version:
            tensor.version = -1
            self.dead.append(changed)
        self.replace_results(op, [tensor])

    # -- writing

    def mutate(self, op: aten.AtenOp, schema: Schema) -> None:
        written = self.written_tensors(op, op.operands)
        if op in self.settled:
            self.refresh_operands(op)
            (tensor,) = written
            self.tensors[op.results[0]], tensor.value = tensor, op.results[0]
            return
        builder = Builder.before(op)
        for tensor in written:
            if Fact.UNIFORM not in schema.facts and overlaps(tensor.type, tensor.chain):
                raise UserError(
                    f"'{op.name}' writes a tensor whose elements overlap in memory",
                    op=op,
                    notes=(f"its type is {tensor.type}",),
                )
            self.shown(tensor, builder)
        operands = list(op.operands)
        self.refresh_operands(op)
        unique = self.unite_places(op, operands, written)
        if unique is None:
            self.call_on_storages(op, schema, operands, builder)
        else:
            if len(unique) == len(written):
                contents = self.functional_call(op, schema, unique, builder)
            else:
                contents = self.call_on_copies(op, schema, unique, builder)
            for tensor, content in zip(unique, contents, strict=True):
                self.write(tensor, content, builder)
        self.context.count("writes")
        self.replace_results(op, written)

    def unite_places(
        self, op: aten.AtenOp, operands: Sequence[Value], written: Sequence[StorageTensor]
    ) -> list[StorageTensor] | None:
        """The tensors written, each once, where no other operand shows a part of their storages;
        else None. Operands that are the same places become one value."""
        first: dict[Root, StorageTensor] = {}
        for tensor in written:
            first.setdefault(tensor.root, tensor)
        tensors = [self.tensors.get(v) for v in operands]
        if op.schema.namespace == "aten":  # eager mode refuses to read other parts of them
            tensors = [t if t in written else None for t in tensors]
        for number, shown in enumerate(tensors):
            if shown is None or shown.root not in first:
                continue
            chosen = first[shown.root]
            if place_key(shown) != place_key(chosen):
                return None
            op.set_operand(number, chosen.value)
        return list(first.values())

    def written_tensors(self, op: aten.AtenOp, operands: Sequence[Value]) -> list[StorageTensor]:
        """The tensors that the operator writes, in schema order, of operands as they were."""
        arguments = op.arguments.as_dict()
        return [
            self.tensors[operands[number]]
            for argument in op.schema.arguments
            if argument.is_write and argument.name in arguments
            for number in aten.operand_indices(arguments[argument.name])
        ]

    def functional_call(
        self, op: aten.AtenOp, schema: Schema, written: list[StorageTensor], builder: Builder
    ) -> list[Value]:
        """Insert the call that gives the new contents of what `op` writes."""
        functional = functional_schema(schema, op)
        if functional is None:
            return self.call_on_copies(op, schema, written, builder)
        known = {a.name for a in functional.arguments}
        entries = {n: a for n, a in op.arguments.as_dict().items() if n in known}
        if "dtype" in known and "dtype" not in entries and schema.arguments[-1].kwarg_only:
            # out= decides in which type is computed
            name = DTYPE_OF_ELEMENT[written[0].type.element]
            if any(a.name == "dtype" and a.type.startswith("ScalarType")
                   for a in functional.arguments):  # fmt: skip
                entries["dtype"] = aten.DtypeAttr(name)
        operands, attribute = renumber(op, A.DictAttr(entries))
        cls = aten.class_of(functional)
        types = types_of_call(functional, operands, attribute)
        if types is None:
            types = []
            for number, tensor in enumerate(written):
                element = element_of_call(functional, operands, attribute, number)
                if element is None:  # torch can't say what the call gives: don't guess
                    return self.call_on_copies(op, schema, written, builder)
                types.append(tensor.type.with_element(element))
        call = cls(operands, [t.type for t in written], {"arguments": attribute}, (), op.location)
        retype(call, types)
        builder.insert(call)
        return [
            cast(builder, content, tensor.type.element)
            for tensor, content in zip(written, call.results, strict=True)
        ]

    def call_on_copies(
        self, op: aten.AtenOp, schema: Schema, written: list[StorageTensor], builder: Builder
    ) -> list[Value]:
        """An operator without a functional form writes fresh copies instead."""
        copies = {t.value: call(builder, "clone.default", t.type, t.value) for t in written}
        operands = [copies.get(o, o) for o in op.operands]
        self.insert_writer(op, schema, operands, builder)
        self.context.count("writes on copies")
        return [copies[t.value] for t in written]

    def call_on_storages(
        self, op: aten.AtenOp, schema: Schema, operands: Sequence[Value], builder: Builder
    ) -> None:
        """An operator that sees a storage through several operands writes views of a copy of it."""
        tensors = [self.tensors.get(v) for v in operands]
        writes = {t.root: None for t in self.written_tensors(op, operands)}
        for root in writes:
            root.value = call(builder, "clone.default", root.type, root.value)
            root.version += 1
        passed = [
            v if t is None
            else take_all(t.chain, builder, t.root.value) if t.root in writes
            else self.shown(t, builder)
            for v, t in zip(operands, tensors, strict=True)
        ]  # fmt: skip
        for number, tensor in enumerate(tensors):
            if tensor is None or tensor.root not in writes:
                continue
            if 0 in tensor.type.shape:  # nothing is written
                passed[number] = call(builder, "clone.default", tensor.type, passed[number])
            elif not is_view_of(passed[number], tensor.root.value):
                raise UserError(
                    f"'{op.name}' sees a storage through several operands, and no value holds all "
                    f"of it: operand {number} is an as_strided of a tensor with gaps",
                    op=op,
                )
        self.insert_writer(op, schema, passed, builder)
        for root in writes:
            root.version += 1
        self.context.count("writes on copies")

    def insert_writer(
        self, op: aten.AtenOp, schema: Schema, operands: Sequence[Value], builder: Builder
    ) -> None:
        """The operator on other operands; results that are new tensors are those of the copy."""
        unique, arguments = merged(operands, op.arguments)
        writer = type(op)(unique, op.result_types, {"arguments": arguments}, (), op.location)
        builder.insert(writer)
        if schema.returns_alias:
            return
        for old, new in zip(op.results, writer.results, strict=True):
            old.replace_all_uses_with(new)
            if isinstance(new.type, TensorType):
                self.tensors[new] = StorageTensor(Root(new), (), new, 0, new.type)

    def write(self, tensor: StorageTensor, content: Value, builder: Builder) -> None:
        """Make `content` what the tensor shows: the next version of its root."""
        root = tensor.root
        if type_of(content).shape != tensor.type.shape:
            self.resize(tensor, content, builder)
            return
        if 0 in tensor.type.shape:
            return  # nothing is written
        content = conform(builder, content, in_order(tensor.type))
        chain = invertible(root.type, tensor.chain, builder.location)
        sources = [root.value]
        for step in chain[:-1]:
            sources.append(step.replay(builder, sources[-1]))
        whole = content
        for step, source in zip(reversed(chain), reversed(sources), strict=False):
            whole = step.undo(builder, source, whole)
        root.value = conform(builder, whole, in_order(root.type))
        root.version += 1
        if not tensor.chain:
            content = root.value
        tensor.value, tensor.version = content, root.version

    def resize(self, tensor: StorageTensor, content: Value, builder: Builder) -> None:
        """out= gave an empty tensor its size: a storage of its own from here on."""
        if tensor.chain or tensor.root.argument is not None or 0 not in tensor.type.shape:
            raise UserError(
                f"an out= tensor of sizes {list(tensor.type.shape)} is resized to "
                f"{list(type_of(content).shape)}; only an empty one made here can be",
                builder.location,
            )
        tensor.root = Root(content)
        tensor.value, tensor.version, tensor.type = content, 0, type_of(content)

    def replace_results(self, op: aten.AtenOp, targets: list[StorageTensor]) -> None:
        """The results of an in-place operator are the tensors that it wrote."""
        if op.schema.returns_alias:
            for result, tensor in zip(op.results, targets, strict=False):
                self.tensors[result] = tensor
        self.dead.append(op)

    def finish(self, op: func.ReturnOp) -> None:
        """Hand over to the caller what was written and what is returned."""
        known = self.tensors, self.arguments, self.copied
        CallerResults(self.function, self.context, *known, self.shown).finish(op)
