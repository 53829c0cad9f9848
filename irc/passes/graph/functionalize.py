"""The pass `functionalize`: programs that mutate tensors as programs that make new ones.

A storage that may be written is a root with a current value and a version. A tensor is a root
seen through a chain of views. A write makes a new value of the tensor, carries it back through
the chain into the root, and so makes the next version; a view made before that is derived again
from the current root where it is read. Each argument is a root of its own; at the end,
`aten.copy_.default` writes the changed ones to the arguments.
"""

from __future__ import annotations

from typing import Any

import attrs

from irc.dialects import aten, func
from irc.dialects.aten_schema import Schema, find_schema
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.diagnostics import UserError
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import TensorType
from irc.passes.graph.result_types import element_of_call
from irc.passes.graph.view_chains import Step, call, may_overlap

# Storage itself changes: no value can stand for it.
REFUSED = {
    "set_": "it exchanges the storage under a tensor",
    "resize_": "it changes the size of a storage",
    "resize_as_": "it changes the size of a storage",
    "resize": "it changes the size of a storage",
}
METADATA = {  # in-place changes of sizes and strides only: the view that each stands for
    "transpose_": "transpose.int", "t_": "t.default", "squeeze_": "squeeze",
    "unsqueeze_": "unsqueeze.default", "swapdims_": "transpose.int", "swapaxes_": "transpose.int",
    "as_strided_": "as_strided.default",
}  # fmt: skip


class Root:
    """A storage: its current value, how often it was written, and its argument's number."""

    __slots__ = ("value", "version", "argument")

    def __init__(self, value: Value, argument: int | None = None) -> None:
        self.value = value
        self.version = 0
        self.argument = argument


@attrs.define(eq=False)
class Tensor:
    """A root seen through a chain of views, with the value that showed it at `version`."""

    root: Root
    chain: tuple[Step, ...]
    value: Value
    version: int


