"""How a GPU multiplies f32: as torch's settings, which the target has, allow it for an operator."""

from __future__ import annotations

from typing import Any

from irc.dialects.loop import ScheduleAttr
from irc.ir import attributes as A
from irc.ir.types import f32
from irc.passes.graph.contractions.products import result_type
from irc.target import Target


def with_precision(
    schedule: A.Attribute | None, call: Any, is_product: bool, target: Target, splits: bool
) -> A.Attribute | None:
    """Entries of a schedule for a call's products, with TF32 where torch allows it to a library.
    splits: whether factors of f32 may be cut into parts of bf16 elsewhere."""
    if not target.is_gpu or result_type(call).element is not f32:
        return schedule
    allowed = target.product_precision != "highest" if is_product else target.tf32_convolutions
    if not allowed and splits:
        return schedule
    entries = schedule.entries.as_dict() if isinstance(schedule, ScheduleAttr) else {}
    word = A.StringAttr("tf32" if allowed else "ieee")
    return ScheduleAttr("gpu", A.DictAttr({"precision": word, **entries}))


__all__ = ["with_precision"]
