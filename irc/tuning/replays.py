"""How long calls take a GPU, as replays of a CUDA graph of some calls one after the other.

What the host takes to launch them, and what it takes to begin and end a clock's interval, counts
for nobody: a kernel of 4 us and one of 3 are told apart. The GPU spins before the first event, so
that the replay is there when the clock begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from irc.runtime.gpu_clock import clocked
from irc.runtime.graphs_driver import CudaDriver

SAMPLE_SECONDS = 200e-6
"""A sample takes about so long."""
MOST_CALLS = 64

Call = Callable[..., Any]


class Replays:
    """Calls of a program with each of some lists of arguments in turn, captured. Results are freed
    inside, so that each call writes to the memory of the one before. Raises what calling raises,
    and RuntimeError for what can't be captured."""

    def __init__(self, call: Call, copies: Sequence[Sequence[Any]], pool: GraphPool) -> None:
        self._copies, self._call = copies, call
        call(*copies[0])  # what is done once
        once = clocked([lambda: call(*copies[0])])[0]
        count = math.ceil(SAMPLE_SECONDS / max(once, 1e-7))
        self.calls = max(1, min(count, MOST_CALLS), min(len(copies), MOST_CALLS))
        self._graph = pool.captured(self._calls)

    def _calls(self, tensors: Any) -> tuple[()]:
        for number in range(self.calls):
            self._call(*self._copies[number % len(self._copies)])
        return ()

    def seconds(self) -> float:
        """The time of a call, from one replay."""
        return clocked([self._graph.replay])[0] / self.calls


class GraphPool:
    """The memory that the graphs of one problem's candidates share: one is replayed at a time."""

    def __init__(self, gpu: int) -> None:
        self._driver = CudaDriver(gpu)
        self._pool: Any = None

    def captured(self, run: Callable[[Any], Any]) -> Any:
        """What `run` launches, as a graph."""
        pool, self._pool = self._pool or self._driver.new_pool(), None
        graph, _ = self._driver.capture(run, (), pool)
        self._pool = pool  # torch takes none in which a capture failed
        return graph


__all__ = ["GraphPool", "Replays"]
