"""Products and convolutions of a model as kernels of a GPU, with what is computed around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import irc
from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
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
    """One kernel for all of it, but where rows have to be known as a whole, and for a weight whose
    taps lie side by side."""
    torch.manual_seed(0)
    args = [torch.randn(s).to(torch.bfloat16) for s in ((33, 40), (70, 40), (70,), (33, 70))]
    module, kernels = formed(program, args, Target(GpuFeatures.sm_90()))
    counts = [sum(isinstance(op, kernel.DotOp) for op in each.walk()) for each in kernels]
    assert counts == {scores: [dots, 0], image: [0, dots]}.get(program, [dots])
    exact = program(*(a.double() for a in args))
    if program is scores:  # of numbers that are stored rounded
        stored = (args[0].double() @ args[1].double().mT).bfloat16()
        exact = torch.softmax(stored.double(), -1)[None]
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


@pytest.mark.parametrize("channels", [64, 24, 1])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
def test_windows_are_summed_up_tap_by_tap(channels: int, last: bool, stride: int) -> None:
    """Weights whose taps lie side by side are laid out by a kernel of their own; whole steps of
    channels have one place of a window."""
    torch.manual_seed(0)
    pixels = torch.randn(2, channels, 7, 6).to(torch.bfloat16)
    weight = torch.randn(32, channels, 3, 3).to(torch.bfloat16)
    args = [pixels.to(memory_format=torch.channels_last), weight]
    if last:
        args[1] = weight.to(memory_format=torch.channels_last)

    def program(x: Any, w: Any) -> Any:
        return torch.relu(F.conv2d(x, w, stride=stride, padding=1))

    module, kernels = formed(program, args, Target(GpuFeatures.sm_90()))
    counts = [sum(isinstance(op, kernel.DotOp) for op in each.walk()) for each in kernels]
    assert counts == ([0] if channels == 1 else [1] if last else [0, 1])
    exact = program(*(a.double() for a in args))
    off = 8e-3 * exact.abs().max().item()
    torch.testing.assert_close(run(module, *args)[0].double(), exact, rtol=8e-3, atol=off)


def chain(x: Any, w: Any, b: Any, y: Any) -> Any:
    return F.linear(F.linear(x, w)[:, :40], w)


def chained_images(x: Any, w: Any, b: Any, y: Any) -> Any:
    return F.conv2d(F.conv2d(y.reshape(2, 11, 7, 15), w[:24, :11, None, None]),
                    w[:24, :24, None, None].expand(24, 24, 2, 2), padding=1)  # fmt: skip


@pytest.mark.parametrize("program", [chain, chained_images])
def test_what_another_product_multiplies_is_stored_as_narrow_as_it_is_read(
    program: Callable[..., Any],
) -> None:
    """The sums of the first one are rounded by its own kernel."""
    torch.manual_seed(0)
    args = [torch.randn(s).to(torch.bfloat16) for s in ((33, 40), (70, 40), (70,), (33, 70))]
    module, kernels = formed(program, args, Target(GpuFeatures.sm_90()))
    types = [type_ for each in kernels for type_ in runtime.signature_of(each).values()]
    assert len(kernels) > 1 and not any("fp32" in type_ for type_ in types)
    exact = program(*(a.double() for a in args))
    off = 2e-2 * exact.abs().max().item()
    torch.testing.assert_close(run(module, *args)[0].double(), exact, rtol=2e-2, atol=off)


def test_windows_of_whole_steps_are_copied_by_16_bytes() -> None:
    """Channels of a tap begin at multiples of a step, which Triton has to be shown: else elements
    are read one by one, with no step in flight."""
    args = [torch.randn(4, 256, 14, 14), torch.randn(256, 256, 3, 3)]
    args = [a.to(torch.bfloat16).to(memory_format=torch.channels_last) for a in args]
    _, kernels = formed(lambda x, w: F.conv2d(x, w, padding=1), args, Target(GpuFeatures.sm_90()))
    func = next(k for k in kernels if any(isinstance(op, kernel.DotOp) for op in k.walk()))
    options = runtime.launch_options(func)
    name, types = func.sym_name, runtime.signature_of(func)
    ptx = runtime.compile_for(emit_kernel(func), name, types, **options)["ptx"]
    assert "cp.async.cg.shared.global" in ptx and "ld.global.b16" not in ptx


def test_one_channel_is_summed_up_whichever_factor_says_so() -> None:
    """A convolution of one channel whose schedule is to be one of tiles: only one factor's place
    depends on an axis of one point."""
    torch.manual_seed(0)
    pixels = torch.randn(1, 1, 14, 5).to(memory_format=torch.channels_last)
    args = [pixels, torch.randn(17, 1, 3, 1)]

    def program(x: Any, w: Any) -> Any:
        return F.conv2d(x, w, stride=(1, 2), padding=(0, 2), dilation=(2, 1))

    module, _ = formed(program, args, Target(GpuFeatures.sm_90(), tf32_convolutions=True))
    torch.testing.assert_close(run(module, *args)[0], program(*args), rtol=1e-5, atol=1e-5)
