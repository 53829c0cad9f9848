"""The remarks of the fusion passes and of `schedule`: why something was not done."""

from __future__ import annotations

import torch

import irc
from irc.ir.passes import PassManager, chosen_remarks


def remarks(function, *arguments, wanted: str) -> list[str]:
    """The remarks of the whole pipeline in which `wanted` is found."""
    context = PassManager.parse("lower-to-cpu").run(irc.trace(function, arguments))
    return [str(r) for r in chosen_remarks(context.remarks, wanted)]


def test_schedule_says_why_a_kernel_is_scalar():
    def function(x, i):
        return torch.zeros(9).index_add(0, i, x)

    (found,) = remarks(function, torch.randn(40), torch.arange(40) % 9, wanted=r"\[schedule\]")
    assert "'loop.compute': is not vectorized: its scatter combines points in order" in found
    assert found.startswith(__file__), "the line of the model"
    assert not remarks(lambda x: x + 1, torch.randn(4000), wanted="not vectorized")


def test_inline_computes_says_why_a_map_stays():
    def function(x):
        y = torch.exp(x)
        return y, y.sum(1)

    (found,) = remarks(function, torch.randn(30, 40), wanted="not inlined")
    assert "its array is needed anyway" in found


def test_group_computes_says_why_a_reader_is_apart():
    def function(x):
        return x - x.sum(0)

    found = remarks(function, torch.randn(300, 400), wanted="not grouped")
    assert found and "the leading axes that both can share, []" in found[0]


def test_aten_calls_are_explained():
    (found,) = remarks(lambda x: torch.linalg.det(x @ x), torch.randn(3, 3), wanted="linalg")
    assert "left to ATen" in found
