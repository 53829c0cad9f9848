"""Promises about the process: threads, forks, interrupts, errors half way in a call."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import FrameType

import pytest
import torch

import irc
from irc.codegen.llvm import jit
from irc.runtime import metrics

ROOT = Path(__file__).resolve().parents[2]
IRC = str(ROOT / "irc")


def work(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """A product between kernels, with memory for results in between, of sizes that change."""
    return torch.softmax((x * 2 + 1) @ w, -1).cumsum(0) @ w.t()


def in_threads(count: int, run) -> list[BaseException]:
    """Run `run(number)` in threads at once; what they raised."""
    raised: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            run(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return raised


def test_three_threads_call_one_executable_with_changing_sizes() -> None:
    torch.manual_seed(0)
    w = torch.randn(24, 40)
    program = irc.compile(work, (torch.randn(64, 24), w), dynamic=True)

    def run(number: int) -> None:
        generator = torch.Generator().manual_seed(number)
        for _ in range(20):
            rows = int(torch.randint(2, 700, (), generator=generator))
            x = torch.randn(rows, 24, generator=generator)
            torch.testing.assert_close(program(x, w), work(x, w), atol=1e-3, rtol=1e-4)

    assert in_threads(3, run) == []


def test_threads_compile_at_once() -> None:
    """Programs are compiled one after the other, and each thread gets its own."""
    x = torch.randn(5, 7)

    def run(number: int) -> None:
        program = irc.compile(lambda a: torch.exp(a * number).sum(-1), (x,))
        torch.testing.assert_close(program(x), torch.exp(x * number).sum(-1))

    assert in_threads(3, run) == []


FORK = textwrap.dedent("""
    import os, torch, irc
    torch.set_num_threads(2)
    f = lambda x: torch.softmax(x.exp() @ x.t(), -1).sum(0)
    program = irc.compile(f, (torch.randn(64, 24),), dynamic=True)
    close = lambda x: torch.allclose(program(x), f(x), atol=1e-4)
    assert close(torch.randn(300, 24))
    child = os.fork()
    if not child:
        torch.set_num_threads(1)   # the rule of torch's own operators
        good = all(close(torch.randn(n, 24)) for n in (64, 2, 900))
        x = torch.randn(9)
        good = good and torch.allclose(irc.compile(torch.sin, (x,))(x), x.sin())
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert close(torch.randn(500, 24))
""")


def test_a_child_of_a_fork_calls_and_compiles() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK], cwd=ROOT, timeout=120, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


WAITING = textwrap.dedent("""
    import faulthandler, threading

    import torch
    from torch._C._distributed_c10d import _create_work_from_future, _register_work

    import irc

    faulthandler.dump_traceback_later(60, exit=True)
    wait = torch.ops._c10d_functional.wait_tensor.default
    run = torch.compile(lambda x: wait(x) + 1, backend="irc", fullgraph=True)
    x = torch.zeros(4)
    assert run(x).tolist() == [1.0] * 4
    future, called = torch.futures.Future(), threading.Event()
    _register_work(x, _create_work_from_future(future))

    def finish():
        called.wait()
        x.fill_(3)
        future.set_result([x])

    threading.Thread(target=finish).start()
    called.set()
    assert run(x).tolist() == [4.0] * 4
""")


def test_a_call_that_waits_for_a_thread_lets_it_run() -> None:
    """What a collective waits for may need Python: its thread drops tensors."""
    done = subprocess.run(
        [sys.executable, "-c", WAITING], cwd=ROOT, timeout=120, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


class Interrupt:
    """Raises KeyboardInterrupt at the `after`-th call of a function of irc's in this thread."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(IRC):
            self.left -= 1
            if self.left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt


def calls_of_a_compile(compiled) -> int:
    count = Interrupt(10**9)
    sys.setprofile(count)
    try:
        compiled()
    finally:
        sys.setprofile(None)
    return 10**9 - count.left


def test_an_interrupt_while_compiling_leaves_nothing_locked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("IRC_DISABLE_CACHE", "1")
    x = torch.randn(6, 8)

    def compiled():
        return irc.compile(lambda a: torch.softmax(a * 2, -1), (x,))

    compiled()
    compiled()  # with all that the first one loaded, tables of patterns are made anew
    total = calls_of_a_compile(compiled)
    for part in (0.001, 0.05, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99):
        with pytest.raises(KeyboardInterrupt):
            sys.setprofile(Interrupt(int(total * part) + 1))
            try:
                compiled()
            finally:
                sys.setprofile(None)
        assert gc.isenabled()
        for lock in (jit._lock, metrics._lock):
            assert lock.acquire(timeout=5)
            lock.release()
    torch.testing.assert_close(compiled()(x), torch.softmax(x * 2, -1))


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_an_error_half_way_in_a_call_gives_back_its_memory() -> None:
    """An index that is out of range is found behind 8 MB of intermediate results."""

    def half_way(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.softmax((x @ x).exp()[i] @ x, -1)

    x = torch.randn(1024, 1024) / 100
    good, bad = torch.randint(0, 1024, (1024,)), torch.full((1024,), 1024)
    program = irc.compile(half_way, (x, good))
    expected = half_way(x, good)

    def fail(times: int) -> None:
        for _ in range(times):
            with pytest.raises((IndexError, RuntimeError)):
                program(x, bad)

    program(x, good)
    fail(3)
    before = resident_bytes()
    fail(20)
    assert resident_bytes() - before < 16 << 20
    torch.testing.assert_close(program(x, good), expected, atol=1e-5, rtol=1e-4)
