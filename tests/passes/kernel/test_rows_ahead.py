"""Rows that are fetched before the tiles that multiply them (`rows_ahead`): values, and who has
them fetched."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.dialects import loop
from irc.ir.diagnostics import InvalidIR
from irc.ir.passes import PassContext, PassManager
from irc.target import Target
from tests.passes.kernel.test_contractions import native, product

LIES = "tile_rows = 3 : i64, tile_vectors = 2 : i64, lanes = 8 : i64, pack_left = false"


def kernels(text):
    """The kernel-level text of a program."""
    module = irc.parse(text)
    PassManager.parse("schedule{vector_bits=256},form-kernels", verify="each").run(module)
    return irc.print_op(module)


@pytest.mark.parametrize("entries", [
    "rows_ahead = 1 : i64", "rows_ahead = 5 : i64, inner = \"columns\"",
    "rows_ahead = 2 : i64, block_depth = 24 : i64, block_rows = 6 : i64",
    "rows_ahead = 2 : i64, point_rows = 12 : i64, pack_right = true, terms = 4 : i64",
])  # fmt: skip
@pytest.mark.parametrize("sizes", [
    (37, 65, 40), (9, 16, 16), (4, 15, 17), (30, 48, 33), (3, 7, 24),
], ids=str)  # fmt: skip
def test_values(sizes, entries):
    got, (a, b) = native(product(*sizes, f"{LIES}, {entries}"))
    torch.testing.assert_close(got.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("inner, loops", [(64, 1), (70, 2), (10, 1)])
def test_a_line_of_each_row_is_fetched_around_the_innermost_loop(inner, loops):
    """For 16 terms of f32; those behind whole lines have a loop that fetches nothing."""
    text = kernels(product(24, inner, 32, f"{LIES}, rows_ahead = 2 : i64"))
    fetched = [line for line in text.splitlines() if "kernel.prefetch %a" in line]
    assert len(fetched) == (3 if inner >= 16 else 0)
    if fetched:
        inside = text[text.index(fetched[-1]):]
        assert "kernel.for" in inside[: inside.index("math.fma")]
    assert text.count("unroll = ") == loops


def test_another_number_of_tiles_is_another_place():
    two, three = (kernels(product(24, 64, 32, f"{LIES}, rows_ahead = {n} : i64")) for n in (2, 3))
    assert two != three and two.count("prefetch %a") == three.count("prefetch %a")


@pytest.mark.parametrize("entries, across", [
    (f"{LIES.replace('false', 'true')}, rows_ahead = 2 : i64", ()),
    (f"{LIES}, rows_ahead = 2 : i64", ("left",)),
])  # fmt: skip
def test_packed_rows_and_others_are_refused(entries, across):
    module = irc.parse(product(24, 64, 32, entries, across=across))
    with pytest.raises(InvalidIR, match="rows can't be fetched ahead"):
        PassManager.parse("schedule{vector_bits=256},form-kernels").run(module)


@pytest.mark.parametrize("rows, inner, columns, figures, across, ahead", [
    (12544, 256, 48, "", (), 2),
    (12544, 256, 48, ", fetched_rows = 4", (), 4),
    (12544, 256, 64, ", fetched_rows = 0", (), 0),
    (128, 256, 64, "", (), 0),  # they stay in the second-level cache
    (128, 256, 40, ", core_bytes = 65536", (), 2),
    (12544, 256, 64, "", ("left",), 0),  # they are packed
    (12544, 256, 50, "", (), 0),  # they meet four panels of 16
    (12544, 256, 50, ", met_panels = 4", (), 2),
])  # fmt: skip
def test_the_chooser(rows, inner, columns, figures, across, ahead):
    text = product(rows, inner, columns, "tile_rows = 4 : i64, tile_vectors = 2 : i64",
                   across=across)  # fmt: skip
    module = irc.parse(text)
    context = PassContext(target=Target.named(f"#irc.target<avx2{figures}>"))
    PassManager.parse("schedule").run(module, context)
    (compute,) = (op for op in module.walk() if isinstance(op, loop.ComputeOp))
    assert compute.schedule.entries.get("rows_ahead").value == ahead
    PassManager.parse("form-kernels", verify="each").run(module, context)
