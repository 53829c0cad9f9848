"""Programs through CUDA graphs, on a GPU."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
import torch
from torch import nn

import irc
from irc.runtime import graphs, late_checks
from irc.runtime.graphs_driver import CudaDriver
from tests.runtime.graph_programs import Small, gradients, two_steps

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
    late_checks.settle()


def compiled(fn: Any, *args: Any, **options: Any) -> Any:
    return irc.compile(fn, args, options={"cuda_graphs": True, **options}).executable


def close(found: Any, wanted: Any) -> None:
    torch.testing.assert_close(found, wanted, rtol=2e-3, atol=2e-3)


def arguments() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(3, 4, device="cuda"), torch.randn(4, 4, device="cuda")


def instances(run: Any) -> list[Any]:
    families = run.graphs._families.values()
    return [each for found in families for family in found for each in family.instances]


def test_replays_give_eagers_results_and_keep_them() -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    kept = []
    for _ in range(200):
        x = torch.randn(3, 4, device="cuda")
        kept.append((run(x, w)[0], two_steps(x, w)))
    for found, wanted in kept:
        close(found, wanted)
    (instance,) = instances(run)
    assert instance.single is not None


def test_a_capture_that_fails_leaves_everything_usable() -> None:
    driver = CudaDriver(torch.cuda.current_device())
    x = torch.randn(8, device="cuda")
    before = torch.randn(4, device="cuda")

    def fails(tensors: Any) -> Any:
        y = tensors[0] * 2 + torch.rand_like(tensors[0])
        return [y * y.sum().item()]

    for _ in range(2):
        with pytest.raises(RuntimeError):
            driver.capture(fails, [x], driver.new_pool())
        torch.cuda.synchronize()
        after = torch.rand(1 << 20, device="cuda")
        assert 0.4 < float(after.mean()) < 0.6
        graph, (y,) = driver.capture(lambda t: [t[0] * 2], [x], driver.new_pool())
        x.copy_(torch.randn(8, device="cuda"))
        graph.replay()
        assert torch.equal(y, x * 2)
        del after, graph
        torch.cuda.empty_cache()
    assert before.isfinite().all()


def test_random_numbers_are_those_of_plain_calls() -> None:
    def f(x, w):
        return torch.nn.functional.dropout(x @ w, 0.5) @ w + torch.rand_like(x)

    x, w = arguments()
    run, plain = compiled(f, x, w), irc.compile(f, (x, w)).executable
    torch.manual_seed(7)
    wanted = [plain(x, w)[0] for _ in range(5)]
    torch.manual_seed(7)
    found = [run(x, w)[0] for _ in range(5)]
    close(found, wanted)
    assert instances(run)


def test_programs_come_and_go() -> None:
    x, w = arguments()
    for _ in range(4):
        run = compiled(two_steps, x, w)
        for _ in range(3):
            close(run(x, w)[0], two_steps(x, w))
        assert instances(run)
        del run
        gc.collect()
        close(torch.rand(1 << 16, device="cuda").mean(), torch.tensor(0.5, device="cuda"))


def test_other_threads_draw_numbers_while_a_graph_is_captured() -> None:
    x, w = arguments()
    errors: list[Exception] = []
    done = threading.Event()

    def draw() -> None:
        try:
            while not done.is_set():
                torch.rand(16, device="cuda")
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        for number in range(8):
            run = compiled(lambda x, w, n=number: two_steps(x, w) + n, x, w)
            for _ in range(3):
                run(x, w)
            assert instances(run)
    finally:
        done.set()
        thread.join()
    assert not errors


@pytest.mark.parametrize("forwards", [1, 2, 6])
def test_training(forwards: int) -> None:
    model = Small().cuda()
    run = torch.compile(model, backend="irc", mode="reduce-overhead")
    kept = []
    for _ in range(6):
        inputs = [torch.randn(3, 4, device="cuda") for _ in range(forwards)]
        kept.append((gradients(model, run, *inputs), gradients(model, model, *inputs)))
    for found, wanted in kept:
        close(found, wanted)


def test_convolutions_train_with_statistics_written_in_place() -> None:
    def make() -> nn.Module:
        torch.manual_seed(1)
        return nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.BatchNorm2d(4)
        ).cuda()

    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    model, twin = make(), make()
    run = torch.compile(model, backend="irc", mode="reduce-overhead")
    for _ in range(6):
        x = torch.randn(2, 3, 12, 12, device="cuda")
        run(x).square().mean().backward()
        twin(x).square().mean().backward()
        for own, other in zip(model.parameters(), twin.parameters(), strict=True):
            close(own.grad, other.grad)
            own.data.sub_(own.grad, alpha=0.1)
            other.data.sub_(other.grad, alpha=0.1)
            own.grad = other.grad = None
        for own, other in zip(model.buffers(), twin.buffers(), strict=True):
            close(own, other)


def embed(x: torch.Tensor, table: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.nn.functional.embedding(x, table) @ w) @ w


def test_an_index_out_of_bounds_is_told_by_a_later_call() -> None:
    table, w = torch.randn(10, 4, device="cuda"), torch.randn(4, 4, device="cuda")
    good, bad = torch.arange(5, device="cuda"), torch.tensor([1, 2, 99, 3, 4], device="cuda")
    run = compiled(embed, good, table, w)
    for _ in range(4):
        close(run(good, table, w)[0], embed(good, table, w))
    (instance,) = instances(run)
    assert instance.single is not None
    for _ in range(3):
        run(bad, table, w)
        torch.cuda.synchronize()
        with pytest.raises(IndexError):
            run(good, table, w)
        for _ in range(3):
            close(run(good, table, w)[0], embed(good, table, w))
            torch.cuda.synchronize()


def test_strict_checks_cut_the_program_and_raise_at_once() -> None:
    table, w = torch.randn(10, 4, device="cuda"), torch.randn(4, 4, device="cuda")
    good, bad = torch.arange(5, device="cuda"), torch.tensor([1, 2, 99, 3, 4], device="cuda")
    run = compiled(embed, good, table, w, late_checks=False)
    for _ in range(4):
        close(run(good, table, w)[0], embed(good, table, w))
    with pytest.raises(IndexError):
        run(bad, table, w)
    close(run(good, table, w)[0], embed(good, table, w))


def test_late_checks_stand_in_somebody_elses_capture() -> None:
    table, w = torch.randn(10, 4, device="cuda"), torch.randn(4, 4, device="cuda")
    x = torch.arange(5, device="cuda")
    run = irc.compile(embed, (x, table, w)).executable
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            run(x, table, w)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (y,) = run(x, table, w)
    graph.replay()
    close(y, embed(x, table, w))
    x[2] = 99
    graph.replay()
    x[2] = 2
    graph.replay()
    with pytest.raises(IndexError):
        late_checks.settle()
    graph.replay()
    late_checks.settle()


def test_streams_and_threads() -> None:
    x, w = arguments()
    run = compiled(two_steps, x, w)
    wrong = []

    def calls(seed: int) -> None:
        stream = torch.cuda.Stream() if seed % 2 else torch.cuda.default_stream()
        kept = []
        with torch.cuda.stream(stream):
            for _ in range(300):
                x = torch.randn(3, 4, device="cuda")
                kept.append((run(x, w)[0], two_steps(x, w)))
        stream.synchronize()
        wrong.extend(seed for a, b in kept if not torch.allclose(a, b, rtol=2e-3, atol=2e-3))

    torch.cuda.synchronize()
    threads = [threading.Thread(target=calls, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    run.graphs._count_native()
    assert sum(f.replays for fs in run.graphs._families.values() for f in fs) > 300


def test_sizes_and_what_the_host_reads() -> None:
    def f(x, w):
        y = torch.relu(x @ w) @ w
        found = torch.nonzero(y[:, 0] > 0)
        return torch.relu(y @ w) @ w, found

    x, w = arguments()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        run = torch.compile(f, backend="irc", dynamic=True,
                                options={"cuda_graphs": True, "remarks": "graphs"})  # fmt: skip
        with torch.no_grad():
            for call in range(12):
                x = torch.randn(2 + call % 3, 4, device="cuda")
                close(run(x, w), f(x, w))
    assert graphs._contexts
