"""Programs that go through graphs in tests."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import irc


def compiled(fn: Any, *args: Any, **options: Any) -> Any:
    """The executable of a function, with graphs."""
    made = irc.compile(fn, args, options={"cuda_graphs": True, **options})
    return made.executable


def two_steps(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w) @ w


def arguments(seed: int = 0, rows: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    return torch.randn(rows, 4), torch.randn(4, 4)


def given_for(made: Any, *tensors: torch.Tensor) -> list[Any]:
    """The program's arguments: tensors by their order, sizes by their names."""
    rest = list(tensors)
    return [rest.pop(0) for _ in made.executable.info.arguments]


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 4)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.second(torch.tanh(self.norm(self.first(x))))).sum(1)


def gradients(model: nn.Module, run: Any, *inputs: torch.Tensor) -> list[torch.Tensor]:
    """Gradients of the product of the sums of all forwards, which come before the backward."""
    outputs = [run(x) for x in inputs]
    loss = torch.stack([y.square().mean() for y in outputs]).prod()
    return list(torch.autograd.grad(loss, list(model.parameters())))
