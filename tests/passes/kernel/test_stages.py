"""Groups whose members are computed at one point of the shared axes after the other: contractions
among them, groups inside, what is handed on in memory of the kernel's own, axes written out."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import host, kernel
from irc.interp.core import run
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassManager
from irc.ir.symbols import symbol
from irc.passes.kernel.plan.updates import tell_axes
from tests.passes.frozen.frozen_convolutions import threads

VECTORS = "collapse = [], copies = 1 : i64, lanes = 4 : i64, spans = 1 : i64, tail = \"mask\""
TILES = """collapse = [], vector_axis = "n", lanes = 4 : i64, products = "lanes",
  tile_rows = 3 : i64, tile_vectors = 2 : i64, row_axis = "r", outer_rows = [],
  depth_order = ["k"], point_rows = 0 : i64, point_columns = 0 : i64,
  block_rows = 0 : i64, block_depth = 0 : i64, inner = "rows",
  pack_left = false, pack_right = false, pack_ahead = 0 : i64, rows_ahead = 0 : i64,
  group = 1 : i64, offset = 0 : i64,
  terms = 2 : i64, in_turn = false, woven = false, skew = 16 : i64"""
# Rows are scaled, multiplied with two panels of a weight for each of three parts, and what a part
# gives is chosen by its number: y[b, p, r, n, h] = part h of (2 * x) @ w. The last block has rows
# that there are not.
PROGRAM = f"""
func.func @main(%x: tensor<[17, 9] x f32, strides [9, 1]>, %w: tensor<[2, 3, 9, 8] x f32, strides [216, 72, 8, 1]>) -> tensor<[3, 17, 16] x f32, strides [272, 16, 1]> attributes {{level = "loop"}} {{
%e = graph.undefined : tensor<[3, 17, 16] x f32, strides [272, 16, 1]>
%y = loop.group (b: 3) schedule #loop.schedule<cpu, collapse = [], outer = ["b"], scratch = 0 : i64, vector_axis = ""> {{
  %v = loop.compute par(b: 3, r: 7, k: 9) -> map schedule #loop.schedule<cpu, {VECTORS}, order = ["r", "k"], vector_axis = "k"> {{
    %row = loop.index {{expression = #sym<b*7 + r>}} : index
    %end = arith.constant 17 : index
    %is = arith.cmpi slt, %row, %end : index
    %zero = arith.constant 0.0 : f32
    %a = loop.read %x[b*7 + r, k] (where %is else %zero) : f32
    %d = arith.addf %a, %a : f32
    loop.yield %d }} : tensor<[3, 7, 9] x f32, strides [84, 12, 1]>
  %z = loop.group (b: 3, p: 2) schedule #loop.schedule<cpu, outer = ["p"]> {{
    %m = loop.compute par(b: 3, p: 2, f: 3, r: 7, n: 8) red(k: 9) -> reduce(sum, f32) schedule #loop.schedule<cpu, {TILES}> {{
      %a = loop.read %v[b, r, k] : f32
      %c = loop.read %w[p, f, k, n] : f32
      %d = arith.mulf %a, %c : f32
      loop.yield %d }} : tensor<[3, 2, 3, 7, 8] x f32, strides [336, 168, 56, 8, 1]>
    %s = loop.compute par(b: 3, p: 2, r: 7, n: 8, h: 3) inits(%e) -> scatter(set, [h, b*7 + r, p*8 + n]) schedule #loop.schedule<cpu, {VECTORS}, order = ["r", "n", "h"], vector_axis = "n", written_out = ["h"]> {{
      %q0 = loop.read %m[b, p, 0, r, n] : f32
      %q1 = loop.read %m[b, p, 1, r, n] : f32
      %q2 = loop.read %m[b, p, 2, r, n] : f32
      %h = loop.index {{expression = #sym<h>}} : index
      %one = arith.constant 1 : index
      %two = arith.constant 2 : index
      %first = arith.cmpi slt, %h, %one : index
      %second = arith.cmpi slt, %h, %two : index
      %late = arith.select %second, %q1, %q2 : f32
      %all = arith.select %first, %q0, %late : f32
      %row = loop.index {{expression = #sym<b*7 + r>}} : index
      %end = arith.constant 17 : index
      %is = arith.cmpi slt, %row, %end : index
      loop.yield %all masks(%is) }} : tensor<[3, 17, 16] x f32, strides [272, 16, 1]>
    loop.yield %s }} : tensor<[3, 17, 16] x f32, strides [272, 16, 1]>
  loop.yield %z }} : tensor<[3, 17, 16] x f32, strides [272, 16, 1]>
