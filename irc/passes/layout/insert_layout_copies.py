"""The pass `insert-layout-copies`."""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import aten, func, graph, layout
from irc.dialects.aten.facts import Fact
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import BlockArgument, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.strides import same_layout
from irc.ir.symbols import Dim, mod
from irc.ir.types import TensorType, element_bytes
from irc.passes.layout.assign_layouts import (
    entry,
    is_writable,
    repeats,
    strides_entry,
    wanted_operands,
)
from irc.passes.layout.joined_results import join_results
from irc.passes.layout.memory_views import place_in_memory, storage_root, view, view_at
from irc.passes.layout.shared_results import sources


@register_pass
class InsertLayoutCopies(Pass):
    """Makes each result of the function have the strides and the storage that its caller expects.

    A result whose strides differ from `result_info` becomes a copy, or a view where only the
    strides of dimensions of size 1 differ. A result that shares an argument's or a constant's
    storage without `alias_of` becomes a copy, and so does one that is returned twice without
    `shares`. One with `shares` that was computed apart is a view of the other result, maybe as
    another dtype, if that has all its places; if none has those of all others, a vector is made
    that has, and they are views of it. An ATen call whose results' strides depend on its
    operands' gets those that eager passes, and one that reads memory as wider elements an operand
    that begins at a multiple of their size, with eager's strides along dimensions of size 1 too.

    Before:
        return %x : tensor<[4, 6] x f32, strides [6, 1]>      // result_info: strides [1, 4]
    After:
        %y = layout.copy %x {reason = "result 0 of the function"} : ...
        return %y : tensor<[4, 6] x f32, strides [1, 4]>
    """

    name = "insert-layout-copies"
    summary = "copy results whose strides or storage are not what the caller must see"
    anchor = "func.func"

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        for inner in op.block.ops:
            context.count("copies", copy_operands(inner) + copy_between(op, inner))
        terminator = op.return_op
        for joined in join_results(op):
            context.count("storages made of results")
            names = ", ".join(map(str, joined))
            context.remark(f"results {names} are written to one array: eager's are", terminator)
        seen: dict[Value, set[int]] = {}
        returned: dict[tuple[Value, int], Value] = {}
        apart = sources(op)
        # Those that others are views of come first.
        positions = sorted(range(len(terminator.operands)), key=lambda k: (k in apart, k))
        for position in positions:
            value = terminator.operands[position]
            if not isinstance(value.type, TensorType):
                continue
            group = _sharing_group(op, position)
            # What eager returns twice is one array, be it a copy of what another result has.
            value = returned.get((value, group), value)
            new = self._part(op, position, value, apart) or self._result(op, position, value, seen)
            if new is not terminator.operands[position]:
                terminator.set_operand(position, new)
                context.count("copies", int(isinstance(new.defining_op, layout.CopyOp)))
            returned.setdefault((value, group), new)
            seen.setdefault(storage_root(new), set()).add(group)
        op.refresh_type()

    def _part(
        self,
        function: func.FuncOp,
        position: int,
        value: Value,
        apart: dict[int, tuple[int, Dim]],
    ) -> Value | None:
        """A result that fills places of another one, which has its array: a view of that one,
        where rewriting made them apart; else None."""
        if position not in apart:
            return None
        number, place = apart[position]
        whole, type_ = function.return_op.operands[number], value.type
        strides = strides_entry(function.result_info, position)
        assert isinstance(type_, TensorType) and type_.strides is not None and strides is not None
        (root, begin), (own, at) = place_in_memory(whole), place_in_memory(value)
        one_array = root is own and at - begin == place and value is not whole
        if one_array and same_layout(type_.shape, strides, type_.strides):
            return None
        if mod(begin + place, element_bytes(type_.element)) != 0:
            return None
        return view_at(
            Builder.before(function.return_op), whole, place, type_.with_strides(strides)
        )

    def _result(
        self, function: func.FuncOp, position: int, value: Value, seen: dict[Value, set[int]]
    ) -> Value:
        type_ = value.type
        assert isinstance(type_, TensorType) and type_.strides is not None
        strides = strides_entry(function.result_info, position)
        if strides is None or len(strides) != type_.rank:
            strides = type_.strides
        info = entry(function.result_info, position)
        root = storage_root(value)
        builder = Builder.before(function.return_op)
        part = _part_of_argument(function, info, root, type_.with_strides(strides), builder)
        if part is not None:
            return part
        owned = isinstance(root, BlockArgument) or isinstance(root.defining_op, graph.Constant)
        same = same_layout(type_.shape, strides, type_.strides)
        if same and _sharing_group(function, position) in seen.get(value, ()):
            return builder.value(
                layout.ViewOp, value, offset=0, result_types=type_.with_strides(strides)
            )
        strangers = seen.get(root, set()) - {_sharing_group(function, position)}
        taken = owned or value in seen or bool(strangers)
        shared = info is not None and info.get("alias_of") is None and taken
        if shared or not same:
            return copied(builder, value, strides, f"result {position} of the function")
        if strides != type_.strides:
            return builder.value(
                layout.ViewOp, value, offset=0, result_types=type_.with_strides(strides)
            )
        return value


