"""RWKV without its own kernels: a loop over the steps that writes one slice after another."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

import irc
from irc.pipeline import lower

attention = pytest.importorskip("transformers.models.rwkv.modeling_rwkv")


def lowered(steps: int) -> tuple[Any, list[torch.Tensor], float]:
    """The attention of a layer as host program, arguments, and the seconds of its passes."""
    torch.manual_seed(0)
    decay, first = torch.randn(24).exp().neg(), torch.randn(24)
    keys, values = torch.randn(2, steps, 24), torch.randn(2, steps, 24)
    arguments = [decay, first, keys, values]
    module = irc.trace(lambda *given: attention.rwkv_linear_attention_cpu(*given)[0], arguments)
    start = time.process_time()
    lower(module)
    return module, arguments, time.process_time() - start


@pytest.mark.fault("G2")
@pytest.mark.fault("V20")
def test_sixteen_steps_compile_in_seconds():
    module, arguments, seconds = lowered(16)
    assert seconds < 5
    (got,) = irc.build(module)(*arguments)
    want, _ = attention.rwkv_linear_attention_cpu(*arguments)
    torch.testing.assert_close(got, want)
