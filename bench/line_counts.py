"""Executed lines of Python, by step and function: what processor time says, without its noise."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import irc

FOLDER = str(Path(irc.__file__).parent)

#: The lines that each function of irc executed, by step.
Counts = dict[str, Counter[CodeType]]


@contextmanager
def counting(counts: Counter[CodeType]) -> Iterator[None]:
    """Count the lines that irc executes inside, by function."""

    def line(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line":
            counts[frame.f_code] += 1
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        return line if frame.f_code.co_filename.startswith(FOLDER) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def counter(counts: Counts, step: str) -> Iterator[None]:
    """As `bench.scaling.clock`: add the lines executed inside to a step."""
    with counting(counts.setdefault(step, Counter())):
        yield


def superlinear(
    shorter: Counts, longer: Counts, factor: float, limit: float, share: float = 0.01
) -> dict[str, float]:
    """The steps, and the functions with at least a `share` of a step's lines, whose lines grow
    with an exponent over `limit` where the program becomes `factor` times as long; each with its
    exponent."""
    found: dict[str, float] = {}
    for step, lines in longer.items():
        few = shorter.get(step, Counter())
        every = lines.total()
        found[step] = _exponent(few.total(), every, factor)
        for code, count in lines.items():
            if count >= share * every:
                found[f"{step}: {code.co_qualname}"] = _exponent(few[code], count, factor)
    return {name: power for name, power in found.items() if power > limit}


def _exponent(before: int, after: int, factor: float) -> float:
    return math.log(max(after, 1) / max(before, 1)) / math.log(factor)


def totals(counts: Mapping[str, Counter[CodeType]]) -> dict[str, float]:
    """The lines of each step."""
    return {step: float(lines.total()) for step, lines in counts.items()}
