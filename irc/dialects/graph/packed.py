"""Operations of the graph dialect on weights that were packed once for a target's library.

    %p = graph.pack %w {format = "convolution", ...}       // evaluated when the program is loaded
    %y = graph.packed_conv %x, %p, %b {activation = "relu", ...}

A packed weight has the elements of the tensor that it was made of, in an order that only the
library knows: its type is `!graph.packed<tensor<...>>`, which no other operation takes.
"""

from __future__ import annotations

from typing import Any

from irc.dialects.graph.inferred import check_result, check_sizes
from irc.dialects.graph.pointwise import TENSOR
from irc.ir import attributes as A
from irc.ir.definition import Op, attribute, of, operand, optional_operand, result
from irc.ir.registry import register_attribute
from irc.ir.symbols import Dim, floordiv
from irc.ir.traits import Pure
from irc.ir.types import LibraryTensorType, TensorType

#: Functions that a packed operation applies to each element it gives, with how many scalars they
#: have: leaky_relu its slope, hardtanh its bounds. silu is x * sigmoid(x), hardswish
#: x * clamp(x + 3, 0, 6) / 6; gelu is by erf, gelu_tanh by its approximation.
ACTIVATIONS = {
    "relu": 0, "leaky_relu": 1, "hardtanh": 2, "hardswish": 0, "silu": 0, "sigmoid": 0,
    "tanh": 0, "gelu": 0, "gelu_tanh": 0,
}  # fmt: skip
FORMATS = ("convolution", "linear")


@register_attribute
class PackedType(LibraryTensorType):
    """`!graph.packed<tensor<8x4x3x3xf32>>`: these elements in an order that a library chose."""

    __slots__ = ()
    dialect = "graph"
    mnemonic = "packed"
    fields = ("tensor",)
    tensor: TensorType

    def validate(self) -> None:
        if not isinstance(self.tensor, TensorType):
            raise ValueError(f"{self.tensor} is no tensor")


PACKED = of(PackedType)


class Pack(Op):
    """The elements of `weight` laid out for the packed operations of `format`: "convolution" or
    "linear".

    The weight is a `graph.constant`; packing happens when the program is loaded, once. The sizes
    `input` of the image or matrix (left out where they are symbolic), `stride`, `padding`,
    `dilation` and `groups` of the convolution let the library choose the layout that is the
    fastest for them; the elements are the same whatever they say.

    `%p = graph.pack %w {format = "linear", input = array<i64: 8, 4>} : (tensor<6x4xf32>) -> !graph.packed<tensor<6x4xf32>>`
    """  # noqa: E501

    name = "graph.pack"
    traits = frozenset({Pure})
    weight = operand(TENSOR)
    format = attribute(A.StringAttr, words=FORMATS)
    input = attribute(A.DenseIntsAttr, optional=True)
    stride = attribute(A.DenseIntsAttr, optional=True)
    padding = attribute(A.DenseIntsAttr, optional=True)
    dilation = attribute(A.DenseIntsAttr, optional=True)
    groups = attribute(A.IntegerAttr, optional=True)
    transposed = attribute(A.UnitAttr, "the weight of a linear is given as [in, out]")
    packed = result(PACKED)

    def verify_op(self) -> None:
        source: Any = self.weight.type
        packed_type = self.packed.type.tensor
        shape = source.shape[::-1] if self.transposed else source.shape
        if shape != packed_type.shape or source.element is not packed_type.element:
            self.fail(f"gives {self.packed.type} from {source}")
        if source.rank < 2 or any(not isinstance(size, int) for size in source.shape):
            self.fail(f"{source} is no weight of known sizes")
        lists = (self.stride, self.padding, self.dilation)
        if self.format == "convolution":
            if any(v is None or len(v) != source.rank - 2 for v in lists) or self.groups is None:
                self.fail(
                    f"needs groups, and stride, padding, dilation of {source.rank - 2} numbers"
                )
        if self.format == "convolution" and self.transposed:
            self.fail("only the weight of a linear can be transposed")
        if self.format == "linear" and source.rank != 2:
            self.fail(f"the weight of a linear is a matrix, not {source}")


