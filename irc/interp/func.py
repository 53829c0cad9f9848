"""The meaning of the func dialect."""

from __future__ import annotations

from typing import Any

import torch

from irc.dialects import func
from irc.dialects.func.calls import function_of
from irc.interp.core import Frame, Returned, call_function, interprets, state_of_call
from irc.ir import attributes as A
from irc.ir.diagnostics import InvalidIR
from irc.ir.types import TensorType, VectorType


@interprets(func.ReturnOp)
def return_(frame: Frame, op: func.ReturnOp) -> None:
    values = []
    for operand in op.operands:
        content = frame[operand]
        is_array = isinstance(operand.type, TensorType | VectorType)
        if not is_array and isinstance(content, torch.Tensor):
            content = content.item()
        values.append(content)
    if "updates" in frame.state:
        from irc.interp.graph import apply_updates

        values = _kept(frame, op, values)
        apply_updates(frame)
    raise Returned(values)


def _kept(frame: Frame, op: func.ReturnOp, values: list[Any]) -> list[Any]:
    """The results before arguments are updated: one in an argument's memory that is no alias of
    it for the caller keeps the old elements."""
    arguments = [frame.state["arguments"][number] for number, _ in frame.state["updates"]]
    changed = {t.untyped_storage()._cdata for t in arguments}
    infos = getattr(op.parent_op, "result_info", None)
    kept = []
    for position, value in enumerate(values):
        info = None if infos is None else infos[position]
        alias = None if not isinstance(info, A.DictAttr) else info.get("alias_of")
        if isinstance(value, torch.Tensor) and alias is None:
            if value.untyped_storage()._cdata in changed:
                copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
                value = copy.copy_(value) if 0 not in value.stride() else value.clone()
        kept.append(value)
    return kept


@interprets(func.CallOp)
def call(frame: Frame, op: func.CallOp) -> list[Any]:
    callee = function_of(op, op.callee)
    if callee is None:
        raise InvalidIR(f"there is no module around the call of @{op.callee}", op=op)
    inner = state_of_call(frame)
    return call_function(callee, frame.operands(op), frame.module, frame.mode, inner)
