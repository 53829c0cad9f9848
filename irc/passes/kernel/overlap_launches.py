"""The pass `overlap-launches`."""

from __future__ import annotations

from irc.analysis.loop import estimate
from irc.dialects import func, graph, host, kernel
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.ir.symbols import dim_product
from irc.ir.types import TensorType, element_bytes
from irc.target import Target, target_of


@register_pass
class OverlapLaunches(Pass):
    """Lets program instances of a GPU's kernel begin before the kernel before it ends.

    They are then there when it does, and wait for it before they touch memory (`early`); the kernel
    before lets them begin as it begins itself (`opens`). Where launches are short, this saves most
    of what is between them. But program instances that let others begin are started at half the
    rate: where there are more than `opening_programs`, of fewer than `opening_bytes` each, none
    does, and the next kernel begins as their last ones end. A kernel behind a call of an operator
    stays as it is: the operator's own kernels let nothing begin.

    Before:
        %y = host.launch %x {callee = @k0} : ...
        %z = host.launch %y {callee = @k1} : ...
    After:
        kernel.func @k0(...) attributes {opens, ...} { ... }
        kernel.func @k1(...) attributes {early, ...} { ... }
    """

    name = "overlap-launches"
    summary = "let kernels of a GPU begin before the kernel before them ends"
    asks_target = True

    def run(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].blocks[0]
        kernels = {k.sym_name: k for k in block.ops if isinstance(k, kernel.KernelFuncOp)}
        for function in [f for f in block.ops if isinstance(f, func.FuncOp)]:
            before: host.LaunchOp | None = None
            for each in function.block.ops:
                if isinstance(each, host.LaunchOp):
                    callee = kernels.get(each.callee)
                    on_gpu = callee is not None and callee.is_gpu
                    if before is not None and callee is not None and on_gpu:
                        self._overlap(before, kernels[before.callee], callee, context)
                    before = each if on_gpu else None
                elif isinstance(each, graph.CallAten) or each.regions:
                    before = None

    def _overlap(
        self,
        launch: host.LaunchOp,
        before: kernel.KernelFuncOp,
        behind: kernel.KernelFuncOp,
        context: PassContext,
    ) -> None:
        """Let what is behind the launch of a kernel begin early."""
        opens = before.opens or _lasts(launch, before, target_of(context))
        if behind.early and before.opens is opens:
            return
        if context.spend("overlap-launches", behind):
            behind.attributes["early"] = A.UNIT
            if opens:
                before.attributes["opens"] = A.UNIT
            context.count("overlaps")


def _lasts(launch: host.LaunchOp, callee: kernel.KernelFuncOp, target: Target) -> bool:
    """Whether the program instances of a launch are few, or have so much to move that they are
    started in less time."""
    programs = 1 if callee.grid is None else estimate(callee.grid)
    moved = 0
    for value in {*launch.operands, *launch.results}:
        if isinstance(value.type, TensorType):
            moved += estimate(dim_product(value.type.shape)) * element_bytes(value.type.element)
    return (programs <= target.gpu.opening_programs
            or moved >= programs * target.gpu.opening_bytes)  # fmt: skip
