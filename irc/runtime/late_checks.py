"""Checks of a GPU's programs whose outcome the host doesn't wait for (the option `late_checks`).

A check of indices is a truth value that a kernel writes. To look at it, the host waits until the
GPU has caught up, which then waits for the host. With the option the value is copied to the CPU's
memory when the GPU gets there, and looked at when a program is called on that GPU again, by
`settle`, and at the end of the process. What was computed from an index out of bounds (as if it
were 0) is there before the error is raised, as with CUDA's own errors.

Launches that are captured into a graph run many times, and the host isn't there when they do.
Their checks stand: a byte of the CPU's memory that a failure clears, by a kernel
(`irc.runtime.check_kernel`), or without that one a byte of the GPU that is copied there each time.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from irc.boundary import cuda
from irc.program import host_program as P
from irc.program.late import late_steps
from irc.runtime import late_flags
from irc.runtime.check_kernel import CheckKernel, check_kernel
from irc.runtime.late_ring import Ring

PLACES = 256
"""Checks of one GPU whose outcome is not known yet; one more waits for all of them."""
BOARD = 4096
"""Standing checks that get memory at once."""
_PENDING = 2

Fail = Callable[[], None]


class Checks:
    """The checks of one GPU, in order. `memory`: bytes of the CPU that the GPU can write while the
    host goes on; `wait`: returns when the GPU has done everything; `note`: is told when there may
    be an error to raise, and when there is none."""

    def __init__(
        self,
        memory: torch.Tensor,
        wait: Callable[[], None],
        note: Callable[[], None] = lambda: None,
    ) -> None:
        self._places, self._wait, self._note = list(memory.unbind(0)), wait, note
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
        self._note()

    @property
    def busy(self) -> bool:
        """Whether there may be an error that was not told."""
        return bool(self._pending or self._failed)

    def raise_failed(self) -> None:
        """Raise the error of the first check that is known to have failed and was not told."""
        if not self.busy:
            return
        with self._lock:
            self._collect()
            failed = self._failed.pop(0) if self._failed else None
        self._note()
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


class Standing:
    """Checks of captured launches, on one GPU. `flags`, `seen`: slices of the bytes of the GPU and
    of the CPU (which the GPU can write), a byte a check; `kernel`: what clears those of the CPU."""

    def __init__(
        self, flags: torch.Tensor, seen: torch.Tensor, kernel: CheckKernel | None = None
    ) -> None:
        self.flags, self.seen, self.kernel = flags, seen, kernel
        self.fails: list[Fail] = []

    def clear(self, truth: torch.Tensor, fail: Fail) -> bool:
        """Inside of a capture: launch what keeps failures of the next check, of a truth value or of
        several; whether that could be done by itself."""
        if self.kernel is None or not truth.is_cuda:
            return False
        place = self.seen.data_ptr() + len(self.fails)
        self.kernel.look(truth.contiguous().view(torch.uint8), place, tell=False)
        self.fails.append(fail)
        return True

    def follow(self, truths: Sequence[tuple[torch.Tensor, Fail]]) -> None:
        """Inside of a capture: launch what keeps failures of all these checks."""
        self.fails = [fail for _, fail in truths]
        values = [truth.reshape(()).view(torch.uint8) for truth, _ in truths]
        self.flags.bitwise_and_(torch.stack(values))
        self.seen.copy_(self.flags, non_blocking=True)


class Board:
    """The standing checks of one GPU; none is ever taken off, a check is a byte."""

    def __init__(
        self, flags: torch.Tensor, seen: torch.Tensor, wait: Callable[[], None],
        kernel: Callable[[], CheckKernel | None] = lambda: None,
    ) -> None:  # fmt: skip
        self._kernel = kernel
        self._flags, self._seen, self._wait = flags.fill_(1), seen.fill_(1), wait
        self._raw = (ctypes.c_char * len(seen)).from_address(seen.data_ptr())
        self._taken = 0
        self._standing: list[Standing] = []
        self._lock = threading.Lock()

    @property
    def busy(self) -> bool:
        """Whether there are checks on it."""
        return bool(self._standing)

    def has(self, count: int) -> bool:
        """Whether so many places are left."""
        return self._taken + count <= len(self._seen)

    def take(self, count: int) -> Standing:
        """Places for so many checks, which it has."""
        with self._lock:
            start, end = self._taken, self._taken + count
            self._taken = end
            places = Standing(self._flags[start:end], self._seen[start:end], self._kernel())
            self._standing.append(places)
            return places

    def raise_failed(self) -> None:
        """Raise the error of the first check that is known to have failed; others that failed
        before are not told."""
        if self._raw.raw.find(b"\0") < 0:
            return
        with self._lock:
            self._wait()  # what is under way would tell the same failure again
            failed = [fail for each in self._standing
                      for fail, seen in zip(each.fails, each.seen.tolist(), strict=False)
                      if not seen]  # fmt: skip
            self._flags.fill_(1)
            self._seen.fill_(1)
        for fail in failed:
            fail()


_all: dict[int, Checks] = {}
_rings: dict[int, Ring] = {}
_boards: dict[int, list[Board]] = {}
_kernels: dict[int, CheckKernel | None] = {}
_collected = threading.local()


@contextmanager
def collected(standing: Standing | None = None) -> Iterator[list[tuple[torch.Tensor, Fail]]]:
    """Inside, late checks of this thread's programs only are put into the list, with what raises
    their errors, unless `standing` takes them as they come."""
    before = getattr(_collected, "checks", None)
    checks: list[tuple[torch.Tensor, Fail]] = []
    if standing is not None:
        standing.fails = []
    _collected.checks = checks, standing
    try:
        yield checks
    finally:
        _collected.checks = before


def standing(gpu: int | None, count: int) -> Standing:
    """Places for `count` checks of launches that will be captured (on the CPU where `gpu` is
    None)."""
    places = _board(gpu, count).take(count)
    _note()
    return places


def _board(gpu: int | None, count: int) -> Board:
    """A board that has so many places left."""
    boards = _boards.setdefault(-1 if gpu is None else gpu, [])
    if not boards or not boards[-1].has(count):
        size = max(count, BOARD)
        wait = _no_wait if gpu is None else functools.partial(torch.cuda.synchronize, gpu)
        with torch.inference_mode(False):  # other calls write it, in that mode or not
            seen = torch.empty(size, dtype=torch.uint8, pin_memory=gpu is not None)
            flags = torch.empty(size, dtype=torch.uint8, device="cpu" if gpu is None else gpu)
            boards.append(Board(flags, seen, wait, functools.partial(_kernel_of, gpu)))
        _settle_at_exit()
    return boards[-1]


def _no_wait() -> None:
    pass


def _kernel_of(gpu: int | None) -> CheckKernel | None:
    """What clears bytes of the CPU on a GPU; None on the CPU, and where a capture can't load it."""
    if gpu is None:
        return None
    if gpu not in _kernels and not torch.cuda.is_current_stream_capturing():
        _kernels[gpu] = check_kernel(gpu)
    return _kernels.get(gpu)


