"""The pass `reinplace`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irc.dialects import func, graph, sym
from irc.dialects.sym.facts import facts_of
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import BlockArgument, Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.rewrite.fuel import NO_FUEL
from irc.ir.symbols import Dim, Range
from irc.ir.types import TensorType, element_bytes, i64
from irc.passes.graph.functionalize.argument_storages import alias_groups
from irc.passes.graph.reinplace.changed_boxes import Box, Changes, boxes_apart, changed_boxes
from irc.target import target_of


@register_pass
class Reinplace(Pass):
    """Writes the part of an argument that changes in place: the inverse of functionalize.

    Functionalize turns a write to a slice into a whole new array: the argument's elements before
    the slice, the slice, and those after it. Where that array becomes the argument's new content
    and nothing else reads the old one, it is `graph.put` of the slice, which `bufferize` does in
    the argument's memory. A slice of a slice is one box, with positions along all dimensions from
    the first to the last that are narrower; slices written one after the other are a put each.
    Legal where the argument is updated with exactly this array and no other argument shares its
    storage, and better where all other readers come before and what is written reads of the
    argument at most the elements that it replaces.
    (`graph.put` and `graph.scatter` as they come, launches and custom operators that write
    operands are done in place by `bufferize` itself.)

    Several slices are written in place where what stays is as large as the target's `copied_bytes`
    for each more than one. max_parts: more slices are not. max_pieces: what an array is put
    together of is followed through slices and concatenations up to so many pieces.

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
    asks_target = True
    max_parts: int = 4
    max_pieces: int = 16

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        updates = [o for o in op.block.ops if isinstance(o, graph.UpdateInput)]
        shared = {number for group in alias_groups(op) for number in group}
        ranges = facts_of(op).ranges if updates else {}
        worth = target_of(context).processor.copied_bytes
        for update in updates:
            argument = op.block.arguments[update.argument]
            changes: Changes | str = "it shares a storage with another one"
            if update.argument not in shared:
                changes = self.parts_written(update.value, argument, ranges, worth)
            if isinstance(changes, str):
                context.remark(f"argument {update.argument} is written whole: {changes}", update)
                continue
            if not context.spend("reinplace", update):
                context.remark(f"argument {update.argument} is written whole: {NO_FUEL}", update)
                continue
            put_parts(update.value, argument, changes.boxes, ranges)
            context.count("parts written in place", len(changes.boxes))
            context.count("bytes outside of parts", bytes_outside(argument, changes) or 0)

    def parts_written(
        self, value: Value, argument: BlockArgument, ranges: Mapping[str, Range], worth: int
    ) -> Changes | str:
        """The parts of `argument` that differ in `value`, or why they aren't written in place.
        worth: bytes that are written anew in the time of a launch more."""
        if not isinstance(argument.type, TensorType) or value.type is not argument.type:
            return "its new content has another type"
        changes = changed_boxes(value, argument, ranges, self.max_pieces)
        if isinstance(changes, str):
            return changes
        count, bytes_kept = len(changes.boxes), bytes_outside(argument, changes)
        if count > self.max_parts:
            return f"{count} slices change"
        if count > 1 and bytes_kept is not None and bytes_kept < (count - 1) * worth:
            return "more than one slice changes, and the rest is small"
        return _reader_elsewhere(value, argument, changes) or changes


def bytes_outside(argument: BlockArgument, changes: Changes) -> int | None:
    """The bytes of an argument that stay as they are; None if not known."""
    type_ = argument.type
    assert isinstance(type_, TensorType)
    return None if changes.kept is None else changes.kept * element_bytes(type_.element)


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


def _reader_elsewhere(value: Value, argument: Value, changes: Changes) -> str | None:
    """Why other readers of the argument want its old elements, if they do: one behind the update,
    or a new part, unless it reads exactly the elements that it replaces."""
    end, boxes = value.defining_op, changes.boxes
    assert end is not None
    made_of = [_ancestors(box.value) for box in boxes]
    pending: list[tuple[Value, int | None]] = [(argument, None)]
    while pending:
        read, replaced = pending.pop()
        for user in read.users:
            if isinstance(user, _VIEWS):
                view = user.results[0]
                if any(view is box.value for box in boxes):
                    return "what is written is a part of it itself"
                inside = replaced if replaced is not None else _box_read(view, argument, boxes)
                pending.append((view, inside))
                continue
            if isinstance(user, sym.Binder) or user in changes.joins:
                continue
            needed = [k for k, ops in enumerate(made_of) if user in ops]
            own = not needed or needed == [replaced]
            if not own or not _is_before(user, end):
                return "its old content is read elsewhere"
    return None


