"""Checks of indices that are settled when a program is compiled, and those that are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import irc
from irc.interp.core import run
from irc.ir.passes import PassContext, PassManager

TO_GRAPH = "functionalize,decompose-aten,convert-aten-to-graph,canonicalize"
TABLE = torch.arange(9.0)


def settled(function: Callable[..., Any], args: list[Any], options: str = "", **rest: Any) -> Any:
    """(how many checks went, how many are left, the program)."""
    module = irc.trace(function, args, **rest)
    context = PassContext()
    PassManager.parse(f"{TO_GRAPH},settle-checks{options}", verify="each").run(module, context)
    checked = [op for op in module.walk() if op.attributes.get("check_bounds") is not None]
    return context.statistics["settle-checks", "settled"], len(checked), module


def distances(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(5)[None, :] - torch.arange(5)[:, None] + 4


def test_positions_that_are_inside_need_no_check() -> None:
    gone, left, module = settled(lambda x: x[distances(x)], [TABLE])
    assert (gone, left) == (1, 0)
    assert torch.equal(run(module, TABLE)[0], TABLE[distances(TABLE)])
    assert "graph.minimum" not in str(module), "whole numbers are the same everywhere"


@pytest.mark.parametrize("shift", [1, -14])
def test_positions_that_are_outside_are_told_when_it_runs(shift: int) -> None:
    gone, left, module = settled(lambda x: x[distances(x) + shift], [TABLE])
    assert (gone, left) == (0, 1)
    with pytest.raises(IndexError):
        run(module, TABLE)


def test_what_floats_make_is_kept_inside() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x[torch.arange(1, 60).float().log().long()]

    gone, left, module = settled(function, [TABLE])
    assert (gone, left) == (1, 0) and "graph.minimum" in str(module)
    assert torch.equal(run(module, TABLE)[0], function(TABLE))


@pytest.mark.parametrize(
    "function, args, rest",
    [
        (lambda x, i: x[i], [TABLE, torch.tensor([1, 2])], {}),
        (lambda x, i: x[torch.arange(3) + i[0]], [TABLE, torch.tensor([1, 2])], {}),
        (lambda x, i: x[torch.arange(i.shape[0])], [TABLE, torch.zeros(3)], {"dynamic": True}),
    ],
    ids=["an argument", "made of an argument", "a size"],
)
def test_what_a_call_decides_is_checked_by_it(function: Any, args: Any, rest: Any) -> None:
    gone, left, _ = settled(function, args, **rest)
    assert gone == 0 and left == 1


def test_many_indices_are_not_looked_at() -> None:
    assert settled(lambda x: x[distances(x)], [TABLE], "{limit=24}")[:2] == (0, 1)
    assert settled(lambda x: x[distances(x)], [TABLE], "{limit=25}")[:2] == (1, 0)


def test_writes_are_settled_too() -> None:
    def function(x: torch.Tensor) -> Any:
        first = x.index_put((torch.arange(3) * 2,), torch.ones(3))
        return first, torch.gather(x, 0, torch.arange(4)), x.scatter(0, torch.arange(4), 2.0)

    gone, left, module = settled(function, [TABLE])
    assert (gone, left) == (3, 0)
    for ours, eager in zip(run(module, TABLE), function(TABLE), strict=True):
        assert torch.equal(ours, eager)


def test_under_fake_tensors() -> None:
    """As AOTAutograd compiles a backward."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    module = irc.trace(lambda x: x[distances(x)], [TABLE])
    PassManager.parse(TO_GRAPH).run(module)
    with FakeTensorMode():
        PassManager.parse("settle-checks").run(module)
    assert "check_bounds" not in str(module)
