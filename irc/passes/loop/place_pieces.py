"""The pass `place-pieces`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from irc.dialects import func, layout, loop
from irc.ir.core import Operation, Value
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.rewrite.fuel import NO_FUEL
from irc.ir.symbols import symbol
from irc.ir.types import TensorType


@register_pass
class PlacePieces(Pass):
    """Computes what becomes a piece of a joined array there: no copy of it is needed.

    A piece that is a copy of a computed array, element for element, is that array itself, with the
    strides of the whole. Legal where only computes read it: they read it by its indices. The array
    may lack the joined dimension, if that has one position. What has its rows in one piece of
    memory keeps them so, as readers of it are vectors; where it would not, the copy stays.

    Before:
        %t = loop.compute par(i: 8) -> map {...} : tensor<[8] x f32, strides [1]>
        %p = loop.compute par(i: 1, j: 8) -> map {
          %a = loop.read %t[j] : f32
          loop.yield %a } : tensor<[1, 8] x f32, strides [8, 1]>
        %y = layout.join %p, %q {dim = 0 : i64} : ... -> tensor<[2, 8] x f32, strides [8, 1]>
    After:
        %t = loop.compute par(i: 8) -> map {...} : tensor<[8] x f32, strides [1]>
        %y = layout.join %t, %q {dim = 0 : i64} : ... -> tensor<[2, 8] x f32, strides [8, 1]>
    """

    name = "place-pieces"
    summary = "compute the pieces of joined arrays in their places"
    anchor = "func.func"

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        joins = [inner for inner in op.block.ops if isinstance(inner, layout.JoinOp)]
        pieces = [
            (join, number, _copied(piece))
            for join in joins
            for number, piece in enumerate(join.operands)
        ]
        uses = Counter(id(source) for _, _, source in pieces)
        for join, number, source in pieces:
            if source is None:
                reason = "something else than copying makes it"
            elif uses[id(source)] > 1:
                reason = "its array is a piece elsewhere, too"
            else:
                reason = _why_not_there(join, source)
                if not reason and not context.spend("place-pieces", join):
                    reason = NO_FUEL
            if source is not None and not reason:
                _place(join, number, source)
                context.count("pieces placed")
            elif context.explains:
                context.remark(f"piece {number} is made apart: {reason}", join)


def _copied(piece: Value) -> Value | None:
    """The computed array of which a piece is a copy, read by that piece and by computes."""
    compute = piece.defining_op
    if not isinstance(compute, loop.ComputeOp) or len(compute.results) != 1:
        return None
    read: Any = compute.yield_op.values[0].defining_op
    if not isinstance(read, loop.ReadOp) or read.mask is not None or read.positions:
        return None
    maker = read.source.defining_op
    if not isinstance(maker, loop.ComputeOp) or read.parent_op is not compute:
        return None
    return read.source if _in_order(compute, list(read.indices)) else None


def _in_order(compute: loop.ComputeOp, indices: list[Any]) -> bool:
    """Whether a copy's elements are its source's: the axes, but maybe for one of one position."""
    axes = [(symbol(axis.name), axis.extent) for axis in compute.axis_list]
    if len(indices) == len(axes):
        return all(i is a or (i == 0 and n == 1) for i, (a, n) in zip(indices, axes, strict=True))
    return indices == [a for a, n in axes if n != 1] and len(indices) == len(axes) - 1


def _why_not_there(join: layout.JoinOp, source: Value) -> str:
    """Why a computed array can't have the strides that it has as a piece; "" where it can."""
    whole: Any = join.array.type
    type_: Any = source.type
    maker = source.defining_op
    assert isinstance(maker, loop.ComputeOp)
    if maker.output_list[maker.results.index(source)].kind == "scatter":
        return "it is scattered into"
    if not all(isinstance(user, loop.ReadOp) for user in source.users):
        return "something else than computes wants it"
    placed = _placed_type(whole, type_, join.dim)
    if placed is None:
        return "it has another size"
    rows: Any = zip(type_.shape, type_.strides, placed.strides or (), strict=True)
    if any(n != 1 and a == 1 and b != 1 for n, a, b in rows):
        return "its rows would not be in one piece"
    return ""


def _placed_type(whole: Any, type_: Any, dim: int) -> TensorType | None:
    """The type of an array as a piece of `whole` along `dim`; None if it doesn't fit."""
    strides = list(whole.strides)
    shape = list(whole.shape)
    if type_.rank == whole.rank:
        shape[dim] = type_.shape[dim]
    elif type_.rank == whole.rank - 1:
        del shape[dim], strides[dim]
    if list(type_.shape) != shape:
        return None
    placed: TensorType = type_.with_strides(strides)
    return placed


def _place(join: layout.JoinOp, number: int, source: Value) -> None:
    """Make an array the piece that was its copy."""
    compute = join.operands[number].defining_op
    assert compute is not None
    placed = _placed_type(join.array.type, source.type, join.dim)
    assert placed is not None
    source.type = placed
    join.set_operand(number, source)
    if not compute.results[0].has_uses:
        compute.erase()


__all__ = ["PlacePieces"]
