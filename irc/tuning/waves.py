"""Which candidates are built first, and which others are then worth it, by the cost model.

Of several problems that share a budget, those that take most of the program's time come first: what
a candidate is worth is what it may save of the time of all (`gains`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from irc.tuning.candidate import Candidate

SLACK = 1.15
"""A candidate is built if the model lets it take at most so many times the fastest one's time: of
schedules of one product the model's order is as good as that (`python -m bench.gpu_products`)."""
LEAST_SAVED = 0.001
"""A candidate is built if the model lets it save at least so much of the time of all problems."""
UNPROMISING = "the cost model expects"
"""How the reason of a candidate begins that was not built because others are faster."""


def opening(candidates: Sequence[Candidate]) -> list[int]:
    """The numbers of the candidates that are built first: the first one of each backend, and those
    of which the model knows nothing."""
    firsts = set(_references(candidates).values())
    return [n for n, each in enumerate(candidates) if n in firsts or not each.expected]


def gains(candidates: Sequence[Candidate], seconds: Mapping[int, float]) -> dict[int, float]:
    """What those that were not built first may save at most, by number, as a part of the fastest
    one's time; `seconds`: times of the ones that were. Less than 0: they aren't worth it."""
    references = _references(candidates)
    timed = {number: each for number, each in seconds.items() if math.isfinite(each)}
    first, saved = set(opening(candidates)), {}
    for number, each in enumerate(candidates):
        if number not in first:
            base = timed.get(references[each.backend])
            factor = 1.0 if base is None else base * each.expected / min(timed.values())
            saved[number] = SLACK - factor
    return saved


def unpromising(
    candidates: Sequence[Candidate], seconds: Mapping[int, float], share: float = 1.0
) -> dict[int, str]:
    """Those that were not built first and aren't worth it, by number, and why; `seconds`: times of
    the ones that were; `share`: the problem's of the time of all that are tuned at once."""
    dropped = {}
    for number, gain in gains(candidates, seconds).items():
        if gain < 0:
            dropped[number] = f"{UNPROMISING} {SLACK - gain:.2f} times the fastest one's time"
        elif share < 1 and share * gain < LEAST_SAVED:
            dropped[number] = f"{UNPROMISING} it to save {share * gain:.1e} of the time of all"
    return dropped


def shares_of(seconds: Mapping[str, float]) -> dict[str, float]:
    """Each one's part of the sum; equal parts of nothing."""
    total = sum(seconds.values())
    return {key: each / total if total else 1 / len(seconds) for key, each in seconds.items()}


def _references(candidates: Sequence[Candidate]) -> dict[str, int]:
    """The number of the first candidate of each backend."""
    return {each.backend: n for n, each in reversed(list(enumerate(candidates)))}


__all__ = ["LEAST_SAVED", "SLACK", "UNPROMISING", "gains", "opening", "shares_of", "unpromising"]
