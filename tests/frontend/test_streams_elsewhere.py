"""Attention whose scores a function changes, for processors that this one may not be: kernels of
the whole pipeline, interpreted, are as near to float64 as eager mode."""

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


def interpreted(
    function: Attention, arrays: Any, machine: str, sizes: str = "rows=16 columns=32"
) -> list[Any]:
    """What a program's kernels for a processor give."""

    def lowered(imported: Any, options: Any, target: Any) -> Callable[..., Any]:
        module = imported.module
        lower(module, MACHINES[machine], options, functional=True)
        MODULES.append(module)
        return lambda *arrays: interpret(module, *arrays)

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
    compare(CASES[name], interpreted(CASES[name], arrays, "tiles"), arrays, times=4)
    assert tiles()


@pytest.mark.parametrize(("name", "machine"), [("causal", "avx512"), ("ahead", "neon")])
def test_blocks_that_are_no_whole_vectors(name: str, machine: str) -> None:
    """Of 32 rows of a block, more are computed, and stored where they are in it."""
    arrays = arrays_of((1, 1, 36, 40, 8), name, torch.float32)
    compare(CASES[name], interpreted(CASES[name], arrays, machine), arrays, times=4)
    assert not tiles() and len(LOOPS) == 1