class _PackedOp(Op, abstract=True):
    __slots__ = ()
    traits = frozenset({Pure})
    source = operand(TENSOR)
    weight = operand(PACKED)
    bias = optional_operand(TENSOR)
    other = optional_operand(TENSOR)
    activation = attribute(A.StringAttr, optional=True, words=ACTIVATIONS)
    scalars = attribute(A.ArrayAttr, optional=True)
    value = result(TENSOR)

    def verify_epilogue(self) -> None:
        """Fail unless bias, `other` and activation fit the result."""
        result_type: Any = self.results[0].type
        bias, other = self.bias, self.other
        channels = self.weight.type.tensor.shape[0]
        if bias is not None and bias.type.shape != (channels,):
            self.fail(f"the bias is {bias.type}, not one element for each of {channels} channels")
        if other is not None and other.type.shape != result_type.shape:
            self.fail(f"what is added is {other.type}, not of sizes {result_type.shape}")
        scalars = self.scalars or ()
        activation = self.activation
        count = 0 if activation is None else ACTIVATIONS[activation]
        if len(scalars) != count or any(not isinstance(s, A.FloatAttr) for s in scalars):
            self.fail(f"activation {activation} takes {count} scalars, {len(scalars)} given")
        for value in (self.source, bias, other):
            if value is not None and value.type.element is not result_type.element:
                self.fail(f"{value.type} has other elements than {result_type}")


class PackedConv(_PackedOp):
    """`activation(convolution(source, weight) + bias + other)` with a packed weight.

    The convolution is `aten.convolution` (cross-correlation, not transposed). `activation` is a
    key of `ACTIVATIONS` with its numbers in `scalars`; none is the identity. relu and hardtanh
    may give a number for NaN.

    `%y = graph.packed_conv %x, %p {activation = "relu", dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i64: 1, 1, 0, 0>, padding = array<i64: 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x4x8x8xf32>, !graph.packed<tensor<2x4x3x3xf32>>) -> tensor<1x2x6x6xf32>`
    """  # noqa: E501

    name = "graph.packed_conv"
    stride = attribute(A.DenseIntsAttr)
    padding = attribute(A.DenseIntsAttr)
    dilation = attribute(A.DenseIntsAttr)
    groups = attribute(A.IntegerAttr)

    def verify_op(self) -> None:
        image, weight = self.source.type, self.weight.type.tensor
        if image.rank != weight.rank or image.rank < 3:
            self.fail(f"a weight {weight} doesn't fit an image {image}")
        if image.shape[1] != weight.shape[1] * self.groups or weight.shape[0] % self.groups:
            self.fail(f"{self.groups} groups of {weight} don't fit the channels of {image}")
        sizes: list[Dim] = [image.shape[0], weight.shape[0]]
        for k in range(image.rank - 2):
            reach = self.dilation[k] * (weight.shape[k + 2] - 1) + 1
            room = image.shape[k + 2] + 2 * self.padding[k] - reach
            sizes.append(floordiv(room, self.stride[k]) + 1)
        check_sizes(self, image, sizes)
        self.verify_epilogue()


class PackedLinear(_PackedOp):
    """`activation(source @ transpose(weight) + bias + other)` with a packed weight.

    `source` is [rows..., in], the weight [out, in], the result [rows..., out]. `activation` and
    `scalars` are as of `graph.packed_conv`; there is no activation where there is an `other`.

    `%y = graph.packed_linear %x, %p {activation = "gelu", operandSegmentSizes = array<i64: 1, 1, 0, 0>} : (tensor<8x4xf32>, !graph.packed<tensor<6x4xf32>>) -> tensor<8x6xf32>`
    """  # noqa: E501

    name = "graph.packed_linear"

    def verify_op(self) -> None:
        rows, weight = self.source.type, self.weight.type.tensor
        if weight.rank != 2 or rows.rank < 2 or rows.shape[-1] != weight.shape[1]:
            self.fail(f"a weight {weight} doesn't fit {rows}")
        check_result(self, rows.with_shape((*rows.shape[:-1], weight.shape[0])), rows.element)
        self.verify_epilogue()
        if self.other is not None and self.activation is not None:
            self.fail("there is no activation after what is added")
