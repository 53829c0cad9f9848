"""A bar on the terminal while candidates are measured; nothing where stderr is none, or without
rich."""

from __future__ import annotations

import sys
import threading
from typing import Any


class Progress:
    """A bar over `count` candidates that are built, then a count of their samples. `step` may be
    called from any thread."""

    def __init__(self, what: str, count: int) -> None:
        self._bar: Any = None
        self._lock = threading.Lock()
        self._what, self._count, self._task = what, count, None

    def __enter__(self) -> Progress:
        if sys.stderr is None or not sys.stderr.isatty():
            return self
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar
        except ImportError:
            return self
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        self._bar = Bar(
            *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
        )
        self._task = self._bar.add_task(f"building {self._what}", total=self._count)
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """It is seen no more."""
        if self._bar is not None:
            self._bar.stop()

    def begin_timing(self) -> None:
        """All is built."""
        if self._bar is not None:
            self._bar.update(self._task, description=f"timing {self._what}", completed=0,
                             total=None)  # fmt: skip

    def step(self) -> None:
        """One more is built, or timed."""
        if self._bar is not None:
            with self._lock:
                self._bar.advance(self._task)


__all__ = ["Progress"]
