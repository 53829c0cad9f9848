"""Numbers that a GPU's program reads from tensors: copied early, waited for late."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch

from irc.boundary import cuda
from irc.codegen.host.gpu_reads import is_quiet
from irc.codegen.host.support_reads import TAKEN
from irc.program import host_program as P
from irc.program.early import read_early
from irc.program.read_host import read_host_program
from tests.runtime.gpu_stub import Stub, moved
from tests.runtime.test_gpu_host import lowered

ARGS = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)), torch.ones(4, 6)


@pytest.fixture(autouse=True)
def _numbers():
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        yield


@pytest.fixture
def stub() -> Stub:
    return Stub()


def sizes(x: torch.Tensor, w: torch.Tensor) -> Any:
    n = (x > 0).sum().item()
    y = torch.softmax(x @ w, -1)
    return y, x.new_zeros(n) + y.sum()


def at_the_end(x: torch.Tensor, w: torch.Tensor) -> Any:
    n = (x.sin() @ w).sum()
    return torch.softmax((n + x) @ w, -1) + 1, n.item()


def several(x: torch.Tensor, w: torch.Tensor) -> Any:
    m, n = (x > 0).sum().item(), (x > 5).sum().item()
    y = torch.softmax(x @ w, -1)
    return y, x.new_zeros(m + n + 1) + y.sum()


@pytest.mark.parametrize("function", [sizes, at_the_end, several])
@pytest.mark.parametrize("late", [False, True], ids=["", "under way"])
def test_what_is_in_between_is_launched_before_the_wait(stub, function, late, monkeypatch):
    stub.arrives = [] if late else None
    call = stub.build(lowered(function, list(ARGS)), monkeypatch)
    for turn in range(3):
        x = ARGS[0] + turn
        stub.events.clear()
        stub.launches.clear()
        found = stub.call(call, x, ARGS[1])
        torch.testing.assert_close(tuple(found), tuple(function(x, ARGS[1])))
        recorded = [count for what, _, count in stub.events if what == "record"]
        waited = [count for what, _, count in stub.events if what == "wait"]
        assert len(recorded) == len(waited) >= 1
        assert waited[0] > recorded[0] > 0  # behind the softmax, behind the sum


def places(call: Any) -> list[Any]:
    return [o for k, o in call._objects.items() if k[0] == "gpu-read"]


def test_a_place_in_use_and_a_capture_leave_the_number_to_torch(stub, monkeypatch):
    call = stub.build(lowered(sizes, list(ARGS)), monkeypatch)
    (place,) = places(call)
    place[TAKEN] = 1  # by a call of another thread
    wanted = sizes(*ARGS)
    torch.testing.assert_close(tuple(stub.call(call, *ARGS)), wanted)
    assert not stub.events and place[TAKEN] == 1
    place[TAKEN], stub.capturing = 0, 1
    torch.testing.assert_close(tuple(stub.call(call, *ARGS)), wanted)
    assert not stub.events and place[TAKEN] == 0


def test_an_assertion_about_a_number_is_waited_for(stub, monkeypatch):
    def small(x: torch.Tensor, w: torch.Tensor) -> Any:
        n = (x > 0).sum().item()
        torch._check(n <= 3)
        return torch.softmax(x @ w, -1), x.new_zeros(n)

    call = stub.build(lowered(small, [ARGS[0] - 9, ARGS[1]]), monkeypatch)
    stub.call(call, ARGS[0] - 9, ARGS[1])
    (place,) = places(call)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="u0 from 0 to 3"):
            stub.call(call, ARGS[0] + 9, ARGS[1])
        assert place[TAKEN] == 0


def test_an_error_in_between_gives_the_place_back(stub, monkeypatch):
    def inverse(x: torch.Tensor, w: torch.Tensor) -> Any:
        n = (x > 0).sum().item()
        return torch.linalg.inv(w), x.new_zeros(n)

    libc = ctypes.CDLL(None)  # its sched_yield gives 0: Python can't be called with an error set
    stub.gpu.table[cuda.EVENT_WAIT] = ctypes.cast(libc.sched_yield, ctypes.c_void_p).value
    w = torch.eye(4)
    call = stub.build(lowered(inverse, [ARGS[0], w]), monkeypatch)
    (place,) = places(call)
    for _ in range(2):
        with pytest.raises(torch.linalg.LinAlgError):
            stub.call(call, ARGS[0], w * 0)
        assert place[TAKEN] == 0 and stub.events.pop()[0] == "record"
    torch.testing.assert_close(tuple(stub.call(call, ARGS[0], w)), inverse(ARGS[0], w))


def program_of(steps: list[Any]) -> P.HostProgram:
    """A program of these steps over registers on a GPU; register 0 is its argument."""
    layout = P.Layout("int64", (4,), (1,), 8, "cuda:0")
    return P.HostProgram(
        "main", (P.Argument("x", "tensor", 0, layout),), (), tuple(steps), (), 9, {},
        {r: layout for r in range(6)}, {},
    )  # fmt: skip


READ = P.ReadItem(6, 1, "int")
BIND = P.Bind("u0", 6, minimum=0)
OTHER = P.Launch("k", (2, 3), (), 1, None, (1,))
TO_ARGUMENT = P.Launch("k", (2, 0), (), 1, None, (1,))
WITH_SIZE = P.Launch("k", (2, 3), ("u0",), 1, None, (1,))
NUMBER = P.Launch("n", (0, 1), (), 1, None, (1,))
ABOUT = P.Assert("le", 0, P.parse_dim("u0"), "")
ABOUT_BOTH = P.Assert("le", P.parse_dim("s0"), P.parse_dim("u0"), "")
COPY = P.CopyInto(2, 3)
VIEW = P.View(3, 2, P.Layout("int64", (2,), (1,), 8, "cuda:0"), 0)
ADD = P.CallOperator("aten.add.Tensor", (("self", P.Register(2)), ("other", P.Register(2))), (),
                     True)  # fmt: skip
ADD_OUT = P.CallOperator(
    "aten.add.out", (("self", P.Register(0)), ("other", P.Register(2)), ("out", P.Register(3))), (),
    True,
)  # fmt: skip
ADD_TO_ARGUMENT = P.CallOperator(
    "aten.add_.Tensor", (("self", P.Register(0)), ("other", P.Register(2))), (), True
)
DRAW = P.CallOperator("aten.rand_like.default", (("self", P.Register(2)),), (), True)


@pytest.mark.parametrize(
    ("steps", "order", "starts"),
    [
        ([NUMBER, READ, BIND, OTHER], [0, 3, 1, 2], {0: (2,)}),
        ([NUMBER, READ, BIND, ABOUT, OTHER, WITH_SIZE], [0, 4, 1, 2, 3, 5], {0: (2,)}),
        ([NUMBER, READ, BIND, ABOUT_BOTH, OTHER], [0, 1, 2, 3, 4], {}),
        ([NUMBER, OTHER, READ, BIND, WITH_SIZE], [0, 1, 2, 3, 4], {0: (2,)}),  # copied early only
        ([NUMBER, READ, BIND, TO_ARGUMENT], [0, 1, 2, 3], {}),
        ([NUMBER, READ, BIND, COPY], [0, 3, 1, 2], {0: (2,)}),
        ([NUMBER, READ, BIND, P.CopyInto(2, 0)], [0, 1, 2, 3], {}),
        ([NUMBER, READ, BIND, ADD, ADD_OUT], [0, 3, 4, 1, 2], {0: (3,)}),
        ([NUMBER, READ, BIND, ADD_TO_ARGUMENT], [0, 1, 2, 3], {}),
        ([NUMBER, READ, BIND, DRAW], [0, 1, 2, 3], {}),
        ([NUMBER, READ, BIND, VIEW], [0, 3, 1, 2], {}),  # nothing to do meanwhile
        ([P.ReadItem(6, 0, "int"), BIND, OTHER], [2, 0, 1], {-1: (1,)}),
        ([OTHER, P.ReadItem(6, 0, "int"), BIND, OTHER], [0, 3, 1, 2], {-1: (2,)}),
        ([NUMBER, P.Launch("w", (2, 1), (), 1, None, (1,)), READ, OTHER], [0, 1, 3, 2], {1: (3,)}),
        ([NUMBER, P.View(4, 1, VIEW.layout, 0), P.ReadItem(6, 4, "int"), OTHER], [0, 1, 3, 2],
         {1: (3,)}),
        ([NUMBER, READ, P.CallOperator("aten.mul.Scalar", (("self", P.Register(2)),
                                                           ("other", P.Register(6))), (), True)],
         [0, 1, 2], {}),
        ([NUMBER, P.ReadItem(6, 1, "bool"), P.AssertValue(6, ""), OTHER], [0, 1, 2, 3], {}),
        ([NUMBER, P.ReadItem(6, 1, "bool", True), OTHER], [0, 1, 2], {}),
        ([NUMBER, READ, BIND, P.SymbolValue(7, P.parse_dim("u0")), OTHER,
          P.ReadItem(8, 2, "int")], [0, 4, 1, 2, 3, 5], {0: (2,)}),
    ],
)  # fmt: skip
def test_what_waits_and_what_overtakes_it(steps, order, starts):
    program = program_of(steps)
    early = read_early(program, lambda call: is_quiet(program, call))
    assert [program.steps.index(s) for s in early.program.steps] == [
        program.steps.index(steps[k]) for k in order
    ]
    assert early.starts == starts


def test_a_program_of_the_cpu_stays_as_it_is():
    program = read_host_program(lowered(sizes, list(ARGS)))
    assert read_early(program, lambda call: True).program is program
    assert read_early(moved(program), lambda call: True).starts


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("function", [sizes, at_the_end, several])
def test_on_a_gpu(function):
    torch._dynamo.reset()
    run = torch.compile(function, backend="irc", fullgraph=True)
    for turn in range(20):
        x, w = ARGS[0].cuda() + turn % 5 - 2, ARGS[1].cuda()
        torch.testing.assert_close(run(x, w), function(x, w), rtol=1e-3, atol=1e-3)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.testing.assert_close(run(x, w), function(x, w), rtol=1e-3, atol=1e-3)
    side.synchronize()
