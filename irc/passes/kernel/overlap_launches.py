"""The pass `overlap-launches`."""

from __future__ import annotations

from irc.dialects import func, graph, host, kernel
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass


@register_pass
class OverlapLaunches(Pass):
    """Lets program instances of a GPU's kernel begin before the kernel before it ends.

    They are then there when it does, and wait for it before they touch memory (`early`); the kernel
    before lets them begin as it begins itself (`opens`). Where launches are short, this saves most
    of what is between them. A kernel behind a call of an operator stays as it is: the operator's
    own kernels let nothing begin.

    Before:
        %y = host.launch %x {callee = @k0} : ...
        %z = host.launch %y {callee = @k1} : ...
    After:
        kernel.func @k0(...) attributes {opens, ...} { ... }
        kernel.func @k1(...) attributes {early, ...} { ... }
    """

    name = "overlap-launches"
    summary = "let kernels of a GPU begin before the kernel before them ends"

    def run(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].blocks[0]
        kernels = {k.sym_name: k for k in block.ops if isinstance(k, kernel.KernelFuncOp)}
        for function in [f for f in block.ops if isinstance(f, func.FuncOp)]:
            before: kernel.KernelFuncOp | None = None
            for each in function.block.ops:
                if isinstance(each, host.LaunchOp):
                    callee = kernels.get(each.callee)
                    if before is not None and callee is not None and callee.is_gpu:
                        self._overlap(before, callee, context)
                    before = callee if callee is not None and callee.is_gpu else None
                elif isinstance(each, graph.CallAten) or each.regions:
                    before = None

    def _overlap(
        self, before: kernel.KernelFuncOp, behind: kernel.KernelFuncOp, context: PassContext
    ) -> None:
        """Let what is behind a kernel begin early."""
        if behind.early and before.opens:
            return
        if context.spend("overlap-launches", behind):
            before.attributes["opens"] = behind.attributes["early"] = A.UNIT
            context.count("overlaps")
