"""Resident memory of this process, as the kernel tells it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import resource
from pathlib import Path

STATUS = Path("/proc/self/status")


def restart_peak() -> None:
    """Forget the process's largest memory so far."""
    # A new process inherits the peak that getrusage tells from the one that started it; the
    # kernel's own mark for the address space can be taken back.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def give_back(backend: str) -> None:
    """Return what is free to the system, as far as the process can."""
    gc.collect()
    if backend == "irc":
        import irc

        irc.release_memory()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def peak() -> float:
    """The largest memory since the last restart, in MiB."""
    return _field("VmHWM:")


def now() -> float:
    """What is used now, in MiB."""
    return _field("VmRSS:")


def _field(name: str) -> float:
    try:
        text = STATUS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return float(text.partition(name)[2].split()[0]) / 1024
