"""The loop dialect: arrays computed over named iteration spaces, and how they are fused.

`loop.compute` gives arrays as scalar code over a space of axes; `loop.group` says which computes
share their leading axes. Values stay immutable whole arrays, inside a group too: a group changes
where a value is kept, never what it is.
"""

from irc.dialects.loop import text, verify
from irc.dialects.loop.ops import (
    AXIS_KINDS,
    COMBINER_RESULTS,
    MAP,
    RESULT_COMBINERS,
    SCATTER_COMBINERS,
    SCHEDULE_TARGETS,
    TENSOR,
    AxisAttr,
    ComputeOp,
    GroupOp,
    IndexOp,
    LoopCarried,
    ReadOp,
    ResultAttr,
    ScheduleAttr,
    YieldOp,
    placeholder,
    signless,
)

__all__ = [
    "text",
    "verify",
    "AXIS_KINDS",
    "AxisAttr",
    "COMBINER_RESULTS",
    "ComputeOp",
    "GroupOp",
    "IndexOp",
    "LoopCarried",
    "MAP",
    "RESULT_COMBINERS",
    "ReadOp",
    "ResultAttr",
    "SCATTER_COMBINERS",
    "SCHEDULE_TARGETS",
    "ScheduleAttr",
    "TENSOR",
    "YieldOp",
    "placeholder",
    "signless",
]
