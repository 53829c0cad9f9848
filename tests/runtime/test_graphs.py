"""Programs through graphs: what a caller may rely on, on a driver that records."""

from __future__ import annotations

import gc
import threading
import time
import warnings
import weakref
from typing import Any

import pytest
import torch
from torch import nn

import irc
from irc.pipeline import lower
from irc.program.read_host import read_host_program
from irc.runtime import graphs, library_modes
from irc.runtime.arguments import ArgumentError
from tests.runtime.graph_programs import arguments, compiled, given_for, two_steps

pytestmark = pytest.mark.skipif(
    not hasattr(torch._C, "_construct_storage_from_data_pointer"),
    reason="the recording driver makes tensors of addresses",
)


def test_the_second_call_captures_and_the_others_replay(driver) -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    for call in range(5):
        x = torch.randn(3, 4)
        torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
        assert (driver.captures, driver.replays) == (min(call, 1), call)


def test_results_that_are_kept_stay_as_they_were(driver) -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    inputs = [torch.randn(3, 4) for _ in range(6)]
    results = [run(each, w)[0] for each in inputs]
    views = [result[1:].t() for result in results]
    for each, result, view in zip(inputs, results, views, strict=True):
        torch.testing.assert_close(result, two_steps(each, w))
        torch.testing.assert_close(view, two_steps(each, w)[1:].t())
    assert len({result.data_ptr() for result in results}) == len(results)
    assert driver.captures == 1


def test_results_that_share_memory_still_share_it(driver) -> None:
    def both(x, w):
        y = torch.relu(x @ w) @ w
        return y, y.t(), y[1:]

    x, w = arguments()
    run = compiled(both, x, w)
    for _ in range(4):
        x = torch.randn(3, 4)
        whole, turned, part = run(x, w)
        torch.testing.assert_close(whole, two_steps(x, w))
        torch.testing.assert_close(part, whole[1:])
        whole.zero_()
        assert not turned.any() and not part.any()
        assert part.storage_offset() == 4


def test_a_weight_is_read_where_it_is_and_found_where_it_moves(driver) -> None:
    x, w = arguments()
    w = nn.Parameter(w, requires_grad=False)
    run = compiled(two_steps, x, w)
    for _ in range(3):
        run(x, w)
    w.data.mul_(2)  # in place: no new capture, and the new elements
    torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
    assert driver.captures == 1
    w.data = torch.randn(4, 4)
    for _ in range(3):
        torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
    assert driver.captures == 2
    w.data = torch.randn(4, 4).t()  # other strides than compiled for
    with pytest.raises(ArgumentError, match="stride"):
        run(x, w)


def test_an_input_that_moves_is_copied_from_then_on(driver, capfd) -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w, remarks="cuda-graphs")
    for _ in range(3):
        run(x, w)
    kept = []
    for _ in range(4):
        x = torch.randn(3, 4)
        kept.append(x)
        torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
    assert driver.captures == 2
    assert "captured again, since an input moved: arg0_1" in capfd.readouterr().err


def test_inputs_that_always_move_by_too_many_bytes_are_not_copied(
    driver, monkeypatch, capfd
) -> None:
    monkeypatch.setattr(graphs, "COPIED_IN", 40)
    x, w = arguments()
    run = compiled(two_steps, x, w, remarks="cuda-graphs")
    for _ in range(4):
        x = torch.randn(3, 4)
        torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
    assert driver.captures == 0
    assert "inputs change their place (arg0_1)" in capfd.readouterr().err


def test_results_of_too_many_bytes_are_not_captured(driver, monkeypatch, capfd) -> None:
    monkeypatch.setattr(graphs, "COPIED_OUT", 40)
    x, w = arguments()
    run = compiled(two_steps, x, w, remarks="cuda-graphs")
    for _ in range(4):
        torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
    assert driver.replays == 1
    assert "0 MiB of results" in capfd.readouterr().err


def test_numbers_and_sizes_have_graphs_of_their_own_up_to_a_limit(driver) -> None:
    x, w = arguments(rows=5)
    made = irc.compile(two_steps, (x, w), dynamic=True,
                       options={"cuda_graphs": True, "cuda_graph_sizes": 2})  # fmt: skip
    run = made.executable
    (w,) = (torch.randn(4, 4),)
    inner = {tuple(a.shape): a for a in [torch.randn(n, 4) for n in (2, 3, 5, 6)]}
    sizes = [s for s in inner if len(s) == 2]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            for size in sizes:
                given = given_for(made, inner[size], w)
                torch.testing.assert_close(run(*given)[0], two_steps(inner[size], w))
    told = [str(w.message) for w in caught if "more than 2 sizes" in str(w.message)]
    assert len(told) == 1
    assert driver.captures == 2


