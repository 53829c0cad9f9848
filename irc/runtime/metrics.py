"""Counters of what irc did in this process, read and reset by users as `irc.metrics`.

    irc.metrics.reset()
    model(x)
    assert irc.metrics.compiles == 1

Reading a name that is no counter raises AttributeError. Increments are safe from any thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

COUNTERS: dict[str, str] = {
    "compiles": "graphs compiled to a program, loaded ones included",
    "kernels": "generated kernels in compiled programs",
    "launches": "launches of generated kernels in compiled programs",
    "aten_calls": "ATen calls in compiled programs",
    "layout_copies": "copies made only to change a layout",
    "layout_copies_inside": "those of them neither of an input nor for an output",
    "num_comprehensive_padding": "values whose strides were padded",
    "padding_bytes": "bytes that padding of strides added",
    "select_algorithm_precompile": "products of which it was measured who computes them",
    "autotune_problems": "choices that were measured",
    "autotune_candidates": "programs that were built to be measured",
    "autotune_workers": "processes that were started to measure",
    "autotune_cut_short": "... whose measuring the budget ended: the program is not kept",
    "autotune_local_hits": "choices found in irc's cache, so that nothing was measured",
    "autotune_local_puts": "choices written there",
    "autotune_remote_hits": "choices found on the remote server",
    "autotune_remote_puts": "choices written there",
    "cache_hits": "programs found in the cache on disk",
    "cache_misses": "programs looked up in the cache on disk and not found",
    "cache_puts": "programs written to the cache on disk",
}

_lock = threading.Lock()
_thread = threading.local()
_values = dict.fromkeys(COUNTERS, 0)


def add(counter: str, amount: int = 1) -> None:
    """Count `amount` more of `counter`; KeyError for a name that is no counter."""
    if getattr(_thread, "paused", False):
        return
    with _lock:
        _values[counter] += amount


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Inside, this thread counts nothing: it builds what is no program of the user's."""
    before = getattr(_thread, "paused", False)
    _thread.paused = True
    try:
        yield
    finally:
        _thread.paused = before


def snapshot() -> dict[str, int]:
    """All counters at one moment."""
    with _lock:
        return dict(_values)


def reset() -> None:
    """Set every counter to zero."""
    with _lock:
        _values.update(dict.fromkeys(COUNTERS, 0))


def __getattr__(name: str) -> int:
    try:
        return _values[name]
    except KeyError:
        raise AttributeError(f"irc.metrics has no counter {name!r}") from None
