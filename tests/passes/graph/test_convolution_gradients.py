"""Gradients of convolutions, and transposed convolutions, as products of irc's own."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.nn import functional

import irc
from irc.analysis.channels_last import BACKWARD
from irc.dialects import graph, host, kernel
from irc.frontend.backend import recording
from irc.ir.passes import PassContext, PassManager
from irc.options.options import from_mapping
from irc.pipeline import stages
from tests.passes.graph.aten_programs import put_on

OPTIONS: dict[str, Any] = {
    "max_autotune": True, "max_autotune_gemm_backends": "IRC", "max_autotune_conv_backends": "IRC",
    "fx_graph_cache": False,
}  # fmt: skip

pytestmark = pytest.mark.usefixtures("forget_programs")


def products_of(module: Any) -> tuple[int, int]:
    """How many products of irc's a program has, and how many calls that give gradients."""
    PassManager.parse(stages("llvm", from_mapping(OPTIONS))["aten-to-graph"]).run(module)
    ops = list(module.walk())
    calls = [op for op in ops if isinstance(op, graph.CallAten) and op.callee == BACKWARD]
    return sum(isinstance(op, graph.DotGeneral) for op in ops), len(calls)


def sizes_of(case: dict[str, Any]) -> tuple[list[int], list[int]]:
    """The sizes of the image and of the weight."""
    groups, transposed = case.get("groups", 1), case.get("transposed", False)
    spatial = list(case.get("image", (9, 7)))
    image = [case.get("batch", 2), 4 * groups, *spatial]
    first, second = (4 * groups, 3) if transposed else (3 * groups, 4)
    return image, [first, second, *case.get("taps", (3,) * len(spatial))]


# What isn't said: 2 images of 9 x 7, 3x3 windows, stride 1, no padding, one group.
CASES: list[dict[str, Any]] = [
    {}, {"padding": (1, 1)}, {"padding": (2, 0), "taps": (3, 1)}, {"stride": (2, 2)},
    {"stride": (2, 3), "padding": (1, 2)}, {"dilation": (2, 1), "padding": (2, 1)},
    {"groups": 3, "padding": (1, 1)}, {"groups": 3, "stride": (2, 1)}, {"taps": (1, 1)},
    {"taps": (1, 1), "stride": (2, 2)}, {"image": (11,), "padding": (1,)},
    {"image": (4, 5, 3), "padding": (1, 0, 1)}, {"batch": 0}, {"bias": False, "padding": (1, 1)},
    {"padding": (3, 3)},
    {"transposed": True}, {"transposed": True, "padding": (1, 2), "groups": 2},
    {"transposed": True, "dilation": (2, 2), "padding": (1, 1)},
    {"stride": (2, 3), "dilation": (3, 2), "padding": (5, 0), "image": (11, 13)},
    {"stride": (2, 1), "dilation": (2, 1)}, {"taps": (1, 1), "padding": (2, 1)},
    {"stride": (3, 3), "taps": (2, 2), "image": (2, 7)}, {"image": (12,), "stride": (2,)},
    {"transposed": True, "stride": (2, 1), "padding": (1, 0)},
    {"transposed": True, "stride": (3, 2), "taps": (2, 3), "groups": 2},
]  # fmt: skip


def convolve(case: dict[str, Any], x: Any, w: Any, b: Any) -> torch.Tensor:
    spatial = x.dim() - 2
    names = [(f"conv{d}d", f"conv_transpose{d}d") for d in (1, 2, 3)][spatial - 1]
    numbers = {
        name: case.get(name, (usual,) * spatial)
        for name, usual in (("stride", 1), ("padding", 0), ("dilation", 1))
    }
    function = getattr(functional, names[case.get("transposed", False)])
    result: torch.Tensor = function(x, w, b, groups=case.get("groups", 1), **numbers)
    return result


def turned_products(case: dict[str, Any]) -> int:
    """How many products an image's gradient or a transposed convolution is: one for the places with
    each remainder by the stride that taps reach; 0 where it is the library's."""
    taps = sizes_of(case)[1][2:]
    usual = (1,) * len(taps)
    count = 1
    for n, step, apart in zip(taps, case.get("stride", usual), case.get("dilation", usual),
                              strict=True):  # fmt: skip
        if math.gcd(step, apart) > 1:
            return 0
        count *= min(n, step)
    return count


def orders_of(case: dict[str, Any]) -> list[bool]:
    """Whether images are channels-last: only those of two dimensions have that order."""
    return [False, True] if len(sizes_of(case)[0]) == 4 else [False]