func.return %y : tensor<[3, 17, 16] x f32, strides [272, 16, 1]> }}
"""  # noqa: E501


def arguments() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(17, 9), torch.randn(2, 3, 9, 8)]


def expected(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    parts = torch.einsum("rk,pfkn->frpn", 2 * x.double(), w.double())
    return parts.reshape(3, 17, 16).float()


def formed(text: str):
    module = irc.parse(text)
    PassManager.parse("schedule{target=cpu},form-kernels", verify="each").run(module)
    return module


def test_values() -> None:
    """Of the text, of its kernel, and of the code."""
    args = arguments()
    right = expected(*args)
    module = irc.parse(PROGRAM)
    torch.testing.assert_close(run(module, *args)[0], right)
    module = formed(PROGRAM)
    torch.testing.assert_close(run(module, *args)[0], right)
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    executable = irc.build(module)
    for count in (1, 3):
        with threads(count):
            torch.testing.assert_close(executable(*args)[0], right)


def test_what_is_handed_on_is_a_part_for_each_point() -> None:
    """Not for the points of the group inside, at each of which it is written again."""
    module = formed(PROGRAM)
    (launch,) = [op for op in module.walk() if isinstance(op, host.LaunchOp)]
    assert [result.type.shape for result in launch.results] == [(3, 17, 16), (3, 96), (3, 176)]
    (callee,) = [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]
    assert callee.initialized is None and callee.grid == 3


def values_chosen(module) -> int:
    """How many operations choose between values of arrays, rather than between places in them."""
    chosen = [op for op in module.walk() if op.name == "arith.select"]
    return sum(str(op.results[0].type) != "index" for op in chosen)


def test_conditions_on_axes_that_are_written_out_are_decided() -> None:
    assert values_chosen(formed(PROGRAM)) == 0
    loops = formed(PROGRAM.replace(', written_out = ["h"]', ""))
    assert values_chosen(loops) > 0
    torch.testing.assert_close(run(loops, *arguments())[0], expected(*arguments()))


@pytest.mark.parametrize("before, after, message", [
    ("[h, b*7 + r, p*8 + n]", "[h, b*7 + r, p*4 + n]", "each point to an element of its own"),
    ("point_rows = 0", "point_rows = 3", "no points of the parallel space of its own"),
    ('written_out = ["h"]', 'written_out = ["n"]', "the points of n can't be written out"),
    ("scratch = 0", "scratch = 4096", "reads or gives is not on the stack"),
    ('outer = ["b"], scratch', 'outer = [], scratch', "outer axes"),
    ("scatter(set,", "scatter(sum,", "a scatter that combines can't be a member of a group"),
])  # fmt: skip
def test_what_is_refused(before: str, after: str, message: str) -> None:
    assert before in PROGRAM
    with pytest.raises(InvalidIR, match=message):
        formed(PROGRAM.replace(before, after))


B, T, D, R, N = map(symbol, "btdrn")


@pytest.mark.parametrize("indices, extents, told", [
    ([B * 4 + T, N], {"b": 3, "t": 4, "n": 5}, True),
    ([B * 4 + T, N], {"b": 3, "t": 5, "n": 5}, False),  # 4*0 + 4 is 4*1 + 0
    ([B + T], {"b": 3, "t": 3}, False),
    ([B + T], {"b": 3, "t": 1}, True),
    ([B * 6 + T * 2 + D, 0], {"b": 9, "t": 3, "d": 2}, True),
    ([(B * 24 + T) // 14, (B * 24 + T) % 14], {"b": 4, "t": 24}, True),
    ([(B * 24 + T) // 14, (B * 24 + T) % 13], {"b": 4, "t": 24}, False),
    ([(B * 24 + T) // 14 // 5, (B * 24 + T) // 14 % 5 * 4 + D, (B * 24 + T) % 14 * 4 + R],
     {"b": 4, "t": 24, "d": 4, "r": 4}, True),
    ([(B * 24 + T) // 14 // 5, (B * 24 + T) // 14 % 5 * 4 + D, (B * 24 + T) % 14 * 3 + R],
     {"b": 4, "t": 24, "d": 4, "r": 4}, False),
    ([(B * 8 + T) // symbol("s"), (B * 8 + T) % symbol("s")], {"b": 4, "t": 8}, True),
])  # fmt: skip
def test_which_indices_tell_the_axes(indices, extents, told) -> None:
    assert tell_axes(indices, extents) is told
