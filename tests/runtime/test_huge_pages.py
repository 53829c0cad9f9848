"""Large fresh results ask for huge pages from a program's second call on, and stay ordinary."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from irc.codegen.host.support import HUGE_RESULT_THRESHOLD

SMAPS = Path("/proc/self/smaps")
LARGE = HUGE_RESULT_THRESHOLD // 4 + 999


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
def test_a_large_result_asks_for_huge_pages(dynamic):
    result = doubled(LARGE, dynamic)
    assert "hg" in flags_at(result.data_ptr() + HUGE_RESULT_THRESHOLD // 2)
    assert bool((result == 2).all())


@pytest.mark.skipif(not SMAPS.exists(), reason="no /proc/self/smaps")
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_first_call_does_not_wait_for_huge_pages(dynamic):
    result = doubled(LARGE, dynamic, calls=1)
    assert "hg" not in flags_at(result.data_ptr() + HUGE_RESULT_THRESHOLD // 2)
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
