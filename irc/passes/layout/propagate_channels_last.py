"""The pass `propagate-channels-last`."""

from __future__ import annotations

from irc.analysis.channels_last import (
    OPS_PER_CONVOLUTION,
    decide,
    is_convolution,
    may_lose_precision,
)
from irc.dialects import func, graph
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.strides import channels_last_strides, same_layout
from irc.ir.types import TensorType, contiguous_strides
from irc.target import target_of


@register_pass
class PropagateChannelsLast(Pass):
    """Asks for images with channels innermost around convolutions, where that pays.

    The verdict and its figures are a remark, and the function's attribute `channels_last`. It is
    the first of these that applies: no convolution: no; a convolution's backward, or as many
    images returned (as eager has them) as there are convolutions: no; all convolutions on a
    CPU with oneDNN: yes; all of f32 on a GPU where cuDNN may use TF32: no;
    `max_ops_per_convolution` or more operations for each convolution: no; symbolic sizes: no; else
    by measured weights of the kinds of convolutions, grouped, small, with many more channels in
    than out, and others.

    An f32 convolution on a GPU keeps eager's layout while `torch.backends.cudnn` allows TF32 (its
    default): cuDNN has TF32 kernels of channels-last images where it has none of others, and the
    error would be up to 800 times eager's. any_precision: it needn't.

    The image that a convolution reads and the one that it gives then get channels-last strides
    (eager's `convolution` gives them when its image has them), and so does a weight that is a
    constant; `assign-layouts` carries them through the pointwise ops between.

    Before:
        %y = graph.call_aten %x, %w {callee = "aten.convolution.default",
          eager_strides = [#sym.dims<[512, 64, 8, 1]>], ...}
    After:
        %y = graph.call_aten %x, %w {callee = "aten.convolution.default",
          eager_strides = [#sym.dims<[512, 1, 64, 8]>], ...}
    """

    name = "propagate-channels-last"
    summary = "channels-last images around convolutions, where an analysis says that it pays"
    anchor = "func.func"
    asks_target = True
    max_ops_per_convolution: int = OPS_PER_CONVOLUTION
    any_precision: bool = False

    def run(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, func.FuncOp)
        target = target_of(context)
        verdict = decide(op, target, self.max_ops_per_convolution, self.any_precision)
        if not verdict.figures["convolutions"]:
            return
        context.remark(str(verdict), op)
        op.attributes["channels_last"] = verdict.attribute()
        context.count("convolutions", int(verdict.figures["convolutions"]))
        if not verdict.wanted:
            return
        for call in op.block.ops:
            if not is_convolution(call):
                continue
            if not self.any_precision and may_lose_precision(call, target):
                context.remark("keeps its layout: TF32 could take the place of f32", call)
            elif context.spend("propagate-channels-last", call):
                context.count("channels last", ask(call))


def ask(call: Operation) -> int:
    """Ask for channels-last strides around one convolution; 1 if it is one that has them."""
    if not isinstance(call, graph.CallAten):
        return 1
    image, made = call._operands[0].type, call.results[0].type
    recorded = call.attributes.get("operand_strides")
    if not isinstance(image, TensorType) or not isinstance(made, TensorType):
        return 0
    if not isinstance(recorded, A.ArrayAttr) or image.rank not in (4, 5):
        return 0
    last = channels_last_strides(image.shape)
    if same_layout(image.shape, contiguous_strides(image.shape), last):
        return 0
    wanted = list(recorded)
    wanted[0] = A.DimsAttr(last)
    weight = call._operands[1]
    if isinstance(weight.defining_op, graph.Constant) and isinstance(weight.type, TensorType):
        wanted[1] = A.DimsAttr(channels_last_strides(weight.type.shape))
    call.attributes["operand_strides"] = A.ArrayAttr(wanted)
    call.attributes["eager_strides"] = A.ArrayAttr([A.DimsAttr(channels_last_strides(made.shape))])
    return 1
