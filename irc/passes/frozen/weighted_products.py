"""Convolutions and linears on constant weights, for the passes that change these weights."""

from __future__ import annotations

import attrs

from irc.analysis.channels_last import CONVOLUTION
from irc.analysis.constant_values import ConstantValues
from irc.dialects import aten, graph
from irc.dialects.aten.facts import LINEARS, factors_of
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.symbols import Dim
from irc.ir.types import FloatType, TensorType


@attrs.frozen
class WeightedProduct:
    """A call of a convolution, mm or addmm whose weight and bias are constant.

    weight: the constant, before a transposition if the call has one (`permuted`), and
    `weight_dim` the dimension of it that is the result's dimension `channel`.
    bias: has one element per channel, or is None.
    """

    call: graph.CallAten
    source: Value
    weight: Value
    bias: Value | None
    permuted: bool
    weight_dim: int
    channel: int

    @property
    def channels(self) -> int:
        """How many channels the result has."""
        size = tensor_type(self.weight).shape[self.weight_dim]
        assert isinstance(size, int)
        return size

    @property
    def is_convolution(self) -> bool:
        """Whether it is a convolution, not a linear."""
        return self.call.callee == CONVOLUTION

    def replaced(self, builder: Builder, weight: Value, bias: Value | None) -> Value:
        """The result of the same product with another weight (for `self.weight`) and bias, put
        at the builder's place. The number of channels may be another one."""
        result = tensor_type(self.call.results[0])
        count = tensor_type(weight).shape[self.weight_dim]
        shape: list[Dim] = [*result.shape]
        shape[self.channel] = count
        if self.permuted:
            weight = builder.value(
                graph.Permute, weight, permutation=[1, 0],
                result_types=tensor_type(weight).with_shape(tensor_type(weight).shape[::-1]),
            )  # fmt: skip
        arguments = dict(self.call.arguments.as_dict())
        callee, operands = self.call.callee, [self.source, weight]
        if self.is_convolution:
            names = ("input", "weight", "bias")
        else:
            callee = LINEARS[0 if bias is None else 1]
            factors, arguments = factors_of(callee), {}
            names = (factors.left, factors.right, factors.added or "")
        if bias is not None:
            operands.append(bias)
        for number in range(len(operands)):
            arguments[names[number]] = aten.OperandAttr(number)
        type_ = result.with_shape(shape)
        entries: dict[str, A.Attribute] = {
            "callee": A.StringAttr(callee),
            "arguments": A.DictAttr(arguments),
            "eager_strides": A.ArrayAttr([_strides(self.call, result, type_)]),
        }
        call = graph.CallAten(operands, [type_], entries, (), self.call.location)
        builder.insert(call)
        return call.results[0]


def _strides(call: graph.CallAten, old: TensorType, new: TensorType) -> A.Attribute:
    """Eager's strides of the result; with another number of channels, those of fresh memory."""
    recorded = call.eager_strides
    if recorded is not None and old.shape == new.shape:
        return recorded[0]
    from irc.ir.types import contiguous_strides

    return A.DimsAttr(contiguous_strides(new.shape))


def weighted_product(op: Operation, constants: ConstantValues) -> WeightedProduct | None:
    """`op` as a product with a constant weight (and bias) of floats; None for anything else."""
    if not isinstance(op, graph.CallAten):
        return None
    result = op.results[0].type if len(op.results) == 1 else None
    if not isinstance(result, TensorType) or not isinstance(result.element, FloatType):
        return None
    if op.callee == CONVOLUTION:
        return _convolution(op, constants)
    return _linear(op, constants) if op.callee in LINEARS else None


def _convolution(op: graph.CallAten, constants: ConstantValues) -> WeightedProduct | None:
    arguments = aten.arguments_of(op)
    source, weight, bias = arguments["input"], arguments["weight"], arguments["bias"]
    if weight not in constants or (bias is not None and bias not in constants):
        return None
    transposed = _is_true(arguments["transposed"])
    if transposed and arguments["groups"] != 1:
        return None
    if tensor_type(source).rank != tensor_type(weight).rank:
        return None
    return WeightedProduct(op, source, weight, bias, False, int(transposed), 1)


def _linear(op: graph.CallAten, constants: ConstantValues) -> WeightedProduct | None:
    arguments = aten.arguments_of(op)
    names = factors_of(op.callee)
    bias = arguments[names.added] if names.added is not None else None
    source, weight = arguments[names.left], arguments[names.right]
    if weight not in constants or any(arguments.get(k, 1) != 1 for k in ("alpha", "beta")):
        return None
    columns = tensor_type(weight).shape[1]
    if bias is not None and (
        bias not in constants or tensor_type(bias).shape not in ((columns,), (1, columns))
    ):
        return None
    maker = weight.defining_op
    if isinstance(maker, graph.Permute) and list(maker.permutation) == [1, 0]:
        return WeightedProduct(op, source, maker.source, bias, True, 0, 1)
    return WeightedProduct(op, source, weight, bias, False, 1, 1)


def _is_true(argument: object) -> bool:
    return bool(getattr(argument, "value", argument))


__all__ = ["WeightedProduct", "weighted_product"]
