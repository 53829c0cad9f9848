"""New tensors of a GPU's programs below torch's dispatcher."""

from __future__ import annotations

import functools

import pytest
import torch

from irc.boundary import cuda, cuda_memory, torch_abi
from irc.runtime.gpu_libraries import library_of, made_empty
from tests.runtime.gpu_stub import Stub
from tests.runtime.test_gpu_host import lowered, relu_and_one

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)


@pytest.fixture
def stub() -> Stub:
    return Stub()


def test_the_function_gives_what_torchs_operator_gives(stub):
    assert stub.memory[cuda_memory.EMPTY], "torch's CPU has a function with the same arguments"
    make = functools.partial(made_empty, stub.gpu)
    assert cuda_memory.self_test(stub.memory, make, "cpu") is None


def test_a_function_that_makes_something_else_is_not_used(stub):
    def other(words, device, sizes, strides, dtype):
        return torch.empty_strided(sizes, strides, dtype=torch.float64)

    assert "isn't as torch's" in cuda_memory.self_test(stub.memory, other, "cpu")
    assert cuda_memory.self_test(stub.memory, lambda *_: None, "cpu") is not None


@pytest.mark.parametrize("missing", [False, True])
def test_results_are_the_callers_alone(stub, missing, monkeypatch):
    if missing:
        stub.memory[cuda_memory.EMPTY] = 0
    call = stub.build(lowered(relu_and_one, [torch.randn(8, 16)]), monkeypatch)
    x = torch.randn(8, 16)
    (first,), (second,) = stub.call(call, x), stub.call(call, x)
    assert torch.equal(first, relu_and_one(x)) and torch.equal(second, first)
    assert first.data_ptr() != second.data_ptr()
    assert cuda_memory.facts(first)[:-1] == cuda_memory.facts(torch.empty(8, 16))[:-1]


@pytest.mark.parametrize("missing", [False, True])
def test_where_there_is_no_memory_the_operator_is_asked(stub, missing, monkeypatch):
    if missing:
        stub.memory[cuda_memory.EMPTY] = 0
    module = lowered(lambda x: x.repeat(1 << 20, 1 << 20) + 1, [torch.randn(8, 16)])
    call = stub.build(module, monkeypatch)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="aten::empty_strided"):  # which knows no GPU here
            stub.call(call, torch.randn(8, 16))
    assert not stub.launches


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpus_function_is_there_and_tested():
    gpu = cuda.installed()
    assert gpu is not None, cuda.unavailable_reason()
    words = library_of(gpu)("memory")
    assert words[cuda_memory.EMPTY]
    assert cuda_memory.self_test(words, functools.partial(made_empty, gpu)) is None
    before = torch.cuda.memory_allocated()
    for _ in range(10):
        assert made_empty(gpu, words, 0, (1 << 20,), (1,), torch.float32) is not None
    assert torch.cuda.memory_allocated() == before, "a handle keeps its memory"
    assert made_empty(gpu, words, 0, (1 << 48,), (1,), torch.float32) is None