def _sharing_group(function: func.FuncOp, position: int) -> int:
    """The first result that shares memory with result `position` in eager mode: itself, if none."""
    info = entry(function.result_info, position)
    first = None if info is None else info.get("shares")
    return first.value if isinstance(first, A.IntegerAttr) else position


def regroups(call: Operation) -> bool:
    """Whether a call reads its first operand's memory as elements of another size."""
    schema = aten.callee_schema(call) if isinstance(call, graph.CallAten) else None
    return schema is not None and Fact.OTHER_ELEMENTS in schema.facts


def copy_operands(call: Operation) -> int:
    """Give a call the strides that eager passes, where they matter; how many copies that took.

    For a call that reads memory as elements of another size those of dimensions of size 1 do, too:
    torch asks for a last stride of 1, and that the others are whole elements."""
    count = 0
    for number, strides in wanted_operands(call):
        value = call.operands[number]
        type_ = value.type
        assert isinstance(type_, TensorType) and type_.strides is not None
        if same_layout(type_.shape, strides, type_.strides):
            if strides != type_.strides and regroups(call):
                exact = view(Builder.before(call), value, 0, type_.with_strides(strides))
                call.set_operand(number, exact)
            continue
        if not repeats(type_, strides):
            continue
        reason = f"operand {number} of {getattr(call, 'callee', call.name)}"
        call.set_operand(number, copied(Builder.before(call), value, strides, reason))
        count += 1
    return count


def copy_between(function: func.FuncOp, call: Operation) -> int:
    """Give a call that reads memory as wider elements an operand that begins at a multiple of
    their size, as eager's did; how many copies that took.

    In an argument, places count from where it begins in its storage; where that is no number, the
    operand is taken to be what eager passes. An argument that eager had copied is copied: that of
    another call may begin between two such elements.
    """
    if not regroups(call):
        return 0
    assert isinstance(call, graph.CallAten)
    value = call.operands[0]
    type_, (root, place) = tensor_type(value), place_in_memory(value)
    of_caller = isinstance(root, BlockArgument)
    if isinstance(root, BlockArgument):
        known = entry(function.arg_info, root.index)
        start = None if known is None else known.get("offset")
        begin: Dim = start.dim if isinstance(start, A.DimAttr) else 0
        place = place + begin * element_bytes(tensor_type(root).element)
    width = element_bytes(tensor_type(call.results[0]).element)
    rest = mod(place, width)
    anywhere = of_caller and call.apart and width > element_bytes(type_.element)
    if not anywhere and (rest == 0 or (of_caller and not isinstance(rest, int))):
        return 0
    assert type_.strides is not None
    reason = f"operand 0 of {call.callee} begins between elements"
    call.set_operand(0, copied(Builder.before(call), value, type_.strides, reason))
    return 1


def copied(builder: Builder, value: Value, strides: Sequence[Dim], reason: str) -> Value:
    """A copy with other strides. Along dimensions of stride 0, where eager repeats one element,
    that element is copied and then repeated."""
    type_ = value.type
    assert isinstance(type_, TensorType)
    if is_writable(type_, tuple(strides)):
        target_type = type_.with_strides(strides)
        return builder.value(layout.CopyOp, value, reason=reason, result_types=target_type)
    for dim, (size, stride) in enumerate(zip(type_.shape, strides, strict=True)):
        if stride == 0 and size not in (0, 1):
            assert isinstance(value.type, TensorType)
            one = value.type.with_shape(
                (*value.type.shape[:dim], 1, *value.type.shape[dim + 1 :]), value.type.strides
            )
            value = builder.value(graph.Slice, value, dim=dim, start=0, step=1, result_types=one)
            _flag_view(value)
    assert isinstance(value.type, TensorType)
    single = value.type.with_strides([1 if stride == 0 else stride for stride in strides])
    value = builder.value(layout.CopyOp, value, reason=reason, result_types=single)
    value = builder.value(
        graph.Broadcast, value, dims=list(range(type_.rank)),
        result_types=type_.with_strides(strides),
    )  # fmt: skip
    _flag_view(value)
    return value


def _flag_view(value: Value) -> None:
    assert value.defining_op is not None
    value.defining_op.attributes["view"] = A.UNIT


def _part_of_argument(
    function: func.FuncOp,
    info: A.DictAttr | None,
    root: Value,
    type_: TensorType,
    builder: Builder,
) -> Value | None:
    """A result of type `type_`, computed in the memory `root`, as memory of the argument that
    `info` says it shares; None where it is so, and for any other. Elements of another size need
    known places."""
    alias, place = (None, None) if info is None else (info.get("alias_of"), info.get("offset"))
    if not isinstance(alias, A.IntegerAttr) or not isinstance(place, A.DimAttr):
        return None
    argument = function.block.arguments[alias.value]
    known = entry(function.arg_info, alias.value)
    start = None if known is None else known.get("offset")
    if root is argument or not isinstance(start, A.DimAttr):
        return None
    width, own = element_bytes(type_.element), element_bytes(tensor_type(argument).element)
    return view_at(builder, argument, place.dim * width - start.dim * own, type_)
