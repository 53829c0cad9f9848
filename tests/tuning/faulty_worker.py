"""A worker that also does what candidates may do: crash, hang, end, write nonsense."""

import os
import signal
import sys
import time

from irc.tuning import worker


def crash(request):
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(request):
    print("out of patience", file=sys.stderr, flush=True)
    os._exit(7)


def hang(request):
    time.sleep(600)


def refuse(request):
    raise RuntimeError("this choice always throws")


def sticky(request):
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


def nonsense(request):
    os.write(3 if request.get("fd") else answers, b"not json\n")


def value(request):
    return request["value"]


answers = os.dup(1)
worker.TASKS.update(
    {f.__name__: f for f in (crash, leave, hang, refuse, sticky, nonsense, value)},
    pid=lambda request: os.getpid(),
)

if __name__ == "__main__":
    sys.exit(worker.serve("--once" in sys.argv[1:]))
