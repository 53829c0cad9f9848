"""The meaning of the func dialect."""

from __future__ import annotations

from typing import Any

import torch

from irc.dialects import func
from irc.interp.core import Frame, Returned, call_function, interprets
from irc.ir.diagnostics import InvalidIR
from irc.ir.types import TensorType


@interprets(func.ReturnOp)
def return_(frame: Frame, op: func.ReturnOp) -> None:
    values = []
    for operand in op.operands:
        content = frame[operand]
        if not isinstance(operand.type, TensorType) and isinstance(content, torch.Tensor):
            content = content.item()
        values.append(content)
    if "updates" in frame.state:
        from irc.interp.graph import apply_updates

        apply_updates(frame)
    raise Returned(values)


@interprets(func.CallOp)
def call(frame: Frame, op: func.CallOp) -> list[Any]:
    callee = frame.module.lookup(op.callee) if frame.module is not None else None  # type: ignore[attr-defined]
    if callee is None:
        raise InvalidIR(f"there is no function @{op.callee}", op=op)
    return call_function(callee, frame.operands(op), frame.module, frame.mode, frame.state)
