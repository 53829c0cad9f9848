"""Samples that are taken while the machine does what it can.

Where others work on the same chip, a core's rate changes within milliseconds, that of registers of
whole tiles by more than four (bench/results/xeon_products.txt). A short loop before and behind a
sample tells; one that was disturbed is taken again.
"""

from __future__ import annotations

from collections.abc import Callable

SHARE = 0.8
"""Of the best rate that was seen: below, a sample is disturbed."""
WARM_UP = 20


class Steady:
    """Takes samples, `attempts` times at most; the last one counts whatever it was. `loop` gives
    the machine's rate, from a loop that is short beside a sample."""

    def __init__(self, loop: Callable[[], float], attempts: int) -> None:
        self.loop, self.attempts = loop, attempts
        self.best = max(loop() for _ in range(WARM_UP))
        self.taken = self.disturbed = 0

    def is_quiet(self) -> bool:
        """Whether the machine does now what it did at best."""
        rate = self.loop()
        self.best = max(self.best, rate)
        return rate >= SHARE * self.best

    def sample(self, call: Callable[[], float]) -> float:
        """What `call` gives, undisturbed if that can be had."""
        self.taken += 1
        for _ in range(self.attempts - 1):
            if not self.is_quiet():
                continue
            value = call()
            if self.is_quiet():
                return value
        self.disturbed += 1
        return call()


__all__ = ["Steady"]
