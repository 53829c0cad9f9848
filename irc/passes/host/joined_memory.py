"""Pieces of a joined array that are computed where they lie in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from irc.dialects import func, graph, host, layout, sym
from irc.dialects.host.memory import Aliases
from irc.ir.boxes import box_in
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.mentions import mentioned_symbols
from irc.ir.symbols import Dim
from irc.ir.types import TensorType


@attrs.frozen
class JoinedMemory:
    """The arrays that are joined, and the views of them that pieces are made in."""

    arrays: Sequence[Value] = ()
    places: Mapping[Value, Value] = attrs.field(factory=dict)


def join_in_memory(function: func.FuncOp) -> JoinedMemory:
    """Give every `layout.join` its memory, with a view of it for each piece, and erase it.

    A piece is made in place if a launch makes it with the strides of the whole, or is itself joined
    with them, and it is no piece of anything else, no result and no argument's new content. Every
    other one is copied.
    """
    joins = [op for op in function.block.ops if isinstance(op, layout.JoinOp)]
    if not joins:
        return JoinedMemory()
    apart, order, bound = _facts(function)
    times = Counter(piece for join in joins for piece in join.operands)
    arrays: list[Value] = []
    places: dict[Value, Value] = {}
    firsts: dict[Value, Operation] = {}  # by array: the first operation that makes a piece there
    kept: dict[layout.JoinOp, set[Value]] = {}  # the pieces that are made in place
    for join in joins:
        array: Any = join.array
        known = max((bound.get(name, 0) for name in mentioned_symbols(array.type)), default=-1)
        pieces: dict[Value, Any] = {
            piece: firsts.get(piece, piece.defining_op)  # type: ignore[arg-type]
            for piece, begin in zip(join.operands, join.begins(), strict=True)
            if times[piece] == 1 and piece not in apart and _is_box(piece, begin, array.type)
        }
        pieces = {piece: first for piece, first in pieces.items() if order[first] > known}
        kept[join] = set(pieces)
        firsts[array] = min(pieces.values(), key=order.__getitem__, default=join)
    for join in reversed(joins):
        array = join.array
        before, at_join = Builder.before(firsts[array]), Builder.before(join)
        whole = places.get(array)
        if whole is None:
            whole = before.value(host.AllocOp, result_types=array.type)
            whole.name_hint = array.name_hint
            arrays.append(whole)
        for piece, begin in zip(join.operands, join.begins(), strict=True):
            if piece in kept[join]:
                view = before.value(host.HostViewOp, whole, offset=begin, result_types=piece.type)
                places[piece] = view
                continue
            view = at_join.value(
                host.HostViewOp, whole, offset=begin, result_types=_in_whole(piece, join)
            )
            at_join.insert(host.HostCopyOp((piece, view), (), {}, (), join.location))
        array.replace_all_uses_with(whole)
        join.erase()
    return JoinedMemory(arrays[::-1], places)


def _facts(function: func.FuncOp) -> tuple[set[Value], dict[Operation, int], dict[str, int]]:
    """The values that need memory of their own, since they, or what shares it, are returned or
    update an argument; the place of each operation; where each symbol is bound."""
    aliases = Aliases()
    apart: set[Value] = set()
    order: dict[Operation, int] = {}
    bound: dict[str, int] = {}
    for number, op in enumerate(function.block.ops):
        aliases.add(op)
        order[op] = number
        if isinstance(op, sym.Binder):
            bound[op.symbol] = number
        if isinstance(op, func.ReturnOp | graph.UpdateInput):
            for value in op.operands:
                apart |= aliases.of(value)
    return apart, order, bound


def _in_whole(piece: Any, join: layout.JoinOp) -> TensorType:
    """A piece's type in its place."""
    strides = list(join.array.type.strides)
    if piece.type.rank < len(strides):
        del strides[join.dim]
    type_: TensorType = piece.type.with_strides(strides)
    return type_


def _is_box(piece: Any, begin: Dim, whole: TensorType) -> bool:
    """Whether a piece is made with the strides that it has in the whole, by a launch or joined."""
    if not isinstance(piece.defining_op, host.LaunchOp | layout.JoinOp):
        return False
    box = box_in(whole, piece.type, begin)
    return box is not None and box.starts is not None


__all__ = ["JoinedMemory", "join_in_memory"]
