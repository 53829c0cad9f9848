"""The kernel that tells the CPU whether a GPU's truth values hold."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from irc.codegen.host.support_gpu import RING_KERNEL
from irc.passes.host.flag_checks import FlagChecks
from irc.runtime import late_checks
from irc.runtime.check_kernel import PTX, check_kernel


def test_an_assembler_takes_it(tmp_path: Path) -> None:
    triton = pytest.importorskip("triton")
    assembler = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    if not assembler.exists():
        pytest.skip("no assembler is installed")
    source = tmp_path / "check.ptx"
    source.write_bytes(PTX.rstrip(b"\0"))
    assert PTX.endswith(b"\0"), "the driver takes a text that ends"
    command = [str(assembler), "-arch=sm_90", str(source), "-o", str(tmp_path / "check.cubin")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


class Recorded:
    """In the place of the kernel: what it was to look at, and where it was to write."""

    def __init__(self) -> None:
        self.places: list[tuple[list[int], int]] = []

    def look(self, truths: torch.Tensor, seen: int, tell: bool) -> None:
        assert not tell
        self.places.append((truths.tolist(), seen))


class OnAGpu(torch.Tensor):
    """A tensor that says it is on a GPU."""

    is_cuda = True


def test_each_check_has_a_byte_of_its_own() -> None:
    bytes_ = [torch.ones(4, dtype=torch.uint8) for _ in range(2)]
    kernel: Any = Recorded()
    board = late_checks.Board(*bytes_, lambda: None, lambda: kernel)
    places = board.take(2)
    flags = torch.tensor([True, False]).as_subclass(OnAGpu)
    with late_checks.collected(places) as left:
        late_checks.check_truth(flags, True, 0, print)
        late_checks.check_truth(flags[:1], True, 0, print)
    first = bytes_[1].data_ptr()
    assert kernel.places == [([1, 0], first), ([1], first + 1)] and not left
    assert places.fails == [print, print]
    with late_checks.collected(places) as left:  # captured again
        late_checks.check_truth(flags, True, 0, print)
        late_checks.check_truth(torch.tensor([True]), True, 0, print)
    assert len(kernel.places) == 3 and len(left) == 1, "the CPU's own is left to the caller"


@pytest.mark.gpu
def test_it_writes_what_it_should_and_nothing_else() -> None:
    assert check_kernel(torch.cuda.current_device()) is not None


@pytest.fixture
def arrays(monkeypatch) -> None:
    """Truth values of checks are arrays: no kernel has a flag."""
    monkeypatch.setattr(FlagChecks, "run", lambda self, op, context: None)
    monkeypatch.setenv("IRC_DISABLE_CACHE", "1")
    torch._dynamo.reset()


@pytest.mark.gpu
@pytest.mark.parametrize("copied", [False, True])
def test_a_check_is_told_by_the_kernel_or_a_copy(copied: bool, arrays: None) -> None:
    table = torch.randn(100, 8, device="cuda")
    places = torch.arange(50, device="cuda")
    run = torch.compile(lambda t, i: t[i] - 1, backend="irc")
    run(table, places)
    ring = late_checks.ring_of(torch.cuda.current_device())
    assert ring is not None
    kernel = ring.words[RING_KERNEL]
    assert kernel, "no kernel was found"
    ring.use(0 if copied else kernel)
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as record:
            run(table, places)
            torch.cuda.synchronize()
        names = [e.key for e in record.key_averages()]
        assert any("Memcpy" in n for n in names) == copied, names
        assert any("irc_check" in n for n in names) == (not copied), names
        run(table, places + 60)
        with pytest.raises(IndexError):
            late_checks.settle()
        assert torch.equal(run(table, places), table[places] - 1)
        late_checks.settle()
    finally:
        ring.use(kernel)


@pytest.mark.gpu
@pytest.mark.parametrize("flags", [False, True])
def test_a_capture_of_somebody_elses_copies_nothing_to_the_cpu(flags: bool, request) -> None:
    if not flags:
        request.getfixturevalue("arrays")
    table = torch.randn(100, 8, device="cuda")
    places = torch.arange(50, device="cuda")
    run = torch.compile(lambda t, i: t[i] + 1, backend="irc")
    for _ in range(3):
        run(table, places)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run(table, places)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as record:
        graph.replay()
        torch.cuda.synchronize()
    assert not [e.key for e in record.key_averages() if "Memcpy" in e.key]
    assert torch.equal(result, table[places] + 1)
    places[3] = 100
    graph.replay()
    with pytest.raises(IndexError):
        late_checks.settle()
    places[3] = 7
    graph.replay()
    late_checks.settle()
    assert torch.equal(result, table[places] + 1)