@functools.cache
def _settle_at_exit() -> None:
    atexit.register(settle)


def checks_of(gpu: int) -> Checks:
    """The checks of a GPU by its number."""
    checks = _all.get(gpu)
    if checks is None:
        with torch.inference_mode(False):
            memory = torch.empty(PLACES, dtype=torch.uint8, pin_memory=True)
        wait = functools.partial(torch.cuda.synchronize, gpu)
        _board(gpu, 0)  # a capture of somebody else's could not make it
        checks = _all[gpu] = Checks(memory, wait, _note)
    return checks


def ring_of(gpu: int) -> Ring | None:
    """The ring of a GPU by its number, which native code finds in the table; None without one."""
    how = cuda.installed()
    if how is None:
        return None
    ring = _rings.get(gpu)
    if ring is None:
        ring = _rings[gpu] = Ring(pinned=torch.cuda.is_available())
        kernel = _kernel_of(gpu) if torch.cuda.is_available() else None
        if kernel is not None:
            ring.use(kernel.function)
        _settle_at_exit()
    how.table[cuda.RINGS + gpu] = ring.address
    return ring


def _note() -> None:
    """Tell native programs whether they must look for errors as they begin."""
    gpu = cuda.installed()
    if gpu is not None:
        boards = (board for boards in _boards.values() for board in boards)
        every: tuple[Any, ...] = (*_all.values(), *boards, *_rings.values())
        gpu.table[cuda.LATE] = 0  # native code that leaves a check here meanwhile sets it
        if any(each.busy for each in every):
            gpu.table[cuda.LATE] = 1


def raise_failed(gpu: int) -> None:
    """Raise the first untold error of a GPU's checks that are known by now."""
    ring = _rings.get(gpu)
    if ring is not None and ring.busy:
        fail = ring.next_failed()
        _note()
        if fail is not None:
            fail()
    checks = _all.get(gpu)
    if checks is not None:
        checks.raise_failed()
    for board in _boards.get(gpu, ()):
        board.raise_failed()
    late_flags.raise_failed(gpu)


def settle() -> None:
    """Wait for every GPU with checks; raises the error of the first one that failed."""
    for gpu in list(_rings):
        if torch.cuda.is_available():
            torch.cuda.synchronize(gpu)
        raise_failed(gpu)
    for checks in list(_all.values()):
        checks.settle()
    late_flags.settle()
    for gpu in list(_boards):
        if gpu >= 0:
            torch.cuda.synchronize(gpu)
        raise_failed(gpu)


def check_truth(truth: Any, every: bool, gpu: int, fail: Fail) -> None:
    """Add the check of a truth value (of whether `every` one holds) to those of the GPU."""
    checks, places = getattr(_collected, "checks", None) or (None, None)
    if checks is None and truth.is_cuda and torch.cuda.is_current_stream_capturing():
        places = standing(gpu, 1)  # somebody else's capture
    if places is not None and places.clear(truth, fail):
        return
    if every:
        truth = truth.all()
    if checks is not None:
        checks.append((truth.clone(), fail))  # its memory may be the next step's
    elif places is not None:
        places.follow([(truth, fail)])
    elif truth.is_cuda:
        checks_of(gpu).add(truth, fail)
    elif not truth:
        fail()


def count_late(program: P.HostProgram) -> int:
    """How many of a program's checks are told late."""
    return len(late_steps(program)) if program.late_checks else 0


def prepared(step: P.ReadItem, gpu: int, fail: Fail) -> Callable[[Any], None]:
    """What adds the check of a truth value to those of the GPU, in a run of `PythonHost`."""

    def check(run: Any) -> None:
        check_truth(run.values[step.source], step.every, gpu, fail)

    return check


__all__ = ["PLACES", "Checks", "check_truth", "checks_of", "late_steps", "prepared", "raise_failed",
           "settle"]  # fmt: skip
