"""Products whose vectors run along the depth: values against float64, nothing is packed, and what
their schedules may say."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects.kernel import KernelFuncOp, PrefetchOp
from irc.ir.passes import PassManager
from tests.passes.kernel.test_contractions import (
    SYMBOLS,
    arguments,
    formed,
    fused,
    interpreted,
    matrix,
    native,
    product,
)

DEPTH = 'products = "depth"'


def unpacked(rows, inner, columns, entries=DEPTH, **more):
    return product(rows, inner, columns, entries, across=["right"], **more)


@pytest.mark.parametrize("bits", [512, 256, 128])
@pytest.mark.parametrize("sizes", [
    (2, 64, 16), (4, 65, 31), (7, 15, 17), (16, 130, 40), (13, 2, 3), (5, 33, 66),
])  # fmt: skip
def test_values(sizes, bits):
    got, (a, b) = native(unpacked(*sizes), bits)
    torch.testing.assert_close(got.double(), a.double() @ b.double().t(), rtol=1e-4, atol=1e-4)


ENTRIES = [
    "tile_rows = 1 : i64, tile_columns = 1 : i64",
    "tile_rows = 3 : i64, tile_columns = 5 : i64, tile_vectors = 2 : i64",
    "tile_rows = 5 : i64, tile_columns = 16 : i64, lanes = 8 : i64, inner = \"columns\"",
    "tile_rows = 2 : i64, point_rows = 4 : i64, point_columns = 32 : i64, block_rows = 2 : i64",
    "pack_left = true, block_rows = 6 : i64, tile_rows = 6 : i64",
]


@pytest.mark.parametrize("entries", ENTRIES)
def test_every_schedule_gives_the_values(entries):
    got, (a, b) = native(unpacked(11, 70, 53, f"{DEPTH}, {entries}"))
    torch.testing.assert_close(got.double(), a.double() @ b.double().t(), rtol=1e-4, atol=1e-4)
    interpreted(unpacked(7, 21, 18, f"{DEPTH}, {entries}"), 256)


@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_what_comes_before_and_behind(element):
    text = fused(9, 40, 70, element, DEPTH)
    text = text.replace(matrix((40, 70), element=element), matrix((70, 40), element=element))
    text = text.replace("%b[k, n]", "%b[n, k]")
    assert "pack_left = true" in irc.print_op(scheduled(text))
    got, (a, b, c, d) = native(text)
    wanted = torch.tanh(a.double().clamp(min=0) @ b.double().t() + c.double()) + d.double()
    bound = 1e-4 if element == "f32" else 2e-2
    torch.testing.assert_close(got.double(), wanted, rtol=bound, atol=bound)


@pytest.mark.parametrize("rows, tiles", [(4, 1), (8, 2), (20, 5)])
def test_the_tiles_of_rows_fetch_all_of_the_next_columns(rows, tiles):
    entries = f"{DEPTH}, tile_rows = 4 : i64, tile_columns = 4 : i64, inner = \"rows\""
    (kernel,) = (op for op in formed(unpacked(rows, 64, 64, entries)).walk()
                 if isinstance(op, KernelFuncOp))  # fmt: skip
    places = [op for op in kernel.walk() if isinstance(op, PrefetchOp)]
    assert {op.pointer for op in places} == {kernel.block.arguments[1]}
    assert len(places) == -(-4 // tiles)


def scheduled(text):
    module = irc.parse(text)
    PassManager.parse("schedule{vector_bits=512}").run(module)
    return module


def test_what_is_no_number_stays_in_its_row_and_column():
    module = formed(unpacked(6, 37, 21))
    a, b = arguments(module)
    a[3, 36], b[20, 5] = float("nan"), float("inf")
    PassManager.parse("bufferize,plan-memory").run(module)
    (got,) = irc.build(module)(a, b)
    torch.testing.assert_close(got, a @ b.t(), rtol=1e-4, atol=1e-4, equal_nan=True)


def test_sizes_that_are_known_when_it_runs():
    text = SYMBOLS.format(entries=f"{DEPTH}, tile_rows = 3 : i64")
    text = text.replace("[s1, s2] x f32, strides [s2, 1]", "[s2, s1] x f32, strides [s1, 1]")
    text = text.replace('%b {dim = 1 : i64', '%b {dim = 0 : i64').replace("%b[k, n]", "%b[n, k]")
    module = formed(text)
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    run = irc.build(module)
    for rows, inner, columns in [(0, 3, 4), (1, 1, 1), (4, 0, 9), (8, 20, 65), (12, 16, 32)]:
        a = torch.empty_strided((rows, inner), (inner, 1)).normal_()
        b = torch.empty_strided((columns, inner), (inner, 1)).normal_()
        (got,) = run(a, b)
        torch.testing.assert_close(got.double(), a.double() @ b.double().t(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows, products", [(16, "depth"), (65, "lanes")])
def test_few_rows_choose_it(rows, products):
    module = scheduled(unpacked(rows, 64, 64, "point_rows = 0 : i64"))
    assert f'products = "{products}"' in irc.print_op(module)
    PassManager.parse("form-kernels").run(module)
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelFuncOp))
    assert (len(kernel.block.arguments) == 3 + 2) == (products == "depth")


@pytest.mark.parametrize("across, entries, reason", [
    ([], "", "read the factor with the columns along it"),
    (["right"], ", pack_right = true", "read the factor with the columns along it"),
    (["left", "right"], ", pack_left = false", "must be packed"),
    (["right"], ", block_depth = 16 : i64", "are of all of it"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(across, entries, reason):
    module = scheduled(product(5, 40, 20, DEPTH + entries, across=across))
    with pytest.raises(irc.InvalidIR, match=reason):
        PassManager.parse("form-kernels").run(module)
