"""Checks of a GPU's programs whose outcome the host doesn't wait for (the option `late_checks`).

A check of indices is a truth value that a kernel writes. To look at it, the host waits until the
GPU has caught up, which then waits for the host. With the option the value is copied to the CPU's
memory when the GPU gets there, and looked at when a program is called on that GPU again, by
`settle`, and at the end of the process. What was computed from an index out of bounds (as if it
were 0) is there before the error is raised, as with CUDA's own errors.
"""

from __future__ import annotations

import atexit
import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

from irc.program import host_program as P
from irc.program.liveness import registers_in

PLACES = 256
"""Checks of one GPU whose outcome is not known yet; one more waits for all of them."""
_PENDING = 2

Fail = Callable[[], None]


class Checks:
    """The checks of one GPU, in order. `memory`: bytes of the CPU that the GPU can write while the
    host goes on; `wait`: returns when the GPU has done everything."""

    def __init__(self, memory: torch.Tensor, wait: Callable[[], None]) -> None:
        self._places, self._wait = list(memory.unbind(0)), wait
        self._free = list(range(len(self._places)))
        self._pending: list[tuple[int, Fail]] = []
        self._failed: list[Fail] = []
        self._lock = threading.Lock()

    def add(self, truth: torch.Tensor, fail: Fail) -> None:
        """Have `fail` raise its error some time, if `truth` (a bool of the GPU) is false."""
        with self._lock:
            if not self._free:
                self._wait()
                self._collect()
            number = self._free.pop()
            place = self._places[number].fill_(_PENDING)
            place.copy_(truth.reshape(()).view(torch.uint8), non_blocking=True)
            self._pending.append((number, fail))

    def raise_failed(self) -> None:
        """Raise the error of the first check that is known to have failed and was not told."""
        if not self._pending and not self._failed:
            return
        with self._lock:
            self._collect()
            failed = self._failed.pop(0) if self._failed else None
        if failed is not None:
            failed()

    def settle(self) -> None:
        """Wait for all checks; raises the error of the first one that failed."""
        self._wait()
        self.raise_failed()

    def _collect(self) -> None:
        still = []
        for number, fail in self._pending:
            outcome = int(self._places[number])
            if outcome == _PENDING:
                still.append((number, fail))
                continue
            self._free.append(number)
            if not outcome:
                self._failed.append(fail)
        self._pending = still


_all: dict[int, Checks] = {}


def checks_of(gpu: int) -> Checks:
    """The checks of a GPU by its number."""
    found = _all.get(gpu)
    if found is None:
        memory = torch.empty(PLACES, dtype=torch.uint8, pin_memory=True)
        wait = functools.partial(torch.cuda.synchronize, gpu)
        if not _all:
            atexit.register(settle)
        found = _all[gpu] = Checks(memory, wait)
    return found


def raise_failed(gpu: int) -> None:
    """Raise the first untold error of a GPU's checks that are known by now."""
    found = _all.get(gpu)
    if found is not None:
        found.raise_failed()


def settle() -> None:
    """Wait for every GPU with checks; raises the error of the first one that failed."""
    for found in list(_all.values()):
        found.settle()


def late_steps(program: P.HostProgram) -> dict[int, int]:
    """The steps that read a truth value which one assertion uses and nothing else: numbers of
    such an `Item` and its `AssertValue`."""
    used = {r for step in program.steps for r in registers_in(step)}
    used |= {output.register for output in program.outputs if output.register is not None}
    asserted: dict[int, list[int]] = {}
    for number, step in enumerate(program.steps):
        if isinstance(step, P.AssertValue):
            asserted.setdefault(step.register, []).append(number)
    return {
        number: asserted[step.register][0]
        for number, step in enumerate(program.steps)
        if isinstance(step, P.ReadItem)
        and step.kind == "bool"
        and step.register not in used
        and len(asserted.get(step.register, ())) == 1
    }


def prepared(step: P.ReadItem, gpu: int, fail: Fail) -> Callable[[Any], None]:
    """What adds the check of a truth value to those of the GPU, in a run of `PythonHost`."""

    def check(run: Any) -> None:
        truth = run.values[step.source]
        if step.every:
            truth = truth.all()
        if truth.is_cuda and not torch.cuda.is_current_stream_capturing():
            checks_of(gpu).add(truth, fail)
        elif not truth:
            fail()

    return check
