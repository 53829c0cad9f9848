"""Hand-written kernels compiled for several targets, against torch."""

from __future__ import annotations

import pytest
import torch

from irc.target.cpu import TargetFeatures
from tests.codegen.llvm import handwritten
from tests.codegen.llvm.kernel_programs import Compiled, interpret

HOST = TargetFeatures.host()
TARGETS = {"host": HOST, "avx2": TargetFeatures.avx2(), "generic": TargetFeatures.generic()}
TARGET_NAMES = pytest.mark.parametrize("target", TARGETS)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def features_of(target: str) -> TargetFeatures:
    features = TARGETS[target]
    if features.architecture != HOST.architecture or (features.has_avx2 and not HOST.has_avx2):
        pytest.skip(f"this machine can't run {features.chip}")
    return features


def check(callee, features, inputs, output, expected, rtol=2e-6, atol=1e-6) -> None:
    """The compiled kernel, and the interpreted one, give `expected` in (a copy of) `output`."""
    compiled, interpreted = output.clone(), output.clone()
    Compiled([callee], features).run(callee.sym_name, [*inputs, compiled], 0, callee.grid)
    torch.testing.assert_close(compiled, expected, rtol=rtol, atol=atol)
    interpret(callee, [*inputs, interpreted])
    torch.testing.assert_close(interpreted, expected, rtol=rtol, atol=atol)


@TARGET_NAMES
@pytest.mark.parametrize("columns", [1, 15, 64, 203])
def test_softmax(target, columns):
    features = features_of(target)
    x = torch.randn(3, columns) * 3
    callee = handwritten.softmax(features, 3, columns)
    check(callee, features, [x], torch.empty_like(x), torch.softmax(x, 1))


@TARGET_NAMES
@pytest.mark.parametrize("columns", [7, 64, 203])
def test_layer_norm(target, columns):
    features = features_of(target)
    x, weight, bias = torch.randn(3, columns) + 2, torch.randn(columns), torch.randn(columns)
    callee = handwritten.layer_norm(features, 3, columns)
    expected = torch.layer_norm(x, [columns], weight, bias)
    check(callee, features, [x, weight, bias], torch.empty_like(x), expected, 1e-5, 1e-5)


@TARGET_NAMES
@pytest.mark.parametrize("count", [3, 64, 101])
def test_gelu_of_bfloat16(target, count):
    features = features_of(target)
    x = (torch.randn(count) * 3).bfloat16()
    callee = handwritten.gelu_bf16(features, count)
    check(callee, features, [x], torch.empty_like(x),
          torch.nn.functional.gelu(x), 8e-3, 1e-6)  # fmt: skip


@TARGET_NAMES
def test_transpose(target):
    features = features_of(target)
    x = torch.randn(32, 48)
    callee = handwritten.transpose(features, 32, 48)
    check(callee, features, [x], torch.zeros(48, 32), x.t().contiguous(), 0, 0)


@TARGET_NAMES
@pytest.mark.parametrize("columns", [64, 203])
def test_cumsum(target, columns):
    features = features_of(target)
    x = torch.randn(2, columns)
    callee = handwritten.cumsum(features, 2, columns)
    check(callee, features, [x], torch.zeros_like(x), x.cumsum(1), 1e-5, 1e-5)


@TARGET_NAMES
def test_scatter_add(target):
    features = features_of(target)
    value, index = torch.randn(160), torch.randint(0, 11, (160,))
    start = torch.randn(11)
    callee = handwritten.scatter_add(features, 160)
    check(callee, features, [value, index], start, start.scatter_add(0, index, value), 0, 0)
