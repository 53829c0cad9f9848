"""Who computes a convolution of single pixels on a CPU: the library, or a product of parts of bf16.

    if pixels_in_parts(call, target, frozen=False): ...

A 1x1 convolution is a product of as many rows as there are places, which registers of whole tiles
multiply where a processor's figures say that this is faster than vectors of f32
(`irc.analysis.processor_ways`).
"""

from __future__ import annotations

from irc.analysis.loop import points
from irc.analysis.processor_ways import multiplies_parts
from irc.dialects import aten, graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir.symbols import Dim, free_symbols, substitute
from irc.ir.types import f32
from irc.target import Target


def pixels_in_parts(call: graph.CallAten, target: Target, frozen: bool) -> bool:
    """Whether a convolution of f32 is one of single pixels that is faster as a product of factors
    that are cut into parts, for any values of its sizes' symbols, which are at least 1. frozen:
    whether its weight is a constant."""
    arguments = aten.arguments_of(call)
    image, weight = (tensor_type(arguments[name]) for name in ("input", "weight"))
    if image.element is not f32 or arguments["transposed"] or arguments["groups"] != 1:
        return False
    if set(weight.shape[2:]) != {1} or any(arguments["padding"]):
        return False
    result: tuple[Dim, ...] = tensor_type(call.results[0]).shape
    result = tuple(substitute(size, dict.fromkeys(free_symbols(size), 1)) for size in result)
    if any(free_symbols(size) for size in weight.shape) or 0 in (*result, *weight.shape):
        return False
    rows = points((result[0], *result[2:]))
    return multiplies_parts((rows, weight.shape[1], weight.shape[0]), f32, target, frozen)


__all__ = ["pixels_in_parts"]
