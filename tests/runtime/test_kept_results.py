"""Large results: their memory serves the next ones, never while somebody holds it."""

from __future__ import annotations

import copy
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading

import pytest
import torch

import irc
from irc.boundary import torch_abi
from irc.codegen.host import support_kept
from irc.codegen.host.support_arena import POOL_MOST, POOLED_BYTES
from irc.runtime import memory
from irc.runtime.memory import kept_bytes, kept_results

pytestmark = [
    pytest.mark.skipif(not torch_abi.available(), reason="no native host functions"),
    pytest.mark.skipif(
        torch_abi.symbol_address("torch_from_blob") is None, reason="torch before 2.11"
    ),
]
ROWS = 1 + POOLED_BYTES // (4 * 1000)


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    gc.collect()
    irc.release_memory()


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1


def program(rows: int = ROWS):
    x = torch.randn(rows, 1000)
    return irc.compile(doubled, (x,)), x


def test_what_is_gone_serves_again():
    call, x = program()
    first = call(x)
    place = first.data_ptr()
    del first
    assert kept_results().idle_bytes() >= ROWS * 4000
    second = call(-x)
    assert second.data_ptr() == place and kept_results().idle_bytes() == 0
    torch.testing.assert_close(second, doubled(-x))


def test_what_is_held_stays():
    call, x = program()
    inputs = [x + k for k in range(5)]
    results = [call(each) for each in inputs]
    views = [each[3:7].t() for each in results]
    expected = [doubled(each) for each in inputs]
    assert len({each.data_ptr() for each in results}) == 5
    del results
    for k in range(8):
        call(x * k)
    for view, each in zip(views, expected, strict=True):
        torch.testing.assert_close(view, each[3:7].t())


def test_small_results_are_torchs():
    call, x = program(ROWS - 1)
    result = call(x)
    del result
    assert kept_results().idle_bytes() == 0


def test_sizes_that_change():
    """A block serves what needs most of it, and nothing that needs little."""
    compiled = torch.compile(doubled, backend="irc", dynamic=True)
    before = kept_results().idle_bytes()
    large = torch.randn(10 * ROWS, 1000)
    place = compiled(large).data_ptr()
    small = compiled(large[:ROWS])
    assert small.data_ptr() != place
    near = compiled(large[: 9 * ROWS])
    assert near.data_ptr() == place
    torch.testing.assert_close(near, doubled(large[: 9 * ROWS]))
    torch.testing.assert_close(small, doubled(large[:ROWS]))
    assert kept_results().idle_bytes() == before


@pytest.mark.parametrize("size", [(2 * ROWS, 1000), (3, 5)])
def test_a_result_can_be_resized(size):
    call, x = program()
    result = call(x)
    flat = result.flatten()
    count = min(flat.numel(), size[0] * size[1])
    result.resize_(size)
    assert result.shape == size and result.untyped_storage().resizable()
    torch.testing.assert_close(result.flatten()[:count], doubled(x).flatten()[:count])


def test_a_storage_can_be_emptied_and_filled_again():
    call, x = program()
    result = call(x)
    result.untyped_storage().resize_(0)
    assert kept_results().idle_bytes() >= ROWS * 4000
    result.untyped_storage().resize_(ROWS * 4000)
    torch.testing.assert_close(result.copy_(x), x)


def test_gradients_serve_again():
    weight = torch.randn(1000, 600, requires_grad=True)
    step = torch.compile(lambda x: (x @ weight).sin().sum(), backend="irc")
    x = torch.randn(50, 1000)
    step(x).backward()
    expected = weight.grad.clone()
    place = weight.grad.data_ptr()
    weight.grad = None
    step(x).backward()
    torch.testing.assert_close(weight.grad, expected)
    assert weight.grad.data_ptr() == place
    step(x).backward()
    torch.testing.assert_close(weight.grad, 2 * expected)


