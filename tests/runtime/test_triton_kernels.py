"""Which programs are a GPU's, and how the CPU's tensors come to its kernels."""

from __future__ import annotations

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from irc.frontend.backend import target_of
from irc.options.options import Options
from irc.program import host_program as P
from irc.program.gpu_kernels import GpuKernels, KernelFacts
from irc.runtime.host_steps import gpu_of, surely_on_gpu
from irc.runtime.python_host import PythonHost
from irc.runtime.triton_kernels import Launcher, TritonKernels, _copy_to, key_of
from irc.target import Target


def test_a_graph_without_inputs_is_for_the_device_of_what_it_makes() -> None:
    graph = fx.Graph()
    made = graph.call_function(torch.ones, ((3,),))
    graph.output((made,))
    with FakeTensorMode():
        made.meta["val"] = torch.empty(3, device="cuda")
    module = fx.GraphModule({}, graph)
    assert target_of([], Options(), module) == Target.host(gpu=True)
    assert target_of([], Options(target="llvm"), module) == Target.host()
    assert target_of([], Options(target="avx2"), module) == Target.named("avx2")
    assert target_of([torch.ones(3)], Options()) == Target.host()


def test_a_copy_for_a_kernel_keeps_strides() -> None:
    base = torch.arange(24.0).view(4, 6)
    for tensor in (base.t(), base[1:, ::2], base[2, 3], base[:0], base[1:2].expand(3, 6)):
        copy = _copy_to(torch.device("cpu"), tensor)
        assert torch.equal(copy, tensor) and copy.stride() == tensor.stride()


def test_tensors_of_the_cpu_go_to_the_kernel_and_back(monkeypatch) -> None:
    """With a "GPU" that is the CPU: the outputs alone are written."""
    facts = KernelFacts(("*fp32", "*fp32", "i64"), (1,), ())
    kernels = TritonKernels(GpuKernels("sm_90", "", {"k": facts}, {}))
    seen = []

    def launch(name: str, tensors: list[torch.Tensor], symbols: list[int], grid: int) -> None:
        seen.append((name, symbols, grid))
        for tensor in tensors:
            tensor += 1

    monkeypatch.setattr(kernels, "launch", launch)
    monkeypatch.setattr(
        "irc.runtime.triton_kernels._copy_to", lambda device, tensor: tensor.clone()
    )
    given = [torch.zeros(3), torch.zeros(3)]
    kernels._launch_copies("k", given, [5], 2)
    assert seen == [("k", [5], 2)]
    assert given[0].sum() == 0 and given[1].sum() == 3


class _Compiled:
    """What Triton would give: counts its launches."""

    function, packed_metadata = 11, "metadata"

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def run(self, *given: object) -> None:
        self.calls.append(given)


def test_a_kind_of_arguments_is_compiled_once(monkeypatch) -> None:
    made: list[_Compiled] = []

    def first(self: Launcher, tensors: object, sizes: object, grid: int) -> _Compiled:
        made.append(_Compiled())
        return made[-1]

    monkeypatch.setattr(Launcher, "first_launch", first)
    launcher = Launcher("", "k", {})
    whole = torch.zeros(64)
    shifted = whole[1:]
    launcher([whole], (), 3, 0, 7)
    launcher([whole], (), 4, 0, 7)
    assert len(made) == 1
    assert made[0].calls == [(4, 1, 1, 7, 11, "metadata", None, None, None, whole.data_ptr())]
    launcher([shifted], (), 4, 0, 7)
    launcher([whole], (), 4, 1, 7)
    assert len(made) == 3


def test_kinds_of_sizes_are_those_that_triton_tells_apart() -> None:
    kinds = {key_of([16], [n], 0) for n in (1, 2, 3, 16, 32, 1 << 31, 1 << 40, 7 + (1 << 40))}
    assert kinds == {key_of([16], [n], 0) for n in (1, 2, 16, 1 << 40, 7 + (1 << 40))}
    assert key_of([16, 32], (), 0) != key_of([16, 36], (), 0) != key_of([20, 32], (), 0)


def _gpu_program() -> P.HostProgram:
    rows = P.Layout("float32", (4, 6), (6, 1), 4, "cuda:0")
    number = P.Layout("float32", (), (), 4, "cuda:0")
    layouts = {0: rows, 1: number, 2: rows, 3: number, 4: rows}
    steps = (
        P.Alloc(2, rows), P.View(3, 1, number, 0), P.View(4, 2, rows, 0),
        P.Launch("k", (0, 2), (), 5), P.Launch("k", (1, 2), (), 5),
    )  # fmt: skip
    arguments = (P.Argument("x", "tensor", 0, rows), P.Argument("n", "tensor", 1, number))
    return P.HostProgram("main", arguments, (), steps, (), 5, {}, layouts, {})


def test_numbers_from_outside_may_be_the_cpus() -> None:
    program = _gpu_program()
    assert gpu_of(program) == 0
    assert surely_on_gpu(program) == {0, 2, 4}


def test_a_launch_on_the_gpu_alone_goes_to_its_launcher() -> None:
    """The other one, of what may be the CPU's, is looked at at each call."""
    seen = []

    class Kernels:
        def launcher(self, name: str) -> object:
            return lambda tensors, sizes, grid, gpu, stream: seen.append(("direct", grid, stream))

        def launch(self, name: str, tensors: object, symbols: object, grid: int) -> None:
            seen.append(("looked at", grid, 0))

    host = PythonHost(_gpu_program(), Kernels(), {})
    run = type("Run", (), {})()
    run.values, run.symbols, run.stream, run.owner = dict.fromkeys(range(5)), {}, 9, host
    run.dim = int
    for (ready, _), step in zip(host._plan, host.program.steps, strict=True):
        if isinstance(step, P.Launch):
            ready(run)
    assert seen == [("direct", 5, 9), ("looked at", 5, 0)]
