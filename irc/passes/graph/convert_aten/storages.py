"""`as_strided`: the elements of a storage, and where what is a view begins in it."""

from __future__ import annotations

from collections.abc import Sequence

from irc.dialects import aten, func, graph, sym
from irc.dialects.aten.facts import Fact
from irc.dialects.graph.inferred import tensor_type
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.symbols import Dim, dim_product, dim_sum, from_start, provable_le
from irc.ir.types import element_bytes, i1, i64
from irc.passes.graph.convert_aten.positions import slice_start
from irc.passes.graph.convert_aten.support import (
    Call,
    converts,
    decline,
    element_of,
    moved_source,
    normalized,
    rank_of,
    shape_of,
)
from irc.passes.graph.functionalize.argument_storages import argument_begin


@converts("aten.as_strided.default", "aten.as_strided_copy.default")
def as_strided(c: Call) -> Value:
    """Positions count in the storage: that of the tensor which the source is a view of."""
    moved_source(c)
    root, offset = storage_owner(c, c.sources["self"])
    type_ = tensor_type(root)
    order = None if type_.strides is None else dense_order(type_.shape, type_.strides)
    base = c.converted(root)
    if c.storage_offset is not None:
        offset = c.storage_offset - storage_begin(c, root)
    if 0 in c.result.shape:
        offset = 0  # no elements may lie anywhere
    if offset is None:
        decline("the offset is that of a view")
    spans = [(size - 1) * step for size, step in zip(c.result.shape, c.stride, strict=True)]
    if order is None:
        decline("the storage's owner is not dense")
    count, last = dim_product(type_.shape), dim_sum([offset, *spans])
    facts = [(0, offset), (last + 1, count)] if 0 not in c.result.shape else []
    unproven = [f for f in facts if not provable_le(*f, c.ranges)]
    if unproven and is_callers(c, root):
        decline("not within the elements of the argument")
    # A tensor made here has no more storage than its elements.
    require_inside(c, unproven)
    same = type_.strides == tuple(c.stride) and type_.shape == c.result.shape
    as_made = c.result.with_element(type_.element)
    window = base if same and offset == 0 else c.emit_typed(
        graph.StridedWindow, c.permute(base, order), as_made, strides=list(c.stride), offset=offset
    )  # fmt: skip
    return window if as_made is c.result else c.emit_typed(graph.Bitcast, window, c.result)


def is_callers(c: Call, root: Value) -> bool:
    """Whether what `storage_owner` gave is a function argument, or a view of one as elements of
    another size: its storage may go on before its first element and behind its last."""
    maker = root.defining_op
    aliases = isinstance(maker, aten.AtenOp) and maker.schema.returns_alias
    return c.argument(root) is not None or aliases


def require_inside(c: Call, facts: Sequence[tuple[Dim, Dim]]) -> None:
    """State facts (at most) about the places of a storage that `as_strided` shows: with symbolic
    sizes they are checked when the program runs. Raises UserError for one that never holds."""
    for lower, upper in facts:
        if isinstance(lower, int) and isinstance(upper, int):
            raise UserError(
                "as_strided shows places of a storage outside of the elements of a tensor that was "
                "made or written here, which no value holds: copy the tensor before (clone)",
                op=c.op,
            )
        text = f"as_strided is out of bounds of its storage: {lower} <= {upper} does not hold"
        c.builder.create(sym.AssertOp, relation="le", lhs=lower, rhs=upper, message=text)


def storage_begin(c: Call, value: Value) -> Dim:
    """Where a value that `storage_owner` gave begins in its storage: a function argument, or what
    one is after a write, where the caller says; a view as elements of another size where its source
    does; what keeps the place of a tensor that it replaces, where that does; another value at 0."""
    while isinstance(maker := value.defining_op, aten.AtenOp) and keeps_place(maker):
        value = maker.operands[0]
    if isinstance(maker, aten.AtenOp) and maker.schema.returns_alias:
        root, place = storage_owner(c, maker.operands[0])
        old, new = width(root), width(value)
        begin = None if place is None else (storage_begin(c, root) + place) * abs(old)
        if not isinstance(begin, int) or begin % abs(new):
            decline("where the view begins in its storage is not known")
        return begin // abs(new)
    argument, function = c.argument(value), c.builder.block.parent_op
    if argument is None or not isinstance(function, func.FuncOp):
        return 0
    return argument_begin(function, argument.index, c.builder)


