"""The operations of the layout dialect."""

from __future__ import annotations

from irc.ir import attributes as A
from irc.ir.definition import Op, attribute, of, operand, result, variadic_operand
from irc.ir.symbols import Dim
from irc.ir.traits import MayAlias, MemoryView, Pure
from irc.ir.types import TensorType

TENSOR = of(TensorType)


class ViewOp(Op):
    """A view of `source`'s memory with the result type's sizes and strides, `offset` elements
    after the source's first element. The source must be materialized (have memory).

    `%y = layout.view %x {offset = #sym<0>} : (tensor<[4, 2] x f32, strides [2, 1]>) -> tensor<[2, 4] x f32, strides [1, 2]>`
    """  # noqa: E501

    name = "layout.view"
    traits = frozenset({MayAlias, MemoryView, Pure})
    source = operand(TENSOR)
    offset = attribute(A.DimAttr, "in elements, relative to the source's first element")
    view = result(TENSOR)


class CopyOp(Op):
    """A fresh array with the same elements and the strides of the result's type.

    `reason` says who asked for it ("result 0 of the function", "aten.mm needs dense rows").

    `%y = layout.copy %x : (tensor<[4, 2] x f32, strides [2, 1]>) -> tensor<[4, 2] x f32, strides [1, 4]>`
    """  # noqa: E501

    name = "layout.copy"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    reason = attribute(A.StringAttr, optional=True)
    copy = result(TENSOR)


class JoinOp(Op):
    """An array in which the pieces lie one after another along `dim`; all other sizes are equal. A
    piece of one position may lack that dimension.

    Costs nothing where a launch makes a piece, with the strides of the array, and nobody else gets
    it: `bufferize` lets it write in the array's memory. Every other piece is copied there.

    `%y = layout.join %a, %b {dim = 0 : i64} : (tensor<[2] x f32, strides [1]>, tensor<[3] x f32, strides [1]>) -> tensor<[5] x f32, strides [1]>`
    """  # noqa: E501

    name = "layout.join"
    traits = frozenset({Pure})
    pieces = variadic_operand(TENSOR)
    dim = attribute(A.IntegerAttr)
    array = result(TENSOR)

    def sizes(self) -> list[Dim]:
        """How far each piece reaches along the joined dimension."""
        rank = self.array.type.rank
        types = [piece.type for piece in self.operands]
        return [t.shape[self.dim] if t.rank == rank else 1 for t in types]  # type: ignore[attr-defined]

    def begins(self) -> list[Dim]:
        """The offset of each piece's first element from the array's, in elements."""
        stride = self.array.type.strides[self.dim]
        begins: list[Dim] = []
        place: Dim = 0
        for size in self.sizes():
            begins.append(place * stride)
            place = place + size
        return begins
