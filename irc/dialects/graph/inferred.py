"""Operations of the graph dialect whose results follow from their operands and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from irc.ir.attributes import Attribute, Type
from irc.ir.core import Value
from irc.ir.definition import Op
from irc.ir.symbols import Dim
from irc.ir.types import TensorType


def tensor_type(value: Value) -> TensorType:
    """The type of a value that its operation declares to be a tensor."""
    return cast(TensorType, value.type)


class InferredOp(Op, abstract=True):
    """Base of these. `infer_types` says what the results are: by default what the first operand
    is. `verify_operands` fails where operands and attributes don't fit; then the results must have
    the sizes, elements and devices inferred (strides are the layout level's matter)."""

    __slots__ = ()

    @classmethod
    def infer_types(
        cls, operands: Sequence[Value], attributes: Mapping[str, Attribute]
    ) -> Sequence[Type]:
        return (operands[0].type,)

    def verify_operands(self) -> None:
        """Fail where `infer_types` has no meaning."""

    def verify_op(self) -> None:
        self.verify_operands()
        inferred = type(self).infer_types(self.operands, self.attributes)
        for result, type_ in zip(self.results, inferred, strict=True):
            assert isinstance(type_, TensorType)
            check_type(self, result.type, type_, type_.element)


def check_result(op: Op, source: TensorType, element: Type) -> None:
    """Fail unless the only result has the sizes and device of `source` and this element type."""
    check_type(op, op.results[0].type, source, element)


def check_sizes(op: Op, source: TensorType, sizes: Sequence[Dim]) -> None:
    """Fail unless the only result has these sizes, where they are numbers, and the device and
    element of `source`."""
    result_type = tensor_type(op.results[0])
    pairs = zip(sizes, result_type.shape)
    if result_type.rank != len(sizes) or any(isinstance(a, int) and a != b for a, b in pairs):
        op.fail(f"gives {result_type}, not sizes {list(sizes)}")
    check_result(op, source.with_shape(result_type.shape), source.element)


def check_type(op: Op, result_type: Type, source: TensorType, element: Type) -> None:
    """Fail unless a result's type has the sizes and device of `source` and this element type."""
    if (
        not isinstance(result_type, TensorType)
        or result_type.shape != source.shape
        or result_type.device != source.device
        or result_type.element is not element
    ):
        op.fail(f"the result is {result_type}, not sizes {source.shape} of {element}")
