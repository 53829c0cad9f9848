"""What is made once in a process though several threads ask for it at the same time."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def once(make: Callable[[], Result]) -> Callable[[], Result]:
    """`make` without arguments, called once: who asks meanwhile waits for its result.

    For what others refer to by address. `functools.cache` calls twice where two threads ask at
    once, keeps one result, and the other one dies while its addresses are in use.
    """
    lock = threading.RLock()
    kept = functools.cache(make)

    @functools.wraps(make)
    def asked() -> Result:
        with lock:
            return kept()

    return asked


__all__ = ["once"]
