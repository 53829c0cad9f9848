"""Powers that round to zero are made zero: nothing underflows on the way, for which Intel's
processors run microcode."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import platform

import pytest
import torch

import irc
from irc.target.cpu import TargetFeatures

UNDERFLOW = 0x10
TARGETS = [name for name in ("sse2", "avx2", "avx512")
           if {*getattr(TargetFeatures, name)().sets} <= {*TargetFeatures.host().sets}]  # fmt: skip
FUNCTIONS = {
    "exp": torch.exp,
    "exp2": torch.exp2,
    "sigmoid": torch.sigmoid,
    "softmax": lambda x: torch.softmax(x, -1),
    "nonpositive": lambda x: torch.exp(x - x.amax(-1, keepdim=True)),
}

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="its flags are x86's")


def underflows(call: object, x: torch.Tensor) -> tuple[torch.Tensor, bool]:
    """What one thread computes, and whether any number underflowed."""
    flags = ctypes.CDLL(ctypes.util.find_library("m"))
    flags.feclearexcept(UNDERFLOW)
    result = call(x)  # type: ignore[operator]
    return result, bool(flags.fetestexcept(UNDERFLOW))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_rounds_to_zero_does_not_underflow(name: str, dtype: torch.dtype, target: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(16, 67, dtype=dtype)
    x[:, ::3], x[:, 1::5] = -math.inf, torch.finfo(dtype).min
    x[:, 2::7] = -2000.0
    function = FUNCTIONS[name]
    compiled = irc.compile(function, (x,), options={"target": target})
    compiled(x)
    found, flag = underflows(compiled, x)
    exact = function(x.double()).to(dtype)
    torch.testing.assert_close(found, exact)
    assert ((found == 0) == (exact == 0)).all() and not found.signbit().any()
    assert not flag


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_below_the_normal_numbers_is_rounded_to_them(target: str) -> None:
    x = torch.linspace(-104, -87, 333)
    compiled = irc.compile(torch.exp, (x,), options={"target": target})
    found, flag = underflows(compiled, x)
    exact = torch.exp(x.double())
    assert flag and (found.double() - exact).abs().max() <= 1.01 * 2.0**-149
    assert compiled(torch.full((333,), math.nan)).isnan().all()
