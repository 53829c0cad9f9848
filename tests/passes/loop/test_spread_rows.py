"""Few long rows spread over a GPU: values of softmaxes, norms and sums, of even and odd parts, with
infinities and NaN; rows that stay as they are, and why; how rows are cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import irc
from irc.dialects import loop
from irc.ir.passes import PassContext, PassManager
from irc.options.options import from_mapping
from irc.pipeline import stages
from tests.passes.loop.texts import computes, head, heads, parsed, ran, remarks

LAST = torch.channels_last
#: A GPU that is slow with a row for each program instance, for which small ones are spread.
SLOW = "#irc.target<sm_90, instance_points = 1, crossed_points = 1>"


def staged(
    call: Callable[..., Any], arguments: tuple[Tensor, ...], last: str, target: str = "sm_90"
) -> Any:
    """A call's program for a GPU behind a stage, and what was told of rows."""
    module, told = irc.trace(call, arguments), list[str]()
    for name, text in stages("sm_90", from_mapping({})).items():
        context = PassContext(target=target)
        PassManager.parse(text, verify="each").run(module, context)
        told += [r for r in remarks(context) if "rows are" in r]
        if name == last:
            return module, told
    raise AssertionError(last)


def tupled(results: Any) -> tuple[Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


def steps(result: Tensor) -> list[int]:
    """The strides of axes of several points."""
    return [step for step, size in zip(result.stride(), result.shape, strict=True) if size > 1]


def check(
    call: Callable[..., Any], *arguments: Tensor, kernels: int, target: str = "sm_90"
) -> None:
    """Its rows are spread over so many kernels, with eager's values, as loops and as kernels."""
    precise = tupled(call(*[a.double() for a in arguments]))
    eager = tupled(call(*arguments))
    for stage in ("fuse-loops", "loop-to-kernel"):
        module, told = staged(call, arguments, stage, target)
        assert any("rows are spread in" in text for text in told), told
        for result, close, alike in zip(irc.run(module, *arguments), precise, eager, strict=True):
            tolerance = 5e-5 if alike.dtype is torch.float32 else 4e-3
            torch.testing.assert_close(
                result.double(), close, rtol=tolerance, atol=tolerance, equal_nan=True)
            assert result.dtype is alike.dtype and steps(result) == steps(alike)
    assert str(module).count("kernel.func") == kernels


def rows(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    torch.manual_seed(sum(sizes))
    return torch.randn(*sizes).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("points, kernels", [(65536, 2), (65537, 3)])
def test_softmaxes_of_even_and_odd_parts(points: int, kernels: int, dtype: torch.dtype) -> None:
    """Odd parts store nothing: a kernel of its own does, after one that combines them."""
    check(lambda x: x.softmax(-1), rows(2, points, dtype=dtype), kernels=kernels)
    check(lambda x: x.log_softmax(-1), rows(2, points, dtype=dtype), kernels=kernels)


@pytest.mark.parametrize("points", [65536, 65537])
def test_rows_of_infinities_and_nan(points: int) -> None:
    """Parts that are all -inf, a row that is, one with +inf, one with NaN."""
    x = rows(5, points)
    x[0, :40000] = -torch.inf
    x[1] = -torch.inf
    x[2, 7], x[3, -1] = torch.inf, torch.nan
    x[4, 3:] = -torch.inf
    check(lambda x: x.softmax(-1), x, kernels=2 + (points == 65537))
    check(lambda x: (x.log_softmax(-1), x.amax(-1)), x, kernels=3)


def test_norms() -> None:
    check(lambda x, w, b: F.layer_norm(x, (65536,), w, b),
          rows(3, 65536), rows(65536), rows(65536), kernels=2)  # fmt: skip
    check(lambda x: F.normalize(x, dim=-1), rows(2, 65537), kernels=3)
    check(lambda x: F.rms_norm(x, (65536,)), rows(2, 65536), kernels=2)


def test_what_is_stored_along_rows_before_the_reduction_and_of_rows() -> None:
    """A sum that a norm is of is stored by the first kernel; means of rows by one of their own."""
    check(lambda x, y: (lambda h: (h, F.layer_norm(h, (65536,)), h.mean(-1)))(x + y.exp()),
          rows(2, 65536), rows(2, 65536), kernels=3)  # fmt: skip
    check(lambda x: (x.log_softmax(-1), x.logsumexp(-1)), rows(2, 65536), kernels=4)


def test_several_axes_are_cut_where_they_are_outermost_in_memory() -> None:
    """Channels of a group norm are parts, and its rows where channels lie innermost."""
    x = rows(1, 32, 96, 96)
    check(lambda x: F.group_norm(x, 4), x, kernels=2)
    module, _ = staged(lambda x: F.group_norm(x, 4), (x,), "fuse-loops")
    assert heads(module)[0] == (
        "par(i0: 1) par(i1: 4) par(i2: 8) par(i3: 8) red(i4: 12) red(i5: 96) -> reduce")
    last = x.contiguous(memory_format=LAST)
    check(lambda x: F.silu(F.group_norm(x, 2)), last, kernels=2)
    module, _ = staged(lambda x: F.silu(F.group_norm(x, 2)), (last,), "fuse-loops")
    assert heads(module)[0] == (
        "par(i0: 1) par(i1: 2) par(i2: 96) par(i3: 2) red(i4: 16) red(i5: 48) -> reduce")


def test_narrow_rows_are_reduced_beside_each_other() -> None:
    """Four channels of 16 bits of a group have 8 bytes side by side: a part is of one channel."""
    x = rows(1, 32, 64, 64, dtype=torch.float16).contiguous(memory_format=LAST)
    check(lambda x: F.group_norm(x, 8), x, kernels=3, target=SLOW)
    module, _ = staged(lambda x: F.group_norm(x, 8), (x,), "fuse-loops", SLOW)
    first = computes(module)[0]
    assert head(first) == (
        "par(i0: 1) par(i1: 8) par(i2: 4) par(i3: 64) par(i4: 4) red(i5: 16) -> reduce")
    # Channels of all groups lie side by side in what the parts give, too.
    assert first.results[0].type.strides == (32, 4, 1, 128, 32)


def test_rows_that_cross_memory_are_spread_however_many_they_are() -> None:
    """Of 160 rows that are stored along another axis than they are read along."""
    x = rows(40, 16, 16, 16).contiguous(memory_format=LAST)
    check(lambda x: F.group_norm(x, 4).contiguous(), x, kernels=3, target=SLOW)


def test_results_of_rows_keep_their_strides() -> None:
    """What rows have is stored as eager mode has it, where rows are permuted."""
    x = rows(3, 2, 65536).permute(1, 0, 2)
    check(lambda x: (x - x.mean(-1, keepdim=True), x.mean(-1, keepdim=True) * 2), x, kernels=3)


def test_what_rows_have_is_combined_once() -> None:
    """By the kernel that asks for it first: sums in another order would be a bit apart."""
    x = rows(2, 65536)

    def call(x: Tensor) -> Tensor:
        x = x / x.norm(dim=-1, keepdim=True)
        x = x * x.abs().sum(-1, keepdim=True)
        return x - x.mean(-1, keepdim=True)

    check(call, x, kernels=4)
    module, _ = staged(call, (x,), "fuse-loops")
    combined = [c for c in computes(module) if head(c).endswith("red(i2: 64) -> reduce")]
    assert len(combined) == 3


def gradients(call: Callable[..., Tensor]) -> Callable[..., Any]:
    """The gradients of what a call is given but the last argument, which is its result's."""
    return lambda *arguments: torch.func.vjp(call, *arguments[:-1])[1](arguments[-1])


def test_gradients_of_norms_and_softmaxes() -> None:
    """Sums over a group's channels, which are few, are computed anew for each part."""
    x, w, b = rows(1, 32, 48, 48), rows(32), rows(32) + 1
    group_norm = gradients(lambda x, w, b: F.group_norm(x, 4, w, b))
    check(group_norm, x, w, b, rows(1, 32, 48, 48), kernels=4, target=SLOW)
    last = rows(1, 32, 48, 48).contiguous(memory_format=LAST)
    check(group_norm, x.contiguous(memory_format=LAST), w, b, last, kernels=4, target=SLOW)
    check(gradients(lambda x, w: F.layer_norm(x, (65536,), w)),
          rows(2, 65536), rows(65536), rows(2, 65536), kernels=4)  # fmt: skip
    check(gradients(lambda x: x.softmax(-1)), rows(2, 65536), rows(2, 65536), kernels=3)


@pytest.mark.parametrize("call, arguments, reason", [
    (lambda x: x.softmax(-1), (rows(200, 4096),), "200 keep a GPU busy"),
    (lambda x: x.softmax(-1), (rows(4, 4096),), " us -> "),
    (lambda x: x.softmax(-1), (rows(4, 2048),), "2048 points are no 4 parts of 1024"),
    (lambda x: F.layer_norm(x, (65537,)), (rows(2, 65537),), "no parts of (65537,) are equal"),
    (lambda x: (x == (x * 3).exp().amax(-1, keepdim=True)) * x.softmax(-1), (rows(2, 65536),),
     "asks which points are extremes"),
], ids=["many", "short", "few points", "moments", "extremes"])  # fmt: skip
def test_rows_that_stay(call: Any, arguments: tuple[Tensor, ...], reason: str) -> None:
    module, told = staged(call, arguments, "fuse-loops")
    assert any("rows are not spread: " in t and reason in t for t in told), told
    assert len([op for op in module.walk() if isinstance(op, loop.GroupOp)]) == 1


TEXT = """%y = loop.group (i0: 2) {
  %m = loop.compute par(i0: 2) red(i1: 65536) -> reduce(sum, f32) {
    %a = loop.read %x[AT] : f32
    loop.yield %a
  } : f32[2]
  %q = loop.compute par(i0: 2, i1: 65536) -> map {
    %a = loop.read %x[AT] : f32
    %b = loop.read %m[i0] : f32
    %c = arith.divf %a, %b : f32
    loop.yield %c
  } : f32[2, 65536]
  loop.yield %q
} : f32[2, 65536]"""


def of_text(at: str, shape: str) -> tuple[str, Any]:
    module = parsed(f"%x: f32[{shape}]", TEXT.replace("AT", at), "%y: f32[2, 65536]")
    context = ran(module, "spread-rows", "sm_90")
    return " ".join(remarks(context)), module


def test_rows_across_memory_are_left_to_split_reductions() -> None:
    told, module = of_text("i1, i0", "65536, 2")
    assert "its rows lie across memory" in told and str(module).count("loop.compute") == 2


def test_it_costs_fuel_and_needs_a_gpu() -> None:
    told, module = of_text("i0, i1", "2, 65536")
    assert "rows are spread in 64 parts" in told and str(module).count("loop.compute") == 3
    for target, fuel in (("avx2", None), ("sm_90", 0)):
        module = parsed("%x: f32[2, 65536]", TEXT.replace("AT", "i0, i1"), "%y: f32[2, 65536]")
        before = str(module)
        ran(module, "spread-rows", target, fuel)
        assert str(module).count("loop.group") == before.count("loop.group") == 1
