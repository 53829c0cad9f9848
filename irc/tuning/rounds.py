"""Which candidate is the fastest: all are timed in turn, again and again, and slow ones drop out.

Interleaved rounds, so that a machine that becomes slower does so for all; medians, so that one
interrupted call counts for nothing.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs

Choice = TypeVar("Choice")

ROUNDS = 15
"""Most rounds."""
LEAST_ROUNDS = 3
"""Rounds from which on one that is left needs no more."""
LIMITS = (8.0, 2.0, 1.1)
"""What is so many times as slow as the fastest after the first, second, third round and later
takes no part in further ones: one sample alone may be that of an interrupted call."""
STEADY_ROUNDS = 5
"""Rounds from which on the fastest one's samples tell how much they vary ..."""
STEADY_LIMIT, DEVIATIONS = 1.02, 4.0
"""... and what is slower by this and so many deviations of its median takes no further part."""
BETTER = 0.98
"""The first candidate is kept unless another one takes so much of its time."""


@attrs.frozen
class Timings:
    """seconds: the median time by candidate's number, infinity for one that has none. reasons: why
    not, by number. rounds: how many there were. cut: the budget ended them."""

    seconds: tuple[float, ...]
    reasons: dict[int, str]
    rounds: int
    cut: bool = False

    @property
    def winner(self) -> int | None:
        """The number of the fastest one; the first is preferred. None where none has a time."""
        best = min(range(len(self.seconds)), key=self.seconds.__getitem__, default=None)
        if best is None or math.isinf(self.seconds[best]):
            return None
        return 0 if self.seconds[0] * BETTER <= self.seconds[best] else best


def hold(
    choices: Sequence[Choice],
    sample: Callable[[Choice], float],
    deadline: float = math.inf,
    failed: Callable[[Exception], str] = str,
    clock: Callable[[], float] = time.monotonic,
    most: int = ROUNDS,
) -> Timings:
    """Time choices with `sample` until `deadline` (of `clock`), for `most` rounds, or until one is
    left.

    A sample that raises an Exception, or gives infinity or NaN, ends its choice with that reason.
    At least one sample of the first choice that has one is taken, whatever the deadline.
    """
    samples: list[list[float]] = [[] for _ in choices]
    reasons: dict[int, str] = {}
    alive, rounds, cut = list(range(len(choices))), 0, False
    while alive and rounds < most and not cut:
        for number in list(alive):
            if clock() >= deadline and any(samples):
                cut = True
                break
            try:
                seconds = sample(choices[number])
            except Exception as error:
                if samples[number] and clock() >= deadline:
                    cut = True  # it was ended, and has a time
                    break
                reasons[number] = failed(error)
            else:
                if math.isfinite(seconds):
                    samples[number].append(seconds)
                    continue
                reasons[number] = "its time is infinite"
            samples[number].clear()
            alive.remove(number)
        rounds += not cut
        close = _close(samples, alive, rounds)
        # All are told against the first, whose time should then be no single sample.
        alive = close if 0 in close or 0 not in alive else [0, *close]
        if len(close) == 1 and rounds >= LEAST_ROUNDS:
            break
    medians = tuple(statistics.median(s) if s else math.inf for s in samples)
    return Timings(medians, reasons, rounds, cut)


def _close(samples: Sequence[Sequence[float]], alive: Sequence[int], rounds: int) -> list[int]:
    """Those whose best sample is near the best median."""
    timed = [number for number in alive if samples[number]]
    if not timed:
        return list(alive)
    medians = {number: statistics.median(samples[number]) for number in timed}
    best = min(medians, key=medians.__getitem__)
    factor = LIMITS[min(max(rounds, 1), len(LIMITS)) - 1]
    if rounds >= STEADY_ROUNDS:
        away = statistics.median(abs(s - medians[best]) for s in samples[best])
        noise = away / medians[best] / math.sqrt(len(samples[best])) if medians[best] else 0.0
        factor = min(factor, STEADY_LIMIT + DEVIATIONS * noise)
    limit = medians[best] * factor
    return [n for n in alive if not samples[n] or min(samples[n]) <= limit]


__all__ = ["Timings", "hold"]
