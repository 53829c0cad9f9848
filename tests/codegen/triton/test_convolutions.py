"""Convolutions and their gradients as kernels of tiles, in Triton's interpreter, against float64:
tiles all of whose lanes are at one place of a row, at one tap, or at several, and depths in parts.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
import torch

import irc
from irc.passes.graph.contractions import choose_contractions
from irc.tuning import Candidate
from tests.conformance.gpu_programs import interpreted

OPTIONS = {
    "max_autotune_gemm": True, "max_autotune_gemm_backends": "IRC", "target": "triton",
    "max_autotune_conv_backends": "IRC", "fx_graph_cache": False, "max_autotune_budget": 0,
}  # fmt: skip
SMALL = {"tile_m": 16, "tile_n": 16, "tile_k": 16, "num_warps": 1, "num_stages": 1}
LAST = torch.channels_last


def numbers(taps: int, stride: int) -> Any:
    return [stride] * 2, [taps // 2] * 2, [1, 1], False, [0, 0], 1


def convolved(g: Any, x: Any, w: Any, taps: int, stride: int) -> torch.Tensor:
    return torch.convolution(x, w, None, *numbers(taps, stride)) * g


def image_gradient(g: Any, x: Any, w: Any, taps: int, stride: int) -> torch.Tensor:
    mask = [True, False, False]
    rest = *numbers(taps, stride), mask
    return torch.ops.aten.convolution_backward(g.relu(), x, w, None, *rest)[0]


def weight_gradient(g: Any, x: Any, w: Any, taps: int, stride: int) -> torch.Tensor:
    mask = [False, True, False]
    rest = *numbers(taps, stride), mask
    return torch.ops.aten.convolution_backward(g, x, w, None, *rest)[1]


# The function; images, channels, places, channels of the result, taps, stride; more of a schedule.
CASES: list[tuple[Any, tuple[int, ...], dict[str, int]]] = [
    (convolved, (2, 16, 16, 16, 3, 1), {}),
    (convolved, (2, 32, 7, 24, 3, 1), {"split_k": 2}),
    (convolved, (2, 32, 7, 24, 3, 1), {"split_k": 3}),
    (convolved, (1, 16, 9, 16, 3, 2), {"split_k": 9}),
    (convolved, (2, 24, 5, 16, 3, 1), {"split_k": 2, "tile_k": 32}),
    (image_gradient, (2, 16, 16, 32, 3, 1), {"split_k": 2}),
    (image_gradient, (2, 16, 7, 16, 3, 1), {"split_k": 9}),
    (image_gradient, (2, 16, 8, 32, 3, 2), {}),
    (image_gradient, (2, 24, 7, 16, 1, 2), {}),
    (weight_gradient, (2, 32, 6, 16, 3, 1), {}),
    (weight_gradient, (4, 16, 7, 16, 3, 1), {"split_k": 4}),
    (weight_gradient, (4, 48, 7, 24, 3, 2), {"split_k": 2, "tile_n": 32}),
    (weight_gradient, (3, 16, 8, 16, 3, 1), {"split_k": 24}),
    (weight_gradient, (2, 32, 9, 16, 1, 2), {"split_k": 5}),
]


@pytest.mark.parametrize("order", [LAST, torch.contiguous_format], ids=["last", "rows"])
@pytest.mark.parametrize(("function", "sizes", "more"), CASES)
def test_tiles_of_windows(
    function: Any, sizes: tuple[int, ...], more: dict[str, int], order: Any
) -> None:
    n, c, h, o, taps, stride = sizes
    torch.manual_seed(0)
    places = -(-h // stride)
    shapes = (n, o, places, places), (n, c, h, h), (o, c, taps, taps)
    args = [(torch.randint(-4, 5, s) / 4).bfloat16().to(memory_format=order) for s in shapes]
    entries = ", ".join(f"{key} = {value} : i64" for key, value in {**SMALL, **more}.items())
    candidate = Candidate("irc", f"#loop.schedule<gpu, {entries}>")

    def run(*args: torch.Tensor) -> torch.Tensor:
        return function(*args, taps, stride)

    irc.metrics.reset()
    with interpreted(), mock.patch.object(choose_contractions, "first_own", lambda *_: candidate):
        result = irc.compile(run, args, options=OPTIONS)(*args)
    assert irc.metrics.aten_calls == 0
    exact = run(*(a.double() for a in args))
    torch.testing.assert_close(result.double(), exact.bfloat16().double(), rtol=1e-2, atol=1e-2)
