"""The pass `overlap-launches`."""

from __future__ import annotations

from irc.dialects import kernel
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass


@register_pass
class OverlapLaunches(Pass):
    """Lets program instances of a GPU's kernels begin before what was launched before them ends.

    They are then there when it does, and wait for it before they touch memory; the first thing that
    they do behind that is to let the next launch begin. Where launches are short, this saves most
    of what is between them.

    Before:
        kernel.func @k(%x: !kernel.ptr<f32>, ...) attributes {target = "gpu", ...} { ... }
    After:
        kernel.func @k(%x: !kernel.ptr<f32>, ...) attributes {early, target = "gpu", ...} { ... }
    """

    name = "overlap-launches"
    summary = "let kernels of a GPU begin before the launch before them ends"

    def run(self, op: Operation, context: PassContext) -> None:
        for each in op.regions[0].blocks[0].ops:
            if isinstance(each, kernel.KernelFuncOp) and each.is_gpu and not each.early:
                if context.spend("overlap-launches", each):
                    each.attributes["early"] = A.UNIT
                    context.count("kernels")
