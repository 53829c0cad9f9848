"""torch's functions for a GPU's generator of random numbers, for `gpu_stub`."""

from __future__ import annotations

import ctypes

import attrs

from irc.boundary import cuda_draws
from irc.boundary.cuda_draws import DrawWords

_P, _Q = ctypes.c_void_p, ctypes.c_uint64
_GENERATOR, _MUTEX = 0x6E0000, 0x6E0010


class _State(ctypes.Structure):
    _fields_ = (("words", ctypes.c_uint64 * 4),)


@attrs.define(eq=False, slots=False)
class StubDraws:
    """A generator. `missing`: torch lacks the functions; `throws`: the functions that throw, by
    their words; `held`: whether its lock is; `streams`: on which its state was written."""

    seed: int = 2**63 + 5
    offset: int = 0
    missing: bool = False
    throws: dict[int, int] = attrs.field(factory=dict)
    held: bool = False
    streams: list[int] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self._functions = {
            cuda_draws.STATE: ctypes.CFUNCTYPE(_P, _P, _P, _Q)(self._state),
            cuda_draws.UNPACK: ctypes.CFUNCTYPE(None, _State, _P, _P, _P)(self._unpack),
            cuda_draws.LOCK: ctypes.CFUNCTYPE(ctypes.c_int, _P)(self._lock),
            cuda_draws.UNLOCK: ctypes.CFUNCTYPE(ctypes.c_int, _P)(self._unlock),
        }

    def words(self, device: int) -> DrawWords:
        """As `cuda_draws.finder` gives them, not tested."""
        words = DrawWords()
        if not self.missing:
            for word, function in self._functions.items():
                words[word] = ctypes.cast(function, _P).value or 0
            words[cuda_draws.GENERATOR] = _GENERATOR + device
            words[cuda_draws.MUTEX] = _MUTEX + device
            for word, address in self.throws.items():
                words[word] = address
        return words

    def _state(self, out: int, generator: int, increment: int) -> int:
        assert generator == _GENERATOR and self.held
        (ctypes.c_uint64 * 2).from_address(out)[:] = [self.seed, self.offset]
        self.offset += increment
        return out

    def _unpack(self, state: _State, seed: int, offset: int, stream: int) -> None:
        assert offset == seed + 8 and not self.held
        (ctypes.c_uint64 * 2).from_address(seed)[:] = state.words[:2]
        self.streams.append(stream or 0)

    def _lock(self, mutex: int) -> int:
        assert mutex == _MUTEX and not self.held
        self.held = True
        return 0

    def _unlock(self, mutex: int) -> int:
        assert mutex == _MUTEX and self.held
        self.held = False
        return 0
