"""Candidates that are built on threads, for a GPU while others are timed.

    with Builds(prepare, items, options, deadline, clock, step, gpu, needed) as builds:
        builds.wait([0, 3])     # until these are built
    builds.failed               # why some are not, by number
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, Generic, TypeVar

from irc.ir.diagnostics import IRCError
from irc.options.options import Options

MOST_THREADS = 16
"""Threads that build at most: passes hold the interpreter's lock for a tenth of what compiling a
kernel for a GPU takes."""
THREADS_EACH = 2
"""For a GPU so many threads for each process that compiles: while the one waits, passes of the
other run."""
UNBUILT = "the budget ended before it was built"
KILLED = "something else ended its worker each time"

Item = TypeVar("Item")
Inside = Callable[[int], AbstractContextManager[Any]]


def reason_of(error: BaseException) -> str:
    """Why a candidate has no time, in a line."""
    text = error.message if isinstance(error, IRCError) else str(error)
    line = text.strip().splitlines()[0] if text.strip() else ""
    name = type(error).__name__
    if name == "WorkerKilled":
        return KILLED
    return line if name == "WorkerFailure" else f"{name}: {line}"


class Threads(Generic[Item]):
    """`prepare` for each item, on `count` threads other than the caller's, which begin at once.

    The first ones, so many as are needed, are prepared whatever the deadline. Each thread works in
    the context that `inside` gives for its number. step: called after each.
    """

    def __init__(
        self,
        prepare: Callable[[Item], None],
        items: Sequence[Item],
        count: int,
        deadline: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
        step: Callable[[], None] = lambda: None,
        inside: Inside = lambda number: nullcontext(),
        needed: int = 1,
    ) -> None:
        #: Why some are not prepared, by number.
        self.failed: dict[int, str] = {}
        self._prepare, self._items, self._inside = prepare, items, inside
        self._deadline, self._clock, self._step, self._needed = deadline, clock, step, needed
        self._numbers = iter(range(len(items)))
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._ended = [threading.Event() for _ in items]
        self._threads = [
            threading.Thread(target=self._work, args=(n,), name=f"irc-precompile-{n}")
            for n in range(min(count, len(items)))
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, place: int) -> None:
        with self._inside(place):
            while not self._stopped.is_set():
                with self._lock:
                    number = next(self._numbers, None)
                if number is None:
                    return
                self._one(number)

    def _one(self, number: int) -> None:
        try:
            if number >= self._needed and self._clock() >= self._deadline:
                self.failed[number] = UNBUILT
                return
            self._prepare(self._items[number])
        except Exception as error:
            self.failed[number] = reason_of(error)
        finally:
            self._ended[number].set()
        self._step()

    def wait(self, numbers: Iterable[int]) -> None:
        """Until these are prepared, or it is known why not. Whatever is raised meanwhile, also by
        Ctrl-C, lets nothing else begin; what is being built is finished."""
        try:
            for number in numbers:
                self._ended[number].wait()
        except BaseException:
            self._stopped.set()
            raise

    def join(self) -> None:
        """Until the threads are done."""
        try:
            for thread in self._threads:
                thread.join()
        finally:
            self._stopped.set()

    def stop(self) -> None:
        """Begin nothing else."""
        self._stopped.set()


class Builds(Generic[Item]):
    """`prepare` for each item on threads, as options say; for a GPU by processes that compile its
    kernels, if there are any, as the compiler holds the interpreter's lock. Then threads take turns
    in Python (`irc.codegen.triton.turns`), and who uses this need not wait until all is built.

    As a context, inside of which there are those processes. kernels: machine code by what is
    compiled, which other builds find again.
    """

    def __init__(
        self,
        prepare: Callable[[Item], None],
        items: Sequence[Item],
        options: Options,
        deadline: float,
        clock: Callable[[], float],
        step: Callable[[], None],
        gpu: bool,
        needed: int = 1,
        kernels: dict[str, Any] | None = None,
    ) -> None:
        self._arguments = prepare, items, options, deadline, clock, step, gpu, needed
        self._kernels = {} if kernels is None else kernels
        self._stack = ExitStack()
        self._threads: Threads[Item] | None = None
        #: Whether others may be timed while these are built.
        self.apart = False

    def __enter__(self) -> Builds[Item]:
        prepare, items, options, deadline, clock, step, gpu, needed = self._arguments
        count = min(thread_count(options), len(items))
        inside: Inside = _nothing
        with self._stack:
            if gpu and items:
                count, inside, prepare = self._processes(count, prepare)
            self._threads = Threads(prepare, items, count, deadline, clock, step, inside, needed)
            self._stack = self._stack.pop_all()
        return self

    def _processes(
        self, count: int, prepare: Callable[[Item], None]
    ) -> tuple[int, Inside, Callable[[Item], None]]:
        """How many threads build, in which contexts, and how, where processes compile kernels."""
        from irc.codegen.triton import turns, workers

        helping = min(count, workers.count_to_measure())
        self._stack.enter_context(workers.at_least(helping))
        helpers = workers.current()
        if helpers is None:
            return count, _nothing, prepare
        crew = helpers.remembering(self._kernels)
        self.apart = True

        def in_turn(item: Item) -> None:
            with turns.turn():
                prepare(item)

        return THREADS_EACH * helping, lambda number: workers.using(crew), in_turn

    @property
    def failed(self) -> dict[int, str]:
        """Why some are not built, by number, as far as it is known."""
        return self._threads.failed if self._threads is not None else {}

    def wait(self, numbers: Iterable[int]) -> None:
        """Until items are built, or it is known why not; all where others can't be timed
        meanwhile."""
        assert self._threads is not None
        if self.apart:
            self._threads.wait(numbers)
        else:
            self._threads.join()

    def __exit__(self, *error: object) -> None:
        assert self._threads is not None
        with self._stack:
            self._threads.stop()
            if error[0] is None:
                self._threads.join()


def _nothing(number: int) -> AbstractContextManager[Any]:
    return nullcontext()


def on_threads(
    prepare: Callable[[Item], None],
    items: Sequence[Item],
    count: int,
    deadline: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> dict[int, str]:
    """`prepare` for each item, as of `Threads`; why some failed, by number."""
    threads = Threads(prepare, items, count, deadline, clock)
    threads.join()
    return threads.failed


def thread_count(options: Options) -> int:
    """How many threads build: the option, else one for each processor, up to `MOST_THREADS`."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return options.compile_threads or min(MOST_THREADS, processors)


__all__ = ["KILLED", "UNBUILT", "Builds", "Threads", "on_threads", "reason_of", "thread_count"]
