"""Reading text: one regular expression for all tokens, one token of look-ahead.

Every error is a UserError with the file position and an excerpt with a caret. Nesting is bounded,
nothing is ever evaluated.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NoReturn, TypeVar

from irc.ir.diagnostics import UserError, excerpt
from irc.ir.location import FileLocation

MAX_DEPTH = 100
"""Deepest nesting of regions, types and attributes together."""
MAX_SHOWN = 30
"""Most characters of a token that a message quotes."""

# Quantifiers are possessive where they can be: no input makes the match backtrack.
TOKEN = re.compile(
    r"""(?:[ \t\r\n]++|//[^\n]*+)*+
    (?: (?P<value>%(?:[0-9]++|[A-Za-z_$.\-](?:[\w$.]|-(?!>))*+)(?:\#[0-9]++)?)
      | (?P<word>[A-Za-z_][\w$.]*+)
      | (?P<number>0x[0-9A-Fa-f]++|[0-9]++(?:\.[0-9]*+(?:[eE][-+]?[0-9]++)?)?)
      | (?P<mark>->|[()\[\]{}<>,:=+\-*?/|])
      | (?P<string>"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+")
      | (?P<hash>\#[A-Za-z_][\w$.]*+)
      | (?P<bang>![A-Za-z_][\w$.]*+)
      | (?P<at>@(?:[A-Za-z_][\w$.]*+|(?=")))
      | (?P<block>\^[\w$.\-]++)
      | (?P<end>\Z)
      | (?P<bad>.) )""",
    re.X | re.S | re.A,
)
_match_token = TOKEN.match
KINDS = ("", *TOKEN.groupindex)
_ESCAPE = re.compile(r"((?:\\[0-9A-Fa-f]{2})++)|\\(.)", re.S)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_KIND_WORDS = {"end": "the end of the text", "bad": "a character that starts no token"}

Built = TypeVar("Built")


class Lexer:
    """The text, and the token that is next: its `kind`, `token`, `start` and `position` (its
    end); `last_end` is the end of the one before."""

    def __init__(self, text: str, filename: str = "<text>") -> None:
        self.text = text
        self.filename = filename
        self.depth = 0
        self.kind = ""
        self.token = ""
        self.start = 0
        self.position = 0
        self.last_end = 0
        self._line_starts: list[int] | None = None
        self.advance()

    # -- tokens

    def advance(self) -> None:
        """Read the next token."""
        self.last_end = position = self.position
        match = _match_token(self.text, position)
        group: int = match.lastindex  # type: ignore[assignment,union-attr]
        self.kind = KINDS[group]
        self.token = match[group]  # type: ignore[index]
        self.start, self.position = match.span(group)  # type: ignore[union-attr]

    def reset(self, position: int) -> None:
        """Read on from `position`."""
        self.position = position
        self.advance()

    def take(self, text: str) -> bool:
        """Skip the token `text` if it is next (a mark or a word); whether it was."""
        if self.token == text and self.kind != "string":
            self.advance()
            return True
        return False

    def at(self, text: str) -> bool:
        """Whether the token `text` (a mark or a word) is next."""
        return self.token == text and self.kind != "string"

    def expect(self, text: str) -> None:
        """Skip the token `text`, which must be next."""
        if self.token == text and self.kind != "string":
            self.advance()
        else:
            self.fail_expecting(f"'{text}'")

    def word(self, what: str = "a word") -> str:
        """The next token, a word."""
        if self.kind != "word":
            self.fail_expecting(what)
        token = self.token
        self.advance()
        return token

    def integer(self) -> int:
        """The next token, an integer of 64 bits, with an optional sign."""
        negative = self.take("-")
        if self.kind != "number" or "." in self.token:
            self.fail_expecting("an integer")
        value = self.size(self.token, self.start)
        self.advance()
        return -value if negative else value

    def size(self, token: str, start: int) -> int:
        """The value of an integer token that fits 64 bits with a sign."""
        value = self.to_int(token)
        if value >= 1 << 63:
            self.fail(f"{token[:MAX_SHOWN]} does not fit 64 bits", start)
        return value

    def to_int(self, token: str) -> int:
        """The value of an integer token; it is bounded in length."""
        if token.startswith("0x"):
            if len(token) > 100:
                self.fail("integer of more than 100 digits")
            return int(token, 16)
        if len(token) > 100:
            self.fail("integer of more than 100 digits")
        return int(token)

    def string(self) -> str:
        """The next token, a string, without quotes and escapes."""
        if self.kind != "string":
            self.fail_expecting("a string")
        body = self.token[1:-1]
        if "\\" in body:
            body = self._unescape(body)
        self.advance()
        return body

    def _unescape(self, body: str) -> str:
        parts: list[bytes] = []
        last = 0
        for match in _ESCAPE.finditer(body):
            parts.append(body[last : match.start()].encode("utf-8", "surrogatepass"))
            last = match.end()
            if match[1] is not None:
                parts.append(bytes.fromhex(match[1].replace("\\", "")))
            elif match[2] in _PLAIN_ESCAPES:
                parts.append(_PLAIN_ESCAPES[match[2]].encode())
            else:
                self.fail(f"unknown escape '\\{match[2]}' in a string",
                          self.start + 1 + match.start())  # fmt: skip
        parts.append(body[last:].encode("utf-8", "surrogatepass"))
        try:
            return b"".join(parts).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            self.fail("the escapes of this string are no UTF-8")

    def symbol_name(self) -> str:
        """The next token, `@name` or `@"any text"`, without the `@`."""
        if self.kind != "at":
            self.fail_expecting("a symbol '@name'")
        name = self.token[1:]
        self.advance()
        return name if name else self.string()

    @property
    def last_start(self) -> int:
        """Where the token before the next one ends, as a place inside of it."""
        return max(0, self.last_end - 1)

    # -- nesting

    def enter(self) -> None:
        """Go one level deeper. Leave by `leave`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH} levels")

    def leave(self) -> None:
        """Go one level up."""
        self.depth -= 1

    # -- positions and errors

    def location_at(self, offset: int) -> FileLocation:
        """The file position of a character."""
        starts = self._line_starts
        if starts is None:
            starts = self._line_starts = [0]
            find = self.text.find
            place = find("\n")
            while place >= 0:
                starts.append(place + 1)
                place = find("\n", place + 1)
        line = bisect_right(starts, offset)
        return FileLocation(self.filename, line, offset - starts[line - 1] + 1)

    def fail(self, message: str, start: int | None = None, *notes: str) -> NoReturn:
        """Raise UserError about the next token, or about the text at `start`."""
        end = start
        if start is None:
            start, end = self.start, self.position
        location = self.location_at(start)
        error = UserError(message, location, notes=notes)
        error.excerpt = excerpt(self.text, start, end or start)
        raise error

    def fail_expecting(self, what: str) -> NoReturn:
        """Raise UserError that `what` should stand where the next token is."""
        if self.kind == "bad" and self.token == '"':
            self.fail("this string has no end on its line")
        excerpt = self.token if len(self.token) <= 40 else self.token[:37] + "..."
        shown = _KIND_WORDS.get(self.kind, f"'{excerpt}'")
        if self.kind == "bad" and self.token.isprintable():
            shown = f"'{self.token}'"
        self.fail(f"expected {what}, found {shown}")

    def build(self, start: int, make: Callable[..., Built], *parameters: Any) -> Built:
        """`make(*parameters)`, with what is wrong with them as an error at `start`."""
        try:
            return make(*parameters)
        except (ValueError, TypeError, AttributeError) as error:
            self.fail(str(error), start)

    def close(self) -> None:
        """Let go of the text. What reads it by parts that hold each other waits for the garbage
        collector, which may come late."""
        self.text = ""


def of_lexer(name: str) -> Any:
    """What a part's `lexer` has under this name, read without a call into Python."""
    return property(attrgetter(f"lexer.{name}"))
