"""The pass `reinplace`."""

from __future__ import annotations

import attrs

from irc.dialects import func, graph, sym
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import BlockArgument, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Dim, dim_product
from irc.ir.types import TensorType, element_bytes, i64
from irc.passes.graph.argument_storages import alias_groups


@attrs.frozen
class PartialUpdate:
    """A new array that is `source` but for `part`, which begins at `start` along `dim`."""

    source: Value
    part: Value
    dim: int
    start: Dim


@register_pass
class Reinplace(Pass):
    """Writes the part of an argument that changes in place: the inverse of functionalize.

    Functionalize turns a write to a slice into a whole new array: the argument's elements before
    the slice, the slice, and those after it. Where that array becomes the argument's new content
    and nothing else reads the old one, it is `graph.put` of the slice, which `bufferize` does in
    the argument's memory (the kernel of a put still copies the other elements onto themselves).
    Legal where the argument is updated with exactly this array, all its other readers are the
    pieces around the slice, and no other argument shares its storage. (`graph.put` and
    `graph.scatter` as they come, launches and custom operators that write operands are done in
    place by `bufferize` itself.)

    Before:
        %a = graph.slice %cache {dim = 1 : i64, start = #sym<0>, step = 1 : i64} : (tensor<2x8x4xf32>) -> tensor<2x3x4xf32>
        %b = graph.slice %cache {dim = 1 : i64, start = #sym<4>, step = 1 : i64} : (tensor<2x8x4xf32>) -> tensor<2x4x4xf32>
        %y = graph.concat %a, %k, %b {dim = 1 : i64} : (...) -> tensor<2x8x4xf32>
        graph.update_input %y {argument = 0 : i64} : tensor<2x8x4xf32>
    After:
        %i = graph.iota {dim = 0 : i64} : tensor<1xi64>
        %s = graph.full {value = 3 : i64} : tensor<1xi64>
        %p = graph.add %i, %s : tensor<1xi64>
        %y = graph.put %cache, %k, %p {combiner = "set", dims = array<i64: 1>, position = 1 : i64} : (...) -> tensor<2x8x4xf32>
        graph.update_input %y {argument = 0 : i64} : tensor<2x8x4xf32>
    """  # noqa: E501

    name = "reinplace"
    summary = "write only the part of an argument that changes, in place"
    anchor = "func.func"

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        shared = {number for group in alias_groups(op) for number in group}
        for update in list(op.block.ops):
            if not isinstance(update, graph.UpdateInput):
                continue
            argument = op.block.arguments[update.argument]
            found: PartialUpdate | str = "it shares a storage with another one"
            if update.argument not in shared:
                found = partial_update(update.value, argument)
            if isinstance(found, str):
                context.remark(f"argument {update.argument} is written whole: {found}", update)
                continue
            put(update.value, found)
            context.count("parts written in place")
            kind = argument.type
            if isinstance(kind, TensorType) and kind.is_static:
                whole, part = dim_product(kind.shape), dim_product(found.part.type.shape)  # type: ignore[attr-defined]
                outside = (whole - part) * element_bytes(kind.element)
                context.count("bytes outside of parts", outside)  # type: ignore[arg-type]


def partial_update(value: Value, argument: BlockArgument) -> PartialUpdate | str:
    """The part of `argument` that differs in `value`, or why it isn't done in place."""
    maker = value.defining_op
    if not isinstance(maker, graph.Concat):
        return "its new content is no update of a slice"
    dim, pieces = maker.dim, list(maker.sources)
    kind = argument.type
    if not isinstance(kind, TensorType) or value.type is not kind:
        return "its new content has another type"
    place: Dim = 0
    changed: tuple[Value, Dim] | None = None
    kept = []
    for piece in pieces:
        if _is_piece(piece, argument, dim, place):
            kept.append(piece)
        elif changed is not None:
            return "more than one slice changes"
        else:
            changed = (piece, place)
        place = place + piece.type.shape[dim]
    if changed is None or not kept:
        return "its new content is no update of a slice"
    for user in argument.users:
        if isinstance(user, sym.BindOp | sym.BindSizeOp):
            continue
        if user.results and user.results[0] in kept and not _other_users(user, maker):
            continue
        return "its old content is read elsewhere"
    part, start = changed
    return PartialUpdate(argument, part, dim, start)


def _is_piece(piece: Value, source: Value, dim: int, place: Dim) -> bool:
    """Whether a piece holds the source's own elements at `place`."""
    maker = piece.defining_op
    return (
        isinstance(maker, graph.Slice)
        and maker.source is source
        and maker.dim == dim
        and maker.start == place
        and maker.step == 1
    )


def _other_users(op: Operation, reader: Operation) -> bool:
    return any(user is not reader for user in op.results[0].users)


def put(value: Value, update: PartialUpdate) -> None:
    """Make `value` by `graph.put` instead of by the concatenation that it is."""
    maker = value.defining_op
    assert maker is not None
    builder = Builder.before(maker)
    kind = update.part.type
    assert isinstance(kind, TensorType)
    positions = TensorType((kind.shape[update.dim],), i64, None, kind.device)
    places = builder.value(graph.Iota, dim=0, result_types=positions)
    if isinstance(update.start, int):
        number = A.IntegerAttr(update.start, i64)
        first = builder.value(graph.Full, None, value=number, result_types=positions)
    else:
        scalar = builder.value(sym.ValueOp, dim=update.start)
        first = builder.value(graph.Full, scalar, result_types=positions)
    places = builder.value(graph.Add, places, first)
    new = builder.value(
        graph.Put, update.source, update.part, [places],
        dims=[update.dim], position=update.dim, combiner="set",
    )  # fmt: skip
    new.name_hint = value.name_hint
    value.replace_all_uses_with(new)
    maker.erase()


__all__ = ["PartialUpdate", "Reinplace", "partial_update", "put"]
