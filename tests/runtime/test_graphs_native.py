"""Replays by native code: over a driver that records, with CUDA's functions from the stub."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest
import torch
from torch import nn

from irc.boundary import cuda, torch_abi
from irc.runtime import graphs, graphs_memory, late_checks
from irc.runtime.graphs_native import span_bytes
from tests.runtime.gpu_stub import Stub
from tests.runtime.graph_driver import RecordingDriver
from tests.runtime.graph_programs import Small, arguments, compiled, gradients, two_steps

pytestmark = pytest.mark.skipif(
    not torch_abi.available() or not hasattr(torch._C, "_construct_storage_from_data_pointer"),
    reason="native host functions, or tensors of addresses, can't be had",
)


@pytest.fixture
def stub(monkeypatch) -> Stub:
    """Programs of the CPU are captured by a driver that records; the stub replays them."""
    found, driver = Stub(), RecordingDriver()
    driver.native = found.gpu
    found.driver = driver
    found.replay = lambda handle: next(g for g in driver.graphs if g.handle == handle).replay()
    monkeypatch.setattr(graphs, "driver_of", lambda program: driver)
    monkeypatch.setattr(graphs, "_contexts", {})
    torch._dynamo.reset()
    yield found
    torch._dynamo.reset()


def python_calls(run: Any, monkeypatch: Any) -> list[int]:
    """What grows with each call that native code hands to Python."""
    seen: list[int] = []
    plain = run.graphs._on_stream
    monkeypatch.setattr(run.graphs, "_on_stream", lambda given: seen.append(1) or plain(given))
    return seen


def test_the_third_call_and_those_behind_it_are_native(stub, monkeypatch) -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    seen = python_calls(run, monkeypatch)
    kept = []
    for call in range(8):
        x = x if call < 2 else torch.randn(3, 4)
        kept.append((run(x, w)[0], two_steps(x, w)))
    for found, wanted in kept:
        torch.testing.assert_close(found, wanted)
    # Plainly, captured, x elsewhere: captured again with x copied, and replayed once by Python.
    assert len(seen) == 4 and stub.driver.captures == 2
    assert [handle for handle, _ in stub.graphs] == [stub.driver.graphs[-1].handle] * 4
    assert len({found.data_ptr() for found, _ in kept}) == 8


@pytest.mark.parametrize("boxed", [False, True])
def test_arguments_and_results_are_dropped_as_in_any_call(stub, boxed) -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    for _ in range(3):
        run(x, w)
    graphs_before = len(stub.graphs)
    alive = []
    for _ in range(5):
        given = [x.clone().set_(x), w]
        alive += [weakref.ref(given[0])]
        if boxed:
            (y,) = run.boxed(given)
            assert given == []
        else:
            (y,) = run(*given)
        alive += [weakref.ref(y)]
        del given, y
    assert not any(each() is not None for each in alive)
    assert len(stub.graphs) == graphs_before + 5


def test_other_arguments_are_pythons(stub, monkeypatch) -> None:
    x, w = arguments()
    w = nn.Parameter(w, requires_grad=False)
    run = compiled(two_steps, x, w)
    for _ in range(4):
        run(x, w)
    seen = python_calls(run, monkeypatch)
    run(x, w)
    assert not seen
    for wrong in ((x.double(), w), (x[:2], w), (x.t().contiguous().t(), w), (x,), (x, w, w),
                  (x, None)):  # fmt: skip
        before = len(stub.graphs)
        with pytest.raises(Exception):  # noqa: B017, PT011  # whichever the plain call raises
            run(*wrong)
        assert len(stub.graphs) == before
    w.data = w.data * 2
    torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
    run(x, w)
    count = len(seen)
    torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
    assert len(seen) == count


def test_streams_contexts_and_captures(stub, monkeypatch) -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    for _ in range(4):
        run(x, w)
    seen = python_calls(run, monkeypatch)
    for name, value in (("capturing", 1), ("context", 0), ("streams", {0: 5})):
        before, usual = len(stub.graphs), getattr(stub, name)
        setattr(stub, name, value)
        torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
        assert len(stub.graphs) == before, name
        setattr(stub, name, usual)
    assert len(seen) == 3
    run(x, w)
    assert len(seen) == 3


def test_a_stream_in_use_is_left_alone(stub, monkeypatch) -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    for _ in range(4):
        run(x, w)
    context = graphs.context_of(stub.driver, 0)
    assert context.acquire()
    before = len(stub.graphs)
    torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
    assert len(stub.graphs) == before
    context.release()
    inside = []
    plain = stub.replay

    def replay(handle: int) -> None:
        plain(handle)
        inside.append(context.acquire())  # Python inside of a native call

    stub.replay = replay
    run(x, w)
    assert inside == [False]
    stub.replay = plain
    assert context.acquire()
    context.release()


def test_a_launch_that_fails_is_told_and_the_next_one_runs(stub) -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    for _ in range(4):
        run(x, w)
    stub.code = 700
    with pytest.raises(RuntimeError, match="launching a graph: error 700"):
        run(x, w)
    stub.code = 0
    torch.testing.assert_close(run(x, w)[0], two_steps(x, w))


def test_late_errors_are_raised_first(stub, monkeypatch) -> None:
    def late(gpu: int) -> None:
        told.append(gpu)
        if len(told) > 1:
            raise IndexError("late")

    told: list[int] = []
    monkeypatch.setattr(late_checks, "raise_failed", late)
    x, w = arguments()
    run = compiled(two_steps, x, w)
    for _ in range(4):
        run(x, w)
    told.clear()
    stub.gpu.table[cuda.LATE] = 1
    run(x, w)
    before = len(stub.graphs)
    with pytest.raises(IndexError, match="late"):
        run(x, w)
    assert told == [0, 0] and len(stub.graphs) == before


def test_results_that_python_makes(stub, monkeypatch) -> None:
    def many(x, w):
        y = torch.relu(x @ w) @ w
        return y, y.t(), x, y[1:], y.shape[0]

    x, w = arguments()
    run = compiled(many, x, w)
    for _ in range(4):
        run(x, w)
    seen = python_calls(run, monkeypatch)
    for _ in range(3):
        whole, turned, same, part, *_ = run(x, w)
        torch.testing.assert_close(whole, two_steps(x, w))
        assert same is x
        whole.zero_()
        assert not turned.any() and not part.any()
    assert not seen


def test_what_is_written_and_given_back(stub, monkeypatch) -> None:
    def step(x, state):
        y = torch.relu(x @ state)
        state.copy_(y.t() @ y)
        return y @ state

    x, state = arguments(rows=4)
    run = compiled(step, x, state)
    wanted = state.clone()
    for _ in range(6):
        x, before = torch.randn(4, 4) / 4, state._version
        torch.testing.assert_close(run(x, state)[0], step(x, wanted))
        torch.testing.assert_close(state, wanted)
        assert state._version > before


def test_sizes_take_turns(stub, monkeypatch) -> None:
    import irc

    x, w = arguments(rows=5)
    run = irc.compile(two_steps, (x, w), dynamic=True, options={"cuda_graphs": True}).executable
    inputs = [torch.randn(n, 4) for n in (2, 3, 5, 9)]
    for each in inputs:
        for _ in range(3):
            run(each, w)
    seen = python_calls(run, monkeypatch)
    for _ in range(3):
        for each in inputs:
            torch.testing.assert_close(run(each, w)[0], two_steps(each, w))
    assert not seen
    families = [f for known in run.graphs._families.values() for f in known]
    run.graphs._count_native()
    assert all(f.replays == 4 for f in families)


def test_a_forward_waits_for_the_backward_of_the_one_before(stub) -> None:
    model = Small()
    run = torch.compile(model, backend="irc", mode="reduce-overhead")
    for forwards in (1, 1, 1, 1, 1, 2, 2, 2, 6, 1, 1, 1):
        inputs = [torch.randn(3, 4) for _ in range(forwards)]
        before = len(stub.graphs)
        found = gradients(model, run, *inputs)
        torch.testing.assert_close(found, gradients(model, model, *inputs))
    assert len(stub.graphs) == before + 2


def test_an_interrupt_while_python_is_asked_is_raised(stub, monkeypatch) -> None:
    """Whether a graph's results are free is asked of Python, where Ctrl-C may come."""
    free, interrupts = graphs_memory.Results.are_free, []

    def are_free(self: Any) -> bool:
        if interrupts:
            raise interrupts.pop()
        return free(self)

    monkeypatch.setattr(graphs_memory.Results, "are_free", are_free)
    model = Small()
    run = torch.compile(model, backend="irc", mode="reduce-overhead")
    x = torch.randn(3, 4)
    for _ in range(5):
        wanted = gradients(model, run, x)
    before = len(stub.graphs)
    interrupts.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run(x)
    assert len(stub.graphs) == before and not interrupts
    for _ in range(2):
        torch.testing.assert_close(gradients(model, run, x), wanted)
    assert len(stub.graphs) == before + 4


