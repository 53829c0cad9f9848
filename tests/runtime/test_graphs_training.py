"""Training through graphs: forwards and backwards that share a pool, on a driver that records."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn

from irc.runtime import graphs
from tests.runtime.graph_programs import (
    Small,
    arguments,
    compiled,
    gradients,
    two_steps,
)

pytestmark = pytest.mark.skipif(
    not hasattr(torch._C, "_construct_storage_from_data_pointer"),
    reason="the recording driver makes tensors of addresses",
)


def test_forward_and_backward_are_captured_and_share_a_pool(driver, training) -> None:
    model, run = training
    kept = []
    for _ in range(5):
        x = torch.randn(3, 4)
        kept.append((gradients(model, run, x), gradients(model, model, x)))
    for found, wanted in kept:
        torch.testing.assert_close(found, wanted)
    assert driver.captures == 2
    forward, backward = driver.graphs
    assert forward.pool == backward.pool
    assert driver.replays == 2 * 4


@pytest.mark.parametrize("forwards", [2, 3, 6])
def test_several_forwards_before_a_backward(forwards: int, driver, training) -> None:
    model, run = training
    for _ in range(4):
        inputs = [torch.randn(3, 4) for _ in range(forwards)]
        torch.testing.assert_close(gradients(model, run, *inputs),
                                   gradients(model, model, *inputs))  # fmt: skip
    pools = {graph.pool for graph in driver.graphs}
    assert len(pools) <= graphs.INSTANCES + 1


def test_saved_tensors_are_free_again_when_the_outputs_are(driver, training) -> None:
    model, run = training
    for _ in range(8):  # no backward: the saved tensors die with the result
        run(torch.randn(3, 4))
        gc.collect(0)
    assert driver.captures == 1
    assert driver.replays == 7


def test_other_programs_between_forward_and_backward_spoil_no_saved_tensor(
    driver, training
) -> None:
    model, run = training
    x, w = arguments()
    other = compiled(two_steps, x, w)
    for _ in range(3):
        other(x, w)
    for _ in range(4):
        x = torch.randn(3, 4)
        y = run(x)
        other(x, w)
        found = torch.autograd.grad(y.square().mean(), list(model.parameters()))
        wanted = torch.autograd.grad(model(x).square().mean(), list(model.parameters()))
        torch.testing.assert_close(found, wanted)


def test_what_follows_the_last_graph_is_not_forgotten(driver) -> None:
    """A gradient of an embedding is summed up behind the check of its indices, which cuts."""

    class Embedded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.norm = nn.Embedding(10, 8), nn.LayerNorm(8)
            self.weight, self.last = nn.Parameter(torch.randn(8, 8)), nn.Linear(8, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.tanh(self.table(x) @ self.weight)
            return self.last(self.norm(x @ self.weight + x))

    torch.manual_seed(0)
    model = Embedded()
    run = torch.compile(model, backend="irc", mode="reduce-overhead")
    for _ in range(4):
        x = torch.randint(0, 10, (3, 5))
        torch.testing.assert_close(gradients(model, run, x), gradients(model, model, x))
    assert driver.captures == 2
    with pytest.raises(IndexError):
        run(torch.full((3, 5), 10))


def test_gradients_are_the_callers(driver, training) -> None:
    model, run = training
    twin = Small()
    twin.load_state_dict(model.state_dict())
    for _ in range(3):
        for _ in range(3):  # accumulated, in what the first backward gave
            x = torch.randn(3, 4)
            run(x).sum().backward()
            twin(x).sum().backward()
        for own, other in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(own.grad, other.grad)
            own.data -= 0.1 * own.grad
            other.data -= 0.1 * other.grad
            own.grad = other.grad = None
