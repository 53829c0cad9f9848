"""Loops over windows that run over the points inside of an image alone: values are eager's, and
where nothing may be left out, conditions stay."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch.nn import functional

import irc
from irc.dialects.kernel import KernelFuncOp
from irc.interp.core import run
from irc.ir.passes import PassContext, PassManager
from irc.ir.text.printer import print_op
from irc.pipeline import pipeline_text
from irc.target import Target
from tests.passes.loop.texts import parsed, ran

NEGATIVE, POSITIVE = "0xFF800000", "0x7F800000"
"""The infinities, as text."""
ORDER = 'order = ["u"], outer = ["i"]'
"""The loops of windows, as the schedule has them."""


def bounds(place: str, size: Any = 9, name: str = "in") -> str:
    """Lines that say whether a place is inside of an image."""
    return f"""%{name}_p = loop.index {{expression = #sym<{place}>}} : index
      %{name}_low = loop.index {{expression = #sym<0>}} : index
      %{name}_high = loop.index {{expression = #sym<{size}>}} : index
      %{name}_a = arith.cmpi sge, %{name}_p, %{name}_low : index
      %{name}_b = arith.cmpi slt, %{name}_p, %{name}_high : index
      %{name} = arith.andi %{name}_a, %{name}_b : i1
      """


def read(place: str, outside: str, element: str = "f32", name: str = "in") -> str:
    """Lines that read a place under that condition, and `outside` elsewhere."""
    if not outside:
        return f"%v = loop.read %x[{place}, c] (where %{name}) : {element}\n"
    return f"""%o = arith.constant {outside} : {element}
      %v = loop.read %x[{place}, c] (where %{name} else %o) : {element}
      """


def windows(body: str, outputs: str, results: str, value: str = "%v", places: Any = 5,
            taps: int = 3, names: str = "%y") -> str:  # fmt: skip
    """Windows over rows; each of 32 elements is a result of its own."""
    return f"""{names} = loop.compute par(i: {places}, c: 32) red(u: {taps}) -> {outputs} {{
      {body}loop.yield {value} }} : {results}"""


def formed(body: str, arguments: str = "%x: f32[9, 32]", results: str = "%y: f32[5, 32]",
           usual: str = ORDER, order: str = "") -> tuple[Any, Any]:  # fmt: skip
    """A module, and the same with kernels; `usual` must be its schedule's, which has `order` then.
    """
    module = parsed(arguments, body, results)
    ran(module, "schedule", "avx2")
    text = print_op(module)
    if order:
        assert usual in text
        module = irc.parse(text.replace(usual, order))
    ran(module, "form-kernels")
    return parsed(arguments, body, results), module


def kernel_text(module: Any) -> str:
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelFuncOp))
    return print_op(kernel)


def conditions(text: str) -> list[str]:
    """The reads of a kernel that have a condition."""
    loads = [line for line in text.splitlines() if "kernel.load" in line]
    assert loads
    return [line for line in loads if "(where" in line]


def is_narrowed(module: Any) -> bool:
    """Whether loops run over the points inside alone, so that no read has a condition."""
    return not conditions(kernel_text(module))


def runs_as(before: Any, module: Any, *arguments: Any, tolerance: float = 0.0) -> None:
    """Kernels give what their compute does, interpreted and as machine code."""
    expected = run(before, *arguments)
    outcomes = [run(module, *arguments)]
    PassManager.parse("bufferize,plan-memory", verify="each").run(module)
    results = irc.build(module)(*arguments)
    outcomes.append(list(results) if isinstance(results, list | tuple) else [results])
    for outcome in outcomes:
        torch.testing.assert_close(
            outcome, expected, rtol=tolerance, atol=tolerance, equal_nan=True
        )


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Small numbers, a row of which is -inf and has a NaN."""
    x = torch.randint(-3, 4, shape).float()
    if dtype.is_floating_point:
        x[2:6, 1], x[4, 5], x[0, 7], x[1, 7] = -torch.inf, torch.nan, torch.inf, -0.0
    return x.to(dtype) if dtype is not torch.bool else x > 0


# -- what changes nothing

PLACE = "2*i + u - 1"
DTYPES = {"f32": torch.float32, "i64": torch.int64, "i1": torch.bool}
# Combiner, what is read outside, elements: whether that changes nothing.
OUTSIDE = [
    ("max", NEGATIVE, "f32", True), ("min", POSITIVE, "f32", True), ("sum", "0.0", "f32", True),
    ("sum", "-0.0", "f32", True), ("sum", "", "f32", True), ("prod", "1.0", "f32", True),
    ("argmax", NEGATIVE, "f32", True), ("argmin", POSITIVE, "f32", True),
    ("sum", "0", "i64", True), ("max", str(-(2**63)), "i64", True), ("xor", "0", "i64", True),
    ("any", "false", "i1", True), ("all", "true", "i1", True),
    ("max", "0.0", "f32", False), ("max", "", "f32", False), ("min", NEGATIVE, "f32", False),
    ("max", POSITIVE, "f32", False), ("sum", "1.0", "f32", False), ("prod", "0.0", "f32", False),
    ("prod", "", "f32", False), ("argmax", "0.0", "f32", False), ("sum", "1", "i64", False),
    ("max", "-1", "i64", False), ("any", "true", "i1", False), ("all", "false", "i1", False),
]  # fmt: skip


@pytest.mark.parametrize(("combiner", "outside", "element", "nothing"), OUTSIDE)
def test_points_outside_are_left_out_where_they_change_nothing(combiner, outside, element, nothing):
    result = "i64" if combiner.startswith("arg") else element
    body = windows(bounds(PLACE) + read(PLACE, outside, element), f"reduce({combiner}, {element})",
                   f"{result}[5, 32]")  # fmt: skip
    before, module = formed(body, f"%x: {element}[9, 32]", f"%y: {result}[5, 32]")
    assert is_narrowed(module) is nothing
    runs_as(before, module, numbers(9, 32, dtype=DTYPES[element]))


@pytest.mark.parametrize(("combiner", "outside"), [("moments", "0.0"), ("logsumexp", NEGATIVE)])
def test_variances_and_logarithms_of_sums_count_all_points(combiner, outside):
    type_ = "f32[5, 32]"
    body = windows(bounds(PLACE) + read(PLACE, outside), f"reduce({combiner}, f32)",
                   f"{type_}, {type_}", names="%y, %z")  # fmt: skip
    before, module = formed(body, results=f"%y: {type_}, %z: {type_}")
    assert not is_narrowed(module)
    runs_as(before, module, torch.randn(9, 32), tolerance=1e-5)


# Place, size of the image, points of a window, windows.
PLACES = [
    ("i + u - 1", 9, 3, 9), ("3*i + u - 2", 7, 4, 3), ("i + 2*u - 3", 5, 4, 6),
    ("i + 3*u - 5", 4, 5, 4), ("i - u + 1", 6, 3, 7), ("2*i - 3*u + 4", 8, 5, 6),
    ("8 - 2*u", 6, 6, 3), ("u - 2", 3, 8, 2), ("i + u - 6", 3, 4, 12), ("i + u + 2", 3, 4, 5),
    ("i + u - 1", 1, 3, 1), ("i + u", 9, 3, 7), ("u + i - 200", 700, 1000, 2),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(PLACES)))
def test_windows_at_places_of_all_kinds(number):
    """Steps, gaps, windows that go backwards or lie outside altogether, long ones in chunks."""
    place, size, taps, places = PLACES[number]
    combiner, outside = (("sum", "0.0"), ("max", NEGATIVE))[number % 2]
    body = windows(bounds(place, size) + read(place, outside), f"reduce({combiner}, f32)",
                   f"f32[{places}, 32]", places=places, taps=taps)  # fmt: skip
    before, module = formed(body, f"%x: f32[{size}, 32]", f"%y: f32[{places}, 32]")
    runs_as(before, module, torch.randint(-4, 5, (size, 32)).float())


FLIPPED = {"sge": "sle", "sgt": "slt", "sle": "sge", "slt": "sgt", "eq": "eq", "ne": "ne",
           "ult": "ugt"}  # fmt: skip


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("predicate", FLIPPED)
def test_comparisons(predicate, swapped):
    """Those of order end the loops, whichever side the place stands on; others stay."""
    for number, place in ((4, PLACE), (-2, "u - 2*i"), (9, "i + 3*u"), (0, "i - u")):
        written = FLIPPED[predicate] if swapped else predicate
        pair = "%bound, %place" if swapped else "%place, %bound"
        lines = f"""%place = loop.index {{expression = #sym<{place}>}} : index
      %bound = loop.index {{expression = #sym<{number}>}} : index
      %holds = arith.cmpi {written}, {pair} : index
      %one = arith.constant 1.0 : f32
      %o = arith.constant 0.0 : f32
      %v = loop.read %x[i, c] : f32
      %w = arith.addf %v, %one : f32
      %s = arith.select %holds, %w, %o : f32
      """
        before, module = formed(windows(lines, "reduce(sum, f32)", "f32[5, 32]", "%s"))
        ends = "arith.select" not in kernel_text(module)
        assert ends is (predicate in ("sge", "sgt", "sle", "slt"))
        x = torch.randint(-4, 5, (9, 32)).float()
        torch.testing.assert_close(run(module, x), run(before, x), rtol=0, atol=0)


def test_a_size_that_is_not_known_ends_the_windows():
    place = "i + u - 1"
    bind = '%n0 = sym.bind_size %x {dim = 0, symbol = "n"} : (f32[n, 32]) -> index\n'
    body = bind + windows(
        bounds(place, "n") + read(place, NEGATIVE), "reduce(max, f32)", "f32[n, 32]", places="n"
    )
    before, module = formed(body, "%x: f32[n, 32]", "%y: f32[n, 32]")
    assert is_narrowed(module)
    text = print_op(module)
    for size in (1, 2, 9):
        runs_as(before, irc.parse(text), torch.randn(size, 32))


INSIDE = bounds(PLACE) + read(PLACE, "0.0")
CHOSEN = bounds(PLACE) + read(PLACE, "") + "%z = arith.constant 1.0 : f32\n"
BOTH = "reduce(max, f32), reduce(sum, f32)"
VALUES = {
    "one that is chosen": (CHOSEN + "%e = math.exp %v : f32\n%s = arith.select %in, %e, %z : f32\n",
                           "reduce(prod, f32)", "%s", True),
    "one chosen the other way": (
        CHOSEN + "%e = math.exp %v : f32\n%s = arith.select %in, %z, %e : f32\n",
        "reduce(prod, f32)", "%s", False),
    "one chosen instead of another number": (
        CHOSEN + "%e = math.exp %v : f32\n%s = arith.select %in, %e, %z : f32\n",
        "reduce(sum, f32)", "%s", False),
    "one that is computed of what is read": (
        INSIDE + "%s = math.exp %v : f32\n", "reduce(sum, f32)", "%s", False),
    "one more condition that is data": (
        INSIDE + """%k = loop.read %x[i, c] : f32
      %t = arith.cmpf ogt, %k, %o : f32
      %both = arith.andi %in, %t : i1
      %s = arith.select %both, %v, %o : f32
      """, "reduce(sum, f32)", "%s", True),
    "one condition or the other": (
        bounds(PLACE) + """%either = arith.ori %in_a, %in_b : i1
      """ + read("i + u", "0.0", name="either"), "reduce(sum, f32)", "%v", False),
    "two results that both skip": (
        INSIDE + f"""%n = arith.constant {NEGATIVE} : f32
      %s = arith.select %in, %v, %n : f32
      """, BOTH, "%s, %v", True),
    "two results of which one does not": (INSIDE, BOTH, "%v, %v", False),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    body, outputs, value, narrowed = VALUES[name]
    count = outputs.count("reduce")
    types = ", ".join(["f32[5, 32]"] * count)
    text = windows(body, outputs, types, value, names=", ".join(["%y", "%w"][:count]))
    results = ", ".join(f"{n}: f32[5, 32]" for n in ["%y", "%w"][:count])
    before, module = formed(text, results=results)
    assert is_narrowed(module) is narrowed
    runs_as(before, module, torch.randn(9, 32), tolerance=1e-5)


def test_only_conditions_that_all_results_share_end_the_loops():
    lower = read(PLACE, "0.0").replace("%v", "%w").replace("%in", "%in_a").replace("%o", "%q")
    body = windows(
        bounds(PLACE, 9) + read(PLACE, "0.0") + lower.replace("%x", "%x2"),
        "reduce(sum, f32), reduce(sum, f32)", "f32[5, 32], f32[5, 32]", "%v, %w", names="%y, %z",
    )  # fmt: skip
    arguments = "%x: f32[9, 32], %x2: f32[12, 32]"
    before, module = formed(body, arguments, "%y: f32[5, 32], %z: f32[5, 32]")
    under = conditions(kernel_text(module))
    assert under and not [line for line in under if "%x2[" in line]
    runs_as(before, module, torch.ones(9, 32), torch.ones(12, 32))


@pytest.mark.parametrize("names", ["[]", '["u"]'])
def test_axes_that_are_written_out_have_code_for_each_point(names):
    body = windows(bounds(PLACE) + read(PLACE, "0.0"), "reduce(sum, f32)", "f32[5, 32]")
    before, module = formed(body, order=f"{ORDER}, written_out = {names}")
    assert is_narrowed(module) is (names == "[]")
    runs_as(before, module, torch.randint(-4, 5, (9, 32)).float())


def test_a_condition_on_the_results_axis_alone_leaves_none_out():
    """Sums of rows outside are written too."""
    lines = bounds("k - 2", 2) + read("k - 2", "0.0")
    body = f"""%y = loop.group (i: 5) {{
      %s = loop.compute par(i: 5, k: 6, c: 32) red(u: 3) -> reduce(sum, f32) {{
        {lines}loop.yield %v }} : f32[5, 6, 32]
      %t = loop.compute par(i: 5, k: 6, c: 32) -> map {{
        %r = loop.read %s[i, 5 - k, c] : f32
        loop.yield %r }} : f32[5, 6, 32]
      loop.yield %t : f32[5, 6, 32] }} : f32[5, 6, 32]"""
    loops = 'order = ["k", "c", "u"]'
    before, module = formed(body, results="%y: f32[5, 6, 32]", order=loops, usual=loops)
    runs_as(before, module, torch.randint(-4, 5, (9, 32)).float())


@pytest.mark.parametrize("place", ["c + u - 1", "c - 2*u + 3"])
def test_a_condition_on_the_axis_of_the_vectors_stays(place):
    body = f"""%y = loop.compute par(i: 5, c: 32) red(u: 3) -> reduce(max, f32) {{
      {bounds(place, 32)}%o = arith.constant {NEGATIVE} : f32
      %v = loop.read %x[i, {place}] (where %in else %o) : f32
      loop.yield %v }} : f32[5, 32]"""
    before, module = formed(body)
    assert "vector<8xf32>" in kernel_text(module) and not is_narrowed(module)
    runs_as(before, module, torch.randn(9, 32))


def test_sums_along_the_vectors_leave_out_rows_alone():
    """The loop over rows of a window ends at the image's edge, that over its columns does not."""
    body = f"""%y = loop.compute par(i: 5) red(u: 3, w: 40) -> reduce(sum, f32) {{
      {bounds(PLACE)}{bounds("w - 3", 32, "along")}%inside = arith.andi %in, %along : i1
      %o = arith.constant 0.0 : f32
      %v = loop.read %x[{PLACE}, w - 3] (where %inside else %o) : f32
      loop.yield %v }} : f32[5]"""
    before, module = formed(body, results="%y: f32[5]")
    text = print_op(module)
    assert "arith.maxsi" in text and "vector<8xf32>" in text
    runs_as(before, module, torch.randint(-4, 5, (9, 32)).float())


# -- images


def image(*shape: int, dtype: torch.dtype = torch.float32, last: bool = True) -> torch.Tensor:
    """An image with infinities and both zeros among the data, and a NaN."""
    x = torch.randint(-9, 10, shape).double() / 4
    if dtype.is_floating_point:
        for value in (torch.inf, -torch.inf, -torch.inf, -0.0, 0.0):
            x[torch.rand(shape) < 0.04] = value
        x.flatten()[x.numel() // 2] = torch.nan
    x = x.to(dtype)
    orders = {4: torch.channels_last, 5: torch.channels_last_3d}
    return x.contiguous(memory_format=orders[x.dim()]) if last and x.dim() in orders else x


def kernels(function: Callable[..., Any], *arguments: Any) -> str:
    """The kernels of a traced function, as text."""
    module = irc.trace(function, arguments)
    stages = pipeline_text().split(",join-launches")[0]
    PassManager.parse(f"functional,{stages}").run(module, PassContext(target=Target.named("avx2")))
    return "".join(print_op(op) for op in module.walk() if isinstance(op, KernelFuncOp))


@pytest.mark.parametrize("indices", [False, True])
def test_a_maximum_over_windows_of_a_channels_last_image_has_no_condition(indices):
    text = kernels(
        partial(functional.max_pool2d, kernel_size=3, stride=2, padding=1, return_indices=indices),
        image(2, 32, 9, 9),
    )
    assert not conditions(text)
    assert "arith.maxsi" in text and "arith.minsi" in text


@pytest.mark.parametrize("all_points", [False, True])
def test_a_mean_over_windows_of_a_channels_last_image_has_no_condition(all_points):
    text = kernels(
        partial(functional.avg_pool2d, kernel_size=3, stride=2, padding=1,
                count_include_pad=all_points),
        image(2, 32, 9, 9),
    )  # fmt: skip
    assert not conditions(text)


SIZES_2D = [(2, 5, 9, 7), (1, 33, 2, 3), (1, 4, 1, 1)]


def maxima(x: torch.Tensor) -> list[torch.Tensor]:
    pool = partial(functional.max_pool2d, x)
    results = [
        pool(3, 2, 1), pool(3, 1, 1, ceil_mode=True), pool((2, 3), (3, 1), (1, 1)),
        pool(2, 2, 1, ceil_mode=True), *pool(3, 2, 1, return_indices=True),
        *pool(2, 3, 1, return_indices=True),
    ]  # fmt: skip
    if x.shape[2] >= 3:
        results += [pool(3, 2, 1, 2), *pool(3, 1, 1, (2, 1), return_indices=True)]
    return results


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int64])
def test_maxima_over_windows_are_eagers(dtype, last):
    for shape in SIZES_2D if dtype is torch.float32 else SIZES_2D[:1]:
        x = image(*shape, dtype=dtype, last=last)
        results = irc.compile(maxima, (x,))(x)
        torch.testing.assert_close(results, maxima(x), rtol=0, atol=0, equal_nan=True)


def means(x: torch.Tensor) -> list[torch.Tensor]:
    pool = partial(functional.avg_pool2d, x)
    return [
        pool(3, 2, 1), pool(3, 2, 1, count_include_pad=False), pool(3, 1, 1, divisor_override=5),
        pool((2, 3), (3, 1), (1, 1), ceil_mode=True),
        pool(2, 2, 1, ceil_mode=True, count_include_pad=False),
    ]  # fmt: skip


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_means_over_windows_are_close_to_those_in_f64(dtype, last):
    rounding = {torch.bfloat16: 2**-7, torch.float32: 2**-21, torch.float64: 2**-50}[dtype]
    for shape in SIZES_2D if dtype is torch.float32 else SIZES_2D[:1]:
        x = image(*shape, dtype=dtype, last=last)
        results = irc.compile(means, (x,))(x)
        for result, exact in zip(results, means(x.double()), strict=True):
            assert result.dtype is dtype
            torch.testing.assert_close(
                result.double(), exact, rtol=rounding, atol=rounding, equal_nan=True
            )


def in_one_dimension(x: torch.Tensor) -> list[torch.Tensor]:
    return [
        functional.max_pool1d(x, 3, 2, 1), functional.max_pool1d(x, 4, 3, 2, ceil_mode=True),
        *functional.max_pool1d(x, 3, 1, 1, 2, return_indices=True),
        functional.avg_pool1d(x, 3, 2, 1), functional.avg_pool1d(x, 4, 3, 2, True, False),
        functional.adaptive_max_pool1d(x, 5), functional.adaptive_avg_pool1d(x, 5),
    ]  # fmt: skip


def in_three_dimensions(x: torch.Tensor) -> list[torch.Tensor]:
    return [
        functional.max_pool3d(x, (2, 3, 3), (1, 2, 2), (1, 1, 1)),
        *functional.max_pool3d(x, 2, 2, 1, ceil_mode=True, return_indices=True),
        functional.avg_pool3d(x, 3, 2, 1), functional.avg_pool3d(x, 3, 2, 1, True, False),
        functional.adaptive_avg_pool3d(x, (2, 3, 5)),
    ]  # fmt: skip


def adaptive(x: torch.Tensor) -> list[torch.Tensor]:
    return [
        *functional.adaptive_max_pool2d(x, (3, 4), return_indices=True),
        functional.adaptive_max_pool2d(x, (11, 2)), functional.adaptive_avg_pool2d(x, (3, 4)),
        functional.adaptive_avg_pool2d(x, (11, 2)), functional.lp_pool2d(x.abs(), 2, 3, 2, True),
        functional.lp_pool2d(x.abs(), 1, (2, 3), 1),
    ]  # fmt: skip


WINDOWS = {
    "in one dimension": (in_one_dimension, (2, 9, 17)),
    "in three dimensions": (in_three_dimensions, (1, 17, 3, 5, 7)),
    "adaptive": (adaptive, (2, 9, 7, 5)),
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("last", [False, True])
def test_windows_of_other_dimensions(name, last):
    function, shape = WINDOWS[name]
    x = image(*shape, dtype=torch.float64, last=last)
    if len(shape) == 3 and last:
        x = x.mT.contiguous().mT
    results = irc.compile(function, (x,))(x)
    for result, expected in zip(results, function(x), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-13, atol=1e-13, equal_nan=True)


def padded(x: torch.Tensor) -> list[torch.Tensor]:
    """Windows over pads of other numbers than those that change nothing."""
    around, rows = (partial(functional.pad, x, each) for each in ((1, 1, 1, 1), (0, 0, 2, 3)))
    return [
        functional.max_pool2d(around(value=0.0), 3, 2), functional.avg_pool2d(around(value=1.0), 3),
        rows(value=0.0).prod(2), rows(value=1.0).prod(2), rows(value=-torch.inf).amax(2),
        *rows(value=-torch.inf).max(2), rows(value=-torch.inf).logsumexp(2), rows().var(2),
        rows(value=-torch.inf).argmax(2), rows(value=torch.inf).argmin(2), rows().sum(2),
        rows(value=3.0).sum(2), rows(value=-torch.inf).softmax(2), rows().mean((0, 2)),
    ]  # fmt: skip


@pytest.mark.parametrize("last", [False, True])
def test_pads_of_other_numbers_count(last):
    x = -image(2, 17, 5, 7, dtype=torch.float64, last=last).nan_to_num(1, 3, -3).abs() - 0.5
    x[:, :, :, 2] = x[0, 3] = -torch.inf
    results = irc.compile(padded, (x,))(x)
    for result, expected in zip(results, padded(x), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("last", [False, True])
def test_gradients_of_windows(last):
    def function(x: torch.Tensor) -> torch.Tensor:
        pools = [
            functional.max_pool2d(x, 3, 2, 1), functional.avg_pool2d(x, 3, 2, 1),
            functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            functional.adaptive_avg_pool2d(x, (5, 4)),
        ]  # fmt: skip
        return sum(((k + 1) * pool.square()).sum() for k, pool in enumerate(pools))

    torch._dynamo.reset()
    x = torch.randn(2, 9, 9, 7, dtype=torch.float64)
    if last:
        x = x.contiguous(memory_format=torch.channels_last)
    x.requires_grad_()
    compiled = torch.compile(function, backend="irc")
    gradients = [torch.autograd.grad(f(x), x)[0] for f in (compiled, function)]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


def test_windows_of_many_sizes():
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        return [functional.max_pool2d(x, 3, 2, 1), functional.avg_pool2d(x, 3, 2, 1)]

    compiled = torch.compile(function, backend="irc", dynamic=True)
    for high, wide in ((9, 7), (2, 30), (14, 3)):
        x = torch.randint(-9, 9, (2, 16, high, wide)).float()
        x = x.contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(compiled(x), function(x))
