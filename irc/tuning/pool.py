"""Processes that measure, one a device, which may crash and hang.

    with Pool(visible_devices(...)) as pool:
        pool.ask({"do": "seconds", ...})        # the answer, or raises WorkerFailure

A worker is a new interpreter (`irc.tuning.worker`), never a fork: threads and a GPU's context don't
survive one. What ends it, or takes longer than `limit` seconds, is a `WorkerFailure`; the next
request finds another worker. Workers end with this process, when nobody asks for a while, and with
`close`; each is waited for.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from irc.runtime import metrics

VISIBLE = "CUDA_VISIBLE_DEVICES"
START_SECONDS = 60.0
"""What a worker may take longer for its first request: it imports torch."""
LIMIT_SECONDS = 30.0
"""What a request may take: to compile, and to run once."""
MOST_ANSWER = 1 << 20
TOLD_BYTES = 400
"""Of what a worker that died had written, so much is told."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerFailure(Exception):
    """Why a request has no value: what it raised, or how its worker ended."""


class WorkerKilled(WorkerFailure):
    """Something else ended the worker: a person, or the system where memory is short."""


def visible_devices(environ: Mapping[str, str], count: int) -> list[str]:
    """The devices that this process sees, as `CUDA_VISIBLE_DEVICES` names them; `count`: how many
    there are where it is not set."""
    if VISIBLE in environ:
        return [each.strip() for each in environ[VISIBLE].split(",") if each.strip()]
    return [str(number) for number in range(count)]


def can_start() -> bool:
    """Whether this process's program is Python, which a worker is started with."""
    return Path(sys.executable or "").name.startswith("python")


