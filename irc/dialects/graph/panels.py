"""A convolution that a kernel of our own computes, on weights laid out in panels.

    %y = graph.winograd_conv %x, %u, %b {activation = "relu", padding = array<i64: 1, 1>, ...}

A weight is an ordinary tensor, which any operation may compute: channel out k is number k mod
panel of panel k floordiv panel (`winograd.py`), and what is behind the last of them is not
looked at.
"""

from __future__ import annotations

from typing import Any

from irc.dialects.graph.inferred import check_sizes
from irc.dialects.graph.packed import ACTIVATIONS
from irc.dialects.graph.pointwise import TENSOR
from irc.dialects.graph.winograd import TileLine
from irc.ir import attributes as A
from irc.ir.definition import Op, attribute, operand, optional_operand, result
from irc.ir.symbols import Dim
from irc.ir.traits import Pure
from irc.ir.types import bf16, f32

#: Activations (of `ACTIVATIONS`) that the kernels apply.
PANEL_ACTIVATIONS = ("relu", "leaky_relu", "hardtanh", "hardswish")
#: Channels of a panel are a multiple of this: of the shortest vector register, twice.
PANEL_MULTIPLE = 8


class WinogradConv(Op):
    """`activation(convolution(source, weight) + bias + other)` of weights given transformed.

    A convolution with dilation 1 and one group, with `padding` zeros above and below, and left and
    right. `taps`, `stride` and `tile` make a `TileLine` of each direction, down and right: a tile of results is
    computed from `reads` elements of each line by `products` (`irc.dialects.graph.winograd`). `source` is [images, channels, height, width] of
    f32 or bf16, and so is what is added and the result; it is computed in f32. The weight
    w [out, channels, *taps] is given as G w G' of f32, of sizes [panels, products, channels, panel] with those of both lines, the lower line's outside;
    a panel's channels are a multiple of 8. `activation` and `scalars` are as of
    `graph.packed_conv`, but only relu, leaky_relu, hardtanh and hardswish; NaN stays NaN.

    Where an element that a tile reads is infinite or NaN, more of the tile's results than those that it belongs to are NaN.

    `%y = graph.winograd_conv %x, %u {operandSegmentSizes = array<i64: 1, 1, 0, 0>, padding = array<i64: 1, 1>, stride = array<i64: 1, 1>, taps = array<i64: 3, 3>, tile = array<i64: 4, 4>} : (tensor<1x4x8x8xf32>, tensor<1x36x4x32xf32>) -> tensor<1x2x8x8xf32>`
    """  # noqa: E501

    name = "graph.winograd_conv"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    weight = operand(TENSOR)
    bias = optional_operand(TENSOR)
    other = optional_operand(TENSOR)
    activation = attribute(A.StringAttr, optional=True, words=PANEL_ACTIVATIONS)
    scalars = attribute(A.ArrayAttr, optional=True)
    padding = attribute(A.DenseIntsAttr)
    taps = attribute(A.DenseIntsAttr)
    stride = attribute(A.DenseIntsAttr)
    tile = attribute(A.DenseIntsAttr)
    value = result(TENSOR)

    @property
    def lines(self) -> tuple[TileLine, TileLine]:
        """Those of the directions down and right."""
        down, right = zip(self.taps, self.stride, self.tile, strict=True)
        return TileLine(*down), TileLine(*right)

    def verify_op(self) -> None:
        for name, least in (("padding", 0), ("taps", 1), ("stride", 1), ("tile", 1)):
            numbers = list(getattr(self, name))
            if len(numbers) != 2 or min(numbers) < least:
                self.fail(f"the {name} is {numbers}, not two numbers of at least {least}")
        for line in self.lines:
            if not line.known:
                self.fail(
                    f"has no points for tiles of {line.tile} results of {line.taps} taps with "
                    f"stride {line.stride}"
                )
        self.verify_weight()
        sizes = zip(self.lines, self.source.type.shape[2:], self.padding, strict=True)
        self.verify_image([line.out_size(size, around) for line, size, around in sizes])
        self.verify_epilogue()

    def verify_image(self, sizes: list[Dim]) -> None:
        """Fail unless image and result are of f32 or bf16, the result with these sizes behind the
        first."""
        image, result_type = self.source.type, self.value.type
        if result_type.rank != 4 or image.element not in (f32, bf16):
            self.fail(f"gives {result_type} from {image}; both are images of f32 or bf16")
        check_sizes(self, image, [image.shape[0], result_type.shape[1], *sizes])

    def verify_weight(self) -> None:
        """Fail unless the weight is [panels, products, channels, panel] with the channels of image
        and result."""
        image, weight, channels = self.source.type, self.weight.type, self.value.type.shape[1]
        known = weight.rank == 4 and all(isinstance(s, int) for s in weight.shape)
        down, right = self.lines
        products = down.products * right.products
        if not known or weight.shape[1] != products or weight.element is not f32:
            self.fail(f"{weight} is no weight [panels, {products}, channels, panel] of f32")
        panels, panel = weight.shape[0], weight.shape[-1]
        if image.rank != 4 or image.shape[1] != weight.shape[-2]:
            self.fail(f"a weight {weight} doesn't fit an image {image}")
        if panel % PANEL_MULTIPLE or not panel:
            self.fail(f"panels of {panel} channels are no multiple of {PANEL_MULTIPLE}")
        if not isinstance(channels, int) or not (panels - 1) * panel < channels <= panels * panel:
            self.fail(f"a weight of {panels} panels of {panel} doesn't give {channels} channels")

    def verify_epilogue(self) -> None:
        """Fail unless bias, `other` and activation fit the result."""
        result_type: Any = self.value.type
        bias, other = self.bias, self.other
        if bias is not None and bias.type.shape != (result_type.shape[1],):
            channels = f"{result_type.shape[1]} channels"
            self.fail(f"the bias is {bias.type}, not one element for each of {channels}")
        if other is not None and other.type.shape != result_type.shape:
            self.fail(f"what is added is {other.type}, not of sizes {result_type.shape}")
        for value in (bias, other):
            if value is not None and value.type.element is not result_type.element:
                self.fail(f"{value.type} has other elements than {result_type}")
        name, scalars = self.activation, self.scalars or ()
        count = 0 if name is None else ACTIVATIONS[name]
        if len(scalars) != count or any(not isinstance(s, A.FloatAttr) for s in scalars):
            self.fail(f"activation {name} takes {count} scalars, {len(scalars)} given")
