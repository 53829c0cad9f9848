"""How a choice gets into an operation of a problem, by the operation's class.

    @applies(loop.ComputeOp)
    def to_compute(op, candidate): ...
"""

from __future__ import annotations

from collections.abc import Callable

from irc.dialects import func, graph, loop
from irc.dialects.loop.ops import ScheduleAttr
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.diagnostics import UserError
from irc.tuning.candidate import Candidate, read_schedule_text

Applier = Callable[[Operation, Candidate], None]

_appliers: dict[type[Operation], Applier] = {}


def applies(*classes: type[Operation]) -> Callable[[Applier], Applier]:
    """Register what writes a candidate into an operation of these classes."""

    def register(applier: Applier) -> Applier:
        for cls in classes:
            _appliers[cls] = applier
        return applier

    return register


def is_tunable(op: Operation) -> bool:
    """Whether a candidate can be written into it."""
    return type(op) in _appliers


def tunable_in(function: func.FuncOp) -> Operation:
    """The one operation of a problem's function that is tuned. Raises UserError."""
    ops = [op for op in function.block.ops if is_tunable(op)]
    if len(ops) != 1:
        raise UserError(f"a problem has one operation that is tuned, not {len(ops)}", op=function)
    return ops[0]


def apply(op: Operation, candidate: Candidate) -> None:
    """Write a candidate into an operation. Raises UserError for one that it can't be."""
    applier = _appliers.get(type(op))
    if applier is None:
        raise UserError(f"nothing says how {op.name} runs as {candidate.label}", op=op)
    applier(op, candidate)


@applies(loop.ComputeOp, loop.GroupOp)
def to_loop(op: Operation, candidate: Candidate) -> None:
    """The entries become the schedule's, beside those that it has."""
    if candidate.backend != "irc":
        raise UserError(f"a {op.name} runs as irc's kernel, not as {candidate.backend}'s", op=op)
    _merge(op, candidate.schedule)
    if not candidate.members:
        return
    inner = members_of(op)
    if len(inner) != len(candidate.members):
        raise UserError(f"the candidate is for {len(candidate.members)} computes", op=op)
    for member, text in zip(inner, candidate.members, strict=True):
        _merge(member, text)


@applies(graph.CallAten)
def to_call(op: Operation, candidate: Candidate) -> None:
    """`choose-contractions` reads who is to compute the call, and entries of a schedule."""
    op.attributes["backend"] = A.StringAttr(candidate.backend)
    schedule = candidate.attribute()
    if schedule is not None:
        op.attributes["schedule"] = schedule


def members_of(op: Operation) -> list[Operation]:
    """The computes of a group, in order."""
    if not isinstance(op, loop.GroupOp):
        return []
    return [inner for inner in op.block.ops if isinstance(inner, loop.ComputeOp)]


def _merge(op: Operation, text: str) -> None:
    if text:
        op.attributes["schedule"] = merged(op.attributes.get("schedule"), read_schedule_text(text))


def merged(schedule: object, changes: ScheduleAttr) -> ScheduleAttr:
    """A schedule with the entries of another one, which go first. Raises UserError for two targets.
    """
    if not isinstance(schedule, ScheduleAttr):
        return changes
    if schedule.target != changes.target:
        raise UserError(f"the schedule is for a {changes.target}, not a {schedule.target}")
    entries = {**schedule.entries.as_dict(), **changes.entries.as_dict()}
    return ScheduleAttr(schedule.target, A.DictAttr(entries))


__all__ = ["applies", "apply", "is_tunable", "members_of", "merged", "tunable_in"]
