"""Memory that vectors are read from some points later is fetched (`fetch_axis`, `fetch_points`)."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch

import irc
from irc.dialects import kernel
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassManager
from irc.ir.types import f32
from irc.pipeline import stages

# Rows of two images, of which columns from number 30 on have no second term.
X = "tensor<[2, 7, 40] x f32, strides [280, 40, 1]>"
Y = "tensor<[2, 6, 40] x f32, strides [240, 40, 1]>"
POINTS = (
    'collapse = [], copies = 1 : i64, lanes = 8 : i64, order = ["t", "c"], spans = 1 : i64, '
    'tail = "mask", vector_axis = "c"'
)
GROUP = 'collapse = [], outer = ["b"], scratch = 0 : i64, vector_axis = ""'
PROGRAM = f"""
func.func @main(%x: {X}, %b: tensor<[6] x f32, strides [1]>) -> {Y} attributes {{level = "loop"}} {{
  %z = loop.group (b: 2) schedule #loop.schedule<cpu, {GROUP}> {{
    %y = loop.compute par(b: 2, t: 6, c: 40) -> map schedule #loop.schedule<cpu, {POINTS}FETCH> {{
      %i = loop.index {{expression = #sym<c>}} : index
      %end = arith.constant 30 : index
      %inside = arith.cmpi slt, %i, %end : index
      %zero = arith.constant 0.0 : f32
      %first = loop.read %x[b, t, c] : f32
      %second = loop.read %x[b, t + 1, c + 10] (where %inside else %zero) : f32
      %third = loop.read %b[t] : f32
      %sum = arith.addf %first, %second : f32
      %all = arith.addf %sum, %third : f32
      loop.yield %all : f32
    }} : {Y}
    loop.yield %y : {Y}
  }} : {Y}
  return %z : {Y}
}}
"""


def formed(axis: str, points: int | None = 2) -> Any:
    """The program with its kernel."""
    entries = f', fetch_axis = "{axis}"' + (f", fetch_points = {points} : i64" if points else "")
    module = irc.parse(PROGRAM.replace("FETCH", entries if axis else ""))
    PassManager.parse("form-kernels", verify="each").run(module)
    return module


def ops(module: Any, cls: type) -> list[Any]:
    return [op for op in module.walk() if isinstance(op, cls)]


@pytest.mark.parametrize("axis", ["", "t", "c"])
def test_values(axis: str) -> None:
    torch.manual_seed(0)
    x, b = torch.randn(2, 7, 40), torch.randn(6)
    shifted = torch.nn.functional.pad(x[:, 1:, 10:], (0, 10))
    expected = x[:, :6] + shifted + b[:, None]
    module = formed(axis)
    assert len(ops(module, kernel.PrefetchOp)) == (2 if axis else 0)
    torch.testing.assert_close(irc.run(module, x, b)[0], expected)
    PassManager.parse(stages("llvm")["kernel-to-host"]).run(module)
    torch.testing.assert_close(irc.runtime.build(module)(x, b)[0], expected)


@pytest.mark.parametrize("axis, apart", [("t", 80), ("c", 2)])
def test_where(axis: str, apart: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each vector that is read in order, what is so many points further, whether there is
    anything or not; what all lanes share is not fetched."""
    from irc.interp import core

    importlib.import_module("irc.interp.kernel")  # registers what is told of

    seen: list[tuple[str, object, int]] = []

    def telling(name: str, cls: type) -> None:
        before = core._handlers[cls]

        def tell(frame: core.Frame, op: Any) -> object:
            if name == "fetch" or op.results[0].type is not f32:
                seen.append((name, op.pointer, int(frame[op.offset])))
            return before(frame, op)

        monkeypatch.setitem(core._handlers, cls, tell)

    telling("load", kernel.LoadOp)
    telling("fetch", kernel.PrefetchOp)
    irc.run(formed(axis), torch.zeros(2, 7, 40), torch.zeros(6))
    assert len(seen) == 2 * 2 * 2 * 6 * 5
    for (before, fetched, there), (name, loaded, here) in zip(seen[::2], seen[1::2], strict=True):
        assert (before, name) == ("fetch", "load") and fetched is loaded
        assert there == here + apart


def test_what_does_not_fit() -> None:
    with pytest.raises(InvalidIR, match="z is no loop of the compute's own"):
        formed("z")
    with pytest.raises(InvalidIR, match="no entry 'fetch_points'"):
        formed("t", None)
