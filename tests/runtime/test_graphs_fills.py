"""Memsets of captured graphs become launches: over a graph in Python, and on a GPU."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch

from irc.runtime import graphs_fills
from irc.runtime.graphs_driver import CudaDriver
from irc.runtime.graphs_fills import KernelNode, Memset, fill_by_kernels, fill_of

FILL = 0xF111


class Graph:
    """The driver's functions over one graph: nodes are numbers, edges pairs of them."""

    def __init__(self, memsets: dict[int, Memset], nodes: list[int], edges: set[Any]) -> None:
        self.memsets, self.nodes, self.edges = memsets, nodes, edges
        self.launches: dict[int, tuple[Any, ...]] = {}
        self.refuses = ""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("cu") and name == self.refuses:
            return lambda *_: 1
        return super().__getattribute__(name)

    def _list(self, found: list[int], out: Any, count: Any) -> int:
        if out is not None:
            out[: len(found)] = found
        count._obj.value = len(found)
        return 0

    def cuGraphGetNodes(self, graph: Any, out: Any, count: Any) -> int:
        return self._list(self.nodes, out, count)

    def cuGraphNodeGetType(self, node: Any, kind: Any) -> int:
        kind._obj.value = 2 if node.value in self.memsets else 0
        return 0

    def cuGraphMemsetNodeGetParams(self, node: Any, out: Any) -> int:
        ctypes.pointer(out._obj)[0] = self.memsets[node.value]
        return 0

    def cuGraphNodeGetDependencies(self, node: Any, out: Any, count: Any) -> int:
        return self._list([a for a, b in sorted(self.edges) if b == node.value], out, count)

    def cuGraphNodeGetDependentNodes(self, node: Any, out: Any, count: Any) -> int:
        return self._list([b for a, b in sorted(self.edges) if a == node.value], out, count)

    def cuGraphAddKernelNode_v2(self, out: Any, graph: Any, before: Any, n: Any, shape: Any) -> int:
        made = out._obj.value = 100 + len(self.launches)
        node: KernelNode = shape._obj
        places = (ctypes.c_uint64 * 3).from_address(node.parameters)
        words = tuple(ctypes.c_uint64.from_address(place).value for place in places)
        self.launches[made] = node.function, tuple(node.grid), tuple(node.block), *words
        self.nodes.append(made)
        self.edges |= {(before[i], made) for i in range(n.value)}
        return 0

    def cuGraphAddDependencies(self, graph: Any, of: Any, to: Any, n: Any) -> int:
        self.edges |= {(of[i], to[i]) for i in range(n.value)}
        return 0

    def cuGraphDestroyNode(self, node: Any) -> int:
        self.nodes.remove(node.value)
        self.launches.pop(node.value, None)
        self.edges = {edge for edge in self.edges if node.value not in edge}
        return 0


def memset(**changed: int) -> Memset:
    return Memset(**(dict(to=64, pitch=0, value=0, element=1, width=1024, height=1) | changed))


def graph(**changed: int) -> Graph:
    return Graph({2: memset(**changed)}, [1, 2, 3, 4], {(1, 2), (2, 3), (2, 4), (1, 4)})


def test_a_launch_has_the_memsets_place():
    made = graph()
    assert fill_by_kernels(made, 7, FILL) == 1
    assert made.nodes == [1, 3, 4, 100] and made.edges == {(1, 100), (100, 3), (100, 4), (1, 4)}
    assert made.launches == {100: (FILL, (1, 1, 1), (256, 1, 1), 64, 256, 0)}


@pytest.mark.parametrize("name", [
    "cuGraphGetNodes", "cuGraphNodeGetDependencies", "cuGraphNodeGetDependentNodes",
    "cuGraphAddKernelNode_v2", "cuGraphAddDependencies",
])  # fmt: skip
def test_where_the_driver_refuses_the_graph_is_as_it_was(name):
    made = graph()
    made.refuses = name
    try:
        assert fill_by_kernels(made, 7, FILL) == 0
    except graphs_fills.GraphRefused:
        pass
    assert sorted(made.nodes) == [1, 2, 3, 4] and made.edges == {(1, 2), (2, 3), (2, 4), (1, 4)}


def test_which_memsets_are_whole_words():
    assert fill_of(memset(value=0x1FF)) == (64, 256, 0xFFFFFFFF)
    assert fill_of(memset(value=0xABCD, element=2, width=2)) == (64, 1, 0xABCDABCD)
    assert fill_of(memset(value=0x12345678, element=4, width=300)) == (64, 300, 0x12345678)
    for stays in (dict(to=66), dict(width=6), dict(width=0), dict(height=2), dict(width=1 << 24)):
        assert fill_of(memset(**stays)) is None
    assert graph(height=2).nodes == [1, 2, 3, 4]


@pytest.mark.gpu
@pytest.mark.parametrize("size", [4, 16, 1020, 1024, 280000, 1 << 20, 3, 1 << 22])
def test_a_replay_fills_what_a_memset_filled(size, monkeypatch):
    replaced: list[int] = []
    fill = graphs_fills.fill_by_kernels
    monkeypatch.setattr(
        graphs_fills, "fill_by_kernels", lambda *given: replaced.append(fill(*given))
    )
    driver = CudaDriver(0)
    memory = torch.arange(size + 8, device="cuda", dtype=torch.int32).to(torch.uint8)
    expected, other = memory.clone(), torch.ones(4, device="cuda")
    expected[4 : 4 + size] = 7
    library = ctypes.CDLL("libcuda.so.1")

    def run(tensors: Any) -> Any:
        doubled = other * 2
        where, stream = ctypes.c_uint64(memory.data_ptr() + 4), torch.cuda.current_stream()
        handle = ctypes.c_void_p(stream.cuda_stream)
        assert library.cuMemsetD8Async(where, ctypes.c_ubyte(7), ctypes.c_size_t(size), handle) == 0
        return doubled + memory[4:5].float()

    captured, (first, *_) = driver.capture(run, (), driver.new_pool(), random=False)
    captured.replay()
    torch.cuda.synchronize()
    assert torch.equal(memory, expected) and first.item() == 9
    assert replaced == [int(size % 4 == 0 and size <= 1 << 20)]