@register_pass
class Functionalize(Pass):
    """Removes mutation: every operation after it makes new tensors.

    Before:
        %v = aten.slice.Tensor %x {...}
        %w = aten.add_.Tensor %v, %y {...}
        func.return %x
    After:
        %v = aten.slice.Tensor %x {...}
        %w = aten.add.Tensor %v, %y {...}
        %z = aten.slice_scatter.default %x, %w {...}
        aten.copy_.default %x, %z {...}
        func.return %z

    set_ and resize_ are refused, and so are writes through overlapping views.
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
        self.tensors: dict[Value, Tensor] = {}

    def run(self) -> None:
        for number, argument in enumerate(self.function.block.arguments):
            if isinstance(argument.type, TensorType):
                self.tensors[argument] = Tensor(Root(argument, number), (), argument, 0)
        for op in self.function.block.ops:
            if isinstance(op, func.ReturnOp):
                self.finish(op)
            elif isinstance(op, aten.AtenOp):
                self.visit(op)
            else:
                self.refresh_operands(op)
        self.function.refresh_type()

    # -- reading

    def current(self, value: Value, builder: Builder) -> Value:
        """The value that shows the tensor's elements now; stale views are derived again."""
        tensor = self.tensors.get(value)
        if tensor is None:
            return value
        root = tensor.root
        if tensor.version != root.version:
            shown = root.value
            for step in tensor.chain:
                shown = step.replay(builder, shown)
            tensor.value, tensor.version = shown, root.version
            self.context.count("views derived again", len(tensor.chain))
        return tensor.value

    def refresh_operands(self, op: Operation) -> None:
        builder = Builder.before(op)
        for number, operand in enumerate(op.operands):
            op.set_operand(number, self.current(operand, builder))

    # -- operations

    def visit(self, op: aten.AtenOp) -> None:
        schema = type(op).schema
        name = op.name.split(".")[1]
        reason = REFUSED.get(name)
        if reason is not None:
            raise UserError(f"'{op.name}' can't be functionalized: {reason}", op=op)
        if name in METADATA:
            self.change_metadata(op, METADATA[name])
        elif schema.is_mutable:
            self.mutate(op, schema)
        else:
            originals = op.operands
            self.refresh_operands(op)
            self.register_results(op, schema, originals)

    def register_results(
        self, op: aten.AtenOp, schema: Schema, originals: tuple[Value, ...]
    ) -> None:
        source = self.tensors.get(originals[0]) if originals else None
        is_view = schema.returns_alias and source is not None and self.aliases(op)
        for number, made in enumerate(op.results):
            if not isinstance(made.type, TensorType):
                continue
            if is_view and source is not None:
                chain = self.chain_of(source, Step(op, number))
                self.tensors[made] = Tensor(source.root, chain, made, source.root.version)
            else:
                self.tensors[made] = Tensor(Root(made), (), made, 0)

    def chain_of(self, source: Tensor, step: Step) -> tuple[Step, ...]:
        """The chain of a view of `source`; as_strided counts from the storage, not from it."""
        if step.name != "as_strided":
            return (*source.chain, step)
        step.op.set_operand(0, source.root.value)
        return (step,)

    def aliases(self, op: aten.AtenOp) -> bool:
        """Whether an operator that may return a view does so here."""
        name = op.name.split(".")[1]
        if name not in ("reshape", "contiguous", "to", "_to_copy", "expand_as", "flatten"):
            return True
        source, made = op.operands[0].type, op.results[0].type
        assert isinstance(source, TensorType) and isinstance(made, TensorType)
        if source.strides is None or made.strides is None:
            raise UserError(
                f"whether '{op.name}' gives a view can't be told without strides", op=op
            )
        if name in ("contiguous", "to", "_to_copy"):
            return source is made
        from irc.passes.graph.result_types import is_view_call

        return is_view_call(op)

    def change_metadata(self, op: aten.AtenOp, view: str) -> None:
        """transpose_ and the like: the tensor is from here on the view."""
        target = op.operands[0]
        overload = op.name.split(".")[2]
        name = view if "." in view else f"{view}.{overload}"
        builder = Builder.before(op)
        source = self.current(target, builder)
        cls = aten.op_class(f"aten.{name}")
        assert cls is not None
        made = cls([source], op.result_types, op.attributes, (), op.location)
        builder.insert(made)
        tensor = self.tensors[target]
        chain = self.chain_of(tensor, Step(made, 0))
        view_tensor = Tensor(tensor.root, chain, made.results[0], tensor.root.version)
        self.tensors[target] = view_tensor
        self.replace_results(op, [view_tensor])

    def mutate(self, op: aten.AtenOp, schema: Schema) -> None:
        written = self.written_operands(op, schema)
        builder = Builder.before(op)
        targets = [self.tensors[v] for v in written]
        for value in written:
            kind: Any = value.type
            if kind.strides is not None and may_overlap(list(kind.shape), list(kind.strides)):
                raise UserError(
                    f"'{op.name}' writes a tensor whose elements overlap in memory",
                    op=op,
                    notes=(f"its type is {kind}",),
                )
            self.current(value, builder)
        self.refresh_operands(op)
        contents = self.functional_call(op, schema, written, builder)
        for value, content in zip(written, contents, strict=True):
            self.write(self.tensors[value], content, builder)
        self.context.count("writes")
        self.replace_results(op, targets)

    def written_operands(self, op: aten.AtenOp, schema: Schema) -> list[Value]:
        """The operands that the operator writes, in schema order."""
        given = op.attributes["arguments"].as_dict()  # type: ignore[attr-defined]
        written = []
        for argument in schema.arguments:
            if argument.is_write and argument.name in given:
                numbers = aten.operand_indices(given[argument.name])
                written += [op.operands[n] for n in numbers]
        return written

    def functional_call(
        self, op: aten.AtenOp, schema: Schema, written: list[Value], builder: Builder
    ) -> list[Value]:
        """Insert the call that gives the new contents of what `op` writes."""
        functional = functional_schema(schema)
        if functional is None:
            return self.call_on_copies(op, schema, written, builder)
        given = op.attributes["arguments"].as_dict()  # type: ignore[attr-defined]
        known = {a.name for a in functional.arguments}
        entries = {n: a for n, a in given.items() if n in known}
        operands, attribute = renumber(op, A.DictAttr(entries))
        cls = aten.op_class(functional.qualified)
        assert cls is not None
        types = []
        for number, value in enumerate(written):
            kind: Any = value.type
            element = element_of_call(functional, operands, attribute, number)
            if element is None:  # torch can't say what the call gives: don't guess
                return self.call_on_copies(op, schema, written, builder)
            types.append(kind.with_element(element))
        made = cls(operands, types, {"arguments": attribute}, (), op.location)
        builder.insert(made)
        contents: list[Value] = []
        for value, content in zip(written, made.results, strict=True):
            contents.append(self.as_type_of(value, content, builder))
        return contents

    def as_type_of(self, value: Value, content: Value, builder: Builder) -> Value:
        kind: Any = value.type
        made: Any = content.type
        if made.element is kind.element:
            return content
        from irc.ir.types import DTYPE_OF_ELEMENT

        dtype = aten.DtypeAttr(DTYPE_OF_ELEMENT[kind.element])
        type_ = made.with_element(kind.element)
        arguments = {"self": aten.OperandAttr(0), "dtype": dtype}
        cls = aten.op_class("aten._to_copy.default")
        assert cls is not None
        cast = cls([content], [type_], {"arguments": A.DictAttr(arguments)}, (), builder.location)
        return builder.insert(cast).results[0]

    def call_on_copies(
        self, op: aten.AtenOp, schema: Schema, written: list[Value], builder: Builder
    ) -> list[Value]:
        """An operator without a functional form writes fresh copies instead."""
        copies = []
        for value in written:
            kind: Any = value.type
            shown = self.tensors[value].value
            copies.append(call(builder, "clone.default", kind, shown))
        operands = list(op.operands)
        for value, copy in zip(written, copies, strict=True):
            shown = self.tensors[value].value
            operands = [copy if o is shown else o for o in operands]
        made = type(op)(operands, op.result_types, op.attributes, (), op.location)
        builder.insert(made)
        for old, new in zip(op.results, made.results, strict=True):
            if isinstance(new.type, TensorType) and not schema.returns_alias:
                self.tensors[new] = Tensor(Root(new), (), new, 0)
                old.replace_all_uses_with(new)
        self.context.count("writes on copies")
        return copies

    def write(self, tensor: Tensor, content: Value, builder: Builder) -> None:
        """Make `content` what the tensor shows: the next version of its root."""
        root = tensor.root
        sources = [root.value]
        for step in tensor.chain[:-1]:
            sources.append(step.replay(builder, sources[-1]))
        whole = content
        for step, source in zip(reversed(tensor.chain), reversed(sources), strict=False):
            whole = step.undo(builder, source, whole)
        root.value = whole
        root.version += 1
        tensor.value, tensor.version = content, root.version

    def replace_results(self, op: aten.AtenOp, targets: list[Tensor]) -> None:
        """The results of an in-place operator are the tensors that it wrote."""
        for made, tensor in zip(op.results, targets, strict=False):
            if made.has_uses:
                self.tensors[made] = tensor
                made.replace_all_uses_with(tensor.value)
                self.tensors.setdefault(tensor.value, tensor)
        op.erase()

    # -- the end

    def finish(self, op: func.ReturnOp) -> None:
        builder = Builder.before(op)
        roots = {t.root: None for t in self.tensors.values() if t.root.argument is not None}
        returned = [self.tensors.get(o) for o in op.operands]
        self.refresh_operands(op)
        self.note_aliases(returned)
        for root in sorted(roots, key=lambda r: r.argument or 0):
            if root.version:
                assert root.argument is not None
                argument = self.function.block.arguments[root.argument]
                kind: Any = argument.type
                call(builder, "copy_.default", kind, argument, root.value)
                self.context.count("arguments written")

    def note_aliases(self, returned: list[Tensor | None]) -> None:
        """Say in `result_info` which results share an argument's storage."""
        old = self.function.attributes.get("result_info")
        infos = []
        for number, tensor in enumerate(returned):
            known = old.elements[number].as_dict() if old is not None else {}  # type: ignore[attr-defined]
            argument = None if tensor is None else tensor.root.argument
            if argument is not None:
                known["alias_of"] = A.IntegerAttr(argument)
            infos.append(A.DictAttr(known))
        if any(i.items for i in infos):
            self.function.attributes["result_info"] = A.ArrayAttr(infos)


