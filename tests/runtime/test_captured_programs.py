"""Programs that are only captured: launches alone need no native host function."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from irc.boundary import torch_abi
from irc.codegen.triton import machine_code
from irc.program.read_host import read_host_program
from irc.runtime.build_program import used_kernels
from irc.runtime.gpu_compile import compile_for_gpu, only_launches
from irc.runtime.gpu_kernels import NativeLauncher
from irc.runtime.gpu_program import GpuCode, load_for_gpu
from irc.target import Target
from irc.target.cpu import TargetFeatures
from tests.runtime.gpu_stub import Stub, moved
from tests.runtime.test_gpu_host import lowered

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)


def maps(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.relu(x) + 1, -1)


def products(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) @ x.t()


def code_of(stub: Stub, function: Any, monkeypatch: Any, captured: bool) -> GpuCode:
    monkeypatch.setattr(machine_code, "compile_code", stub.compile_code)
    module = lowered(function, [torch.randn(8, 16)])
    program = moved(read_host_program(module))
    assert only_launches(program) == (function is maps)
    return compile_for_gpu(
        program, used_kernels(module, program, "gpu"), Target.named("sm_90"),
        TargetFeatures.host(), stub.gpu, hints={}, cached=False, opt_level=1, captured=captured,
    )  # fmt: skip


def test_launches_alone_have_machine_code_and_no_host_function(monkeypatch):
    stub = Stub(runs=False)
    code = code_of(stub, maps, monkeypatch, captured=True)
    assert not code.host and stub.compiled
    assert code.kernels == code_of(stub, maps, monkeypatch, captured=False).kernels
    table, native, objects = load_for_gpu(code, stub.gpu, cached=False)
    assert native is None and not objects
    assert isinstance(table.launcher("k0"), NativeLauncher)


def test_what_calls_operators_is_native_as_it_runs_later(monkeypatch):
    stub = Stub(runs=False)
    assert code_of(stub, products, monkeypatch, captured=True).host


def test_kernels_that_want_more_of_a_launch_are_left_to_triton(monkeypatch):
    stub = Stub(runs=False, refuses="clusters")
    code = code_of(stub, maps, monkeypatch, captured=True)
    table, native, _ = load_for_gpu(code, stub.gpu, cached=False)
    assert native is None and not isinstance(table.launcher("k0"), NativeLauncher)
