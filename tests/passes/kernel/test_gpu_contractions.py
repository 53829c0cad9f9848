"""Products and convolutions of a model as kernels of a GPU, with what is computed around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import irc
from irc.dialects import kernel
from irc.interp.core import run
from irc.ir.passes import PassManager
from irc.options.options import from_mapping
from irc.pipeline import stages
from irc.target import Target
from irc.target.attribute import carry
from irc.target.gpu import GpuFeatures

OWN = {
    "max_autotune_gemm": True, "max_autotune_gemm_backends": "IRC",
    "max_autotune_conv_backends": "IRC",
}  # fmt: skip


def layer(x: Any, w: Any, b: Any, y: Any) -> Any:
    return F.gelu(F.linear(x, w, b)) * y


def activated(x: Any, w: Any, b: Any, y: Any) -> Any:
    return torch.relu(x) @ w.t() + b


def both(x: Any, w: Any, b: Any, y: Any) -> Any:
    return F.linear(x, w) + F.linear(x + 1, w) * y


def image(x: Any, w: Any, b: Any, y: Any) -> Any:
    pixels, weights = x[:16, :36].reshape(1, 16, 6, 6), w[:32, :36].reshape(32, 4, 3, 3)
    return torch.relu(F.conv2d(pixels[:, :4], weights, padding=1))


def scores(x: Any, w: Any, b: Any, y: Any) -> Any:
    return torch.softmax(x[None] @ w[None].mT, -1)


def formed(program: Callable[..., Any], args: list[torch.Tensor], target: Target) -> Any:
    """A program's module as it gets kernels, and these."""
    module = irc.trace(program, args)
    carry(module, target)
    for text in stages("sm_90", from_mapping(OWN)).values():
        PassManager.parse(text).run(module)
        kernels = [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]
        if kernels:
            return module, kernels
    raise AssertionError("there are no kernels")


@pytest.mark.parametrize(
    ("program", "dots"), [(layer, 1), (activated, 1), (both, 2), (image, 1), (scores, 1)]
)
def test_a_kernel_multiplies_and_computes_what_follows(
    program: Callable[..., Any], dots: int
) -> None:
    """One kernel for all of it, but where rows have to be known as a whole."""
    torch.manual_seed(0)
    args = [torch.randn(s).to(torch.bfloat16) for s in ((33, 40), (70, 40), (70,), (33, 70))]
    module, kernels = formed(program, args, Target(GpuFeatures.sm_90()))
    counts = [sum(isinstance(op, kernel.DotOp) for op in each.walk()) for each in kernels]
    assert counts == ([dots, 0] if program is scores else [dots])
    exact = program(*(a.double() for a in args))
    off = 8e-3 * exact.abs().max().item()
    torch.testing.assert_close(run(module, *args)[0].double(), exact, rtol=8e-3, atol=off)


@pytest.mark.parametrize("program", [layer, image])
@pytest.mark.parametrize("allowed", [False, True])
def test_f32_is_multiplied_as_torch_is_set(program: Callable[..., Any], allowed: bool) -> None:
    """Products and convolutions each by their own switch."""
    product = program is layer
    target = Target(
        GpuFeatures.sm_90(),
        product_precision="high" if allowed == product else "highest",
        tf32_convolutions=allowed != product,
    )
    args = [torch.randn(s) for s in ((33, 40), (70, 40), (70,), (33, 70))]
    _, kernels = formed(program, args, target)
    dots = [op for each in kernels for op in each.walk() if isinstance(op, kernel.DotOp)]
    assert [dot.precision for dot in dots] == ["tf32" if allowed else "ieee"]
