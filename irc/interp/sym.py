"""The meaning of the sym dialect."""

from __future__ import annotations

import builtins
from typing import Any

import torch

from irc.dialects import sym
from irc.dialects.sym.ranges import when_of
from irc.interp.core import Frame, interprets
from irc.ir.diagnostics import UserError
from irc.ir.symbols import HOLDS

#: The classes of the errors of assertions, by name.
ASSERTED: dict[str, type[Exception]] = {name: getattr(builtins, name) for name in sym.ERRORS}


@interprets(sym.BindSizeOp)
def bind_size(frame: Frame, op: sym.BindSizeOp) -> torch.Tensor:
    source = frame[op.source]
    number = source.stride(op.dim) if op.stride else source.size(op.dim)
    return _bind(frame, op, number)


@interprets(sym.BindOffsetOp)
def bind_offset(frame: Frame, op: sym.BindOffsetOp) -> torch.Tensor:
    return _bind(frame, op, int(frame[op.source].storage_offset()))


@interprets(sym.BindOp)
def bind(frame: Frame, op: sym.BindOp) -> torch.Tensor:
    return _bind(frame, op, int(frame[op.source]))


def _bind(frame: Frame, op: Any, number: int) -> torch.Tensor:
    low, high = op.minimum, op.maximum
    if (low is not None and number < low) or (high is not None and number > high):
        raise UserError(f"{op.symbol} is {number}, not between {low} and {high}", op=op)
    frame.symbols[op.symbol] = number
    return torch.tensor(number)


@interprets(sym.ValueOp)
def value(frame: Frame, op: sym.ValueOp) -> torch.Tensor:
    return torch.tensor(frame.dim(op.dim))


@interprets(sym.AssertOp)
def assert_(frame: Frame, op: sym.AssertOp) -> None:
    if not HOLDS[op.relation](frame.dim(op.lhs), frame.dim(op.rhs)):
        raise ASSERTED[op.error](op.message)


@interprets(sym.AssertValueOp)
def assert_value(frame: Frame, op: sym.AssertValueOp) -> None:
    if not bool(frame[op.condition]):
        raise ASSERTED[op.error](op.message)


@interprets(sym.ChooseOp)
def choose(frame: Frame, op: sym.ChooseOp) -> torch.Tensor:
    for value in op.operands:
        when = when_of(value.defining_op)
        if when is not None and when.holds(frame.dim(when.size)):
            return frame[value]
    raise UserError("no operand is made for the sizes here", op=op)


@interprets(sym.RefineOp)
def refine(frame: Frame, op: sym.RefineOp) -> torch.Tensor:
    source = frame[op.source]
    expected = frame.dims(op.refined.type.shape)
    if list(source.shape) != expected:
        raise UserError(f"a tensor of sizes {list(source.shape)} is refined to {expected}", op=op)
    return source
