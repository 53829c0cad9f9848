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
    """A new array that is `source` but for `part`, a box of its shape that begins at `starts`."""

    source: Value
    part: Value
    starts: tuple[Dim, ...]


@register_pass
class Reinplace(Pass):
    """Writes the part of an argument that changes in place: the inverse of functionalize.

    Functionalize turns a write to a slice into a whole new array: the argument's elements before
    the slice, the slice, and those after it. Where that array becomes the argument's new content
    and nothing else reads the old one, it is `graph.put` of the slice, which `bufferize` does in
    the argument's memory. A slice of a slice is one box, with positions along all dimensions from
    the first to the last that are narrower. Legal where the argument is updated with exactly this
    array and no other argument shares its storage, and better where all other readers come before
    and what is written reads of the argument at most the elements that it replaces.
    (`graph.put` and `graph.scatter` as they come, launches and custom operators that write
    operands are done in place by `bufferize` itself.)

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
    kind = argument.type
    if not isinstance(kind, TensorType) or value.type is not kind:
        return "its new content has another type"
    joins: list[Operation] = []
    found = changed_part(value, argument, (0,) * kind.rank, joins)
    if isinstance(found, str):
        return found
    if found.part.type.shape == kind.shape:  # type: ignore[attr-defined]
        return "all of it changes"
    return _reader_elsewhere(found, joins) or found


def changed_part(
    value: Value, source: Value, starts: tuple[Dim, ...], joins: list[Operation]
) -> PartialUpdate | str:
    """What of `value` differs from the box of `source` that begins at `starts`, which it is but
    for that; the concatenations that say so are added to `joins`."""
    maker = value.defining_op
    if not isinstance(maker, graph.Concat):
        return "its new content is no update of a slice"
    dim = maker.dim
    place = starts[dim]
    changed: tuple[Value, tuple[Dim, ...]] | None = None
    for piece in maker.sources:
        at = (*starts[:dim], place, *starts[dim + 1 :])
        if box_of(piece, source) != at:
            if changed is not None:
                return "more than one slice changes"
            changed = (piece, at)
        place = place + piece.type.shape[dim]
    if changed is None or len(maker.sources) == 1:
        return "its new content is no update of a slice"
    joins.append(maker)
    inner = changed_part(changed[0], source, changed[1], joins)
    return PartialUpdate(source, *changed) if isinstance(inner, str) else inner


def box_of(value: Value, source: Value) -> tuple[Dim, ...] | None:
    """Where in `source` the box of its elements begins that `value` is; None if it is none."""
    starts: list[Dim] = [0] * value.type.rank  # type: ignore[attr-defined]
    while value is not source:
        maker = value.defining_op
        if not isinstance(maker, graph.Slice) or maker.step != 1:
            return None
        starts[maker.dim] = starts[maker.dim] + maker.start
        value = maker.source
    return tuple(starts)


def _reader_elsewhere(update: PartialUpdate, joins: list[Operation]) -> str | None:
    """Why other readers of the source want its old elements, if they do: one behind the update,
    or the new part itself, unless it reads exactly the elements that it replaces."""
    end = joins[0]
    made_of = _ancestors(update.part)
    pending = [update.source]
    while pending:
        value = pending.pop()
        for user in value.users:
            if isinstance(user, sym.BindOp | sym.BindSizeOp) or user in joins:
                continue
            if isinstance(user, _VIEWS):
                view = user.results[0]
                same = view.type.shape == update.part.type.shape  # type: ignore[attr-defined]
                if view is update.part:
                    return "what is written is a part of it itself"
                if not same or box_of(view, update.source) != update.starts:
                    pending.append(view)
                    continue
                if all(_is_before(other, end) for other in view.users):
                    continue
            elif user not in made_of and _is_before(user, end):
                continue
            return "its old content is read elsewhere"
    return None


_VIEWS = (
    graph.Slice | graph.Reshape | graph.Permute | graph.Broadcast | graph.Reverse | graph.Window
    | graph.StridedWindow
)  # fmt: skip


def _is_before(op: Operation, end: Operation) -> bool:
    return op is end or (op.parent is end.parent and op.is_before_in_block(end))


def _ancestors(value: Value) -> set[Operation]:
    """The operations that a value is computed by."""
    found: set[Operation] = set()
    pending = [value]
    while pending:
        maker = pending.pop().defining_op
        if maker is not None and maker not in found:
            found.add(maker)
            pending += maker._operands
    return found


def put(value: Value, update: PartialUpdate) -> None:
    """Make `value` by `graph.put` instead of by the concatenation that it is."""
    maker = value.defining_op
    assert maker is not None
    builder = Builder.before(maker)
    part, whole = update.part.type, update.source.type
    assert isinstance(part, TensorType) and isinstance(whole, TensorType)
    narrowed = [d for d in range(whole.rank) if part.shape[d] != whole.shape[d]]
    first, last = min(narrowed), max(narrowed)
    dims = range(first, last + 1)
    positions = TensorType([part.shape[d] for d in dims], i64, None, part.device)
    places = [_places(builder, positions, d - first, update.starts[d]) for d in dims]
    new = builder.value(
        graph.Put, update.source, update.part, places,
        dims=list(dims), position=first, combiner="set",
    )  # fmt: skip
    new.name_hint = value.name_hint
    value.replace_all_uses_with(new)
    maker.erase()


def _places(builder: Builder, positions: TensorType, dim: int, start: Dim) -> Value:
    """Positions along `dim` from `start` on, in a tensor of the type `positions`."""
    counted = builder.value(graph.Iota, dim=dim, result_types=positions)
    if start == 0:
        return counted
    if isinstance(start, int):
        number = A.IntegerAttr(start, i64)
        first = builder.value(graph.Full, None, value=number, result_types=positions)
    else:
        scalar = builder.value(sym.ValueOp, dim=start)
        first = builder.value(graph.Full, scalar, result_types=positions)
    return builder.value(graph.Add, counted, first)


__all__ = ["PartialUpdate", "Reinplace", "box_of", "changed_part", "partial_update", "put"]
