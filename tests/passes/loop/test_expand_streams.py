"""Blocks of rows that walk over a stream, for processors that this one may not be: values of
kernels against those of the group, and what keeps a group from being one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
import torch

import irc
from irc.dialects import kernel, loop
from irc.interp import run
from irc.ir.passes import PassContext, PassManager
from irc.target.figures import evolve
from tests.target.machines import MACHINES

FILE = Path(__file__).with_name("expand_streams.mlir")
PASSES = "schedule,form-kernels"


def group(**changes: str) -> Any:
    """The program of the pass's own file, with other texts for some in it."""
    text = "\n".join(line for line in FILE.read_text().splitlines() if not line.startswith("//"))
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    module = irc.parse(text)
    del module.attributes["irc.target"]
    return module


def arrays() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    sizes = ((2, 20, 16), (2, 24, 16), (2, 24, 8))
    return [torch.randn(size, generator=generator).bfloat16() for size in sizes]


@pytest.mark.parametrize("sizes", [(16, 12), (64, 256), (16, 7), (48, 5)], ids=str)
@pytest.mark.parametrize("target", MACHINES.values(), ids=MACHINES)
def test_kernels_of_every_processor(target: Any, sizes: tuple[int, int]) -> None:
    (wanted,) = run(group(), *arrays(), mode="real")
    module, (rows, columns) = group(), sizes
    passes = f"expand-streams{{rows={rows} columns={columns}}},{PASSES}"
    PassManager.parse(passes, verify="each").run(module, PassContext(target=target))
    kernels = [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]
    assert len([each for each in kernels if each.private]) == 1
    text = irc.print_op(module)
    assert ("kernel.dot_rows" in text) is ("amx-tile" in text)
    (got,) = run(module, *arrays(), mode="real")
    torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)


def test_what_is_expanded_is_told() -> None:
    module, context = group(), PassContext(target="avx2", remarks=["expand-streams"])
    PassManager.parse("expand-streams").run(module, context)
    assert any("blocks of 32 rows walk over 24 columns" in str(r) for r in context.remarks)
    groups = [op for op in module.walk() if isinstance(op, loop.GroupOp)]
    assert [bool(op.carried) for op in groups] == [False, True]


def test_a_target_says_how_large_blocks_and_steps_are() -> None:
    """Those of registers of whole tiles have figures of their own, and whole tiles."""
    told = []
    for figures in ({}, {"tiled_walk_rows": 16, "tiled_walk_columns": 32, "walk_rows": 8}):
        tiles = MACHINES["tiles"]
        target = attrs.evolve(tiles, processor=evolve(tiles.processor, **figures))
        context = PassContext(target=target, remarks=["expand-streams"])
        PassManager.parse("expand-streams").run(group(), context)
        told.append(" ".join(map(str, context.remarks)))
    assert "blocks of 32 rows walk over 32 columns" in told[0]
    assert "blocks of 16 rows walk over 32 columns" in told[1]


def test_a_gpu_keeps_its_group() -> None:
    module = group(**{"schedule #loop.schedule<cpu>": "schedule #loop.schedule<gpu>"})
    before = irc.print_op(module)
    PassManager.parse("expand-streams").run(module, PassContext(target="sm_90"))
    del module.attributes["irc.target"]
    assert irc.print_op(module) == before


def test_a_product_keeps_what_follows_it() -> None:
    """A group that streams nothing is as it was."""
    text = """
func.func @main(%x: tensor<[64, 32] x f32, strides [32, 1]>, %w: tensor<[32, 48] x f32, strides [48, 1]>) -> tensor<[64, 48] x f32, strides [48, 1]> attributes {level = "loop"} {
  %y = loop.group (i0: 64, i1: 48) {
    %s = loop.compute par(i0: 64, i1: 48) red(i2: 32) -> reduce(sum, f32) schedule #loop.schedule<cpu> {
      %a = loop.read %x[i0, i2] : f32
      %b = loop.read %w[i2, i1] : f32
      %c = arith.mulf %a, %b : f32
      loop.yield %c
    } : tensor<[64, 48] x f32, strides [48, 1]>
    %t = loop.compute par(i0: 64, i1: 48) -> map {
      %a = loop.read %s[i0, i1] : f32
      %b = math.tanh %a : f32
      loop.yield %b
    } : tensor<[64, 48] x f32, strides [48, 1]>
    loop.yield %t
  } : tensor<[64, 48] x f32, strides [48, 1]>
  return %y : tensor<[64, 48] x f32, strides [48, 1]>
}
"""  # noqa: E501
    module = irc.parse(text)
    before = irc.print_op(module)
    PassManager.parse("expand-streams").run(module, PassContext(target="avx2"))
    del module.attributes["irc.target"]
    assert irc.print_op(module) == before
