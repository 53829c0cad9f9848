"""Memory that native programs keep between calls: the pool of the process, and giving it back."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import weakref
from collections.abc import Callable
from pathlib import Path

from irc.boundary import storages
from irc.boundary.once import once
from irc.codegen.host import support_arena as arena
from irc.codegen.host import support_kept as kept

_serials = itertools.count(1)
_NOBODY = 0
#: Of the machine's memory, and bytes: what results that are gone may hold at most.
RESULTS_SHARE, RESULTS_LIMIT = 16, 1 << 30


def _forever(words: int) -> ctypes.Array[ctypes.c_uint64]:
    """Words that native code may read and write for as long as the process lives."""
    array = (ctypes.c_uint64 * words)()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))
    return array


_pool = _forever(arena.POOL_HEAD + 3 * arena.POOL_PLACES)
_pool[arena.POOL_MOST], _pool[arena.POOL_COUNT] = arena.POOL_LIMIT, arena.POOL_PLACES


def memory_bytes() -> int:
    """Bytes of memory that this process can have: the machine's, or its control group's limit."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [machine]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            told = (Path("/sys/fs/cgroup") / name).read_text().strip()
        except OSError:
            continue
        if told.isdigit():
            limits.append(int(told))
    return min(limits)


class KeptResults:
    """The memory of large results that are gone (`irc.codegen.host.support_kept`), at `address`."""

    def __init__(self) -> None:
        words = self._words = _forever(kept.KEPT_WORDS)
        self.address = ctypes.addressof(words)
        self.pool = self.address + ctypes.sizeof(ctypes.c_uint64) * kept.KEPT_HEAD
        facts = storages.facts()
        if facts is not None:
            words[kept.KEPT_FROM_BLOB], words[kept.KEPT_STORAGE] = facts.from_blob, facts.storage
            words[kept.KEPT_ALLOCATOR] = facts.allocator
            words[kept.KEPT_RESIZABLE], words[kept.KEPT_TORCH] = facts.resizable, facts.torchs
        self._limit = min(RESULTS_LIMIT, memory_bytes() // RESULTS_SHARE)
        words[kept.KEPT_HEAD + arena.POOL_COUNT] = kept.KEPT_PLACES
        words[kept.KEPT_HEAD + arena.POOL_TURNS] = 1
        self._drain: Callable[..., int] | None = None

    def open(self, drain: Callable[..., int]) -> None:
        """There is a program: what is gone is kept. drain: `irc_pool_drain`."""
        self._drain = drain
        self._words[kept.KEPT_HEAD + arena.POOL_MOST] = self._limit

    def close(self) -> None:
        """There is no program: nothing is kept, nor what is dropped from now on."""
        self._words[kept.KEPT_HEAD + arena.POOL_MOST] = 0
        self.drain()

    def drain(self) -> int:
        """Free the memory of results that are gone; how many bytes it was."""
        return 0 if self._drain is None else self._drain(self.pool, _NOBODY, -1)

    def idle_bytes(self) -> int:
        """What the next results may use."""
        return self._words[kept.KEPT_HEAD + arena.POOL_IDLE]


@once
def kept_results() -> KeptResults:
    """Those of this process."""
    return KeptResults()


class ArenaSlots:
    """A program's slots for its blocks, at `address`. `close` frees what only the program used."""

    def __init__(self, function: Callable[[str], int]) -> None:
        self._words = (ctypes.c_uint64 * arena.SLOTS_WORDS)()
        self._words[arena.ARENA_SLOTS] = ctypes.addressof(_pool)
        self.serial = self._words[arena.ARENA_SLOTS + 1] = next(_serials)
        self.address = ctypes.addressof(self._words)
        self._drain = _native(function("irc_arena_drain"), 1)
        self._drain_pool = _native(function("irc_pool_drain"), 3)
        _every[self.serial] = self
        kept_results().open(self._drain_pool)

    def drain(self) -> int:
        """Free the blocks in the slots; how many bytes they held."""
        return self._drain(self.address)

    def drain_pool(self, owner: int, above: int) -> int:
        """Free the blocks in the pool that `owner` used last, or of more than `above` bytes."""
        return self._drain_pool(ctypes.addressof(_pool), owner, above)

    def close(self) -> None:
        """The program is gone: free its blocks, such as only a large program needs, and with the
        last one what results held."""
        self.drain()
        self.drain_pool(self.serial, arena.POOL_LIMIT)
        _every.pop(self.serial, None)
        if not _every:
            kept_results().close()


_every: weakref.WeakValueDictionary[int, ArenaSlots] = weakref.WeakValueDictionary()


@functools.cache
def _native(address: int, arguments: int) -> Callable[..., int]:
    """A support function that needs the interpreter lock, of 64-bit words."""
    kinds = [ctypes.c_int64] * arguments
    return ctypes.PYFUNCTYPE(ctypes.c_int64, *kinds)(address)


def kept_bytes() -> int:
    """The bytes that programs keep for their next calls, and their results' next ones."""
    own = _pool[arena.POOL_IDLE] + _pool[arena.POOL_SLOTS]
    return own + kept_results().idle_bytes()


def release_memory() -> int:
    """Free the memory that programs keep for their next calls; how many bytes it was.

    The next call of each program allocates again. Memory of calls that run now stays. What torch's
    allocators keep is theirs (`torch.cuda.empty_cache`). Processes that wait to compile kernels
    for a GPU end.
    """
    from irc.codegen.triton import workers  # not for a warm start

    workers.release()
    freed = kept_results().drain()
    for slots in list(_every.values()):
        freed += slots.drain() + slots.drain_pool(_NOBODY, -1)
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)  # glibc keeps what is freed below the top of its heap
    return freed
