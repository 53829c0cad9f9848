"""Programs of a second GPU, of two GPUs, and of two processes with a GPU each."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

import irc
from irc.runtime import late_checks
from tests.runtime.graph_programs import Small, gradients, two_steps
from tests.runtime.test_graphs_gpu import close
from tests.two_processes import said_by_two

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two GPUs"),
]

FIRST, SECOND = "cuda:0", "cuda:1"


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
    late_checks.settle()
    assert torch.cuda.current_device() == 0


def arguments(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(3, 4, device=device), torch.randn(4, 4, device=device)


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
def test_the_same_function_on_each_gpu(mode: str | None) -> None:
    run = torch.compile(two_steps, backend="irc", mode=mode)
    with torch.no_grad():
        for call in range(12):
            given = arguments((FIRST, SECOND)[call % 2])
            found = run(*given)
            assert found.device == given[0].device
            close(found, two_steps(*given))
        with torch.cuda.device(1), torch.cuda.stream(torch.cuda.Stream()):
            for device in (SECOND, FIRST):
                given = arguments(device)
                torch.cuda.synchronize(device)
                found = run(*given)
                torch.cuda.synchronize(device)
                close(found, two_steps(*given))


class Split(nn.Module):
    """A half of its layers on each GPU; the result is on the second."""

    def __init__(self) -> None:
        super().__init__()
        self.low = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16)).to(FIRST)
        self.high = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)).to(SECOND)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.high(self.low(x).to(SECOND) * 2).softmax(-1)


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
def test_a_model_that_is_split_over_two(mode: str | None) -> None:
    model = Split()
    run = torch.compile(model, backend="irc", mode=mode)
    for _ in range(4):
        x = torch.randn(5, 8, device=FIRST)
        with torch.no_grad():
            close(run(x), model(x))
        found, wanted = (
            torch.autograd.grad(call(x).square().sum(), list(model.parameters()))
            for call in (run, model)
        )
        close(found, wanted)


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
def test_training_on_the_second(mode: str | None) -> None:
    model = Small().to(SECOND)
    run = torch.compile(model, backend="irc", mode=mode)
    for _ in range(4):
        x = torch.randn(3, 4, device=SECOND)
        close(gradients(model, run, x), gradients(model, model, x))


def test_threads_with_a_gpu_each() -> None:
    given = [arguments(device) for device in (FIRST, SECOND)]
    runs = [irc.compile(two_steps, each, options={"cuda_graphs": True}).executable
            for each in given]  # fmt: skip
    wrong: list[int] = []

    def calls(number: int) -> None:
        torch.cuda.set_device(number)
        _, w = given[number]
        for _ in range(200):
            x = torch.randn(3, 4, device=f"cuda:{number}")
            if not torch.allclose(runs[number](x, w)[0], two_steps(x, w), rtol=2e-3, atol=2e-3):
                wrong.append(number)

    threads = [threading.Thread(target=calls, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_index_out_of_bounds_on_the_second_is_told() -> None:
    def embed(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding(x, table) * 2

    table, x = torch.randn(10, 4, device=SECOND), torch.arange(5, device=SECOND)
    run = irc.compile(embed, (x, table)).executable
    close(run(x, table)[0], embed(x, table))
    run(x + 8, table)
    torch.cuda.synchronize(1)
    with pytest.raises(IndexError):
        run(x, table)
    close(run(x, table)[0], embed(x, table))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_two_processes_with_a_gpu_each(tmp_path, mode: str) -> None:
    said = said_by_two(
        "tests.runtime.gpu_processes", str(tmp_path / "store"), mode, NCCL_SOCKET_IFNAME="lo"
    )
    for out, err in said:
        assert out.strip().endswith("right"), err[-3000:]
