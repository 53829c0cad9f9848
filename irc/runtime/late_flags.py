"""Flags by which kernels of a GPU tell failed checks: bytes of the CPU's memory that it can write.

A kernel writes 0 where a check fails, and nothing where it holds (`kernel.check`), so that a check
costs neither a launch nor a copy, in a captured graph as elsewhere. Flags stand as long as the
process; there is one for each GPU, error and message, so programs of the same check share it.
Native code looks at all flags of its GPU as it begins, a word each (`irc_gpu_told`): the words of
a `FlagBoard` say how many there are, where they are, and where the next board is (0: nowhere).
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import threading

import torch

from irc.boundary.cuda import FLAGS, Gpu
from irc.codegen.host import support_gpu as words
from irc.runtime.errors import raise_error

FLAG_BYTES = 16
"""Flags are so far apart: kernels are compiled for pointers that are multiples of it."""
BOARD_FLAGS = 256
"""Flags that get memory at once."""


class BoardWords(ctypes.c_uint64 * words.BOARD_WORDS):  # type: ignore[misc]
    """What native code reads of a board."""


class FlagMemory(ctypes.c_uint8 * FLAG_BYTES):  # type: ignore[misc]
    """The memory of one flag."""


class FlagBoard:
    """Flags of one GPU, all of whose bytes are 1 until a check fails."""

    def __init__(self, pinned: bool) -> None:
        from torch.utils._python_dispatch import _disable_current_modes

        size = BOARD_FLAGS * FLAG_BYTES
        # A compile may run under fake tensors; other calls have it, in inference mode or not.
        with _disable_current_modes(), torch.inference_mode(False):
            self.memory = torch.ones(size, dtype=torch.uint8, pin_memory=pinned)
        self.words = BoardWords()
        self.words[words.BOARD_MEMORY] = self.memory.data_ptr()
        self._raw = (ctypes.c_char * size).from_address(self.memory.data_ptr())

    @property
    def address(self) -> int:
        """Where its words are."""
        return ctypes.addressof(self.words)

    @property
    def count(self) -> int:
        """How many flags are in use."""
        return int(self.words[words.BOARD_COUNT])

    @property
    def has_failed(self) -> bool:
        """Whether a flag is false."""
        return self._raw.raw.find(b"\0") >= 0

    def holds(self, number: int) -> bool:
        """Whether a flag is true."""
        return self._raw[number * FLAG_BYTES] != b"\0"

    def reset(self) -> None:
        """Set all flags to true."""
        ctypes.memset(self._raw, 1, len(self._raw))

    def take(self) -> int:
        """The number of one more flag."""
        number = self.count
        self.words[words.BOARD_COUNT] = number + 1
        return number


class Flags:
    """The flags of one GPU. `pinned`: in memory that the GPU can write."""

    def __init__(self, gpu: int, pinned: bool) -> None:
        self._gpu, self._pinned, self._lock = gpu, pinned, threading.Lock()
        self._boards = [FlagBoard(pinned)]
        self._places: dict[tuple[str, str], tuple[FlagBoard, int]] = {}

    @property
    def address(self) -> int:
        """Where the words of its first board are."""
        return self._boards[0].address

    def flag(self, error: str, message: str) -> torch.Tensor:
        """The truth value of a check: a tensor over its byte."""
        board, number = self._place(error, message)
        start = number * FLAG_BYTES
        return board.memory[start : start + 1].view(torch.bool)[0]

    def memory(self, error: str, message: str) -> FlagMemory:
        """The same as an array of ctypes, as native code finds it."""
        board, number = self._place(error, message)
        return FlagMemory.from_address(board.memory.data_ptr() + number * FLAG_BYTES)

    def _place(self, error: str, message: str) -> tuple[FlagBoard, int]:
        with self._lock:
            place = self._places.get((error, message))
            if place is None:
                board = self._boards[-1]
                if board.count == BOARD_FLAGS:
                    self._boards.append(FlagBoard(self._pinned))
                    board.words[words.BOARD_NEXT] = self._boards[-1].address
                    board = self._boards[-1]
                place = self._places[error, message] = board, board.take()
        return place

    def raise_failed(self) -> None:
        """Raise the error of the first flag that is false; all are true then. While the current
        stream is captured, when nobody may wait for the GPU, nothing is told."""
        if not any(board.has_failed for board in self._boards):
            return
        if self._pinned:
            if torch.cuda.is_current_stream_capturing():
                return
            torch.cuda.synchronize(self._gpu)  # what is under way would tell the failure again
        with self._lock:
            failed = [
                check for check, (board, number) in self._places.items()
                if not board.holds(number)
            ]  # fmt: skip
            for board in self._boards:
                board.reset()
        if failed:
            raise_error(*failed[0])


_flags: dict[int, Flags] = {}
_making = threading.Lock()


def flags_of(gpu: int) -> Flags:
    """The flags of a GPU by its number."""
    with _making:
        flags = _flags.get(gpu)
        if flags is None:
            flags = _flags[gpu] = Flags(gpu, pinned=torch.cuda.is_available())
            _register()
    return flags


def flag_memory(gpu: Gpu, device: int, error: str, message: str) -> FlagMemory:
    """The memory of a flag of a device, which the table of `gpu` tells native code of."""
    flags = flags_of(device)
    gpu.table[FLAGS + device] = flags.address
    return flags.memory(error, message)


def raise_failed(gpu: int) -> None:
    """Raise the error of the first check of a GPU that is known to have failed."""
    flags = _flags.get(gpu)
    if flags is not None:
        flags.raise_failed()


def settle() -> None:
    """Wait for every GPU with flags; raises the error of the first check that failed."""
    for gpu, flags in list(_flags.items()):
        if torch.cuda.is_available():
            torch.cuda.synchronize(gpu)
        flags.raise_failed()


@functools.cache
def _register() -> None:
    atexit.register(settle)


__all__ = ["BOARD_FLAGS", "FLAG_BYTES", "Flags", "flag_memory", "flags_of", "raise_failed",
           "settle"]  # fmt: skip