def test_other_threads_free():
    call, x = program()
    wrong: list[int] = []

    def work(number: int) -> None:
        mine = x + number
        expected = doubled(mine)
        held: list[torch.Tensor] = []
        for k in range(40):
            held.append(call(mine))
            if k % 3 == number % 3:
                held.pop(0)
            if not all(torch.equal(each, expected) for each in held[-2:]):
                wrong.append(number)
            del held[:-3]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    gc.collect()
    idle = kept_results().idle_bytes()
    assert 0 < idle <= min(memory.RESULTS_LIMIT, memory.memory_bytes() // memory.RESULTS_SHARE)
    assert irc.release_memory() >= idle and kept_bytes() == 0


def test_no_more_is_kept_than_allowed():
    """What leaves for others does so in turn, and a block beyond the limit isn't kept."""
    call, x = program()
    words, most = kept_results()._words, support_kept.KEPT_HEAD + POOL_MOST
    allowed = words[most]
    try:
        words[most] = 3 * 4000 * ROWS + 1000
        results = [call(x) for _ in range(6)]
        places = [each.data_ptr() for each in results]
        while results:
            del results[0]
        assert 2 * 4000 * ROWS < kept_results().idle_bytes() <= words[most]
        again = [call(x) for _ in range(3)]
        assert {each.data_ptr() for each in again} <= set(places)
        del again
        words[most] = 100
        call(x)
        assert kept_results().idle_bytes() <= 100
    finally:
        words[most] = allowed


def test_the_last_program_gives_back():
    code = f"""
import gc, torch, irc
from irc.runtime.memory import kept_bytes
x = torch.randn({ROWS}, 1000)
call = irc.compile(lambda x: x * 2, (x,))
held = call(x)
call(x)
assert kept_bytes() > {POOLED_BYTES}
del call
gc.collect()
assert kept_bytes() == 0
assert torch.equal(held, x * 2)
del held
assert kept_bytes() == 0
call = irc.compile(lambda x: x * 3, (x,))
call(x)
assert kept_bytes() > {POOLED_BYTES}
assert irc.release_memory() > {POOLED_BYTES} and kept_bytes() == 0
"""
    run_alone(code)


def run_alone(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "__cxa_atexit"), reason="another C library")
def test_results_outlive_the_interpreter():
    """As one that C++ holds until the process ends."""
    run_alone(f"""
import ctypes, torch, irc
from irc.boundary import torch_abi
x = torch.randn({ROWS}, 1000)
call = irc.compile(lambda x: x * 2, (x,))
word, handle, result = ctypes.c_void_p, ctypes.c_void_p(), call(x)
own = torch_abi.c_function("aoti_torch_new_tensor_handle", ctypes.c_int32, word, word)
assert own(torch_abi.tensor_handle(result), ctypes.addressof(handle)) == 0
at_exit = ctypes.CDLL(None)["__cxa_atexit"]
at_exit.argtypes = [word, word, word]
assert at_exit(torch_abi.symbol_address("aoti_torch_delete_tensor_object"), handle, None) == 0
torch.held = call(x)
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system doesn't fork")
def test_a_forked_child_has_its_own():
    run_alone(f"""
import os, torch, irc
torch.set_num_threads(1)
x = torch.randn({ROWS}, 1000)
call = irc.compile(lambda x: x * 2, (x,))
held = call(x)
place = call(x).data_ptr()
child = os.fork()
mine = -x if child == 0 else x
for _ in range(20):
    assert torch.equal(call(mine), mine * 2) and torch.equal(held, x * 2)
if child == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""")


def test_torch_makes_results_where_its_storages_are_unknown():
    run_alone(f"""
import torch
from irc.boundary import storages
storages.facts = lambda: None
import irc
from irc.runtime.memory import kept_results
x = torch.randn({ROWS}, 1000)
call = irc.compile(lambda x: x * 2, (x,))
assert torch.equal(call(x), x * 2) and kept_results().idle_bytes() == 0
""")


def test_temporaries_take_what_is_there():
    """Arrays that are gone when the call ends share blocks that are larger than they need, and are
    never those of a result."""
    rows = (16 << 20) // 4000 + 10

    def f(x):
        y = x.sin()
        z = torch.cumsum(y, 1)[:, :500] + 1
        return torch.cumsum(z, 0) - y.sum()

    x = torch.randn(rows, 1000)
    call = irc.compile(f, (x,))
    expected = f(x.double())
    results = [call(x) for _ in range(3)]
    for each in results:
        torch.testing.assert_close(each.double(), expected, rtol=1e-3, atol=1e-2)
    idle = kept_results().idle_bytes()
    call(x)
    assert kept_results().idle_bytes() <= idle + results[0].nbytes + 64


def test_a_result_is_an_ordinary_tensor():
    call, x = program()
    expected = doubled(x)
    with torch.inference_mode():
        assert call(x).is_inference()
    result = call(x)
    assert not result.is_inference() and not result._is_view() and result.is_leaf
    version = result._version
    result.add_(1)
    assert result._version == version + 1
    (result.requires_grad_() * 2).sum().backward()
    assert result.grad is not None and bool((result.grad == 2).all())
    for copied in (copy.deepcopy(call(x)), torch.from_dlpack(call(x)), pickle.loads(
            pickle.dumps(call(x))), torch.from_numpy(call(x).numpy())):  # fmt: skip
        torch.testing.assert_close(copied, expected)
    shared = call(x)
    shared.share_memory_()
    assert shared.is_shared()
    torch.testing.assert_close(shared, expected)
    other = torch.empty(3)
    other.set_(call(x))
    torch.testing.assert_close(other, expected)
