"""Programs of two processes: `python -m tests.frontend.distributed_programs RANK STORE NAME...`.

Runs the programs named, each against eager mode on the same group, and prints a line of JSON with
what went wrong in each ("" if nothing).
"""

from __future__ import annotations

import json
import sys
import traceback
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

WORLD = 2


class Perceptron(nn.Module):
    """Two linears and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


def seeded() -> Perceptron:
    """The same parameters in every process."""
    torch.manual_seed(0)
    return Perceptron()


def given(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def whole(tensor: Any) -> torch.Tensor:
    """All of a tensor that processes share."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def compiled(function: Any, **how: Any) -> Any:
    return torch.compile(function, backend="irc", **how)


def train(call: Any, model: nn.Module, steps: int = 2) -> list[torch.Tensor]:
    """Losses and parameters of a few steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = whole(call(given(4, 16, seed=step))).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *(whole(p).detach() for p in model.parameters())]


def same(mine: Any, eager: Any) -> None:
    torch.testing.assert_close(mine, eager, rtol=1e-5, atol=1e-5)


def tensor_parallel(mesh: DeviceMesh) -> None:
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    model = parallelize_module(seeded(), mesh, plan)
    eager = seeded()
    same(train(compiled(model), model), train(eager, eager))


def distributed_tensors(mesh: DeviceMesh) -> None:
    # Sizes that the processes share unevenly.
    weight = distribute_tensor(given(16, 5, seed=2), mesh, [Shard(1)]).requires_grad_()
    rows = distribute_tensor(given(3, 16), mesh, [Shard(0)]).requires_grad_()

    def function(x, w):
        y = (x * 2 + x).redistribute(mesh, [Replicate()])
        return torch.tanh(y @ w).sum(1), y.to_local()

    def outcome(call: Any) -> list[torch.Tensor]:
        summed, local = call(rows, weight)
        loss = summed.full_tensor().sum() + local.cos().sum() / WORLD
        return [whole(t) for t in (summed, local, *torch.autograd.grad(loss, (rows, weight)))]

    same(outcome(compiled(function, fullgraph=True)), outcome(function))


def collectives(mesh: DeviceMesh) -> None:
    rank = dist.get_rank()

    def function(x):
        y = x.sin()
        everything = funcol.all_gather_tensor(y, 0, mesh)
        total = funcol.all_reduce(y * 2, "sum", mesh)
        other = (y + 1).exp()  # while the others may still be read and written
        part = funcol.reduce_scatter_tensor(other, "sum", 0, mesh)
        moved = funcol.all_to_all_single(other, None, None, mesh)
        own = (other + 3).sqrt()
        return everything.sum(0) + own.sum(0), total + own, part * 2, moved - own

    x = given(512, 64, seed=rank)
    run = compiled(function, fullgraph=True)
    for _ in range(3):
        same(run(x), function(x))
    torch._dynamo.reset()
    run = compiled(function, fullgraph=True, dynamic=True)
    for size in (4, 10, 512, 6):  # gloo takes other ways for small and large
        x = given(size, 8, seed=rank)
        same(run(x), function(x))


def updates(mesh: DeviceMesh) -> None:
    """Collectives that write their arguments, as users write them."""

    def function(x, out):
        y = x * 2
        dist.all_reduce(y)
        dist.all_gather_into_tensor(out, y + dist.get_rank())
        dist.broadcast(x, 1)
        return y + 1

    def outcome(call: Any) -> list[torch.Tensor]:
        x, out = given(3, 5, seed=dist.get_rank()), torch.zeros(3 * WORLD, 5)
        return [call(x, out), x, out]

    same(outcome(compiled(function)), outcome(function))


def sharded_parameters(mesh: DeviceMesh) -> None:
    eager = seeded()
    wanted = train(eager, eager)
    model = seeded()
    for part in (model.up, model.down, model):
        fully_shard(part, mesh=mesh)
    same(train(compiled(model), model), wanted)
    model = seeded()
    for part in (model.up, model.down):
        part.compile(backend="irc")
        fully_shard(part, mesh=mesh)
    same(train(model, model), wanted)


def replicas(mesh: DeviceMesh) -> None:
    eager = seeded()
    wanted = train(eager, eager)
    model = DistributedDataParallel(seeded())
    same(train(compiled(model), model), wanted)


def frozen_parameters(mesh: DeviceMesh) -> None:
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    model = parallelize_module(seeded(), mesh, plan).eval()
    run = compiled(model, options={"freezing": True})
    with torch.no_grad():
        same(run(given(4, 16)), seeded()(given(4, 16)))
        model.down.bias.add_(1)
        same(run(given(4, 16)), seeded()(given(4, 16)) + 1)


PROGRAMS = {
    program.__name__: program
    for program in (
        tensor_parallel, distributed_tensors, collectives, updates, sharded_parameters, replicas,
        frozen_parameters,
    )
}  # fmt: skip


def main(rank: str, store: str, *names: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=int(rank), world_size=WORLD,
        timeout=timedelta(seconds=60),
    )  # fmt: skip
    mesh = init_device_mesh("cpu", (WORLD,))
    problems = {}
    for name in names:
        torch._dynamo.reset()
        problems[name] = ""
        try:
            PROGRAMS[name](mesh)
        except Exception:  # whatever it is, the parent process raises it with this text
            problems[name] = traceback.format_exc()
            break  # the other process may wait for ever
    print(json.dumps(problems), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
