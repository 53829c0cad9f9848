"""The storage of results that share one in eager mode and are computed apart.

`v[:2]` and `v[1:]` of a `v` that nobody returns are views of one array as long as rewriting leaves
it alone; where it is folded, each is an array of its own. Then a vector is made of the storage,
each result's elements are written to their places in it, and the results are views of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irc.dialects import func, graph, layout, sym
from irc.ir.builder import Builder
from irc.ir.core import BlockArgument, Value
from irc.ir.strides import same_layout
from irc.ir.symbols import Dim, floordiv, maximum, mod
from irc.ir.types import (
    ComplexType,
    IntegerType,
    TensorType,
    contiguous_strides,
    element_bytes,
    i64,
)
from irc.passes.layout.memory_views import place_in_memory, view, view_as, view_at
from irc.passes.layout.shared_results import Piece, groups, sources


def join_results(function: func.FuncOp) -> list[list[int]]:
    """Give the results of each storage that are not in one array, and are no part of each other,
    a storage that is made of them; the positions of each one's results. What only the backward
    program sees (`saved`) may stay apart."""
    apart, returned = sources(function), function.return_op
    claimed: set[Value] = set()
    joined = []
    for known in groups(function):
        whole = {
            k: piece for k, piece in known.items()
            if not piece.is_saved and (k not in apart or _is_between(function, piece, *apart[k]))
        }  # fmt: skip
        roots = {place_in_memory(returned.operands[k])[0] for k in whole}
        if len(whole) > 1 and (
            not _is_one_array(function, whole) or any(_is_taken(r, claimed) for r in roots)
        ) and (storage := _storage(list(whole.values()))) is not None:
            _join(function, whole, storage)
            joined.append(list(whole))
        claimed |= roots
    return joined


def _is_taken(root: Value, claimed: set[Value]) -> bool:
    """Whether results can't have this memory: an argument's, a constant's, or other results'."""
    constant = isinstance(root.defining_op, graph.Constant)
    return isinstance(root, BlockArgument) or constant or root in claimed


def _is_between(function: func.FuncOp, piece: Piece, number: int, place: Dim) -> bool:
    """Whether a piece that begins `place` bytes after the beginning of result `number` can't be a
    view of that one's memory as it is: it would begin between elements."""
    root, begin = place_in_memory(function.return_op.operands[number])
    return not _is_taken(root, set()) and mod(begin + place, piece.width) != 0


def _is_one_array(function: func.FuncOp, pieces: Mapping[int, Piece]) -> bool:
    """Whether results lie in one array as far apart, and with the strides, as in eager mode."""
    begins = set()
    for position, piece in pieces.items():
        value = function.return_op.operands[position]
        type_ = value.type
        assert isinstance(type_, TensorType) and type_.strides is not None
        root, place = place_in_memory(value)
        if not same_layout(type_.shape, type_.strides, piece.strides):
            return False
        begins.add((root, place - piece.begin))
    return len(begins) == 1


def _storage(pieces: Sequence[Piece]) -> tuple[Dim, TensorType] | None:
    """The storage of some pieces: the byte where it begins, and the type of a vector that holds
    all; None where sizes are symbolic and no piece is known to begin first, or elements differ."""
    # Those that have symbols know the same of them.
    one = max(pieces, key=lambda piece: len(piece.ranges))
    unit, device, is_le = one.type.element, one.type.device, one.is_le
    width = min(8, *(piece.width for piece in pieces))
    plain = len({p.type.element for p in pieces}) == 1 and not isinstance(unit, ComplexType)
    begins, ends = [p.begin for p in pieces], [p.end for p in pieces]
    first = next((b for b in begins if all(is_le(b, other) for other in begins)), None)
    last = next((e for e in ends if all(is_le(other, e) for other in ends)), None)
    if first is None:
        return None
    if last is None:  # which one is, is seen when the program runs
        last = maximum(first, *ends)
    if plain:
        return first, TensorType((floordiv(last - first, width),), unit, (1,), device)
    if not all(p.is_static for p in pieces):
        return None
    assert isinstance(first, int)
    widest = max(piece.width for piece in pieces)
    begin = first // widest * widest
    length = -((begin - last) // widest) * widest // width
    return begin, TensorType((length,), IntegerType(8 * width), (1,), device)


def _join(
    function: func.FuncOp, pieces: Mapping[int, Piece], memory: tuple[Dim, TensorType]
) -> None:
    """Make a storage of results, and the results views of it."""
    builder = Builder.before(function.return_op)
    values = {k: function.return_op.operands[k] for k in pieces}
    begin, units = memory
    width = element_bytes(units.element)
    storage = _full(builder, units, 0)
    for position, piece in pieces.items():
        part, strides = values[position], piece.strides
        if piece.type.element is not units.element:
            part = _as_units(builder, part, units, piece.width // width)
            strides = (*(s * (piece.width // width) for s in strides), 1)
        places = _places(builder, part.type, floordiv(piece.begin - begin, width), strides)
        storage = builder.value(
            graph.Put, storage, part, [places], dims=[0], position=0, combiner="set",
            result_types=units,
        )  # fmt: skip
    for position, piece in pieces.items():
        new = view_at(builder, storage, piece.begin - begin, piece.type)
        assert new is not None
        function.return_op.set_operand(position, new)


def _full(builder: Builder, type_: TensorType, value: Dim) -> Value:
    from irc.dialects.graph.pointwise import scalar_attribute

    if not isinstance(value, int):
        held = builder.value(sym.ValueOp, dim=value)
        return builder.value(graph.Full, held, result_types=type_)
    number = scalar_attribute(value, type_.element)
    return builder.value(graph.Full, None, value=number, result_types=type_)


def _as_units(builder: Builder, value: Value, unit: TensorType, count: int) -> Value:
    """The elements of `value` as `count` integers each, along a last dimension."""
    type_ = value.type
    assert isinstance(type_, TensorType)
    shape = type_.shape or (1,)
    plain = type_.with_strides(contiguous_strides(type_.shape))
    part = builder.value(layout.CopyOp, value, reason="results in one storage", result_types=plain)
    if not type_.shape:
        part = view(builder, part, 0, type_.with_shape(shape, (1,)))
    flat = (*shape[:-1], shape[-1] * count)
    part = view_as(builder, part, unit.with_shape(flat, contiguous_strides(flat)))
    split = (*type_.shape, count)
    return view(builder, part, 0, unit.with_shape(split, contiguous_strides(split)))


def _places(builder: Builder, part: object, begin: Dim, strides: Sequence[Dim]) -> Value:
    """For each element of a type its position in a vector: `begin` at first, by `strides`."""
    assert isinstance(part, TensorType)
    type_ = TensorType(part.shape, i64, contiguous_strides(part.shape), part.device)
    places = _full(builder, type_, begin)
    for dim, step in enumerate(strides):
        along = builder.value(graph.Iota, dim=dim, result_types=type_)
        along = builder.value(graph.Mul, along, _full(builder, type_, step))
        places = builder.value(graph.Add, places, along)
    return places


__all__ = ["join_results"]
