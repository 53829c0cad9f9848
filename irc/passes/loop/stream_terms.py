"""What is combined in the steps of a walk over a stream: terms, outputs, and their names."""

from __future__ import annotations

import math

from irc.dialects import arith, loop
from irc.ir.attributes import Type
from irc.ir.core import Value
from irc.passes.kernel.gpu.plan import GpuMember, Origin

COMBINE = {"sum": "arith.addf", "prod": "arith.mulf", "max": "arith.maximumf",
           "min": "arith.minimumf"}  # fmt: skip
IDENTITY = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


class StepOutputs:
    """What one compute gives, each value once."""

    def __init__(self) -> None:
        self.kinds = list[loop.ResultAttr]()
        self.values = list[Value]()
        self.types = list[Type]()

    def add(self, output: loop.ResultAttr, value: Value, type_: Type) -> int:
        """The number of an output."""
        for number, known in enumerate(zip(self.kinds, self.values, strict=True)):
            if known == (output, value):
                return number
        self.kinds.append(output)
        self.values.append(value)
        self.types.append(type_)
        return len(self.values) - 1


def origin_key(origin: Origin) -> tuple[GpuMember, int]:
    """What an output is known by."""
    return origin.member, origin.output


def not_rounded(value: Value) -> Value:
    """A factor before it was rounded for products of narrower numbers: these are of f32."""
    wide = value.defining_op
    narrow = wide.operands[0].defining_op if isinstance(wide, arith.ExtFOp) else None
    if isinstance(narrow, arith.TruncFOp) and narrow.operands[0].type is value.type:
        return narrow.operands[0]
    return value


__all__ = ["COMBINE", "IDENTITY", "StepOutputs", "not_rounded", "origin_key"]
