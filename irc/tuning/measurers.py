"""Who builds and times the candidates of a problem: threads of this process, or workers.

    measurer.begin()                            # the arguments
    failed, first = measurer.prepare(candidates, deadline, clock, step)
    measurer.seconds(candidate)                 # one sample
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irc.codegen.triton.turns import turn
from irc.options.options import Options
from irc.runtime import metrics
from irc.tuning.builds import KILLED, UNBUILT, Builds, reason_of
from irc.tuning.candidate import Candidate
from irc.tuning.devices import device_number, on_first
from irc.tuning.problem import Problem
from irc.tuning.waves import opening, unpromising

#: Options of a compile that decide the code of a candidate.
BUILT_WITH = ("precise_math", "emulate_rounding")
GRACE_SECONDS = 1.0
"""A sample may take so much longer than until the deadline."""
KILLED_AGAIN = 2
"""What something else ended is asked so many times more."""


class NoArguments(Exception):
    """The arguments of a problem, which are made for measuring, find no memory."""


def untried_of(reasons: Mapping[int, str]) -> int | None:
    """The first candidate that has no time for no fault of its own: nobody built it, or somebody
    killed the worker."""
    return next((n for n, why in sorted(reasons.items()) if why in (UNBUILT, KILLED)), None)


class ThreadMeasurer:
    """Builds candidates on threads of this process, and times them in the caller's."""

    def __init__(self, problem: Problem, options: Options) -> None:
        from irc.tuning.measuring import InProcess

        self._inner = InProcess(problem, options)
        self._options = options
        self.gpu = problem.target.is_gpu
        self.close = self._inner.close
        self.rest = self._inner.rest
        self.failed: dict[Candidate, str] = {}
        self.goes_on = True  # whether what the budget let nobody build is built

    def begin(self) -> None:
        """Make the arguments. Raises NoArguments."""
        try:
            with turn():
                self._inner.begin()
        except (MemoryError, RuntimeError) as error:  # torch's for a CPU is a RuntimeError
            raise NoArguments(reason_of(error)) from error

    def seconds(self, candidate: Candidate) -> float:
        """A sample. Raises what building or running raises."""
        with turn():
            return self._inner.seconds(candidate)

    def pause(self, room: float) -> float:
        """Keep the arguments and what is captured on them, if they find room, so many bytes; gives
        what is left of it."""
        held = self._inner.held_bytes if room else math.inf
        if held <= room:
            return room - held
        self.rest()
        return room

    def prepare_one(self, candidate: Candidate) -> None:
        """Build one. Raises what building raises."""
        metrics.add("autotune_candidates")
        self._inner.prepare(candidate)

    def prepare(
        self,
        candidates: Sequence[Candidate],
        deadline: float,
        clock: Callable[[], float],
        step: Callable[[], None],
    ) -> tuple[dict[int, str], dict[int, float]]:
        """Build all that are not built, as far as it `goes_on`; gives why some have no program, by
        number, and no samples."""
        left = [n for n, each in enumerate(candidates)
                if not self._inner.has(each) and self.failed.get(each, UNBUILT) == UNBUILT
                and (self.goes_on or not n or each not in self.failed)]
        builds = Builds(lambda number: self.prepare_one(candidates[number]), left, self._options,
                        deadline, clock, step, self.gpu)  # fmt: skip
        with builds:
            builds.wait(range(len(left)))
        failed = builds.failed
        reasons = {n: self.failed[each] for n, each in enumerate(candidates)
                   if each in self.failed and n not in left}  # fmt: skip
        return {**reasons, **{left[place]: why for place, why in failed.items()}}, {}


class PoolMeasurer:
    """Asks the workers of a pool. What crashes or hangs there has no time; what something else
    ended is asked again. No sample but the default's first is waited for much longer than until
    the deadline."""

    def __init__(
        self,
        problem: Problem,
        options: Options,
        pool: Any,
        deadline: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool, self._deadline, self._clock = pool, deadline, clock
        asked = {name: getattr(options, name) for name in BUILT_WITH}
        described = problem.to_json()
        self._own = pool.workers[0]
        if self._own.device is not None:  # each worker sees one, and calls that the first
            self._own = pool.workers[device_number(problem)]
            described["text"] = on_first(described["text"])
        self._request: Mapping[str, Any] = {"problem": described, "options": asked}

    def begin(self) -> None:
        """Make the arguments. Raises NoArguments."""
        from irc.tuning.pool import WorkerFailure

        try:
            self._asked(self._own, {"do": "begin", **self._for(Candidate())})
        except WorkerFailure as error:
            raise NoArguments(str(error)) from error

    def prepare(
        self,
        candidates: Sequence[Candidate],
        deadline: float,
        clock: Callable[[], float],
        step: Callable[[], None],
    ) -> tuple[dict[int, str], dict[int, float]]:
        """Build all that are worth it and take a sample of each, on all workers; gives why some
        have none, by number, and the samples. Raises NoArguments where something ends every worker
        of the default."""
        from irc.tuning.pool import WorkerFailure, WorkerKilled

        known: dict[int, float] = {}

        def ask(worker: Any, number: int) -> str | float:
            if number and clock() >= deadline:
                return UNBUILT
            slow = unpromising(candidates, dict(known)).get(number)
            if slow:
                return slow
            try:
                request = {"do": "seconds", **self._for(candidates[number])}
                metrics.add("autotune_candidates")
                known[number] = float(self._asked(worker, request, bool(number)))
                return known[number]
            except WorkerKilled as error:
                if not number:
                    raise NoArguments(str(error)) from error
                return KILLED
            except WorkerFailure as error:
                return str(error)
            finally:
                step()

        first = opening(candidates)
        order = [*first, *(n for n in range(len(candidates)) if n not in first)]
        answers = sorted(zip(order, self._pool.each(ask, order), strict=True))
        return (
            {number: answer for number, answer in answers if isinstance(answer, str)},
            {number: answer for number, answer in answers if not isinstance(answer, str)},
        )

    def seconds(self, candidate: Candidate) -> float:
        """A sample, always from the problem's own device, so that all are timed on one."""
        return float(self._asked(self._own, {"do": "seconds", **self._for(candidate)}, True))

    def _asked(self, worker: Any, request: Mapping[str, Any], hurried: bool = False) -> Any:
        """The value of a request, if it is `hurried` within what is left and `GRACE_SECONDS`.
        Raises WorkerFailure."""
        from irc.tuning.pool import LIMIT_SECONDS, WorkerKilled

        again = KILLED_AGAIN
        while True:
            left = max(0.0, self._deadline - self._clock()) + GRACE_SECONDS
            try:
                return worker.ask(request, min(LIMIT_SECONDS, left) if hurried else LIMIT_SECONDS)
            except WorkerKilled:
                if not again or hurried and self._clock() >= self._deadline:
                    raise
                again -= 1

    def _for(self, candidate: Candidate) -> dict[str, Any]:
        return {**self._request, "candidate": candidate.to_json()}


__all__ = ["BUILT_WITH", "NoArguments", "PoolMeasurer", "ThreadMeasurer", "untried_of"]
