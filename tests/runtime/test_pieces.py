"""How a kernel's points are divided among threads: `irc_share`."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F

from irc.codegen.host.support_pieces import PIECES
from irc.runtime import native

WORD = ctypes.c_int64
PIECE = ctypes.CFUNCTYPE(None, WORD, WORD, ctypes.c_void_p, WORD)


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def share(extent: int, grain: int, threads: int, piece: Callable[[int, int, int], None]) -> None:
    """Divide [0, extent) among torch's threads."""
    address = native._support_object().address("irc_share")
    run = ctypes.CFUNCTYPE(None, WORD, WORD, WORD, PIECE, ctypes.c_void_p)(address)
    run(extent, grain, threads, PIECE(lambda b, e, _, number: piece(b, e, number)), None)


@pytest.mark.parametrize("extent", [1, 2, 7, 8, 63, 1000])
@pytest.mark.parametrize("grain", [1, 3, 100])
@pytest.mark.parametrize("count", [1, 2, 3, 70])
def test_each_point_is_in_one_piece(threads, extent, grain, count):
    threads(count)
    pieces: list[tuple[int, int]] = []
    share(extent, grain, count, lambda begin, end, _: pieces.append((begin, end)))
    pieces.sort()
    assert [begin for begin, _ in pieces] == [0, *(end for _, end in pieces[:-1])]
    assert pieces[-1][1] == extent
    ends = len(pieces) - sum(end - begin >= grain for begin, end in pieces)
    assert ends <= min(count, -(-extent // grain))  # of each share the last one may be smaller


def test_pieces_of_a_thread_that_is_held_up_are_taken_by_the_others(threads):
    """The piece with the first point is not through until all others are."""
    threads(2)
    done, rest = threading.Event(), {"points": 0}
    lock, extent = threading.Lock(), 2 * PIECES
    waited: list[bool] = []

    def piece(begin: int, end: int, _: int) -> None:
        if begin == 0:
            waited.append(done.wait(timeout=60))
            return
        with lock:
            rest["points"] += end - begin
            if rest["points"] == extent - 1:
                done.set()

    share(extent, 1, 2, piece)
    assert waited == [True] and rest["points"] == extent - 1


def test_a_number_is_of_one_piece_at_a_time(threads):
    threads(3)
    lock, busy, seen = threading.Lock(), set[int](), set[int]()
    both = threading.Barrier(3)
    clashes: list[int] = []

    def piece(begin: int, _: int, number: int) -> None:
        with lock:
            if number in busy:
                clashes.append(number)
            busy.add(number)
            seen.add(number)
        if begin % 8 == 0:  # the first piece of each share: all three threads are here
            both.wait(timeout=60)
        with lock:
            busy.discard(number)

    share(24, 1, 3, piece)
    assert not clashes and seen == {0, 1, 2}


def test_threads_have_parts_of_a_kernels_own_memory(threads):
    """Scores lie in a part of the thread's, whichever heads it takes."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(3, 40, 7, 32).transpose(1, 2) for _ in range(3))
    forced = {"passes": {"before:expand-attention": "expand-attention{force=true}"}}
    with torch.no_grad():
        attend = torch.compile(F.scaled_dot_product_attention, backend="irc", options=forced)
        threads(1)
        alone = attend(q, k, v)
        torch.testing.assert_close(alone, F.scaled_dot_product_attention(q, k, v))
        for count in (2, 3, 5):
            threads(count)
            assert all(torch.equal(attend(q, k, v), alone) for _ in range(40))
