"""Flags by which kernels tell failed checks, over the stub of CUDA."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch

from irc.boundary import cuda, torch_abi
from irc.codegen.host import support_gpu as words
from irc.dialects import host
from irc.interp.core import Frame
from irc.interp.kernel import launch
from irc.options.options import Options
from irc.program import host_program as P
from irc.program.read_host import read_host_program
from irc.runtime import graphs_cuts, late_checks, late_flags
from irc.runtime.late_flags import BOARD_FLAGS, FLAG_BYTES, Flags
from irc.runtime.native import gpu_support
from irc.runtime.python_host import PythonHost
from tests.runtime.gpu_stub import Stub, check_keys, moved
from tests.runtime.test_gpu_host import lowered, pick

pytestmark = pytest.mark.skipif(
    not torch_abi.available(), reason=f"native host: {torch_abi.unavailable_reason()}"
)


@pytest.fixture
def stub(monkeypatch) -> Stub:
    monkeypatch.setattr(late_flags, "_flags", {})
    return Stub()


def both(
    x: torch.Tensor, y: torch.Tensor, i: torch.Tensor, j: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two lookups of one kernel, and one of another."""
    return x[i] + y[j], torch.softmax(x[i[:2]], 1)


TABLE, OTHER = torch.randn(10, 5), torch.randn(7, 5)
PLACES, OTHERS = torch.tensor([1, 9, 0]), torch.tensor([6, 2, 3])
EXPECTED = both(TABLE, OTHER, PLACES, OTHERS)


def test_a_check_costs_no_launch_and_is_told_by_the_next_call(stub, monkeypatch):
    module = lowered(both, [TABLE, OTHER, PLACES, OTHERS])
    assert sum(isinstance(op, host.FlagOp) for op in module.walk()) == 3
    assert not any(isinstance(op, host.ItemOp) for op in module.walk())
    call = stub.build(module, monkeypatch)
    assert call.is_native
    launches = sum(isinstance(op, host.LaunchOp) for op in module.walk())
    for i, j, message in (
        (torch.tensor([1, 10, 0]), OTHERS, "size 10"),
        (PLACES, torch.tensor([6, -8, 3]), "size 7"),
        (PLACES, torch.tensor([7, 7, 7]), "size 7"),
    ):
        for _ in range(2):
            torch.testing.assert_close(stub.call(call, TABLE, OTHER, PLACES, OTHERS), EXPECTED)
            assert len(stub.launches) == launches and not stub.checked
        stub.call(call, TABLE, OTHER, i, j)
        assert not stub.gpu.table[cuda.LATE]
        with pytest.raises(IndexError, match=message):
            stub.call(call, TABLE, OTHER, PLACES, OTHERS)
        assert not stub.launches
    stub.call(call, TABLE, OTHER, PLACES, OTHERS)
    late_checks.settle()
    stub.call(call, TABLE, OTHER, PLACES, torch.tensor([-100, 0, 0]))
    with pytest.raises(IndexError, match="size 7"):
        late_checks.settle()
    late_checks.settle()


def test_kernels_are_the_variants_for_aligned_pointers(stub, monkeypatch):
    call = stub.build(lowered(both, [TABLE, OTHER, PLACES, OTHERS]), monkeypatch)
    late_flags.flags_of(0).flag("IndexError", "another program's")
    stub.call(call, TABLE, OTHER, PLACES, OTHERS)
    for each in stub.launches:
        check_keys([each], len(each.words))
    every, text = late_flags.flags_of(0), "index out of bounds for dimension 0 with size"
    flags = {every.flag("IndexError", f"{text} {size}").data_ptr() for size in (7, 10)}
    assert flags < {word for each in stub.launches for word in each.words}
    assert len(flags) == 2 and not any(word % FLAG_BYTES for word in flags)


def test_a_program_without_checks_tells_those_of_others(stub, monkeypatch):
    checked = stub.build(lowered(pick, [TABLE, PLACES]), monkeypatch)
    stub.call(checked, TABLE, PLACES + 5)
    plain = Stub()
    plain.gpu.table[cuda.FLAGS] = stub.gpu.table[cuda.FLAGS]
    other = plain.build(lowered(torch.relu, [TABLE]), monkeypatch)
    with pytest.raises(IndexError, match="size 10"):
        plain.call(other, TABLE)
    assert torch.equal(plain.call(other, TABLE)[0], torch.relu(TABLE))


def test_equal_checks_share_a_flag(stub, monkeypatch):
    first = stub.build(lowered(pick, [TABLE, PLACES]), monkeypatch)
    second = Stub()
    other = second.build(lowered(lambda x, i: x[i] - 1, [TABLE, PLACES]), monkeypatch)
    stub.call(first, TABLE, PLACES + 5)
    with pytest.raises(IndexError):
        second.call(other, TABLE, PLACES)
    second.call(other, TABLE, PLACES + 5)
    with pytest.raises(IndexError):
        stub.call(first, TABLE, PLACES)
    stub.call(first, TABLE, PLACES)


def test_strict_programs_have_no_flags():
    module = lowered(both, [TABLE, OTHER, PLACES, OTHERS], options=Options(late_checks=False))
    assert not any(isinstance(op, host.FlagOp) for op in module.walk())


def told(table: Any, device: int) -> int:
    """What native code says of a table."""
    kinds = ctypes.c_void_p, ctypes.c_int64
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(gpu_support("irc_gpu_told"))
    return int(function(ctypes.addressof(table), device))


