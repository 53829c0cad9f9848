"""Attention whose scores a function changes, for a processor whose registers hold whole tiles:
kernels of the whole pipeline, interpreted, are as near to float64 as eager mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from irc.dialects import kernel
from irc.frontend.backend import built_by
from irc.interp import run as interpret
from irc.passes.graph import stream_softmaxes
from irc.pipeline import lower
from tests.frontend.test_streamed_attention import (
    CASES,
    LOOPS,
    Attention,
    arrays_of,
    compare,
    run,
)
from tests.target.machines import MACHINES

MODULES: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(stream_softmaxes, "near", lambda shape, target: "")
    LOOPS.clear()
    MODULES.clear()
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def lowered(imported: Any, options: Any, target: Any) -> Callable[..., Any]:
    """What interprets a program's kernels for registers of whole tiles."""
    module = imported.module
    lower(module, MACHINES["tiles"], options, functional=True)
    MODULES.append(module)
    return lambda *arrays: interpret(module, *arrays)


def by_tiles(function: Attention, arrays: Any, sizes: str = "rows=16 columns=32") -> list[Any]:
    passes = {"before:expand-streams": f"expand-streams{{{sizes}}}",
              "after:expand-streams": "test-keep-loops"}  # fmt: skip
    options = {"passes": passes, "pattern_matcher": False}
    call = torch.compile(function, backend="irc", dynamic=False, options=options)
    with built_by(lowered):
        return run(call, arrays)


def tiles() -> list[Any]:
    """The products of registers of whole tiles."""
    return [op for module in MODULES for op in module.walk() if isinstance(op, kernel.DotRowsOp)]


WHOLE, ODD = (1, 2, 32, 64, 8), (1, 2, 40, 45, 24)
PROGRAMS = {
    "plain": WHOLE, "slopes": ODD, "causal": WHOLE, "window": ODD, "late": (1, 2, 64, 64, 8),
    "grouped": WHOLE, "written": ODD, "hidden": WHOLE,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_registers_of_whole_tiles_multiply(name: str) -> None:
    arrays = arrays_of(PROGRAMS[name], name, torch.bfloat16)
    compare(CASES[name], by_tiles(CASES[name], arrays), arrays, times=4)
    assert tiles()
