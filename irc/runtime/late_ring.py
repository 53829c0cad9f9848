"""Checks that native programs of a GPU leave behind without Python, in the order of their calls.

A ring of places in the CPU's memory: native code (`irc_gpu_late`) takes the next one, has the GPU
write there whether the truth values of a check hold (or copy them), and goes on; Python looks at
those that have arrived.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import torch

from irc.codegen.host import support_gpu as words

_PENDING, _FALSE = b"\x02", b"\0"


class _RingWords(ctypes.c_uint64 * words.RING_WORDS):  # type: ignore[misc]
    """What native code reads and writes."""


class Ring:
    """The places of one GPU. `pinned`: in memory that the GPU can write while the host goes on."""

    def __init__(self, pinned: bool) -> None:
        size = words.RING_PLACES * words.RING_BYTES
        with torch.inference_mode(False):
            self._memory = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
        self.words = _RingWords()
        self.words[words.RING_MEMORY] = self._memory.data_ptr()
        self._lock = threading.Lock()
        self._failed: list[Callable[[], None]] = []

    def use(self, kernel: int) -> None:
        """Have a kernel of `irc.runtime.check_kernel` (a CUfunction) look at truth values; 0: have
        them copied."""
        self.words[words.RING_KERNEL] = kernel

    @property
    def address(self) -> int:
        """Where its words are."""
        return ctypes.addressof(self.words)

    @property
    def _has_pending(self) -> bool:
        return bool(self.words[words.RING_HEAD] != self.words[words.RING_TAIL])

    @property
    def busy(self) -> bool:
        """Whether there are checks that nobody has looked at, or errors that were not told."""
        return bool(self._failed) or self._has_pending

    def next_failed(self) -> Callable[[], None] | None:
        """What raises the error of the first check that is known to have failed and was not told.
        A check that hasn't arrived keeps those behind it waiting."""
        with self._lock:
            while self._has_pending and self._take():
                pass
            return self._failed.pop(0) if self._failed else None

    def _take(self) -> bool:
        """Look at the first check that is left; whether it has arrived."""
        head = self.words[words.RING_HEAD]
        slot = head % words.RING_PLACES
        entry = words.RING_ENTRIES + 2 * slot
        place = self.words[words.RING_MEMORY] + slot * words.RING_BYTES
        content = ctypes.string_at(place, self.words[entry + 1])
        if _PENDING in content:
            return False
        fail: Any = ctypes.py_object.from_address(self.address + 8 * entry).value
        self.words[words.RING_HEAD] = head + 1
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(fail))  # what native code held
        if _FALSE in content:
            self._failed.append(fail)
        return True


__all__ = ["Ring"]