@pytest.mark.parametrize(
    "case, last",
    [(case, last) for case in CASES for last in orders_of(case)],
    ids=lambda value: str(value) if isinstance(value, dict) else ("rows", "channels-last")[value],
)
def test_values(case: dict[str, Any], last: bool) -> None:
    torch.manual_seed(0)
    image, weight = sizes_of(case)
    order = torch.channels_last if last else torch.contiguous_format
    shown = [torch.randn(n).to(memory_format=order) for n in (image, weight)]
    channels = weight[1] * case.get("groups", 1) if case.get("transposed") else weight[0]
    shown += [torch.randn(channels)] if case.get("bias", True) else []
    ours = [v.requires_grad_() for v in shown]
    exact = [v.detach().double().requires_grad_() for v in shown]
    with recording() as made:
        call = torch.compile(convolve, backend="irc", options=OPTIONS, dynamic=False)
        y = call(case, ours[0], ours[1], ours[2] if len(ours) > 2 else None)
        z = convolve(case, exact[0], exact[1], exact[2] if len(exact) > 2 else None)
        seed = torch.randn_like(y)
        y.backward(seed)
    z.backward(seed.double())
    torch.testing.assert_close(y.double(), z, atol=1e-5, rtol=1e-5)
    for mine, theirs in zip(ours, exact, strict=True):
        assert mine.grad is not None and theirs.grad is not None
        torch.testing.assert_close(mine.grad.double(), theirs.grad, atol=2e-5, rtol=1e-5)
        assert mine.grad.stride() == mine.stride() or not mine.numel() or last
    turned = turned_products(case)
    counts = [products_of(one.imported.module) for one in made]
    if case.get("transposed"):
        assert counts == [(turned, 0), (2, 0)]
    else:
        assert counts == [(1, 0), (1 + turned, not turned)]


def test_what_is_no_number_reaches_what_it_is_multiplied_with() -> None:
    torch.manual_seed(1)
    x, w = torch.randn(2, 4, 9, 7), torch.randn(3, 4, 3, 3)
    x[0, 1, 4, 3] = float("nan")
    ours, theirs = ([v.clone().requires_grad_() for v in (x, w)] for _ in range(2))
    call = torch.compile(convolve, backend="irc", options=OPTIONS, dynamic=False)
    for function, (image, weight) in ((call, ours), (convolve, theirs)):
        function({}, image, weight, None).nan_to_num(0.0).sum().backward()
    for mine, exact in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, exact.grad, atol=1e-4, rtol=1e-5, equal_nan=True)
    assert ours[1].grad is not None and ours[1].grad[:, 1].isnan().any()


@pytest.mark.parametrize("mask", [(True, False, True), (False, True, False), (False, False, True)])
def test_only_what_is_asked_for(mask: tuple[bool, ...]) -> None:
    torch.manual_seed(2)
    ours = [torch.randn(n) for n in ((2, 4, 6, 5), (3, 4, 3, 3), (3,))]
    for value, wanted in zip(ours, mask, strict=True):
        value.requires_grad_(wanted)
    exact = [v.detach().double().requires_grad_(v.requires_grad) for v in ours]
    call = torch.compile(convolve, backend="irc", options=OPTIONS, dynamic=False)
    call({}, *ours).square().sum().backward()
    convolve({}, *exact).square().sum().backward()
    for mine, theirs in zip(ours, exact, strict=True):
        assert (mine.grad is None) is (theirs.grad is None)
        if mine.grad is not None and theirs.grad is not None:
            torch.testing.assert_close(mine.grad.double(), theirs.grad, atol=1e-4, rtol=1e-5)


def test_the_weight_of_a_convolution_may_have_any_sizes() -> None:
    """A program for all sizes, of the weight too; only irc may compute it."""
    call = torch.compile(functional.conv2d, backend="irc", options=OPTIONS, dynamic=True)
    torch.manual_seed(3)
    for image, weight in (((2, 4, 9, 7), (3, 4, 3, 2)), ((3, 5, 6, 8), (7, 5, 2, 4))):
        x, w = torch.randn(image), torch.randn(weight)
        exact = functional.conv2d(x.double(), w.double())
        torch.testing.assert_close(call(x, w).double(), exact, atol=1e-5, rtol=1e-5)


