"""The pass `explain-graphs`."""

from __future__ import annotations

from typing import Any

import attrs

from irc.dialects import host
from irc.ir.core import Operation
from irc.ir.passes import Pass, PassContext, register_pass
from irc.program.read_host import read_with_origins
from irc.runtime.graphs_cuts import cut
from irc.runtime.host_steps import gpu_of


@register_pass
class ExplainGraphs(Pass):
    """Tells which operations of a program no CUDA graph holds, and why; changes nothing.

    The graph ends before such an operation, and another begins behind it. `device` is the device
    whose graphs are meant, by default the program's GPU.

    Before:
        %n = host.item %flag : (tensor<[] x i64, strides [], "cuda:0">) -> index
        %r = sym.bind %n {symbol = "u0"} : (index) -> index
    After: the program as it was, and the remarks
        'host.item': is not captured: the host waits for a number of the GPU
        'sym.bind': is not captured: a size is found in data
    """

    name = "explain-graphs"
    summary = "tell what CUDA graphs leave out"
    analysis = True
    device: str = ""

    def run(self, op: Operation, context: PassContext) -> None:
        if not context.explains:
            return
        module: Any = op
        if not isinstance(module.lookup("main"), host.HostFuncOp):
            return
        program, origins = read_with_origins(module)
        chosen = getattr(context.options, "late_checks", None)
        program = attrs.evolve(program, late_checks=chosen is not False)
        gpu = gpu_of(program)
        device = self.device or (f"cuda:{gpu}" if gpu is not None else "")
        if not device:
            context.remark("nothing is captured: its arrays are not on one GPU")
            return
        plan = cut(program, device)
        for number, reason in sorted(plan.reasons.items()):
            context.remark(f"is not captured: {reason}", origins[number])
        context.count("graphs", sum(piece.captured for piece in plan.pieces))