class TuningWorker:
    """One process, started when it is first asked. For one thread at a time.

    device: what it sees of GPUs; None: what this process sees. command: what is run.
    """

    def __init__(self, device: str | None = None, command: Sequence[str] = ()) -> None:
        self.device = device
        self._command = [*command] or [sys.executable, "-m", "irc.tuning.worker"]
        self._process: subprocess.Popen[bytes] | None = None
        self._written: Any = None

    @property
    def pid(self) -> int | None:
        """The process's number; None where there is none now."""
        return None if self._process is None else self._process.pid

    def ask(self, request: Mapping[str, Any], limit: float = LIMIT_SECONDS) -> Any:
        """The value of a request. Raises WorkerFailure; whatever else is raised, also Ctrl-C, ends
        the process, as its answer would be taken for the next one's."""
        fresh = self._process is None or self._process.poll() is not None
        try:
            if fresh:
                self._start()
            text = self._answer(request, limit + START_SECONDS * fresh)
        except BaseException:
            self.close()
            raise
        reply = _read_reply(text)
        if reply is None or reply.get("fatal"):
            self.close()
        if reply is None:
            raise WorkerFailure("its worker answered what is no answer")
        if "error" in reply:
            raise WorkerFailure(str(reply["error"]))
        return reply["value"]

    def _start(self) -> None:
        self.close()
        metrics.add("autotune_workers")
        path = os.pathsep.join(each or os.getcwd() for each in sys.path)
        environment = {**os.environ, "PYTHONPATH": path}
        if self.device is not None:
            environment[VISIBLE] = self.device
        try:
            self._written = tempfile.TemporaryFile()  # noqa: SIM115
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self._written, env=environment,
            )  # fmt: skip
        except OSError as error:
            raise WorkerFailure(f"no worker starts: {error}") from error

    def _answer(self, request: Mapping[str, Any], limit: float) -> bytes:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        deadline = time.monotonic() + limit
        try:
            process.stdin.write(json.dumps({**request, "limit": limit}).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            raise self._ended() from None
        pieces: list[bytes] = []
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not (pieces and pieces[-1].endswith(b"\n")):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise WorkerFailure(f"it took more than {limit:.0f} s")
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    raise self._ended()
                pieces.append(piece)
                if sum(map(len, pieces)) > MOST_ANSWER:
                    raise WorkerFailure("its worker writes without an end")
        return b"".join(pieces)

    def _ended(self) -> WorkerFailure:
        """How the process ended, and the end of what it wrote."""
        assert self._process is not None
        try:
            status = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return WorkerFailure("its worker closed its output")
        failure = WorkerKilled if status == -signal.SIGKILL else WorkerFailure
        told = f"its worker ended with status {status}"
        if status < 0:
            with contextlib.suppress(ValueError):
                told = f"its worker was ended by {signal.Signals(-status).name}"
        self._written.seek(0, os.SEEK_END)
        self._written.seek(max(0, self._written.tell() - TOLD_BYTES))
        last = self._written.read().decode(errors="replace").strip().splitlines()
        return failure(f"{told} ({last[-1].strip()})" if last else told)

    def kill(self) -> None:
        """End the process while another thread waits for its answer, which is then a failure."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process, and wait for it."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with contextlib.suppress(OSError, ValueError):
                process.communicate()
        if self._written is not None:
            self._written.close()
            self._written = None


def _read_reply(text: bytes) -> dict[str, Any] | None:
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        return None
    valid = isinstance(reply, dict) and ("value" in reply or "error" in reply)
    return reply if valid else None


class Pool:
    """A worker for each device, or one that sees what this process sees (`devices` None). `ask` and
    `each` may be called from any thread."""

    def __init__(self, devices: Sequence[str] | None = None, command: Sequence[str] = ()) -> None:
        chosen: Sequence[str | None] = [None] if not devices else devices
        self.workers = [TuningWorker(device, command) for device in chosen]
        self._free: queue.SimpleQueue[TuningWorker] = queue.SimpleQueue()
        for worker in self.workers:
            self._free.put(worker)

    def ask(self, request: Mapping[str, Any], limit: float = LIMIT_SECONDS) -> Any:
        """The value of a request, from a worker that is free. Raises WorkerFailure."""
        worker = self._free.get()
        try:
            return worker.ask(request, limit)
        finally:
            self._free.put(worker)

    def each(self, ask: Callable[[TuningWorker, Item], Result], items: Sequence[Item]
             ) -> list[Result]:  # fmt: skip
        """`ask(worker, item)` for each item, on all workers at once, in the items' order. Raises
        what the first one raises that does."""
        results: dict[int, Result] = {}
        errors: list[BaseException] = []
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(len(items)):
            waiting.put(number)

        def work() -> None:
            worker = self._free.get()
            try:
                while not errors:
                    number = waiting.get_nowait()
                    results[number] = ask(worker, items[number])
            except queue.Empty:
                pass
            except BaseException as error:
                errors.append(error)
            finally:
                self._free.put(worker)

        count = min(len(self.workers), len(items))
        threads = [threading.Thread(target=work, name="irc-tuning") for _ in range(count - 1)]
        for thread in threads:
            thread.start()
        try:
            work()
            for thread in threads:
                thread.join()
        except BaseException as error:  # Ctrl-C: what the threads wait for ends
            errors.append(error)
            for worker in self.workers:
                worker.kill()
            for thread in threads:
                thread.join()
        if errors:
            raise errors[0]
        return [results[number] for number in range(len(items))]

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers:
            worker.close()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_shared: dict[tuple[str, ...], Pool] = {}
_lock = threading.Lock()


def shared_pool(devices: Sequence[str] | None) -> Pool:
    """The pool of these devices in this process, which ends with it."""
    key = (str(os.getpid()), *(devices or ("",)))
    with _lock:
        if not _shared:
            atexit.register(close_shared)
        if key not in _shared:
            _shared[key] = Pool(devices)
        return _shared[key]


def close_shared() -> None:
    """End the workers of the shared pools; the next request starts new ones. In a fork nothing: the
    workers are its parent's."""
    with _lock:
        for (pid, *_), pool in list(_shared.items()):
            if pid == str(os.getpid()):
                pool.close()
        _shared.clear()


__all__ = ["Pool", "TuningWorker", "WorkerFailure", "WorkerKilled", "can_start",
           "close_shared", "shared_pool", "visible_devices"]  # fmt: skip
