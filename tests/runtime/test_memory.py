"""Memory that programs keep between calls: shared, bounded, and given back."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

import irc
from irc.boundary import torch_abi
from irc.codegen.host.support_arena import POOL_LIMIT, POOL_PLACES
from irc.runtime.memory import kept_bytes

pytestmark = [
    pytest.mark.fault("K8"),
    pytest.mark.skipif(not torch_abi.available(), reason="no native host functions"),
]
MIB = 1 << 20


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRC_DISABLE_CACHE", "1")
    gc.collect()
    irc.release_memory()
    assert kept_bytes() == 0


def products(scale: float):
    def f(x):
        a = torch.sin(x) + scale
        return (torch.tanh(a @ a / len(x)) @ a / len(x)).mean(0)

    return f


def program(side: int, scale: float = 1.0):
    """A program with a few squares of `side` in its arena, and its function."""
    f = products(scale)
    return irc.compile(f, (torch.randn(side, side),)), f


def resident() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def test_programs_share_what_they_keep():
    x = torch.randn(600, 600)
    programs = [program(600, k)[0] for k in range(4)]
    programs[0](x)
    one = kept_bytes()
    assert one > MIB
    for compiled in programs:
        compiled(x)
    assert kept_bytes() <= max(POOL_LIMIT, one)
    assert irc.release_memory() >= one and kept_bytes() == 0


def held_by_four() -> None:
    """Print what four programs add to this process, in bytes."""
    x = torch.randn(1792, 1792)
    programs = [program(1792, k)[0] for k in range(4)]
    x @ x  # buffers of the library
    irc.release_memory()
    before = resident()
    for compiled in programs:
        compiled(x)
    gc.collect()
    print(resident() - before)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_four_programs_hold_less_than_64_mib():
    """One of them has three squares of 12 MiB, and a factor that is packed.

    In a process of their own: what a large one holds moves by megabytes between two readings.
    """
    child = "from tests.runtime.test_memory import held_by_four; held_by_four()"
    environment = os.environ | {"IRC_DISABLE_CACHE": "1"}
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", child], cwd=root, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert 0 < int(ran.stdout) < 64 * MIB


def test_the_largest_block_stays_however_large():
    compiled, f = program(2100)
    x = torch.randn(2100, 2100)
    compiled(x)
    large = kept_bytes()
    assert large > POOL_LIMIT
    small, g = program(600)
    y = torch.randn(600, 600)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), f(x), rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(small(y), g(y), rtol=1e-3, atol=1e-4)
        assert kept_bytes() == large
    del compiled
    gc.collect()
    assert kept_bytes() <= POOL_LIMIT


def test_what_dies_gives_back():
    compiled, _ = program(40)
    large, _ = program(700)
    compiled(torch.randn(40, 40))
    large(torch.randn(700, 700))
    assert kept_bytes() > MIB
    del large
    gc.collect()
    assert 0 < kept_bytes() < MIB
    del compiled
    gc.collect()
    assert kept_bytes() == 0


def test_more_programs_than_places_take_turns():
    """Handles that a block keeps are those of the program that used it last."""
    sides = [550 + 7 * k for k in range(POOL_PLACES // 2)]
    programs = [(program(side, side / 100), torch.randn(side, side)) for side in sides]
    for _ in range(3):
        for (compiled, f), x in programs:
            torch.testing.assert_close(compiled(x), f(x), rtol=1e-3, atol=1e-4)
        assert kept_bytes() <= POOL_LIMIT


def test_threads_keep_no_more_than_one_would():
    made = [(program(side), torch.randn(side, side)) for side in (600, 700, 1300)]
    wanted = [f(x) for (_, f), x in made]
    wrong: list[str] = []

    def work(first: int) -> None:
        for k in range(6):
            (compiled, _), x = made[(first + k) % len(made)]
            expected = wanted[(first + k) % len(made)]
            if not torch.allclose(compiled(x), expected, rtol=1e-3, atol=1e-4):
                wrong.append(f"{first} {k}")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and kept_bytes() <= POOL_LIMIT


def test_memory_of_a_running_call_stays():
    seen: list[int] = []

    @torch.library.custom_op("irc_memory::release", mutates_args=())
    def release(x: torch.Tensor) -> torch.Tensor:
        seen.append(irc.release_memory())
        return x + 1

    @release.register_fake
    def _(x):
        return torch.empty_like(x)

    def f(x):
        y = x.sin()
        z = (x @ x / len(x)).cos()
        return (release(y) @ z / len(x)).mean(0)

    x = torch.randn(700, 700)
    compiled = irc.compile(f, (x,))
    for _ in range(2):
        torch.testing.assert_close(compiled(x), f(x), rtol=1e-3, atol=1e-4)
    assert seen[::2] == [0, 0]
