"""Schedules for several sizes of one symbol: what was measured at each becomes `variants`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from irc.dialects import loop
from irc.ir import attributes as A
from irc.ir.core import Operation
from irc.ir.diagnostics import IRCError
from irc.ir.passes import PassContext, PassManager
from irc.ir.symbols import free_symbols, symbol
from irc.target import target_of
from irc.tuning import Candidate, Problem, choose_all
from irc.tuning.applying import members_of
from irc.tuning.candidate import read_schedule_text
from irc.tuning.candidates import candidates_for, kind_of
from irc.tuning.problem import problem_of

FACTOR = 16
"""How many times as large, and as small, as while the program was traced a size is looked at."""
LEAST_SIZE, MOST_SIZE = 4, 1 << 16

Entries = dict[str, A.Attribute]
Faster = dict[int, tuple[str, int, Candidate]]
"""What is the fastest by a symbol's size, with the symbol and the size that it was measured at."""


def with_sizes(
    ops: Sequence[Operation], rest: str, what: Any, most: int | None, context: PassContext
) -> None:
    """Measure operations whose leading size is a symbol at smaller and larger ones, too, and give
    them the schedules that are faster there as `variants`."""
    asked: list[tuple[Operation, str, int, int]] = []
    problems: list[tuple[Problem, list[Candidate]]] = []
    for op in ops:
        name = leading_symbol(op)
        if name is None or not _may_have_variants(op):
            continue
        problem = problem_of(op, target_of(context), rest, what(op))
        size = dict(problem.sizes)[name]
        for other in (size // FACTOR, size * FACTOR):
            if LEAST_SIZE <= other <= MOST_SIZE:
                sizes = tuple((n, other if n == name else s) for n, s in problem.sizes)
                asked.append((op, name, size, other))
                candidates = candidates_for(op, target_of(context))[:most]
                problems.append((attrs.evolve(problem, sizes=sizes), candidates))
    winners = choose_all(problems, context) if problems else []
    faster: dict[Operation, Faster] = {}
    for (op, name, size, other), winner in zip(asked, winners, strict=True):
        if winner.schedule or winner.members:
            faster.setdefault(op, {})[other] = (name, size, winner)
    for op, each in faster.items():
        if write_variants(op, each, rest, context):
            context.count("sized")


def leading_symbol(op: Operation) -> str | None:
    """The one symbol of the sizes that an operation shares among program instances or threads."""
    assert isinstance(op, loop.ComputeOp | loop.GroupOp)
    sizes = [axis.extent for axis in op.axis_list if axis.kind == "par"]
    names = {name for size in sizes for name in free_symbols(size)}
    return names.pop() if len(names) == 1 else None


def _may_have_variants(op: Operation) -> bool:
    """Whether kernels with other schedules take the same arrays: none that a kernel packs into, and
    none that it combines into."""
    computes = [each for each in op.walk() if isinstance(each, loop.ComputeOp)]
    schedule = op.attributes.get("schedule")
    gpu = isinstance(schedule, loop.ScheduleAttr) and schedule.is_gpu
    return not any(each.inits for each in computes) and (gpu or kind_of(op) != "contraction")


def write_variants(
    op: Operation, winners: Faster, rest: str, context: PassContext
) -> bool:
    """Write what was faster at other sizes, by the size, into an operation's schedule; whether its
    kernels can be formed."""
    parts = [op, *members_of(op)]
    before = [part.attributes.get("schedule") for part in parts]
    known = [s.entries.as_dict() if isinstance(s, loop.ScheduleAttr) else {} for s in before]
    name, size, _ = next(iter(winners.values()))
    changes = {other: _changes(winner, len(parts)) for other, (_, _, winner) in winners.items()}
    large = next((changes[other] for other in changes if other > size), None)
    back = [{k: now[k] for k in each} for now, each in
            zip(known, large or [{}] * len(parts), strict=True)]  # fmt: skip
    variants: list[A.Attribute] = []
    for other in sorted(changes):
        if other < size:
            small = [{**b, **each} for b, each in zip(back, changes[other], strict=True)]
            variants.append(_variant(name, _between(other, size), small))
        else:
            variants.append(_variant(name, _between(size, other), back))
    for part, now, each in zip(parts, known, large or [{}] * len(parts), strict=True):
        own = {**now, **each, **({"variants": A.ArrayAttr(variants)} if part is op else {})}
        part.attributes["schedule"] = loop.ScheduleAttr(_target(before[0]), A.DictAttr(own))
    problem = problem_of(op, target_of(context), rest, "")
    try:
        PassManager.parse("form-kernels").run(problem.module(), PassContext(explains=False))
    except IRCError as error:
        context.remark(f"one schedule serves all sizes: {error.message}", op)
        for part, schedule in zip(parts, before, strict=True):
            if schedule is not None:
                part.attributes["schedule"] = schedule
        return False
    return True


def _target(schedule: object) -> str:
    assert isinstance(schedule, loop.ScheduleAttr)
    return schedule.target


def _between(small: int, large: int) -> int:
    """Up to where the schedule of the smaller size counts."""
    return int((small * large) ** 0.5)


def _changes(winner: Candidate, parts: int) -> list[Entries]:
    """What a candidate changes of the schedules of an operation and of its members."""
    texts = [winner.schedule, *winner.members]
    entries = [read_schedule_text(text).entries.as_dict() if text else {} for text in texts]
    return entries + [{} for _ in range(parts - len(entries))]


def _variant(name: str, most: int, entries: Sequence[Entries]) -> A.DictAttr:
    top, *members = entries
    named: Entries = {"size": A.DimAttr(symbol(name)), "most": A.IntegerAttr(most), **top}
    if any(members):
        named["members"] = A.ArrayAttr([A.DictAttr(each) for each in members])
    return A.DictAttr(named)


__all__ = ["leading_symbol", "with_sizes", "write_variants"]
