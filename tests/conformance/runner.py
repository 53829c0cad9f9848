"""Runs conformance cases in a child process that may crash or hang without harm."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
# A child keeps compiled programs and torch's caches alive: a fresh one now and then bounds memory.
CASES_PER_CHILD = 200
START_SECONDS = 180.0


class Runner:
    """One child process at a time; use as a context manager."""

    def __init__(
        self,
        backend: str,
        timeout: float = 120.0,
        preload: str = "",
        samples: int = 8,
        device: str = "cpu",
    ) -> None:
        """`preload` names a module that the child imports first; a case is its entry's first
        `samples` samples, made on `device`."""
        self.backend = backend
        self.timeout = timeout
        self.preload = preload
        self.samples = samples
        self.device = device
        self._child: subprocess.Popen[bytes] | None = None
        self._served = 0

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, case: str, samples: int | None = None) -> dict[str, Any]:
        """The result of one case, of its first `samples` samples (or as many as the runner takes);
        status "crash" or "timeout" where the child gave none."""
        if self._child is not None and self._served >= CASES_PER_CHILD:
            self.close()
        if self._child is None:
            self._start()
        self._served += 1
        started = time.perf_counter()
        answer = self._ask(f"{case} {samples or self.samples}", self.timeout)
        if answer is not None:
            return answer
        timed_out = self._child is not None and self._child.poll() is None
        message = "no answer in time" if timed_out else self._last_words()
        self.close()
        return {
            "case": case,
            "status": "timeout" if timed_out else "crash",
            "message": message,
            "seconds": round(time.perf_counter() - started, 2),
        }

    def close(self) -> None:
        """End the child, if there is one."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        assert child.stdin is not None
        child.stdin.close()
        os.close(self._answers)
        self._errors.close()

    def _start(self) -> None:
        self._errors = tempfile.TemporaryFile()
        self._answers, writing = os.pipe()
        paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
        environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=os.pathsep.join(paths))
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.worker", self.backend, str(writing)]
            + [self.device]
            + [self.preload] * bool(self.preload),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=[writing],
            cwd=ROOT,
            env=environment,
        )
        os.close(writing)
        self._served = 0
        if self._receive(START_SECONDS) != {"ready": True}:
            message = self._last_words()
            self.close()
            raise RuntimeError(f"the conformance worker did not start: {message}")

    def _ask(self, line: str, seconds: float) -> dict[str, Any] | None:
        """The child's answer, or None if it died or took longer than `seconds`."""
        assert self._child is not None and self._child.stdin is not None
        try:
            self._child.stdin.write(line.encode() + b"\n")
            self._child.stdin.flush()
        except OSError:
            self._child.wait()
            return None
        return self._receive(seconds)

    def _receive(self, seconds: float) -> dict[str, Any] | None:
        """One line of the child's, or None if it died or took longer than `seconds`."""
        assert self._child is not None
        deadline = time.monotonic() + seconds
        received = b""
        while not received.endswith(b"\n"):
            left = max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([self._answers], [], [], left)
            if not ready:
                return None
            piece = os.read(self._answers, 65536)
            if not piece:
                self._child.wait()
                return None
            received += piece
        return json.loads(received)

    def _last_words(self) -> str:
        assert self._child is not None
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 400))
        tail = " ".join(self._errors.read().decode(errors="replace").split())
        return f"exit status {self._child.returncode}: {tail}"
