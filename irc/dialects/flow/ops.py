"""The operations of the flow dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from irc.ir import attributes as A
from irc.ir.core import Value
from irc.ir.definition import Op, attribute, of, operand, variadic_operand, variadic_result
from irc.ir.types import IntegerType, TensorType


class FlowOp(Op, abstract=True):
    """Base of the operations. With the flag `effects` a function draws random numbers, checks
    something or writes what others see, so that the operation stays where it is.

    `callee_attributes`: the attributes that name the functions.
    """

    __slots__ = ()
    callee_attributes: ClassVar[tuple[str, ...]]

    @property
    def callees(self) -> tuple[str, ...]:
        """The functions that may be called."""
        return tuple(getattr(self, name) for name in self.callee_attributes)

    def is_removable(self) -> bool:
        """Whether the operation may go when its results are unused."""
        return "effects" not in self.attributes


class CondOp(FlowOp):
    """Calls one of two functions on the operands: `then` where `condition` is true, else
    `otherwise`. Both take the types of `inputs` and give those of the results.

    `%y = flow.cond %c, %x {otherwise = @g, then = @f} : (i1, tensor<4xf32>) -> tensor<4xf32>`
    """

    name = "flow.cond"
    callee_attributes = ("then", "otherwise")
    condition = operand(of(IntegerType))
    inputs = variadic_operand()
    then = attribute(A.SymbolRefAttr)
    otherwise = attribute(A.SymbolRefAttr)
    effects = attribute(A.UnitAttr)
    outputs = variadic_result()


class WhileOp(FlowOp):
    """Calls `body` on the operands as long as `condition` gives true of them. The first `carried`
    operands are replaced by the body's results each time, and the last ones are the results.

    The condition gives an i1 or a tensor of one. With the flag `stacked` the results are not the
    last values but all that the body gave, along a new first dimension (if it gave none: the
    operands, as the only ones).

    `%y = flow.while %x, %n {body = @f, carried = 1 : i64, condition = @g} : (tensor<4xf32>, tensor<i64>) -> tensor<4xf32>`
    """  # noqa: E501

    name = "flow.while"
    callee_attributes = ("condition", "body")
    inputs = variadic_operand()
    condition = attribute(A.SymbolRefAttr)
    body = attribute(A.SymbolRefAttr)
    carried = attribute(A.IntegerAttr)
    stacked = attribute(A.UnitAttr)
    effects = attribute(A.UnitAttr)
    outputs = variadic_result()


class ScanOp(FlowOp):
    """Calls `combine` for each slice along the first dimension of arrays of one length, in order.

    The operands are `carried` values, then `scanned` arrays, then what each call gets as it is. A
    call takes the carried values, a slice of each array and the rest, and gives new carried
    values, then elements. The results are the last carried values, then the elements of all
    calls, stacked along a new first dimension. There is at least one array; if it is empty the
    operation raises an IndexError.

    `%c, %y = flow.scan %x, %xs {carried = 1 : i64, combine = @f, scanned = 1 : i64} : (tensor<4xf32>, tensor<6x4xf32>) -> (tensor<4xf32>, tensor<6x4xf32>)`
    """  # noqa: E501

    name = "flow.scan"
    callee_attributes = ("combine",)
    inputs = variadic_operand()
    combine = attribute(A.SymbolRefAttr)
    carried = attribute(A.IntegerAttr)
    scanned = attribute(A.IntegerAttr)
    effects = attribute(A.UnitAttr)
    outputs = variadic_result()


def tensors_of(values: Sequence[Value]) -> list[int]:
    """The numbers of the values that are tensors."""
    return [k for k, v in enumerate(values) if isinstance(v.type, TensorType)]


__all__ = ["CondOp", "FlowOp", "ScanOp", "WhileOp", "tensors_of"]
