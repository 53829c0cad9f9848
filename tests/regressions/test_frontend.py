"""Programs that once were imported wrongly, or not at all."""

from __future__ import annotations

import torch

import irc  # noqa: F401  (registers the backend)


def test_a_constant_tensor_of_the_traced_program_is_imported() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.tensor([]), x * torch.tensor([1.0, 2.0, 3.0])])

    x = torch.randn(3)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(f, backend="irc")(x), f(x))
