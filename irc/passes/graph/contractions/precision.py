"""How a GPU multiplies f32: as torch's settings, which the target has, allow it for an operator."""

from __future__ import annotations

from typing import Any

from irc.dialects.loop import ScheduleAttr
from irc.ir import attributes as A
from irc.ir.types import f32
from irc.passes.graph.contractions.products import result_type
from irc.target import Target


def with_precision(
    schedule: A.Attribute | None, call: Any, is_product: bool, target: Target
) -> A.Attribute | None:
    """Entries of a schedule for a call's products, with TF32 where torch allows it to a library."""
    if not target.is_gpu or result_type(call).element is not f32:
        return schedule
    allowed = target.product_precision != "highest" if is_product else target.tf32_convolutions
    if not allowed:
        return schedule
    entries = schedule.entries.as_dict() if isinstance(schedule, ScheduleAttr) else {}
    return ScheduleAttr("gpu", A.DictAttr({"precision": A.StringAttr("tf32"), **entries}))


__all__ = ["with_precision"]
