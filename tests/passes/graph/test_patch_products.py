"""Convolutions of patches as products: which, and values of results and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

import irc
from irc.dialects import graph
from irc.ir.passes import PassContext, PassManager
from irc.target import Target

GRAPH = "functional,convert-aten-to-graph,canonicalize"
#: A GPU whose library takes so long that a product pays of any size.
SLOW = "#irc.target<sm_90, narrow_convolution = 1>"
#: Sizes of images and windows: more extents, edges outside of windows, pixels of one element.
CASES = {
    "patches": ((2, 3, 12, 20), (5, 3, 4, 5)),
    "edges outside": ((3, 5, 11, 9), (4, 5, 3, 2)),
    "one extent": ((2, 1, 13), (3, 1, 4)),
    "three extents": ((2, 3, 4, 6, 5), (2, 3, 2, 3, 2)),
    "pixels": ((1, 3, 3, 2), (7, 3, 1, 1)),
}


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def multiplied(
    function: Callable[..., Any], args: Sequence[Any], target: str = SLOW, dynamic: bool = False
) -> tuple[Any, PassContext]:
    module = irc.trace(function, args, dynamic=dynamic)
    context = PassContext(target=Target.named(target))
    PassManager.parse(f"{GRAPH},patch-products", verify="each").run(module, context)
    return module, context


def callees(module: Any) -> list[str]:
    return [op.callee.split(".")[1] for op in module.walk() if isinstance(op, graph.CallAten)]


def close(mine: torch.Tensor, exact: torch.Tensor) -> None:
    torch.testing.assert_close(mine.double(), exact, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_an_image_is_the_product_of_patches(name: str, bias: bool) -> None:
    image, weight = CASES[name]
    args = [random(*image), random(*weight, seed=1), *([random(weight[0], seed=2)] * bias)]

    def convolve(x: Any, w: Any, b: Any = None) -> Any:
        return torch.convolution(x, w, b, w.shape[2:], [0], [1], False, [0], 1)

    module, _ = multiplied(convolve, args)
    assert callees(module) == ["addmm" if bias else "mm"]
    (mine,) = irc.run(module, *args)
    close(mine, convolve(*(a.double() for a in args)))


@pytest.mark.parametrize("mask", [(True, True, True), (False, True, False), (True, False, True)])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_products_of_patches(name: str, mask: tuple[bool, ...]) -> None:
    image, weight = CASES[name]
    counts = [have // size for have, size in zip(image[2:], weight[2:], strict=True)]
    args = [random(image[0], weight[0], *counts), random(*image, seed=1), random(*weight, seed=2)]

    def gradients(g: Any, x: Any, w: Any) -> Any:
        ones = [1] * len(counts)
        none = [0] * len(counts)
        given = torch.ops.aten.convolution_backward(
            g, x, w, [w.shape[0]], w.shape[2:], none, ones, False, none, 1, mask
        )
        return tuple(each for each, asked in zip(given, mask, strict=True) if asked)

    module, _ = multiplied(gradients, args)
    assert callees(module) == ["mm"] * sum(mask[:2])
    found = irc.run(module, *args)
    exact = gradients(*(a.double() for a in args))
    for mine, theirs in zip(found, exact, strict=True):
        assert mine.shape == theirs.shape
        close(mine, theirs)


def test_windows_of_unknown_sizes_stay() -> None:
    args = [random(2, 3, 8, 8), random(5, 3, 4, 4, seed=1)]
    module, _ = multiplied(lambda x, w: torch.conv2d(x, w, stride=4), args, dynamic=True)
    assert callees(module) == ["convolution"]


class Embedding(torch.nn.Module):
    """The first layer of a vision transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(random(6, 3, 4, 4, seed=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.conv2d(x, self.weight, stride=4).flatten(2).transpose(1, 2)


def test_a_batch_may_be_a_symbol() -> None:
    model, images = Embedding(), random(7, 3, 8, 12)
    batch = {0: torch.export.Dim("batch", min=2)}
    module, _ = multiplied(torch.export.export(model, (images,), dynamic_shapes=(batch,)), ())
    assert callees(module) == ["mm"]
    for count in (2, 5):
        images = random(count, 3, 8, 12, seed=count)
        (mine,) = irc.run(module, model.weight, images)
        close(mine, Embedding.forward(model.double(), images.double()))
        model.bfloat16()


def test_what_is_not_finite_stays_in_its_patch() -> None:
    image = random(1, 3, 8, 8)
    image[0, 1, 5, 6] = float("nan")
    args = [image, random(4, 3, 4, 4, seed=1)]
    module, _ = multiplied(lambda x, w: torch.conv2d(x, w, stride=4), args)
    (found,) = irc.run(module, *args)
    lost = found.isnan()
    assert lost[0, :, 1, 1].all() and int(lost.sum()) == 4


REFUSED: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], torch.dtype]] = {
    "windows that overlap": (lambda x, w: torch.conv2d(x, w, stride=2), (1, 3, 8, 8), (4, 3, 4, 4),
                             torch.bfloat16),
    "a border": (lambda x, w: torch.conv2d(x, w, stride=4, padding=2), (1, 3, 8, 8), (4, 3, 4, 4),
                 torch.bfloat16),
    "gaps": (lambda x, w: torch.conv2d(x, w, stride=2, dilation=2), (1, 3, 8, 8), (4, 3, 2, 2),
             torch.bfloat16),
    "groups": (lambda x, w: torch.conv2d(x, w, stride=2, groups=3), (1, 3, 8, 8), (6, 1, 2, 2),
               torch.bfloat16),
    "transposed": (lambda x, w: torch.conv_transpose2d(x, w, stride=2), (1, 3, 8, 8), (3, 4, 2, 2),
                   torch.bfloat16),
    "f32": (lambda x, w: torch.conv2d(x, w, stride=4), (1, 3, 8, 8), (4, 3, 4, 4), torch.float32),
    "nothing": (lambda x, w: torch.conv2d(x, w, stride=4), (0, 3, 8, 8), (4, 3, 4, 4),
                torch.bfloat16),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_other_convolutions_stay(name: str) -> None:
    function, image, weight, dtype = REFUSED[name]
    args = [random(*image, dtype=dtype), random(*weight, seed=1, dtype=dtype)]
    assert callees(multiplied(function, args)[0]) == ["convolution"]


@pytest.mark.parametrize(
    ("image", "weight", "target", "expected"),
    [
        ((4, 3, 224, 224), (768, 3, 16, 16), "sm_90", "mm"),
        ((4, 3, 224, 224), (96, 3, 4, 4), "sm_90", "mm"),
        ((4, 192, 28, 28), (384, 192, 2, 2), "sm_90", "convolution"),  # 16 bytes and more
        ((1, 3, 16, 16), (8, 3, 4, 4), "sm_90", "convolution"),  # less than a launch
        ((4, 3, 224, 224), (768, 3, 16, 16), "#irc.target<sm_90, narrow_convolution = 200000000>",
         "convolution"),
    ],
)  # fmt: skip
def test_the_cost_model_decides(
    image: tuple[int, ...], weight: tuple[int, ...], target: str, expected: str
) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        args = [torch.empty(shape, dtype=torch.bfloat16) for shape in (image, weight)]
        step = weight[-1]
        module, context = multiplied(lambda x, w: torch.conv2d(x, w, stride=step), args, target)
    assert callees(module) == [expected]
    told = [r for r in context.remarks if r.pass_name == "patch-products"]
    assert bool(told) == (expected == "convolution")
