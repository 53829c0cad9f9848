"""Operators that only rearrange elements: views, concatenation, padding, repetition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irc.dialects import aten, func, graph, sym
from irc.dialects.aten_facts import Fact
from irc.dialects.graph.inferred import tensor_type
from irc.ir.core import Value
from irc.ir.diagnostics import UserError
from irc.ir.symbols import Dim, dim_product, dim_sum, from_start, provable_le
from irc.ir.types import ComplexType, contiguous_strides, element_bytes, i1, i64
from irc.passes.graph.convert_aten.positions import element_position, slice_start
from irc.passes.graph.convert_aten.support import (
    Call,
    converts,
    decline,
    element_of,
    normalized,
    rank_of,
    shape_of,
    wrapped,
)
from irc.passes.graph.functionalize.argument_storages import argument_begin


def _source(c: Call) -> Value:
    """The tensor argument; complex elements are moved by ATen."""
    value = c.one_of("self", "a", "input")
    if isinstance(element_of(value), ComplexType):
        decline("complex elements are moved by ATen")
    return value


@converts("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default",
          "aten._reshape_alias.default", "aten.view_copy.default", "aten.view_as.default",
          "aten.reshape_as.default", "aten.flatten.using_ints", "aten.unflatten.int",
          "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.unsqueeze.default",
          "aten.squeeze_copy.default", "aten.squeeze_copy.dim", "aten.squeeze_copy.dims",
          "aten.unsqueeze_copy.default", "aten.extern.prims.view_of.default", "aten.ravel.default",
          "aten.extern.prims.squeeze.default", "aten.extern.prims.collapse_view.default",
          "aten.extern.prims.split_dim.default", "aten.atleast_1d.default",
          "aten.atleast_2d.default")  # fmt: skip
def reshape(c: Call) -> Value:
    return c.reshape(_source(c), c.result.shape)


@converts("aten.permute.default", "aten.permute_copy.default",
          "aten.extern.prims.transpose.default")  # fmt: skip
def permute(c: Call) -> Value:
    source = _source(c)
    order = [normalized(d, rank_of(source)) for d in c.one_of("dims", "permutation")]
    if sorted(order) != list(range(rank_of(source))):
        decline(f"{order} is no permutation of {rank_of(source)} dimensions")
    return c.permute(source, order)


@converts("aten.transpose.int", "aten.transpose_copy.int", "aten.swapaxes.default",
          "aten.swapdims.default")  # fmt: skip
def transpose(c: Call) -> Value:
    names = [n for n in c.arguments if n != "self"]
    first, second = (normalized(c.arguments[n], rank_of(c.self_)) for n in names)
    order = list(range(rank_of(c.self_)))
    if order:
        order[first], order[second] = order[second], order[first]
    return c.permute(_source(c), order)


@converts("aten.t.default", "aten.t_copy.default", "aten.numpy_T.default", "aten.mT.default",
          "aten.adjoint.default", "aten.mH.default", "aten.matrix_H.default")  # fmt: skip
def matrix_transpose(c: Call) -> Value:
    rank = rank_of(c.self_)
    order = list(range(rank))
    if c.op.schema.name == "numpy_T":
        order.reverse()
    elif rank >= 2:
        order[-2:] = [rank - 1, rank - 2]
    return c.permute(_source(c), order)


@converts("aten.movedim.intlist", "aten.movedim.int")
def movedim(c: Call) -> Value:
    rank = rank_of(c.self_)
    as_list = lambda v: v if isinstance(v, list) else [v]  # noqa: E731
    sources = [normalized(d, rank) for d in as_list(c.source)]
    targets = [normalized(d, rank) for d in as_list(c.destination)]
    order = [d for d in range(rank) if d not in sources]
    for target, source in sorted(zip(targets, sources, strict=True)):
        order.insert(target, source)
    return c.permute(_source(c), order)


@converts("aten.expand.default", "aten.expand_copy.default", "aten.expand_as.default",
          "aten.broadcast_to.default")  # fmt: skip
def expand(c: Call) -> Value:
    return c.broadcast(_source(c), c.result.shape)


@converts("aten.extern.prims.broadcast_in_dim.default")
def broadcast_in_dim(c: Call) -> Value:
    source = _source(c)
    dims = list(c.broadcast_dimensions)
    if shape_of(source) == c.result.shape:
        return source
    return c.emit_typed(graph.Broadcast, source, c.result, dims=dims)


# -- parts


@converts("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(c: Call) -> Value:
    source = _source(c)
    dim = normalized(c.dim, rank_of(source))
    size = shape_of(source)[dim]
    start = slice_start(c, c.start, c.end, size, c.result.shape[dim], c.step)
    if isinstance(c.step, int):
        return c.slice(source, dim, start, c.result.shape[dim], c.step)
    # The elements of a row-major tensor at a stride that is a symbol.
    strides = list(contiguous_strides(shape_of(source)))
    offset = start * strides[dim]
    strides[dim] = strides[dim] * c.step
    return c.emit_typed(graph.StridedWindow, source, c.result, strides=strides, offset=offset)


@converts("aten.select.int", "aten.select_copy.int")
def select(c: Call) -> Value:
    source = _source(c)
    dim = normalized(c.dim, rank_of(source))
    index = element_position(c, c.index, shape_of(source)[dim])
    return c.reshape(c.slice(source, dim, index, 1), c.result.shape)


@converts("aten.narrow.default", "aten.narrow_copy.default")
def narrow(c: Call) -> Value:
    source = _source(c)
    dim = normalized(c.dim, rank_of(source))
    start = from_start(c.start, shape_of(source)[dim], c.ranges)
    return c.slice(source, dim, start, c.length)


@converts("aten.split.Tensor", "aten.split_with_sizes.default",
          "aten.split_with_sizes_copy.default", "aten.split_copy.Tensor",
          "aten.chunk.default", "aten.unsafe_split.Tensor", "aten.unsafe_chunk.default",
          "aten.tensor_split.sections", "aten.split.sizes",
          "aten.unsafe_split_with_sizes.default", "aten.tensor_split.indices")  # fmt: skip
def split(c: Call) -> Sequence[Value]:
    source = _source(c)
    dim = normalized(c.dim, rank_of(source))
    parts, start = [], 0
    for kind in c.result_types:
        size = kind.shape[dim]  # type: ignore[attr-defined]
        parts.append(c.slice(source, dim, start, size))
        start = start + size
    return parts


@converts("aten.unbind.int", "aten.unbind_copy.int")
def unbind(c: Call) -> Sequence[Value]:
    source = _source(c)
    dim = normalized(c.dim, rank_of(source))
    return [
        c.reshape(c.slice(source, dim, k, 1), kind.shape)  # type: ignore[attr-defined]
        for k, kind in enumerate(c.result_types)
    ]


@converts("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(c: Call) -> Value:
    source = _source(c)
    first, second = (normalized(d, rank_of(source)) for d in (c.dim1, c.dim2))
    return c.emit_typed(
        graph.Diagonal, source, c.result, offset=c.offset, dim1=first, dim2=second
    )


@converts("aten.diag_embed.default")
def diag_embed(c: Call) -> Value:
    first, second = (normalized(d, c.result.rank) for d in (c.dim1, c.dim2))
    return c.emit_typed(
        graph.DiagonalEmbed, _source(c), c.result, offset=c.offset, dim1=first, dim2=second
    )


@converts("aten.unfold.default", "aten.unfold_copy.default")
def unfold(c: Call) -> Value:
    source = _source(c)
    if not rank_of(source):
        return c.reshape(source, c.result.shape)
    if not isinstance(c.step, int):
        decline("the step is symbolic")
    dim = normalized(c.dimension, rank_of(source))
    return c.emit_typed(graph.Window, source, c.result, dim=dim, step=c.step, dilation=1)


@converts("aten.as_strided.default", "aten.as_strided_copy.default")
def as_strided(c: Call) -> Value:
    """Positions count in the storage: that of the tensor which the source is a view of."""
    _source(c)
    root, offset = storage_owner(c, c.sources["self"])
    kind = tensor_type(root)
    order = None if kind.strides is None else dense_order(kind.shape, kind.strides)
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
    count, last = dim_product(kind.shape), dim_sum([offset, *spans])
    facts = [(0, offset), (last + 1, count)] if 0 not in c.result.shape else []
    unproven = [f for f in facts if not provable_le(*f, c.ranges)]
    if unproven and is_callers(c, root):
        decline("not within the elements of the argument")
    # A tensor made here has no more storage than its elements.
    require_inside(c, unproven)
    same = kind.strides == tuple(c.stride) and kind.shape == c.result.shape
    as_made = c.result.with_element(kind.element)
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
    kind = tensor_type(op.operands[0])
    dense = kind.strides is not None and dense_order(kind.shape, kind.strides) is not None
    return op.schema.name != "copy" or not dense


def storage_owner(c: Call, value: Value) -> tuple[Value, Dim | None]:
    """The value (on the aten level) whose storage `value` is a view of, and the position of its
    first element there; None for a position that is not known. Elements may be of other types but
    not of other sizes. What a write to an argument gives is a value of its own."""
    offset: Dim | None = 0
    counted = False  # whether `offset` counts from the storage's beginning
    while isinstance(maker := value.defining_op, aten.AtenOp) and maker.schema.returns_alias:
        given = aten.arguments_of(maker)
        if maker.schema.is_mutable or width(maker.operands[0]) != width(value):
            break
        value = maker.operands[0]
        name = maker.schema.name
        if counted:
            continue
        if maker.schema.counts_from_storage and given["storage_offset"] is not None:
            offset = None if offset is None else offset + given["storage_offset"]
            counted = offset is not None
        elif name in ("slice", "select") and offset is not None:
            dim = normalized(given["dim"], rank_of(value))
            strides = value.type.strides  # type: ignore[attr-defined]
            step = strides[dim] if strides is not None else None
            size = shape_of(value)[dim]
            if name == "select":
                start = from_start(given["index"], size, c.ranges)
            else:
                length = shape_of(maker.results[0])[dim]
                start = slice_start(c, given["start"], given["end"], size, length, given["step"])
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
        found = next((d for d in reversed(left) if strides[d] == expected), None)
        if found is None:
            return None
        order.append(found)
        left.remove(found)
        expected = expected * shape[found]
    ones = [d for d in range(len(shape)) if shape[d] == 1]
    return ones + order[::-1]


@converts("aten.flip.default", "aten.extern.prims.rev.default")
def flip(c: Call) -> Value:
    source = _source(c)
    dims = sorted({normalized(d, rank_of(source)) for d in c.dims})
    return c.emit(graph.Reverse, source, dims=dims) if dims and rank_of(source) else source


@converts("aten.roll.default")
def roll(c: Call) -> Value:
    value = source = _source(c)
    shifts, dims = list(c.shifts), list(c.dims)
    if not dims:
        value, dims = c.reshape(source, (dim_product(shape_of(source)),)), [0]
    for shift, dim in zip(shifts, dims, strict=True):
        dim = normalized(dim, rank_of(value))
        size = shape_of(value)[dim]
        if size == 0 or not rank_of(value):
            continue
        start = (size - shift) % size
        parts = [
            c.slice(value, dim, start, size - start),
            c.slice(value, dim, 0, start),
        ]
        value = c.emit(graph.Concat, parts, dim=dim, result_types=value.type)
    return c.reshape(value, c.result.shape)


# -- joining


@converts("aten.cat.default", "aten.concat.default", "aten.extern.prims.cat.default")
def cat(c: Call) -> Value:
    rank = c.result.rank
    dim = normalized(c.dim, rank)
    tensors = c.arguments["tensors"]
    parts = []
    for tensor in tensors:
        if isinstance(element_of(tensor), ComplexType):
            decline("complex elements are moved by ATen")
        if shape_of(tensor) == (0,) and rank != 1:
            continue  # torch lets an empty tensor of rank 1 join anything
        part = c.cast(tensor, c.result.element)
        shape = [shape_of(part)[d] if d == dim else s for d, s in enumerate(c.result.shape)]
        parts.append(c.broadcast(part, shape))
    if not parts:
        return c.full(0, c.result)
    return _concat(c, parts, dim)


def _concat(c: Call, parts: Sequence[Value], dim: int) -> Value:
    if len(parts) == 1:
        return c.broadcast(parts[0], c.result.shape)
    joined = dim_sum([shape_of(p)[dim] for p in parts])
    if joined != c.result.shape[dim]:
        kind = graph.replace_size(c.result, dim, joined)
        value = c.emit(graph.Concat, list(parts), dim=dim, result_types=kind)
        return c.broadcast(value, c.result.shape)
    return c.emit(graph.Concat, list(parts), dim=dim, result_types=c.result)


@converts("aten.stack.default")
def stack(c: Call) -> Value:
    dim = normalized(c.dim, c.result.rank)
    parts = []
    for tensor in c.tensors:
        if isinstance(element_of(tensor), ComplexType):
            decline("complex elements are moved by ATen")
        shape = [1 if d == dim else s for d, s in enumerate(c.result.shape)]
        parts.append(c.reshape(c.cast(tensor, c.result.element), shape))
    return _concat(c, parts, dim)


@converts("aten.constant_pad_nd.default")
def constant_pad(c: Call) -> Value:
    source = _source(c)
    rank = rank_of(source)
    low: list[Dim] = [0] * rank
    high: list[Dim] = [0] * rank
    for k in range(len(c.pad) // 2):
        low[rank - 1 - k], high[rank - 1 - k] = c.pad[2 * k], c.pad[2 * k + 1]
    return pad(c, source, low, high, c.value)


def pad(c: Call, source: Value, low: Sequence[Dim], high: Sequence[Dim], value: Any) -> Value:
    """`graph.pad` with a constant."""
    if not isinstance(value, bool | int | float):
        decline("the padding is not a constant")
    element = element_of(source)
    attribute = graph.scalar_attribute(wrapped(value, element), element)
    return c.emit_typed(
        graph.Pad, source, c.result, low=list(low), high=list(high), value=attribute
    )


@converts("aten.repeat.default", "aten.tile.default")
def repeat(c: Call) -> Value:
    source = _source(c)
    repeats = list(c.one_of("repeats", "dims"))
    rank = max(len(repeats), rank_of(source))
    repeats = [1] * (rank - len(repeats)) + repeats
    sizes: list[Dim] = [*[1] * (rank - rank_of(source)), *shape_of(source)]
    wide: list[Dim] = []
    dims = []
    for position, (times, size) in enumerate(zip(repeats, sizes, strict=True)):
        wide.append(times)
        if position >= rank - rank_of(source):
            dims.append(len(wide))
        wide.append(size)
    kind = source.type.with_shape(wide)  # type: ignore[attr-defined]
    spread = c.emit_typed(graph.Broadcast, source, kind, dims=dims)
    return c.reshape(spread, c.result.shape)


@converts("aten.repeat_interleave.self_int")
def repeat_interleave(c: Call) -> Value:
    source = _source(c)
    if c.dim is None:
        source = c.reshape(source, (dim_product(shape_of(source)),))
    dim = normalized(0 if c.dim is None else c.dim, rank_of(source))
    shape = list(shape_of(source))
    wide = [*shape[: dim + 1], c.repeats, *shape[dim + 1 :]]
    dims = [d if d <= dim else d + 1 for d in range(len(shape))]
    kind = source.type.with_shape(wide)  # type: ignore[attr-defined]
    spread = c.emit_typed(graph.Broadcast, source, kind, dims=dims)
    return c.reshape(spread, c.result.shape)


@converts("aten.slice_scatter.default", "aten.select_scatter.default")
def slice_scatter(c: Call) -> Value:
    """The source with a slice replaced: inside the slice its element, else the old one."""
    source, part = _source(c), c.src
    rank = rank_of(source)
    dim = normalized(c.dim, rank)
    size = shape_of(source)[dim]
    part = c.cast(part, c.result.element)
    if c.op.schema.name == "select_scatter":
        index = element_position(c, c.index, size)
        shape = [1 if d == dim else s for d, s in enumerate(shape_of(source))]
        _must_have(c, part, [s for d, s in enumerate(shape) if d != dim])
        start, step, part = index, 1, c.reshape(part, shape)
    else:
        step = c.step
        width = _slice_size(c, size, shape_of(part)[dim])
        _must_have(c, part, [width if d == dim else s for d, s in enumerate(shape_of(source))])
        start = slice_start(c, c.start, c.end, size, shape_of(part)[dim], step)
    if shape_of(part)[dim] == size and start == 0:
        return c.broadcast(part, c.result.shape)
    if step != 1:
        return _strided_scatter(c, source, part, dim, start, step)
    width = shape_of(part)[dim]
    parts = [
        c.slice(source, dim, 0, start),
        part,
        c.slice(source, dim, start + width, size - start - width),
    ]
    parts = [p for p in parts if shape_of(p)[dim] != 0]
    return _concat(c, parts, dim)


def _must_have(c: Call, part: Value, sizes: Sequence[Dim]) -> None:
    """Let the program raise where what is written has other sizes than the place for it, which
    torch does not see while tracing."""
    for have, want in zip(shape_of(part), sizes, strict=True):
        if have == want:
            continue
        if isinstance(have, int) and isinstance(want, int):
            decline("what is written has other sizes than the place for it, and ATen raises")
        text = f"expected src to have a size equal to the slice of self: {have} and {want}"
        c.builder.create(sym.AssertOp, relation="eq", lhs=have, rhs=want, message=text)


def _slice_size(c: Call, size: Dim, otherwise: Dim) -> Dim:
    """How many elements a slice has, where all numbers are known."""
    bounds = (c.start, c.end, c.step)
    if isinstance(size, int) and all(b is None or isinstance(b, int) for b in bounds):
        return len(range(*slice(*bounds).indices(size)))
    return otherwise


def _strided_scatter(
    c: Call, source: Value, part: Value, dim: int, start: Dim, step: int
) -> Value:
    width = shape_of(part)[dim]
    kind = c.result.with_shape((width,)).with_element(i64)
    positions = c.iota(0, kind)
    positions = c.pointwise("mul", positions, c.full(step, positions))
    positions = c.pointwise("add", positions, c.full(start, positions))
    return c.emit(
        graph.Put, source, part, [positions], dims=[dim], position=dim, combiner="set"
    )


@converts("aten.as_strided_scatter.default")
def as_strided_scatter(c: Call) -> Value:
    """Positions count in the storage of what the source is a view of; those that are no element of
    the source change nothing that is seen, but are not told apart here."""
    source, part = _source(c), c.cast(c.src, c.result.element)
    kind = c.sources["self"].type
    root, begin = storage_owner(c, c.sources["self"])
    order = None if kind.strides is None else dense_order(kind.shape, kind.strides)
    if order is None or begin is None:
        decline("the source is not dense, or where it begins is not known")
    shape = shape_of(part)
    if 0 in shape:
        return source
    offset: Dim = 0
    if c.storage_offset is not None:
        offset = c.storage_offset - storage_begin(c, root) - begin
    spans = [(size - 1) * step for size, step in zip(shape, c.stride, strict=True)]
    length = dim_product(kind.shape)
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
    ordered = c.reshape(whole, [kind.shape[d] for d in order])
    return c.permute(ordered, [order.index(d) for d in range(len(order))])


def diagonal_size(rows: Dim, columns: Dim, offset: int) -> int | None:
    """The length of a diagonal; None where sizes are symbolic."""
    if isinstance(rows, int) and isinstance(columns, int):
        return max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    return None


@converts("aten.diagonal_scatter.default")
def diagonal_scatter(c: Call) -> Value:
    source = _source(c)
    rank = rank_of(source)
    first, second = (normalized(d, rank) for d in (c.dim1, c.dim2))
    embed_kind = source.type
    part = c.cast(c.src, c.result.element)
    place = diagonal_size(shape_of(source)[first], shape_of(source)[second], c.offset)
    rest = [s for d, s in enumerate(shape_of(source)) if d not in (first, second)]
    _must_have(c, part, [*rest, place if place is not None else shape_of(part)[-1]])
    embedded = c.emit_typed(
        graph.DiagonalEmbed, part, embed_kind, offset=c.offset, dim1=first, dim2=second
    )
    rows, columns = c.iota(first, source), c.iota(second, source)
    shifted = c.pointwise("add", rows, c.full(c.offset, rows))
    return c.select(c.pointwise("eq", shifted, columns), embedded, source)


@converts("aten.tril.default", "aten.triu.default")
def triangle(c: Call) -> Value:
    source = _source(c)
    rank = rank_of(source)
    rows, columns = c.iota(rank - 2, source), c.iota(rank - 1, source)
    bound = c.pointwise("add", rows, c.full(c.diagonal, rows))
    function = "le" if c.op.schema.name == "tril" else "ge"
    return c.select(c.pointwise(function, columns, bound), source, c.full(0, source))
