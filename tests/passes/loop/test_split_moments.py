"""On a GPU: moments in parts, and groups of columns' reductions that leave it idle."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import irc.interp
from tests.passes.loop.texts import computes, heads, parsed, ran, remarks

GPU = "sm_90"
MOMENTS = """%m, %q = loop.compute {axes} -> reduce(moments, f32) {{
      %a = loop.read %x[{read}] : f32
      loop.yield %a }} : {type}, {type}
"""
LONG = "red(i0: 4096) par(i1: 64)"


def moments(axes: str, read: str, shape: str, *, kept: str) -> Any:
    """A program that gives the moments of `%x`, of so many points for each of `kept`."""
    type_ = f"f32[{kept}]"
    body = MOMENTS.format(axes=axes, read=read, type=type_)
    return parsed(f"%x: f32[{shape}]", body, f"%m: {type_}, %q: {type_}")


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize(
    ("axes", "read", "shape", "kept", "dims"),
    [
        (LONG, "i0, i1", "4096, 64", "64", (0,)),
        ("red(i0: 4) par(i1: 32) red(i2: 56, i3: 56)", "i0, i2, i3, i1", "4, 56, 56, 32", "32",
         (0, 1, 2)),
        ("par(i0: 3) red(i1: 5000, i2: 9) par(i3: 5)", "i0, i1, i2, i3", "3, 5000, 9, 5", "3, 5",
         (1, 2)),
    ],
)  # fmt: skip
def test_moments_in_parts_are_moments(
    axes: str, read: str, shape: str, kept: str, dims: tuple[int, ...], scale: float
) -> None:
    module = moments(axes, read, shape, kept=kept)
    context = ran(module, "split-reductions", target=GPU)
    assert context.statistics["split-reductions", "split"] == 1
    assert len(computes(module)) == 3  # with what puts the squares together
    x = torch.randn(list(map(int, shape.split(", "))), dtype=torch.float64) * scale + 10
    mean, squares = irc.interp.run(module, x.float())
    whole = x.float().double()
    count = whole.numel() // mean.numel()
    torch.testing.assert_close(mean.double(), whole.mean(dims), rtol=1e-6, atol=0)
    deviations = whole.var(dims, correction=0) * count
    torch.testing.assert_close(squares.double(), deviations, rtol=2e-3 if scale < 1 else 1e-5,
                               atol=0)  # fmt: skip


def test_infinities_and_nan_go_through() -> None:
    module = moments(LONG, "i0, i1", "4096, 64", kept="64")
    ran(module, "split-reductions", target=GPU)
    x = torch.randn(4096, 64)
    x[7, 1], x[9, 2] = float("inf"), float("nan")
    mean, squares = irc.interp.run(module, x)
    assert mean[1] == float("inf") and squares[1].isnan() and mean[2].isnan()
    assert mean[0].isfinite() and squares[0].isfinite() and squares[3:].isfinite().all()


@pytest.mark.parametrize(
    ("axes", "shape", "target", "reason"),
    [
        ("red(i0: 4099) par(i1: 64)", "4099, 64", GPU, "moments: equal ones"),
        (LONG, "4096, 64", "avx2", "parts of moments don't combine by it"),
        ("red(i0: 1024) par(i1: 64)", "1024, 64", GPU, "no 4 parts with enough to do"),
    ],
)
def test_moments_that_stay_whole(axes: str, shape: str, target: str, reason: str) -> None:
    module = moments(axes, "i0, i1", shape, kept="64")
    context = ran(module, "split-reductions", target=target)
    assert len(computes(module)) == 1 and any(reason in r for r in remarks(context))


GROUP = """%r, %w = loop.group (i0: 64) {
    %s = loop.compute par(i0: 64) red(i1: 4096) -> reduce(sum, f32) {
      %a = loop.read %x[i1, i0] : f32
      loop.yield %a } : f32[64]
    %t = loop.compute par(i0: 64, i1: 1) -> map {
      %b = loop.read %s[i0] : f32
      %c = arith.mulf %b, %b : f32
      loop.yield %c } : f32[64, 1]
    EXTRA
    loop.yield %t, %u } : f32[64, 1], f32[64ALONG]
"""
COLUMNS = """%u = loop.compute par(i0: 64) red(i1: 4096) -> reduce(max, f32) {
      %d = loop.read %x[i1, i0] : f32
      %e = loop.read %s[i0] : f32
      %f = arith.subf %d, %e : f32
      loop.yield %f } : f32[64]"""
MAP = """%u = loop.compute par(i0: 64, i1: 4096) -> map {
      %d = loop.read %x[i1, i0] : f32
      loop.yield %d } : f32[64, 4096]"""


def grouped(extra: str, along: str, array: str = "f32[4096, 64]") -> Any:
    text = GROUP.replace("EXTRA", extra).replace("ALONG", along)
    return parsed(f"%x: {array}", text, f"%r: f32[64, 1], %w: f32[64{along}]")


def test_a_group_of_columns_is_taken_apart() -> None:
    x = torch.randn(4096, 64)
    module = grouped(COLUMNS, "")
    context = ran(module, "split-reductions", target=GPU)
    assert context.statistics["split-reductions", "split"] == 2
    assert heads(module) == [
        "par(i0: 64) red(i1: 64) par(i2: 64) -> reduce",
        "group(i0: 64)",
        "- par(i0: 64) red(i1: 64) -> reduce",
        "- par(i0: 64) par(i1: 1) -> map",
        "par(i0: 64) red(i1: 64) par(i2: 64) -> reduce",
        "par(i0: 64) red(i1: 64) -> reduce",
    ]
    squares, most = irc.interp.run(module, x)
    total = x.double().sum(0)
    torch.testing.assert_close(squares[:, 0].double(), total.square(), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(most.double(), (x.double() - total).max(0)[0], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("extra", "along", "array", "target"),
    [
        (MAP, ", 4096", "f32[4096, 64]", GPU),  # what passes between them would be stored
        (COLUMNS, "", "tensor<[4096, 64] x f32, strides [1, 4096]>", GPU),  # rows, not columns
        (COLUMNS, "", "f32[4096, 64]", "avx2"),
    ],
)
def test_other_groups_stay(extra: str, along: str, array: str, target: str) -> None:
    module = grouped(extra, along, array)
    before = heads(module)
    ran(module, "split-reductions", target=target)
    assert heads(module) == before
