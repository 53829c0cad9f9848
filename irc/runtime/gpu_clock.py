"""How long a GPU takes for what is launched, whatever the host takes to launch it.

    first, second = clocked([plain, padded])   # seconds of each, one right after the other
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

SPIN_CYCLES = 200_000
"""What the GPU does before the clock begins: 0.1 ms."""
MOST_SPINS = 1 << 8
"""It does so at most so many times as long, 30 ms, where the host is slow to launch."""


def clocked(works: Sequence[Callable[[], Any]]) -> list[float]:
    """Seconds that a GPU takes for what each of `works` launches, in this order.

    The GPU spins until all is launched. Where it was not busy so long, as others keep the host
    from launching, they are clocked again behind a longer spin.
    """
    spins = 1
    while True:
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(len(works) + 1)]
        torch.cuda._sleep(spins * SPIN_CYCLES)
        marks[0].record()
        for work, mark in zip(works, marks[1:], strict=True):
            work()
            mark.record()
        waited_for = marks[0].query()
        marks[-1].synchronize()
        if not waited_for or spins >= MOST_SPINS:
            pairs = zip(marks, marks[1:], strict=False)
            return [before.elapsed_time(after) * 1e-3 for before, after in pairs]
        spins *= 2


__all__ = ["MOST_SPINS", "SPIN_CYCLES", "clocked"]
