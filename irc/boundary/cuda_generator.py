"""A GPU's default generator below torch: what its next numbers are made of.

    philox_state(increment, device)         # irc::philox_state, an i64[2]: seed, offset

A kernel of torch's that draws random numbers is told the generator's seed and how many numbers each
thread has drawn; while a CUDA graph is captured, where these will stand at each replay.
`CUDAGeneratorImpl::philox_cuda_state` gives them and moves the generator on, under the generator's
lock; torch's `unpack_cudnn_wrapper` launches a kernel that writes them to memory. Neither is
public, so `drawer` tests them first; `dropout_draws` tests how torch's dropout draws.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import torch
from torch.utils._python_dispatch import _disable_current_modes

from irc.boundary.once import once
from irc.dialects.math.philox import philox_number

_STATE = "_ZN2at17CUDAGeneratorImpl17philox_cuda_stateEm"
_UNPACK = "_ZN2at4cuda6philox20unpack_cudnn_wrapperENS_15PhiloxCudaStateEPlS3_P11CUstream_st"
#: A C++ object of Python's `torch.Generator` holds a pointer to torch's own after its header.
_GENERATOR = object.__basicsize__
#: A std::mutex that nobody holds is zeros; it stands after the counts of references.
_MUTEX_WORDS, _MUTEX_PLACES = 5, (16, 24)
#: Of the tests' generators.
_SEED = 2**62 + 77
#: How long a thread is waited for that must stand still, in seconds.
_PATIENCE = 0.02


class _GeneratorState(ctypes.Structure):
    """A PhiloxCudaState: two words, how far a graph is, and whether one is captured."""

    _fields_ = (("words", ctypes.c_uint64 * 4),)


@attrs.frozen(eq=False)
class Drawer:
    """What moves generators on: torch's functions, and where a generator's lock stands."""

    state: Callable[[Any, int, int], None]
    unpack: Callable[[_GeneratorState, int, int, int], None]
    lock: Callable[[int], int]
    unlock: Callable[[int], int]
    mutex: int

    def draw(self, increment: int, device: int) -> torch.Tensor:
        """`philox_state` of a device by its number, on its current stream."""
        generator, state = generator_address(device), _GeneratorState()
        words = torch.empty(2, dtype=torch.int64, device=torch.device("cuda", device))
        with self._locked(generator):
            self.state(ctypes.byref(state), generator, increment)
        at, stream = words.data_ptr(), torch.cuda.current_stream(device).cuda_stream
        self.unpack(state, at, at + words.itemsize, stream)
        return words

    @contextmanager
    def _locked(self, generator: int) -> Iterator[None]:
        self.lock(generator + self.mutex)
        try:
            yield
        finally:
            self.unlock(generator + self.mutex)


def philox_state(increment: int, device: torch.device) -> torch.Tensor:
    """The seed of a device's default generator and how many numbers a thread has drawn, i64[2] on
    that device; the generator goes on by `increment`. Raises RuntimeError without a GPU of which
    that can be told."""
    known = drawer()
    if known is None:
        raise RuntimeError("torch's generator of random numbers for GPUs can't be moved on")
    index = torch.cuda.current_device() if device.index is None else device.index
    if index == torch.cuda.current_device():
        return known.draw(increment, index)
    with torch.cuda.device(index):
        return known.draw(increment, index)


#: What the programs' own operators of GPUs do, by name.
FUNCTIONS: dict[str, Callable[..., Any]] = {"philox_state": philox_state}


def generator_address(device: int) -> int:
    """Where a device's default generator is."""
    generator = torch.cuda.default_generators[device]
    return ctypes.c_uint64.from_address(id(generator) + _GENERATOR).value


@once
def drawer() -> Drawer | None:
    """What draws, once it has done so as torch does; None where torch is other than is known."""
    if not torch.cuda.is_available():
        return None
    try:
        library: Any = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cuda.so"))
        state, unpack = getattr(library, _STATE), getattr(library, _UNPACK)
        system: Any = ctypes.CDLL(None)
        lock, unlock = system.pthread_mutex_lock, system.pthread_mutex_unlock
        attempt = system.pthread_mutex_trylock
    except (AttributeError, OSError):
        return None
    state.restype, unpack.restype = None, None
    state.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
    unpack.argtypes = (_GeneratorState, *[ctypes.c_void_p] * 3)
    for function in (lock, unlock, attempt):
        function.argtypes = (ctypes.c_void_p,)
    with _disable_current_modes(), _as_it_was(torch.cuda.current_device()):
        mutex = _mutex(attempt, unlock)
        if mutex is None:
            return None
        known = Drawer(state, unpack, lock, unlock, mutex)
        return known if moves_on(known.draw) else None


