"""Results and arguments that lie in one array of bytes, over the stub of CUDA and in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import torch

from irc.boundary import torch_abi
from irc.interp.core import Frame
from irc.interp.kernel import launch
from irc.ir.diagnostics import InvalidIR
from irc.program import host_program as P
from irc.program.joined import join_arguments, join_results
from irc.program.read_host import read_host_program
from irc.runtime.build_program import used_kernels
from irc.runtime.python_host import PythonHost
from tests.runtime.gpu_stub import Stub, moved
from tests.runtime.test_gpu_host import lowered

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)
Change = Callable[[P.HostProgram], P.HostProgram]


def built(function: Any, args: list[Any], change: Change, monkeypatch: Any) -> tuple[Stub, Any]:
    stub, module = Stub(), lowered(function, args)
    program = change(read_host_program(module))
    kernels = used_kernels(module, program, "gpu")
    return stub, stub.build_program(moved(program), kernels, monkeypatch)


def part(block: torch.Tensor, place: int, like: torch.Tensor) -> torch.Tensor:
    return block.view(like.dtype).as_strided(
        like.shape, like.stride(), place // like.element_size()
    )


def four(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x @ w
    return torch.relu(x) + 1, y, y > 0, (x * 2).double().t()


ARGS = [torch.randn(5, 6), torch.randn(6, 7)]


@pytest.mark.parametrize("native", [True, False])
def test_results_are_made_in_one_array(native, monkeypatch):
    joined = {1: 0, 2: 512, 3: 1024}
    stub, call = built(four, ARGS, lambda p: join_results(p, joined), monkeypatch)
    assert sum(isinstance(s, P.CopyInto) for s in stub._program.steps) == 0
    if not native:
        call = in_python(stub, lambda p: join_results(p, joined))
    for _ in range(2):
        own, block = stub.call(call, *ARGS)
        expected = four(*ARGS)
        assert torch.equal(own, expected[0])
        assert block.dtype is torch.uint8 and block.shape == (1024 + 512,)
        for position, place in joined.items():
            like = expected[position].contiguous() if position < 3 else expected[position]
            torch.testing.assert_close(part(block, place, like), like)


def in_python(stub: Stub, change: Change) -> Any:
    """The program that the stub has by the Python executor, its kernels interpreted."""
    module = lowered(four, ARGS)
    program = change(read_host_program(module))
    kernels = {op.sym_name: op for op in used_kernels(module, program, "gpu")}

    class Table:
        def launch(self, name: str, tensors: Any, *_: Any) -> None:
            launch(Frame(None, symbols={}), kernels[name], tensors)

    host = PythonHost(program, Table(), {})
    return lambda *given: tuple(host({}, given))


def test_what_an_operator_makes_is_copied(monkeypatch):
    def drawn(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.cumsum(x, 1), torch.cummax(x, 1)[1]

    x = torch.randn(3, 4)
    stub, call = built(drawn, [x], lambda p: join_results(p, {0: 0, 1: 512}), monkeypatch)
    (block,) = stub.call(call, x)
    for place, like in zip((0, 512), drawn(x), strict=True):
        torch.testing.assert_close(part(block, place, like), like)


def block_of(tensors: list[torch.Tensor], places: list[int], count: int) -> torch.Tensor:
    block = torch.zeros(count, dtype=torch.uint8)
    for tensor, place in zip(tensors, places, strict=True):
        part(block, place, tensor).copy_(tensor)
    return block


def reads(a: torch.Tensor, x: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.where(b, a @ x, 0.0), torch.cumsum(a, 0), b.t()


def test_arguments_are_read_where_they_lie(monkeypatch):
    args = [torch.randn(4, 5), torch.randn(5, 3), torch.rand(4, 3) > 0.5]
    change: Change = lambda p: join_arguments(p, {0: 512, 2: 0}, 2048)  # noqa: E731
    stub, call = built(reads, args, change, monkeypatch)
    block = block_of([args[0], args[2]], [512, 0], 2048)
    for _ in range(2):
        for made, expected in zip(stub.call(call, block, args[1]), reads(*args), strict=True):
            torch.testing.assert_close(made, expected)
            shared = made.untyped_storage().data_ptr() == block.untyped_storage().data_ptr()
            assert not shared, "a result that is a part is a copy"
    with pytest.raises(Exception, match="2048"):
        stub.call(call, block[:1024], args[1])


def test_what_has_no_place():
    program = read_host_program(lowered(four, ARGS))
    with pytest.raises(InvalidIR, match="reach beyond the 512 bytes"):
        join_arguments(program, {0: 0, 1: 512}, 512)
    changing = read_host_program(lowered(lambda x: x + 1, [torch.randn(4, 6)], dynamic=True))
    with pytest.raises(InvalidIR, match="no place in an array of bytes"):
        join_results(changing, {0: 0})
    returned = attrs.evolve(program, outputs=(attrs.evolve(program.outputs[0], alias_of=0),))
    with pytest.raises(InvalidIR, match="no array of its own"):
        join_results(returned, {0: 0})