def keeps_place(op: aten.AtenOp) -> bool:
    """Whether the result begins in its storage where the first operand does: it is written, or
    torch computes in a copy of its whole storage. In torch's traces a `copy` of a dense one is a
    new tensor; `functionalize` counts in none of them."""
    if op.schema.is_mutable or Fact.KEEPS_PLACE not in op.schema.facts:
        return op.schema.is_mutable
    type_ = tensor_type(op.operands[0])
    dense = type_.strides is not None and dense_order(type_.shape, type_.strides) is not None
    return Fact.NEW_IF_DENSE not in op.schema.facts or not dense


def storage_owner(c: Call, value: Value) -> tuple[Value, Dim | None]:
    """The value (on the aten level) whose storage `value` is a view of, and the position of its
    first element there; None for a position that is not known. Elements may be of other types but
    not of other sizes. What a write to an argument gives is a value of its own."""
    offset: Dim | None = 0
    counted = False  # whether `offset` counts from the storage's beginning
    while isinstance(maker := value.defining_op, aten.AtenOp) and maker.schema.returns_alias:
        arguments = aten.arguments_of(maker)
        if maker.schema.is_mutable or width(maker.operands[0]) != width(value):
            break
        value = maker.operands[0]
        if counted:
            continue
        if maker.schema.counts_from_storage and arguments["storage_offset"] is not None:
            offset = None if offset is None else offset + arguments["storage_offset"]
            counted = offset is not None
        elif Fact.BEGINS_INSIDE in maker.schema.facts and offset is not None:
            dim = normalized(arguments["dim"], rank_of(value))
            strides = value.type.strides  # type: ignore[attr-defined]
            step = strides[dim] if strides is not None else None
            size = shape_of(value)[dim]
            if "index" in arguments:
                start = from_start(arguments["index"], size, c.ranges)
            else:
                length = shape_of(maker.results[0])[dim]
                start = slice_start(
                    c, arguments["start"], arguments["end"], size, length, arguments["step"]
                )
            offset = offset + start * step if step is not None else None
        elif Fact.SAME_BEGIN not in maker.schema.facts:
            offset = None
    if not counted:
        return value, offset
    assert offset is not None
    return value, offset - storage_begin(c, value)


def width(value: Value) -> int:
    """The bytes of a tensor's element; -1 for bool, whose bits are no number's."""
    element = element_of(value)
    return -1 if element is i1 else element_bytes(element)


def dense_order(shape: Sequence[Dim], strides: Sequence[Dim]) -> list[int] | None:
    """The order of dimensions in which a dense tensor's elements lie in memory; None when its
    strides are not those of a permuted contiguous tensor."""
    left = [d for d in range(len(shape)) if shape[d] != 1]
    order: list[int] = []
    expected: Dim = 1
    while left:
        dim = next((d for d in reversed(left) if strides[d] == expected), None)
        if dim is None:
            return None
        order.append(dim)
        left.remove(dim)
        expected = expected * shape[dim]
    ones = [d for d in range(len(shape)) if shape[d] == 1]
    return ones + order[::-1]


@converts("aten.as_strided_scatter.default")
def as_strided_scatter(c: Call) -> Value:
    """Positions count in the storage of what the source is a view of; those that are no element of
    the source change nothing that is seen, but are not told apart here."""
    source, part = moved_source(c), c.cast(c.src, c.result.element)
    type_ = c.sources["self"].type
    root, begin = storage_owner(c, c.sources["self"])
    order = None if type_.strides is None else dense_order(type_.shape, type_.strides)
    if order is None or begin is None:
        decline("the source is not dense, or where it begins is not known")
    shape = shape_of(part)
    if 0 in shape:
        return source
    offset: Dim = 0
    if c.storage_offset is not None:
        offset = c.storage_offset - storage_begin(c, root) - begin
    spans = [(size - 1) * step for size, step in zip(shape, c.stride, strict=True)]
    length = dim_product(type_.shape)
    facts = [(0, offset), (dim_sum([offset, *spans]) + 1, length)]
    unproven = [f for f in facts if not provable_le(*f, c.ranges)]
    if unproven and is_callers(c, root):
        decline("not within the elements of the argument")
    require_inside(c, unproven)
    places = c.full(offset, c.result.with_shape(shape).with_element(i64))
    for dim, step in enumerate(c.stride):
        along = c.iota(dim, places)
        along = c.pointwise("mul", along, c.full(step, along))
        places = c.pointwise("add", places, along)
    flat = c.reshape(c.permute(source, order), (length,))
    whole = c.emit(graph.Put, flat, part, [places], dims=[0], position=0, combiner="set")
    ordered = c.reshape(whole, [type_.shape[d] for d in order])
    return c.permute(ordered, [order.index(d) for d in range(len(order))])
