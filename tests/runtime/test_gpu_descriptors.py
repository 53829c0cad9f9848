"""Kernels with descriptors, which take memory of the program's, over a stub of CUDA."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import irc
from irc.boundary import torch_abi
from irc.codegen.triton import machine_code
from irc.dialects import kernel, loop
from irc.ir import attributes as A
from irc.ir.passes import PassManager
from irc.program.gpu_kernels import DESCRIPTOR_BYTES, pack, unpack
from irc.target.gpu import GpuFeatures
from tests.runtime.gpu_stub import Stub

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)
PRODUCT = """
  %y = loop.compute par(m: M, n: 72) red(k: 64) -> reduce(sum, f32) {
    %p = loop.read %a[m, k] : bf16
    %q = loop.read %b[k, n] : bf16
    %p1 = arith.extf %p : bf16 to f32
    %q1 = arith.extf %q : bf16 to f32
    %v = arith.mulf %p1, %q1 : f32
    loop.yield %v } : tensor<[M, 72] x f32, strides [72, 1]>
"""
HEAD = """
func.func @main(%a: tensor<[M, 64] x bf16, strides [64, 1]>,
                %b: tensor<[64, 72] x bf16, strides [72, 1]>)
"""
TYPE = "tensor<[M, 72] x f32, strides [72, 1]>"
PROGRAM = f"{HEAD} -> {TYPE} {{ {PRODUCT} func.return %y : {TYPE} }}"
TWICE = (
    f"{HEAD} -> ({TYPE}, {TYPE}) {{ {PRODUCT} {PRODUCT.replace('%y', '%z')} "
    f"func.return %y, %z : {TYPE}, {TYPE} }}"
)
TILES = {"access": A.StringAttr("descriptors"), "tile_m": A.IntegerAttr(32),
         "tile_n": A.IntegerAttr(32), "tile_k": A.IntegerAttr(32)}  # fmt: skip


def lowered(rows: int, program: str = PROGRAM, **more: A.Attribute) -> Any:
    """The host program of products by a schedule."""
    module = irc.parse(program.replace("M", str(rows)))
    for compute in module.walk():
        if isinstance(compute, loop.ComputeOp):
            schedule = loop.ScheduleAttr("gpu", A.DictAttr({**TILES, **more}))
            compute.attributes["schedule"] = schedule
    passes = "schedule{target=gpu},form-kernels,join-launches,bufferize,plan-memory"
    PassManager.parse(passes).run(module)
    irc.verify(module)
    return module


def factors(rows: int) -> list[torch.Tensor]:
    return [torch.randn(rows, 64).bfloat16(), torch.randn(64, 72).bfloat16()]


@pytest.mark.parametrize("rows", [40, 1])
def test_a_launch_gets_memory_for_descriptors(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = Stub()
    call = stub.build(lowered(rows), monkeypatch)
    assert call.is_native
    a, b = factors(rows)
    (y,) = stub.call(call, a, b)
    torch.testing.assert_close(y, a.float() @ b.float())
    (launch,) = stub.launches
    memory, scratch, profile = launch.words[3], *launch.zeros
    assert 0 <= scratch - memory < DESCRIPTOR_BYTES and scratch % DESCRIPTOR_BYTES == 0
    assert profile == 0 and y.data_ptr() == launch.words[2]


def test_pointers_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    stub = Stub()
    call = stub.build(lowered(40, access=A.StringAttr("pointers")), monkeypatch)
    a, b = factors(40)
    (y,) = stub.call(call, a, b)
    torch.testing.assert_close(y, a.float() @ b.float())
    assert stub.launches[0].zeros == (0, 0) and len(stub.launches[0].words) == 3


def test_kernels_with_such_memory_stay_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stub, (a, b) = Stub(), factors(40)
    for access, launches in (("descriptors", 2), ("pointers", 1)):
        call = stub.build(lowered(40, TWICE, access=A.StringAttr(access)), monkeypatch)
        for result in stub.call(call, a, b):
            torch.testing.assert_close(result, a.float() @ b.float())
        assert len(stub.launches) == launches


def test_triton_asks_for_no_more_memory_than_a_launch_gives() -> None:
    module = lowered(40)
    functions = [op for op in module.ops if isinstance(op, kernel.KernelFuncOp)]
    described = machine_code.describe(functions, GpuFeatures.sm_90())
    (name,) = described.kernels
    assert described.kernels[name].descriptors == 256
    assert unpack(pack(described)) == described
    assert not machine_code.compile_code(described, name, 0).special
