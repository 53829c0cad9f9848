"""The time that programs compiled with the option `clock_aten` spent in ATen's operators.

    from irc.program import clocks
    model = torch.compile(net, backend="irc", options={"clock_aten": True})
    clocks.reset(); model(x)
    clocks.nanoseconds()                      # {"aten.addmm.out": 1_843_220, ...}

One clock an operator, for the whole process; native programs add to it by its address. What a call
takes includes packing its arguments, not checking its results.
"""

from __future__ import annotations

import ctypes
import threading

#: What comes before an operator's name in the symbol of its clock.
SYMBOL_PREFIX = "irc.clock."

_lock = threading.Lock()
_clocks: dict[str, ctypes.c_int64] = {}


def _clock(callee: str) -> ctypes.c_int64:
    with _lock:
        return _clocks.setdefault(callee, ctypes.c_int64())


def address(callee: str) -> int:
    """Where the nanoseconds of an operator are counted, for as long as the process lives."""
    return ctypes.addressof(_clock(callee))


def add(callee: str, nanoseconds: int) -> None:
    """Count time of an operator."""
    clock = _clock(callee)
    with _lock:
        clock.value += nanoseconds


def nanoseconds() -> dict[str, int]:
    """The time of every operator that any clocked program calls, since the last `reset`."""
    with _lock:
        return {callee: clock.value for callee, clock in _clocks.items()}


def reset() -> None:
    """Set every clock to zero."""
    with _lock:
        for clock in _clocks.values():
            clock.value = 0
