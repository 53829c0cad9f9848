"""What a convolution is as a `graph.dot_general`: windows of the image times the weight.

    convolution(x [n, c, h, w], w [o, c, r, s], b)
        -> permute(dot_general(windows [n, c, p, q, r, s], w) + b)

The windows are views: on the loop level they are reads whose indices are affine, and the zeros
around an image a condition on them. On a CPU nothing is copied. On a GPU sums run along the
channels of one tap after the other (`taps_first`), which lie side by side in images that have them
innermost, and a weight that lies otherwise is laid out so (`in_rows`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from irc.dialects import aten, graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.symbols import Dim
from irc.ir.types import TensorType, Type
from irc.passes.common.tensors import in_rows, permuted, reshaped, with_zeros
from irc.passes.graph.contractions.products import (
    Form,
    accumulator_of,
    cast,
    dot_general,
    result_type,
    spread,
)

Ints = tuple[int, ...]
Numbers = tuple[Ints, Ints, Ints]


@attrs.frozen
class ConvolutionParts:
    """A convolution's operands, and the numbers of each of its spatial dimensions."""

    image: Value
    weight: Value
    bias: Value | None
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


def convolution_form(call: graph.CallAten, taps_first: bool = False) -> Form | str:
    """What makes the result of a convolution, or why nothing does."""
    parts = parts_of(call)
    if isinstance(parts, str):
        return parts
    result = result_type(call)
    wide = accumulator_of(result.element)
    if wide is None:
        return f"there are no products of {result.element}"
    return lambda builder, schedule: convolution_product(
        builder, parts, result, wide, schedule, taps_first
    )


def parts_of(call: graph.CallAten) -> ConvolutionParts | str:
    """The parts of a convolution, or why it is none that irc computes."""
    arguments = aten.arguments_of(call)
    numbers = numbers_of(call, arguments)
    if isinstance(numbers, str):
        return numbers
    image, weight, bias = (arguments[name] for name in ("input", "weight", "bias"))
    if arguments["transposed"]:
        return "it is transposed"
    return ConvolutionParts(image, weight, bias, *numbers, arguments["groups"])


def numbers_of(call: graph.CallAten, arguments: Mapping[str, Any]) -> Numbers | str:
    """The strides, paddings and dilations of a convolution or of its gradients, or why it is none
    that irc computes."""
    image, weight = arguments["input"], arguments["weight"]
    if weight.type.element is not image.type.element:
        return "image and weight are of several types"
    spatial = image.type.rank - 2
    if spatial != weight.type.rank - 2 or spatial < 1:
        return "the image has no dimension for images"
    lists = []
    for name in ("stride", "padding", "dilation"):
        numbers = tuple(arguments[name])
        if not all(isinstance(n, int) for n in numbers):
            return f"its {name} is symbolic"
        lists.append(numbers * spatial if len(numbers) == 1 else numbers)
    groups = arguments["groups"]
    if groups != 1 and not isinstance(weight.type.shape[0], int):
        return "its channels are symbolic, of several groups"
    return lists[0], lists[1], lists[2]


def overlapping(call: graph.CallAten) -> str | None:
    """Why a convolution reads elements several times, or others than those of the image; None for
    one of pixels, or of patches that lie beside each other."""
    arguments = aten.arguments_of(call)
    numbers = numbers_of(call, arguments)
    if isinstance(numbers, str):
        return numbers
    stride, padding, dilation = numbers
    if any(padding) or arguments["groups"] != 1:
        return f"its padding is {list(padding)}, and it has {arguments['groups']} groups"
    taps = [n for n in tensor_type(arguments["weight"]).shape[2:] if isinstance(n, int)]
    if len(taps) != len(stride):
        return "its windows are symbolic"
    alone = [n == 1 or (step >= n and apart == 1)
             for n, step, apart in zip(taps, stride, dilation, strict=True)]  # fmt: skip
    windows = "x".join(map(str, taps))
    return None if all(alone) else f"its {windows} windows overlap, with a stride of {list(stride)}"


def convolution_product(
    builder: Builder,
    c: ConvolutionParts,
    result: TensorType,
    wide: Type,
    schedule: A.Attribute | None,
    taps_first: bool = False,
) -> Value:
    """The result of a convolution: channels are the innermost of its sums. taps_first: what is
    summed up are the channels of one tap after the other."""
    type_, weight_type = tensor_type(c.image), tensor_type(c.weight)
    spatial = type_.rank - 2
    image = padded_image(builder, c.image, c.padding)
    weight, split = c.weight, int(c.groups > 1)
    kernel = weight_type.shape[2:]
    spots = [k for k in range(spatial) if kernel[k] != 1]
    if split:
        image = reshaped(builder, image, (
            type_.shape[0], c.groups, weight_type.shape[1], *tensor_type(image).shape[2:],
        ))  # fmt: skip
    for k in range(spatial):
        image = placed(builder, image, 2 + split + k, c, k, kernel[k], result.shape[2 + k])
    channels = (c.groups, weight_type.shape[0] // c.groups) if split else weight_type.shape[:1]  # type: ignore[operator]
    weight = reshaped(
        builder, weight, (*channels, weight_type.shape[1], *(kernel[k] for k in spots))
    )
    inner = range(tensor_type(image).rank - len(spots), tensor_type(image).rank)
    depth = [1 + split, *inner]
    if taps_first and spots:
        last = tensor_type(weight).rank
        weight = in_rows(builder, weight, [*range(1 + split), *range(2 + split, last), 1 + split])
        depth = [*inner, 1 + split]
    sums = dot_general(
        builder, image, weight, wide,
        batch=([1], [0]) if split else ([], []),
        depth=(depth, list(range(1 + split, tensor_type(weight).rank))),
        schedule=schedule,
    )  # fmt: skip
    # What comes is [groups, images, places..., channels].
    if c.bias is not None:
        bias = reshaped(builder, cast(builder, c.bias, wide), channels)
        last = tensor_type(sums).rank - 1
        bias = spread(builder, bias, tensor_type(sums).shape, [0, last] if split else [last])
        sums = builder.value(graph.Add, sums, bias)
    image = cast(builder, sums, result.element)
    places = range(1 + split, 1 + split + spatial)
    order = [split, *range(split), places.stop, *places]
    return reshaped(builder, permuted(builder, image, order), result.shape)


def placed(
    builder: Builder, image: Value, dim: int, c: ConvolutionParts, k: int, taps: Dim, count: Dim
) -> Value:
    """An image's dimension as places of the result, and taps around each as a new last one if there
    is more than one."""
    type_ = tensor_type(image)
    there = graph.replace_size(type_, dim, count)
    if taps != 1:
        wide = there.with_shape((*there.shape, taps))
        image = builder.value(
            graph.Window, image, dim=dim, step=c.stride[k], dilation=c.dilation[k],
            result_types=wide,
        )  # fmt: skip
    elif c.stride[k] != 1:
        image = builder.value(
            graph.Slice, image, dim=dim, start=0, step=c.stride[k], result_types=there
        )
    return image


def padded_image(builder: Builder, image: Value, padding: Sequence[int]) -> Value:
    """An image with zeros around it."""
    around = [0, 0, *padding]
    return with_zeros(builder, image, around, around)


__all__ = [
    "ConvolutionParts", "convolution_form", "convolution_product", "numbers_of", "overlapping",
    "padded_image", "parts_of", "placed",
]  # fmt: skip
