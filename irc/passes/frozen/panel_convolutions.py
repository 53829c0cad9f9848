"""The pass `panel-convolutions`."""

from __future__ import annotations

from typing import Any

from irc.analysis.channels_last import CONVOLUTION
from irc.analysis.constant_values import ConstantValues
from irc.analysis.loop import estimate
from irc.dialects import graph
from irc.dialects.graph.panel_sizes import PanelShape
from irc.ir import attributes as A
from irc.ir.core import Operation, Value
from irc.ir.passes import PassContext, register_pass
from irc.ir.rewrite.driver import Rewriter
from irc.ir.rewrite.passes import PatternPass
from irc.ir.rewrite.patterns import pattern
from irc.passes.frozen.own_convolutions import Convolutions, common_sizes, convolution
from irc.passes.frozen.pack_weights import integers, operands_of
from irc.passes.frozen.weighted_products import reshaped, tensor_type
from irc.passes.graph.pad_matmul import padded
from irc.target import Target, target_of

#: What a kernel of ours can't apply, and the library can: its result's readers tell.
FUNCTIONS = (graph.Sigmoid, graph.Tanh, graph.Erf)


def shape_of(call: graph.CallAten, constants: ConstantValues, bits: int) -> PanelShape | str:
    """What the kernel of a convolution would be like, or why there is none."""
    common = common_sizes(call, constants, 1, bits)
    if isinstance(common, str):
        return common
    _, arguments = operands_of(call)
    lists = [integers(arguments[name]) for name in ("stride", "padding")]
    if any(numbers is None for numbers in lists):
        return "its stride or padding is symbolic"
    stride, padding = ((n * 2)[:2] for n in lists if n is not None)
    groups = arguments["groups"].value
    if padding != [0, 0] or groups != 1:
        return f"its padding is {padding}, and it has {groups} groups"
    return PanelShape(stride=(stride[0], stride[1]), **common)


def is_followed_by_function(value: Value) -> bool:
    """Whether a reader of a value, or a reader of that, is a function such as a sigmoid."""
    readers = list(value.users)
    readers += [further for op in readers for result in op.results for further in result.users]
    return any(isinstance(op, FUNCTIONS) for op in readers)


# convolution(x, w) -> panel_conv(x, permute(reshape(w)))
@pattern(graph.CallAten, name="graph.panel_convolution", counted="rewritten")
def rewrite(call: Any, rw: Any) -> Any:
    if call.callee != CONVOLUTION:
        return rw.no_match("it is no convolution")
    shape = shape_of(call, rw.state.constants, rw.state.bits)
    reason: str | None = shape if isinstance(shape, str) else None
    if isinstance(shape, PanelShape):
        reason = rw.state.options.refusal(call, shape, rw.state.target)
    if reason is not None:
        return rw.decline(f"is not computed by a kernel of ours: {reason}")
    assert isinstance(shape, PanelShape)
    values, _ = operands_of(call)
    image, weight = values["input"], values["weight"]
    assert image is not None and weight is not None
    panels = in_panels(rw, weight, shape.panel)
    attributes: dict[str, A.Attribute] = {"stride": A.DenseIntsAttr(shape.stride)}
    rw.replace(call, convolution(call, graph.PanelConv, image, panels, attributes))
    return True


def in_panels(rw: Rewriter, weight: Value, panel: int) -> Value:
    """A weight [out, in, 1, 1] as [panels, in, panel]."""
    out, inner = (size for size in tensor_type(weight).shape[:2] if isinstance(size, int))
    panels, builder = -(-out // panel), rw.builder
    wide = padded(rw, weight, (-out % panel, 0, 0, 0))
    rows = reshaped(builder, wide, (panels, panel, inner))
    type_ = tensor_type(rows).with_shape((panels, inner, panel))
    permuted: Value = builder.value(graph.Permute, rows, permutation=[0, 2, 1], result_types=type_)
    return permuted


@register_pass
class PanelConvolutions(PatternPass):
    """Computes 1x1 convolutions with constant f32 weights in kernels of our own.

    One group, no padding, any stride, any sizes. The weights are laid out in panels of channels,
    which `fold-constants` does once, for `form-convolution-kernels`. Remarks say of each
    convolution why not: few channels or pixels, an activation that only the library applies,
    fewer blocks of pixels than threads.

    vector_bits: the width of the vector registers (0: the target's), by which the weights are
    laid out. choosy: leave those to the library that it is estimated to be as fast for.

    Before:
        %w = graph.constant {value = #irc.resource<"w"> : tensor<64x256x1x1xf32>} : tensor<64x256x1x1xf32>
        %y = graph.call_aten %x, %w {callee = "aten.convolution.default", ...} : (...) -> ...
    After:
        %w = graph.constant {value = #irc.resource<"w"> : tensor<64x256x1x1xf32>} : tensor<64x256x1x1xf32>
        %r = graph.reshape %w : (tensor<64x256x1x1xf32>) -> tensor<2x32x256xf32>
        %u = graph.permute %r {permutation = array<i64: 0, 2, 1>} : (...) -> tensor<2x256x32xf32>
        %y = graph.panel_conv %x, %u {stride = array<i64: 1, 1>, ...} : (...) -> ...
    """  # noqa: E501

    name = "panel-convolutions"
    summary = "compute 1x1 convolutions with constant weights in kernels of our own"
    anchor = "func.func"
    preserves = "real"
    asks_target = True
    vector_bits: int = 0
    choosy: bool = True

    patterns = (rewrite,)

    def prepare(self, op: Operation, context: PassContext) -> Convolutions | None:
        return Convolutions.of(self, self.vector_bits, target_of(context))

    def refusal(self, call: graph.CallAten, shape: PanelShape, target: Target) -> str | None:
        """Why a convolution that could be rewritten is left to the library; None where it isn't."""
        if not self.choosy:
            return None
        pixels = estimate(shape.row_count)
        if (
            shape.channels < target.panel_channels
            or shape.channels_out < target.panel_results
            or pixels < target.panel_pixels
        ):
            return f"{shape.channels} channels to {shape.channels_out} for {pixels} pixels are few"
        empty = 1 - shape.channels_out / (shape.panels * shape.panel)
        if empty > target.panel_empty:
            return f"{shape.channels_out} channels leave {empty:.0%} of their panels empty"
        if estimate(shape.blocks) < target.threads:
            return f"{estimate(shape.blocks)} blocks of pixels are fewer than there are threads"
        if is_followed_by_function(call.results[0]):
            return "a function of its result is left to the library"
        return None


__all__ = ["PanelConvolutions", "in_panels", "shape_of"]
