"""The gradient of a convolution's image where the stride is not 1, as products without the zeros
that would lie between places.

    image's gradient at step * j + a = windows of the result's gradient at j times the taps for a

Of each dimension the places with the same remainder by the step have taps of their own: 3 taps by a
step of 2 are two for one half of the places, one for the other. There is a product for each
remainder of all dimensions, whose places are then put between each other; none where no tap is
left, as of single pixels, but zeros.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import attrs

from irc.dialects import graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.symbols import Dim
from irc.ir.types import TensorType, Type
from irc.passes.common.tensors import cut, permuted, reshaped, with_zeros
from irc.passes.graph.contractions.convolutions import ConvolutionParts, convolution_product
from irc.passes.graph.contractions.products import cast, spread


@attrs.frozen
class Reached:
    """The places of one dimension with a remainder: they have the taps first, first + step, ... (as
    many as `taps`), of which the first one reads the place j + shift for the j-th of them."""

    first: int
    taps: int
    shift: int


def remainders_of(step: int, padding: int, dilation: int, taps: int) -> list[Reached] | None:
    """What the places with each remainder read; None where a step and a dilation have a common
    divisor, so that there are several first taps."""
    if math.gcd(step, dilation) != 1:
        return None
    alike = []
    for place in range(step):
        first = next(r for r in range(step) if (place + padding - dilation * r) % step == 0)
        shift = (place + padding - dilation * first) // step
        alike.append(Reached(first, max(0, -(-(taps - first) // step)), shift))
    return alike


def strided_product(
    builder: Builder,
    c: ConvolutionParts,
    every: Sequence[Sequence[Reached]],
    result: TensorType,
    wide: Type,
    schedule: A.Attribute | None,
    taps_first: bool,
) -> Value:
    """The gradient, or the result of a transposed convolution. c: its image is the result's
    gradient, its weight [channels of the result, channels of the image, taps...], neither turned
    round nor split by groups. every: of each dimension what the places with each remainder read."""
    steps, sizes = c.stride, result.shape[2:]
    counts = [-(-size // step) for size, step in zip(sizes, steps, strict=True)]  # type: ignore[operator]
    type_ = result.with_shape((*result.shape[:2], *counts))
    pieces = {
        remainders: _piece(builder, c, [of[a] for of, a in zip(every, remainders, strict=True)],
                           type_, wide, schedule, taps_first)
        for remainders in itertools.product(*(range(step) for step in steps))
    }  # fmt: skip
    # Channels are innermost in sums, and so they are in what is put together.
    last = [0, *range(2, result.rank), 1]
    pieces = {key: permuted(builder, piece, last) for key, piece in pieces.items()}
    for k in reversed(range(len(steps))):
        pieces = {
            before: _between(builder, [pieces[*before, a] for a in range(steps[k])], 1 + k)
            for before in itertools.product(*(range(step) for step in steps[:k]))
        }
    whole = permuted(builder, pieces[()], [0, result.rank - 1, *range(1, result.rank - 1)])
    return cut(builder, whole, result.shape)


def _piece(
    builder: Builder,
    c: ConvolutionParts,
    alike: Sequence[Reached],
    result: TensorType,
    wide: Type,
    schedule: A.Attribute | None,
    taps_first: bool,
) -> Value:
    """The places with one remainder in each dimension."""
    if not all(remainder.taps for remainder in alike):
        return _without_taps(builder, c.bias, result)
    weight, image, dims = c.weight, c.image, list[int]()
    for k, (remainder, step) in enumerate(zip(alike, c.stride, strict=True)):
        there = graph.replace_size(tensor_type(weight), 2 + k, remainder.taps)
        weight = builder.value(
            graph.Slice, weight, dim=2 + k, start=remainder.first, step=step, result_types=there
        )
        dims += [2 + k] * (remainder.taps > 1)
    if dims:
        weight = builder.value(graph.Reverse, weight, dims=dims)
    for k, (remainder, apart) in enumerate(zip(alike, c.dilation, strict=True)):
        reach = apart * (remainder.taps - 1)
        image = _placed(builder, image, 2 + k, remainder.shift - reach, result.shape[2 + k] + reach)
    ones, zeros = (1,) * len(alike), (0,) * len(alike)
    parts = ConvolutionParts(image, weight, c.bias, ones, zeros, c.dilation, c.groups)
    return convolution_product(builder, parts, result, wide, schedule, taps_first)


def _placed(builder: Builder, image: Value, dim: int, start: int, count: Dim) -> Value:
    """So many places of a dimension from `start` on, zeros where the image has none."""
    size = tensor_type(image).shape[dim]
    assert isinstance(size, int) and isinstance(count, int)
    low, high = max(0, -start), max(0, start + count - size)
    around = [[side * (k == dim) for k in range(tensor_type(image).rank)] for side in (high, low)]
    image = with_zeros(builder, image, *around)
    if tensor_type(image).shape[dim] == count:
        return image
    part = graph.replace_size(tensor_type(image), dim, count)
    cut_: Value = builder.value(
        graph.Slice, image, dim=dim, start=max(0, start), step=1, result_types=part
    )
    return cut_


def _without_taps(builder: Builder, bias: Value | None, result: TensorType) -> Value:
    """Places that no tap reaches: a bias, or zeros."""
    if bias is not None:
        return spread(builder, cast(builder, bias, result.element), result.shape, [1])
    zero = graph.scalar_attribute(0, result.element)
    full: Value = builder.value(graph.Full, value=zero, result_types=result)
    return full


def _between(builder: Builder, pieces: Sequence[Value], dim: int) -> Value:
    """Places of a dimension put between each other."""
    if len(pieces) == 1:
        return pieces[0]
    shape = tensor_type(pieces[0]).shape
    apart = [reshaped(builder, piece, (*shape[: dim + 1], 1, *shape[dim + 1 :]))
             for piece in pieces]  # fmt: skip
    joined = builder.value(graph.Concat, apart, dim=dim + 1)
    return reshaped(builder, joined, (*shape[:dim], shape[dim] * len(pieces), *shape[dim + 1 :]))


__all__ = ["Reached", "remainders_of", "strided_product"]
