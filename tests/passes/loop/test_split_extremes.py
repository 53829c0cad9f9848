"""Where the extremes of few long rows are, in parts for a GPU: eager's places, also of NaN,
infinities and numbers that are alike; computes that stay whole, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import irc
from irc.ir.passes import PassContext, PassManager
from irc.options.options import from_mapping
from irc.pipeline import stages
from tests.passes.loop.texts import computes, head, parsed, ran, remarks


def staged(call: Callable[..., Any], x: Tensor, last: str) -> tuple[Any, int]:
    """A call's program for a GPU behind a stage, and how many computes were split."""
    module, count = irc.trace(call, (x,)), 0
    for name, text in stages("sm_90", from_mapping({})).items():
        context = PassContext(target="sm_90")
        PassManager.parse(text, verify="each").run(module, context)
        count += context.statistics["split-extremes", "split"]
        if name == last:
            return module, count
    raise AssertionError(last)


def check(call: Callable[..., Any], x: Tensor, split: int = 1) -> None:
    """It is split so often, and has eager's results, as loops and as kernels."""
    expected = call(x)
    expected = tuple(expected) if isinstance(expected, tuple) else (expected,)
    for stage in ("fuse-loops", "loop-to-kernel"):
        module, count = staged(call, x, stage)
        assert count == split
        for result, right in zip(irc.run(module, x), expected, strict=True):
            torch.testing.assert_close(result, right, rtol=0, atol=0, equal_nan=True)
            assert result.stride() == right.stride()


def numbers(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers many of which are alike."""
    torch.manual_seed(sum(sizes))
    return torch.randint(-50, 50, sizes).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.int8], ids=str)
@pytest.mark.parametrize("sizes", [(2, 65536), (1, 50021)])
def test_places_of_the_first_extreme(sizes: tuple[int, int], dtype: torch.dtype) -> None:
    x = numbers(*sizes, dtype=dtype)
    check(lambda x: x.argmax(-1), x)
    check(lambda x: tuple(x.min(-1, keepdim=True)), x)


def test_nan_and_infinities() -> None:
    """The first NaN is beyond all; rows of -inf have their first place, in parts that are shorter
    too, whose lanes outside are no elements."""
    x = numbers(4, 50021)
    x[0, 40000] = torch.nan
    x[1, 7] = x[1, 49000] = torch.nan
    x[2] = -torch.inf
    x[3, :50020] = -torch.inf
    for call in (lambda x: x.argmax(-1), lambda x: (-x).argmin(-1), lambda x: tuple(x.max(-1))):
        check(call, x)


def test_several_axes_and_all_of_them() -> None:
    check(lambda x: x.flatten(1).argmin(1), numbers(2, 300, 301))
    check(lambda x: x.argmax(), numbers(1 << 17))
    check(lambda x: (x.abs() * 3 + 1).argmax(-1), numbers(2, 65536))


def test_the_parts() -> None:
    module, _ = staged(lambda x: x.argmax(-1), numbers(2, 65536), "fuse-loops")
    assert [head(c) for c in computes(module)] == [
        "par(i0: 2) par(i1: 64) red(i2: 1024) -> reduce, reduce",
        "par(i0: 2) red(i1: 64) -> reduce", "par(i0: 2) -> map"]  # fmt: skip


TEXT = """%y = loop.compute par(i0: 2) red(i1: SIZE) -> reduce(argmax, f32) MORE{
  %a = loop.read %x[AT] : f32
  loop.yield %a
} : i64[2]"""


@pytest.mark.parametrize("size, at, shape, reason", [
    (2048, "i0, i1", "2, 2048", "2048 points are no 4 parts of 1024"),
    (8192, "i0, i1", "2, 8192", " us -> "),
    (65536, "i1, i0", "65536, 2", "its results lie side by side in what it reads"),
])  # fmt: skip
def test_what_stays_whole(size: int, at: str, shape: str, reason: str) -> None:
    body = TEXT.replace("SIZE", str(size)).replace("AT", at).replace("MORE", "")
    module = parsed(f"%x: f32[{shape}]", body, "%y: i64[2]")
    context = ran(module, "split-extremes", "sm_90")
    assert reason in " ".join(remarks(context)) and len(computes(module)) == 1


def test_it_costs_fuel_and_needs_a_gpu() -> None:
    body = TEXT.replace("SIZE", "65536").replace("AT", "i0, i1").replace("MORE", "")
    for target, fuel, count in (("avx2", None, 1), ("sm_90", 0, 1), ("sm_90", 1, 3)):
        module = parsed("%x: f32[2, 65536]", body, "%y: i64[2]")
        ran(module, "split-extremes", target, fuel)
        assert len(computes(module)) == count


def test_what_is_scheduled_stays() -> None:
    entries = "schedule #loop.schedule<gpu, x_block = 1 : i64> "
    body = TEXT.replace("SIZE", "65536").replace("AT", "i0, i1").replace("MORE", entries)
    module = parsed("%x: f32[2, 65536]", body, "%y: i64[2]")
    context = ran(module, "split-extremes", "sm_90")
    assert "it has a schedule" in " ".join(remarks(context)) and len(computes(module)) == 1
