"""The operations of the layout dialect."""

from __future__ import annotations

from irc.ir import attributes as A
from irc.ir.definition import Op, attribute, of, operand, result
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