def _box_read(value: Value, argument: Value, boxes: Sequence[Box]) -> int | None:
    """Which changed box of the argument a view of it is; None if it is no such one."""
    starts, shape = box_of(value, argument), value.type.shape  # type: ignore[attr-defined]
    matching = (k for k, box in enumerate(boxes) if (box.starts, box.shape) == (starts, shape))
    return next(matching, None)


_VIEWS = (
    graph.Slice | graph.Reshape | graph.Permute | graph.Broadcast | graph.Reverse | graph.Window
    | graph.StridedWindow
)  # fmt: skip


# What is computed anew rather than kept, if what it reads has changed its name.
_CHEAP = _VIEWS | graph.PointwiseOp | graph.Cast | graph.Bitcast | graph.Select


def _is_before(op: Operation, end: Operation) -> bool:
    return op is end or (op.parent is end.parent and op.is_before_in_block(end))


def _ancestors(value: Value) -> set[Operation]:
    """The operations that a value is computed by."""
    ancestors: set[Operation] = set()
    pending = [value]
    while pending:
        maker = pending.pop().defining_op
        if maker is not None and maker not in ancestors:
            ancestors.add(maker)
            pending += maker.operands
    return ancestors


def put_parts(
    value: Value, argument: Value, boxes: Sequence[Box], ranges: Mapping[str, Range]
) -> None:
    """Make `value` by a `graph.put` of each part, in their order, instead of by the concatenation
    that it is."""
    maker = value.defining_op
    assert maker is not None
    builder = Builder.before(maker)
    new: Value = argument
    for number, box in enumerate(boxes):
        part = box.make(builder)
        if number and all(boxes_apart(box, other, ranges) for other in boxes[:number]):
            part = _read_from(builder, part, box, argument, new)
        new = _put(builder, new, part, box.starts)
    new.name_hint = value.name_hint
    value.replace_all_uses_with(new)
    maker.erase()


def _put(builder: Builder, whole: Value, value: Value, starts: Sequence[Dim]) -> Value:
    """`whole` with the box from `starts` on replaced."""
    part, type_ = value.type, whole.type
    assert isinstance(part, TensorType) and isinstance(type_, TensorType)
    narrowed = [d for d in range(type_.rank) if part.shape[d] != type_.shape[d]]
    first, last = min(narrowed), max(narrowed)
    dims = range(first, last + 1)
    positions = TensorType([part.shape[d] for d in dims], i64, None, part.device)
    places = [_places(builder, positions, d - first, starts[d]) for d in dims]
    return builder.value(
        graph.Put, whole, value, places, dims=list(dims), position=first, combiner="set"
    )


def _read_from(builder: Builder, part: Value, box: Box, old: Value, new: Value) -> Value:
    """`part`, computed from the box of `new` where it was from that of `old`: they are equal there
    while other boxes were written, and `old` needs to live no longer."""
    copied: dict[Value, Value] = {}

    def copy(value: Value) -> Value:
        known = copied.get(value)
        if known is not None:
            return known
        copied_value, maker = value, value.defining_op
        if value.type.element is old.type.element and (  # type: ignore[attr-defined]
            box_of(value, old) == box.starts and value.type.shape == box.shape  # type: ignore[attr-defined]
        ):
            whole = Box(new, box.starts, box.shape, tuple(range(len(box.starts))), box.starts)
            copied_value = whole.make(builder)
        elif isinstance(maker, _CHEAP):
            operands = [copy(v) for v in maker.operands]
            if operands != list(maker.operands):
                mapping = dict(zip(maker.operands, operands, strict=True))
                clone = builder.insert(maker.clone(mapping))
                copied_value = clone.results[maker.results.index(value)]
        copied[value] = copied_value
        return copied_value

    return copy(part)


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


__all__ = ["Reinplace", "box_of", "put_parts"]
