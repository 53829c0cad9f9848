"""On a GPU what is computed once for each row of a group may take the place of what it reads there:
the running statistics of a batch norm."""

from __future__ import annotations

import pytest

from tests.passes.loop.texts import parsed, ran

TEXT = """%r, %n, %w = loop.group (i0: 64) {
    %m = loop.compute par(i0: 64) red(i1: 96) -> reduce(sum, f32) {
      %a = loop.read %x[i1, i0] : f32
      EXTRA
      loop.yield %a } : f32[64]
    %u = loop.compute par(i0: 64) -> map {
      %b = loop.read %m[i0] : f32
      %c = loop.read %old[READ] : f32
      %d = arith.addf %b, %c : f32
      loop.yield %d } : f32[64]
    %v = loop.compute par(i0: 64) -> map {
      %e = loop.read %m[i0] : f32
      %f = loop.read %OTHER[i0] : f32
      %g = arith.mulf %e, %f : f32
      loop.yield %g } : f32[64]
    loop.yield %u, %v, %m } : f32[64], f32[64], f32[64]
"""


def sharing(read: str = "i0", other: str = "scale", extra: str = "") -> list[int]:
    """`inplace` of the kernel: inputs x, old, scale, then the outputs."""
    text = TEXT.replace("READ", read).replace("OTHER", other).replace("EXTRA", extra)
    module = parsed("%x: f32[96, 64], %old: f32[64], %scale: f32[64]", text,
                    "%r: f32[64], %n: f32[64], %w: f32[64]")  # fmt: skip
    ran(module, "schedule{target=gpu},form-kernels", target="sm_90")
    (kernel,) = [op for op in module.walk() if op.name == "kernel.func"]
    return list(kernel.inplace or ())


@pytest.mark.parametrize(
    ("given", "pairs"),
    [
        ({}, [1, 3, 2, 4]),
        ({"read": "63 - i0"}, [2, 4]),  # of another row
        ({"other": "old"}, []),  # two members read it
        ({"other": "u"}, []),  # another member reads the result: it may be computed twice
        ({"extra": "%z = loop.read %old[i0] : f32"}, [2, 4]),
    ],
    ids=["alone", "another row", "two members", "a result that is read", "a sum reads it"],
)
def test_what_is_written_where_it_is_read(given: dict[str, str], pairs: list[int]) -> None:
    assert sharing(**given) == pairs
