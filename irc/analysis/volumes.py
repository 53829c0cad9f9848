"""Convolutions of volumes that oneDNN computes and ATen, by its own choice, may not."""

from __future__ import annotations

from irc.analysis.calls import integers
from irc.analysis.channels_last import CONVOLUTION
from irc.dialects import aten, graph
from irc.ir import attributes as A
from irc.ir.types import TensorType
from irc.target import Target

SHAPE = ("padding", "stride", "dilation")
"""Arguments of a convolution that are a number for each of an image's dimensions."""


def takes_onednn(call: graph.CallAten, target: Target) -> bool:
    """Whether oneDNN's operator surely takes less time than ATen's choice: a convolution of a
    volume on a CPU, by windows of several elements.

    With one thread ATen unfolds windows of images that it takes for small, and of a volume it looks
    at the first four of five sizes. oneDNN takes 0.15 to 0.5 of the time (`bench.volumes`); windows
    of one element are a product, which ATen's way is faster at. Values are those that ATen gives
    with two threads.
    """
    if call.callee != CONVOLUTION or target.is_gpu:
        return False
    told = call.arguments.as_dict()
    if told["transposed"] != A.BoolAttr(False):
        return False
    image, weight = (_type_of(call, told[name]) for name in ("input", "weight"))
    if image.rank != 5 or image.device != "cpu" or any(integers(told[n]) is None for n in SHAPE):
        return False
    if not {str(image.element), str(weight.element)} <= set(target.library):
        return False
    return any(size != 1 for size in weight.shape[2:])


def _type_of(call: graph.CallAten, argument: A.Attribute) -> TensorType:
    assert isinstance(argument, aten.OperandAttr)
    type_ = call.operands[argument.index].type
    assert isinstance(type_, TensorType)
    return type_


__all__ = ["SHAPE", "takes_onednn"]
