"""Fuel: how many rewrites passes may make, so that a search can stop at any of them.

    context = PassContext(fuel=Fuel(12))
    PassManager.parse(text).run(module, context)
    context.fuel.last            # "rewrite 12: canonicalize: arith.add_zero of 'arith.addi' at ..."

The driver of patterns, the planners and `cse` and `dce` spend one unit for each
rewrite, in the order in which they make them, and leave the rest of the program as it is when all
is spent.
What a program needs to be lowered at all spends nothing: conversions (`irc.ir.rewrite.conversion`).
"""

from __future__ import annotations

from irc.ir.core import Operation
from irc.ir.location import UNKNOWN, Location, file_positions

#: Why a planner leaves apart what it could bring together.
NO_FUEL = "there is no fuel left"


class Fuel:
    """`limit` rewrites; None: as many as there are, counted."""

    __slots__ = ("_last", "inside", "limit", "spent")

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.spent = 0
        self.inside = ""  # the running pass
        self._last: tuple[str, str, str, Location] = ("", "", "", UNKNOWN)

    @property
    def is_empty(self) -> bool:
        """Whether no rewrite may be made any more."""
        return self.limit is not None and self.spent >= self.limit

    def spend(self, name: str, op: Operation) -> bool:
        """Whether the rewrite `name` of `op` may be made: then it counts."""
        if self.is_empty:
            return False
        self.spent += 1
        self._last = (self.inside, name, op.name, op.location)
        return True

    @property
    def last(self) -> str:
        """The rewrite that was made last, with its number; "" before the first one."""
        if not self.spent:
            return ""
        inside, name, op, location = self._last
        places = file_positions(location)
        at = f" at {places[0].filename}:{places[0].line}:{places[0].column}" if places else ""
        named = name if inside in ("", name) else f"{inside}: {name}"
        return f"rewrite {self.spent}: {named} of '{op}'{at}"

    @property
    def told(self) -> str:
        """What came of it, for people."""
        rest = "" if self.is_empty else "; there were no more"
        return (self.last or "no rewrite") + rest


__all__ = ["NO_FUEL", "Fuel"]
