"""Memory that native programs keep between calls: the pool of the process, and giving it back."""

from __future__ import annotations

import ctypes
import functools
import itertools
import weakref
from collections.abc import Callable

from irc.codegen.host import support_arena as arena

_serials = itertools.count(1)
_pool = (ctypes.c_uint64 * arena.POOL_WORDS)()
_NOBODY = 0


class ArenaSlots:
    """A program's slots for its blocks, at `address`. `close` frees what only the program used."""

    def __init__(self, function: Callable[[str], int]) -> None:
        self._words = (ctypes.c_uint64 * arena.SLOTS_WORDS)()
        self._words[arena.ARENA_SLOTS] = ctypes.addressof(_pool)
        self.serial = self._words[arena.ARENA_SLOTS + 1] = next(_serials)
        self.address = ctypes.addressof(self._words)
        self._drain = _native(function("irc_arena_drain"), 1)
        self._drain_pool = _native(function("irc_pool_drain"), 3)
        _every.add(self)

    def drain(self) -> int:
        """Free the blocks in the slots; how many bytes they held."""
        return self._drain(self.address)

    def drain_pool(self, owner: int, above: int) -> int:
        """Free the blocks in the pool that `owner` used last, or of more than `above` bytes."""
        return self._drain_pool(ctypes.addressof(_pool), owner, above)

    def close(self) -> None:
        """The program is gone: free its blocks, and such as only a large program needs."""
        self.drain()
        self.drain_pool(self.serial, arena.POOL_LIMIT)


_every: weakref.WeakSet[ArenaSlots] = weakref.WeakSet()


@functools.cache
def _native(address: int, arguments: int) -> Callable[..., int]:
    """A support function that needs the interpreter lock, of 64-bit words."""
    kinds = [ctypes.c_int64] * arguments
    return ctypes.PYFUNCTYPE(ctypes.c_int64, *kinds)(address)


def kept_bytes() -> int:
    """The bytes that programs keep for their next calls."""
    return _pool[0] + _pool[1]


def release_memory() -> int:
    """Free the memory that programs keep for their next calls; how many bytes it was.

    The next call of each program allocates again. Memory of calls that run now stays. What torch's
    allocators keep is theirs (`torch.cuda.empty_cache`). Processes that wait to compile kernels
    for a GPU end.
    """
    from irc.codegen.triton import workers  # not for a warm start

    workers.release()
    freed = 0
    for slots in list(_every):
        freed += slots.drain() + slots.drain_pool(_NOBODY, -1)
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)  # glibc keeps what is freed below the top of its heap
    return freed
