"""The three kinds of error, and diagnostics with a position.

`UserError`: the user's mistake (a bad argument, an unknown option, malformed text).
`InvalidIR`: a program that breaks an operation's or a level's rules.
`InternalError`: our bug; the message asks for a report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.location import UNKNOWN, Location, file_positions

if TYPE_CHECKING:
    from irc.ir.core import Operation


class IRCError(Exception):
    """Base of irc's errors. `notes` follow the message; `location` says where."""

    kind = "error"

    def __init__(
        self,
        message: str,
        location: Location = UNKNOWN,
        *,
        op: Operation | None = None,
        pass_name: str | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        if op is not None and location is UNKNOWN:
            location = op.location
        self.location = location
        self.op = op
        self.pass_name = pass_name
        self.notes = notes

    def __str__(self) -> str:
        parts = []
        positions = file_positions(self.location)
        if positions:
            p = positions[0]
            parts.append(f"{p.filename}:{p.line}:{p.column}: ")
        parts.append(f"{self.kind}: ")
        if self.pass_name:
            parts.append(f"[{self.pass_name}] ")
        if self.op is not None and self.op.name not in self.message:
            parts.append(f"'{self.op.name}': ")
        parts.append(self.message)
        for note in self.notes:
            parts.append(f"\n  note: {note}")
        return "".join(parts)


class UserError(IRCError):
    """The user's mistake: says what to change."""


class InvalidIR(IRCError):
    """The program breaks a rule of its level."""


class InternalError(IRCError):
    """A bug in irc."""

    kind = "internal error"