def _mutex(attempt: Callable[[int], int], unlock: Callable[[int], int]) -> int | None:
    """How far into a generator its lock stands: the zeros that keep another thread from drawing."""
    device = torch.cuda.current_device()
    generator = generator_address(device)
    for place in _MUTEX_PLACES:
        words = (ctypes.c_uint64 * _MUTEX_WORDS).from_address(generator + place)
        if any(words):
            continue
        if attempt(generator + place):
            return None
        # An operator that draws waits without the interpreter's lock; the generator's own methods
        # would wait with it, for ever.
        asked = threading.Thread(target=torch.rand, args=(1,), kwargs={"device": "cuda"})
        asked.start()
        asked.join(_PATIENCE)
        waits = asked.is_alive()
        unlock(generator + place)
        asked.join()
        return place if waits else None
    return None


@contextmanager
def _as_it_was(device: int) -> Iterator[Any]:
    """The default generator of a device, put back afterwards."""
    generator = torch.cuda.default_generators[device]
    before = generator.get_state()
    try:
        yield generator
    finally:
        generator.set_state(before)


def moves_on(draw: Callable[[int, int], torch.Tensor]) -> bool:
    """Whether `draw`, of an increment and a device, tells the seed and the offset of the default
    generator of the present device, and has it go on as is said; it is as it was then."""
    device = torch.cuda.current_device()
    with _disable_current_modes(), _as_it_was(device) as generator:
        generator.manual_seed(_SEED)
        generator.set_offset(400)
        words = [draw(12, device).tolist(), draw(4, device).tolist()]
        return words == [[_SEED, 400], [_SEED, 412]] and bool(generator.get_offset() == 416)


# -- how torch's kernel of a dropout draws


@attrs.frozen
class Turns:
    """How a tensor is gone through: by `threads`, in turns of `vector` neighbours a thread, which
    draws `numbers` for them; single ones in the order of the indices, others of the places."""

    threads: int
    vector: int

    @property
    def numbers(self) -> int:
        """Numbers of a turn: single elements take what is left of the last four."""
        return 1 if self.vector == 1 else max(self.vector, DRAWN)


@attrs.frozen
class Draws:
    """How torch's kernel of a dropout draws: by so many threads at most, in blocks of BLOCK."""

    most_threads: int

    def turns(self, count: int, size: int) -> Turns:
        """How `count` elements of `size` bytes without gaps, from an aligned address on, are gone
        through: by the widest loads that leave nothing over."""
        vector = next(v for v in (WIDEST // size, 4, 2, 1) if count % v == 0)
        return Turns(self._threads(count), vector)

    def increment(self, count: int) -> int:
        """By how much the generator goes on: whole turns of four numbers a thread."""
        return -(-count // (DRAWN * self._threads(count))) * DRAWN

    def _threads(self, count: int) -> int:
        return min(self.most_threads, -(-count // BLOCK) * BLOCK)


#: The threads of a block, the numbers that are drawn at once, and the bytes of the widest loads.
BLOCK, DRAWN, WIDEST = 256, 4, 16


@once
def dropout_draws() -> Draws | None:
    """How `aten.native_dropout` draws on this process's GPUs; None where that is not known, as its
    numbers are others than are expected, or the GPUs of kinds that draw differently."""
    if drawer() is None:
        return None
    kinds = {_threads_at_most(each) for each in range(torch.cuda.device_count())}
    if len(kinds) > 1:
        return None
    draws, device = Draws(kinds.pop()), torch.cuda.current_device()
    turn = draws.most_threads
    with _disable_current_modes(), torch.inference_mode(False), _as_it_was(device):
        same = all(
            _draws_so(draws, count, dtype, device)
            for dtype in (torch.float32, torch.bfloat16)
            for count in (1, 1001, 1002, 1004, 1008, 5 * turn + 1, 5 * turn + 2, 9 * turn + 4,
                          17 * turn + 8)
        )  # fmt: skip
    return draws if same else None


def _threads_at_most(device: int) -> int:
    """The threads of torch's kernels that go over memory: as many as a GPU holds at once."""
    known = torch.cuda.get_device_properties(device)
    blocks = known.max_threads_per_multi_processor // BLOCK
    return int(known.multi_processor_count * blocks * BLOCK)


def _draws_so(draws: Draws, count: int, dtype: torch.dtype, device: int) -> bool:
    """Whether a dropout of so many elements keeps those that it should, looked at in places of
    the first, the middle and the last turn."""
    generator = torch.cuda.default_generators[device]
    generator.manual_seed(_SEED)
    generator.set_offset(8)
    source = torch.ones(count, device=torch.device("cuda", device), dtype=dtype)
    kept = torch.native_dropout(source, 0.5, True)[1]
    turns = draws.turns(count, dtype.itemsize)
    places = sorted({p % count for k in range(24) for p in (k, count - 1 - k, count // 2 + k)})
    for place, was in zip(places, kept[places].tolist(), strict=True):
        turn, lane = divmod(place, turns.vector)
        number = 8 + turn // turns.threads * turns.numbers + lane
        # A uniform number is bits / 2**32 + 2**-33, rounded to f32: half of the bits are below.
        if was != (philox_number(_SEED, turn % turns.threads, number) < 2**31):
            return False
    return generator.get_offset() == 8 + draws.increment(count)


__all__ = ["FUNCTIONS", "Drawer", "Draws", "drawer", "dropout_draws", "generator_address",
           "moves_on", "philox_state"]  # fmt: skip
