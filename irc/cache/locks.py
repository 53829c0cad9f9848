"""Locks of the cache's folder: of several processes that would do the same, one does it.

    with locked(directory, key, 15.0) as mine: ...

The lock is the operating system's on an open file, so that it ends with its process however that
ends. Whoever waits longer goes on without it: then work is done twice, and nothing is wrong.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from irc.cache.folder import Folder, Unusable

try:
    import fcntl
except ImportError:  # a system without them
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
#: How often a lock that another process has is asked for again.
ASKED_SECONDS = 0.05


@contextlib.contextmanager
def locked(directory: Path, key: str, seconds: float) -> Iterator[bool]:
    """The lock of a key (hexadecimal) for as long as the context lasts, waited for up to `seconds`;
    False where it can't be had."""
    descriptor = _opened(directory, key)
    mine = False
    try:
        mine = descriptor is not None and _taken(descriptor, seconds)
        yield mine
    finally:
        if mine:
            # Who waits has the file open and gets it; who comes later makes another one.
            with contextlib.suppress(OSError, Unusable), Folder(directory).opened() as here:
                here.remove(key + LOCK)
        if descriptor is not None:
            os.close(descriptor)


def _opened(directory: Path, key: str) -> int | None:
    if fcntl is None:
        return None
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with Folder(directory).opened(create=True) as here:
            return os.open(key + LOCK, flags, 0o600, dir_fd=here.descriptor)
    except (OSError, Unusable):
        return None


def _taken(descriptor: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
        except OSError:  # a file system without them
            return False
        time.sleep(ASKED_SECONDS)


__all__ = ["locked"]
