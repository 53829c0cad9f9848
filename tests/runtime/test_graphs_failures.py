"""Programs that graphs hold in parts, and what fails, on a driver that records."""

from __future__ import annotations

import pytest
import torch

from tests.runtime.graph_programs import arguments, compiled, two_steps

pytestmark = pytest.mark.skipif(
    not hasattr(torch._C, "_construct_storage_from_data_pointer"),
    reason="the recording driver makes tensors of addresses",
)


def test_a_program_is_cut_at_a_number_that_the_host_reads(driver) -> None:
    def f(x, w):
        y = torch.relu(x @ w) @ w
        n = y.abs().sum().item()
        return torch.relu(y @ w) @ w * n

    x, w = arguments()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        run = torch.compile(f, backend="irc", mode="reduce-overhead", fullgraph=True)
        with torch.no_grad():
            for _ in range(5):
                x = torch.randn(3, 4)
                torch.testing.assert_close(run(x, w), f(x, w), rtol=1e-4, atol=1e-4)
    assert driver.captures >= 1
    assert driver.replays >= 4


def test_what_an_uncaptured_step_makes_is_fed_to_the_next_graph(driver) -> None:
    @torch.library.custom_op("irc_tests::refuses", mutates_args=(),
                             tags=(torch.Tag.cudagraph_unsafe,))  # fmt: skip
    def refuses(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @refuses.register_fake
    def _(x):
        return torch.empty_like(x)

    def f(x, w):
        return torch.relu(refuses(torch.relu(x @ w) @ w) @ w) @ w

    x, w = arguments()
    run = compiled(f, x, w)
    kept = []
    for _ in range(5):
        x = torch.randn(3, 4)
        kept.append((run(x, w)[0], f(x, w)))
    for found, wanted in kept:
        torch.testing.assert_close(found, wanted)
    assert driver.captures == 2 and driver.replays == 8


def test_a_step_that_fails_in_a_capture_is_left_out(driver, capfd) -> None:
    @torch.library.custom_op("irc_tests::fails_inside", mutates_args=())
    def fails_inside(x: torch.Tensor) -> torch.Tensor:
        if driver.inside:
            raise RuntimeError("operation not permitted when stream is capturing")
        return x * 2

    @fails_inside.register_fake
    def _(x):
        return torch.empty_like(x)

    def f(x, w):
        return torch.relu(fails_inside(torch.relu(x @ w) @ w) @ w) @ w

    x, w = arguments()
    run = compiled(f, x, w, remarks="left out")
    for _ in range(8):
        x = torch.randn(3, 4)
        torch.testing.assert_close(run(x, w)[0], f(x, w))
    assert "irc_tests.fails_inside.default is left out of graphs" in capfd.readouterr().err
    # The native program fails, then twice the step itself; its neighbours are two graphs.
    assert driver.captures == 1 + 2 + 2 and driver.replays >= 4


def test_a_capture_that_fails_as_a_whole_leaves_plain_calls(driver, capfd) -> None:
    def fail() -> None:
        raise RuntimeError("invalidated")

    driver.fails = fail
    x, w = arguments()
    run = compiled(two_steps, x, w, remarks="cuda-graphs")
    for _ in range(5):
        torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
    assert not driver.replays
    assert "invalidated" in capfd.readouterr().err


def test_too_little_memory_leaves_plain_calls(driver) -> None:
    def fail() -> None:
        raise torch.OutOfMemoryError("out of memory")

    driver.fails = fail
    x, w = arguments()
    run = compiled(two_steps, x, w)
    for _ in range(4):
        torch.testing.assert_close(run(x, w)[0], two_steps(x, w))
    assert driver.captures == 1 and not driver.replays


def test_an_error_in_a_call_leaves_the_next_one_right(driver) -> None:
    @torch.library.custom_op("irc_tests::refuses_large", mutates_args=(),
                             tags=(torch.Tag.cudagraph_unsafe,))  # fmt: skip
    def refuses_large(x: torch.Tensor) -> torch.Tensor:
        if x.max() > 1e6:
            raise ValueError("too large")
        return x * 2

    @refuses_large.register_fake
    def _(x):
        return torch.empty_like(x)

    def f(x, w):
        return torch.relu(refuses_large(torch.relu(x @ w) @ w) @ w) @ w

    x, w = arguments()
    run = compiled(f, x, w)
    for call in range(8):
        x = torch.randn(3, 4)
        if call % 3 == 2:
            with pytest.raises(ValueError, match="too large"):
                run(torch.full((3, 4), 1e9), w.abs())
        else:
            torch.testing.assert_close(run(x, w)[0], f(x, w))


def test_a_call_inside_of_another_is_plain(driver) -> None:
    x, w = arguments()
    inner = compiled(two_steps, x, w)

    @torch.library.custom_op("irc_tests::calls_inner", mutates_args=(),
                             tags=(torch.Tag.cudagraph_unsafe,))  # fmt: skip
    def calls_inner(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return inner(x, w)[0].clone()

    @calls_inner.register_fake
    def _(x, w):
        return torch.empty_like(x)

    def f(x, w):
        y = torch.relu(x @ w) @ w
        return torch.relu(calls_inner(y, w) @ w) @ w + y

    for _ in range(3):
        inner(x, w)
    run = compiled(f, x, w)
    for _ in range(4):
        x = torch.randn(3, 4)
        torch.testing.assert_close(run(x, w)[0], f(x, w))


def test_modes_mean_graphs_or_not() -> None:
    from irc.options.options import parse_options

    assert parse_options("reduce-overhead").cuda_graphs
    assert not parse_options("max-autotune-no-cudagraphs").cuda_graphs
    assert parse_options(None, {"triton.cudagraphs": True}).cuda_graphs
    assert parse_options(None, {"cudagraphs": True}).cuda_graphs
    assert not parse_options("default").cuda_graphs
