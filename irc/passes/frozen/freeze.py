"""The pass `freeze`."""

from __future__ import annotations

from collections.abc import Mapping

from irc.dialects import aten, func, graph, sym
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.types import TensorType

# What gives another view of its operand at most, on the graph level.
_VIEWS = (
    graph.Reshape, graph.Permute, graph.Broadcast, graph.Slice, graph.Reverse, graph.Window,
    graph.Diagonal, graph.StridedWindow, sym.RefineOp,
)  # fmt: skip


@register_pass
class Freeze(Pass):
    """Makes constants of the arguments whose elements are known: those with a `value` in
    `arg_info` (a DenseAttr or a ResourceAttr of the argument's type).

    The argument goes away, and the function's attribute `frozen` lists the positions that such
    arguments had. An argument stays, without its `value`, when the program writes to it or to
    what shares its memory, returns it or a view of it, or binds a symbol to one of its sizes.
    Runs on the aten and the graph level.

    Before:
        func.func @main(%w: tensor<2xf32> {irc.value = dense<[1.0, 2.0]> : tensor<2xf32>},
                        %x: tensor<2xf32>) -> tensor<2xf32> {
          %y = graph.add %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    After:
        func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> attributes {frozen = array<i64: 0>} {
          %w = graph.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
          %y = graph.add %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    """

    name = "freeze"
    summary = "arguments whose elements are known become constants"
    anchor = "func.func"

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        values = known_values(op)
        if not values:
            return
        kept = arguments_that_stay(op)
        for position in kept & values.keys():
            name = op.block.arguments[position].name_hint or f"argument {position}"
            context.remark(f"{name} stays an argument: it is written, returned or measured", op)
        chosen = {p: v for p, v in values.items() if p not in kept}
        freeze_arguments(op, chosen)
        context.count("frozen", len(chosen))


def known_values(function: func.FuncOp) -> dict[int, A.Attribute]:
    """The elements of arguments that `arg_info` tells, by position."""
    values: dict[int, A.Attribute] = {}
    for position, entry in enumerate(function.arg_info or ()):
        value = entry.get("value")
        if value is not None:
            values[position] = value
    return values


def arguments_that_stay(function: func.FuncOp) -> set[int]:
    """The positions of arguments that must not become constants, whatever is known of them."""
    arguments = function.block.arguments
    holders: dict[Value, set[int]] = {a: {p} for p, a in enumerate(arguments)}
    kept: set[int] = set()
    for op in function.block.ops:
        written, shares = _effects(op)
        for operand in op.operands:
            held = holders.get(operand)
            if held is None:
                continue
            if operand in written or isinstance(op, func.ReturnOp):
                kept |= held
            if operand in shares:
                for result in op.results:
                    holders.setdefault(result, set()).update(held)
        if isinstance(op, graph.UpdateInput):
            kept.add(op.argument)
        elif isinstance(op, sym.Binder):
            kept |= holders.get(op.operands[0], set())
    for entry in function.result_info or ():
        alias = entry.get("alias_of")
        if alias is not None:
            kept.add(alias.value)
    groups = function.attributes.get("aliases")
    for group in groups if isinstance(groups, A.ArrayAttr) else ():
        members = {p.value for p in group}  # type: ignore[attr-defined]
        if members & kept:
            kept |= members
    return kept


def _effects(op: Operation) -> tuple[list[Value], list[Value]]:
    """The operands that `op` writes, and those whose memory its results may share."""
    if isinstance(op, _VIEWS):
        return [], list(op.operands[:1])
    if isinstance(op, graph.CallAten) and op.mutates:
        return list(op.operands), []
    if not isinstance(op, aten.AtenOp):
        return [], []
    written: list[Value] = []
    shares: list[Value] = []
    arguments = aten.arguments_of(op)
    for argument in op.schema.arguments:
        value = arguments[argument.name]
        listed = value if isinstance(value, list) else [value]
        tensors = [v for v in listed if isinstance(v, Value)]
        if argument.is_write:
            written += tensors
        if argument.alias:
            shares += tensors
    return written, shares


def freeze_arguments(function: func.FuncOp, values: Mapping[int, A.Attribute]) -> None:
    """Replace the arguments at these positions by constants, and number the others anew."""
    block = function.block
    builder = Builder.at_start(block)
    for position in sorted(values):
        argument = block.arguments[position]
        type_, value = argument.type, values[position]
        assert isinstance(type_, TensorType)
        constant = builder.value(graph.Constant, value=_typed(value, type_), result_types=type_)
        constant.name_hint = argument.name_hint
        argument.replace_all_uses_with(constant)
    numbers: dict[int, int] = {}
    for position in range(len(block.arguments)):
        if position not in values:
            numbers[position] = len(numbers)
    for position in sorted(values, reverse=True):
        block.erase_argument(position)
    _renumber(function, numbers)
    before = function.attributes.get("frozen")
    if values and before is None:
        function.attributes["frozen"] = A.DenseIntsAttr(sorted(values))
    function.refresh_type()


def _typed(value: A.Attribute, type_: TensorType) -> A.Attribute:
    """The attribute with the type that the argument has (with its strides)."""
    if isinstance(value, A.DenseAttr):
        return A.DenseAttr(type_, value.data)
    assert isinstance(value, A.ResourceAttr)
    return A.ResourceAttr(value.key, type_)


def _renumber(function: func.FuncOp, numbers: Mapping[int, int]) -> None:
    """Give what refers to arguments by position their new ones."""
    entries = list(function.arg_info or ())
    kept = [_without_value(entries[old]) for old in numbers]
    function.attributes["arg_info"] = A.ArrayAttr(kept)
    if function.result_info is not None:
        info = [_moved(entry, numbers) for entry in function.result_info]
        function.attributes["result_info"] = A.ArrayAttr(info)
    groups = function.attributes.get("aliases")
    if isinstance(groups, A.ArrayAttr):
        left = [[numbers[p.value] for p in g if p.value in numbers] for g in groups]  # type: ignore[attr-defined]
        del function.attributes["aliases"]
        named = [A.ArrayAttr(map(A.IntegerAttr, g)) for g in left if len(g) > 1]
        if named:
            function.attributes["aliases"] = A.ArrayAttr(named)
    for op in function.block.ops:
        if isinstance(op, graph.UpdateInput):
            op.attributes["argument"] = A.IntegerAttr(numbers[op.argument])


def _without_value(entry: A.Attribute) -> A.Attribute:
    assert isinstance(entry, A.DictAttr)
    return A.DictAttr({k: v for k, v in entry.as_dict().items() if k != "value"})


def _moved(entry: A.Attribute, numbers: Mapping[int, int]) -> A.Attribute:
    assert isinstance(entry, A.DictAttr)
    info = entry.as_dict()
    alias = info.get("alias_of")
    if isinstance(alias, A.IntegerAttr):
        info = {**info, "alias_of": A.IntegerAttr(numbers[alias.value])}
    return A.DictAttr(info)


__all__ = ["Freeze", "arguments_that_stay", "freeze_arguments", "known_values"]
