"""Scans and reductions combine elements in the types in which ATen does."""

from __future__ import annotations

import math

import pytest
import torch

import irc
from irc.ir.types import DTYPE_OF_ELEMENT, bf16, f16, f32, f64, i32
from irc.passes.graph.convert_aten.accumulation import ACCUMULATORS, accumulator_of

pytestmark = pytest.mark.fault("V7")

SCANS = ("cumsum", "cumprod", "logcumsumexp")
ELEMENTS = (f16, bf16, f32, f64)


def dtype_of(element) -> torch.dtype:
    return getattr(torch, DTYPE_OF_ELEMENT[element])


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_the_table_says_in_which_type_aten_scans(element):
    """The steps leave the element's range and come back: what is last shows the accumulator."""
    dtype = dtype_of(element)
    largest = torch.finfo(dtype).max
    sums = torch.tensor([largest, largest, -largest, -largest], dtype=dtype)
    wide = accumulator_of("scan", element, "cpu")
    steps = sums.to(dtype_of(wide)).tolist()
    total = torch.zeros((), dtype=dtype_of(wide))
    expected = []
    for step in steps:
        total = total + step
        expected.append(total.to(dtype))
    assert torch.equal(sums.cumsum(0), torch.stack(expected))


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_the_table_says_in_which_type_aten_reduces(element):
    """Two elements whose sum is beyond the range: finite again only in a wider type."""
    dtype = dtype_of(element)
    largest = torch.finfo(dtype).max
    total = torch.tensor([largest, -largest, largest, -largest], dtype=dtype)[[0, 2, 1, 3]].sum()
    wide = accumulator_of("reduce", element, "cpu")
    fits = 2 * largest <= torch.finfo(dtype_of(wide)).max
    assert math.isfinite(total.item()) == fits


def test_accumulators_are_never_narrower_and_integers_wrap():
    for by_device in ACCUMULATORS.values():
        for table in by_device.values():
            assert all(wide.width >= element.width for element, wide in table.items())
    for way in ACCUMULATORS:
        assert accumulator_of(way, i32, "cpu") is i32
    assert accumulator_of("scan", f32, "cuda:1") is f32


def compiled(function, *arguments):
    torch._dynamo.reset()
    return torch.compile(function, backend="irc")(*arguments)


PRODUCTS = [
    [1e30, 1e30, 0.0, 1.0],
    [1e30, 1e30, 1e-38, 1e-30],
    [1e-30, 1e-30, 1e38, 1e30],
    [-1e30, 1e30, -1e-30, math.inf, 0.0],
]


@pytest.mark.parametrize("values", PRODUCTS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_products_that_leave_the_range_come_back(values, dtype):
    x = torch.tensor(values, dtype=dtype)
    torch.testing.assert_close(
        compiled(lambda x: x.cumprod(0), x), x.cumprod(0), equal_nan=True, rtol=1e-2, atol=0
    )


def test_sums_that_leave_the_range_come_back():
    x = torch.tensor([3e38, 3e38, -3e38, -3e38])
    assert compiled(lambda x: x.cumsum(0), x).tolist() == x.cumsum(0).tolist()


@pytest.mark.parametrize("name", SCANS)
def test_long_scans_are_as_near_to_float64_as_eagers(name):
    torch.manual_seed(0)
    x = torch.rand(200_001)
    if name == "cumprod":
        x = 1 + (x - 0.5) * 1e-3
    scan = lambda x: getattr(torch, name)(x, 0)  # noqa: E731
    exact, mine, eager = scan(x.double()), compiled(scan, x), scan(x)
    error = lambda y: ((y - exact) / exact).abs().max().item()  # noqa: E731
    assert error(mine) <= 1.5 * error(eager)


@pytest.mark.parametrize("shape, dim", [((7,), 0), ((5, 33), 1), ((5, 33), 0), ((0, 3), 0),
                                        ((3, 4, 17), 1), ((1,), 0), ((), 0)])  # fmt: skip
def test_scans_beside_other_readers_of_their_results(shape, dim):
    """The rounded results are what others read, in the same kernel or not."""
    torch.manual_seed(0)

    def f(x, half):
        sums = x.cumsum(dim)
        return sums, sums * 2, half.cumsum(dim) + half, x.logcumsumexp(dim).exp(), half.cumprod(dim)

    x, half = torch.randn(shape), torch.randn(shape).half()
    for mine, eager in zip(compiled(f, x, half), f(x, half), strict=True):
        assert mine.dtype is eager.dtype
        tolerance = 1e-2 if mine.dtype is torch.half else 1e-6
        torch.testing.assert_close(mine, eager, rtol=tolerance, atol=tolerance)


def test_an_accumulator_is_a_float_at_least_as_wide():
    text = """
    func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {{
      %y = graph.scan %x {{accumulator = {0}, combiner = "sum", dim = 0 : i64}} : (tensor<4x{1}>) -> tensor<4x{1}>
      func.return %y : tensor<4x{1}>
    }}
    """  # noqa: E501
    module = irc.parse(text.format("f64", "f64"))
    irc.verify(module)
    for bad in ("f32", "i64", "f16"):
        with pytest.raises(irc.InvalidIR, match=f"f64 can't be combined in {bad}"):
            irc.verify(irc.parse(text.format(bad, "f64")))


def test_each_level_means_the_same():
    x = torch.tensor([[3e38, 3e38, -3e38], [1e30, 1e30, 0.0]])
    module = irc.trace(lambda x: (x.cumsum(1), x.cumprod(1)), (x,))
    for stage in ("functional", "aten-to-graph", "graph-to-layout", "layout-to-loop",
                  "fuse-loops", "loop-to-kernel"):  # fmt: skip
        irc.PassManager.parse(stage, verify="each").run(module)
        sums, products = irc.run(irc.parse(irc.print_op(module)), x)
        torch.testing.assert_close(sums, x.cumsum(1), msg=stage)
        torch.testing.assert_close(products, x.cumprod(1), msg=stage)