class Chosen:
    """What choices share, which takes the candidates with these numbers, by problem."""

    provisional = ""

    def __init__(self, *numbers: int) -> None:
        self.numbers, self.asked = numbers, list[Any]()

    def choose_all(self, asked: Any, tell: Any) -> list[Any]:
        self.asked += asked
        return [each[number] for (_, each), number in zip(asked, self.numbers, strict=True)]


@pytest.mark.parametrize(("numbers", "products", "calls"), [
    ((0, 0), 0, [[True, True, False]]), ((1, 0), 1, [[False, True, False]]),
    ((0, 1), 1, [[True, False, False]]), ((1, 1), 2, []),
])  # fmt: skip
def test_a_gpu_measures_each_gradient(
    numbers: tuple[int, int], products: int, calls: list[list[bool]]
) -> None:
    """If the library computes both it is one call, as before; the bias's is a sum of irc's."""

    def function(g: Any, x: Any, w: Any) -> Any:
        rest = [512], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]
        return torch.ops.aten.convolution_backward(g, x, w, *rest)

    images = [torch.randn(4, 512, 7, 7).bfloat16() for _ in range(2)]
    args = [*images, torch.randn(512, 512, 3, 3).bfloat16()]
    module = put_on(irc.trace(function, args), "cuda:0")
    options, judge = from_mapping({"max_autotune": True}), Chosen(*numbers)
    context = PassContext(target="sm_90", options=options, tuning=judge)
    for name in ("functional", "aten-to-graph"):
        PassManager.parse(stages("sm_90", options)[name], verify="each").run(module, context)
    image, weight = ([c.schedule for c in each] for _, each in judge.asked)
    assert "split_k" in image[1] and weight[:2] == ["", ""], "by the model"
    ops = list(module.walk())
    left = [op for op in ops if isinstance(op, graph.CallAten) and op.callee == BACKWARD]
    masks = [op.arguments.as_dict()["output_mask"] for op in left]
    assert [[bool(each.value) for each in mask] for mask in masks] == calls
    assert sum(isinstance(op, graph.DotGeneral) for op in ops) == products
    assert any(isinstance(op, graph.Reduce) for op in ops)
    results = module.lookup("main").block.last.operands
    assert [value.type.shape for value in results] == [(4, 512, 7, 7), (512, 512, 3, 3), (512,)]


def lowered(function: Any, args: list[torch.Tensor]) -> Any:
    """A function's module for a GPU, as kernels, with irc's products alone."""
    module = put_on(irc.trace(function, args), "cuda:0")
    options = from_mapping({**OPTIONS, "max_autotune": False, "max_autotune_gemm": True})
    context = PassContext(target="sm_90", options=options.replace(max_autotune_budget=0))
    for name, text in stages("sm_90", options).items():
        if name != "kernel-to-host":
            PassManager.parse(text).run(module, context)
    return module


@pytest.mark.parametrize(("taps", "products"), [(3, 4), (1, 1)])
def test_what_is_put_between_other_places_is_stored_narrow(taps: int, products: int) -> None:
    def function(g: Any, x: Any, w: Any) -> Any:
        rest = None, [2, 2], [taps // 2] * 2, [1, 1], False, [0, 0], 1, [True, False, False]
        return torch.ops.aten.convolution_backward(g, x, w, *rest)[0]

    shapes = (8, 128, 28, 28), (8, 128, 56, 56), (128, 128, taps, taps)
    module = lowered(function, [torch.randn(s).bfloat16() for s in shapes])
    launches = [op for op in module.walk() if isinstance(op, host.LaunchOp)]
    dots = [sum(isinstance(op, kernel.DotOp) for op in module.lookup(launch.callee).walk())
            for launch in launches]  # fmt: skip
    assert sum(dots) == products and not dots[-1]
    assert {str(v.type.element) for op in launches for v in op.results} == {"bf16"}


def test_what_is_read_as_zero_needs_no_condition_behind_it() -> None:
    """The weight's gradient, whose depth isn't a multiple of a step."""

    def function(g: Any, x: Any, w: Any) -> Any:
        rest = None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False]
        return torch.ops.aten.convolution_backward(g, x, w, *rest)[1]

    images = [torch.randn(2, 64, 7, 7).bfloat16().to(memory_format=torch.channels_last)] * 2
    module = lowered(function, [*images, torch.randn(64, 64, 3, 3).bfloat16()])
    kernels = [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]
    dots = [func for func in kernels if any(isinstance(op, kernel.DotOp) for op in func.walk())]
    assert len(dots) == 1
    assert not any(op.name == "arith.select" for op in dots[0].walk())
