"""The gpu side of the pass `form-kernels`."""

from __future__ import annotations

from collections.abc import Mapping

from irc.dialects import kernel, loop
from irc.ir.symbols import Range
from irc.passes.kernel.gpu import form
from irc.passes.kernel.plan.plan import Plan


def form_gpu_kernel(
    plan: Plan, schedule: loop.ScheduleAttr, name: str, ranges: Mapping[str, Range]
) -> kernel.FuncOp:
    """The gpu kernel of a plan's operation, its inputs in the plan's order. Raises InvalidIR."""
    return form.form_gpu_kernel(plan.op, schedule, name, inputs=plan.inputs, ranges=ranges)
