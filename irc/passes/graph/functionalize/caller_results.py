"""What the caller of a functionalized function gets: written arguments, results that share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from irc.dialects import func
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import BlockArgument, Value
from irc.ir.passes import PassContext
from irc.ir.strides import same_layout
from irc.passes.graph.functionalize.storage_roots import StorageTensor, conform
from irc.passes.graph.functionalize.value_building import call, strides_of, type_of
from irc.passes.graph.functionalize.view_chains import (
    ElementStep,
    FlattenStep,
    StridedStep,
    shows_storage,
    take_all,
)


@attrs.frozen
class CallerResults:
    """The end of a function whose body makes new tensors only.

    tensors: what each value of the body is; arguments: the argument that a tensor is, where it is
    not only a view of one; copied: what each argument is behind a copy onto it that stays; shown:
    the value that shows a tensor's elements now.
    """

    function: func.FuncOp
    context: PassContext
    tensors: Mapping[Value, StorageTensor]
    arguments: Mapping[StorageTensor, BlockArgument]
    copied: Mapping[int, Value]
    shown: Callable[[StorageTensor, Builder], Value]

    def finish(self, op: func.ReturnOp) -> None:
        """Write what changed to the arguments, and return tensors as eager mode shares them."""
        builder = Builder.before(op)
        returned = [self.tensors.get(o) for o in op.operands]
        written = self.write_arguments(builder)
        for root in {t.root: None for t in returned if t is not None and t.chain}:
            if root.version and root.argument is None:
                root.begin_storage(builder)
        for number, tensor in enumerate(returned):
            if tensor is not None:
                op.set_operand(number, self.returned(tensor, written, builder))
        self.note_results(op, returned)

    def write_arguments(self, builder: Builder) -> dict[int, Value]:
        """`copy_` onto the changed arguments; gives what each is afterwards."""
        arguments = self.function.block.arguments
        written = dict(self.copied)
        for number, argument in enumerate(arguments):
            tensor = self.tensors.get(argument)
            if tensor is None or not tensor.root.version:
                continue
            value = self.shown(tensor, builder)
            written[number] = call(builder, "copy_.default", tensor.type, argument, value)
            written[number].type = argument.type
            self.context.count("arguments written")
        return written

    def returned(self, tensor: StorageTensor, written: dict[int, Value], builder: Builder) -> Value:
        """The value to return for a tensor: a view of the argument's or of the root's value."""
        root = tensor.root
        argument = self.arguments.get(tensor)
        if argument is not None:
            return written.get(argument.index, argument)
        if root.version and root.argument is not None:
            number, own = self.holder(tensor)
            return self.view_of_storage(tensor, written[number], builder, own)
        if root.version and tensor.chain:
            have, type_ = type_of(root.value), root.type
            strides = strides_of(type_)
            if have.strides is None or not same_layout(type_.shape, have.strides, strides):
                return take_all(tensor.chain, builder, root.value)
            return self.view_of_storage(tensor, root.value, builder)
        return conform(builder, self.shown(tensor, builder), tensor.type)

    def holder(self, tensor: StorageTensor) -> tuple[int, int]:
        """The argument whose storage a tensor is in, of several the one that it was taken of; and
        how many steps of its chain show that one."""
        for number in tensor.root.members:
            own = self.tensors[self.function.block.arguments[number]].chain
            if tensor.chain[: len(own)] == own:
                return number, len(own)
        assert tensor.root.argument is not None
        return tensor.root.argument, 0

    def view_of_storage(
        self, tensor: StorageTensor, written: Value, builder: Builder, known: int = 0
    ) -> Value:
        """The tensor's views behind the first `known` of an argument that was written, or of
        another root: they share its storage."""
        chain = list(tensor.chain[known:])
        if chain and isinstance(chain[0], FlattenStep):
            del chain[0]
        if known or not chain or not isinstance(chain[0], StridedStep | ElementStep):
            return take_all(chain, builder, written)
        begin = tensor.root.offset
        if isinstance(view := chain[0], ElementStep):
            (length,) = (type_ := view.source_type).shape
            vector = call(builder, "as_strided.default", type_, written, [length], [1], begin)
            written, begin = view.take(builder, vector), view.place(begin, builder.location)
            chain.pop(0)
        first = chain.pop(0)
        assert isinstance(first, StridedStep)
        sizes, strides = list(first.type.shape), list(strides_of(first.type))
        place = first.offset + begin
        shown = call(builder, "as_strided.default", first.type, written, sizes, strides, place)
        return take_all(chain, builder, shown)

    def note_results(self, op: func.ReturnOp, returned: list[StorageTensor | None]) -> None:
        """Say in `result_info` what the caller must see: strides, and whose storage it is."""
        old = self.function.attributes.get("result_info")
        infos = []
        for number, tensor in enumerate(returned):
            known = old.elements[number].as_dict() if old is not None else {}  # type: ignore[attr-defined]
            if tensor is not None:
                if tensor.root.argument is not None and shows_storage(tensor.chain):
                    known["alias_of"] = A.IntegerAttr(self.holder(tensor)[0])
                if tensor.type.strides is not None:
                    known.setdefault("strides", A.DimsAttr(tensor.type.strides))
            infos.append(A.DictAttr(known))
        if any(i.items for i in infos):
            self.function.attributes["result_info"] = A.ArrayAttr(infos)
