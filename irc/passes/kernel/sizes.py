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

BISECTIONS = 2
"""How often a size in the middle is measured where a schedule begins to be faster: of 16 to one it
is then known within a factor of two."""

Entries = dict[str, A.Attribute]


@attrs.frozen
class Other:
    """An operation at another size of a symbol than the one (`size`) that it was scheduled for:
    what is the fastest there, and between which sizes it begins to be (0: those two)."""

    op: Operation
    problem: Problem
    name: str
    size: int
    other: int
    winner: Candidate = Candidate()
    span: tuple[int, int] = (0, 0)

    @property
    def low(self) -> int:
        """The smaller end of the span."""
        return self.span[0] or min(self.size, self.other)

    @property
    def high(self) -> int:
        """The larger end."""
        return self.span[1] or max(self.size, self.other)

    @property
    def middle(self) -> int:
        """Up to where the schedule of the smaller size counts: the geometric mean."""
        return int((self.low * self.high) ** 0.5)

    def problem_at(self, size: int) -> Problem:
        """The problem to be measured at a size."""
        sizes = tuple((n, size if n == self.name else s) for n, s in self.problem.sizes)
        return attrs.evolve(self.problem, sizes=sizes)

    def narrowed(self, faster: bool) -> Other:
        """With the half of the span that is left where the winner is faster in the middle, or
        isn't."""
        above = faster == (self.other < self.size)
        return attrs.evolve(self, span=(self.middle, self.high) if above
                            else (self.low, self.middle))  # fmt: skip


def with_sizes(
    ops: Sequence[Operation], rest: str, what: Any, most: int | None, context: PassContext
) -> None:
    """Measure operations whose leading size is a symbol at smaller and larger ones, too, and give
    them the schedules that are faster there as `variants`, from the sizes on that measuring finds
    between."""
    asked: list[Other] = []
    problems: list[tuple[Problem, list[Candidate]]] = []
    for op in ops:
        name = leading_symbol(op)
        if name is None or any(each.inits for each in _computes(op)):
            continue  # a kernel that combines into an array has no second one
        if "variants" in _entries(op):
            continue  # the cost model has chosen by size
        problem = problem_of(op, target_of(context), rest, what(op))
        size = dict(problem.sizes)[name]
        candidates = candidates_for(op, target_of(context))[:most]
        candidates = [c for c in candidates if _serves_all_sizes(op, name, c, rest, context)]
        for other in (size // FACTOR, size * FACTOR):
            if LEAST_SIZE <= other <= MOST_SIZE and len(candidates) > 1:
                asked.append(Other(op, problem, name, size, other))
                problems.append((asked[-1].problem_at(other), candidates))
    winners = choose_all(problems, context) if problems else []
    others = [attrs.evolve(each, winner=winner) for each, winner in zip(asked, winners, strict=True)
             if winner.schedule or winner.members]  # fmt: skip
    faster: dict[Operation, list[Other]] = {}
    for each in bounded(others, context):
        faster.setdefault(each.op, []).append(each)
    for op, others in faster.items():
        if write_variants(op, others, rest, context):
            context.count("sized")


def bounded(others: Sequence[Other], context: PassContext) -> list[Other]:
    """The same with narrower spans: at sizes between, what is faster there is measured against what
    the operation has."""
    for _ in range(BISECTIONS):
        open_ = [each for each in others if each.low < each.middle < each.high]
        asked = [(e.problem_at(e.middle), [Candidate(), e.winner]) for e in open_]
        winners = choose_all(asked, context) if asked else []
        narrower = {each: each.narrowed(winner == each.winner)
                    for each, winner in zip(open_, winners, strict=True)}  # fmt: skip
        others = [narrower.get(each, each) for each in others]
    return list(others)


def _computes(op: Operation) -> list[loop.ComputeOp]:
    return [each for each in op.walk() if isinstance(each, loop.ComputeOp)]


def _serves_all_sizes(
    op: Operation, name: str, candidate: Candidate, rest: str, context: PassContext
) -> bool:
    """Whether a kernel with a candidate's schedule can be formed beside the operation's own."""
    if kind_of(op) != "contraction" or _is_gpu(op) or candidate == Candidate():
        return True
    changes = _changes(candidate, 1 + len(members_of(op)))
    return _formed(op, [_variant(name, 1, changes)], [], rest, context) == ""


def leading_symbol(op: Operation) -> str | None:
    """The one symbol of the sizes that an operation shares among program instances or threads."""
    assert isinstance(op, loop.ComputeOp | loop.GroupOp)
    sizes = [axis.extent for axis in op.axis_list if axis.kind == "par"]
    names = {name for size in sizes for name in free_symbols(size)}
    return names.pop() if len(names) == 1 else None


def write_variants(
    op: Operation, others: Sequence[Other], rest: str, context: PassContext
) -> bool:
    """Write what was faster at other sizes into an operation's schedule; whether its kernels can be
    formed."""
    parts = [op, *members_of(op)]
    known = [_entries(part) for part in parts]
    changes = {each: _changes(each.winner, len(parts)) for each in others}
    large = next((changes[each] for each in others if each.other > each.size), None)
    back = [{k: now[k] for k in each} for now, each in
            zip(known, large or [{}] * len(parts), strict=True)]  # fmt: skip
    variants: list[A.Attribute] = []
    for each in sorted(others, key=lambda each: each.other):
        if each.other < each.size:
            small = [{**b, **own} for b, own in zip(back, changes[each], strict=True)]
            variants.append(_variant(each.name, each.middle, small))
        else:
            variants.append(_variant(each.name, each.middle, back))
    reason = _formed(op, variants, large or [], rest, context, keep=True)
    if reason:
        context.remark(f"one schedule serves all sizes: {reason}", op)
    return not reason


def _formed(
    op: Operation,
    variants: Sequence[A.Attribute],
    changes: Sequence[Entries],
    rest: str,
    context: PassContext,
    keep: bool = False,
) -> str:
    """Why an operation's kernels can't be formed with these variants, and its own schedule and its
    members' changed; "" where they can. The schedules then stay if that is asked."""
    parts = [op, *members_of(op)]
    before = [part.attributes.get("schedule") for part in parts]
    for number, part in enumerate(parts):
        own = {**_entries(part), **(changes[number] if changes else {})}
        if part is op:
            own["variants"] = A.ArrayAttr(variants)
        part.attributes["schedule"] = loop.ScheduleAttr("gpu" if _is_gpu(op) else "cpu",
                                                        A.DictAttr(own))  # fmt: skip
    reason = ""
    try:
        module = problem_of(op, target_of(context), rest, "").module()
        PassManager.parse("form-kernels").run(module, PassContext(explains=False))
    except IRCError as error:
        reason = error.message
    if reason or not keep:
        for part, schedule in zip(parts, before, strict=True):
            if schedule is not None:
                part.attributes["schedule"] = schedule
    return reason


def _entries(part: Operation) -> Entries:
    schedule = part.attributes.get("schedule")
    return schedule.entries.as_dict() if isinstance(schedule, loop.ScheduleAttr) else {}


def _is_gpu(op: Operation) -> bool:
    schedule = op.attributes.get("schedule")
    return isinstance(schedule, loop.ScheduleAttr) and schedule.is_gpu


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


__all__ = ["Other", "bounded", "leading_symbol", "with_sizes", "write_variants"]
