"""Functions of torch through the whole pipeline to gpu kernels, interpreted at kernel level."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import irc
from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from irc.dialects import kernel
from irc.ir.passes import PassManager
from irc.pipeline import pipeline_text, stages

F = torch.nn.functional


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def positions(count: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, count, shape, generator=torch.Generator().manual_seed(1))


FUNCTIONS: dict[str, tuple[Callable[..., Any], list[torch.Tensor]]] = {
    "layer_norm": (
        lambda x, w, b: F.layer_norm(F.gelu(x), (33,), w, b),
        [random(8, 33), random(33), random(33)],
    ),
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        [random(2, 4, 5, 5), random(4), random(4)],
    ),
    "cross_entropy": (lambda x, t: F.cross_entropy(x, t), [random(8, 33), positions(33, 8)]),
    "attention": (
        lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1) @ v,
        [random(2, 8, 16, seed=s) for s in range(3)],
    ),
    "cumsum": (lambda x: x.cumsum(1) * 2, [random(8, 33)]),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), [random(8, 33)]),
    "extremes": (lambda x: (x.argmax(1), *x.max(1), x.amin(0)), [random(8, 33)]),
    "large_sum": (lambda x: x.sum(), [random(300, 333)]),
    "softmax_of_columns": (lambda x: x.softmax(0), [random(8, 33)]),
    "scatter_add": (
        lambda x, i, s: x.scatter_add(0, i, s), [random(10, 4), positions(10, 7, 4), random(7, 4)]
    ),
    "embedding": (lambda w, i: F.embedding(i, w) * 2, [random(10, 4), positions(10, 7)]),
    "unsigned": (
        lambda x, y: (x // y) + x.max(),
        [positions(255, 20).to(torch.uint8), positions(9, 20).to(torch.uint8) + 1],
    ),
    "pooling": (lambda x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2), [random(2, 3, 8, 8)]),
    "transposed": (lambda x, y: torch.cat([x.t() + y, y.flip(0)], 1), [random(33, 40),
                                                                       random(40, 33)]),
}  # fmt: skip


def formed(name: str) -> tuple[Any, list[kernel.KernelFuncOp]]:
    return formed_of(*FUNCTIONS[name])


def formed_of(
    function: Callable[..., Any], args: list[torch.Tensor]
) -> tuple[Any, list[kernel.KernelFuncOp]]:
    module = irc.trace(function, args)
    unpadded = irc.Options(shape_padding=False, comprehensive_padding=False)
    PassManager.parse(",".join(list(stages("triton", unpadded).values())[:-1])).run(module)
    return module, [op for op in module.walk() if isinstance(op, kernel.KernelFuncOp)]


POWERS: dict[str, tuple[Callable[..., Any], torch.dtype, int]] = {
    "rounded to 16 bits": (lambda x: F.softmax(x, -1), torch.bfloat16, 1),
    "summed up": (lambda x: F.log_softmax(x, -1), torch.float32, 1),
    "stored": (lambda x: F.softmax(x, -1), torch.float32, 0),
    "stored, and rounded": (lambda x: (F.softmax(x.float(), -1), F.softmax(x, -1)),
                            torch.bfloat16, 0),
    "of any numbers": (lambda x: x.exp().sum(-1), torch.float32, 0),
    "of a divisor": (lambda x: F.softmax(x.float(), -1).reciprocal().bfloat16(),
                     torch.bfloat16, 0),
}  # fmt: skip


def test_powers_of_16_bits_take_one_operation_before_them() -> None:
    """Unless what is below the maximum is needed itself."""
    for function, scaled in ((F.softmax, True), (F.log_softmax, False)):
        kernels = formed_of(lambda x, f=function: f(x, -1), [random(8, 32).bfloat16()])[1]
        text = "".join(map(emit_kernel, kernels))
        assert ("tl.fma(" in text) is scaled and ("irc_exp_rough_f32(" in text) is not scaled


@pytest.mark.parametrize("name", POWERS)
def test_powers_are_as_rough_as_what_is_made_of_them(name: str) -> None:
    function, dtype, rough = POWERS[name]
    kernels = formed_of(function, [random(8, 32).to(dtype)])[1]
    texts = "".join(map(emit_kernel, kernels))
    assert len(re.findall(r" = irc_exp2?_rough_f32\(", texts)) == rough
    assert texts.count(" = irc_exp_f32(") == (0 if rough else texts.count(" = irc_exp"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gpu_kernels_have_eagers_values(name: str) -> None:
    function, args = FUNCTIONS[name]
    module, kernels = formed(name)
    assert kernels
    assert all(emit_kernel(func) for func in kernels)
    results = irc.run(module, *[a.clone() for a in args])
    expected = function(*args)
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    for ours, theirs in zip(results, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def add_into(x: torch.Tensor, i: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """An update of an argument, which is read elsewhere in the same kernel too."""
    return x.index_add(0, i, s * x[i])


@pytest.mark.parametrize("function", [lambda x, i, s: x.index_add(0, i, s), add_into])
def test_host_program_initializes_what_a_kernel_adds_to(function: Callable[..., Any]) -> None:
    args = [random(10, 4), positions(10, 7), random(7, 4, seed=3)]
    module = irc.trace(function, args)
    PassManager.parse(pipeline_text("triton", functional=False)).run(module)
    text = str(module)
    assert "host.func" in text and "initialized" in text
    result = irc.run(module, *[a.clone() for a in args])[0]
    torch.testing.assert_close(result, function(*args), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gpu_kernels_compile_for_sm_90(name: str) -> None:
    for func in formed(name)[1]:
        signature = runtime.signature_of(func)
        options = runtime.launch_options(func)
        assert runtime.compile_for(emit_kernel(func), func.sym_name, signature, **options)["cubin"]
