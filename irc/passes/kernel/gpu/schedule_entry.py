"""The gpu side of the pass `schedule`; the keys are listed at `irc.dialects.loop.schedule.GPU`."""

from __future__ import annotations

from collections.abc import Mapping

from irc.ir.core import Operation
from irc.ir.symbols import Range
from irc.passes.kernel.gpu.schedule import default_schedule
from irc.target import Target


def schedule_for_gpu(op: Operation, target: Target, ranges: Mapping[str, Range]) -> None:
    """Give a top-level compute or group its default gpu schedule; `ranges` bounds symbols. Raises
    InvalidIR."""
    op.attributes["schedule"] = default_schedule(op, gpu=target.gpu, ranges=ranges)
