"""Who computes a convolution of single pixels on a CPU: the library, or a product of irc's own.

    if pixels_in_parts(call, target, frozen=False): ...
    if pixel_speed(call, target) >= 100 * target.features.sure_products: ...

A 1x1 convolution is a product of as many rows as there are places. Registers of whole tiles
multiply it in parts of bf16 where a processor's figures say that this is faster than vectors of f32
(`irc.analysis.processor_ways`). Where weights aren't frozen the library lays each out again in
every call, and what follows the convolution is another pass over its result: how fast a product of
irc's is beside that is a figure of the processor, too (`own_pixels`, `own_pair_pixels`).
"""

from __future__ import annotations

from irc.analysis.loop import points
from irc.analysis.processor_ways import crowded, how_many, multiplies_parts
from irc.dialects import aten, graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir.symbols import Dim, value_at
from irc.ir.types import bf16, f32
from irc.target import Target


def pixels_in_parts(call: graph.CallAten, target: Target, frozen: bool) -> bool:
    """Whether a convolution of f32 is one of single pixels that is faster as a product of factors
    that are cut into parts, for any values of its sizes' symbols, which are at least 1. frozen:
    whether its weight is a constant."""
    sizes = _product(call, 1)
    if sizes is None or tensor_type(call.results[0]).element is not f32:
        return False
    return multiplies_parts(sizes, f32, target, frozen)


def pixel_speed(call: graph.CallAten, target: Target) -> int:
    """The speed, in % of the library's, of irc's product for a CPU's convolution of single pixels
    whose weight isn't frozen: the least that it has with few, some and many in the place of sizes
    that are symbols. 0 of other convolutions, and of elements that the figures say nothing of."""
    features, element = target.features, tensor_type(call.results[0]).element
    speeds = {f32: features.own_pixels, bf16: features.own_pair_pixels}.get(element)
    every = [_product(call, least) for least in features.product_rows]
    known = [sizes for sizes in every if sizes is not None]
    if speeds is None or not known:
        return 0
    numbers = [how_many(sizes[0], sizes[2], target) for sizes in known]
    speeds = crowded(speeds, target)
    return 0 if min(numbers) < 0 else min(speeds[number] for number in numbers)


def _product(call: graph.CallAten, symbols: int) -> tuple[int, int, int] | None:
    """The rows, terms and columns of a convolution of single pixels, with a number in the place of
    each symbol; None of another one, of one without elements, and of channels that are symbols."""
    arguments = aten.arguments_of(call)
    weight = tensor_type(arguments["weight"])
    if arguments["transposed"] or arguments["groups"] != 1 or any(arguments["padding"]):
        return None
    if set(weight.shape[2:]) != {1} or tensor_type(arguments["input"]).element != weight.element:
        return None
    result: tuple[Dim, ...] = tensor_type(call.results[0]).shape
    places = [value_at(size, symbols) for size in (result[0], *result[2:])]
    columns, terms = weight.shape[:2]
    if not isinstance(columns, int) or not isinstance(terms, int) or 0 in (*places, columns, terms):
        return None
    known = [place for place in places if place is not None]
    return (points(known), terms, columns) if len(known) == len(places) else None


__all__ = ["pixel_speed", "pixels_in_parts"]
