"""The gpu side of the pass `schedule`; the keys are listed at `gpu.schedule.default_schedule`."""

from __future__ import annotations

from irc.ir.core import Operation
from irc.passes.kernel.gpu.schedule import default_schedule
from irc.target import Target


def schedule_for_gpu(op: Operation, target: Target) -> None:
    """Give a top-level compute or group its default gpu schedule. Raises InvalidIR."""
    op.attributes["schedule"] = default_schedule(op, gpu=target.gpu)
