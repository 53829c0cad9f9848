"""A map computed in the place of a read of its result: masks of the read, and of what it reads."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import loop
from irc.passes.common.substitution import substitute_read

ROW = "tensor<[8] x f32, strides [1]>"
TEXT = f"""
func.func @main(%x: {ROW}) -> {ROW} attributes {{level = "loop"}} {{
  %p = loop.compute par(i0: 8) -> map {{
    %k = loop.index {{expression = #sym<i0>}} : index
    %c = arith.constant 3 : index
    %m = arith.cmpi sge, %k, %c : index
    %o = arith.constant 7.0 : f32
    %a = loop.read %x[i0]INNER : f32
    %b = arith.addf %a, %a : f32
    loop.yield %YIELDED
  }} : {ROW}
  %y = loop.compute par(i0: 8) -> map {{
    %k = loop.index {{expression = #sym<i0>}} : index
    %c = arith.constant 6 : index
    %m = arith.cmpi slt, %k, %c : index
    %o = arith.constant 5.0 : f32
    %a = loop.read %p[-i0 + 7]OUTER : f32
    loop.yield %a
  }} : {ROW}
  return %y : {ROW}
}}
"""


@pytest.mark.parametrize("yielded", ["a", "b"])
@pytest.mark.parametrize("outer", ["", " (where %m)", " (where %m else %o)"])
@pytest.mark.parametrize("inner", ["", " (where %m)", " (where %m else %o)"])
def test_masks_inside_and_outside(inner, outer, yielded):
    text = TEXT.replace("INNER", inner).replace("OUTER", outer).replace("YIELDED", yielded)
    x = torch.arange(1.0, 9.0)
    module = irc.parse(text)
    (expected,) = irc.run(module, x)
    producer, reader = (op for op in module.walk() if isinstance(op, loop.ComputeOp))
    read = next(iter(reader.reads))
    value = substitute_read(read, producer, {"i0": 8})
    read.results[0].replace_all_uses_with(value)
    read.erase()
    producer.erase()
    irc.verify(module)
    assert torch.equal(irc.run(module, x)[0], expected)
    # A read of a read is one read: no choice is made where the inner one has no mask, nor between
    # zero and zero.
    zeros = inner == outer == " (where %m)"
    chosen = bool(outer) and (yielded == "b" or (bool(inner) and not zeros))
    assert sum(op.name == "arith.select" for op in reader.walk()) == chosen