def test_flags_have_as_many_boards_as_they_need():
    flags, table = Flags(0, pinned=False), cuda.Table()
    assert not told(table, 0)
    table[cuda.FLAGS + 3] = flags.address
    count = 2 * BOARD_FLAGS + 3
    every = [flags.flag("ValueError", f"check {k}") for k in range(count)]
    assert flags.flag("ValueError", "check 5").data_ptr() == every[5].data_ptr()
    assert flags.flag("RuntimeError", "check 5").data_ptr() != every[5].data_ptr()
    assert len({flag.data_ptr() for flag in every}) == count and all(every)
    assert not told(table, 3)
    flags.raise_failed()
    for number in (0, BOARD_FLAGS - 1, BOARD_FLAGS, count - 1):
        every[number].fill_(False)
        assert told(table, 3) and not told(table, 0)
        address = ctypes.addressof(flags.memory("ValueError", f"check {number}"))
        assert address == every[number].data_ptr()
        with pytest.raises(ValueError, match=f"^check {number}$"):
            flags.raise_failed()
        assert not told(table, 3)
        flags.raise_failed()
    every[4].fill_(False)
    every[2].fill_(False)
    with pytest.raises(ValueError, match="check 2"):
        flags.raise_failed()
    flags.raise_failed()
    table[cuda.LATE] = 1
    assert told(table, 0)
    assert words.FLAG_WORDS * 8 == FLAG_BYTES


class Interpreted:
    """Kernels in irc's interpreter, for the Python executor."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def launch(self, name: str, tensors: Any, symbols: Any, grid: int) -> None:
        callee = self.module.lookup(name)
        names = [a.value for a in callee.symbols or ()]
        frame = Frame(None, symbols=dict(zip(names, symbols, strict=True)))
        launch(frame, callee, tensors)


def test_the_python_executor_tells_a_cpus_check_at_once():
    module = lowered(both, [TABLE, OTHER, PLACES, OTHERS])
    run = PythonHost(read_host_program(module), Interpreted(module), {})
    torch.testing.assert_close(tuple(run({}, [TABLE, OTHER, PLACES, OTHERS])), EXPECTED)
    for _ in range(2):
        with pytest.raises(IndexError, match="size 7"):
            run({}, [TABLE, OTHER, PLACES, OTHERS + 1])
    torch.testing.assert_close(tuple(run({}, [TABLE, OTHER, PLACES, OTHERS])), EXPECTED)


def test_the_python_executor_leaves_a_gpus_check_to_the_next_call(stub, monkeypatch):
    module = lowered(pick, [TABLE, PLACES])
    program = moved(read_host_program(module))
    (step,) = [s for s in program.steps if isinstance(s, P.Flag)]
    run = PythonHost(program, Interpreted(module), {})
    assert run.on_gpu >= {step.register} and not run.flags
    native = stub.build(module, monkeypatch)
    stub.call(native, TABLE, PLACES + 5)
    with pytest.raises(IndexError):
        late_checks.raise_failed(0)
    assert late_flags.flags_of(0).flag(step.error, step.message)


def test_a_piece_of_a_graph_has_its_flags(stub):
    program = moved(read_host_program(lowered(both, [TABLE, OTHER, PLACES, OTHERS])))
    plan = graphs_cuts.cut(program, "cuda:0")
    (piece,) = plan.pieces
    assert piece.captured and not plan.reasons
    assert sum(isinstance(s, P.Flag) for s in piece.program.steps) == 3
    assert P.from_json(P.to_json(program)) == program


@pytest.mark.gpu
@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
@pytest.mark.parametrize("slow", [False, True])
def test_a_gpus_kernel_tells_its_checks(mode: str | None, slow: bool, monkeypatch) -> None:
    if slow:
        monkeypatch.setenv("IRC_FORCE_SLOW_HOST", "1")
    monkeypatch.setenv("IRC_DISABLE_CACHE", "1")
    torch._dynamo.reset()
    x, y, i, j = (t.cuda() for t in (TABLE, OTHER, PLACES, OTHERS))
    run = torch.compile(both, backend="irc", mode=mode)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(run(x, y, i, j), both(x, y, i, j))
        late_checks.settle()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as record:
            run(x, y, i, j)
            torch.cuda.synchronize()
        names = [e.key for e in record.key_averages()]
        assert not [n for n in names if "irc_check" in n or "Memcpy DtoH" in n], names
        for wrong, message in (((i + 9, j), "size 10"), ((i, j - 10), "size 7")):
            for _ in range(2):
                run(x, y, *wrong)
                torch.cuda.synchronize()
                with pytest.raises(IndexError, match=message):
                    run(x, y, i, j)
                torch.testing.assert_close(run(x, y, i, j), both(x, y, i, j))
                late_checks.settle()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            run(x, y, i + 9, j)
        with pytest.raises(IndexError, match="size 10"):
            late_checks.settle()
        late_checks.settle()
    torch._dynamo.reset()


@pytest.mark.gpu
def test_a_strict_program_of_a_gpu_raises_at_once() -> None:
    torch._dynamo.reset()
    x, y, i, j = (t.cuda() for t in (TABLE, OTHER, PLACES, OTHERS))
    run = torch.compile(both, backend="irc", options={"late_checks": False})
    with torch.no_grad(), pytest.raises(IndexError, match="size 7"):
        run(x, y, i, j + 5)
    torch._dynamo.reset()
