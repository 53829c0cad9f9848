"""What a run of passes shares: the target, what is counted, and what the user is told."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from irc.ir.core import Operation
from irc.ir.diagnostics import UserError
from irc.ir.location import UNKNOWN, Location, file_positions
from irc.ir.rewrite.fuel import Fuel


@attrs.frozen
class Remark:
    """A message for the user about one operation: why a thing was or wasn't done."""

    pass_name: str
    message: str
    location: Location = UNKNOWN
    op_name: str = ""

    @property
    def text(self) -> str:
        """`[pass] 'op': message`, without the place."""
        op = f"'{self.op_name}': " if self.op_name else ""
        return f"[{self.pass_name}] {op}{self.message}"

    def __str__(self) -> str:
        places = file_positions(self.location)
        where = f"{places[0].filename}:{places[0].line}:{places[0].column}: " if places else ""
        return f"{where}remark: {self.text}"


def chosen_remarks(remarks: Iterable[Remark], pattern: str = "") -> list[Remark]:
    """Each remark once in which the regular expression `pattern` is found. Raises UserError."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise UserError(f"remarks: '{pattern}' is no regular expression: {error}") from None
    return [remark for remark in dict.fromkeys(remarks) if expression.search(remark.text)]


@attrs.define
class PassContext:
    """What a run of a pipeline shares: the target, statistics, remarks, timing, analyses' options.

    target: the `irc.target.Target`, or its name, that the caller wants the program made for; None:
    the one that its module carries. settled: what the manager found that to be before it ran a
    pass; passes ask `irc.target.target_of(context)`.
    options: the frozen options object of the compile (None outside one). explains: whether anybody
    asks for remarks; passes look no further for reasons where nobody does. measure: how many times
    faster a padded matrix product runs (`pad-matmul` gives it a `Product`), None where that can't
    be told; without it nothing is measured. folded: how large constants were computed
    (`irc.program.folded.FoldedConstants`), in order, for a cache that doesn't keep them. fuel:
    how many rewrites may be made (None: all). tuning: what choices by measuring share
    (`irc.tuning.session`), made by the first one. provisional: why no cache is to keep the program,
    as another compile may better it; empty where that is not so.
    """

    target: Any = None
    options: Any = None
    statistics: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    remarks: list[Remark] = attrs.field(factory=list)
    timings: list[tuple[str, float]] = attrs.field(factory=list)
    current_pass: str = ""
    explains: bool = True
    measure: Callable[[Any], float | None] | None = None
    folded: list[Any] = attrs.field(factory=list)
    fuel: Fuel | None = None
    tuning: Any = None
    provisional: str = ""
    settled: Any = None

    def count(self, name: str, amount: int = 1) -> None:
        """Add to the statistic `name` of the running pass."""
        self.statistics[(self.current_pass, name)] += amount

    def spend(self, name: str, op: Operation) -> bool:
        """Whether the fuel lasts for the rewrite `name` of `op`, which then counts."""
        return self.fuel is None or self.fuel.spend(name, op)

    def remark(self, message: str, op: Operation | None = None) -> None:
        """Tell the user something about `op`: the reason for what was or wasn't done with it."""
        if not self.explains:
            return
        location = UNKNOWN if op is None else op.location
        name = "" if op is None or op.parent_op is None else op.name
        self.remarks.append(Remark(self.current_pass, message, location, name))


__all__ = ["PassContext", "Remark", "chosen_remarks"]
