"""Memory that a captured graph fills is filled by a kernel.

Libraries fill a few bytes before some of their kernels (cuDNN before an attention). In a graph such
a memset is no kernel, and what stands before and behind it waits for it: 5 us of an H200 between
two kernels that otherwise follow each other in 0.1 us. So nodes that fill whole words are replaced
before the graph gets ready; others, and all where the driver refuses, stay as they are.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from irc.boundary import cuda

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry irc_fill(.param .u64 to, .param .u64 count, .param .u64 word)
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %d<6>;
  ld.param.u64 %d1, [to];
  ld.param.u64 %d2, [count];
  ld.param.u32 %r1, [word];
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.wide.u32 %d3, %r2, %r3, 0;
  cvt.u64.u32 %d4, %r4;
  add.u64 %d3, %d3, %d4;
  setp.ge.u64 %p1, %d3, %d2;
  @%p1 bra END;
  shl.b64 %d5, %d3, 2;
  add.u64 %d1, %d1, %d5;
  st.global.u32 [%d1], %r1;
END:
  ret;
}
\0"""
#: Threads of a block; words that are filled so at most: more take longer than a memset's gaps.
THREADS, MOST_WORDS = 256, 1 << 18
_MEMSET = 2  # CU_GRAPH_NODE_TYPE_MEMSET


class Memset(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = [("to", ctypes.c_uint64), ("pitch", ctypes.c_size_t), ("value", ctypes.c_uint),
                ("element", ctypes.c_uint), ("width", ctypes.c_size_t),
                ("height", ctypes.c_size_t)]  # fmt: skip


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = [("function", ctypes.c_void_p), ("grid", ctypes.c_uint * 3),
                ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("parameters", ctypes.c_void_p), ("extra", ctypes.c_void_p),
                ("kernel", ctypes.c_void_p), ("context", ctypes.c_void_p)]  # fmt: skip


class GraphRefused(Exception):
    """A call of the driver that gave an error, or that it lacks."""


def fill_by_kernels(library: Any, graph: int, function: int) -> int:
    """Replace nodes of a graph (a CUgraph) that fill memory by launches of the kernel `function`
    (`kernel_of`); how many."""
    count = 0
    for node in _handles(library, "cuGraphGetNodes", graph):
        type_ = ctypes.c_int()
        _call(library, "cuGraphNodeGetType", ctypes.c_void_p(node), ctypes.byref(type_))
        if type_.value == _MEMSET:
            count += _replaced(library, graph, node, function)
    return count


def _replaced(library: Any, graph: int, node: int, function: int) -> bool:
    """Whether a launch stands in the place of a node, which is gone then."""
    memset = Memset()
    _call(library, "cuGraphMemsetNodeGetParams", ctypes.c_void_p(node), ctypes.byref(memset))
    what = fill_of(memset)
    if what is None:
        return False
    try:
        # Edges that are more than an order, those of launches that begin early, are an error.
        before = _handles(library, "cuGraphNodeGetDependencies", node)
        behind = _handles(library, "cuGraphNodeGetDependentNodes", node)
    except GraphRefused:
        return False
    words = (ctypes.c_uint64 * 3)(*what)
    places = [ctypes.addressof(words) + 8 * k for k in range(len(words))]
    arguments = (ctypes.c_void_p * len(words))(*places)
    shape = KernelNode(function=function, parameters=ctypes.addressof(arguments))
    shape.grid[:], shape.block[:] = (-(-what[1] // THREADS), 1, 1), (THREADS, 1, 1)
    launch = ctypes.c_void_p()
    _call(library, "cuGraphAddKernelNode_v2", ctypes.byref(launch), ctypes.c_void_p(graph),
          _array(before), ctypes.c_size_t(len(before)), ctypes.byref(shape))  # fmt: skip
    gone = ctypes.c_void_p(node)
    try:
        _call(library, "cuGraphAddDependencies", ctypes.c_void_p(graph),
              _array([launch.value or 0] * len(behind)), _array(behind),
              ctypes.c_size_t(len(behind)))  # fmt: skip
    except GraphRefused:
        gone = launch
    _call(library, "cuGraphDestroyNode", gone)
    return gone is not launch


def fill_of(memset: Memset) -> tuple[int, int, int] | None:
    """Where a memset fills how many words with what; None for one that stays."""
    size = memset.width * memset.element
    if memset.height != 1 or memset.to % 4 or size % 4 or not 0 < size <= 4 * MOST_WORDS:
        return None
    pattern = (memset.value & (1 << 8 * memset.element) - 1).to_bytes(4, "little")[: memset.element]
    return memset.to, size // 4, int.from_bytes(pattern * (4 // memset.element), "little")


def _call(library: Any, name: str, *arguments: Any) -> None:
    function = getattr(library, name, None)
    if function is None or function(*arguments):
        raise GraphRefused(name)


def _array(handles: list[int]) -> Any:
    return (ctypes.c_void_p * max(1, len(handles)))(*handles)


def _handles(library: Any, name: str, of: int) -> list[int]:
    """What a function lists, which is asked for the number first."""
    count = ctypes.c_size_t()
    _call(library, name, ctypes.c_void_p(of), None, ctypes.byref(count))
    handles = _array([0] * count.value)
    if count.value:
        _call(library, name, ctypes.c_void_p(of), handles, ctypes.byref(count))
    return [handle or 0 for handle in handles[: count.value]]


@functools.cache
def kernel_of(gpu: cuda.Gpu, device: int) -> int | None:
    """The kernel on a GPU; None where the driver can't assemble it."""
    try:
        return gpu.load(device, PTX, "irc_fill", 0)
    except cuda.DriverError:
        return None


__all__ = ["PTX", "KernelNode", "Memset", "GraphRefused", "fill_by_kernels", "fill_of", "kernel_of"]
