"""What may be chosen for an operation, as plain data, and the error where nothing can be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from irc.dialects.loop.ops import ScheduleAttr
from irc.ir.diagnostics import UserError
from irc.ir.text.parser import parse_attribute

BACKENDS = ("irc", "aten", "onednn")
#: The longest text of a schedule: one of every key has a tenth.
MOST_TEXT = 10_000
_FIELDS = frozenset({"backend", "schedule", "members"})


@attrs.frozen(cache_hash=True)
class Candidate:
    """A way to run an operation.

    backend: one of `BACKENDS`. schedule: a text `#loop.schedule<...>` with the entries that are not
    the default's, "" for none. members: the same for the computes of a group, in order. expected:
    its time by the cost model as a part of that of the first candidate of its backend, which is no
    part of what it is; 0 where the model says nothing. Raises ValueError for another backend.
    """

    backend: str = "irc"
    schedule: str = ""
    members: tuple[str, ...] = ()
    expected: float = attrs.field(default=0.0, eq=False)

    def __attrs_post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ValueError(f"the backend is {self.backend!r}, not one of {', '.join(BACKENDS)}")

    @staticmethod
    def of(backend: str, schedule: ScheduleAttr | None = None) -> Candidate:
        """From a schedule's attribute."""
        return Candidate(backend, "" if schedule is None else str(schedule))

    def attribute(self) -> ScheduleAttr | None:
        """The schedule; None for none. Raises UserError for a text that is none."""
        return read_schedule_text(self.schedule) if self.schedule else None

    @property
    def label(self) -> str:
        """Its name for people: `irc copies = 4, lanes = 16`."""
        texts = [_entries(text) for text in (self.schedule, *self.members) if text]
        return " ".join([self.backend, " | ".join(texts)]) if texts else self.backend

    def to_json(self) -> dict[str, Any]:
        """As JSON's types; what is empty is left out."""
        values = {"backend": self.backend, "schedule": self.schedule, "members": [*self.members]}
        return {name: value for name, value in values.items() if value}

    @staticmethod
    def from_json(value: object) -> Candidate:
        """From what `to_json` gives. Raises ValueError for anything else."""
        if not isinstance(value, dict) or not _FIELDS.issuperset(value):
            raise ValueError("a candidate is an object with backend, schedule and members")
        members = value.get("members", [])
        texts = [value.get("backend"), value.get("schedule", ""), *_list(members)]
        if not all(isinstance(text, str) and len(text) <= MOST_TEXT for text in texts):
            raise ValueError("a candidate's backend and schedules are texts")
        return Candidate(texts[0], texts[1], tuple(texts[2:]))


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("a candidate's members are a list")
    return value


def _entries(text: str) -> str:
    inner = text.partition(",")[2].strip().removesuffix(">")
    return inner.replace(" : i64", "")


def read_schedule_text(text: str) -> ScheduleAttr:
    """The schedule of a text, with the keys and values that there are. Raises UserError."""
    if len(text) > MOST_TEXT:
        raise UserError(f"the text of a schedule has {len(text)} characters")
    attribute = parse_attribute(text, filename="<candidate>")
    if not isinstance(attribute, ScheduleAttr):
        raise UserError(f"{text} is no #loop.schedule<...>")
    return attribute


def digest_text(candidates: Iterable[Candidate]) -> str:
    """A text that is equal for equal candidates in equal order."""
    return json.dumps([each.to_json() for each in candidates], sort_keys=True)


class NoValidChoicesError(UserError):
    """There is nothing that an operation can run as. The message names this class, what was tried
    and why it failed, and the options that allow more."""

    def __init__(
        self, what: str, reasons: Mapping[str, str], backends: str = "max_autotune_gemm_backends"
    ) -> None:
        if reasons:
            tried = f"{len(reasons)} were tried, and none has a time"
        else:
            tried = "no candidate is left by the options"
        notes = [f"{label}: {reason}" for label, reason in list(reasons.items())[:MOST_TOLD]]
        if len(reasons) > MOST_TOLD:
            notes.append(f"... and {len(reasons) - MOST_TOLD} more")
        notes.append(f"more is allowed by the option {backends} (\"ATEN,IRC\" takes all), by "
                     "max_autotune_budget (seconds), or without max_autotune")  # fmt: skip
        super().__init__(f"NoValidChoicesError: {what}: {tried}", notes=tuple(notes))
        self.reasons = dict(reasons)


MOST_TOLD = 12
"""Candidates whose reasons the error tells."""

__all__ = ["BACKENDS", "Candidate", "NoValidChoicesError", "digest_text", "read_schedule_text"]
