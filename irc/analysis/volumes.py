"""Convolutions of volumes that oneDNN computes and ATen, by its own choice, may not."""

from __future__ import annotations

from irc.analysis.calls import integers
from irc.analysis.channels_last import CONVOLUTION, image_of, weight_number
from irc.dialects import graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir import attributes as A
from irc.target import Target

SHAPE = ("padding", "stride", "dilation")
"""Arguments of a convolution that are a number for each of an image's dimensions."""


def takes_onednn(call: graph.CallAten, target: Target) -> bool:
    """Whether oneDNN's operator surely takes less time than ATen's choice: a convolution of a
    volume on a CPU, by windows of several elements.

    ATen unfolds the windows of an image that it takes for small, and of a volume it looks at the
    first four of five sizes. oneDNN takes 0.14 to 0.7 of the time then (`bench.volumes`); windows
    of one element are a product, which ATen's way is faster at. Values are those that ATen gives
    for images that it takes for large.
    """
    if call.callee != CONVOLUTION or target.is_gpu:
        return False
    told, image = call.arguments.as_dict(), image_of(call)
    if told["transposed"] is A.TRUE or any(integers(told[name]) is None for name in SHAPE):
        return False
    weight = tensor_type(call.operands[weight_number(call)])
    if image.rank != 5 or image.device != "cpu":
        return False
    if not {str(image.element), str(weight.element)} <= set(target.library):
        return False
    return any(size != 1 for size in weight.shape[2:])


__all__ = ["SHAPE", "takes_onednn"]
