"""How far a GPU's default generator of random numbers is, told and moved on by native code.

    words = finder(call)(device)        # STATE is 0: `irc::philox_state` is called in Python

`irc.boundary.cuda_generator` does so in Python, with the same functions of torch, which it tests; a
call of it takes 30 us of an H200's host, and a model with attention and dropouts makes one for each
layer.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch

from irc.boundary import cuda_generator

#: Words: torch's functions that give a generator's state and write it to a GPU's memory, a device's
#: generator, its lock, and what takes and gives back that.
STATE, UNPACK, GENERATOR, MUTEX, LOCK, UNLOCK, WORDS = range(7)
#: The operator that such a draw stands for.
OPERATOR = "irc.philox_state.default"


class DrawWords(ctypes.c_uint64 * WORDS):  # type: ignore[misc]
    """The words of one device; a ctypes array holds their address at offset 16."""


#: Draws by `irc.codegen.host.support_draws`: words, by how much, where to, on which stream.
Caller = Callable[[DrawWords, int, int, int], int]


def finder(call: Caller) -> Callable[[int], DrawWords]:
    """What gives the words of a device, the function tested before by `call`."""
    tested: list[bool] = []

    def draws(device: int) -> DrawWords:
        if torch.cuda.is_current_stream_capturing():
            return DrawWords()  # no time for a test
        words = words_of(device)
        if words[STATE] and not tested:
            tested.append(cuda_generator.moves_on(lambda by, on: drawn(call, by, on)))
        return words if words[STATE] and tested[0] else DrawWords()

    return draws


def words_of(device: int) -> DrawWords:
    """The words of a device, not tested; all 0 where torch's generators aren't known."""
    words, known = DrawWords(), cuda_generator.drawer()
    if known is not None:
        generator = cuda_generator.generator_address(device)
        functions = {STATE: known.state, UNPACK: known.unpack, LOCK: known.lock,
                     UNLOCK: known.unlock}  # fmt: skip
        for word, function in functions.items():
            words[word] = ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
        words[GENERATOR], words[MUTEX] = generator, generator + known.mutex
    return words


def drawn(call: Caller, increment: int, device: int) -> torch.Tensor:
    """As `irc::philox_state`, by native code. Raises RuntimeError where that doesn't draw."""
    state = torch.empty(2, dtype=torch.int64, device=torch.device("cuda", device))
    stream = torch.cuda.current_stream(device).cuda_stream
    if call(words_of(device), increment, state.data_ptr(), stream):
        raise RuntimeError("the generator wasn't moved on")
    return state


__all__ = [
    "GENERATOR", "LOCK", "MUTEX", "OPERATOR", "STATE", "UNLOCK", "UNPACK", "WORDS", "DrawWords",
    "drawn", "finder", "words_of",
]  # fmt: skip