def test_a_size_that_nobody_calls_makes_place(driver) -> None:
    x, w = arguments(rows=5)
    run = irc.compile(two_steps, (x, w), dynamic=True,
                      options={"cuda_graphs": True, "cuda_graph_sizes": 1}).executable  # fmt: skip
    first, second = torch.randn(2, 4), torch.randn(3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            run(first, w)
        for _ in range(3 * graphs.REPLACES):
            torch.testing.assert_close(run(second, w)[0], two_steps(second, w))
        assert driver.captures == 2
        torch.testing.assert_close(run(first, w)[0], two_steps(first, w))


@pytest.mark.parametrize("setting", [
    (torch.backends.cuda.matmul, "allow_tf32"), (torch.backends.cudnn, "benchmark"),
])  # fmt: skip
def test_a_graph_is_of_the_settings_that_it_was_captured_under(driver, setting: Any) -> None:
    """Another precision of products, or choice of kernels: a graph of its own, as eager's calls
    would change; and back to the first one."""
    owner, name = setting
    x, w = arguments()
    run = compiled(two_steps, x, w)
    before, found = getattr(owner, name), []
    try:
        for value in (before, not before, before):
            setattr(owner, name, value)
            for _ in range(3):
                torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
            found.append((driver.captures, driver.replays))
    finally:
        setattr(owner, name, before)
    assert [captures for captures, _ in found] == [1, 2, 2]
    assert found[2][1] == found[1][1] + 3


def test_settings_of_other_elements_are_not_read() -> None:
    """A program of 16-bit floats has its own."""
    module = irc.trace(two_steps, tuple(a.bfloat16() for a in arguments()))
    lower(module)
    read = library_modes.reader(read_host_program(module))
    assert read is not None
    products, before = torch.backends.cuda.matmul, read()
    for name, differs in (("allow_tf32", False), ("allow_bf16_reduced_precision_reduction", True)):
        usual = getattr(products, name)
        try:
            setattr(products, name, not usual)
            assert (read() != before) == differs
        finally:
            setattr(products, name, usual)


def test_what_is_written_is_written_in_place(driver) -> None:
    def step(x, state):
        y = torch.relu(x @ state)
        state.add_(y.t() @ y)
        return y @ state

    x, state = arguments(rows=4)
    run = compiled(step, x, state)
    wanted = state.clone()
    for call in range(6):
        x = torch.randn(4, 4) / 4
        if call == 3:  # the state moves
            state = state.clone()
        torch.testing.assert_close(run(x, state)[0], step(x, wanted))
        torch.testing.assert_close(state, wanted)
    assert driver.captures == 2


def test_versions_of_what_is_written_count_as_in_a_plain_call(driver) -> None:
    def step(x, state):
        y = torch.relu(x @ state)
        state.copy_(y.t() @ y)
        return y @ state

    x, state = arguments(rows=4)
    run = compiled(step, x, state)
    before = state._version
    run(x, state)
    raised = state._version - before
    for _ in range(3):
        before = state._version
        run(x, state)
        assert state._version - before == raised


def test_an_input_that_shares_memory_with_a_written_one_is_not_copied(driver) -> None:
    def step(x, state):
        state.mul_(2)
        return (x @ x.t()) @ (x @ state), x.sum(0)

    run = compiled(step, torch.randn(4, 4), torch.randn(4, 4))
    plain = irc.compile(step, (torch.randn(4, 4), torch.randn(4, 4))).executable
    mine, other = torch.randn(8, 4), torch.empty(8, 4)
    for rows in (None, None, None, slice(2, 6), slice(0, 4), slice(3, 7), None):
        other.copy_(mine)
        apart = torch.randn(4, 4)
        found = run(apart if rows is None else mine[rows], mine[2:6])
        wanted = plain(apart if rows is None else other[rows], other[2:6])
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(mine, other)
        mine /= 2
    assert driver.replays >= 4


def test_a_stream_is_not_used_twice_at_a_time(driver) -> None:
    context = graphs.context_of(driver, 0)
    assert context.acquire()
    start = time.perf_counter()
    assert not context.acquire()  # its own call inside of a call: no waiting
    assert time.perf_counter() - start < graphs._PATIENCE
    context.release()
    assert context.acquire()
    context.release()


def test_an_argument_that_is_given_back_is_the_callers(driver) -> None:
    def f(x, w):
        return x, x.view(2, 6), torch.relu(x.view(4, 3) @ x) @ w

    x, w = torch.randn(3, 4), torch.randn(4, 4)
    run = compiled(f, x, w)
    for _ in range(4):
        x = torch.randn(3, 4)
        same, view, _ = run(x, w)
        assert same is x
        assert view.data_ptr() == x.data_ptr() and view.shape == (2, 6)


def test_random_numbers_are_those_of_plain_calls(driver) -> None:
    def f(x, w):
        return torch.nn.functional.dropout(x @ w, 0.5) @ w

    x, w = arguments()
    run = compiled(f, x, w)
    plain = irc.compile(f, (x, w)).executable
    torch.manual_seed(7)
    wanted = [plain(x, w)[0] for _ in range(4)]
    torch.manual_seed(7)
    for each in wanted:
        assert torch.equal(run(x, w)[0], each)
    assert driver.captures == 1


def test_streams_have_graphs_of_their_own(driver) -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    for call in range(6):
        driver.stream_number = call % 2
        x = torch.randn(3, 4)
        torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
    assert driver.captures == 2
    assert len({graph.pool for graph in driver.graphs}) == 2


def test_a_call_under_somebody_elses_capture_is_plain(driver) -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    driver.capturing = True
    for _ in range(3):
        torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
    assert not driver.captures and not driver.replays


def test_two_threads(driver) -> None:
    x, w = arguments()
    first, second = compiled(two_steps, x, w), compiled(lambda x, w: two_steps(x, w) + 1, x, w)
    wrong: list[Any] = []

    def calls(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        kept = []
        for _ in range(60):
            x = torch.randn(3, 4, generator=generator)
            kept.append((x, first(x, w)[0], second(x, w)[0]))
        for x, one, two in kept:
            y = two_steps(x, w)
            if not (torch.allclose(one, y) and torch.allclose(two, y + 1)):
                wrong.append(seed)

    threads = [threading.Thread(target=calls, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert driver.replays > 60


def test_a_thread_captures_what_it_has_called_before(driver) -> None:
    """Its libraries' handles would otherwise be made inside of the capture."""
    x, w = arguments()
    run = compiled(two_steps, x, w)
    found = []

    def call() -> None:
        run(x, w)
        found.append(driver.captures)
        run(x, w)
        found.append(driver.captures)

    run(x, w)
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert found == [0, 1]


def test_a_capture_that_fails_once_is_tried_again(driver) -> None:
    failures = [RuntimeError("not now")]

    def fail() -> None:
        if failures:
            raise failures.pop()

    driver.fails = fail
    x, w = arguments()
    run = compiled(two_steps, x, w)
    for _ in range(6):
        torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
    assert driver.captures == 2 and driver.replays == 3


def test_programs_of_one_pool_spoil_nothing(driver) -> None:
    x, w = arguments()
    early, late = compiled(two_steps, x, w), compiled(lambda x, w: two_steps(x, w) * 3, x, w)
    kept = []
    for _ in range(5):
        x = torch.randn(3, 4)
        kept.append((x, early(x, w)[0], late(x, w)[0], early(x, w)[0]))
    for x, *results in kept:
        y = two_steps(x, w)
        for found, wanted in zip(results, (y, 3 * y, y), strict=True):
            torch.testing.assert_close(found, wanted)
    assert len({graph.pool for graph in driver.graphs}) == 1


def test_a_pool_that_no_graph_is_left_in_is_not_taken_up_again(driver) -> None:
    x, w = arguments()
    for _ in range(3):
        run = compiled(two_steps, x, w)
        for _ in range(3):
            torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
        del run
        gc.collect()
    assert len({graph.pool for graph in driver.graphs}) == 3


def test_memory_of_inputs_is_not_kept_alive(driver) -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    for _ in range(4):
        x = torch.randn(3, 4)
        seen = weakref.ref(x)
        run.boxed([x, w])
        del x
        assert seen() is None


@pytest.mark.parametrize("first", [True, False])
def test_inference_mode_may_come_and_go(first: bool, driver) -> None:
    def step(x, state):
        y = torch.relu(x @ state)
        state.add_(y.t() @ y)
        return y @ state

    state = torch.randn(4, 4) / 4
    run, wanted = compiled(step, torch.randn(3, 4), state), state.clone()
    for call in range(6):
        with torch.inference_mode((call % 4 < 2) == first):
            x = torch.randn(3, 4) / 4
            (y,) = run(x, state)
            torch.testing.assert_close(y, step(x, wanted))
            torch.testing.assert_close(state, wanted)
            assert y.is_inference() == torch.is_inference_mode_enabled()
    assert driver.captures == 1


def test_autocast_and_frozen_weights(driver) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)).eval()
    run = torch.compile(model, backend="irc",
                        options={"cuda_graphs": True, "freezing": True})  # fmt: skip
    with torch.no_grad():
        for _ in range(4):
            x = torch.randn(3, 4)
            torch.testing.assert_close(run(x), model(x))
            with torch.autocast("cpu", torch.bfloat16):
                torch.testing.assert_close(run(x), model(x), rtol=2e-2, atol=2e-2)
