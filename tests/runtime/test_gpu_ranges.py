"""Steps of a GPU's programs that run for a range of a size alone, over a stub of CUDA."""

from __future__ import annotations

import pytest
import torch

import irc
from irc.boundary import torch_abi
from irc.ir.passes import PassManager
from irc.target import Target
from irc.target.attribute import carry
from tests.runtime.gpu_stub import Stub

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)

TENSOR = "tensor<[s0, 8] x f32, strides [8, 1]>"
ARMS = """
func.func @main(%x: T) -> T attributes {level = "loop"} {
  %n = sym.bind_size %x {dim = 0 : i64, symbol = "s0"} : (T) -> index
  %a = loop.compute par(i: s0, j: 8) -> map attributes {when = #sym.range<s0, 0, 15>} {
    %v = loop.read %x[i, j] : f32
    %w = arith.addf %v, %v : f32
    loop.yield %w
  } : T
  %b = loop.compute par(i: s0, j: 8) -> map attributes {when = #sym.range<s0, 16>} {
    %v = loop.read %x[i, j] : f32
    %w = arith.mulf %v, %v : f32
    loop.yield %w
  } : T
  %y = sym.choose %a, %b : (T, T) -> T
  func.return %y : T
}""".replace("T", TENSOR)


def test_what_the_first_arm_asks_for_is_there_in_the_others(monkeypatch):
    """The stream, which the first launch of a call asks torch for, though it may not run."""
    module = irc.parse(ARMS)
    carry(module, Target.named("sm_90"))
    PassManager.parse("schedule,form-kernels,join-launches,bufferize,plan-memory").run(module)
    stub = Stub()
    call = stub.build(module, monkeypatch)
    assert call.is_native
    for size in (1, 15, 16, 100):
        x = torch.randn(size, 8)
        stub.streams[0] = 0x57 + size
        (y,) = stub.call(call, x)
        assert torch.equal(y, x + x if size < 16 else x * x)
        (launch,) = stub.launches
        assert launch.stream == 0x57 + size
