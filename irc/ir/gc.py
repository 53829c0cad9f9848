"""Pausing Python's cyclic collector while IR is built: the graph is one large live cycle, and
scanning it again and again is the largest single cost of building it."""

from __future__ import annotations

import gc
import threading
from types import TracebackType


class _Pause:
    """A re-entrant, thread-safe pause: the collector runs again when the last user leaves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._depth += 1

    def __exit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._was_enabled:
                gc.enable()


gc_paused = _Pause()
