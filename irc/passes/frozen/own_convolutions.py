"""What the passes share that have frozen convolutions computed by kernels of our own."""

from __future__ import annotations

from typing import Any

import attrs

from irc.analysis.constant_values import ConstantValues
from irc.dialects import graph
from irc.dialects.graph.panel_sizes import panel_size
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.definition import SEGMENTS
from irc.ir.types import f32
from irc.passes.frozen.pack_weights import operands_of
from irc.passes.frozen.weighted_products import tensor_type
from irc.target import Target


@attrs.frozen
class Convolutions:
    """What the patterns have to know: the pass's options, the width of vectors, the target, and
    which values are constants."""

    options: Any
    bits: int
    target: Target
    constants: ConstantValues

    @classmethod
    def of(cls, options: Any, bits: int, target: Target) -> Convolutions | None:
        """None where the library isn't there that computes those which are left."""
        if not target.library or target.is_gpu:
            return None
        return cls(options, bits or target.vector_bits, target, ConstantValues())


def common_sizes(
    call: graph.CallAten, constants: ConstantValues, taps: int, bits: int
) -> dict[str, Any] | str:
    """What every `ConvolutionShape` has, of a convolution with a constant f32 weight of
    `taps` x `taps`; or why it is none."""
    values, arguments = operands_of(call)
    image, weight = values["input"], values["weight"]
    assert image is not None and weight is not None
    source, weights = tensor_type(image), tensor_type(weight)
    if weight not in constants:
        return "its weight is no constant"
    if arguments["transposed"] is A.TRUE:
        return "it is transposed"
    if {source.element, weights.element} != {f32} or source.device != "cpu":
        return f"it is of {source.element} on {source.device}, not of f32 on cpu"
    if weights.shape[2:] != (taps, taps):
        return f"its weights are {'x'.join(map(str, weights.shape[2:]))}, not {taps}x{taps}"
    if 0 in (*source.shape, *tensor_type(call.results[0]).shape):
        return "it has no elements"
    batch, channels, high, wide = source.shape
    out = weights.shape[0]
    assert isinstance(channels, int) and isinstance(out, int)
    return {
        "batch": batch, "height": high, "width": wide, "channels": channels, "channels_out": out,
        "bits": bits, "panel": panel_size(bits),
    }  # fmt: skip


def convolution(
    call: graph.CallAten,
    cls: type[graph.WinogradConv] | type[graph.PanelConv],
    image: Value,
    weight: Value,
    attributes: dict[str, A.Attribute],
) -> Operation:
    """The convolution of ours on `image` and the laid out `weight` that computes what a call
    does."""
    bias = operands_of(call)[0].get("bias")
    operands = [image, weight] if bias is None else [image, weight, bias]
    attributes[SEGMENTS] = A.DenseIntsAttr((1, 1, int(bias is not None), 0))
    return cls(operands, call.result_types, attributes, (), call.location)
