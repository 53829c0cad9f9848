"""The pass `split-biases`."""

from __future__ import annotations

from typing import Any

from irc.analysis.channels_last import CONVOLUTION, has_last
from irc.dialects import aten, graph
from irc.ir import attributes as A
from irc.ir.attributes import Type
from irc.ir.builder import Builder
from irc.ir.core import Value
from irc.ir.passes import register_pass
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.ir.types import FloatType, TensorType, f32


# conv(x, w, b) -> add(conv(x, w), b)
@pattern(graph.CallAten, name="graph.split_bias", counted="split")
def split_bias(call: Any, rw: Any) -> Any:
    if call.callee != CONVOLUTION:
        return rw.no_match("it is no convolution")
    arguments = dict(call.arguments.as_dict())
    last = len(call.operands) - 1
    if last < 2 or arguments["bias"] != aten.OperandAttr(last):
        return rw.no_match("it has no bias")
    result = call.results[0].type
    if not isinstance(result.element, FloatType):
        return rw.no_match("its elements are no floats")
    if _adds_inside(call):
        return rw.decline("the bias was not split off: the library's kernel adds it")
    *operands, bias = call.operands
    entries = dict(call.attributes)
    entries["arguments"] = A.DictAttr({**arguments, "bias": aten.NoneAttr()})
    if isinstance(strides := entries.get("operand_strides"), A.ArrayAttr):
        entries["operand_strides"] = A.ArrayAttr(list(strides)[:-1])
    builder = rw.before(call)
    builder.location = call.location
    bare = builder.insert(type(call)(operands, [result], entries, (), call.location))
    rw.replace(call, [_sum(builder, bare.results[0], bias)])
    return True


def _adds_inside(call: graph.CallAten) -> bool:
    """Whether torch has a kernel of its own for a convolution, which adds the bias as well: one of
    single channels, unless cuDNN takes it for its layout."""
    weight: Any = call.operands[1].type
    return weight.shape[1] == 1 and weight.shape[0] != 1 and not has_last(call)


def _sum(builder: Builder, image: Value, bias: Value) -> Value:
    """The image and its bias, in f32 where their elements are shorter."""
    result, element = image.type, bias.type.element  # type: ignore[attr-defined]
    assert isinstance(result, TensorType)
    wide: Type = f32 if element.width < 32 else element
    if wide is not element:
        image, bias = (_cast(builder, value, wide) for value in (image, bias))
    spread = builder.value(
        graph.Broadcast, bias, dims=[1], result_types=result.with_element(wide)
    )
    total = builder.value(graph.Add, image, spread)
    return total if wide is element else _cast(builder, total, element)


def _cast(builder: Builder, value: Value, element: Type) -> Value:
    type_ = value.type
    assert isinstance(type_, TensorType)
    return builder.value(graph.Cast, value, result_types=type_.with_element(element))


@register_pass
class SplitBiases(PatternPass):
    """Adds biases of convolutions by an addition of their own.

    On a GPU torch does the same behind the library's convolution, by a kernel that reads and writes
    the whole image; an addition in the program goes into the kernel that reads the image anyway.

    Before:
        %y = graph.call_aten %x, %w, %b {callee = "aten.convolution.default", ...}
    After:
        %c = graph.call_aten %x, %w {callee = "aten.convolution.default", ...}
        %s = graph.broadcast %b {dims = array<i64: 1>}
        %y = graph.add %c, %s
    """

    name = "split-biases"
    summary = "biases of convolutions as additions, which kernels around them take"
    anchor = "func.func"
    preserves = "real"
    patterns = (split_bias,)
