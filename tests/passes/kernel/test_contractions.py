"""Contractions in tiles of registers: values of all shapes against float64, and what their
schedules may say."""

from __future__ import annotations

import itertools

import pytest
import torch

import irc
from irc.dialects import loop
from irc.interp.core import run
from irc.ir.passes import PassManager

TILES = "tile_rows = 4 : i64, tile_vectors = 2 : i64"


def matrix(shape, strides=None, element="f32"):
    strides = torch.empty(shape).stride() if strides is None else strides
    return f"tensor<{list(shape)} x {element}, strides {list(strides)}>"


def product(rows, inner, columns, entries=TILES, left=None, right=None, across=(), result=None):
    """A product; `across` names the factors that are read with exchanged dimensions."""
    a = matrix((inner, rows) if "left" in across else (rows, inner), left)
    b = matrix((columns, inner) if "right" in across else (inner, columns), right)
    y = matrix((rows, columns), result)
    return f"""
func.func @main(%a: {a}, %b: {b}) -> {y} attributes {{level = "loop"}} {{
  %y = loop.compute par(m: {rows}, n: {columns}) red(k: {inner}) -> reduce(sum, f32)
      schedule #loop.schedule<cpu, {entries}> {{
    %p = loop.read %a[{"k, m" if "left" in across else "m, k"}] : f32
    %q = loop.read %b[{"n, k" if "right" in across else "k, n"}] : f32
    %v = arith.mulf %p, %q : f32
    loop.yield %v
  }} : {y}
  func.return %y : {y}
}}"""


def arguments(module, sizes=None):
    """Random tensors for a module's arguments, in their strides."""
    torch.manual_seed(0)
    found = []
    for value in module.lookup("main").block.arguments:
        shape, strides = value.type.shape, value.type.strides
        dtype = {"bf16": torch.bfloat16, "f64": torch.float64}.get(
            str(value.type.element), torch.float32
        )
        made = torch.empty_strided(shape, strides, dtype=dtype)
        found.append(made.copy_(torch.randn(shape)))
    return found


def formed(text, bits=512):
    """The module with kernels, of which at least one has tiles."""
    module = irc.parse(text)
    PassManager.parse(f"schedule{{vector_bits={bits}}}", verify="each").run(module)
    schedules = [op.schedule for op in module.walk() if isinstance(op, loop.ComputeOp)]
    assert any(s.entries.get("row_axis") for s in schedules if s is not None)
    PassManager.parse("form-kernels", verify="each").run(module)
    return module


def interpreted(text, bits=512):
    """Check the kernel against the text as it stands, over the reals."""
    before = irc.parse(text)
    given = arguments(before)
    module = formed(text, bits)
    for got, wanted in zip(run(module, *given, mode="real"), run(before, *given, mode="real"),
                           strict=True):  # fmt: skip
        torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)
    return module


def native(text, bits=512, threads=1):
    """What the kernel's machine code gives, and its arguments; threads begin anywhere."""
    module = formed(text, bits)
    given = arguments(module)
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    got = irc.build(module)(*given)
    return (got[0] if isinstance(got, list | tuple) else got), given


SIZES = [(2, 7, 31), (7, 31, 17), (13, 2, 7), (5, 7, 2), (3, 5, 65)]


@pytest.mark.parametrize("rows, inner, columns", SIZES)
def test_odd_sizes_interpreted(rows, inner, columns):
    packed = ", pack_left = true, pack_right = true" if rows == 7 else ""
    interpreted(product(rows, inner, columns, TILES + packed), 256)


@pytest.mark.parametrize("sizes", list(itertools.product([0, 1, 9], repeat=3)), ids=str)
def test_small_sizes_have_tiles_or_not(sizes):
    before = irc.parse(product(*sizes))
    given = arguments(before)
    PassManager.parse("schedule,form-kernels,bufferize,plan-memory").run(before)
    (got,) = irc.build(before)(*given)
    wanted = given[0].double() @ given[1].double()
    torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bits", [512, 256])
@pytest.mark.parametrize("rows, inner, columns", [
    (65, 31, 65), (31, 65, 7), (7, 7, 65), (64, 64, 64), (2, 65, 31), (65, 3, 2), (129, 130, 131),
])  # fmt: skip
@pytest.mark.parametrize("across", ["", "left", "right", "left right"])
def test_values(rows, inner, columns, across, bits):
    got, (a, b) = native(product(rows, inner, columns, across=across.split()), bits)
    a, b = a.t() if "left" in across else a, b.t() if "right" in across else b
    torch.testing.assert_close(got.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-4)


ENTRIES = [
    "tile_rows = 3 : i64, tile_vectors = 1 : i64",
    "tile_rows = 14 : i64, tile_vectors = 2 : i64, inner = \"columns\"",
    "tile_rows = 6 : i64, tile_vectors = 4 : i64, lanes = 8 : i64, block_depth = 16 : i64",
    "tile_rows = 5 : i64, point_rows = 10 : i64, point_columns = 64 : i64, block_rows = 5 : i64",
    "tile_rows = 8 : i64, tile_vectors = 3 : i64, point_columns = 96 : i64, pack_right = true, "
    "block_depth = 32 : i64",
    "tile_rows = 4 : i64, pack_left = true, pack_right = true, block_depth = 48 : i64, "
    "block_rows = 8 : i64, point_rows = 24 : i64",
    "row_axis = \"n\", vector_axis = \"m\", pack_left = true, pack_right = true, "
    "tile_rows = 4 : i64",
]


@pytest.mark.parametrize("entries", ENTRIES)
def test_every_schedule_gives_the_values(entries):
    sizes = 39, 70, 101
    got, (a, b) = native(product(*sizes, entries))
    torch.testing.assert_close(got.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-4)
    interpreted(product(13, 50, 70, entries), 256)
