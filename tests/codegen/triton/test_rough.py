"""What is as rough as 16 bits may be: f16 in Triton's interpreter, against float64."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from irc.codegen.triton import runtime
from irc.codegen.triton.emitter import emit_kernel
from tests.codegen.triton.test_models import formed_of

F = torch.nn.functional
Function = Callable[[torch.Tensor], torch.Tensor]
FUNCTIONS: dict[str, tuple[Function, Function, str]] = {
    "gelu": (
        F.gelu, lambda x: x * 0.5 * torch.special.erfc(-x * math.sqrt(0.5)), "irc_erfc_rough_f32"),
    "gelu with tanh": (
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: x * torch.sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)),
        "irc_sigmoid_rough_f32"),
    "silu": (F.silu, lambda x: x * torch.sigmoid(x), "irc_sigmoid_rough_f32"),
}  # fmt: skip


def inputs() -> torch.Tensor:
    """Each seventh f16 from 1/64 to 16 and from -1/64 to -16, and some beyond."""
    x = torch.arange(-(1 << 15), 1 << 15, 7).to(torch.int16).view(torch.float16)
    size = x.abs()
    some = torch.tensor([0.0, -0.0, 1e-7, -1e-7, 1e-3, -1e-3, 90.0, -90.0, 6e4, -6e4])
    return torch.cat([x[(size >= 1 / 64) & (size <= 16)], some.half()])


@pytest.fixture(scope="module")
def results() -> dict[str, torch.Tensor]:
    """Each function, in one process."""
    x, jobs = inputs(), {}
    for name, (function, _, helper) in FUNCTIONS.items():
        _, (func,) = formed_of(function, [x])
        source = emit_kernel(func)
        assert f" = {helper}(" in source
        jobs[name] = runtime.Job.of(func, source, [x, torch.empty_like(x)], {})
    outputs: Any = runtime.run_interpreted(list(jobs.values()))
    return {name: output[-1] for name, output in zip(jobs, outputs, strict=True)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_rounded_as_those_of_float64(name: str, results: dict[str, Any]) -> None:
    x, found = inputs(), results[name]
    right = FUNCTIONS[name][1](x.double())
    # Of all 65,536 gelu has 52 other ones above -4, eager's 243: 1 + erf(x) cancels.
    assert int((found != right.half())[x > -4].sum()) <= len(x) // 200
    torch.testing.assert_close(found.double(), right, rtol=1e-3, atol=1e-7)


def test_roughness_ends_at_f32() -> None:
    """What is stored as f32, or added to, is as exact as ever."""
    x = torch.randn(100)
    for function in (F.gelu, F.silu, lambda x: F.gelu(x.bfloat16()).float() + x):
        _, kernels = formed_of(function, [x])
        assert all("rough" not in emit_kernel(func) for func in kernels)


def test_the_inverse_of_a_sum_of_powers_is_as_rough_as_its_products() -> None:
    """Of f16, not of f32; a row of NaN and one of a single number other than 0 among them."""
    torch.manual_seed(0)
    x = torch.randn(4100, 33) * 10  # so many that a tile has several
    x[3, 5], x[4], x[5, 1:] = torch.nan, -torch.inf, -torch.inf
    softmax = functools.partial(F.softmax, dim=-1)
    _, (exact,) = formed_of(softmax, [x])
    assert "inverse_rough" not in emit_kernel(exact)
    _, (func,) = formed_of(softmax, [x.half()])
    source = emit_kernel(func)
    assert " * irc_inverse_rough_f32(" in source and "div_rn" not in source
    job = runtime.Job.of(func, source, [x.half(), torch.empty_like(x.half())], {})
    ((*_, found),) = runtime.run_interpreted([job])
    torch.testing.assert_close(
        found.double(), softmax(x.half().double()), rtol=1e-3, atol=1e-7, equal_nan=True
    )
