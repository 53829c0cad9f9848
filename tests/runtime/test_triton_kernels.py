"""Which programs are a GPU's, and how the CPU's tensors come to its kernels."""

from __future__ import annotations

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from irc.frontend.backend import target_of
from irc.frontend.options import Options
from irc.runtime.triton_kernels import TritonKernels, _copy_to


def test_a_graph_without_inputs_is_for_the_device_of_what_it_makes() -> None:
    graph = fx.Graph()
    made = graph.call_function(torch.ones, ((3,),))
    graph.output((made,))
    with FakeTensorMode():
        made.meta["val"] = torch.empty(3, device="cuda")
    module = fx.GraphModule({}, graph)
    assert target_of([], Options(), module) == "triton"
    assert target_of([], Options(target="llvm"), module) == "llvm"
    assert target_of([torch.ones(3)], Options()) == "llvm"


def test_a_copy_for_a_kernel_keeps_strides() -> None:
    base = torch.arange(24.0).view(4, 6)
    for tensor in (base.t(), base[1:, ::2], base[2, 3], base[:0], base[1:2].expand(3, 6)):
        copy = _copy_to(torch.device("cpu"), tensor)
        assert torch.equal(copy, tensor) and copy.stride() == tensor.stride()


def test_tensors_of_the_cpu_go_to_the_kernel_and_back(monkeypatch) -> None:
    """With a "GPU" that is the CPU: the outputs alone are written."""
    kernels = TritonKernels([])
    kernels._outputs["k"] = (1,)
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
