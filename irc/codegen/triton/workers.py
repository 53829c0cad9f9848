"""Processes that compile kernels, started before it is known which, and kept for what comes next.

    with ready(4):
        ...                                  # passes, that take as long as Triton's import
        answers = current().begin(requests)
        ...                                  # what doesn't need them
        codes = answers()

Triton holds the interpreter lock for half of the time that it takes, and to be imported takes as
long as to compile a kernel. After a program they wait for the next one, in whose environment
they compile then, and end when none comes for a while.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from irc.codegen.triton.turns import let_others

MOST = 8
"""Processes that are started for one program."""
KEPT = 16
"""Processes that are started for programs which are measured, and that are kept for a while."""
_LEAST_PROCESSORS = 4  # with fewer, the processes would only take turns with this one
_IDLE_SECONDS = 60.0  # then they end: each holds 150 MB
_OPERATIONS_EACH = 4
"""A kernel has some operations of a program; below this many a process would have none."""

Answer = tuple[dict[str, Any], bytes]
Answers = Callable[[], list[Answer | None]]


class _Compiler:
    """One that compiles. `busy` from when it is asked until all answers came: if they never do, it
    is of no further use."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        program = str(Path(__file__).with_name("compiling.py"))
        self.busy, self._environment = False, environment
        self._changes: dict[str, str | None] = {}
        self.popen = subprocess.Popen(
            [sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=environment,
        )  # fmt: skip

    def ask(self, request: Mapping[str, Any]) -> Answer | None:
        """One answer. Raises OSError or ValueError where the process is gone."""
        assert self.popen.stdin is not None and self.popen.stdout is not None
        changed = {**request, "environment": self._changes}
        self.popen.stdin.write(json.dumps(changed).encode() + b"\n")
        self.popen.stdin.flush()
        head = json.loads(self.popen.stdout.readline())
        code = self.popen.stdout.read(head["bytes"])
        return None if "error" in head else (head["facts"], code)

    def lives(self) -> bool:
        """Whether it can be asked."""
        return not self.busy and self.popen.poll() is None

    def update(self, environment: Mapping[str, str]) -> None:
        """Have what is asked from now on be compiled in this environment."""
        before = self._environment
        self._changes |= {name: None for name in before if name not in environment}
        self._changes |= {n: value for n, value in environment.items() if before.get(n) != value}
        self._environment = environment


def _end(processes: Sequence[_Compiler]) -> None:
    for process in processes:
        process.popen.kill()
    for process in processes:
        process.popen.communicate()


class _Compilation:
    """A request, and its answer once there is one: None where no process could give it."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request = request
        self.answer: Answer | None = None
        self.ended = threading.Event()

    def end(self, answer: Answer | None) -> None:
        """This is the answer."""
        self.answer = answer
        self.ended.set()


class Workers:
    """Running processes, which work on the requests of all that `begin` them, in order.

    remembered: answers by name, where requests that have names are for programs that are thrown
    away: equal names are asked once.
    """

    def __init__(
        self, processes: Sequence[_Compiler], remembered: dict[str, _Compilation] | None = None
    ) -> None:
        self._processes = list(processes)
        self._remembered = remembered
        self._waiting: deque[_Compilation] = deque()
        self._serving = 0
        self._lock = threading.Lock()

    @property
    def processes(self) -> list[_Compiler]:
        """Those that can be asked."""
        return [each for each in self._processes if each.lives()]

    def remembering(self, remembered: dict[str, _Compilation]) -> Workers:
        """The same processes, for programs that are thrown away."""
        return Workers(self._processes, remembered)

    def begin(self, requests: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> Answers:
        """Ask; gives what waits for the answers to requests as `compiling.compile_kernel` takes
        them, None for one that no process could answer. names: of what is compiled, whatever the
        request calls it; "" for what has none."""
        with self._lock:
            jobs = [self._job(request, name)
                    for request, name in zip_longest(requests, names, fillvalue="")]  # fmt: skip
            for process in self.processes[: len(self._waiting)]:
                process.busy = True
                self._serving += 1
                threading.Thread(target=self._serve, args=(process,), daemon=True).start()
            if not self._serving:
                self._give_up()

        def finished() -> list[Answer | None]:
            with let_others():
                for job in jobs:
                    job.ended.wait()
            return [job.answer for job in jobs]

        return finished

    def _job(self, request: Any, name: str) -> _Compilation:
        """The job of a request, which waits from now on; the one that is remembered by its name."""
        known = None if self._remembered is None else self._remembered.get(name)
        if known is not None and name and (known.answer is not None or not known.ended.is_set()):
            return known
        job = _Compilation(request)
        self._waiting.append(job)
        if self._remembered is not None and name:
            self._remembered[name] = job
        return job

    def _serve(self, process: _Compiler) -> None:
        """Have a process work on what waits, until nothing does or the process is gone, which is
        busy for good then."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._serving -= 1
                    process.busy = False
                    return
                job = self._waiting.popleft()
            try:
                job.end(process.ask(job.request))
            except (OSError, ValueError):
                with self._lock:
                    job.end(None)
                    self._serving -= 1
                    if not self._serving:
                        self._give_up()
                return

    def _give_up(self) -> None:
        """Nobody is left who answers."""
        while self._waiting:
            self._waiting.popleft().end(None)


class _Waiting:
    """Processes that no program has now. They end when none wanted them for a while, and with this
    one, whose pipes they read."""

    def __init__(self) -> None:
        self._free: list[_Compiler] = []
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def take(self, count: int) -> list[_Compiler]:
        """So many processes, those that are free first. Raises OSError where none can start."""
        path = os.pathsep.join(each for each in sys.path if each)
        environment = {**os.environ, "PYTHONPATH": path}
        with self._lock:
            free, self._free = self._free, []
            self._stop_clock()
        taken = [each for each in free if each.lives()]
        for each in taken:
            each.update(environment)
        _end([each for each in free if each not in taken])
        try:
            while len(taken) < count:
                taken.append(_Compiler(environment))
        except OSError:
            _end(taken)
            raise
        return taken

    def give(self, processes: Sequence[_Compiler]) -> None:
        """Take back what `take` gave; what is busy ends."""
        with self._lock:
            room = KEPT - len(self._free)
            kept = [each for each in processes if not each.busy][: max(room, 0)]
            self._free += kept
            self._stop_clock()
            if self._free:
                self._timer = threading.Timer(_IDLE_SECONDS, self.close)
                self._timer.daemon = True
                self._timer.start()
        _end([each for each in processes if each not in kept])

    def close(self) -> None:
        """End the free processes."""
        with self._lock:
            free, self._free = self._free, []
            self._stop_clock()
        _end(free)

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_pool = _Waiting()
_state = threading.local()
atexit.register(lambda: _pool.close())


def _forget() -> None:
    """In a fork: the processes are the parent's."""
    global _pool
    _pool, _state.workers = _Waiting(), None


os.register_at_fork(after_in_child=_forget)


def current() -> Workers | None:
    """The processes of this thread's compile, None for none."""
    workers: Workers | None = getattr(_state, "workers", None)
    return workers


def count(operations: int) -> int:
    """How many processes help here for a program of so many operations: none with few processors,
    where Triton only interprets, or where Python is part of another program, which would be started
    instead."""
    return min(MOST, _processors() // 2, 1 + operations // _OPERATIONS_EACH)


def count_to_measure() -> int:
    """How many processes help here to build programs that are measured: one for each processor, or
    none as for `count`."""
    return min(KEPT, _processors())


def _processors() -> int:
    """The processors for processes that help; 0 where none can."""
    if not Path(sys.executable or "").name.startswith("python"):
        return 0
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if processors < _LEAST_PROCESSORS or os.environ.get("TRITON_INTERPRET") == "1":
        return 0
    return processors


@contextlib.contextmanager
def ready(number: int) -> Iterator[None]:
    """Inside, `number` processes or more wait for kernels of this thread's; none where they can't
    start."""
    taken: list[_Compiler] = []
    if number:
        with contextlib.suppress(OSError):
            taken = _pool.take(number)
    pool = _pool
    try:
        with using(Workers(taken) if taken else None):
            yield
    finally:
        pool.give(taken)


@contextlib.contextmanager
def at_least(number: int) -> Iterator[None]:
    """Inside, so many processes or more compile this thread's kernels, those among them that it has
    already; as many as there are where no more can start."""
    own = current()
    had = [] if own is None else own.processes
    taken: list[_Compiler] = []
    with contextlib.suppress(OSError):
        taken = _pool.take(number - len(had)) if number > len(had) else []
    pool = _pool
    try:
        with using(Workers([*had, *taken]) if taken else own):
            yield
    finally:
        pool.give(taken)


def release() -> None:
    """End the processes that wait for a next program."""
    _pool.close()


@contextlib.contextmanager
def using(workers: Workers | None) -> Iterator[None]:
    """Inside, these compile this thread's kernels."""
    before, _state.workers = current(), workers
    try:
        yield
    finally:
        _state.workers = before


__all__ = ["MOST", "Answer", "Answers", "Workers", "at_least", "count", "count_to_measure",
           "current", "ready", "release", "using"]  # fmt: skip
