"""The three kinds of error, and diagnostics with a position.

`UserError`: the user's mistake (a bad argument, an unknown option, malformed text).
`InvalidIR`: a program that breaks an operation's or a level's rules.
`InternalError`: our bug; the message asks for a report.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from irc.ir.location import UNKNOWN, Location, file_positions

if TYPE_CHECKING:
    from irc.ir.core import Operation

EXCERPT_BEFORE = 60
EXCERPT_AFTER = 60
MESSAGE_LIMIT = 1200
#: Compiled where an error shows its line: few processes need it.
_WORD = r'"?[\w.$%@#!^]*'


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
        self.excerpt = ""
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
        parts.append(_shortened(self.message))
        if self.excerpt:
            parts.append("\n" + self.excerpt)
        for note in self.notes:
            parts.append(f"\n  note: {_shortened(note)}")
        return "".join(parts)


    def attach_source(self, filename: str, text: str) -> None:
        """Show the line of `text` that the error is about, if it is about the file `filename`."""
        for position in file_positions(self.location):
            if position.filename == filename and not self.excerpt:
                start = offset_of(text, position.line, position.column)
                if start is not None:
                    self.excerpt = excerpt(text, start, _word_end(text, start))


def _shortened(message: str) -> str:
    """A message without the middle when it quotes something very long."""
    if len(message) <= MESSAGE_LIMIT:
        return message
    return f"{message[: MESSAGE_LIMIT // 2]} ... {message[-MESSAGE_LIMIT // 4 :]}"


def offset_of(text: str, line: int, column: int) -> int | None:
    """The offset of a position (both from 1) in `text`; None when there is no such line."""
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
        if start == 0:
            return None
    return min(start + max(column, 1) - 1, len(text))


def _word_end(text: str, start: int) -> int:
    match = re.compile(_WORD).match(text, start)
    assert match is not None
    return match.end()


def excerpt(text: str, start: int, end: int) -> str:
    """The line of `text` around `start` with a caret below, and `~` up to `end`.

    Of a long line only the surroundings are shown.
    """
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    if line_end < 0:
        line_end = len(text)
    number = str(text.count("\n", 0, line_start) + 1)
    left = max(line_start, start - EXCERPT_BEFORE)
    right = min(line_end, start + EXCERPT_AFTER)
    before = ("..." if left > line_start else "") + text[left:start]
    shown = before + text[start:right] + ("..." if right < line_end else "")
    length = max(1, min(end, right) - start)
    blank = "".join(["\t" if c == "\t" else " " for c in before])
    pad = " " * len(number)
    shown = "".join([c if c.isprintable() or c == "\t" else "\ufffd" for c in shown])
    return f" {number} | {shown}\n {pad} | {blank}^{'~' * (length - 1)}"


def render(error: IRCError) -> str:
    """The whole text of an error: position, message, the line with a caret, notes."""
    return str(error)


class UserError(IRCError):
    """The user's mistake: says what to change."""


class InvalidIR(IRCError):
    """The program breaks a rule of its level."""


class InternalError(IRCError):
    """A bug in irc."""

    kind = "internal error"
