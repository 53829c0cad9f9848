"""Leave of the operating system to use registers of whole tiles (AMX).

Linux gives a process that memory for each thread only after it asked, as a thread has 8 KiB more to
be saved then; without leave the first instruction ends the process.
"""

from __future__ import annotations

import ctypes
import functools
import sys

_ARCH_PRCTL, _ASK, _TILES = 158, 0x1023, 18
"""The call of x86-64, ARCH_REQ_XCOMP_PERM, and XFEATURE_XTILEDATA, of Linux's headers."""


@functools.cache
def allows_matrices() -> bool:
    """Whether this process may use such registers; asks for it once, for all of its threads."""
    if not sys.platform.startswith("linux"):
        return False
    syscall = ctypes.CDLL(None).syscall
    return bool(syscall(_ARCH_PRCTL, _ASK, _TILES) == 0)


__all__ = ["allows_matrices"]
