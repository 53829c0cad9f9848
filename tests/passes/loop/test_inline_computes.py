"""What `inline-computes` does grows with the program: each read is expanded once."""

from __future__ import annotations

import pytest
import torch

import irc

TO_LOOP = (
    "functional,split-signs,convert-aten-to-graph,canonicalize,cse,reinplace,assign-layouts,"
    "insert-layout-copies,cse,convert-to-loop,cse,dce,inline-computes"
)


def running_sums(x: torch.Tensor) -> torch.Tensor:
    """Slices written one after another, each read by all that follow."""
    out, total = torch.zeros_like(x), torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        total = total + x[:, t]
        out[:, t] = total
    return out


def reversed_writes(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for t in range(x.shape[1] - 1, 0, -2):
        out[:, t - 1 : t + 1] = out[:, t - 1 : t + 1] * 2 + x[:, t - 1 : t + 1].relu()
    return out


def padded_again(x: torch.Tensor) -> torch.Tensor:
    y = x[:, :1]
    for t in range(x.shape[1]):
        y = torch.nn.functional.pad(y, (0, 0, 0, 1), value=float(t)) * 0.5
    return y


def inlined_reads(function, count: int) -> int:
    x = torch.randn(2, count, 5)
    module = irc.trace(function, (x,))
    context = irc.PassManager.parse(TO_LOOP).run(module)
    got = irc.run(module, x)
    torch.testing.assert_close(got[0] if isinstance(got, tuple | list) else got, function(x))
    return context.statistics["inline-computes", "inlined reads"]


@pytest.mark.fault("V20")
@pytest.mark.parametrize("function", [running_sums, reversed_writes, padded_again])
def test_work_grows_with_the_program(function):
    three, six, nine = (inlined_reads(function, count) for count in (3, 6, 9))
    assert nine - six <= 1.5 * (six - three) + 4
