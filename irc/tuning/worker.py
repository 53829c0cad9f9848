"""The process that measures for another one: requests are lines of JSON on its input, answers lines
of JSON on its output.

    python -m irc.tuning.worker             # until the input ends, or nobody asked for a while
    python -m irc.tuning.worker --once      # one request; an error is the exit status 1

A request `{"do": "seconds", "problem": {...}, "candidate": {...}, "options": {...}}` is answered
`{"value": 1.2e-05}` or `{"error": "why"}`. What runs here may crash or hang: it is then gone, and
`irc.tuning.pool` starts another one.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from irc.options.options import from_mapping
from irc.tuning.candidate import Candidate
from irc.tuning.problem import Problem

if TYPE_CHECKING:
    from irc.tuning.measuring import InProcess

IDLE_SECONDS = 300.0
"""A worker that nobody asks for so long ends."""
KEPT = 4
"""Problems whose programs and arguments are kept."""
PARENT_SECONDS = 0.5

Task = Callable[[Mapping[str, Any]], Any]

_kept: OrderedDict[str, InProcess] = OrderedDict()


def _measured(request: Mapping[str, Any]) -> tuple[InProcess, Candidate]:
    from irc.tuning.measuring import InProcess  # torch, which takes seconds to load

    problem = Problem.from_json(request["problem"])
    candidate = Candidate.from_json(request["candidate"])
    key = json.dumps([request["problem"], request.get("options")], sort_keys=True)
    if key not in _kept:
        options = from_mapping(request.get("options") or {})
        _kept[key] = InProcess(problem, options)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)[1].close()
    _kept.move_to_end(key)
    return _kept[key], candidate


def begin(request: Mapping[str, Any]) -> None:
    """Make a problem's arguments."""
    _measured(request)[0].begin()


def prepare(request: Mapping[str, Any]) -> None:
    """Build a candidate."""
    measured, candidate = _measured(request)
    measured.prepare(candidate)


def seconds(request: Mapping[str, Any]) -> float:
    """A sample of a candidate."""
    measured, candidate = _measured(request)
    return measured.seconds(candidate)


def devices(request: Mapping[str, Any]) -> str | None:
    """Which devices this process sees."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")


TASKS: dict[str, Task] = {
    "begin": begin, "prepare": prepare, "seconds": seconds, "devices": devices,
}  # fmt: skip


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request; an error is one, too."""
    try:
        return {"value": TASKS[request["do"]](request)}
    except Exception as error:  # whatever a candidate does
        # After an error on a GPU nothing runs there any more.
        fatal = "CUDA" in str(error) or type(error).__name__ in ("OutOfMemoryError", "MemoryError")
        return {"error": f"{type(error).__name__}: {error}", "fatal": fatal}


def watch_parent() -> None:
    """End with the process that started this one, though it died without closing its pipes."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os._exit(3)

    threading.Thread(target=watch, daemon=True, name="irc-parent").start()


def lines(stream: Any) -> Any:
    """The lines of a stream, until it ends or nothing comes for `IDLE_SECONDS`."""
    selector = selectors.DefaultSelector()
    selector.register(stream, selectors.EVENT_READ)
    pending = b""
    while selector.select(IDLE_SECONDS):
        piece = os.read(stream.fileno(), 1 << 16)
        if not piece:
            return
        pending += piece
        *whole, pending = pending.split(b"\n")
        yield from whole


def serve(once: bool = False) -> int:
    """Answer requests; gives the exit status."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed here is no answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the asker decides
    watch_parent()
    for line in lines(sys.stdin.buffer):
        request = json.loads(line)
        # The kernel ends a hang whose asker is gone, though nothing of Python runs any more.
        if hasattr(signal, "alarm"):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(int(request.get("limit", 600)) + 5)
        reply = answer(request)
        if hasattr(signal, "alarm"):
            signal.alarm(0)
        answers.write(json.dumps(reply).encode() + b"\n")
        answers.flush()
        if once or reply.get("fatal"):
            return int("error" in reply)
    return 0


if __name__ == "__main__":
    sys.exit(serve("--once" in sys.argv[1:]))
