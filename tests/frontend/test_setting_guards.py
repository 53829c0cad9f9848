"""Settings that decide what a program is: it is compiled again where they change."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd

from irc.frontend.fx.setting_guards import guard_settings
from irc.target import Target
from irc.target.host import allows_tf32


@pytest.mark.fault("G1")
@pytest.mark.parametrize("name, dtype, guarded", [
    ("sm_90", torch.float32, True), ("sm_90", torch.bfloat16, False),
    ("avx2", torch.float32, False),
])  # fmt: skip
def test_convolutions_follow_cudnns_tf32(name: str, dtype: torch.dtype, guarded: bool) -> None:
    """A GPU's f32 convolutions are laid out by it; nothing else asks at each call."""
    found: list[bool] = []

    def compiler(module: torch.fx.GraphModule, inputs: Any) -> Any:
        found.append(guard_settings(module, Target.named(name)))
        return module

    torch._dynamo.reset()
    call = torch.compile(torch.conv2d, backend=aot_autograd(fw_compiler=compiler))
    x, w = torch.randn(1, 2, 4, 4, dtype=dtype), torch.randn(3, 2, 3, 3, dtype=dtype)
    usual = torch.backends.cudnn.allow_tf32
    try:
        for setting in (usual, usual, not usual, usual):
            torch._C._set_cudnn_allow_tf32(setting)  # what torch's tests forbid by its own name
            assert allows_tf32() == setting
            call(x, w)
    finally:
        torch._C._set_cudnn_allow_tf32(usual)
        torch._dynamo.reset()
    assert found == [guarded] * (2 if guarded else 1)
