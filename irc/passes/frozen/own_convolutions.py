"""What the passes share that have frozen convolutions computed by kernels of our own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import attrs

from irc.analysis.constant_values import ConstantValues
from irc.dialects import aten, graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir.types import Type, f32
from irc.target import Target


@attrs.frozen
class Convolutions:
    """What the patterns have to know: the pass's options, the target, and which values are
    constants."""

    options: Any
    target: Target
    constants: ConstantValues = attrs.field(factory=ConstantValues)

    @classmethod
    def of(cls, options: Any, target: Target) -> Convolutions | None:
        """None where the library isn't there that computes those which are left."""
        return None if target.is_gpu or not target.library else cls(options, target)


def unfit(
    call: graph.CallAten, constants: ConstantValues, elements: Collection[Type] = (f32,)
) -> str | None:
    """Why a call is no convolution of images of such elements with a constant weight on a CPU; None
    where it is."""
    arguments = aten.arguments_of(call)
    weight = arguments["weight"]
    source, weights = tensor_type(arguments["input"]), tensor_type(weight)
    if weight not in constants:
        return "its weight is no constant"
    if arguments["transposed"]:
        return "it is transposed"
    of = source.element
    if of not in elements or weights.element is not of or source.device != "cpu":
        known = " or ".join(map(str, elements))
        return f"it is of {of} on {source.device}, not of {known} on cpu"
    if weights.rank != 4:
        return f"its weights have {weights.rank - 2} dimensions, not 2"
    if 0 in (*source.shape, *tensor_type(call.results[0]).shape):
        return "it has no elements"
    return None


__all__ = ["Convolutions", "unfit"]
