"""In how many parts a GPU sums up windows, and where a depth of several axes is cut."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

import irc
from irc.analysis.depth_parts import cut_axis, leading_axes, window_parts, window_sums
from irc.dialects import graph
from irc.ir.passes import PassManager
from irc.passes.graph.contractions.gradients import IMAGE, WEIGHT, gradient_of
from irc.target import Target
from tests.passes.graph.aten_programs import put_on

H200 = Target.named("sm_90")


def calls_of(function: Any, args: list[torch.Tensor]) -> list[graph.CallAten]:
    """The calls of a function for a GPU."""
    module = put_on(irc.trace(function, args), "cuda:0")
    PassManager.parse("functional,convert-aten-to-graph").run(module)
    return [op for op in module.walk() if isinstance(op, graph.CallAten)]


def gradient(which: int, taps: int = 3, stride: int = 1) -> Any:
    """A function that gives one gradient of a convolution."""

    def function(g: Any, x: Any, w: Any) -> Any:
        mask = [which == k for k in range(3)]
        numbers = [stride] * 2, [taps // 2] * 2, [1, 1], False, [0, 0], 1
        return torch.ops.aten.convolution_backward(g, x, w, None, *numbers, mask)[which]

    return function


def arrays(n: int, c: int, h: int, o: int, taps: int = 3, stride: int = 1) -> list[torch.Tensor]:
    shapes = (n, o, h // stride, h // stride), (n, c, h, h), (o, c, taps, taps)
    return [torch.empty(shape, dtype=torch.bfloat16) for shape in shapes]


def test_a_depth_is_cut_where_no_vector_is() -> None:
    assert [leading_axes((3, 3, 512), n) for n in (3, 9, 4, 4608)] == [1, 2, 0, 0]
    assert leading_axes((1, 8, 5), 8) == 2
    lying = [False, False, True]
    assert [cut_axis((3, 3, 512), lying, n, 64) for n in (8, 3, 16, 5)] == [2, 0, None, None]
    assert cut_axis((32, 56, 56), [False] * 3, 14, 64) == 1
    assert cut_axis((32, 56, 56), [False] * 3, 16, 64) == 0


def test_few_places_are_summed_up_in_parts() -> None:
    """By the taps, or by whole lines of channels, until a GPU is busy."""

    def parts(n: int, c: int, h: int, taps: int = 3) -> list[int]:
        _, x, w = arrays(n, c, h, c, taps)
        (call,) = calls_of(lambda x, w: functional.conv2d(x, w, padding=taps // 2), [x, w])
        return window_parts(call, H200)

    assert parts(4, 512, 7)[0] > 3 and set(parts(4, 512, 7)) == {1, 2, 3, 4, 8, 9}
    assert parts(32, 64, 56)[0] == 1
    assert parts(4, 96, 7) == [1], "its parts would be too short"
    assert 3 not in parts(4, 2048, 7, 1), "2048 channels have no third of whole lines"


def test_the_weights_gradient_is_split_by_images_or_rows() -> None:
    args = arrays(32, 64, 56, 64)
    (call,) = calls_of(gradient(1), args)
    assert gradient_of(call) == WEIGHT
    windows = window_sums(call, H200)
    assert windows is not None
    sums = windows.sums
    assert (sums.m, sums.n, sums.k, windows.depth) == (64, 576, 32 * 56 * 56, (32, 56, 56))
    assert sums.bytes == 2 * (2 * 32 * 64 * 56 * 56 + 64 * 64 * 9)
    parts = windows.parts(H200)
    assert parts[0] > 4 and all(32 % n == 0 or 56 % n == 0 for n in parts)


def test_the_images_gradient_multiplies_the_results_channels() -> None:
    (call,) = calls_of(gradient(0), arrays(4, 256, 7, 512))
    assert gradient_of(call) == IMAGE
    windows = window_sums(call, H200)
    assert windows is not None and windows.depth == (3, 3, 512)
    assert (windows.sums.m, windows.sums.n) == (4 * 7 * 7, 256)


def test_nothing_is_said_of_several_products() -> None:
    (call,) = calls_of(gradient(0, stride=2), arrays(4, 512, 8, 512, stride=2))
    assert window_sums(call, H200) is None and window_parts(call, H200) == [1]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_nothing_is_said_of_what_is_no_product_of_matrices(dtype: torch.dtype) -> None:
    """f32 with all of its bits is cut into parts of bf16, whose sums are apart."""
    x, w = torch.empty(4, 512, 7, 7, dtype=dtype), torch.empty(512, 512, 3, 3, dtype=dtype)
    (call,) = calls_of(lambda x, w: functional.conv2d(x, w, padding=1), [x, w])
    windows = window_sums(call, H200)
    assert (windows is None) == (dtype == torch.float64)
    assert window_parts(call, Target.named("avx2")) == [1]