def test_threads(stub) -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    for _ in range(4):
        run(x, w)
    wrong: list[int] = []

    def calls(seed: int) -> None:
        made = torch.Generator().manual_seed(seed)
        kept = []
        for _ in range(60):
            each = torch.randn(3, 4, generator=made)
            kept.append((each, run(each, w)[0]))
        wrong.extend(seed for each, y in kept if not torch.allclose(y, two_steps(each, w)))

    threads = [threading.Thread(target=calls, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nothing_is_kept_of_a_program_that_goes(stub) -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    for _ in range(4):
        run(x, w)
    gone = [weakref.ref(run.graphs), weakref.ref(run.graphs.replays)]
    gone += [weakref.ref(i) for f in run.graphs._families.values() for each in f
             for i in each.instances]  # fmt: skip
    gc.collect()
    gc.disable()  # nothing has to be found by it
    try:
        del run
    finally:
        gc.enable()
    assert [each() for each in gone] == [None] * 3


def test_spans() -> None:
    x = torch.zeros(4, 6)
    assert span_bytes(x) == span_bytes(x.t()) == 96 and span_bytes(x[:0]) == 0
    assert span_bytes(x[:, :4]) == 88 and span_bytes(x[:, 0]) is None
    assert span_bytes(x[0].expand(3, 6)) == 24


def test_a_replay_is_under_the_settings_of_its_capture(stub, monkeypatch) -> None:
    """Under others the call is Python's, which captures; both are native from then on."""
    x, w = arguments()
    run = compiled(two_steps, x, w)
    seen, products = python_calls(run, monkeypatch), torch.backends.cuda.matmul
    usual, counts = products.allow_tf32, []
    try:
        for allowed in (usual, not usual, usual, not usual):
            products.allow_tf32 = allowed
            for _ in range(5):
                torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
            counts.append((len(seen), stub.driver.captures, len(stub.graphs)))
    finally:
        products.allow_tf32 = usual
    assert counts == [(3, 1, 2), (6, 2, 4), (6, 2, 9), (6, 2, 14)]
    assert len({handle for handle, _ in stub.graphs}) == 2
