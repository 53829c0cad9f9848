"""Who builds and times the candidates of a problem: threads of this process, or workers.

    measurer.begin()                            # the arguments
    failed, first = measurer.prepare(candidates, deadline, clock, step)
    measurer.seconds(candidate)                 # one sample
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from irc.ir.diagnostics import IRCError
from irc.options.options import Options
from irc.runtime import metrics
from irc.tuning.candidate import Candidate
from irc.tuning.devices import device_number, on_first
from irc.tuning.problem import Problem, target_of_problem
from irc.tuning.waves import opening, unpromising

#: Options of a compile that decide the code of a candidate.
BUILT_WITH = ("precise_math", "emulate_rounding")
MOST_THREADS = 16
"""Threads that build at most: passes hold the interpreter's lock for a thirtieth of what compiling
a kernel for a GPU takes."""

GRACE_SECONDS = 1.0
"""A sample may take so much longer than until the deadline."""
KILLED_AGAIN = 2
"""What something else ended is asked so many times more."""

Item = TypeVar("Item")


class NoArguments(Exception):
    """The arguments of a problem, which are made for measuring, find no memory."""


UNBUILT = "the budget ended before it was built"
KILLED = "something else ended its worker each time"


def untried_of(reasons: Mapping[int, str]) -> int | None:
    """The first candidate that has no time for no fault of its own: nobody built it, or somebody
    killed the worker."""
    return next((n for n, why in sorted(reasons.items()) if why in (UNBUILT, KILLED)), None)


def reason_of(error: BaseException) -> str:
    """Why a candidate has no time, in a line."""
    text = error.message if isinstance(error, IRCError) else str(error)
    line = text.strip().splitlines()[0] if text.strip() else ""
    name = type(error).__name__
    if name == "WorkerKilled":
        return KILLED
    return line if name == "WorkerFailure" else f"{name}: {line}"


class ThreadMeasurer:
    """Builds candidates on threads of this process, and times them in the caller's."""

    def __init__(self, problem: Problem, options: Options) -> None:
        from irc.tuning.measuring import InProcess

        self._inner = InProcess(problem, options)
        self._options = options
        self.gpu = target_of_problem(problem.module()).is_gpu
        self.seconds = self._inner.seconds
        self.close = self._inner.close
        self.rest = self._inner.rest
        self.failed: dict[Candidate, str] = {}
        self.goes_on = True  # whether what the budget let nobody build is built

    def begin(self) -> None:
        """Make the arguments. Raises NoArguments."""
        try:
            self._inner.begin()
        except (MemoryError, RuntimeError) as error:  # torch's for a CPU is a RuntimeError
            raise NoArguments(reason_of(error)) from error

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
        failed = build_on_threads(
            lambda number: self.prepare_one(candidates[number]), left, self._options, deadline,
            clock, step, self.gpu,
        )  # fmt: skip
        reasons = {n: self.failed[each] for n, each in enumerate(candidates)
                   if each in self.failed and n not in left}  # fmt: skip
        return {**reasons, **{left[place]: why for place, why in failed.items()}}, {}


def build_on_threads(
    prepare: Callable[[Item], None],
    items: Sequence[Item],
    options: Options,
    deadline: float,
    clock: Callable[[], float],
    step: Callable[[], None],
    gpu: bool,
    needed: int = 1,
) -> dict[int, str]:
    """As `on_threads`; for a GPU each thread has a process of its own that compiles kernels, if
    there are any: the compiler holds the interpreter's lock."""
    count = min(thread_count(options), len(items))
    if not gpu:
        return on_threads(prepare, items, count, deadline, clock, step, needed=needed)
    from irc.codegen.triton import workers

    with workers.at_least(min(count, workers.count_to_measure())):
        helpers = workers.current()
        groups = [] if helpers is None else helpers.split(count)

        def inside(number: int) -> AbstractContextManager[None]:
            return workers.using(groups[number] if groups else None)

        count = len(groups) or count
        return on_threads(prepare, items, count, deadline, clock, step, inside, needed)


def thread_count(options: Options) -> int:
    """How many threads build: the option, else one for each processor, up to `MOST_THREADS`."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return options.compile_threads or min(MOST_THREADS, processors)


def on_threads(
    prepare: Callable[[Item], None],
    candidates: Sequence[Item],
    count: int,
    deadline: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
    step: Callable[[], None] = lambda: None,
    inside: Callable[[int], AbstractContextManager[None]] = lambda number: nullcontext(),
    needed: int = 1,
) -> dict[int, str]:
    """`prepare` for each candidate, on `count` threads other than the caller's; why some failed, by
    number. The first ones, so many as are needed, are prepared whatever the deadline. Each thread
    works in the context that `inside` gives for its number."""
    failed: dict[int, str] = {}
    numbers = iter(range(len(candidates)))
    lock, stopped = threading.Lock(), threading.Event()

    def work(place: int) -> None:
        with inside(place):
            build()

    def build() -> None:
        while not stopped.is_set():
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            if number >= needed and clock() >= deadline:
                failed[number] = UNBUILT
                continue
            try:
                prepare(candidates[number])
            except Exception as error:
                failed[number] = reason_of(error)
            step()

    threads = [
        threading.Thread(target=work, args=(n,), name=f"irc-precompile-{n}")
        for n in range(min(count, len(candidates)))
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:  # Ctrl-C: what is being built is finished, nothing else begun
        stopped.set()
    return failed


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


__all__ = ["BUILT_WITH", "KILLED", "UNBUILT", "NoArguments", "PoolMeasurer", "ThreadMeasurer",
           "build_on_threads", "on_threads", "reason_of", "untried_of"]  # fmt: skip
