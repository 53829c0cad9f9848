"""Entries of a contraction's schedule that were measured before its factors had their final layout.

`choose-contractions` measures a product or convolution by itself, with operands in the strides that
they have then; which layouts the program's arrays get is decided later, and what is fused with it.
Entries that can't be formed for those are dropped, not an error: nobody wrote them.
"""

from __future__ import annotations

import attrs

from irc.dialects import loop
from irc.dialects.loop.ops import ScheduleAttr
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.diagnostics import InvalidIR
from irc.passes.kernel.cpu.contraction.checked import checked_tiling
from irc.passes.kernel.cpu.plan import plan_for_cpu
from irc.passes.kernel.plan.plan import flatten


@attrs.frozen
class Measured:
    """A contraction whose entries were measured, of a top-level operation."""

    op: Operation
    compute: loop.ComputeOp
    entries: dict[str, A.Attribute]

    @classmethod
    def of(cls, op: Operation) -> Measured | None:
        """Those of an operation, from which the mark is taken; None where there are none."""
        for each in op.walk():
            schedule = each.attributes.get("schedule")
            if not isinstance(each, loop.ComputeOp) or not isinstance(schedule, ScheduleAttr):
                continue
            entries = schedule.entries.as_dict()
            if entries.pop("measured", None) is not None:
                each.attributes["schedule"] = ScheduleAttr("cpu", A.DictAttr(entries))
                return cls(op, each, entries)
        return None

    def objection(self, room: int) -> str | None:
        """Why a kernel can't be formed with the schedule that was made of the entries; None where
        one can. room: bytes of the stack."""
        schedule = self.op.attributes["schedule"]
        assert isinstance(schedule, ScheduleAttr)
        entries = schedule.entries.as_dict()
        entries.pop("variants", None)  # these are the model's
        plain = ScheduleAttr("cpu", A.DictAttr(entries))
        try:
            checked_tiling(plan_for_cpu(flatten(self.op), scratch=room), plain, {})
        except InvalidIR as error:
            return error.message
        return None

    def drop(self) -> None:
        """Leave the schedule to the cost model, but for parts of factors: these are other numbers.
        """
        for each in self.op.walk():
            if isinstance(each, loop.ComputeOp | loop.GroupOp):
                each.attributes.pop("schedule", None)
        products = self.entries.get("products")
        if isinstance(products, A.StringAttr) and products.value == "bf16x6":
            kept = A.DictAttr({"products": products})
            self.compute.attributes["schedule"] = ScheduleAttr("cpu", kept)


__all__ = ["Measured"]
