"""Winograd's convolution as an operation of the graph dialect (`irc.analysis.winograd`).

    %y = graph.winograd_conv %x, %u, %b {activation = "relu", padding = array<i64: 1, 1>, ...}

Its weight is an ordinary tensor of transformed weights, which any operation may compute.
"""

from __future__ import annotations

from typing import Any

from irc.analysis.winograd import PRODUCTS, TAPS
from irc.dialects.graph_inferred import check_result
from irc.dialects.graph_packed import ACTIVATIONS
from irc.dialects.graph_pointwise import TENSOR
from irc.ir import attributes as A
from irc.ir.definition import Op, attribute, operand, optional_operand, result
from irc.ir.symbols import Dim
from irc.ir.traits import Pure
from irc.ir.types import f32

#: Activations (of `ACTIVATIONS`) that its kernel applies.
WINOGRAD_ACTIVATIONS = ("relu", "leaky_relu", "hardtanh")

#: Channels of a panel are a multiple of this: of the shortest vector register, twice.
PANEL_MULTIPLE = 8


class WinogradConv(Op):
    """`activation(convolution(source, weight) + bias + other)` of 3x3 weights given transformed.

    A convolution with stride 1, dilation 1 and one group, with `padding` zeros above and below,
    and left and right. `source` is [images, channels, height, width] of f32. The weight w
    [out, channels, 3, 3] is given as G w G', of sizes [panels, 36, channels, panel]: channel
    out k is number k mod panel (a multiple of 8) of panel k floordiv panel, and what is behind the
    last of them is not looked at. `activation` and `scalars` are as of `graph.packed_conv`, but only relu,
    leaky_relu and hardtanh; NaN stays NaN.

    A tile of 4x4 results is computed from 6x6 elements. Where one of these is infinite or NaN,
    more of the tile's results than the nine around it are NaN.

    `%y = graph.winograd_conv %x, %u {operandSegmentSizes = array<i64: 1, 1, 0, 0>, padding = array<i64: 1, 1>} : (tensor<1x4x8x8xf32>, tensor<1x36x4x32xf32>) -> tensor<1x2x8x8xf32>`
    """  # noqa: E501

    name = "graph.winograd_conv"
    traits = frozenset({Pure})
    source = operand(TENSOR)
    weight = operand(TENSOR)
    bias = optional_operand(TENSOR)
    other = optional_operand(TENSOR)
    padding = attribute(A.DenseIntsAttr)
    activation = attribute(A.StringAttr, optional=True)
    scalars = attribute(A.ArrayAttr, optional=True)
    value = result(TENSOR)

    def verify_op(self) -> None:
        image, weight, made = self.source.type, self.weight.type, self.value.type
        if image.rank != 4 or made.rank != 4 or image.element is not f32:
            self.fail(f"gives {made} from {image}; both are images of f32")
        if len(self.padding) != 2 or min(self.padding) < 0:
            self.fail(f"the padding is {list(self.padding)}, not two numbers of at least 0")
        self._verify_weight(image, weight, made.shape[1])
        sizes: list[Dim] = [image.shape[0], made.shape[1]]
        for k in range(2):
            sizes.append(image.shape[k + 2] + 2 * self.padding[k] - TAPS + 1)
        known = [a for a, b in zip(sizes, made.shape, strict=True) if isinstance(a, int)]
        if known != [b for a, b in zip(sizes, made.shape, strict=True) if isinstance(a, int)]:
            self.fail(f"gives {made}, not sizes {sizes}")
        check_result(self, image.with_shape(made.shape), image.element)
        self._verify_epilogue(made)

    def _verify_weight(self, image: Any, weight: Any, channels: Dim) -> None:
        """Fail unless the weight has all products, the image's channels and those out."""
        known = weight.rank == 4 and all(isinstance(size, int) for size in weight.shape)
        if not known or weight.shape[1] != PRODUCTS or weight.element is not f32:
            self.fail(f"{weight} is no transformed weight: [panels, {PRODUCTS}, channels, panel]")
        if image.shape[1] != weight.shape[2]:
            self.fail(f"a weight {weight} doesn't fit an image {image}")
        panels, _, _, panel = weight.shape
        if panel % PANEL_MULTIPLE or not panel:
            self.fail(f"panels of {panel} channels are no multiple of {PANEL_MULTIPLE}")
        if not isinstance(channels, int) or not (panels - 1) * panel < channels <= panels * panel:
            self.fail(f"a weight of {panels} panels of {panel} doesn't give {channels} channels")

    def _verify_epilogue(self, made: Any) -> None:
        """Fail unless bias, `other` and activation fit the result."""
        bias, other = self.bias, self.other
        if bias is not None and bias.type.shape != (made.shape[1],):
            self.fail(f"the bias is {bias.type}, not one element for each of {made.shape[1]} "
                      "channels")  # fmt: skip
        if other is not None and other.type.shape != made.shape:
            self.fail(f"what is added is {other.type}, not of sizes {made.shape}")
        for value in (bias, other):
            if value is not None and value.type.element is not made.element:
                self.fail(f"{value.type} has other elements than {made}")
        name, given = self.activation, self.scalars or ()
        if name is not None and name not in WINOGRAD_ACTIVATIONS:
            self.fail(f"there is no activation '{name}' here, only "
                      f"{', '.join(WINOGRAD_ACTIVATIONS)}")  # fmt: skip
        wanted = 0 if name is None else ACTIVATIONS[name]
        if len(given) != wanted or any(not isinstance(s, A.FloatAttr) for s in given):
            self.fail(f"activation {name} takes {wanted} scalars, {len(given)} given")
