"""Processes that compile kernels, started before it is known which.

    with ready(4):
        ...                                  # passes, that take as long as Triton's import
        answers = current().compiled(requests)

Triton holds the interpreter lock for half of the time that it takes, and to be imported takes as
long as to compile a kernel.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

MOST = 8
"""Processes that are started for one program."""
_LEAST_PROCESSORS = 4  # with fewer, the processes would only take turns with this one

Answer = tuple[dict[str, Any], bytes]


class Workers:
    """Running processes; `compiled` asks them."""

    def __init__(self, count: int) -> None:
        program = Path(__file__).with_name("compiling.py")
        path = os.pathsep.join(each for each in sys.path if each)
        environment = {**os.environ, "PYTHONPATH": path}
        self._processes = [
            subprocess.Popen(
                [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env=environment,
            )
            for _ in range(count)
        ]  # fmt: skip

    def compiled(self, requests: Sequence[Mapping[str, Any]]) -> list[Answer | None]:
        """The answers to requests as `compiling.compile_kernel` takes them; None for one that a
        process could not answer."""
        answers: list[Answer | None] = [None] * len(requests)
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(len(requests)):
            waiting.put(number)

        def ask(process: subprocess.Popen[bytes]) -> None:
            with contextlib.suppress(OSError, ValueError, queue.Empty):
                while True:
                    number = waiting.get_nowait()
                    answers[number] = _asked(process, requests[number])

        asking = self._processes[: len(requests)]
        threads = [threading.Thread(target=ask, args=(process,)) for process in asking]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def split(self, parts: int) -> list[Workers]:
        """These processes in so many groups, or as many as there are, for threads that ask at the
        same time: each group is one thread's. `close` of these is for the whole."""
        groups = [Workers(0) for _ in range(min(parts, len(self._processes)))]
        for number, process in enumerate(self._processes):
            groups[number % len(groups)]._processes.append(process)
        return groups

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.communicate()


def _asked(process: subprocess.Popen[bytes], request: Mapping[str, Any]) -> Answer | None:
    """One answer. Raises OSError or ValueError where the process is gone."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    head = json.loads(process.stdout.readline())
    code = process.stdout.read(head["bytes"])
    return None if "error" in head else (head["facts"], code)


_state = threading.local()


def current() -> Workers | None:
    """The processes of this thread's compile, None for none."""
    workers: Workers | None = getattr(_state, "workers", None)
    return workers


def count() -> int:
    """How many processes help here: none with few processors, where Triton only interprets, or
    where Python is part of another program, which would be started instead."""
    if not Path(sys.executable or "").name.startswith("python"):
        return 0
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if processors < _LEAST_PROCESSORS or os.environ.get("TRITON_INTERPRET") == "1":
        return 0
    return min(MOST, processors // 2)


@contextlib.contextmanager
def ready(number: int) -> Iterator[None]:
    """Inside, `number` processes wait for kernels of this thread's; none where they can't start."""
    started = None
    if number:
        with contextlib.suppress(OSError):
            started = Workers(number)
    try:
        with using(started):
            yield
    finally:
        if started is not None:
            started.close()


@contextlib.contextmanager
def using(workers: Workers | None) -> Iterator[None]:
    """Inside, these compile this thread's kernels."""
    before, _state.workers = current(), workers
    try:
        yield
    finally:
        _state.workers = before


__all__ = ["MOST", "Answer", "Workers", "count", "current", "ready", "using"]
