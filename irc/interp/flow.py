"""The meaning of the flow dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from irc.dialects import flow
from irc.dialects.func.calls import function_of
from irc.interp.control import run_cond, run_scan, run_while
from irc.interp.core import Frame, call_function, interprets, scalar_of, state_of_call
from irc.ir.symbols import free_symbols
from irc.ir.types import TensorType

Function = Callable[..., list[Any]]


@interprets(flow.CondOp)
def cond(frame: Frame, op: flow.CondOp) -> list[Any]:
    condition, *inputs = _operands(frame, op)
    branch = run_cond(_called(frame, op, op.then), _called(frame, op, op.otherwise))
    return _as_typed(frame, op, branch(condition, *inputs))


@interprets(flow.WhileOp)
def while_(frame: Frame, op: flow.WhileOp) -> list[Any]:
    condition, body = _called(frame, op, op.condition), _called(frame, op, op.body)
    run = run_while(condition, body, op.carried, bool(op.stacked))
    return _as_typed(frame, op, run(*_operands(frame, op)))


@interprets(flow.ScanOp)
def scan(frame: Frame, op: flow.ScanOp) -> list[Any]:
    run = run_scan(_called(frame, op, op.combine), op.carried, op.scanned)
    return _as_typed(frame, op, run(*_operands(frame, op)))


def _called(frame: Frame, op: flow.FlowOp, name: str) -> Function:
    """A function of the module, to be called on contents. What happens inside it is seen by
    nobody who watches the run, but for random numbers and undefined memory."""
    function = function_of(op, name)

    def call(*contents: Any) -> list[Any]:
        return call_function(function, contents, frame.module, frame.mode, state_of_call(frame))

    return call


def _operands(frame: Frame, op: flow.FlowOp) -> list[Any]:
    """Arrays row by row, as functions take them; numbers as Python's."""
    contents = []
    for operand in op.operands:
        content = frame[operand]
        is_array = isinstance(operand.type, TensorType)
        contents.append(content.contiguous() if is_array else scalar_of(content))
    return contents


def _as_typed(frame: Frame, op: flow.FlowOp, contents: Any) -> list[Any]:
    """Results with the strides of their types."""
    typed = []
    for result, content in zip(op.results, contents, strict=True):
        type_: Any = result.type
        known = isinstance(type_, TensorType) and type_.strides is not None
        if known and all(free_symbols(d) <= frame.symbols.keys() for d in type_.strides):
            strides = [frame.dim(d) for d in type_.strides]
            target = torch.empty_strided(content.shape, strides, dtype=content.dtype)
            content = target.copy_(content)
        typed.append(content)
    return typed
