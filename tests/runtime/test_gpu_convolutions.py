"""Convolutions below torch's operators: over a stub of cuDNN, and on GPUs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
import torch

from irc.boundary import cuda, cuda_convolutions, torch_abi
from irc.boundary.cuda_convolutions import Convolution
from irc.codegen.host.gpu_convolutions import gpu_convolutions
from irc.ir.types import TensorType
from irc.passes.host import to_host
from irc.program.read_host import read_host_program
from irc.runtime.gpu_libraries import library_of
from tests.runtime.gpu_stub import Stub, moved
from tests.runtime.test_gpu_host import lowered
from tests.runtime.test_gpu_pointwise import close, last
from tests.runtime.test_gpu_products import thrower

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Stub:
    """GPUs that record, and images that `bufferize` takes for theirs."""
    of_gpu = to_host._is_gpu_image
    monkeypatch.setattr(to_host, "_is_gpu_image", lambda type_: of_gpu(
        TensorType(type_.shape, type_.element, type_.strides, "cuda:0")))  # fmt: skip
    return Stub()


def two(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    y = torch.relu(torch.conv2d(x, w, None, (2, 1), (1, 0)))
    return torch.conv2d(y, v, None, 1, 1, 2) * 2


ARGS = [last(2, 4, 8, 9), last(6, 4, 3, 2), last(8, 6, 3, 3)]


def shown(stub: Stub) -> list[tuple[Any, ...]]:
    return [each[:-1] for each in stub.convolutions.calls]


def test_they_are_computed_in_the_programs_block(stub, monkeypatch):
    call = stub.build(lowered(two, ARGS), monkeypatch)
    for _ in range(2):
        (y,) = stub.call(call, *ARGS)
        close(y, two(*ARGS))
    assert (
        shown(stub) == [((1, 0), (2, 1), (1, 1), 1, False), ((1, 1), (1, 1), (2, 2), 1, False)] * 2
    )
    out = stub.convolutions.calls[-2][-1]
    words = {word for launch in stub.launches for word in launch.words}
    assert out in words and y.data_ptr() != out, "the first one's result is in the block"


@contextlib.contextmanager
def fixed() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def flags(**changed: bool) -> Any:
    now = dict(enabled=True, benchmark=False, deterministic=False, allow_tf32=True)
    return torch.backends.cudnn.flags(**(now | changed))


def test_torchs_settings_are_read_at_each_call(stub, monkeypatch):
    call = stub.build(lowered(two, ARGS), monkeypatch)
    settings = {
        "usual": (lambda: flags(), 2), "disabled": (lambda: flags(enabled=False), 0),
        "always alike": (lambda: flags(deterministic=True), 0), "all alike": (fixed, 0),
        "tried": (lambda: flags(benchmark=True), 2),
    }  # fmt: skip
    for name, (setting, count) in settings.items():
        stub.convolutions.calls.clear()
        with setting():
            close(stub.call(call, *ARGS)[0], two(*ARGS))
        assert len(stub.convolutions.calls) == count, name
        assert all(each[4] is (name == "tried") for each in shown(stub)), name


@pytest.mark.parametrize("how", ["missing", "throws"])
def test_else_the_operator_computes(stub, how, monkeypatch):
    stub.convolutions.missing = how == "missing"
    stub.convolutions.context_of = thrower() if how == "throws" else 0
    call = stub.build(lowered(two, ARGS), monkeypatch)
    for _ in range(2):
        close(stub.call(call, *ARGS)[0], two(*ARGS))
    assert not stub.convolutions.calls


def count(function: Any, *args: torch.Tensor) -> int:
    return len(gpu_convolutions(moved(read_host_program(lowered(function, list(args))))))


def test_which_convolutions_these_are(stub):
    x, w, _ = ARGS
    assert count(two, *ARGS) == 2
    assert count(lambda x, w: torch.conv2d(x, w) + 1, x.half(), w.half()) == 1
    assert count(lambda x, w: torch.conv2d(x, w) + 1, x.float(), w.float()) == 0
    assert count(lambda x, w: torch.conv2d(x, w, groups=2) + 1, x, last(6, 2, 3, 2)) == 0
    assert count(lambda x, w: torch.conv_transpose2d(x, w) + 1, x, last(4, 6, 3, 2)) == 0
    assert count(lambda x, w: torch.conv2d(x, w) + 1, last(2, 1, 8, 9), last(6, 1, 3, 2)) == 0


def test_a_result_that_the_caller_gets_is_its_own(stub, monkeypatch):
    def alone(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.conv2d(x, w)

    call = stub.build(lowered(alone, ARGS[:2]), monkeypatch)
    (first,), (second,) = (stub.call(call, *ARGS[:2]) for _ in range(2))
    close(first, alone(*ARGS[:2]))
    assert first.data_ptr() != second.data_ptr() and first.storage_offset() == 0
    assert first.untyped_storage().nbytes() == first.numel() * 2
    assert len(stub.convolutions.calls) == 2


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", cuda_convolutions.DTYPES)
def test_the_function_is_there_and_tested(dtype):
    gpu = cuda.installed()
    assert gpu is not None
    which = Convolution(dtype, 0, (4, 64, 56, 56), (64, 64, 3, 3), (1, 1, 1, 1, 1, 1, 1))
    assert library_of(gpu)("convolution", *attrs.astuple(which))[cuda_convolutions.FUNCTION]
    with flags(enabled=False):
        assert not library_of(gpu)("convolution", *attrs.astuple(which))[cuda_convolutions.FUNCTION]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_values_are_the_operators(dtype):
    torch._dynamo.reset()
    shapes = (4, 64, 28, 28), (128, 64, 3, 3), (64, 128, 3, 3)
    args = [last(*s, dtype=dtype).cuda() for s in shapes]
    run = torch.compile(two, backend="irc", options={"fx_graph_cache": False})
    for setting in (flags, lambda: flags(benchmark=True), fixed, lambda: flags(enabled=False)):
        with setting(), torch.no_grad():
            expected = two(*args)
            for _ in range(2):
                y = run(*args)
                if torch.backends.cudnn.enabled:  # else eager's are those of another library
                    assert y.stride() == expected.stride()
                torch.testing.assert_close(y, expected, rtol=2e-2, atol=2e-1)
    own, theirs = run(*args), two(*args)
    assert torch.equal(own, theirs)
