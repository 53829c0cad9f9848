"""A GPU's program in the cache: its kernels' machine code with it, and no Triton to load it."""

from __future__ import annotations

import sys

import attrs
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import irc
from irc import metrics
from irc.boundary import cuda, torch_abi
from irc.boundary.once import once
from irc.codegen.triton import machine_code, workers
from irc.program import gpu_kernels
from irc.program.gpu_kernels import GpuKernels, KernelFacts, MachineCode
from irc.runtime.gpu_kernels import cached_codes, code_for, code_key
from tests.runtime.gpu_stub import SHARED, Stub

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)

FACTS = KernelFacts(("*fp32", "*fp32", "i64"), (1,), (("num_stages", 1), ("num_warps", 4)))
CODE = MachineCode("k_0", b"\x7fELF", 128, 0, "")
KERNELS = GpuKernels("sm_90", "source", {"k": FACTS}, {("k", 0): CODE, ("k", 5): CODE})


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("IRC_DISABLE_CACHE", raising=False)
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "cache"))


def test_kernels_come_back_as_they_were():
    assert gpu_kernels.unpack(gpu_kernels.pack(KERNELS)) == KERNELS
    for data in (b"", b"x" * 20, gpu_kernels.pack(KERNELS)[:-1], gpu_kernels.pack(KERNELS) + b"x"):
        with pytest.raises(ValueError):
            gpu_kernels.unpack(data)


def test_a_variant_is_compiled_by_one_process_and_read_by_the_next(monkeypatch):
    made = []
    monkeypatch.setattr(machine_code, "compile_code", lambda *given: made.append(given) or CODE)
    assert cached_codes(KERNELS, [("k", 7)]) == {}
    assert code_for(KERNELS, "k", 7, cached=True) == CODE and len(made) == 1
    assert code_for(KERNELS, "k", 7, cached=True) == CODE and len(made) == 1
    assert code_for(KERNELS, "k", 7, cached=False) == CODE and len(made) == 2
    assert cached_codes(KERNELS, [("k", 7), ("k", 8)]) == {("k", 7): CODE}


def test_what_decides_machine_code_is_in_its_key():
    def key(**change):
        kernels = attrs.evolve(KERNELS, **change)
        return code_key(kernels, "k", 0)

    other = {"k": attrs.evolve(FACTS, options=(("num_warps", 8),))}
    narrow = {"k": attrs.evolve(FACTS, signature=("*fp16", "*fp32", "i64"))}
    kinds = [{}, {"chip": "sm_80"}, {"source": "other"}, {"kernels": other}, {"kernels": narrow}]
    assert len({key(**kind) for kind in kinds} | {code_key(KERNELS, "k", 1)}) == 6


def relu_and_one(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) + 1


def compiled() -> irc.Executable:
    with FakeTensorMode():
        module = irc.trace(relu_and_one, (torch.empty(8, 16, device="cuda"),))
    return irc.pipeline.compile_module(module, target="sm_90")


def test_a_warm_start_loads_no_triton(monkeypatch):
    stub = Stub(runs=False)
    monkeypatch.setattr(cuda, "installed", lambda: stub.gpu)
    monkeypatch.setattr(machine_code, "compile_code", stub.compile_code)
    monkeypatch.setattr(workers, "count", lambda _: 0)  # others would compile it in earnest
    stub._facts["k0"] = 2, None
    metrics.reset()
    first = compiled()
    assert first.is_native and stub.compiled == [("k0", 0)] and metrics.cache_puts == 1
    for name in ("triton", "irc.codegen.triton.machine_code", "irc.codegen.triton.emitter",
                 "irc.codegen.host.lowering"):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, None)
    again = compiled()
    assert again.is_native and metrics.cache_hits == 1 and stub.compiled == [("k0", 0)]
    x = torch.randn(8, 16)
    (y,) = again(x)
    (launch,) = stub.launches
    assert launch.words == (x.data_ptr(), y.data_ptr()) and launch.shared == SHARED
    assert launch.kernel == "k0" and y.shape == x.shape


def test_without_a_gpu_the_reason_is_told(monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert cuda.unavailable_reason() == "there is no GPU" and cuda.installed() is None
    monkeypatch.setenv("IRC_FORCE_SLOW_HOST", "1")
    assert "IRC_FORCE_SLOW_HOST" in str(cuda.unavailable_reason())


def test_a_driver_that_is_not_as_expected_is_named(monkeypatch):
    """The self-test itself, with a device that is not there."""
    monkeypatch.setattr(cuda, "_is_there", lambda: True)
    monkeypatch.setattr(cuda, "_tested", once(cuda._tested.__wrapped__))
    assert "the self-test failed" in str(cuda.unavailable_reason())
    assert cuda.installed() is None
