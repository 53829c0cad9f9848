"""The pass `window-convolutions`."""

from __future__ import annotations

from typing import Any

import attrs

from irc.analysis.channels_last import CONVOLUTION, Verdict, decide, has_last
from irc.analysis.window_ways import window_objection
from irc.dialects import func, graph
from irc.dialects.graph.inferred import tensor_type
from irc.ir.builder import Builder
from irc.ir.core import Operation, Value
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.ir.types import TensorType, Type
from irc.options.options import DEFAULT
from irc.options.table import own_backends
from irc.passes.common.tensors import in_rows, permuted, reshaped, with_zeros
from irc.passes.graph.contractions.convolutions import ConvolutionParts, parts_of
from irc.passes.graph.contractions.products import accumulator_of, cast, result_type, spread
from irc.target import Target, target_of


@attrs.frozen
class Images:
    """What the pattern has to know: the target, and whether the function's images will have their
    channels innermost, and why."""

    target: Target
    verdict: Verdict


# convolution(x, w, groups = channels) -> permute(reduce(sum, window(x) * w))
@pattern(graph.CallAten, name="graph.window_convolution", counted="rewritten")
def rewrite(call: Any, rw: Any) -> Any:
    if call.callee != CONVOLUTION:
        return rw.no_match("it is no convolution")
    state: Images = rw.state
    parts = parts_of(call)
    if isinstance(parts, str):
        return rw.decline(f"is no sum over a window: {parts}")
    result, last = result_type(call), has_last(call)
    line = result.rank == 3 and not last
    reason = window_objection(call, state.target, line)
    if reason is None and not (line or last or state.verdict.innermost):
        reason = f"channels are not innermost: {state.verdict.reason}"
    if reason is not None:
        return rw.decline(f"is left to the library: {reason}")
    wide = accumulator_of(result.element)
    assert wide is not None
    sums = line_sums if line else window_sums
    rw.replace(call, [sums(rw.builder, parts, result, wide)])
    return True


def line_sums(builder: Builder, c: ConvolutionParts, result: TensorType, wide: Type) -> Value:
    """The result of a convolution channel by channel of lines [images, channels, places]: sums over
    the taps of a window, computed with places innermost, as they lie."""
    (padding,), (stride,), (dilation,) = c.padding, c.stride, c.dilation
    image = with_zeros(builder, c.image, [0, 0, padding], [0, 0, padding])
    channels, taps = tensor_type(image).shape[1], tensor_type(c.weight).shape[-1]
    image = builder.value(
        graph.Window, image, dim=2, step=stride, dilation=dilation,
        result_types=_windowed(tensor_type(image), 2, result.shape[2], taps),
    )  # fmt: skip
    weight = cast(builder, reshaped(builder, c.weight, (channels, taps)), wide)
    weight = spread(builder, weight, tensor_type(image).shape, [1, 3])
    products = builder.value(graph.Mul, cast(builder, image, wide), weight)
    sums: Value = builder.value(graph.Reduce, products, combiner="sum", dims=[3], keepdim=None)
    if c.bias is not None:
        bias = spread(builder, cast(builder, c.bias, wide), tensor_type(sums).shape, [1])
        sums = builder.value(graph.Add, sums, bias)
    return cast(builder, sums, result.element)


def window_sums(builder: Builder, c: ConvolutionParts, result: TensorType, wide: Type) -> Value:
    """The result of a convolution channel by channel, [images, channels, places...]: sums over the
    taps of a window, computed with channels innermost."""
    type_, weight_type = tensor_type(c.image), tensor_type(c.weight)
    spatial, taps = type_.rank - 2, weight_type.shape[2:]
    image = in_rows(builder, c.image, [0, *range(2, type_.rank), 1])
    around = [0, *c.padding, 0]
    image = with_zeros(builder, image, around, around)
    for k in range(spatial):
        image = builder.value(
            graph.Window, image, dim=1 + k, step=c.stride[k], dilation=c.dilation[k],
            result_types=_windowed(tensor_type(image), 1 + k, result.shape[2 + k], taps[k]),
        )  # fmt: skip
    # [images, places..., channels, taps...]
    shape, channel = tensor_type(image).shape, 1 + spatial
    window = list(range(channel + 1, len(shape)))
    weight = cast(builder, reshaped(builder, c.weight, (type_.shape[1], *taps)), wide)
    weight = in_rows(builder, weight, [*range(1, 1 + len(taps)), 0])
    wide_shape = [*shape[:channel], *taps, shape[channel]]
    weight = spread(builder, weight, wide_shape)
    order = [*range(channel), len(shape) - 1, *range(channel, len(shape) - 1)]
    weight = permuted(builder, weight, order)
    products = builder.value(graph.Mul, cast(builder, image, wide), weight)
    sums: Value = builder.value(graph.Reduce, products, combiner="sum", dims=window, keepdim=None)
    if c.bias is not None:
        bias = cast(builder, c.bias, wide)
        sums = builder.value(
            graph.Add, sums, spread(builder, bias, tensor_type(sums).shape, [channel])
        )
    order = [0, channel, *range(1, channel)]
    return permuted(builder, cast(builder, sums, result.element), order)


def _windowed(type_: TensorType, dim: int, count: Any, taps: Any) -> TensorType:
    """The type of windows of a dimension."""
    there = graph.replace_size(type_, dim, count)
    return there.with_shape((*there.shape, taps))


@register_pass
class WindowConvolutions(PatternPass):
    """Computes convolutions channel by channel as sums over windows, with channels innermost, or
    those of lines, which lie place by place, with places.

    As many groups as channels, each with one result; any stride, padding and dilation, a weight
    that is a constant or not, which is laid out [taps..., channels].
    They are a product and a reduction: the loop level computes both in one, and schedules let
    several places of a row share what they read. A processor's figures say where that is faster
    than the library (`irc.analysis.window_ways`), and images must have their channels innermost
    anyway (`irc.analysis.channels_last`). Lines of a convolution with one dimension whose channels
    aren't are computed as they lie.

    convolutions: what may compute them, as of `choose-contractions`.

    Before:
        %y = graph.call_aten %x, %w {callee = "aten.convolution.default", ...} :
          (tensor<2x32x9x9xf32>, tensor<32x1x3x3xf32>) -> tensor<2x32x9x9xf32>
    After:
        %i = graph.window %p {dim = 1 : i64, ...} : (tensor<2x11x11x32xf32>) -> ...
        %j = graph.window %i {dim = 2 : i64, ...} : (...) -> tensor<2x9x9x32x3x3xf32>
        ...
        %m = graph.mul %a, %b : (...) -> tensor<2x9x9x32x3x3xf32>
        %s = graph.reduce %m {combiner = "sum", dims = array<i64: 4, 5>} : (...) -> ...
        %y = graph.permute %s {permutation = array<i64: 0, 3, 1, 2>} : (...) -> ...
    """

    name = "window-convolutions"
    summary = "compute convolutions channel by channel as sums over windows"
    anchor = "func.func"
    preserves = "real"
    asks_target = True
    convolutions: str = DEFAULT.max_autotune_conv_backends
    max_ops_per_convolution: int = 300

    patterns = (rewrite,)

    def prepare(self, op: Operation, context: PassContext) -> Images | None:
        target = target_of(context)
        allowed = own_backends(self.convolutions, target.is_gpu)
        if target.is_gpu or not target.library or "irc" not in allowed:
            return None
        assert isinstance(op, func.FuncOp)
        return Images(target, decide(op, target, self.max_ops_per_convolution))


__all__ = ["WindowConvolutions", "window_sums"]
