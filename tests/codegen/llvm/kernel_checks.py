"""What the tests of compiled kernels share: targets, data, comparison with the interpreter."""

from __future__ import annotations

import math

import pytest
import torch

from irc.dialects import kernel
from irc.interp.core import torch_dtype
from irc.ir import types as T
from irc.ir.attributes import Type
from irc.target.cpu import TargetFeatures
from tests.codegen.llvm.kernel_programs import Compiled, Program, interpret, vector

COUNT = 128
HOST = TargetFeatures.host()
#: target: (features, whether values are vectors)
TARGETS = {
    "host": (HOST, True),
    "scalar": (HOST, False),
    "avx2": (TargetFeatures.avx2(), True),
    "generic": (TargetFeatures.generic(), True),
}
INTEGERS = (T.i8, T.i16, T.i32, T.i64)
FLOATS = (T.f32, T.f64, T.f16, T.bf16)
MEMORY = (T.i1, T.i8, T.i16, T.i32, T.i64, T.f16, T.bf16, T.f32, T.f64)
TARGET_NAMES = pytest.mark.parametrize("target", TARGETS)


def features_of(target: str) -> TargetFeatures:
    """The features of a target by name; skips the test where this machine can't run it."""
    features = TARGETS[target][0]
    if features.architecture != HOST.architecture or (features.has_avx2 and not HOST.has_avx2):
        pytest.skip(f"this machine can't run {features.chip}")
    return features


def lanes_for(target: str, *elements: Type) -> int:
    """Lanes of a vector of the widest element."""
    features, is_vector = TARGETS[target]
    widths = [max(getattr(e, "width", 64), 8) for e in elements]
    return features.lanes(max(widths)) if is_vector else 0


def random_values(element: Type, count: int, seed: int) -> torch.Tensor:
    """Values with every special case in them."""
    generator = torch.Generator().manual_seed(seed)
    dtype = torch_dtype(element)
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).to(torch.bool)
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        values = torch.randn(count, generator=generator, dtype=torch.float64) * 4
        special = torch.tensor([
            0.0, -0.0, math.inf, -math.inf, math.nan, info.max, -info.max, info.tiny,
            info.tiny / 8, -info.tiny / 4, 1.0, -1.0, 0.5, 2.5, -2.5,
        ], dtype=torch.float64)  # fmt: skip
        places = torch.randperm(count, generator=generator)[: len(special)]
        values[places] = special
        return values.to(dtype)
    info = torch.iinfo(dtype)
    values = torch.randint(info.min, info.max, (count,), generator=generator, dtype=torch.int64)
    small = torch.randint(-9, 70, (count,), generator=generator)
    values = torch.where(torch.rand(count, generator=generator) < 0.5, values, small)
    values[:6] = torch.tensor([info.min, info.max, 0, -7, 1, 127])
    return values.to(dtype)


def assert_same(actual: torch.Tensor, expected: torch.Tensor, tolerance: float = 0.0) -> None:
    if tolerance:
        torch.testing.assert_close(
            actual, expected, rtol=tolerance, atol=tolerance / 8, equal_nan=True
        )
        return
    if actual.dtype.is_floating_point:
        assert torch.equal(actual.isnan(), expected.isnan())
        keep = ~actual.isnan()
        integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[actual.element_size()]
        zero = (actual == 0) & (expected == 0)  # which zero a minimum of zeros is: either
        actual, expected = actual[keep & ~zero].view(integer), expected[keep & ~zero].view(integer)
    wrong = (actual != expected).nonzero().reshape(-1)
    assert not len(wrong), (wrong[:5], actual[wrong[:5]], expected[wrong[:5]])


def map_kernel(name, elements, lanes, body) -> kernel.KernelFuncOp:
    """`last[i] = body(program, inputs[i]...)`; the last element type is the result's."""
    p = Program(name, elements, 1, COUNT)
    step = max(lanes, 1)

    def at(i):
        values = [
            p.load(q, i, vector(e, lanes))
            for q, e in zip(p.pointers[:-1], elements[:-1], strict=True)
        ]
        p.store(body(p, *values), p.pointers[-1], i)

    p.loop(p.begin, p.end, step, [], at)
    return p.done()


def check_maps(target, cases, tolerance=0.0, inputs=None) -> None:
    """`cases`: (name, element types, body). Each compiled kernel agrees with its interpretation."""
    kernels = [
        map_kernel(f"test_{name}", elements, lanes_for(target, *elements), body)
        for name, elements, body in cases
    ]
    compiled = Compiled(kernels, features_of(target))
    for callee, (name, elements, _) in zip(kernels, cases, strict=True):
        make = inputs or random_values
        tensors = [make(e, COUNT, seed) for seed, e in enumerate(elements[:-1])]
        dtype = torch_dtype(elements[-1])
        actual, expected = torch.zeros(COUNT, dtype=dtype), torch.ones(COUNT, dtype=dtype)
        compiled.run(callee.sym_name, [*tensors, actual], 0, COUNT)
        interpret(callee, [*tensors, expected])
        try:
            assert_same(actual, expected, tolerance)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


def moderate(element, count, seed):
    """Arguments that are in every function's domain."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(count, generator=generator) * 0.9 + 0.05).to(torch_dtype(element))


def check_against_interpreter(target, callee, inputs, *outputs, tolerance=0.0) -> None:
    """Run both on the same inputs and the same content of outputs."""
    actual, expected = ([o.clone() for o in outputs] for _ in range(2))
    grid = callee.grid
    Compiled([callee], features_of(target)).run(callee.sym_name, [*inputs, *actual], 0, grid)
    interpret(callee, [*inputs, *expected])
    for a, e in zip(actual, expected, strict=True):
        assert_same(a, e, tolerance)
