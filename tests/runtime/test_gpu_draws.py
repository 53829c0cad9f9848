"""How far a GPU's generator is, asked and moved on by native code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from irc.boundary import cuda, cuda_draws, cuda_generator, torch_abi
from irc.dialects.aten.own import NAMESPACE  # which defines the operator
from irc.runtime.gpu_libraries import call_draw, library_of
from tests.runtime.gpu_stub import Stub
from tests.runtime.test_gpu_host import lowered
from tests.runtime.test_gpu_products import thrower

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)


def states(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    first = torch.ops.irc.philox_state.default(12, x.device)
    second = torch.ops.irc.philox_state.default(4, x.device)
    return first, second + 1, x * 2


@pytest.fixture(autouse=True)
def traceable() -> Iterator[None]:
    """The operator has a meaning in a trace, which it needs in none but these tests'."""
    library = torch.library.Library(NAMESPACE, "IMPL")
    library.impl("philox_state", lambda increment, device: torch.empty(2, dtype=torch.int64,
                 device="meta"), "Meta")  # fmt: skip
    yield
    library._destroy()


@pytest.fixture
def stub() -> Stub:
    return Stub()


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """By how much the operator was told to move on."""
    asked: list[int] = []

    def state(increment: int, device: Any) -> torch.Tensor:
        asked.append(increment)
        return torch.tensor([7, 100 * len(asked)])

    monkeypatch.setitem(cuda_generator.FUNCTIONS, "philox_state", state)
    return asked


def test_the_generator_goes_on(stub, in_python, monkeypatch):
    call = stub.build(lowered(states, [torch.randn(4)]), monkeypatch)
    stub.streams[0] = 0x57
    seed = stub.draws.seed - 2**64
    for turn in range(3):
        x = torch.randn(4)
        first, second, y = stub.call(call, x)
        at = 16 * turn
        assert first.tolist() == [seed, at] and second.tolist() == [seed + 1, at + 13]
        assert torch.equal(y, x * 2) and not stub.draws.held
    assert stub.draws.streams == [0x57] * 6 and not in_python


@pytest.mark.parametrize("word", [cuda_draws.STATE, cuda_draws.UNPACK, None])
def test_the_operator_is_asked_where_that_fails(word, stub, in_python, monkeypatch):
    if word is None:
        stub.draws.missing = True
    else:
        stub.draws.throws[word] = thrower()
    call = stub.build(lowered(states, [torch.randn(4)]), monkeypatch)
    for turn in range(2):
        first, second, _ = stub.call(call, torch.randn(4))
        assert first.tolist() == [7, 100 + 200 * turn]
        assert second.tolist() == [8, 201 + 200 * turn]
        assert not stub.draws.held
    assert in_python == [12, 4] * 2


gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.gpu
@gpu
def test_native_draws_are_the_operators() -> None:
    installed = cuda.installed()
    assert installed is not None
    words = library_of(installed)("draw", torch.cuda.current_device())
    assert words[cuda_draws.STATE]
    assert cuda_generator.moves_on(lambda by, on: cuda_draws.drawn(call_draw, by, on))


@pytest.mark.gpu
@gpu
def test_dropouts_between_others_on_a_gpu() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        for p in (0.1, 0.5):
            x = torch.nn.functional.dropout(x, p) + torch.rand_like(x)
        return x

    x = torch.randn(64, 100, device="cuda")
    compiled = torch.compile(noisy, backend="irc")
    for seed in range(3):
        torch.manual_seed(seed)
        expected = noisy(x)
        torch.manual_seed(seed)
        torch.testing.assert_close(compiled(x), expected)
