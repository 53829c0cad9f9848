"""Which candidates are built first, and which others are then worth it, by the cost model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from irc.tuning.candidate import Candidate

SLACK = 1.15
"""A candidate is built if the model lets it take at most so many times the fastest one's time: of
schedules of one product the model's order is as good as that (`python -m bench.gpu_products`)."""
UNPROMISING = "the cost model expects"
"""How the reason of a candidate begins that was not built because others are faster."""


def opening(candidates: Sequence[Candidate]) -> list[int]:
    """The numbers of the candidates that are built first: the first one of each backend, and those
    of which the model knows nothing."""
    firsts = set(_references(candidates).values())
    return [n for n, each in enumerate(candidates) if n in firsts or not each.expected]


def unpromising(candidates: Sequence[Candidate], seconds: Mapping[int, float]) -> dict[int, str]:
    """Those that were not built first and aren't worth it, by number, and why; `seconds`: times of
    the ones that were."""
    references, dropped = _references(candidates), {}
    timed = {number: each for number, each in seconds.items() if math.isfinite(each)}
    first = set(opening(candidates))
    for number, each in enumerate(candidates):
        base = timed.get(references[each.backend])
        if number in first or base is None:
            continue
        factor = base * each.expected / min(timed.values())
        if factor > SLACK:
            dropped[number] = f"{UNPROMISING} {factor:.2f} times the fastest one's time"
    return dropped


def _references(candidates: Sequence[Candidate]) -> dict[str, int]:
    """The number of the first candidate of each backend."""
    return {each.backend: n for n, each in reversed(list(enumerate(candidates)))}


__all__ = ["SLACK", "UNPROMISING", "opening", "unpromising"]
