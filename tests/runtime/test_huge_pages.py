"""Large fresh results ask for huge pages from a program's second call on, and stay ordinary."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path

import pytest
import torch

from irc.runtime.native import _support_object

SMAPS = Path("/proc/self/smaps")
HUGE_PAGE = 2 << 20
#: Elements. malloc maps the large one afresh; the small one holds at least one whole huge page.
LARGE = (32 << 20) // 4 + 999
SMALL = 2 * HUGE_PAGE // 4 + 999


def flags_at(address: int) -> list[str]:
    """The kernel's flags of the mapping that holds an address (proc(5), VmFlags)."""
    inside = False
    for line in SMAPS.read_text().splitlines():
        word = line.split()[0]
        if word == "VmFlags:" and inside:
            return line.split()[1:]
        low, dash, high = word.partition("-")
        if dash and ":" not in word:
            inside = int(low, 16) <= address < int(high, 16)
    raise AssertionError(f"no mapping holds {address:#x}")


def doubled(size: int, dynamic: bool, calls: int = 2) -> torch.Tensor:
    compiled = torch.compile(lambda x: x + x, backend="irc", dynamic=dynamic)
    torch._dynamo.reset()
    x = torch.ones(size)
    for _ in range(calls):
        result = compiled(x)
    return result


@pytest.mark.skipif(not SMAPS.exists(), reason="no /proc/self/smaps")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_large_result_asks_for_huge_pages(dynamic, size):
    result = doubled(size, dynamic)
    assert "hg" in flags_at(-(-result.data_ptr() // HUGE_PAGE) * HUGE_PAGE)
    assert bool((result == 2).all())


@pytest.mark.skipif(not SMAPS.exists(), reason="no /proc/self/smaps")
@pytest.mark.parametrize(
    ("start", "size", "pages"),
    [(64, HUGE_PAGE, []), (0, HUGE_PAGE, [0]), (64, 2 * HUGE_PAGE, [1]),
     (HUGE_PAGE - 64, 2 * HUGE_PAGE + 64, [1, 2]), (0, HUGE_PAGE - 1, [])],
)  # fmt: skip
def test_only_whole_pages_within_the_result_are_asked_for(start, size, pages):
    ask = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
    with mmap.mmap(-1, 5 * HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        hold = ctypes.c_char.from_buffer(memory)
        first = -(-ctypes.addressof(hold) // HUGE_PAGE) * HUGE_PAGE
        ask(_support_object().address("irc_huge_pages"))(first + start, size)
        places = [first + k * HUGE_PAGE + HUGE_PAGE // 2 for k in range(4)]
        assert [k for k, place in enumerate(places) if "hg" in flags_at(place)] == pages
        del hold


@pytest.mark.skipif(not SMAPS.exists(), reason="no /proc/self/smaps")
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_first_call_does_not_wait_for_huge_pages(dynamic):
    result = doubled(LARGE, dynamic, calls=1)
    assert "hg" not in flags_at(result.data_ptr() + LARGE * 2)
    assert bool((result == 2).all())


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_large_result_is_an_ordinary_tensor(dynamic):
    result = doubled(LARGE, dynamic)
    assert result.untyped_storage().nbytes() == 4 * LARGE
    result.resize_(2 * LARGE)
    assert bool((result[:LARGE] == 2).all()) and result.untyped_storage().nbytes() == 8 * LARGE
    other = torch.zeros(3)
    other.set_(result)
    assert other.data_ptr() == result.data_ptr() and other.shape == (2 * LARGE,)
    result.resize_(0)
    assert doubled(7, dynamic).tolist() == [2.0] * 7
