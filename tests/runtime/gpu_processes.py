"""One of two processes with a GPU each: `python -m tests.runtime.gpu_processes STORE MODE RANK`.

Trains a model under DistributedDataParallel, compiled and in eager mode, and prints "right" where
losses and parameters are the same.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import irc  # noqa: F401  # so that an uninstalled checkout is found too


def trained(rank: int, mode: str | None, compiled: bool) -> list[torch.Tensor]:
    """Losses and parameters of a few steps."""
    torch.manual_seed(0)
    device = f"cuda:{rank}"
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
    whole: Any = DistributedDataParallel(model.to(device), device_ids=[rank])
    call = torch.compile(whole, backend="irc", mode=mode) if compiled else whole
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    made = torch.Generator().manual_seed(rank + 1)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = call(torch.randn(8, 16, generator=made).to(device)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *(p.detach() for p in model.parameters())]


def main() -> None:
    """Compare with eager mode on the same group."""
    rank, store, mode = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl", init_method=f"file://{store}", rank=rank, world_size=2,
        timeout=timedelta(seconds=120),
    )  # fmt: skip
    chosen = None if mode == "default" else mode
    eager, mine = (trained(rank, chosen, compiled) for compiled in (False, True))
    torch.testing.assert_close(mine, eager, rtol=2e-3, atol=2e-3)
    dist.destroy_process_group()
    print("right")


if __name__ == "__main__":
    main()
