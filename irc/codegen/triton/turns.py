"""Python's part of building programs on several threads, by one thread at a time.

    with turn():                # what holds the interpreter's lock anyway: passes, emitters
        ...
        with let_others():      # what waits: for a process that compiles
            ...

Threads that compute in Python at the same time are no faster than one, and each of them gets the
interpreter's lock back by a wait of 5 ms after whatever releases it. The first kernels of 16
candidates are all begun late then, and nothing can be timed meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

_turn = threading.Lock()
_held = threading.local()


def _forget() -> None:
    """In a fork: the thread that has its turn is the parent's, unless it is this one."""
    global _turn
    _turn = threading.Lock()
    if getattr(_held, "own", False):
        _turn.acquire()


os.register_at_fork(after_in_child=_forget)


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """Inside, no other thread has its turn. A thread that has it already keeps it."""
    if getattr(_held, "own", False):
        yield
        return
    _turn.acquire()
    _held.own = True
    try:
        yield
    finally:
        _held.own = False
        _turn.release()


@contextlib.contextmanager
def let_others() -> Iterator[None]:
    """Inside, others may have their turn, if this thread has it."""
    if not getattr(_held, "own", False):
        yield
        return
    _held.own = False
    _turn.release()
    try:
        yield
    finally:
        _turn.acquire()
        _held.own = True


__all__ = ["let_others", "turn"]
