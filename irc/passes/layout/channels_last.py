"""The pass `channels-last`."""

from __future__ import annotations

from irc.analysis.strides import channels_last_strides, same_layout
from irc.dialects import func, graph
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import Expr
from irc.ir.types import TensorType, contiguous_strides

CONVOLUTION = "aten.convolution.default"


@register_pass
class ChannelsLast(Pass):
    """Asks for channels-last images around the convolutions of an inference program on a CPU.

    The image that a convolution reads and the one that it gives get channels-last strides
    (oneDNN's kernels want them; eager's `convolution` gives them when its image has them), and
    `assign-layouts` carries them through the pointwise ops between. Convolutions whose sizes are
    symbolic stay as eager has them, and so does a program with fewer than one convolution per
    300 operations, or with a convolution's backward.

    Before:
        %y = graph.call_aten %x, %w {callee = "aten.convolution.default",
          eager_strides = [#sym.dims<[512, 64, 8, 1]>], ...}
    After:
        %y = graph.call_aten %x, %w {callee = "aten.convolution.default",
          eager_strides = [#sym.dims<[512, 1, 64, 8]>], ...}
    """

    name = "channels-last"
    summary = "channels-last images around the convolutions of an inference program"
    anchor = "func.func"
    max_ops_per_convolution: int = 300

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        calls = [o for o in op.block.ops if isinstance(o, graph.CallAten)]
        convolutions = [c for c in calls if c.callee == CONVOLUTION]
        if not convolutions or any("convolution_backward" in c.callee for c in calls):
            return
        if len(op.block) >= self.max_ops_per_convolution * len(convolutions):
            return
        for call in convolutions:
            context.count("convolutions", ask(call))


def ask(call: graph.CallAten) -> int:
    """Ask for channels-last strides around one convolution; 1 if it is one that has them."""
    image, made = call._operands[0].type, call.results[0].type
    recorded = call.attributes.get("operand_strides")
    if not isinstance(image, TensorType) or not isinstance(made, TensorType):
        return 0
    if not isinstance(recorded, A.ArrayAttr) or image.device != "cpu" or image.rank not in (4, 5):
        return 0
    if any(isinstance(size, Expr) for size in (*image.shape, *made.shape)):
        return 0
    last = channels_last_strides(image.shape)
    if same_layout(image.shape, contiguous_strides(image.shape), last):
        return 0
    wanted = A.DimsAttr(last)
    call.attributes["operand_strides"] = A.ArrayAttr([wanted, *tuple(recorded)[1:]])
    call.attributes["eager_strides"] = A.ArrayAttr([A.DimsAttr(channels_last_strides(made.shape))])
    return 1