def renumber(op: aten.AtenOp, attribute: A.DictAttr) -> tuple[list[Value], A.DictAttr]:
    """The operands that the arguments mention, and the arguments counted anew."""
    order = list(dict.fromkeys(aten.operand_indices(attribute)))

    def change(attr: Any) -> Any:
        if isinstance(attr, aten.OperandAttr):
            return aten.OperandAttr(order.index(attr.index))
        if isinstance(attr, A.ArrayAttr):
            return A.ArrayAttr([change(a) for a in attr])
        return attr

    entries = {name: change(attr) for name, attr in attribute.items}
    return [op.operands[n] for n in order], A.DictAttr(entries)


def functional_schema(schema: Schema) -> Schema | None:
    """The schema of the operator that makes new tensors where `schema` writes; None if torch has
    none: `add_` -> `add`, `add.out` -> `add` with the same other arguments."""
    namespace, name, overload = schema.qualified.split(".")
    wanted = [a.name for a in schema.arguments if not (a.is_write and a.kwarg_only)]
    written = sum(1 for a in schema.arguments if a.is_write)
    bare = name[:-1] if name.endswith("_") and not name.startswith("__") else name
    bare = bare.replace("__i", "__", 1) if bare.startswith("__i") else bare
    base = overload.removesuffix("_out").removesuffix("out") or "default"
    candidates = dict.fromkeys((overload, base, "default", "Tensor", "Scalar"))
    for candidate in candidates:
        found = find_schema(f"{namespace}.{bare}.{candidate}")
        if found is None or found.is_mutable or found.returns_alias:
            continue
        names = [a.name for a in found.arguments]
        if names[: len(wanted)] == wanted and len(found.returns) == written:
            rest = found.arguments[len(wanted) :]
            if all(a.has_default for a in rest):
                return found
    return None


