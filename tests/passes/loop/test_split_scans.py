"""Long scans in parts: values of each combiner and type, scans that stay whole, a GPU's kernels."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import irc
from irc.dialects import layout, loop
from irc.ir.passes import PassContext, PassManager
from irc.target import Target
from irc.target.attribute import carry

SMALL = "split-scans{least_points=64 part_points=8 most_points=16}"


def scanned(call: Callable[..., object], x: Tensor, target: str = "sm_90") -> irc.ModuleOp:
    """The loops of a call, for a target."""
    module = irc.trace(call, (x,))
    stages = "functional,aten-to-graph,graph-to-layout,layout-to-loop,inline-computes"
    PassManager.parse(stages).run(module)
    carry(module, Target.named(target))
    return module


def split(module: irc.ModuleOp, pipeline: str = SMALL) -> int:
    """Split its scans; how many were."""
    context = PassContext()
    PassManager.parse(pipeline, verify="each").run(module, context)
    return context.statistics["split-scans", "split"]


def data(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Numbers whose sums and products are exact."""
    torch.manual_seed(0)
    return torch.randint(-1, 2, shape).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int64,
                                   torch.int32], ids=str)  # fmt: skip
@pytest.mark.parametrize("shape, dim", [
    ((128,), 0), ((127,), 0), ((130, 5), 0), ((2, 128), 1), ((2, 131, 3), 1), ((1, 97), -1),
])  # fmt: skip
def test_sums_and_products(shape: tuple[int, ...], dim: int, dtype: torch.dtype) -> None:
    """Of even and uneven parts, along any axis: eager's, after the pass and as kernels of a GPU."""
    x = data(shape, dtype)
    for call in (lambda t: t.cumsum(dim), lambda t: t.cumprod(dim)):
        module, expected = scanned(call, x), call(x)
        assert split(module) == 1
        torch.testing.assert_close(irc.run(module, x)[0], expected, rtol=0, atol=0)
        PassManager.parse("merge-computes,group-computes,schedule,form-kernels").run(module)
        (result,) = irc.run(module, x)
        torch.testing.assert_close(result, expected, rtol=0, atol=0)
        assert result.stride() == expected.stride()


@pytest.mark.parametrize("bad, dtype", itertools.product(
    (float("nan"), float("inf"), -0.0), (torch.float32, torch.bfloat16)))  # fmt: skip
def test_numbers_that_are_none_reach_as_far_as_eagers(bad: float, dtype: torch.dtype) -> None:
    x = torch.full((130,), -0.0, dtype=dtype)
    x[77] = bad
    module = scanned(lambda t: t.cumsum(0), x)
    assert split(module) == 1
    result = irc.run(module, x)[0]
    torch.testing.assert_close(result, x.cumsum(0), rtol=0, atol=0, equal_nan=True)


def test_what_is_computed_of_the_elements_is_computed_in_the_parts() -> None:
    x = data((200,), torch.float32)
    module = scanned(lambda t: (t * 2 + 1).cumsum(0) * 3, x)
    assert split(module) == 1
    torch.testing.assert_close(irc.run(module, x)[0], (x * 2 + 1).cumsum(0) * 3, rtol=0, atol=0)


def test_extremes_and_where_they_are() -> None:
    torch.manual_seed(0)
    for x in (torch.randn(200), torch.tensor([float("nan"), 1.0, float("-inf")] * 50).flip(0)):
        for call in (lambda t: t.cummax(0), lambda t: t.cummin(0)):
            module = scanned(call, x)
            assert split(module) == 2
            results, expected = irc.run(module, x), call(x)
            torch.testing.assert_close(tuple(results), tuple(expected), rtol=0, atol=0,
                                       equal_nan=True)  # fmt: skip


def test_parts_that_fill_the_result_are_its_memory() -> None:
    """Uneven ones are copied."""
    for size, views in ((128, 1), (127, 0)):
        module = scanned(lambda t: t.cumsum(0), data((size,), torch.float32))
        split(module)
        assert sum(isinstance(op, layout.ViewOp) for op in module.walk()) == views


def test_many_parts_are_scanned_in_parts_again() -> None:
    x = data((4096,), torch.float32)
    module = scanned(lambda t: t.cumsum(0), x)
    assert split(module) == 3  # 512 parts of 8 points, 64 of these, 8 of those
    torch.testing.assert_close(irc.run(module, x)[0], x.cumsum(0), rtol=0, atol=0)


WHOLE: dict[str, tuple[Callable[..., object], tuple[int, ...], str, str]] = {
    "of a CPU": (lambda t: t.cumsum(0), (128,), "avx2", SMALL),
    "of too few points": (lambda t: t.cumsum(0), (63,), "sm_90", SMALL),
    "of many rows": (lambda t: t.cumsum(1), (1000, 128), "sm_90", SMALL),
    "of many columns": (lambda t: t.cumsum(0), (128, 8192), "sm_90", SMALL),
    "of logarithms": (lambda t: t.logcumsumexp(0), (128,), "sm_90", SMALL),
    "of usual length": (lambda t: t.cumsum(0), (8191,), "sm_90", "split-scans"),
    "of no rows": (lambda t: t.cumsum(1), (0, 128), "sm_90", SMALL),
}


@pytest.mark.parametrize("case", list(WHOLE))
def test_scans_that_stay_whole(case: str) -> None:
    call, shape, target, pipeline = WHOLE[case]
    module = scanned(call, data(shape, torch.float32), target)
    before = irc.print_op(module)
    assert split(module, pipeline) == 0
    assert irc.print_op(module) == before


def test_a_scan_of_usual_options() -> None:
    """A million numbers are as many parts as keep a GPU busy."""
    module = scanned(lambda t: t.cumsum(0), torch.zeros(1 << 20))
    assert split(module, "split-scans") == 1
    axes = [[(a.kind, a.extent) for a in op.axis_list] for op in module.walk()
            if isinstance(op, loop.ComputeOp)]  # fmt: skip
    assert axes == [
        [("par", 1024), ("red", 1024)], [("scan", 1024)], [("par", 1024), ("scan", 1024)],
    ]  # fmt: skip


def test_scans_for_a_range_of_a_size_stay_whole() -> None:
    """What chooses between them takes computes."""
    type_ = "tensor<[n, 128] x f32, strides [128, 1]>"
    scans = "".join(f"""
      %{name} = loop.compute par(i0: n) scan(i1: 128) -> scan(sum, f32)
        attributes {{when = #sym.range<n, {range_}>}} {{
        %a = loop.read %x[i0, i1] : f32
        loop.yield %a }} : {type_}""" for name, range_ in (("p", "0, 16"), ("q", "17")))
    module = irc.parse(f"""func.func @main(%x: {type_}) -> {type_} attributes {{level = "loop"}} {{
      %n0 = sym.bind_size %x {{dim = 0 : i64, symbol = "n"}} : ({type_}) -> index {scans}
      %y = sym.choose %p, %q : ({type_}, {type_}) -> {type_}
      return %y : {type_} }}""")
    carry(module, Target.named("sm_90"))
    assert split(module) == 0
