"""The pass `propagate-channels-last`."""

from __future__ import annotations

from irc.analysis.channels_last import (
    MOST_OPERATIONS,
    decide,
    innermost_strides,
    is_backward,
    is_convolution,
    may_lose_precision,
)
from irc.dialects import func, graph
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.target import target_of


@register_pass
class PropagateChannelsLast(Pass):
    """Asks for images with channels innermost around convolutions, where that pays.

    The verdict and its figures are a remark, and the function's attribute `channels_last`. On a GPU
    each convolution, its backward too, has the layout with which all converting takes the least
    time: copies, reads in another order, and what cuDNN converts by itself
    (`irc.analysis.image_layouts`). Elsewhere the verdict is the first of these that applies: no
    convolution: no; a convolution's backward, or as many
    images returned (as eager has them) as there are convolutions: no; all convolutions on a
    CPU with oneDNN: yes; `max_ops_per_convolution` or more operations for each convolution: no;
    symbolic sizes: no; else by measured weights of the kinds of convolutions, grouped, small, with
    many more channels in than out, and others.

    An f32 convolution on a GPU keeps eager's layout while `torch.backends.cudnn` allows TF32 (its
    default): cuDNN has TF32 kernels of channels-last images where it has none of others, and the
    error would be up to 800 times eager's. any_precision: it needn't.

    The image that a convolution reads and the one that it gives then get channels-last strides
    (eager's `convolution` gives them when its image has them), and so does a weight, on a CPU one
    that is a constant; of a backward all gradients too. `assign-layouts` carries them through the
    pointwise ops between. What a forward program saves for its backward keeps the strides that it
    is computed with; the backward is compiled for these.

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
    preserves = "real"  # a library may add up images of another layout in another order
    asks_target = True
    max_ops_per_convolution: int = MOST_OPERATIONS
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
        if not verdict.innermost:
            return
        chosen = set(verdict.calls)
        for call in op.block.ops:
            if not (is_convolution(call) or target.is_gpu and is_backward(call)):
                continue
            if not self.any_precision and may_lose_precision(call, target):
                context.remark("keeps its layout: TF32 could take the place of f32", call)
            elif target.is_gpu and call not in chosen:
                context.remark("keeps its layout: another takes more time to convert", call)
            elif context.spend("propagate-channels-last", call):
                context.count("channels last", ask(call, weights=target.is_gpu))


def ask(call: Operation, weights: bool = False) -> int:
    """Ask for channels-last strides around one convolution, or its backward; 1 if it is one that
    has them. `weights`: for those that are no constants, too."""
    if not isinstance(call, graph.CallAten):
        return 1
    strides = innermost_strides(call, weights)
    call.attributes.update(strides)
    return int(bool(strides))
