"""Convolutions in tiles of registers: windows of all kinds against float64, and what their
schedules may say."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import irc
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassManager
from tests.passes.kernel.test_contractions import formed, interpreted, native


def windows(channels=20, out=18, size=(6, 7), taps=(3, 2), step=(1, 1), around=1, groups=1,
            last=True, entries="tile_rows = 4 : i64"):  # fmt: skip
    """relu(a convolution of 2 images); `last`: channels are innermost."""
    high, wide = (
        (n + 2 * around - t) // s + 1 for n, t, s in zip(size, taps, step, strict=True)
    )
    order = torch.channels_last if last else torch.contiguous_format
    x, w = ((2, channels * groups, *size), (out * groups, channels, *taps))
    y = (2, high, wide, out * groups)
    types = []
    for shape in (x, w):
        strides = torch.empty(shape).to(memory_format=order).stride()
        types.append(f"tensor<{list(shape)} x f32, strides {list(strides)}>")
    strides = torch.empty(y).stride()
    if not last:
        strides = torch.empty((2, y[3], high, wide)).movedim(1, -1).stride()
    shape = (groups, 2, high, wide, out)
    sums, result = (
        f"tensor<{list(shape)} x f32, strides {list(each)}>"
        for each in (torch.empty(shape).stride(), (out * strides[3], *strides))
    )
    axes = f"g: {groups}, b: 2, i: {high}, j: {wide}, o: {out}"
    return f"""
func.func @main(%x: {types[0]}, %w: {types[1]}) -> {result} attributes {{level = "loop"}} {{
  %y = loop.group ({axes}) {{
  %s = loop.compute par({axes}) red(c: {channels}, u: {taps[0]}, v: {taps[1]}) -> reduce(sum, f32)
      schedule #loop.schedule<cpu, {entries}> {{
    %row = loop.index {{expression = #sym<i*{step[0]} + u - {around}>}} : index
    %column = loop.index {{expression = #sym<j*{step[1]} + v - {around}>}} : index
    %low = arith.constant 0 : index
    %high = arith.constant {size[0]} : index
    %wide = arith.constant {size[1]} : index
    %c0 = arith.cmpi sge, %row, %low : index
    %c1 = arith.cmpi slt, %row, %high : index
    %c2 = arith.cmpi sge, %column, %low : index
    %c3 = arith.cmpi slt, %column, %wide : index
    %c4 = arith.andi %c0, %c1 : i1
    %c5 = arith.andi %c2, %c3 : i1
    %inside = arith.andi %c4, %c5 : i1
    %zero = arith.constant 0.0 : f32
    %p = loop.read %x[b, g*{channels} + c, i*{step[0]} + u - {around}, j*{step[1]} + v - {around}]
      (where %inside else %zero) : f32
    %q = loop.read %w[g*{out} + o, c, u, v] : f32
    %m = arith.mulf %p, %q : f32
    loop.yield %m
  }} : {sums}
  %r = loop.compute par({axes}) -> map {{
    %t = loop.read %s[g, b, i, j, o] : f32
    %zero = arith.constant 0.0 : f32
    %a = arith.maximumf %t, %zero : f32
    loop.yield %a
  }} : {result}
  loop.yield %r : {result}
  }} : {result}
  func.return %y : {result}
}}"""


def wanted(x, w, step=(1, 1), around=1, groups=1):
    exact = functional.conv2d(x.double(), w.double(), None, step, around, groups=groups).relu()
    return exact.unflatten(1, (groups, -1)).permute(1, 0, 3, 4, 2)


CASES = [
    {}, {"channels": 3, "taps": (5, 5), "around": 2}, {"step": (2, 3), "size": (9, 14)},
    {"groups": 2, "out": 33}, {"taps": (1, 1), "step": (2, 2), "around": 0}, {"channels": 40},
    {"channels": 16, "entries": "tile_rows = 4 : i64, block_depth = 32 : i64"},
    {"entries": "tile_rows = 4 : i64, block_depth = 32 : i64, block_rows = 8 : i64"},
    {"entries": "tile_rows = 5 : i64, point_rows = 10 : i64, block_depth = 64 : i64"},
    {"entries": 'tile_rows = 3 : i64, row_axis = "i", outer_rows = ["j"], '
                'depth_order = ["c", "v", "u"]'},
    {"entries": 'tile_rows = 3 : i64, outer_rows = []'},
]  # fmt: skip


@pytest.mark.parametrize("last", [True, False], ids=["channels-last", "rows"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case, last):
    text = windows(**case, last=last)
    got, (x, w) = native(text)
    rest = {key: value for key, value in case.items() if key in ("step", "around", "groups")}
    torch.testing.assert_close(got.double(), wanted(x, w, **rest), rtol=1e-5, atol=1e-5)


def test_the_kernel_means_what_the_text_means():
    interpreted(windows(channels=5, size=(3, 4), out=5), 256)
    entries = "tile_rows = 2 : i64, block_depth = 8 : i64, point_rows = 6 : i64"
    interpreted(windows(channels=5, size=(4, 3), out=5, groups=2, entries=entries), 256)


def test_what_is_no_number_stays_in_its_windows():
    module = formed(windows(around=1, taps=(3, 3)))
    PassManager.parse("bufferize,plan-memory").run(module)
    torch.manual_seed(0)
    x = torch.randn(2, 20, 6, 7).to(memory_format=torch.channels_last)
    w = torch.randn(18, 20, 3, 3).to(memory_format=torch.channels_last)
    x[0, 0, 0, 0], x[1, 3, 5, 6] = float("nan"), float("inf")
    (got,) = irc.build(module)(x, w)
    exact = wanted(x, w)
    assert torch.equal(got.isfinite(), exact.isfinite()) and 0 < exact.isfinite().sum()


@pytest.mark.parametrize("entries, message", [
    ('depth_order = ["c", "u"]', "adds terms along c, u, not along c, u, v"),
    ('outer_rows = ["o"]', "o, j and o are no axes of rows and columns"),
])  # fmt: skip
def test_other_axes_than_it_has_are_refused(entries, message):
    with pytest.raises(InvalidIR, match=message):
        formed(windows(entries=f"tile_rows = 4 : i64, {entries}"))
